/* K = [W + D, A'; A, -E], factored in a fixed order if that is accurate, else with chosen pivots.
 * If those are in doubt, K counts as singular. Entries may be pinned: with a bound active, w moves
 * onto it and nothing else.
 *
 * A solution x of K x = b has the residual r = b - K x. It is accurate if r is small beside b, or
 * if every row of r is small beside the terms of that row. max |r|_i / (|K| |x| + |b|)_i is the
 * least relative change of the entries of K and b for which x is exact (Oettli and Prager, Numer.
 * Math. 6, 1964). Corrections by r make it small by a stable factorization, however ill-conditioned
 * K is (Skeel, Math. Comp. 35, 1980; Arioli, Demmel and Duff, SIAM J. Matrix Anal. Appl. 10, 1989).
 * The largest entry of r has long become rounding then. */
#include <math.h>

#include "primal_dual/primal_dual.h"

void hybrid_place_kkt(const hybrid_plan *plan, hybrid_arena *arena, hybrid_kkt *kkt) {
    const hybrid_ldl *ldl = &plan->ldl;
    const hybrid_fixed *fixed = &plan->fixed;
    int size = plan->n + plan->m;
    HYBRID_PLACE(arena, plan->nnz_K, &kkt->K, &kkt->soft);
    kkt->factor = hybrid_allocate(arena, ldl->factor > fixed->factor ? ldl->factor : fixed->factor);
    kkt->pivots = hybrid_allocate_ints(arena, ldl->pivots);
    kkt->room = hybrid_allocate(arena, ldl->room);
    HYBRID_PLACE(arena, size, &kkt->right, &kkt->solution);
    kkt->move = hybrid_allocate(arena, plan->n);
    kkt->pinned = hybrid_allocate_ints(arena, plan->n);
    kkt->pins = hybrid_allocate_ints(arena, plan->n);
}

/* The backward error of kkt->solution, row by row, and its residual in `left`; `sizes` has room
 * for as many numbers. */
