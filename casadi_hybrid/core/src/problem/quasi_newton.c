/* The Hessian from first derivatives: symmetric rank-one updates in every block, limited memory.
 *
 * The gradient of f and J are saved at the last points x_0, ..., x_q of a solve, not slopes of one
 * Lagrangian. So the secant pairs
 *
 *     s_k = x_k+1 - x_k,    y_k = sigma (grad f_k+1 - grad f_k) + (J_k+1 - J_k)' lam
 *
 * fit any multipliers lam and weight sigma of f. The matrix is made anew at each point, from the
 * oldest pair to the newest, by the symmetric rank-one formula (Nocedal and Wright, Numerical
 * Optimization, 2nd ed., section 6.2; Conn, Gould and Toint, Math. Program. 50, 1991):
 *
 *     B = I + sum_k r_k r_k' / r_k's_k,    r_k = y_k - B_k s_k.
 *
 * A pair with |r_k's_k| next to nothing is left out. B may have negative curvature, with which the
 * inertia correction deals as with that of exact second derivatives.
 *
 * The Lagrangian couples the variables of different blocks by a sum alone (partial separability,
 * Griewank and Toint, 1982). So each block is updated by its own part of s and y. If the nonzeros
 * of a block are a full matrix, B is there. A larger block has the identity there, and its r_k and
 * 1 / r_k's_k are the part of low rank. */

#include "problem/problem.h"

enum { PAIRS = HYBRID_QUASI_NEWTON_PAIRS, POINTS = PAIRS + 1 };

/* Parts of the caller's memory; one block at a time has its updates there. */
typedef struct {
    double *slopes; /* n_x each, the oldest first */
    double *R;      /* of the block: r_k; behind the step, which is as long as the block */
    double *w;      /* PAIRS: 1 / r_k's_k, 0 where the pair is left out */
    double *step;   /* of the block: s_k */
    double *whole;  /* n_x: r_k among all variables */
} updates;

static long long each(const hybrid_plan *plan) { return 2LL * plan->n_x + plan->nnz_J; }

static int size_of(const hybrid_plan *plan, int block) {
    return plan->block_starts[block + 1] - plan->block_starts[block];
}

/* Returns whether it has no more than its diagonal in the pattern. */
static int is_large(const hybrid_plan *plan, int block) {
    int first = plan->members[plan->block_starts[block]];
    return plan->H_starts[first + 1] - plan->H_starts[first] < size_of(plan, block);
}

long long hybrid_secants_doubles(const hybrid_plan *plan) {
    long long longest = 0;
    if (!plan->limited_memory) return 0;
    for (int b = 0; b < plan->n_blocks; b++)
        if (size_of(plan, b) > longest) longest = size_of(plan, b);
    return POINTS * (each(plan) + plan->n_x) + PAIRS * (longest + 1) + longest + plan->n_x;
}

static updates place(const hybrid_plan *plan, const hybrid_secants *secants) {
    updates of;
    of.slopes = secants->doubles + POINTS * each(plan);
    of.w = of.slopes + (long long)POINTS * plan->n_x;
    of.whole = of.w + PAIRS;
    of.step = of.whole + plan->n_x;
    return of;
}

/* Point k, the oldest first: x, the gradient of f, J. */
static double *point(const hybrid_plan *plan, const hybrid_secants *secants, int k) {
    int at = (secants->last + POINTS + 1 - secants->count + k) % POINTS;
    return secants->doubles + at * each(plan);
}

/* A step of x that is no longer than this shows errors of slopes rather than curvature. */
static double least_step(const hybrid_plan *plan, const double *x) {
    double least = plan->differenced ? HYBRID_QUASI_NEWTON_LEAST_DIFFERENCED_STEP
                                     : HYBRID_QUASI_NEWTON_LEAST_STEP;
    return least * (1.0 + hybrid_norm_inf(plan->n_x, x));
}

void hybrid_add_secant_point(const hybrid_plan *plan, const hybrid_point *at,
                             hybrid_secants *secants) {
    const int n = plan->n_x;
    double *to, moved = 0.0;
    if (secants->count) {
        const double *last = point(plan, secants, secants->count - 1);
        for (int i = 0; i < n; i++)
            if (fabs(at->x[i] - last[i]) > moved) moved = fabs(at->x[i] - last[i]);
        if (moved <= least_step(plan, at->x)) return;
    }
    secants->last = secants->count ? (secants->last + 1) % POINTS : 0;
    if (secants->count < POINTS) secants->count++;
    to = point(plan, secants, secants->count - 1);
    hybrid_copy(n, at->x, to);
    hybrid_copy(n, at->raw_gradient, to + n);
    hybrid_copy(plan->nnz_J, at->raw_J, to + 2LL * n);
}

int hybrid_drop_secants(hybrid_secants *secants) {
    const int others = secants && secants->count > 1;
    if (others) secants->count = 1;
    return others;
}

