/* K = [W + D, A'; A, -E]: factored in a fixed order where that is accurate, else with pivots
 * chosen; where those are in doubt it counts as singular. With entries that are pinned: where a
 * bound is active, w moves onto it and nothing else.
 *
 * A solution x of K x = b is accurate where its residual r = b - K x is small beside b, or every row
 * of it beside what that row is summed up from: max |r|_i / (|K| |x| + |b|)_i is the least relative
 * change of the entries of K and b for which x is exact (Oettli and Prager, Numer. Math. 6, 1964).
 * Corrections by r make this small by a stable factorization, however ill-conditioned K is (Skeel,
 * Math. Comp. 35, 1980; Arioli, Demmel and Duff, SIAM J. Matrix Anal. Appl. 10, 1989), where the
 * largest entry of r has long become rounding. */
#include <math.h>
#include <string.h>

#include "primal_dual/primal_dual.h"

void hybrid_place_kernel(const hybrid_plan *plan, hybrid_arena *arena, hybrid_kernel *kernel) {
    const hybrid_ldl *ldl = &plan->ldl;
    const hybrid_fixed *fixed = &plan->fixed;
    int size = plan->n + plan->m;
    kernel->K = hybrid_take(arena, plan->nnz_K);
    kernel->soft = hybrid_take(arena, plan->nnz_K);
    kernel->factor = hybrid_take(arena, ldl->factor > fixed->factor ? ldl->factor : fixed->factor);
    kernel->pivots = hybrid_take_ints(arena, ldl->pivots);
    kernel->room = hybrid_take(arena, ldl->room);
    kernel->right = hybrid_take(arena, size);
    kernel->solution = hybrid_take(arena, size);
    kernel->move = hybrid_take(arena, plan->n);
    kernel->pinned = hybrid_take_ints(arena, plan->n);
    kernel->pins = hybrid_take_ints(arena, plan->n);
}

/* The backward error of kernel->solution, row by row, and its residual in `left`; `sizes` has room
 * for as many numbers. */
static double backward_error(const hybrid_plan *plan, const hybrid_kernel *kernel, double *left,
                             double *sizes) {
    const hybrid_ldl *ldl = &plan->ldl;
    const double *x = kernel->solution;
    int size = plan->n + plan->m;
    double error = 0.0;
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
    for (int i = 0; i < size; i++) {
        double share = left[i] == 0.0 ? 0.0 : fabs(left[i]) / sizes[i];
        if (isnan(share)) return INFINITY;
        if (share > error) error = share;
    }
    return error;
}

int hybrid_refined(const hybrid_plan *plan, const hybrid_kernel *kernel, double residual) {
    double *left = kernel->room;
    if (residual <= HYBRID_REFINED) return 1;
    if (!isfinite(residual)) return 0;
    return backward_error(plan, kernel, left, left + plan->n + plan->m) <= HYBRID_REFINED;
}

void hybrid_left_by(const hybrid_plan *plan, const hybrid_kernel *kernel, const double *right,
                    const double *x, double *left) {
    const hybrid_low_rank *low = kernel->low_rank;
    hybrid_ldl_product(&plan->ldl, kernel->K, x, left);
    for (int i = 0; i < plan->n + plan->m; i++) left[i] = right[i] - left[i];
    for (int k = 0; kernel->changed && k < low->rank; k++) {
        const double *column = low->V + (long long)k * plan->n;
        const double by = low->w[k] * hybrid_dot(plan->n, column, x);
        for (int i = 0; i < plan->n; i++) left[i] -= by * column[i];
    }
}

int hybrid_serves(const hybrid_plan *plan, hybrid_kernel *kernel) {
    int size = plan->n + plan->m;
    double *left = kernel->room;
    hybrid_left_by(plan, kernel, kernel->right, kernel->solution, left);
    return hybrid_largest(size, left) <= HYBRID_ROUGH * hybrid_largest(size, kernel->right);
}

/* Corrects kernel->solution by a factor with chosen pivots until its backward error is no larger, or
 * does not halve any more. Returns whether it is no larger. */
static int correct_rows(const hybrid_plan *plan, hybrid_kernel *kernel, double enough) {
    double *left = kernel->room, *sizes = kernel->soft; /* which a fixed order alone asks for */
    double before = INFINITY;
    for (int corrections = 0; corrections <= HYBRID_CORRECTIONS; corrections++) {
        double error = backward_error(plan, kernel, left, sizes);
        if (error <= enough) return 1;
        if (!(error <= 0.5 * before)) break;
        before = error;
        hybrid_ldl_correct(&plan->ldl, kernel->factor, kernel->pivots, left, kernel->solution,
                           left + plan->n + plan->m);
    }
    return 0;
}

