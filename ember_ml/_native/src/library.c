/* Functions for the loader of the library, and a setting of the allocator. */
#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "kernels.h"

#ifndef EMBER_SOURCE_HASH
#define EMBER_SOURCE_HASH ""
#endif

EXPORT const char *ember_source_hash(void) { return EMBER_SOURCE_HASH; }

/* Index of the best instruction set that the processor supports: x86-64, x86-64-v3, x86-64-v4. */
EXPORT int ember_processor_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    return v3 ? v3 + v4 : 0;
#else
    return 0;
#endif
}

/* Family of a processor of AMD (25 for Zen 3 and 4, 26 for Zen 5), 0 for others. */
EXPORT int ember_amd_family(void) {
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd") && __get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return (int)((eax >> 8 & 15) + (eax >> 20 & 255));
#endif
    return 0;
}

/* Let the C library keep freed memory for the next allocations, up to a number of bytes.
 *
 * By default it returns large blocks to the system at once, and each new one costs a page fault
 * for every 4096 bytes. Return whether the setting is supported.
 */
EXPORT int ember_keep_freed_memory(int bytes) {
#ifdef __GLIBC__
    int largest = 32 << 20; /* the most that M_MMAP_THRESHOLD accepts */
    return mallopt(M_TRIM_THRESHOLD, bytes) && mallopt(M_MMAP_THRESHOLD, largest);
#else
    (void)bytes;
    return 0;
#endif
}
