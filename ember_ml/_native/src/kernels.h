/* Declarations shared by all kernels.
 *
 * A kernel is written once for a floating point type: its file defines functions named NAME(x) of
 * REAL, and is included twice, for float and double.
 */
#ifndef EMBER_KERNELS_H
#define EMBER_KERNELS_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define CONCAT_(a, b) a##_##b
#define CONCAT(a, b) CONCAT_(a, b)

typedef int64_t idx;

/* Work on the items [begin, end). */
typedef void (*ember_task)(void *arguments, idx begin, idx end);

/* Split `items` into contiguous ranges, one per thread, and run the task on each. */
void ember_parallel(ember_task task, void *arguments, idx items, int threads);

/* Number of steps ahead to prefetch in loops backward in time: processors prefetch rising addresses
 * by themselves, but not these. LINE: bytes of a cache line. */
enum { AHEAD = 16, LINE = 64 };

/* Bytes that a call reads and writes, above which its results leave the cache of most processors
 * before the next op reads them. */
enum { BEYOND_CACHE = 32 << 20 };

/* Prefetch a row that a later step reads. */
static inline void ember_fetch(const void *row, idx bytes) {
    for (idx at = 0; at < bytes; at += LINE) __builtin_prefetch((const char *)row + at, 0);
}

/* Prefetch a row that a later step writes. */
static inline void ember_fetch_output(const void *row, idx bytes) {
    for (idx at = 0; at < bytes; at += LINE) __builtin_prefetch((const char *)row + at, 1);
}

#endif
