/* One part of the tree of the sparse LDL^T: assembly and elimination, front by front. See ldl.h.
   The factor holds the inverse pivots and the panels of L. */
#include <string.h>
#include "linear_algebra/ldl_dense.h"

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

/* By how much a front grows in the factor by so many candidates. */
static double growth(int candidates, int more, int below) {
    return hybrid_ldl_length(candidates + more, below) - hybrid_ldl_length(candidates, below);
}

/* Returns whether front k belongs to a half, and its parent to the rest. */
static int is_dealt(const hybrid_ldl *s, int k) {
    return s->part[k] < 2 && s->parent[k] >= 0 && s->part[s->parent[k]] == 2;
}

/* The parent of front k, as far as its part knows it. To one in the rest the other half may delay
   as much as this one: each row counts twice. */
typedef struct above {
    int own, below;
    int candidates; /* so far */
    int each;       /* by how many they grow for a row */
    int *count;     /* where rows are counted */
} above;

static above look_up(const hybrid_ldl *s, int k, int *pivots) {
    const int up = s->parent[k], own = s->first[up + 1] - s->first[up];
    const int below = s->below[up + 1] - s->below[up];
    int *head = pivots + 4 * up, *mine = head + 1 + s->part[k];
    if (is_dealt(s, k)) return (above){own, below, own + 2 * *mine, 2, mine};
    return (above){own, below, *head, 1, head};
}

/* How many of the candidates of front k the parent has room for, with so many doubles to spare,
   and places. */
static void allow(const hybrid_ldl *s, int k, int *pivots, double spare, hybrid_front *f) {
    above up;
    f->most = f->delays = 0;
    if (s->parent[k] < 0) return;
    up = look_up(s, k, pivots);
    f->most = f->candidates;
    while (f->most && (growth(up.candidates, up.each * f->most, up.below) > spare ||
                       HYBRID_LDL_FOUR(up.candidates + up.each * f->most) +
                               HYBRID_LDL_FOUR(up.below) > s->deepest))
        f->most--;
    f->delays = (s->places - up.candidates + up.own) / up.each;
    if (f->delays > f->most) f->delays = f->most;
}

/* Counts what front k delays, and takes it from the doubles to spare. */
static void pass(const hybrid_ldl *s, int k, int *pivots, double *spare) {
    const int delayed = pivots[4 * k] - pivots[4 * k + 1];
    above up;
    if (!delayed) return;
    up = look_up(s, k, pivots);
    *spare -= growth(up.candidates, up.each * delayed, up.below);
    *up.count += delayed;
}

/* The place of a front in the caller's memory. */
static hybrid_front lay(const hybrid_ldl *s, int k, double *factor, double *stack, int *pivots,
                        double *scaled) {
    const int *head = pivots + 4 * k;
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
    return f;
}

/* Has front k of the rest receive what both halves have delayed to it; returns what it takes. */
static double join(const hybrid_ldl *s, int k, int *pivots) {
    int *head = pivots + 4 * k;
    const int delayed = head[1] + head[2], own = head[0];
    head[0] += delayed;
    return growth(own, delayed, s->below[k + 1] - s->below[k]);
}

void hybrid_ldl_do(hybrid_ldl_share *share) {
    const hybrid_ldl *s = share->s;
    int *pivots = share->pivots, end = s->panels[share->part], order = s->orders[share->part];
    double spare[] = {s->spares[share->part], s->spares[2] / 2.0}; /* within it, for the rest */
    for (int k = 0; share->part == 2 && s->dealt && k < s->fronts; k++)
        if (s->part[k] == 2) spare[0] -= join(s, k, pivots);
    for (int k = 0; k < s->fronts; k++) {
        int *head = pivots + 4 * k;
        hybrid_front f;
        if (s->part[k] != share->part) continue;
        head[2] = end, head[3] = order;
        f = lay(s, k, share->factor, share->stack, pivots, share->scaled);
        allow(s, k, pivots, spare[is_dealt(s, k)], &f);
        end += (int)hybrid_ldl_length(f.candidates, f.below), order += f.candidates;
        assemble(s, k, share->values, share->factor, share->stack, pivots, &f);
        head[1] = hybrid_ldl_eliminate(&f, &share->found);
        share->found.delayed += f.candidates - head[1];
        pass(s, k, pivots, &spare[is_dealt(s, k)]);
    }
}
