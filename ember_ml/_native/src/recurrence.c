/* Linear recurrences for float and double. */
#include "kernels.h"
#include "vectors.h"

enum { NARROW = 8 }; /* vectors of a row whose states stay in registers */

#define KERNEL "vectors.inc"
#include "both.h"

#define KERNEL "recurrence.inc"
#include "both.h"
