/* A KKT matrix whose Hessian has a full part of low rank, factored by its sparse part.
 *
 * Let W = H + U diag(w) U', with H on the plan's pattern and U of a few columns. Then
 * K = K0 + V diag(w) V' for the K0 of H, where V is U without the rows that are pinned, and zero in
 * the rows of A. By the formula of Woodbury
 *
 *     K^-1 = K0^-1 - Z T^-1 Z',    Z = K0^-1 V,    T = diag(w)^-1 + V'Z.
 *
 * Eliminating either block of [K0, V; V', -diag(w)^-1] gives its inertia in two ways (Sylvester),
 * so
 *
 *     negative(K) = negative(K0) + positive(T) - positive(w).
 */
#include <math.h>
#include <string.h>

#include "primal_dual/primal_dual.h"

/* kkt->solution of K0 for kkt->right. Returns as hybrid_solve_refined, but that pivots had to be
 * chosen is no reason to stop: Z does not depend on them. */
static int resolve_K0(const hybrid_plan *plan, hybrid_kkt *kkt) {
    const int negative = kkt->inertia.negative;
    int result;
    kkt->inertia.negative = kkt->low_rank->negative;
    result = hybrid_solve_sparse(plan, kkt);
    if (result ==
        HYBRID_KKT_WRONG_INERTIA) { /* solved now by chosen pivots, whose inertia of K0 is the right
        one */
        result = hybrid_solve_sparse(plan, kkt);
        if (!result) result = HYBRID_KKT_WRONG_INERTIA;
    }
    if (result == HYBRID_KKT_WRONG_INERTIA) kkt->low_rank->negative = kkt->inertia.negative;
    kkt->inertia.negative = negative;
    return result;
}

/* The eigenvalues of T and its eigenvectors in its place. Returns 0, or 1 where they did not
 * converge. */
static int decompose_T(const hybrid_plan *plan, hybrid_low_rank *low) {
    const int rank = low->rank, size = plan->n + plan->m;
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < rank; j++)
            low->T[i * rank + j] = hybrid_dot(plan->n, low->V + (long long)i * plan->n,
                                              low->Z + (long long)j * size);
    for (int i = 0; i < rank; i++) {
        for (int j = 0; j < i; j++) {
            double mean = 0.5 * (low->T[i * rank + j] + low->T[j * rank + i]);
            low->T[i * rank + j] = low->T[j * rank + i] = mean;
        }
        low->T[i * rank + i] += 1.0 / low->w[i];
    }
    return hybrid_eigen(rank, low->T, low->values, low->along);
}

int hybrid_factor_low_rank(const hybrid_plan *plan, hybrid_kkt *kkt, int count) {
    hybrid_low_rank *low = kkt->low_rank;
    const int n = plan->n, size = n + plan->m, rank = low->rank;
    double least = INFINITY;
    if (kkt->inertia.singular) return HYBRID_KKT_SINGULAR;
    if (!(kkt->inertia.growth <= HYBRID_GROWTH) && hybrid_is_doubtful(kkt))
        return HYBRID_KKT_SINGULAR;
    memcpy(low->V, low->U, (size_t)rank * (size_t)n * sizeof(double));
    low->negative = kkt->inertia.negative;
    for (int k = 0; k < rank; k++) {
        double *column = low->V + (long long)k * n;
        int result;
        for (int p = 0; p < count; p++) column[kkt->pins[p]] = 0.0;
        hybrid_copy(n, column, kkt->right);
        for (int i = n; i < size; i++) kkt->right[i] = 0.0;
        result = resolve_K0(plan, kkt);
        if (result > HYBRID_KKT_WRONG_INERTIA) return HYBRID_KKT_SINGULAR;
        hybrid_copy(size, kkt->solution, low->Z + (long long)k * size);
    }
    if (decompose_T(plan, low)) return HYBRID_KKT_SINGULAR;
    kkt->inertia.negative = low->negative;
    for (int k = 0; k < rank; k++) {
        kkt->inertia.negative += (low->values[k] > 0.0) - (low->w[k] > 0.0);
        if (!(fabs(low->values[k]) >= least)) least = fabs(low->values[k]);
    }
    if (!(least > HYBRID_LOW_RANK_ROUNDING * hybrid_norm_inf(rank, low->values))) {
        kkt->inertia.singular = 1;
        return HYBRID_KKT_SINGULAR;
    }
    if (kkt->inertia.negative == plan->m) return HYBRID_KKT_RIGHT;
    return hybrid_is_doubtful(kkt) ? HYBRID_KKT_SINGULAR : HYBRID_KKT_WRONG_INERTIA;
}

/* kkt->solution of K for kkt->right, without a correction. Returns as resolve_K0. */
static int solve_once(const hybrid_plan *plan, hybrid_kkt *kkt) {
    hybrid_low_rank *low = kkt->low_rank;
    const int rank = low->rank, size = plan->n + plan->m, result = resolve_K0(plan, kkt);
    if (result > HYBRID_KKT_WRONG_INERTIA) return result;
    for (int k = 0; k < rank; k++)
        low->along[k] = hybrid_dot(plan->n, low->V + (long long)k * plan->n, kkt->solution);
    for (int k = 0; k < rank; k++)
        low->turned[k] = hybrid_dot(rank, low->T + k * rank, low->along) / low->values[k];
    for (int k = 0; k < rank; k++) low->along[k] = 0.0;
    for (int k = 0; k < rank; k++)
        for (int i = 0; i < rank; i++) low->along[i] += low->T[k * rank + i] * low->turned[k];
    for (int k = 0; k < rank; k++) {
        const double *column = low->Z + (long long)k * size;
        for (int i = 0; i < size; i++) kkt->solution[i] -= low->along[k] * column[i];
    }
    return result;
}

/* kkt->solution of K for kkt->right. Returns as hybrid_solve_refined. */
static int resolve_K(const hybrid_plan *plan, hybrid_kkt *kkt) {
    hybrid_low_rank *low = kkt->low_rank;
    const int size = plan->n + plan->m;
    const double all = hybrid_norm_inf(size, kkt->right);
    double left = INFINITY, scale;
    int worst = HYBRID_KKT_RIGHT;
    hybrid_copy(size, kkt->right, low->right);
    for (int i = 0; i < size; i++) low->x[i] = 0.0;
    for (int corrections = 0; corrections <= HYBRID_CORRECTIONS; corrections++) {
        const int result = solve_once(plan, kkt);
        if (result > worst) worst = result;
        if (result > HYBRID_KKT_WRONG_INERTIA) break;
        for (int i = 0; i < size; i++) low->x[i] += kkt->solution[i];
        hybrid_kkt_residual(plan, kkt, low->right, low->x, low->left);
        left = hybrid_norm_inf(size, low->left);
        if (left <= HYBRID_LDL_REFINED * all) break;
        hybrid_copy(size, low->left, kkt->right);
    }
    hybrid_copy(size, low->right, kkt->right);
    hybrid_copy(size, low->x, kkt->solution);
    if (worst) return worst;
    scale = hybrid_norm_inf(plan->nnz_K, kkt->K) * hybrid_norm_inf(size, low->x);
    return left <= HYBRID_LDL_REFINED * (all + scale) ? HYBRID_KKT_RIGHT : HYBRID_KKT_INACCURATE;
}

int hybrid_solve_refined(const hybrid_plan *plan, hybrid_kkt *kkt) {
    return kkt->changed ? resolve_K(plan, kkt) : hybrid_solve_sparse(plan, kkt);
}
