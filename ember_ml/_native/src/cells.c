/* Recurrent cells for float and double. */
#include "product.h"
#include "real_math.h"

#define KERNEL "vectors.inc"
#include "both.h"
#define KERNEL "product.inc"
#include "both.h"
#define KERNEL "row_products.inc"
#include "both.h"
#define KERNEL "cells.inc"
#include "both.h"
#define KERNEL "liquid.inc"
#include "both.h"
