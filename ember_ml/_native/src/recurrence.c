/* Linear recurrences for float and double. */
#include "kernels.h"

#define KERNEL "recurrence.inc"
#include "both.h"
