/* Split of projections into heads, with rotary embeddings. */
#include <string.h>

#include "kernels.h"

#define KERNEL "heads.inc"
#include "both.h"
