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

void hybrid_attend(const hybrid_form *form, hybrid_kernel *kernel) {
    kernel->outside = form->functions->outside;
    kernel->answer = form->answer;
}

int hybrid_ask(const hybrid_plan *plan, hybrid_kernel *kernel) {
    const hybrid_outside_kernel *outside = kernel->outside;
    int negative = -1, found;
    if (!outside) return 3;
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

int hybrid_resolve(const hybrid_plan *plan, hybrid_kernel *kernel) {
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

/* That of frexp, for a finite number that is not 0. */
static int exponent_of(double value) {
    unsigned long long bits = 0; /* uint64_t would need another header in an export */
    int exponent;
    memcpy(&bits, &value, sizeof value);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent) return exponent - 1022;
    frexp(value, &exponent);
    return exponent;
}

/* 2^31 times the middle size of the curvatures that are there: half of what a number's digits
 * can tell apart, so that what is pinned moves by as little as rounding makes of it. */
static double pinning(const hybrid_plan *plan, const hybrid_kernel *kernel) {
    int sum = 0, count = 0;
    for (int i = 0; i < plan->n; i++) {
        double entry = kernel->K[plan->K_diagonal[i]];
        int exponent;
        if (kernel->pinned[i] || entry == 0.0 || !isfinite(entry)) continue;
        exponent = exponent_of(entry);
        sum += exponent;
        count++;
    }
    return ldexp(1.0, 31 + (count ? sum / count : 0));
}

int hybrid_factor_pinned(const hybrid_plan *plan, const double *W, const double *A, double shift,
                         double epsilon, hybrid_kernel *kernel) {
    const int *pinned = kernel->pinned;
    double *K = kernel->K, weight = 0.0;
    int pins = 0;
    for (int i = 0; i < plan->n; i++) {
        kernel->pins[pins] = i;
        pins += pinned[i] != 0;
    }
    kernel->n_pins = pins;
    memset(K, 0, (size_t)plan->nnz_K * sizeof(double));
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
    if (epsilon == 0.0 && plan->m > plan->n - pins) return 2;
    for (int i = 0; i < plan->m; i++) K[plan->K_diagonal[plan->n + i]] = -epsilon;
    if (pins) {
        weight = pinning(plan, kernel);
        memcpy(kernel->soft, K, (size_t)plan->nnz_K * sizeof(double));
        for (int p = 0; p < pins; p++) {
            int j = kernel->pins[p];
            for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
                K[plan->K_of_A[k]] = 0.0;
            kernel->soft[plan->K_diagonal[j]] = weight;
        }
    }
    hybrid_decompose(plan, kernel, weight);
    if (kernel->inertia.singular) return 2;
    if (kernel->inertia.doubtful) return hybrid_ask(plan, kernel);
    return kernel->inertia.negative == plan->m ? 0 : 1;
}

int hybrid_solve_pinned(const hybrid_plan *plan, const double *W, const double *A,
                        const double *force, const double *c, hybrid_kernel *kernel, double *dw,
                        double *dy) {
    double *right = kernel->right, *row = right + plan->n;
    const double *move = kernel->move;
    int found;
    for (int i = 0; i < plan->n; i++) right[i] = 0.0;
    for (int i = 0; i < plan->m; i++) row[i] = 0.0;
    for (int p = 0; p < kernel->n_pins; p++) { /* mostly they are where they ought to be */
        int j = kernel->pins[p];
        if (move[j] == 0.0) continue;
        for (int k = plan->W_starts[j]; k < plan->W_starts[j + 1]; k++)
            right[plan->W_rows[k]] += W[k] * move[j];
        for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
            row[plan->A_rows[k]] += A[k] * move[j];
    }
    for (int i = 0; i < plan->n; i++) right[i] = -(force[i] + right[i]);
    for (int i = 0; i < plan->m; i++) row[i] = -(c[i] + row[i]);
    for (int p = 0; p < kernel->n_pins; p++) right[kernel->pins[p]] = move[kernel->pins[p]];
    found = kernel->asked ? 3 : hybrid_resolve(plan, kernel);
    if (found == 3) found = hybrid_ask_solution(plan, kernel);
    memcpy(dw, kernel->solution, (size_t)plan->n * sizeof(double));
    memcpy(dy, kernel->solution + plan->n, (size_t)plan->m * sizeof(double));
    return found;
}
