/* The kernel of a barrier step and its inertia: as barrier/inertia.py. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "cold.h"
#include "low_rank.h"

int hybrid_factor(const hybrid_plan *plan, const double *W, const double *D, double shift,
                  const double *A, double epsilon, const double *penalty,
                  hybrid_kernel *kernel) {
    double *K = kernel->K;
    int right;
    memset(K, 0, (size_t)plan->nnz_K * sizeof(double));
    if (W)
        for (int k = 0; k < plan->lower_W; k++) K[plan->K_of_W[k]] = W[plan->lower_of_W[k]];
    for (int k = 0; k < plan->nnz_A; k++) K[plan->K_of_A[k]] = A[k];
    for (int i = 0; i < plan->n; i++) K[plan->K_diagonal[i]] += D[i] + shift;
    for (int i = 0; i < plan->m; i++) 
        K[plan->K_diagonal[plan->n + i]] = penalty ? -penalty[i] : -epsilon;
    hybrid_decompose(plan, kernel, 0.0);
    kernel->changed = W && kernel->low_rank->rank > 0;
    if (kernel->changed) return hybrid_factor_low_rank(plan, kernel, 0);
    if (kernel->inertia.singular) return 2;
    right = kernel->inertia.negative == plan->m;
    /* A pivot against the test does no harm where nothing has grown: refinement sees to the rest. */
    if (kernel->inertia.doubtful && !(right && kernel->inertia.growth <= HYBRID_GROWTH)) return 3;
    return right ? 0 : 1;
}

/* Whether a solution in doubt will do: the filter looks at every step. */
static int serves(const hybrid_plan *plan, hybrid_kernel *kernel) {
    int size = plan->n + plan->m;
    double *left = kernel->room;
    hybrid_left_by(plan, kernel, kernel->right, kernel->solution, left);
    return hybrid_largest(size, left) <= HYBRID_ROUGH * hybrid_largest(size, kernel->right);
}

int hybrid_solve(const hybrid_plan *plan, const double *force, const double *c,
                 hybrid_kernel *kernel, double *dw, double *dy) {
    int doubt;
    for (int i = 0; i < plan->n; i++) kernel->right[i] = -force[i];
    for (int i = 0; i < plan->m; i++) kernel->right[plan->n + i] = -c[i];
    doubt = kernel->asked || (hybrid_resolve(plan, kernel) && !serves(plan, kernel));
    if (doubt) doubt = hybrid_ask_solution(plan, kernel);
    memcpy(dw, kernel->solution, (size_t)plan->n * sizeof(double));
    memcpy(dy, kernel->solution + plan->n, (size_t)plan->m * sizeof(double));
    return doubt ? 3 : 0;
}

static double lower(double shift) {
    shift /= HYBRID_INERTIA_DECAY;
    return shift > HYBRID_INERTIA_LEAST ? shift : HYBRID_INERTIA_LEAST;
}

/* The shift to try after one that did not do. */
static double larger(const hybrid_iterate *it, double shift, double least) {
    double next;
    if (shift != least)
        return shift * (it->shift == 0.0 ? HYBRID_INERTIA_FIRST_GROWTH : HYBRID_INERTIA_GROWTH);
    next = it->shift == 0.0 ? HYBRID_INERTIA_FIRST : lower(it->shift);
    if (next < least) next = least;
    return next == least && least > 0.0 ? HYBRID_INERTIA_STEEPER * least : next;
}

/* Keeps in the iterate what was learned. */
static void keep(hybrid_iterate *it, double shift, double epsilon, int singular,
                 double plain_epsilon, int bent) {
    int mended = singular && shift == 0.0 && epsilon > plain_epsilon;
    if (it->flat < HYBRID_INERTIA_OFTEN)
        it->flat = singular && shift > 0.0 ? it->flat + 1 : 0;
    if (it->dependent < HYBRID_INERTIA_OFTEN) it->dependent = mended ? it->dependent + 1 : 0;
    if (shift > 0.0) it->shift = shift;
    it->bent = bent ? it->bent + 1 : 0;
}

void hybrid_stiffness(const hybrid_form *form, const hybrid_point *at, const double *z_lower,
                      const double *z_upper, double *restrict D) {
    const double *below = at->below, *above = at->above;
    for (int i = 0; i < form->plan->n; i++) D[i] = z_lower[i] / below[i] + z_upper[i] / above[i];
}

