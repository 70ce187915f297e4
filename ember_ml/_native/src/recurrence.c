/* Linear recurrences for float and double. */
#include "kernels.h"
#include "vectors.h"

#define KERNEL "vectors.inc"
#include "both.h"

#define KERNEL "recurrence.inc"
#include "both.h"
