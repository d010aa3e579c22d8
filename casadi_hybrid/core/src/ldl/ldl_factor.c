/* The numbers of the sparse LDL^T: equilibration, then the parts of the tree. See ldl.h. The factor
   holds the scale of every row, and what ldl_part.c puts there. */
#include <math.h>
#include "linear_algebra/ldl_dense.h"

#define SWEEPS 3
#define NEAR 100.0 /* row maxima this close to one are scaled well by one sweep */

/* The largest |scaled entry| of every row. */
static void maxima(const hybrid_ldl *s, const double *values, const double *scale, double *most) {
    const int *starts = s->starts, *rows = s->rows;
    for (int i = 0; i < s->size; i++) most[i] = 0;
    for (int j = 0; j < s->size; j++) {
        const double by = scale[j];
        double column = most[j];
        for (int k = starts[j]; k < starts[j + 1]; k++) {
            const double size = fabs(values[k]) * by * scale[rows[k]], row = most[rows[k]];
            most[rows[k]] = size > row ? size : row;
            column = size > column ? size : column;
        }
        most[j] = column > most[j] ? column : most[j];
    }
}

/* Scales K so that the largest entry of a row comes close to one (Ruiz, RAL-TR-2001-034): scale and
   the scaled entries. Returns whether all is finite. */
static int equilibrate(const hybrid_ldl *s, const double *values, double *scale, double *scaled,
                       double *most) {
    double sum = 0;
    for (int i = 0; i < s->size; i++) scale[i] = 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int far = 0;
        maxima(s, values, scale, most);
        for (int i = 0; i < s->size; i++) {
            if (most[i] > 0) scale[i] /= sqrt(most[i]);
            far |= most[i] > 0 && !(most[i] >= 1 / NEAR && most[i] <= NEAR);
        }
        if (!far) break;
    }
    for (int j = 0; j < s->size; j++) {
        const double by = scale[j];
        for (int k = s->starts[j]; k < s->starts[j + 1]; k++) {
            scaled[k] = values[k] * by * scale[s->rows[k]];
            sum += scaled[k];
        }
    }
    return sum - sum == 0;
}

/* Adds what one half has found. */
static void add(const hybrid_inertia *half, hybrid_inertia *all) {
    all->positive += half->positive, all->negative += half->negative, all->zero += half->zero;
    all->delayed += half->delayed, all->doubtful += half->doubtful;
    if (!(half->smallest >= all->smallest)) all->smallest = half->smallest;
    if (!(half->growth <= all->growth)) all->growth = half->growth;
}

static void run(void *share) { hybrid_ldl_do(share); }

void hybrid_ldl_factor(const hybrid_ldl *s, const double *values, double *factor, int *pivots,
                       double *room, hybrid_pair at_once, hybrid_inertia *found) {
    double *scaled = room, *stack = scaled + s->entries, *most = stack + s->stack;
    hybrid_ldl_share share = {s, 0, scaled, factor, stack, most + s->size, pivots, {0}};
    share.found.smallest = HUGE_VAL;
    share.found.singular = !equilibrate(s, values, factor, scaled, most);
    for (int k = 0; k < s->fronts; k++) {
        pivots[4 * k] = s->first[k + 1] - s->first[k];
        pivots[4 * k + 1] = pivots[4 * k + 2] = 0; /* delayed by a half to the rest */
    }
    if (!share.found.singular) {
        if (s->dealt) {
            hybrid_ldl_share other = share;
            other.part = 1, other.scaled += (HYBRID_LDL_BATCH + 2LL) * s->deepest;
            if (at_once) at_once(run, &share, &other);
            else run(&share), run(&other);
            add(&other.found, &share.found);
        }
        share.part = 2;
        run(&share);
    }
    *found = share.found;
    if (!(found->smallest > HYBRID_LDL_ROUNDING) || !(found->growth < HUGE_VAL))
        found->singular = 1;
}