/* The slope of objective f + lam'g at each point. */
static void find_slopes(const hybrid_plan *plan, const hybrid_secants *secants, double objective,
                        const double *lam, double *slopes) {
    const int n = plan->n_x;
    for (int k = 0; k < secants->count; k++) {
        const double *gradient = point(plan, secants, k) + n, *J = gradient + n;
        double *slope = slopes + (long long)k * n;
        for (int i = 0; i < n; i++) slope[i] = 0.0;
        for (int e = 0; e < plan->nnz_J; e++) slope[plan->J_cols[e]] += J[e] * lam[plan->J_rows[e]];
        for (int i = 0; i < n; i++) slope[i] += objective * gradient[i];
    }
}

/* r_k and 1 / r_k's_k of a block; a pair whose step is shorter than `least` is left out. */
static void update(const hybrid_plan *plan, const hybrid_secants *secants, double least, int size,
                   const int *members, updates *of) {
    const int n = plan->n_x;
    double *step = of->step;
    of->R = step + size;
    for (int k = 0; k + 1 < secants->count; k++) {
        const double *x = point(plan, secants, k), *new = point(plan, secants, k + 1);
        const double *slope = of->slopes + (long long)k * n;
        double *r = of->R + (long long)k * size, along, lengths;
        for (int i = 0; i < size; i++) {
            const int j = members[i];
            step[i] = new[j] - x[j];
            r[i] = slope[n + j] - slope[j] - step[i];
        }
        for (int j = 0; j < k; j++) {
            const double *old = of->R + (long long)j * size;
            if (of->w[j] == 0.0) continue;
            along = of->w[j] * hybrid_dot(size, old, step);
            for (int i = 0; i < size; i++) r[i] -= along * old[i];
        }
        along = hybrid_dot(size, r, step);
        lengths = sqrt(hybrid_dot(size, r, r)) * sqrt(hybrid_dot(size, step, step));
        of->w[k] = hybrid_norm_inf(size, step) > least &&
                           fabs(along) > HYBRID_QUASI_NEWTON_SKIPPED * lengths
                       ? 1.0 / along
                       : 0.0;
    }
}

/* B of a block where it is a full matrix. */
static void fill(const hybrid_plan *plan, const updates *of, int pairs, int size,
                 const int *members, double *H) {
    for (int j = 0; j < size; j++) {
        double *column = H + plan->H_starts[members[j]];
        for (int i = 0; i < size; i++) column[i] = 0.0;
        for (int k = 0; k < pairs; k++) {
            const double *r = of->R + (long long)k * size, by = of->w[k] * r[j];
            if (of->w[k] == 0.0) continue;
            for (int i = 0; i < size; i++) column[i] += r[i] * by;
        }
        column[j] += 1.0;
    }
}

/* Adds the identity there, and the rest as the part of low rank, by columns of weight 1 or -1. r_k
 * becomes as short as the steps, and columns of very different sizes would look like a singular
 * matrix. */
static void add_columns(const hybrid_plan *plan, const updates *of, int pairs, int size,
                        const int *members, double *H, hybrid_low_rank *low) {
    for (int j = 0; j < size; j++) H[plan->H_starts[members[j]]] = 1.0;
    for (int k = 0; k < pairs; k++) {
        const double *r = of->R + (long long)k * size, length = sqrt(fabs(of->w[k]));
        double *column = low->U + (long long)low->rank * plan->n;
        if (of->w[k] == 0.0) continue;
        hybrid_zero(plan->n_x, of->whole);
        for (int i = 0; i < size; i++) of->whole[members[i]] = length * r[i];
        for (int i = 0; i < plan->n_free; i++) column[i] = of->whole[plan->free_at[i]];
        for (int i = plan->n_free; i < plan->n; i++) column[i] = 0.0;
        low->w[low->rank++] = of->w[k] > 0.0 ? 1.0 : -1.0;
    }
}

void hybrid_secant_hessian(const hybrid_plan *plan, const hybrid_secants *secants,
                           double objective, const double *lam, double *H, hybrid_low_rank *low) {
    updates of = place(plan, secants);
    const int pairs = secants->count - 1;
    const double least = least_step(plan, point(plan, secants, pairs));
    find_slopes(plan, secants, objective, lam, of.slopes);
    low->rank = 0;
    for (int b = 0; b < plan->n_blocks; b++) {
        const int *members = plan->members + plan->block_starts[b], size = size_of(plan, b);
        update(plan, secants, least, size, members, &of);
        if (is_large(plan, b)) add_columns(plan, &of, pairs, size, members, H, low);
        else fill(plan, &of, pairs, size, members, H);
    }
}

void hybrid_place_low_rank(const hybrid_plan *plan, hybrid_arena *arena, hybrid_low_rank *low) {
    const long long n = plan->n, size = n + plan->m;
    long long most = 0;
    for (int b = 0; plan->limited_memory && b < plan->n_blocks; b++)
        if (is_large(plan, b)) most += HYBRID_QUASI_NEWTON_PAIRS;
    low->rank = 0;
    HYBRID_PLACE(arena, most * n, &low->U, &low->V);
    low->Z = hybrid_allocate(arena, most * size);
    low->T = hybrid_allocate(arena, most * most);
    HYBRID_PLACE(arena, most, &low->w, &low->values, &low->along, &low->turned);
    HYBRID_PLACE(arena, most ? size : 0, &low->right, &low->x, &low->left);
}