static double backward_error(const hybrid_plan *plan, const hybrid_kkt *kkt, double *left,
                             double *sizes) {
    const hybrid_ldl *ldl = &plan->ldl;
    const double *x = kkt->solution;
    int size = plan->n + plan->m;
    double error = 0.0;
    for (int i = 0; i < size; i++) {
        left[i] = kkt->right[i];
        sizes[i] = fabs(kkt->right[i]);
    }
    for (int j = 0; j < size; j++)
        for (int k = ldl->starts[j]; k < ldl->starts[j + 1]; k++) {
            int i = ldl->rows[k];
            double term = kkt->K[k] * x[j];
            left[i] -= term;
            sizes[i] += fabs(term);
            if (i == j) continue;
            term = kkt->K[k] * x[i];
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

int hybrid_is_accurate(const hybrid_plan *plan, const hybrid_kkt *kkt, double residual) {
    double *left = kkt->room;
    if (residual <= HYBRID_LDL_REFINED) return 1;
    if (!isfinite(residual)) return 0;
    return backward_error(plan, kkt, left, left + plan->n + plan->m) <= HYBRID_LDL_REFINED;
}

void hybrid_kkt_residual(const hybrid_plan *plan, const hybrid_kkt *kkt, const double *right,
                         const double *x, double *left) {
    const hybrid_low_rank *low = kkt->low_rank;
    hybrid_ldl_residual(&plan->ldl, kkt->K, x, right, left);
    for (int k = 0; kkt->changed && k < low->rank; k++) {
        const double *column = low->V + (long long)k * plan->n;
        const double by = low->w[k] * hybrid_dot(plan->n, column, x);
        for (int i = 0; i < plan->n; i++) left[i] -= by * column[i];
    }
}

int hybrid_is_accurate_step(const hybrid_plan *plan, hybrid_kkt *kkt) {
    int size = plan->n + plan->m;
    double *left = kkt->room;
    hybrid_kkt_residual(plan, kkt, kkt->right, kkt->solution, left);
    return hybrid_norm_inf(size, left) <= HYBRID_ROUGH * hybrid_norm_inf(size, kkt->right);
}

/* Corrects kkt->solution by a factor with chosen pivots until its backward error is no larger, or
 * does not halve any more. Returns whether it is no larger. */
static int correct_rows(const hybrid_plan *plan, hybrid_kkt *kkt, double enough) {
    double *left = kkt->room, *sizes = kkt->soft; /* which the fixed order alone needs */
    double before = INFINITY;
    for (int corrections = 0; corrections <= HYBRID_CORRECTIONS; corrections++) {
        double error = backward_error(plan, kkt, left, sizes);
        if (error <= enough) return 1;
        if (!(error <= 0.5 * before)) break;
        before = error;
        hybrid_ldl_correct(&plan->ldl, kkt->factor, kkt->pivots, left, kkt->solution,
                           left + plan->n + plan->m);
    }
    return 0;
}

int hybrid_refine_rows(const hybrid_plan *plan, hybrid_kkt *kkt) {
    if (!kkt->changed && correct_rows(plan, kkt, HYBRID_LDL_REFINED)) return HYBRID_KKT_RIGHT;
    if (hybrid_is_accurate_step(plan, kkt)) return HYBRID_KKT_RIGHT;
    kkt->answer->doubts++;
    return HYBRID_KKT_SINGULAR;
}

/* Factors K with chosen pivots. */
static void factor_with_pivoting(const hybrid_plan *plan, hybrid_kkt *kkt) {
    kkt->chosen = 1;
    kkt->answer->chosen++;
    hybrid_ldl_factor(&plan->ldl, kkt->K, kkt->factor, kkt->pivots, kkt->room, kkt->at_once,
                      &kkt->inertia);
}

void hybrid_decompose(const hybrid_plan *plan, hybrid_kkt *kkt, double weight) {
    kkt->weight = weight;
    kkt->chosen = plan->fixed.size == 0;
    if (!kkt->chosen)
        hybrid_fixed_factor(&plan->fixed, weight > 0.0 ? kkt->soft : kkt->K, kkt->factor,
                            kkt->room, &kkt->inertia);
    if (!kkt->chosen && !kkt->inertia.doubtful) return;
    factor_with_pivoting(plan, kkt);
}

int hybrid_is_doubtful(hybrid_kkt *kkt) {
    if (kkt->inertia.singular) return 1;
    kkt->answer->doubts += kkt->inertia.doubtful != 0;
    return kkt->inertia.doubtful != 0;
}

/* Sets the entries of a step that are pinned to those of `to`, or to 0. */
static void set_pinned(const hybrid_kkt *kkt, const double *to, double *step) {
    if (kkt->weight == 0.0) return;
    for (int k = 0; k < kkt->n_pins; k++)
        step[kkt->pins[k]] = to ? to[kkt->pins[k]] : 0.0;
}

/* step becomes the solution for it by the factor in a fixed order, with `to` in what is pinned. */
static void solve_fixed(const hybrid_plan *plan, const hybrid_kkt *kkt, const double *to,
                        double *step, double *room) {
    set_pinned(kkt, 0, step);
    hybrid_fixed_solve(&plan->fixed, kkt->factor, step, room);
    set_pinned(kkt, to, step);
}

void hybrid_solve_column(const hybrid_plan *plan, hybrid_kkt *kkt) {
    double *held = kkt->room;
    int size = plan->n + plan->m;
    hybrid_copy(size, kkt->right, held);
    if (!kkt->chosen) {
        solve_fixed(plan, kkt, held, kkt->right, held + size);
        return;
    }
    hybrid_zero(size, kkt->right);
    hybrid_ldl_correct(&plan->ldl, kkt->factor, kkt->pivots, held, kkt->right, held + size);
}

/* Solves by that factor and corrects by the residual of K. Returns the size of the residual,
 * relative to the right-hand side. After a correction that has little to do, it is not measured:
 * the square of the size before is returned. */
static double refine(const hybrid_plan *plan, hybrid_kkt *kkt) {
    int size = plan->n + plan->m;
    double *x = kkt->solution, *step = kkt->room, *room = step + size;
    double all = hybrid_norm_inf(size, kkt->right), error = INFINITY;
    hybrid_copy(size, kkt->right, x);
    if (all == 0.0) return 0.0;
    solve_fixed(plan, kkt, kkt->right, x, room);
    for (int corrections = 0;; corrections++) {
        double now, *left = room;
        hybrid_ldl_residual(&plan->ldl, kkt->K, x, kkt->right, left);
        now = hybrid_norm_inf(size, left);
        if (!(now <= error)) {
            for (int i = 0; i < size && corrections; i++) x[i] -= step[i];
            return error / all;
        }
        if (!(now > HYBRID_LDL_REFINED * all) || !(now <= 0.5 * error) ||
            corrections >= HYBRID_CORRECTIONS)
            return now / all;
        error = now;
        room = step;
        step = left;
        solve_fixed(plan, kkt, 0, step, room);
        for (int i = 0; i < size; i++) x[i] += step[i];
        if (error <= HYBRID_UNCHECKED * all) return error / all * (error / all);
    }
}

int hybrid_solve_sparse(const hybrid_plan *plan, hybrid_kkt *kkt) {
    double residual;
    if (!kkt->chosen) {
        int negative = kkt->inertia.negative;
        residual = refine(plan, kkt);
        if (!kkt->precise && hybrid_is_accurate(plan, kkt, residual)) return HYBRID_KKT_RIGHT;
        factor_with_pivoting(plan, kkt);
        if (hybrid_is_doubtful(kkt)) return HYBRID_KKT_SINGULAR;
        if (kkt->inertia.negative != negative) return HYBRID_KKT_WRONG_INERTIA;
    }
    residual = hybrid_ldl_solve(&plan->ldl, kkt->K, kkt->factor, kkt->pivots, kkt->right,
                                kkt->solution, kkt->room, HYBRID_CORRECTIONS);
    if (!hybrid_is_accurate(plan, kkt, residual)) return HYBRID_KKT_INACCURATE;
    if (kkt->precise && !kkt->changed) correct_rows(plan, kkt, 0.0);
    return HYBRID_KKT_RIGHT;
}
