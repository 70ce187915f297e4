/* Linear attention with decay, and with the delta rule, for float and double. */
#include "linear_attention.h"
#include "real_math.h"

#define KERNEL "linear_attention.inc"
#include "both.h"
#define KERNEL "linear_attention_adjoint.inc"
#include "both.h"
