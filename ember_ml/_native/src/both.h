/* Include the file named KERNEL twice: with REAL as float (suffix f32) and as double (f64). */
#define REAL float
#define NAME(x) CONCAT(x, f32)
#define IS_FLOAT 1
#include KERNEL
#undef REAL
#undef NAME
#undef IS_FLOAT
#define REAL double
#define NAME(x) CONCAT(x, f64)
#define IS_FLOAT 0
#include KERNEL
#undef REAL
#undef NAME
#undef IS_FLOAT
#undef KERNEL
