/* The dense part of the sparse factorization: one front. Private to ldl_*.c. */
#ifndef HYBRID_LDL_DENSE_H
#define HYBRID_LDL_DENSE_H
#include "ldl.h"

/* Pivots whose effect on the columns to come is worked out together. */
#define HYBRID_LDL_BATCH 32

/* A front while it is factored. */
typedef struct hybrid_front {
    int pivots;     /* columns of the panel */
    int below;      /* rows under the pivots */
    int height;     /* of a column */
    double *panel;  /* [pivots * height] the columns, then those of L */
    double *block;  /* [below * FOUR(below)] what is left for the parent, lower triangle */
    double *scaled; /* [(BATCH + 2) * height] columns of L D */
    double *diagonal, *beside; /* [pivots] the inverses of the pivots: diagonal, and off it */
    int *order;     /* [pivots] which row of the front each pivot was */
} hybrid_front;

/* Eliminates the pivots of an assembled front. */
void hybrid_ldl_eliminate(const hybrid_front *front, hybrid_inertia *found);

/* target -= left right^T for depth columns of left and right, in the lower triangle: in column j
   from row `offset` + j on, and up to three rows above it. rows is a multiple of four. */
void hybrid_ldl_update(int rows, int columns, int depth, int offset, const double *left,
                       int left_height, const double *right, int right_height, double *target,
                       int target_height);
#endif
