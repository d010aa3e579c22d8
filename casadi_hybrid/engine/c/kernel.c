/* The kernel with pinned entries: where a bound is active, w moves onto it and nothing else. */
#include <math.h>
#include <string.h>

#include "internal.h"

void hybrid_place_kernel(const hybrid_plan *plan, hybrid_arena *arena, hybrid_kernel *kernel) {
    const hybrid_ldl *ldl = &plan->ldl;
    int size = plan->n + plan->m;
    kernel->K = hybrid_take(arena, plan->nnz_K);
    kernel->factor = hybrid_take(arena, ldl->factor);
    kernel->pivots = hybrid_take_ints(arena, ldl->pivots);
    kernel->room = hybrid_take(arena, ldl->room);
    kernel->right = hybrid_take(arena, size);
    kernel->solution = hybrid_take(arena, size);
    kernel->move = hybrid_take(arena, plan->n);
    kernel->of_W = hybrid_take(arena, plan->n);
    kernel->of_A = hybrid_take(arena, plan->m);
    kernel->pinned = hybrid_take_ints(arena, plan->n);
}

int hybrid_refined(const hybrid_plan *plan, const hybrid_kernel *kernel, double residual) {
    const hybrid_ldl *ldl = &plan->ldl;
    const double *x = kernel->solution;
    int size = plan->n + plan->m;
    double *left = kernel->room, *sizes = left + size;
    if (residual <= HYBRID_REFINED) return 1;
    if (!isfinite(residual)) return 0;
    /* Where terms are large and cancel, a row has rounding of its own: each is judged by its own. */
    for (int i = 0; i < size; i++) {
        left[i] = kernel->right[i];
        sizes[i] = fabs(kernel->right[i]);
    }
    for (int j = 0; j < size; j++)
        for (int k = ldl->starts[j]; k < ldl->starts[j + 1]; k++) {
            int i = ldl->rows[k];
            double term = kernel->K[k] * x[j];
            left[i] -= term;
            sizes[i] += fabs(term);
            if (i == j) continue;
            term = kernel->K[k] * x[i];
            left[j] -= term;
            sizes[j] += fabs(term);
        }
    for (int i = 0; i < size; i++)
        if (!(fabs(left[i]) <= HYBRID_REFINED * sizes[i])) return 0;
    return 1;
}

int hybrid_factor_pinned(const hybrid_plan *plan, const double *W, const double *A, double shift,
                         double epsilon, hybrid_kernel *kernel) {
    const int *pinned = kernel->pinned;
    double *K = kernel->K;
    memset(K, 0, (size_t)plan->nnz_K * sizeof(double));
    for (int k = 0; k < plan->lower_W; k++) {
        int entry = plan->lower_of_W[k];
        if (!pinned[plan->W_rows[entry]] && !pinned[plan->W_cols[entry]])
            K[plan->K_of_W[k]] = W[entry];
    }
    for (int k = 0; k < plan->nnz_A; k++)
        if (!pinned[plan->A_cols[k]]) K[plan->K_of_A[k]] = A[k];
    for (int i = 0; i < plan->n; i++) {
        double *entry = &K[plan->K_diagonal[i]];
        *entry = pinned[i] ? 1.0 : *entry + shift;
    }
    for (int i = 0; i < plan->m; i++) K[plan->K_diagonal[plan->n + i]] = -epsilon;
    hybrid_ldl_factor(&plan->ldl, K, kernel->factor, kernel->pivots, kernel->room,
                      &kernel->inertia);
    if (kernel->inertia.singular) return 2;
    if (kernel->inertia.doubtful) return 3;
    return kernel->inertia.negative == plan->m ? 0 : 1;
}

int hybrid_solve_pinned(const hybrid_plan *plan, const double *W, const double *A,
                        const double *force, const double *c, hybrid_kernel *kernel, double *dw,
                        double *dy) {
    double residual;
    hybrid_times_W(plan, W, kernel->move, kernel->of_W);
    hybrid_times_A(plan, A, kernel->move, kernel->of_A);
    for (int i = 0; i < plan->n; i++)
        kernel->right[i] = kernel->pinned[i] ? kernel->move[i] : -(force[i] + kernel->of_W[i]);
    for (int i = 0; i < plan->m; i++) kernel->right[plan->n + i] = -(c[i] + kernel->of_A[i]);
    residual = hybrid_ldl_solve(&plan->ldl, kernel->K, kernel->factor, kernel->pivots,
                                kernel->right, kernel->solution, kernel->room,
                                HYBRID_KERNEL_REFINEMENTS);
    memcpy(dw, kernel->solution, (size_t)plan->n * sizeof(double));
    memcpy(dy, kernel->solution + plan->n, (size_t)plan->m * sizeof(double));
    return hybrid_refined(plan, kernel, residual) ? 0 : 3;
}
