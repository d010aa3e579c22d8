/* The numbers of the sparse LDL^T: equilibration, assembly and elimination, front by front. See
   ldl.h. The factor holds the scale of every row, the inverse pivots, and the panels of L. */
#include <math.h>
#include <string.h>
#include "ldl_dense.h"

#define SWEEPS 3

/* Scales K so that the largest entry of a row comes close to one (Ruiz): scale and the scaled
   entries. Returns whether all is finite. */
static int equilibrate(const hybrid_ldl *s, const double *values, double *scale, double *scaled,
                       double *most) {
    const int *starts = s->starts, *rows = s->rows;
    int sweep, i, j, k;
    double sum = 0;
    for (i = 0; i < s->size; i++) scale[i] = 1;
    for (k = 0; k < s->entries; k++) sum += fabs(values[k]);
    for (sweep = 0; sweep < SWEEPS; sweep++) {
        for (i = 0; i < s->size; i++) most[i] = 0;
        for (j = 0; j < s->size; j++) {
            double of_column = most[j];
            const double by = scale[j];
            for (k = starts[j]; k < starts[j + 1]; k++) {
                const double size = fabs(values[k]) * by * scale[rows[k]];
                if (size > most[rows[k]]) most[rows[k]] = size;
                if (size > of_column) of_column = size;
            }
            if (of_column > most[j]) most[j] = of_column;
        }
        for (i = 0; i < s->size; i++)
            if (most[i] > 0) scale[i] /= sqrt(most[i]);
    }
    for (j = 0; j < s->size; j++)
        for (k = starts[j]; k < starts[j + 1]; k++)
            scaled[k] = values[k] * scale[j] * scale[rows[k]];
    return sum - sum == 0;
}

/* Adds what a child left to its parent's columns and block. */
static void extend(const int *restrict local, int below, const double *restrict from,
                   const hybrid_front *f) {
    const int tall = HYBRID_LDL_FOUR(below), inner = HYBRID_LDL_FOUR(f->pivots);
    const int outer = f->height - inner;
    int i, j;
    for (j = 0; j < below; j++, from += tall) {
        double *restrict to = local[j] < inner
                                  ? f->panel + (long)local[j] * f->height
                                  : f->block + (long)(local[j] - inner) * outer - inner;
        for (i = j; i < below; i++) to[local[i]] += from[i];
    }
}

/* Puts a front together from the entries of K and from its children. */
static void assemble(const hybrid_ldl *s, int number, const double *scaled, double *factor,
                     const double *stack, const hybrid_front *f) {
    int k;
    memset(f->panel, 0, sizeof(double) * (size_t)f->height * (size_t)f->pivots);
    memset(f->block, 0, sizeof(double) * (size_t)f->below * (size_t)HYBRID_LDL_FOUR(f->below));
    for (k = s->assembled[number]; k < s->assembled[number + 1]; k++)
        factor[s->home[k]] += scaled[s->entry[k]];
    for (k = s->children[number]; k < s->children[number + 1]; k++) {
        const int child = s->child[k], begin = s->below[child];
        extend(s->local + begin, s->below[child + 1] - begin, stack + s->block[child], f);
    }
}

void hybrid_ldl_factor(const hybrid_ldl *s, const double *values, double *factor, int *pivots,
                       double *room, hybrid_inertia *found) {
    double *scaled = room, *stack = scaled + s->entries, *most = stack + s->stack;
    int k, top = 0;
    hybrid_front f;
    found->positive = found->negative = found->zero = found->doubtful = 0;
    found->smallest = HUGE_VAL, found->growth = 0;
    found->singular = !equilibrate(s, values, factor, scaled, most);
    f.scaled = most + s->size;
    for (k = 0; k < s->fronts && !found->singular; k++) {
        const int first = s->first[k], last = s->children[k + 1] - 1;
        if (last >= s->children[k]) {
            const int child = s->child[last], below = s->below[child + 1] - s->below[child];
            top = s->block[child] + below * HYBRID_LDL_FOUR(below);
        } else {
            top = s->block[k];
        }
        f.pivots = s->first[k + 1] - first;
        f.below = s->below[k + 1] - s->below[k];
        f.height = hybrid_ldl_height(s, k);
        f.panel = factor + s->panel[k];
        f.block = stack + top;
        f.diagonal = factor + s->size + first, f.beside = f.diagonal + s->size;
        f.order = pivots + first;
        assemble(s, k, scaled, factor, stack, &f);
        hybrid_ldl_eliminate(&f, found);
        if (top != s->block[k])
            memmove(stack + s->block[k], f.block,
                    sizeof(double) * (size_t)f.below * (size_t)HYBRID_LDL_FOUR(f.below));
    }
    if (!(found->smallest > 1e-14) || !(found->growth < HUGE_VAL)) found->singular = 1;
}
