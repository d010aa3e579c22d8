/* A Hessian with a part of low rank that is full, factored by that of its sparse part.
 *
 * With W = H + U diag(w) U', H on the plan's pattern and U of a few columns, K = K0 + V diag(w) V' for
 * the K0 of H, where V is U without the rows that are pinned, and zero in the rows of A. By the
 * formula of Woodbury
 *
 *     K^-1 = K0^-1 - Z T^-1 Z',    Z = K0^-1 V,    T = diag(w)^-1 + V'Z.
 *
 * Eliminating either block of [K0, V; V', -diag(w)^-1] gives its inertia in two ways (Sylvester), so
 *
 *     negative(K) = negative(K0) + positive(T) - positive(w).
 */
#include <math.h>
#include <string.h>

#include "primal_dual/primal_dual.h"

/* kernel->solution of K0 for kernel->right. Returns as hybrid_resolve, but that pivots had to be
 * chosen is no reason to stop: Z does not depend on them. */
static int resolve_K0(const hybrid_plan *plan, hybrid_kernel *kernel) {
    const int negative = kernel->inertia.negative;
    int found;
    kernel->inertia.negative = kernel->low_rank->negative;
    found = hybrid_resolve_alone(plan, kernel);
    if (found == 1) { /* solved now by a factor that knows K0's inertia better */
        found = hybrid_resolve_alone(plan, kernel);
        if (!found) found = 1;
    }
    if (found == 1) kernel->low_rank->negative = kernel->inertia.negative;
    kernel->inertia.negative = negative;
    return found;
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
    return hybrid_symmetric(rank, low->T, low->values, low->along);
}

int hybrid_factor_low_rank(const hybrid_plan *plan, hybrid_kernel *kernel, int count) {
    hybrid_low_rank *low = kernel->low_rank;
    const int n = plan->n, size = n + plan->m, rank = low->rank;
    double least = INFINITY;
    if (kernel->inertia.singular) return 2;
    if (!(kernel->inertia.growth <= HYBRID_GROWTH) && hybrid_in_doubt(kernel)) return 2;
    memcpy(low->V, low->U, (size_t)rank * (size_t)n * sizeof(double));
    low->negative = kernel->inertia.negative;
    for (int k = 0; k < rank; k++) {
        double *column = low->V + (long long)k * n;
        int found;
        for (int p = 0; p < count; p++) column[kernel->pins[p]] = 0.0;
        memcpy(kernel->right, column, (size_t)n * sizeof(double));
        for (int i = n; i < size; i++) kernel->right[i] = 0.0;
        found = resolve_K0(plan, kernel);
        if (found > 1) return 2;
        memcpy(low->Z + (long long)k * size, kernel->solution, (size_t)size * sizeof(double));
    }
    if (decompose_T(plan, low)) return 2;
    kernel->inertia.negative = low->negative;
    for (int k = 0; k < rank; k++) {
        kernel->inertia.negative += (low->values[k] > 0.0) - (low->w[k] > 0.0);
        if (!(fabs(low->values[k]) >= least)) least = fabs(low->values[k]);
    }
    if (!(least > HYBRID_LOW_RANK_ROUNDING * hybrid_largest(rank, low->values))) {
        kernel->inertia.singular = 1;
        return 2;
    }
    if (kernel->inertia.negative == plan->m) return 0;
    return hybrid_in_doubt(kernel) ? 2 : 1;
}

/* kernel->solution of K for kernel->right, without a correction. Returns as resolve_K0. */
static int answer(const hybrid_plan *plan, hybrid_kernel *kernel) {
    hybrid_low_rank *low = kernel->low_rank;
    const int rank = low->rank, size = plan->n + plan->m, found = resolve_K0(plan, kernel);
    if (found > 1) return found;
    for (int k = 0; k < rank; k++)
        low->along[k] = hybrid_dot(plan->n, low->V + (long long)k * plan->n, kernel->solution);
    for (int k = 0; k < rank; k++)
        low->turned[k] = hybrid_dot(rank, low->T + k * rank, low->along) / low->values[k];
    for (int k = 0; k < rank; k++) low->along[k] = 0.0;
    for (int k = 0; k < rank; k++)
        for (int i = 0; i < rank; i++) low->along[i] += low->T[k * rank + i] * low->turned[k];
    for (int k = 0; k < rank; k++) {
        const double *column = low->Z + (long long)k * size;
        for (int i = 0; i < size; i++) kernel->solution[i] -= low->along[k] * column[i];
    }
    return found;
}

/* kernel->solution of K for kernel->right. Returns as hybrid_resolve. */
static int resolve_K(const hybrid_plan *plan, hybrid_kernel *kernel) {
    hybrid_low_rank *low = kernel->low_rank;
    const int size = plan->n + plan->m;
    const double all = hybrid_largest(size, kernel->right);
    double left = INFINITY, scale;
    int worst = 0;
    memcpy(low->right, kernel->right, (size_t)size * sizeof(double));
    for (int i = 0; i < size; i++) low->x[i] = 0.0;
    for (int corrections = 0; corrections <= HYBRID_KERNEL_REFINEMENTS; corrections++) {
        const int found = answer(plan, kernel);
        if (found > worst) worst = found;
        if (found > 1) break;
        for (int i = 0; i < size; i++) low->x[i] += kernel->solution[i];
        hybrid_left_by(plan, kernel, low->right, low->x, low->left);
        left = hybrid_largest(size, low->left);
        if (left <= HYBRID_KERNEL_EXACT * all) break;
        memcpy(kernel->right, low->left, (size_t)size * sizeof(double));
    }
    memcpy(kernel->right, low->right, (size_t)size * sizeof(double));
    memcpy(kernel->solution, low->x, (size_t)size * sizeof(double));
    if (worst) return worst;
    scale = hybrid_largest(plan->nnz_K, kernel->K) * hybrid_largest(size, low->x);
    return left <= HYBRID_REFINED * (all + scale) ? 0 : 3;
}

int hybrid_resolve(const hybrid_plan *plan, hybrid_kernel *kernel) {
    return kernel->changed ? resolve_K(plan, kernel) : hybrid_resolve_alone(plan, kernel);
}