int hybrid_refine_rows(const hybrid_plan *plan, hybrid_kernel *kernel) {
    if (!kernel->changed && correct_rows(plan, kernel, HYBRID_REFINED)) return 0;
    if (hybrid_serves(plan, kernel)) return 0;
    kernel->answer->doubts++;
    return 2;
}

static void choose(const hybrid_plan *plan, hybrid_kernel *kernel) {
    kernel->chosen = 1;
    hybrid_ldl_factor(&plan->ldl, kernel->K, kernel->factor, kernel->pivots, kernel->room,
                      &kernel->inertia);
}

void hybrid_decompose(const hybrid_plan *plan, hybrid_kernel *kernel, double weight) {
    kernel->weight = weight;
    kernel->chosen = plan->fixed.size == 0;
    if (!kernel->chosen)
        hybrid_fixed_factor(&plan->fixed, weight > 0.0 ? kernel->soft : kernel->K, kernel->factor,
                            kernel->room, &kernel->inertia);
    if (!kernel->chosen && !kernel->inertia.doubtful) return;
    choose(plan, kernel);
    kernel->answer->chosen++;
}

int hybrid_in_doubt(hybrid_kernel *kernel) {
    if (kernel->inertia.singular) return 1;
    kernel->answer->doubts += kernel->inertia.doubtful != 0;
    return kernel->inertia.doubtful != 0;
}

/* Sets the entries of a step that are pinned to those of `to`, or to 0. */
static void hold(const hybrid_kernel *kernel, const double *to, double *step) {
    if (kernel->weight == 0.0) return;
    for (int k = 0; k < kernel->n_pins; k++)
        step[kernel->pins[k]] = to ? to[kernel->pins[k]] : 0.0;
}

/* step becomes the solution for it by the factor in a fixed order, with `to` in what is pinned. */
static void solve(const hybrid_plan *plan, const hybrid_kernel *kernel, const double *to,
                  double *step, double *room) {
    hold(kernel, 0, step);
    hybrid_fixed_solve(&plan->fixed, kernel->factor, step, room);
    hold(kernel, to, step);
}

void hybrid_answer_to(const hybrid_plan *plan, hybrid_kernel *kernel) {
    double *held = kernel->room;
    int size = plan->n + plan->m;
    memcpy(held, kernel->right, (size_t)size * sizeof(double));
    solve(plan, kernel, held, kernel->right, held + size);
}

/* Solves by that factor and corrects by the residual of K. Returns its size, relative to the
 * right-hand side. Of a correction that has little to do it is not measured: it leaves such a part
 * of what it corrects as the solution before has left of the whole. */
static double refine(const hybrid_plan *plan, hybrid_kernel *kernel) {
    int size = plan->n + plan->m;
    double *x = kernel->solution, *step = kernel->room, *room = step + size;
    double all = hybrid_largest(size, kernel->right), error = INFINITY;
    memcpy(x, kernel->right, (size_t)size * sizeof(double));
    if (all == 0.0) return 0.0;
    solve(plan, kernel, kernel->right, x, room);
    for (int corrections = 0;; corrections++) {
        double now, *left = room;
        hybrid_ldl_product(&plan->ldl, kernel->K, x, left);
        for (int i = 0; i < size; i++) left[i] = kernel->right[i] - left[i];
        now = hybrid_largest(size, left);
        if (!(now <= error)) {
            for (int i = 0; i < size && corrections; i++) x[i] -= step[i];
            return error / all;
        }
        if (!(now > HYBRID_KERNEL_EXACT * all) || !(now <= 0.5 * error) ||
            corrections >= HYBRID_CORRECTIONS)
            return now / all;
        error = now;
        room = step;
        step = left;
        solve(plan, kernel, 0, step, room);
        for (int i = 0; i < size; i++) x[i] += step[i];
        if (error <= HYBRID_UNSEEN * all) return error / all * (error / all);
    }
}

int hybrid_resolve_alone(const hybrid_plan *plan, hybrid_kernel *kernel) {
    double residual;
    if (!kernel->chosen) {
        int negative = kernel->inertia.negative;
        residual = refine(plan, kernel);
        if (!kernel->precise && hybrid_refined(plan, kernel, residual)) return 0;
        choose(plan, kernel);
        kernel->answer->chosen++;
        if (hybrid_in_doubt(kernel)) return 2;
        if (kernel->inertia.negative != negative) return 1;
    }
    residual = hybrid_ldl_solve(&plan->ldl, kernel->K, kernel->factor, kernel->pivots,
                                kernel->right, kernel->solution, kernel->room,
                                HYBRID_KERNEL_REFINEMENTS);
    if (!hybrid_refined(plan, kernel, residual)) return 3;
    if (kernel->precise && !kernel->changed) correct_rows(plan, kernel, 0.0);
    return 0;
}
