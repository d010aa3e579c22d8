/* The linear system of a primal-dual step, with D = Z_l/(w - l) + Z_u/(u - w):
 *
 *     [ W + D + shift   A'    ] [dw]     [force]
 *     [ A            -epsilon ] [dy] = - [c    ],
 *
 * multipliers of least squares by the same matrix with W + D = I, and the rank of A. */
#include <math.h>
#include <string.h>

#include "primal_dual/primal_dual.h"

int hybrid_factor(const hybrid_plan *plan, const double *W, const double *D, double shift,
                  const double *A, double epsilon, const double *penalty, hybrid_kkt *kkt) {
    double *K = kkt->K;
    int right;
    hybrid_zero(plan->nnz_K, K);
    if (W)
        for (int k = 0; k < plan->lower_W; k++) K[plan->K_of_W[k]] = W[plan->lower_of_W[k]];
    for (int k = 0; k < plan->nnz_A; k++) K[plan->K_of_A[k]] = A[k];
    for (int i = 0; i < plan->n; i++) K[plan->K_diagonal[i]] += D[i] + shift;
    for (int i = 0; i < plan->m; i++)
        K[plan->K_diagonal[plan->n + i]] = penalty ? -penalty[i] : -epsilon;
    hybrid_decompose(plan, kkt, 0.0);
    kkt->changed = W && kkt->low_rank->rank > 0;
    if (kkt->changed) return hybrid_factor_low_rank(plan, kkt, 0);
    right = kkt->inertia.negative == plan->m;
    /* A pivot against the test does no harm where nothing has grown: refinement does the rest. */
    if (right && !kkt->inertia.singular && kkt->inertia.growth <= HYBRID_GROWTH)
        return HYBRID_KKT_RIGHT;
    if (hybrid_is_doubtful(kkt)) return HYBRID_KKT_SINGULAR;
    return right ? HYBRID_KKT_RIGHT : HYBRID_KKT_WRONG_INERTIA;
}

int hybrid_solve_kkt(const hybrid_plan *plan, const double *force, const double *c,
                     hybrid_kkt *kkt, double *dw, double *dy) {
    int result;
    for (int i = 0; i < plan->n; i++) kkt->right[i] = -force[i];
    for (int i = 0; i < plan->m; i++) kkt->right[plan->n + i] = -c[i];
    result = hybrid_solve_refined(plan, kkt);
    if (result && hybrid_is_accurate_step(plan, kkt)) result = HYBRID_KKT_RIGHT;
    if (result == HYBRID_KKT_INACCURATE) result = hybrid_refine_rows(plan, kkt);
    hybrid_copy(plan->n, kkt->solution, dw);
    hybrid_copy(plan->m, kkt->solution + plan->n, dy);
    return result;
}

void hybrid_barrier_diagonal(const hybrid_form *form, const hybrid_point *at, const double *z_lower,
                             const double *z_upper, double *restrict D) {
    const double *below = at->below, *above = at->above;
    for (int i = 0; i < form->plan->n; i++) D[i] = z_lower[i] / below[i] + z_upper[i] / above[i];
}

int hybrid_hessian_of_phase(hybrid_phase *phase) {
    phase->identity = hybrid_hessian(&phase->form, &phase->at->of, phase->now.y, 1.0, phase->W);
    if (!phase->identity) return HYBRID_SOLVED;
    if (++phase->without > HYBRID_HESSIAN_UNDEFINED_STEPS) {
        hybrid_copy(phase->plan->n_x, phase->at->of.x, phase->state->x_undefined);
        return HYBRID_UNDEFINED;
    }
    hybrid_zero(phase->plan->nnz_W, phase->W);
    return HYBRID_SOLVED;
}

void hybrid_least_squares_y(hybrid_phase *phase, const hybrid_point *at, const double *z_lower,
                            const double *z_upper, double most, double *y) {
    const hybrid_plan *plan = phase->plan;
    if (plan->m) {
        for (int i = 0; i < plan->n; i++) phase->D[i] = 1.0;
        /* Its inertia is that of its diagonal blocks, whatever the pivots look like. */
        hybrid_factor(plan, 0, phase->D, 0.0, at->A, HYBRID_INERTIA_DELTA_C, 0, &phase->kkt);
        phase->form.answer->factors++;
    }
    hybrid_least_squares_y_again(phase, at, z_lower, z_upper, most, y);
}

void hybrid_least_squares_y_again(hybrid_phase *phase, const hybrid_point *at,
                                  const double *z_lower, const double *z_upper, double most,
                                  double *y) {
    const hybrid_plan *plan = phase->plan;
    int result;
    for (int i = 0; i < plan->n; i++) phase->force[i] = at->gradient[i] - z_lower[i] + z_upper[i];
    hybrid_copy(plan->n, phase->force, phase->work);
    if (!plan->m) return;
    hybrid_zero(plan->m, phase->residual);
    result = hybrid_solve_kkt(plan, phase->force, phase->residual, &phase->kkt, phase->work, y);
    if (result || !(hybrid_norm_inf(plan->m, y) <= most)) hybrid_zero(plan->m, y);
}

int hybrid_rows_are_dependent(const hybrid_plan *plan, const double *A, double *dense) {
    const int n = plan->n, m = plan->m;
    double *diagonal = dense + (long long)n * m;
    if (!n || !m) return 0;
    if (m > n) return 1;
    memset(dense, 0, (size_t)n * (size_t)m * sizeof(double));
    for (int k = 0; k < plan->nnz_A; k++)
        dense[(long long)plan->A_rows[k] * n + plan->A_cols[k]] += A[k];
    hybrid_qr_diagonal(m, n, dense, diagonal);
    return fabs(diagonal[m - 1]) <= HYBRID_RANK_ROUNDING * n * fabs(diagonal[0]);
}
