/* Softplus of linear maps with few input features. */
#include "real_math.h"

#define KERNEL "softplus_linear.inc"
#include "both.h"
