/* Bytes of a vector of each instruction set. */
#ifndef EMBER_VECTORS_H
#define EMBER_VECTORS_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#endif
