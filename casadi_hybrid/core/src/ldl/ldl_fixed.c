/* LDL^T in an order that is fixed beforehand: see ldl.h.

   The factor holds the pivots, inverted in their turn, the off-diagonal entries of pairs, and then
   for every vertex its columns of U = L D: an update is U D^-1 U^T. For each diagonal entry, and
   each entry between the two rows of a pair, the sum of the sizes of its terms is bounded, by which
   its pivot is judged. Neither depends on the units of a row. */
#include <math.h>
#include <string.h>
#include "ldl.h"
#include "linear_algebra/lanes.h"

/* A pivot is trusted while cancellation has left this part of its terms. The weight of a pin
 * cancels to nine digits if a row is active whose variables have no curvature. Refinement recovers
 * them, in a part of the time that chosen pivots take. */
#define TRUST 1e-12
/* A pair may add so many times the terms of a diagonal entry. More would lose in rounding the
 * entries of rows that are nearly uncoupled, as of an input that has no effect here. Entries off
 * the diagonal, by which nothing is judged, would be lost too. */
#define GROWTH 4e15

/* Rows below a pair from which on four products are made at once: with fewer that takes longer. */
#define LONG 16

static void note(double pivot, hybrid_inertia *found) {
    if (pivot > 0) found->positive++;
    else found->negative++;
}

/* Eliminates the row at position p with its column u; returns where in target the next begins. */
static const int *single(int p, int count, const int *below, const int *target, int size,
                         const double *u, double *factor, double *mass, hybrid_inertia *found) {
    const double pivot = factor[p], inverse = 1 / pivot;
    found->doubtful += !(fabs(pivot) > TRUST * mass[p]);
    note(pivot, found);
    factor[p] = inverse;
    for (int a = 0; a < count; a++) {
        const double by = u[a] * inverse;
        mass[below[a]] += fabs(u[a] * by);
        if (a + 1 < count && target[1] < 2 * size) mass[target[1]] += fabs(u[a + 1] * by);
        for (int i = a; i < count; i++) factor[*target++] -= u[i] * by;
    }
    return target;
}

/* Two rows, at p and p + 1, together. */
static const int *pair(int p, int count, const int *below, const int *target, int size,
                       const double *u, double *factor, double *mass, hybrid_inertia *found) {
    const double A = factor[p], B = factor[p + 1], C = factor[size + p], det = A * B - C * C;
    const double a = B / det, b = A / det, c = -C / det;
    const double in_a = fabs(a), in_b = fabs(b), in_c = 2 * fabs(c);
    const double *v = u + count;
    const int four = count < LONG ? 0 : count - 3;
    found->doubtful += !(fabs(det) > TRUST * (mass[p] * mass[p + 1] + fabs(C) * mass[size + p]));
    if (det < 0) note(1, found), note(-1, found);
    else note(A, found), note(A, found);
    factor[p] = a, factor[p + 1] = b, factor[size + p] = c;
    for (int k = 0; k < count; k++) {
        const double x = u[k], y = v[k], by_u = x * a + y * c, by_v = x * c + y * b;
        const double added = in_a * (x * x) + in_c * fabs(x * y) + in_b * (y * y);
        found->doubtful += mass[below[k]] > 0 && added > GROWTH * mass[below[k]];
        mass[below[k]] += added;
        if (k + 1 < count && target[1] < 2 * size)
            mass[target[1]] += fabs(u[k + 1] * by_u) + fabs(v[k + 1] * by_v);
        hybrid_lanes of_u, of_v, times_u, times_v;
        LANES_SET(times_u, by_u);
        LANES_SET(times_v, by_v);
        int i = k;
        for (; i < four; i += 4) {
            LANES_LOAD(of_u, u + i);
            LANES_LOAD(of_v, v + i);
            LANES_TIMES(of_u, times_u);
            LANES_TIMES(of_v, times_v);
            LANES_ADD(of_u, of_v);
            for (int j = 0; j < 4; j++) factor[*target++] -= LANE(of_u, j);
        }
        for (; i < count; i++) factor[*target++] -= u[i] * by_u + v[i] * by_v;
    }
    return target;
}

void hybrid_fixed_factor(const hybrid_fixed *s, const double *values, double *factor, double *room,
                         hybrid_inertia *found) {
    const int *target = s->target;
    const double *u = factor + 2 * s->size;
    double *mass = room;
    *found = (hybrid_inertia){0};
    memset(factor, 0, sizeof(double) * (size_t)s->factor);
    for (int k = 0; k < s->entries; k++) factor[s->home[k]] = values[k];
    for (int k = 0; k < 2 * s->size; k++) mass[k] = fabs(factor[k]);
    for (int k = 0; k < s->vertices && !found->doubtful; k++) {
        const int p = s->first[k], width = s->first[k + 1] - p;
        const int count = s->begin[k + 1] - s->begin[k], *below = s->below + s->begin[k];
        target = width == 1 ? single(p, count, below, target, s->size, u, factor, mass, found)
                            : pair(p, count, below, target, s->size, u, factor, mass, found);
        u += width * count;
    }
}

void hybrid_fixed_solve(const hybrid_fixed *s, const double *factor, double *b, double *room) {
    const double *off_diagonal = factor + s->size, *u = off_diagonal + s->size;
    double *x = room;
    for (int i = 0; i < s->size; i++) x[s->position[i]] = b[i];
    for (int k = 0; k < s->vertices; k++) {
        const int p = s->first[k], count = s->begin[k + 1] - s->begin[k];
        const int *below = s->below + s->begin[k];
        if (s->first[k + 1] - p == 1) {
            const double y = x[p] *= factor[p];
            for (int i = 0; i < count; i++) x[below[i]] -= u[i] * y;
            u += count;
        } else {
            const double *v = u + count;
            const double y = x[p] * factor[p] + x[p + 1] * off_diagonal[p];
            const double z = x[p] * off_diagonal[p] + x[p + 1] * factor[p + 1];
            x[p] = y, x[p + 1] = z;
            for (int i = 0; i < count; i++) x[below[i]] -= u[i] * y + v[i] * z;
            u += 2 * count;
        }
    }
    for (int k = s->vertices - 1; k >= 0; k--) {
        const int p = s->first[k], count = s->begin[k + 1] - s->begin[k];
        const int *below = s->below + s->begin[k];
        double y = 0, z = 0;
        if (s->first[k + 1] - p == 1) {
            u -= count;
            for (int i = 0; i < count; i++) y += u[i] * x[below[i]];
            x[p] -= factor[p] * y;
        } else {
            const double *v = u - count;
            u = v - count;
            for (int i = 0; i < count; i++) {
                y += u[i] * x[below[i]];
                z += v[i] * x[below[i]];
            }
            x[p] -= factor[p] * y + off_diagonal[p] * z;
            x[p + 1] -= off_diagonal[p] * y + factor[p + 1] * z;
        }
    }
    for (int i = 0; i < s->size; i++) b[i] = x[s->position[i]];
}
