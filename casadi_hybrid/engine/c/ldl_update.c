/* target -= left right^T in the lower triangle: nearly all of the arithmetic. See ldl_dense.h.

   Tiles small enough for the registers; the order of the sums is the same in all of them, and does
   not depend on how wide the processor's vectors are. */
#include "ldl_dense.h"

#ifdef __AVX__
#define TALL 8
#else
#define TALL 4
#endif
#define WIDE 4

/* One tile of tall x wide; called with constants, so that the sums stay in registers. */
static inline void tile(const int tall, const int wide, int depth, const double *restrict left,
                        int left_height, const double *restrict right, int right_height,
                        double *restrict target, int target_height) {
    double sum[WIDE][TALL] = {{0}};
    int i, j, k;
    for (k = 0; k < depth; k++) {
        for (j = 0; j < wide; j++)
            for (i = 0; i < tall; i++) sum[j][i] += left[i] * right[j];
        left += left_height, right += right_height;
    }
    for (j = 0; j < wide; j++)
        for (i = 0; i < tall; i++) target[i + (long)j * target_height] -= sum[j][i];
}

void hybrid_ldl_update(int rows, int columns, int depth, int offset, const double *left,
                       int left_height, const double *right, int right_height, double *target,
                       int target_height) {
    int i, j;
    for (j = 0; j < columns; j += WIDE) {
        const double *r = right + j;
        double *t = target + (long)j * target_height;
        const int wide = columns - j < WIDE ? columns - j : WIDE;
        i = (offset + j) & ~3;
        if (wide == WIDE) {
            for (; i + TALL <= rows; i += TALL)
                tile(TALL, WIDE, depth, left + i, left_height, r, right_height, t + i,
                     target_height);
            for (; i < rows; i += 4)
                tile(4, WIDE, depth, left + i, left_height, r, right_height, t + i, target_height);
        } else {
            for (; i < rows; i += 4) {
                if (wide == 3)
                    tile(4, 3, depth, left + i, left_height, r, right_height, t + i, target_height);
                else if (wide == 2)
                    tile(4, 2, depth, left + i, left_height, r, right_height, t + i, target_height);
                else
                    tile(4, 1, depth, left + i, left_height, r, right_height, t + i, target_height);
            }
        }
    }
}
