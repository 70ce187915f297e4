/* Softmax and cross-entropy of rows. */
#include "real_math.h"

#define KERNEL "probabilities.inc"
#include "both.h"
