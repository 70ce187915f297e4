/* Linear recurrences for float and double. */
#include "kernels.h"

#define REAL float
#define NAME(x) CONCAT(x, f32)
#include "recurrence.inc"
#undef REAL
#undef NAME
#define REAL double
#define NAME(x) CONCAT(x, f64)
#include "recurrence.inc"
