/* Depthwise causal convolutions with few taps, and the gates of Hyena. */
#include "real_math.h"

#define KERNEL "convolution.inc"
#include "both.h"

#define KERNEL "columns.inc"
#include "both.h"
