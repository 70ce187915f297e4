/* Sizes of the blocks of a product, for the registers of each instruction set. */
#ifndef EMBER_PRODUCT_H
#define EMBER_PRODUCT_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define PANEL_VECTORS 4
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define PANEL_VECTORS 2
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define PANEL_VECTORS 4
#else
#define VECTOR_BYTES 16
#define PANEL_VECTORS 2
#endif
#define PANEL_ROWS 6

#endif