int hybrid_factor_with_inertia(hybrid_cold *cold, hybrid_iterate *it, double least) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double small = HYBRID_INERTIA_SMALL * pow(it->nu, HYBRID_INERTIA_POWER);
    double shift = least, first, epsilon, plain_epsilon;
    double largest = cold->at->theta > HYBRID_PACE_FEASIBLE ? HYBRID_INERTIA_FAR_LARGEST
                                                              : HYBRID_INERTIA_LARGEST;
    int singular = 0;
    if (it->flat >= HYBRID_INERTIA_OFTEN && lower(it->shift) > least) shift = lower(it->shift);
    first = shift;
    epsilon = it->dependent >= HYBRID_INERTIA_OFTEN ? small : 0.0;
    if (cold->state->rows_dependent && !cold->outer) epsilon = small;
    plain_epsilon = epsilon;
    hybrid_stiffness(form, at, it->z_lower, it->z_upper, cold->D);
    for (;;) {
        int found = cold->outer ? hybrid_elastic_factor(cold, shift, epsilon)
                                : hybrid_factor(plan, cold->W, cold->D, shift, at->A, epsilon, 0,
                                                &cold->kernel);
        form->answer->factors++;
        if (found == 3) found = hybrid_ask(plan, &cold->kernel);
        if (found == 0) {
            keep(it, shift, epsilon, singular, plain_epsilon, shift > first && !singular);
            return HYBRID_SOLVED;
        }
        if (found == 3) {
            form->answer->doubts++;
            return HYBRID_DOUBT;
        }
        singular |= found == 2 && shift == least;
        if (epsilon == 0.0 && (found == 2 || cold->kernel.inertia.negative < plan->m)) {
            epsilon = small;
            continue;
        }
        if (shift == least && found == 2) epsilon = plain_epsilon; /* rows were not to blame */
        shift = larger(it, shift, least);
        if (!(shift <= largest)) return HYBRID_NOT_NEARER;
    }
}

/* Takes from each column of the n x m matrix its part along one column of length one. */
static void project(int n, int m, const double *one, double *dense, const double *norms) {
    for (int j = 0; j < m; j++) {
        double *column = dense + (long long)j * n, product = 0.0;
        if (norms[j] < 0.0) continue;
        for (int i = 0; i < n; i++) product += one[i] * column[i];
        for (int i = 0; i < n; i++) column[i] -= product * one[i];
    }
}

int hybrid_rows_are_dependent(const hybrid_plan *plan, const double *A, double *dense) {
    int n = plan->n, m = plan->m;
    double *norms = dense + (long long)n * m, first = 0.0, last = 0.0;
    if (!n || !m) return 0;
    if (m > n) return 1;
    memset(dense, 0, (size_t)n * (size_t)m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        dense[(long long)plan->A_rows[k] * n + plan->A_cols[k]] += A[k];
    for (int j = 0; j < m; j++) norms[j] = 0.0;
    /* Gram-Schmidt, the longest row that is left first; lengths fall, as in a pivoted QR. */
    for (int step = 0; step < m; step++) {
        int longest = -1;
        double *one;
        for (int j = 0; j < m; j++) {
            const double *column = dense + (long long)j * n;
            double square = 0.0;
            if (norms[j] < 0.0) continue;
            for (int i = 0; i < n; i++) square += column[i] * column[i];
            norms[j] = square;
            if (longest < 0 || square > norms[longest]) longest = j;
        }
        last = sqrt(norms[longest]);
        if (step == 0) first = last;
        if (last <= HYBRID_INERTIA_RANK * n * DBL_EPSILON * first) return 1;
        one = dense + (long long)longest * n;
        for (int i = 0; i < n; i++) one[i] /= last;
        norms[longest] = -1.0;
        project(n, m, one, dense, norms);
    }
    return 0;
}

void hybrid_least_squares(hybrid_cold *cold, const hybrid_point *at, const double *z_lower,
                          const double *z_upper, double *y) {
    const hybrid_plan *plan = cold->plan;
    int doubt;
    if (!plan->m) return;
    for (int i = 0; i < plan->n; i++) {
        cold->D[i] = 1.0;
        cold->force[i] = at->gradient[i] - z_lower[i] + z_upper[i];
    }
    /* Its inertia is that of its diagonal blocks, whatever the pivots look like. */
    hybrid_factor(plan, 0, cold->D, 0.0, at->A, HYBRID_INERTIA_LEAST_SQUARES, 0, &cold->kernel);
    cold->form.answer->factors++;
    doubt = hybrid_solve(plan, cold->force, cold->zero, &cold->kernel, cold->work, y);
    if (doubt || !(hybrid_largest(plan->m, y) <= HYBRID_INERTIA_IMPLAUSIBLE))
        memset(y, 0, (size_t)plan->m * sizeof(double));
}
