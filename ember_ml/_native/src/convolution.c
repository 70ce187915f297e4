/* Depthwise causal convolutions with few taps, and the gates of Hyena. */
#include <string.h>

#include "kernels.h"

#define KERNEL "convolution.inc"
#include "both.h"
