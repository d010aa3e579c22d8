/* K = [W + D, A'; A, -E]: factored in a fixed order where that is accurate, else with pivots
 * chosen, and by the caller's own kernel where that is in doubt. With entries that are pinned:
 * where a bound is active, w moves onto it and nothing else. */
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

static void choose(const hybrid_plan *plan, hybrid_kernel *kernel) {
    kernel->chosen = 1;
    hybrid_ldl_factor(&plan->ldl, kernel->K, kernel->factor, kernel->pivots, kernel->room,
                      &kernel->inertia);
}

void hybrid_decompose(const hybrid_plan *plan, hybrid_kernel *kernel, double weight) {
    kernel->weight = weight;
    kernel->asked = 0;
    kernel->chosen = plan->fixed.size == 0;
    if (!kernel->chosen)
        hybrid_fixed_factor(&plan->fixed, weight > 0.0 ? kernel->soft : kernel->K, kernel->factor,
                            kernel->room, &kernel->inertia);
    if (!kernel->chosen && !kernel->inertia.doubtful) return;
    choose(plan, kernel);
    kernel->answer->chosen++;
}

void hybrid_attend(hybrid_form *form, hybrid_kernel *kernel) {
    kernel->outside = form->functions->outside;
    kernel->answer = form->answer;
    kernel->low_rank = &form->low_rank;
}

int hybrid_ask(const hybrid_plan *plan, hybrid_kernel *kernel) {
    const hybrid_outside_kernel *outside = kernel->outside;
    int negative = -1, found;
    if (!outside || kernel->changed) return 3;
    found = outside->factor(outside->self, kernel->K, &negative);
    if (negative < 0 || (found != 0 && found != 2)) return 3;
    kernel->asked = 1;
    kernel->answer->outside++;
    kernel->inertia.singular = found == 2;
    kernel->inertia.negative = negative;
    if (found) return found;
    return negative == plan->m ? 0 : 1;
}

int hybrid_ask_solution(const hybrid_plan *plan, hybrid_kernel *kernel) {
    const hybrid_outside_kernel *outside = kernel->outside;
    int found = kernel->asked ? 0 : hybrid_ask(plan, kernel);
    if (found) return found;
    for (int i = 0; i < plan->n + plan->m; i++) kernel->solution[i] = NAN; /* until it is written */
    if (outside->solve(outside->self, kernel->right, kernel->solution)) return 3;
    return hybrid_all_finite(plan->n + plan->m, kernel->solution) ? 0 : 3;
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
        if (hybrid_refined(plan, kernel, residual)) return 0;
        choose(plan, kernel);
        if (kernel->inertia.doubtful && !kernel->inertia.singular) return 3;
        kernel->answer->chosen++;
        if (kernel->inertia.singular) return 2;
        if (kernel->inertia.negative != negative) return 1;
    }
    residual = hybrid_ldl_solve(&plan->ldl, kernel->K, kernel->factor, kernel->pivots,
                                kernel->right, kernel->solution, kernel->room,
                                HYBRID_KERNEL_REFINEMENTS);
    return hybrid_refined(plan, kernel, residual) ? 0 : 3;
}
