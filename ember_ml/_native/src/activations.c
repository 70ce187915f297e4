/* Elementwise functions. */
#include "real_math.h"

#define KERNEL "activations.inc"
#include "both.h"
