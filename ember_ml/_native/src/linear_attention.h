/* Operands of linear attention, and the width of vectors for each instruction set. */
#ifndef EMBER_LINEAR_ATTENTION_H
#define EMBER_LINEAR_ATTENTION_H

#include <stddef.h>
#include <string.h>

#define MIN_LOG_DECAY (-20) /* as in backend/linear_attention.py */

enum { QUERY, KEY, VALUE, DECAY, RATE, GRAD, OPERANDS };
enum { Y, ERROR, GRAD_QUERY, GRAD_KEY, GRAD_VALUE, RESULTS };

#if defined(__AVX512F__)
#define FULL_BYTES 64
#elif defined(__AVX2__)
#define FULL_BYTES 32
#else
#define FULL_BYTES 16
#endif

#endif
