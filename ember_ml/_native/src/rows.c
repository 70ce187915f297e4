/* Rotary embeddings, sums of rows by index, updates of optimizers. */
#include <math.h>

#include "kernels.h"

#define KERNEL "rows.inc"
#include "both.h"
