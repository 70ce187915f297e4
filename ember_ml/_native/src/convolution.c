/* Depthwise causal convolutions with few and with many taps, and the gates of Hyena. */
#include "real_math.h"
#include "vectors.h"

#define KERNEL "convolution.inc"
#include "both.h"

#define KERNEL "columns.inc"
#include "both.h"

#define KERNEL "vectors.inc"
#include "both.h"

#define KERNEL "long_filters.inc"
#include "both.h"

#define KERNEL "gated_filters.inc"
#include "both.h"
