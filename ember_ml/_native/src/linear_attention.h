/* Operands and results of linear attention. */
#ifndef EMBER_LINEAR_ATTENTION_H
#define EMBER_LINEAR_ATTENTION_H

#include <stddef.h>
#include <string.h>

#include "vectors.h"

#define MIN_LOG_DECAY (-20) /* as in backend/linear_attention.py */

enum { QUERY, KEY, VALUE, DECAY, RATE, GRAD, OPERANDS };
enum { Y, ERROR, GRAD_QUERY, GRAD_KEY, GRAD_VALUE, RESULTS };

#endif
