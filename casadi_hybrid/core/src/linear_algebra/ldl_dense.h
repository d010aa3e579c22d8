/* The dense part of the sparse factorization: one front. Private to ldl_*.c. */
#ifndef HYBRID_LDL_DENSE_H
#define HYBRID_LDL_DENSE_H
#include "ldl.h"

/* Pivots whose effect on the columns to come is worked out together. */
#define HYBRID_LDL_BATCH 32

/* Rounded up to a multiple of four. */
#define HYBRID_LDL_FOUR(n) (((n) + 3) & ~3)

/* A front while it is factored. Its c candidates are the local rows 0...c-1, the b rows below are
   q...q+b-1 with q = FOUR(c); rows between, and after up to FOUR(b), are zero. */
typedef struct hybrid_front {
    int candidates; /* columns of the panel */
    int below;      /* rows under the candidates */
    int height;     /* of a column: q + FOUR(b) */
    int delays;     /* candidates that the parent has places for */
    int most;       /* candidates that it has room for, beyond its places too */
    double *panel;  /* [candidates * height] the columns, then those of L */
    double *block;  /* [below * FOUR(below)] what is left for the parent, lower triangle */
    double *scaled; /* [(BATCH + 2) * height] columns of L D */
    double *diagonal, *off_diagonal; /* [candidates] the inverses of the pivots */
    int *order;     /* [candidates] the position of each candidate */
} hybrid_front;

/* pivots has four integers of a front: its candidates, how many of them were taken, and where its
 * panel and its order begin. Until a front of the rest is begun, the second and the third count the
 * rows that each half delays to it. */

/* The fronts of one part, of s->part: what a thread does. The rest has to wait for the halves. */
typedef struct hybrid_ldl_share {
    const hybrid_ldl *s;
    int part;
    const double *values; /* of the equilibrated K */
    double *factor, *stack, *scaled;
    int *pivots;
    hybrid_inertia found;
} hybrid_ldl_share;

void hybrid_ldl_do(hybrid_ldl_share *share);

/* The doubles of a front in the factor: its columns, and for each the inverse of its pivot. */
static inline double hybrid_ldl_length(int columns, int below) {
    return (double)columns * (HYBRID_LDL_FOUR(columns) + HYBRID_LDL_FOUR(below) + 2);
}

/* Eliminates what can be of an assembled front; returns how many candidates. They come first
   then, the delayed ones after them, brought up to date. */
int hybrid_ldl_eliminate(const hybrid_front *front, hybrid_inertia *found);

/* target -= left right^T for depth columns of left and right, in the lower triangle: in column j
   from row `offset` + j on, and up to three rows above it. rows is a multiple of four. */
void hybrid_ldl_update(int rows, int columns, int depth, int offset, const double *left,
                       int left_height, const double *right, int right_height, double *target,
                       int target_height);
#endif
