/* Sizes of the blocks of a product, for the registers of each instruction set. */
#ifndef EMBER_PRODUCT_H
#define EMBER_PRODUCT_H

#include "vectors.h"

#if defined(__AVX512F__) || defined(__aarch64__)
#define PANEL_VECTORS 4
#else
#define PANEL_VECTORS 2
#endif
#define PANEL_ROWS 6

#endif
