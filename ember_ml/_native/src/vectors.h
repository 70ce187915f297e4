/* Bytes of a vector of each instruction set, and writes past the cache.
 *
 * STREAM(to, x) writes a vector to an aligned address without reading its cache line first.
 * STREAMED orders such writes before later ones.
 */
#ifndef EMBER_VECTORS_H
#define EMBER_VECTORS_H

#if defined(__SSE2__)
#include <immintrin.h>
#define STREAMED() _mm_sfence()
#else
#define STREAM(to, x) (*(to) = (x))
#define STREAMED() ((void)0)
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define STREAM(to, x) _mm512_stream_ps((float *)(to), (__m512)(x))
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define STREAM(to, x) _mm256_stream_ps((float *)(to), (__m256)(x))
#else
#define VECTOR_BYTES 16
#ifdef __SSE2__
#define STREAM(to, x) _mm_stream_ps((float *)(to), (__m128)(x))
#endif
#endif

#endif
