/* Selective scan for float and double. */
#include "real_math.h"

#define KERNEL "selective_scan.inc"
#include "both.h"
