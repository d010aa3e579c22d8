/* Vectors in a fixed order of sums, and decompositions of small full matrices. */
#ifndef HYBRID_LINEAR_ALGEBRA_H
#define HYBRID_LINEAR_ALGEBRA_H

#include <math.h>

/* The number of entries of an array. */
#define HYBRID_COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* The larger and the smaller one; b where either is a NaN. */
static inline double hybrid_max(double a, double b) { return a > b ? a : b; }
static inline int hybrid_max_int(int a, int b) { return a > b ? a : b; }
static inline double hybrid_min(double a, double b) { return a < b ? a : b; }
/* The largest |entry|, NaN where any is. */
double hybrid_norm_inf(int count, const double *v);
/* The largest entry, or 0: a NaN is none. */
double hybrid_max_entry(int count, const double *v);
/* The least entry, or infinity: a NaN is none. */
double hybrid_min_entry(int count, const double *v);
/* The sum of the logarithms. */
double hybrid_sum_log(int count, const double *v);
/* The product of two vectors. */
double hybrid_dot(int count, const double *a, const double *b);
/* The sum of all |entries|. */
double hybrid_norm1(int count, const double *v);
/* The largest by which an entry is beyond its bounds, 0 where none is. */
double hybrid_max_violation(int count, const double *v, const double *lower, const double *upper);
/* to = from[at], where `at` picks `count` of `size` in their order. */
void hybrid_gather(int count, int size, const int *at, const double *from, double *to);
/* A number, moved into its bounds; and out = v, moved into its bounds. */
static inline double hybrid_clamp(double value, double lower, double upper) {
    return value < lower ? lower : value > upper ? upper : value;
}
void hybrid_clamp_vector(int count, const double *v, const double *lower, const double *upper,
                         double *out);
int hybrid_all_finite(int count, const double *v);

/* Entries of a vector that a pass takes together, and how many there are from one on. */
#define HYBRID_BLOCK 64
static inline int hybrid_block(int from, int count) {
    return count - from < HYBRID_BLOCK ? count - from : HYBRID_BLOCK;
}
/* to = from; v = 0. */
void hybrid_copy(int count, const double *from, double *to);
void hybrid_zero(int count, double *v);

static inline double hybrid_norm2(int count, const double *v) {
    return sqrt(hybrid_dot(count, v, v));
}

/* The diagonal of R in a QR decomposition with column pivoting of m columns of n numbers, which are
 * lost. `diagonal`: the shorter of both. */
void hybrid_qr_diagonal(int m, int n, double *columns, double *diagonal);

/* Eigenvalues, rising, and eigenvectors, in the columns of A, of a full symmetric A; `work` has n
 * numbers. Returns 0, or 1 where they did not converge. */
int hybrid_eigen(int n, double *A, double *values, double *work);

#endif
