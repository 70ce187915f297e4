/* Layer norm and RMS norm of rows. */
#include <math.h>

#include "kernels.h"

#define KERNEL "normalization.inc"
#include "both.h"
