/* Spiking neurons for float and double. Products and sums are rounded separately, as in NumPy:
 * a spike depends on the last digit of a voltage near the threshold. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include "real_math.h"

enum { SOFT, HARD, NONE };
enum { FAST_SIGMOID, ATAN, SIGMOID, TRIANGLE, STRAIGHT_THROUGH };

#define KERNEL "spiking.inc"
#include "both.h"
