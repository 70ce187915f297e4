/* Synapses for float and double. */
#include "real_math.h"

#define KERNEL "synapses.inc"
#include "both.h"
