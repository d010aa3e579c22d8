/* target -= left right^T in the lower triangle: nearly all of the arithmetic. See ldl_dense.h.

   Tiles small enough for the registers; the order of the sums is the same in all of them, and does
   not depend on how wide the processor's vectors are. */
#include "linear_algebra/lanes.h"
#include "linear_algebra/ldl_dense.h"

#define TALL (LANES_TOGETHER == 4 ? 8 : 4)
#define WIDE 4

/* One tile of tall x wide, of whole registers: a compiler that has to find them by itself gathers
   entries one by one. Called with constants, so that the sums stay where they are. */
static inline void tile(const int tall, const int wide, int depth, const double *restrict left,
                        int left_height, const double *restrict right, int right_height,
                        double *restrict target, int target_height) {
    hybrid_register sum[WIDE][TALL / LANES_TOGETHER] = {{REGISTER_ZERO}};
    const int registers = tall / LANES_TOGETHER;
    for (int k = 0; k < depth; k++) {
        for (int j = 0; j < wide; j++)
            for (int i = 0; i < registers; i++)
                sum[j][i] += REGISTER_LOAD(left + LANES_TOGETHER * i) * right[j];
        left += left_height, right += right_height;
    }
    for (int j = 0; j < wide; j++, target += target_height)
        for (int i = 0; i < registers; i++)
            REGISTER_STORE(target + LANES_TOGETHER * i,
                           REGISTER_LOAD(target + LANES_TOGETHER * i) - sum[j][i]);
}

void hybrid_ldl_update(int rows, int columns, int depth, int offset, const double *left,
                       int left_height, const double *right, int right_height, double *target,
                       int target_height) {
    int i;
    for (int j = 0; j < columns; j += WIDE) {
        const double *r = right + j;
        double *t = target + (long long)j * target_height;
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
