/* The linear system of a step on an active set: entries of w that are pinned move by what is given,
 *
 *     [ W + shift   A'    ] [dw]     [force]
 *     [ A        -epsilon ] [dy] = - [c    ],    dw = move where pinned,
 *
 * with rows and columns of pinned entries those of the identity. In the fixed order they are held
 * by a weight in their place, and refinement does the rest. */
#include <math.h>
#include <string.h>

#include "primal_dual/primal_dual.h"

/* The exponent of frexp, for a finite number that is not 0. */
static int exponent_of(double value) {
    unsigned long long bits = 0; /* uint64_t would need another header in an export */
    int exponent;
    memcpy(&bits, &value, sizeof value);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent) return exponent - 1022;
    frexp(value, &exponent);
    return exponent;
}

/* The weight of pins: 2^31 times the geometric mean of the curvatures that are not zero. So a
 * pinned entry moves by no more than rounding. A curvature of less than 2^-31 of the largest
 * |entry| of W counts as zero: so the weight is no less than that entry. */
static double pinning(const hybrid_plan *plan, const double *W, const hybrid_kkt *kkt) {
    const double least = ldexp(hybrid_norm_inf(plan->nnz_W, W), -31);
    int sum = 0, count = 0;
    for (int i = 0; i < plan->n; i++) {
        double entry = kkt->K[plan->K_diagonal[i]];
        int exponent;
        if (kkt->pinned[i] || entry == 0.0 || !isfinite(entry) || fabs(entry) < least) continue;
        exponent = exponent_of(entry);
        sum += exponent;
        count++;
    }
    return ldexp(1.0, 31 + (count ? sum / count : 0));
}

/* Returns whether rows depend on each other as far as chosen pivots can tell. Then rounding would
 * move their multipliers along a null space. */
static int are_dependent(const hybrid_kkt *kkt) {
    return kkt->chosen && !kkt->precise && kkt->inertia.smallest <= HYBRID_PIVOT_ROUNDING;
}

int hybrid_factor_pinned(const hybrid_plan *plan, const double *W, const double *A, double shift,
                         double epsilon, hybrid_kkt *kkt) {
    const int *pinned = kkt->pinned;
    double *K = kkt->K, weight = 0.0;
    int pins = 0;
    for (int i = 0; i < plan->n; i++) {
        kkt->pins[pins] = i;
        pins += pinned[i] != 0;
    }
    kkt->n_pins = pins;
    hybrid_zero(plan->nnz_K, K);
    for (int k = 0; k < plan->lower_W; k++) {
        int entry = plan->lower_of_W[k];
        if (!pins || (!pinned[plan->W_rows[entry]] && !pinned[plan->W_cols[entry]]))
            K[plan->K_of_W[k]] = W[entry];
    }
    for (int k = 0; k < plan->nnz_A; k++) K[plan->K_of_A[k]] = A[k];
    for (int i = 0; i < plan->n; i++) {
        double *entry = &K[plan->K_diagonal[i]];
        *entry = pinned[i] ? 1.0 : *entry + shift;
    }
    if (epsilon == 0.0 && plan->m > plan->n - pins) return HYBRID_KKT_SINGULAR;
    for (int i = 0; i < plan->m; i++) K[plan->K_diagonal[plan->n + i]] = -epsilon;
    if (pins) {
        weight = pinning(plan, W, kkt);
        hybrid_copy(plan->nnz_K, K, kkt->soft);
        for (int p = 0; p < pins; p++) {
            int j = kkt->pins[p];
            for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
                K[plan->K_of_A[k]] = 0.0;
            kkt->soft[plan->K_diagonal[j]] = weight;
        }
    }
    hybrid_decompose(plan, kkt, weight);
    if (epsilon == 0.0 && are_dependent(kkt)) return HYBRID_KKT_SINGULAR;
    kkt->changed = kkt->low_rank->rank > 0;
    if (kkt->changed) return hybrid_factor_low_rank(plan, kkt, pins);
    if (hybrid_is_doubtful(kkt)) return HYBRID_KKT_SINGULAR;
    return kkt->inertia.negative == plan->m ? HYBRID_KKT_RIGHT : HYBRID_KKT_WRONG_INERTIA;
}

int hybrid_solve_pinned(const hybrid_plan *plan, const double *W, const double *A,
                        const double *force, const double *c, hybrid_kkt *kkt, double *dw,
                        double *dy) {
    double *right = kkt->right, *row = right + plan->n;
    const double *move = kkt->move;
    int result;
    for (int i = 0; i < plan->n; i++) right[i] = 0.0;
    for (int i = 0; i < plan->m; i++) row[i] = 0.0;
    for (int p = 0; p < kkt->n_pins; p++) { /* most are on their bounds already */
        int j = kkt->pins[p];
        if (move[j] == 0.0) continue;
        for (int k = plan->W_starts[j]; k < plan->W_starts[j + 1]; k++)
            right[plan->W_rows[k]] += W[k] * move[j];
        for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
            row[plan->A_rows[k]] += A[k] * move[j];
    }
    if (kkt->changed)
        hybrid_add_low_rank(plan, kkt->low_rank, move, kkt->n_pins, kkt->pins, right);
    for (int i = 0; i < plan->n; i++) right[i] = -(force[i] + right[i]);
    for (int i = 0; i < plan->m; i++) row[i] = -(c[i] + row[i]);
    for (int p = 0; p < kkt->n_pins; p++) right[kkt->pins[p]] = move[kkt->pins[p]];
    result = hybrid_solve_refined(plan, kkt);
    if (result == HYBRID_KKT_INACCURATE) result = hybrid_refine_rows(plan, kkt);
    hybrid_copy(plan->n, kkt->solution, dw);
    hybrid_copy(plan->m, kkt->solution + plan->n, dy);
    return result;
}
