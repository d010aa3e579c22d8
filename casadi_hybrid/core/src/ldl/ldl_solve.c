/* Solutions with the factors of the sparse LDL^T: see ldl.h. */
#include <math.h>
#include "linear_algebra/ldl_dense.h"
#include "linear_algebra/linear_algebra.h"

/* y -= L x for the columns of a panel, so many of their rows. */
static void subtract(int rows, int height, int columns, const double *panel, const double *x,
                     double *restrict y) {
    int k;
    for (k = 0; k + 4 <= columns; k += 4, panel += 4 * (long long)height) {
        const double *restrict a = panel, *restrict b = a + height, *restrict c = b + height,
                     *restrict d = c + height;
        const double p = x[k], q = x[k + 1], r = x[k + 2], t = x[k + 3];
        for (int i = 0; i < rows; i++) y[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * t);
    }
    for (; k < columns; k++, panel += height) {
        const double *restrict a = panel;
        const double p = x[k];
        for (int i = 0; i < rows; i++) y[i] -= a[i] * p;
    }
}

/* x^T y of a multiple of four numbers, in four sums. */
static double dot(int n, const double *restrict x, const double *restrict y) {
    double a = 0, b = 0, c = 0, d = 0;
    for (int i = 0; i < n; i += 4)
        a += x[i] * y[i], b += x[i + 1] * y[i + 1], c += x[i + 2] * y[i + 2],
            d += x[i + 3] * y[i + 3];
    return (a + b) + (c + d);
}

/* A front of the factor, for reading. */
typedef struct factored {
    int candidates, taken, inner, below, height;
    const int *order, *rest;
    const double *diagonal, *off_diagonal, *panel;
} factored;

static factored look(const hybrid_ldl *s, int k, const double *factor, const int *pivots) {
    const int *front = pivots + 4 * k;
    factored f;
    f.candidates = front[0], f.taken = front[1];
    f.inner = HYBRID_LDL_FOUR(f.candidates);
    f.below = s->below[k + 1] - s->below[k];
    f.height = f.inner + HYBRID_LDL_FOUR(f.below);
    f.order = pivots + front[3];
    f.rest = s->rest + s->below[k];
    f.diagonal = factor + front[2], f.off_diagonal = f.diagonal + f.candidates;
    f.panel = f.off_diagonal + f.candidates;
    return f;
}

/* Down the tree: x becomes D^-1 L^-1 x. */
static void down(const hybrid_ldl *s, const double *factor, const int *pivots, double *x,
                 double *y) {
    int i;
    for (int number = 0; number < s->fronts; number++) {
        const factored f = look(s, number, factor, pivots);
        for (i = 0; i < f.candidates; i++) y[i] = x[f.order[i]];
        for (; i < f.height; i++) y[i] = 0;
        for (int k = 0; k < f.taken; k++) {
            const double *restrict column = f.panel + (long long)k * f.height;
            const double pivot = y[k];
            for (i = k & ~3; i < f.inner; i++) y[i] -= column[i] * pivot;
        }
        subtract(f.height - f.inner, f.height, f.taken, f.panel + f.inner, y, y + f.inner);
        for (i = 0; i < f.below; i++) x[f.rest[i]] += y[f.inner + i];
        for (i = f.taken; i < f.candidates; i++) x[f.order[i]] = y[i];
        for (int k = 0; k < f.taken; k++) {
            double sum = y[k] * f.diagonal[k];
            if (k + 1 < f.taken) sum += y[k + 1] * f.off_diagonal[k];
            if (k > 0) sum += y[k - 1] * f.off_diagonal[k - 1];
            x[f.order[k]] = sum;
        }
    }
}

/* Backward substitution: x becomes L^-T x. */
static void up(const hybrid_ldl *s, const double *factor, const int *pivots, double *x, double *y) {
    int i;
    for (int number = s->fronts - 1; number >= 0; number--) {
        const factored f = look(s, number, factor, pivots);
        for (i = 0; i < f.candidates; i++) y[i] = x[f.order[i]];
        for (; i < f.inner; i++) y[i] = 0;
        for (i = 0; i < f.below; i++) y[f.inner + i] = x[f.rest[i]];
        for (i += f.inner; i < f.height; i++) y[i] = 0;
        for (int k = f.taken - 1; k >= 0; k--) {
            const int low = k & ~3;
            y[k] -= dot(f.height - low, f.panel + (long long)k * f.height + low, y + low);
        }
        for (i = 0; i < f.taken; i++) x[f.order[i]] = y[i];
    }
}

void hybrid_ldl_residual(const hybrid_ldl *s, const double *values, const double *x,
                         const double *b, double *left) {
    for (int j = 0; j < s->size; j++) left[j] = 0;
    for (int j = 0; j < s->size; j++) {
        const double own = x[j];
        double sum = values[s->starts[j]] * own; /* the diagonal entry */
        for (int k = s->starts[j] + 1; k < s->starts[j + 1]; k++) {
            const int i = s->rows[k];
            left[i] += values[k] * own;
            sum += values[k] * x[i];
        }
        left[j] += sum;
    }
    for (int j = 0; j < s->size; j++) left[j] = b[j] - left[j];
}

void hybrid_ldl_correct(const hybrid_ldl *s, const double *factor, const int *pivots,
                        const double *r, double *x, double *room) {
    double *turned = room, *front = turned + s->size;
    for (int i = 0; i < s->size; i++) turned[s->position[i]] = r[i] * factor[i];
    down(s, factor, pivots, turned, front);
    up(s, factor, pivots, turned, front);
    for (int i = 0; i < s->size; i++) x[i] += turned[s->position[i]] * factor[i];
}

double hybrid_ldl_solve(const hybrid_ldl *s, const double *values, const double *factor,
                        const int *pivots, const double *b, double *x, double *room,
                        int refinements) {
    const int n = s->size;
    double *residual = room, *turned = residual + n;
    const double size = hybrid_norm_inf(n, b);
    double error = HUGE_VAL, now = 0;
    for (int i = 0; i < n; i++) x[i] = 0;
    if (size == 0) return 0;
    hybrid_ldl_correct(s, factor, pivots, b, x, turned);
    for (int k = 0;; k++) {
        hybrid_ldl_residual(s, values, x, b, residual);
        now = hybrid_norm_inf(n, residual);
        if (now > error) {
            /* The correction did harm: without it. */
            for (int i = 0; i < n; i++) x[i] -= turned[s->position[i]] * factor[i];
            now = error;
            break;
        }
        if (!(now > HYBRID_LDL_REFINED * size) || !(now <= 0.5 * error) || k >= refinements) break;
        error = now;
        hybrid_ldl_correct(s, factor, pivots, residual, x, turned);
    }
    return now / size;
}
