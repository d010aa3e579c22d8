/* The numbers of the sparse LDL^T: equilibration, assembly and elimination, front by front. See
   ldl.h. The factor holds the scale of every row, the inverse pivots, and the panels of L. */
#include <math.h>
#include <string.h>
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

/* Adds what a child left to its parent's columns and block. own: the parent's rows of its own. */
static void extend(const int *restrict local, int below, const double *restrict from, int own,
                   const hybrid_front *f) {
    const int tall = HYBRID_LDL_FOUR(below), inner = HYBRID_LDL_FOUR(f->candidates);
    const int outer = f->height - inner, shift = inner - own;
    int i, j;
    for (j = 0; j < below && local[j] < own; j++, from += tall) {
        double *restrict to = f->panel + (long long)local[j] * f->height;
        for (i = j; i < below && local[i] < own; i++) to[local[i]] += from[i];
        for (to += shift; i < below; i++) to[local[i]] += from[i];
    }
    for (; j < below; j++, from += tall) {
        double *restrict to = f->block + (long long)(local[j] - own) * outer - own;
        for (i = j; i < below; i++) to[local[i]] += from[i];
    }
}

/* Adds the columns that a child delayed: candidates of the parent from `at` on. */
static void receive(const hybrid_ldl *s, int child, const double *factor, const int *pivots,
                    int own, int at, const hybrid_front *f) {
    const int *head = pivots + 4 * child, *order = pivots + head[3];
    const int *local = s->local + s->below[child], below = s->below[child + 1] - s->below[child];
    const int all = head[0], taken = head[1], inner = HYBRID_LDL_FOUR(all);
    const int height = inner + HYBRID_LDL_FOUR(below);
    const double *panel = factor + head[2] + 2 * all;
    int i;
    for (int j = taken; j < all; j++, at++) {
        const double *from = panel + (long long)j * height;
        double *to = f->panel + (long long)at * f->height;
        f->order[at] = order[j];
        for (i = j; i < all; i++) to[at + i - j] = from[i];
        from += inner;
        for (i = 0; i < below && local[i] < own; i++)
            f->panel[(long long)local[i] * f->height + at] = from[i];
        for (to += HYBRID_LDL_FOUR(f->candidates) - own; i < below; i++) to[local[i]] = from[i];
    }
}

/* Puts a front together from the entries of K and from its children. */
static void assemble(const hybrid_ldl *s, int number, const double *scaled, const double *factor,
                     const double *stack, const int *pivots, const hybrid_front *f) {
    const int first = s->first[number], own = s->first[number + 1] - first;
    const int shift = HYBRID_LDL_FOUR(f->candidates) - own;
    int at = own;
    memset(f->panel, 0, sizeof(double) * (size_t)f->height * (size_t)f->candidates);
    memset(f->block, 0, sizeof(double) * (size_t)f->below * (size_t)HYBRID_LDL_FOUR(f->below));
    for (int j = 0; j < own; j++) {
        double *column = f->panel + (long long)j * f->height;
        f->order[j] = first + j;
        for (int k = s->assembled[first + j]; k < s->assembled[first + j + 1]; k++) {
            const int row = s->home[k];
            column[row < own ? row : row + shift] += scaled[s->entry[k]];
        }
    }
    for (int k = s->children[number]; k < s->children[number + 1]; k++) {
        const int child = s->child[k], begin = s->below[child];
        extend(s->local + begin, s->below[child + 1] - begin, stack + s->block[child], own, f);
        if (pivots[4 * child + 1] < pivots[4 * child]) {
            receive(s, child, factor, pivots, own, at, f);
            at += pivots[4 * child] - pivots[4 * child + 1];
        }
    }
}

/* By how much the factor grows where front k has so many rows delayed to its parent. */
static double growth(const hybrid_ldl *s, int k, int delayed, const int *pivots) {
    const int up = s->parent[k], below = s->below[up + 1] - s->below[up];
    return hybrid_ldl_length(pivots[4 * up] + delayed, below) -
           hybrid_ldl_length(pivots[4 * up], below);
}

/* How many of the candidates of front k the parent has room for, with so many doubles to spare,
   and places. */
static void allow(const hybrid_ldl *s, int k, const int *pivots, double spare, hybrid_front *f) {
    const int up = s->parent[k];
    f->most = f->delays = 0;
    if (up < 0) return;
    f->most = f->candidates;
    while (f->most && (growth(s, k, f->most, pivots) > spare ||
                       HYBRID_LDL_FOUR(pivots[4 * up] + f->most) +
                               HYBRID_LDL_FOUR(s->below[up + 1] - s->below[up]) > s->deepest))
        f->most--;
    f->delays = s->places - pivots[4 * up] + s->first[up + 1] - s->first[up];
    if (f->delays > f->most) f->delays = f->most;
}

/* Where a front is in the caller's memory, after those before it; its block goes on top of the
   stack. */
static hybrid_front lay(const hybrid_ldl *s, int k, double *factor, double *stack, int *pivots,
                        double *scaled) {
    const int last = s->children[k + 1] - 1, *head = pivots + 4 * k;
    hybrid_front f;
    f.candidates = head[0];
    f.below = s->below[k + 1] - s->below[k];
    f.height = HYBRID_LDL_FOUR(f.candidates) + HYBRID_LDL_FOUR(f.below);
    f.diagonal = factor + head[2];
    f.off_diagonal = f.diagonal + f.candidates;
    f.panel = f.off_diagonal + f.candidates;
    f.order = pivots + head[3];
    f.block = stack + s->block[k];
    f.scaled = scaled;
    if (last >= s->children[k]) {
        const int child = s->child[last], below = s->below[child + 1] - s->below[child];
        f.block = stack + s->block[child] + below * HYBRID_LDL_FOUR(below);
    }
    return f;
}

void hybrid_ldl_factor(const hybrid_ldl *s, const double *values, double *factor, int *pivots,
                       double *room, hybrid_inertia *found) {
    double *scaled = room, *stack = scaled + s->entries, *most = stack + s->stack;
    double spare = s->spare;
    int end = s->size, order = 4 * s->fronts;
    *found = (hybrid_inertia){.smallest = HUGE_VAL};
    found->singular = !equilibrate(s, values, factor, scaled, most);
    for (int k = 0; k < s->fronts; k++) pivots[4 * k] = s->first[k + 1] - s->first[k];
    for (int k = 0; k < s->fronts && !found->singular; k++) {
        int *head = pivots + 4 * k, delayed;
        hybrid_front f;
        head[2] = end, head[3] = order;
        f = lay(s, k, factor, stack, pivots, most + s->size);
        allow(s, k, pivots, spare, &f);
        end += (int)hybrid_ldl_length(f.candidates, f.below), order += f.candidates;
        assemble(s, k, scaled, factor, stack, pivots, &f);
        head[1] = hybrid_ldl_eliminate(&f, found);
        delayed = f.candidates - head[1];
        if (delayed) {
            spare -= growth(s, k, delayed, pivots);
            pivots[4 * s->parent[k]] += delayed;
            found->delayed += delayed;
        }
        if (f.block != stack + s->block[k])
            memmove(stack + s->block[k], f.block,
                    sizeof(double) * (size_t)f.below * (size_t)HYBRID_LDL_FOUR(f.below));
    }
    if (!(found->smallest > HYBRID_LDL_ROUNDING) || !(found->growth < HUGE_VAL))
        found->singular = 1;
}
