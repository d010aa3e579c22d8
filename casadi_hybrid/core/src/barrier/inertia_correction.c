/* The inertia correction (Waechter and Biegler, Math. Program. 106, 2006, section 3.1): a shift
 * sigma with which the KKT matrix has n positive and m negative eigenvalues, so that the step
 * descends.
 *
 * The first one after zero is a third of the last one that served; each further one is eight times
 * as large. epsilon = 1e-8 if rows are dependent. The third comes before zero if zero has not
 * served twice in a row, until the third has served at once twice in a row. */
#include <math.h>

#include "barrier/barrier.h"

/* The shift to try after one that did not serve. */
static double next_shift(const hybrid_iterate *it, double shift, double least) {
    double next = it->shift == 0.0 ? HYBRID_INERTIA_DELTA_W_0 : it->shift / HYBRID_INERTIA_DECAY;
    if (shift != least)
        return shift *
               (it->shift == 0.0 ? HYBRID_INERTIA_KAPPA_W_PLUS_BAR : HYBRID_INERTIA_KAPPA_W_PLUS);
    return next > least ? next : HYBRID_INERTIA_KAPPA_W_PLUS * least;
}

/* Returns whether K without a shift shows the curvature of the problem: the barrier hardly adds
 * to that of entries whose bounds are not active, as it does far from a solution. */
static int shows_curvature(const hybrid_phase *phase) {
    const hybrid_iterate *it = &phase->now;
    const hybrid_point *at = &phase->at->of;
    double added = 0.0;
    if (phase->identity || phase->error.most > sqrt(phase->numbers->tol)) return 0;
    for (int i = 0; i < phase->plan->n; i++)
        if (it->z_lower[i] <= at->below[i] && it->z_upper[i] <= at->above[i])
            added = hybrid_max(added, phase->D[i]);
    return added <=
           HYBRID_INERTIA_BARRIER_CURVATURE * hybrid_norm_inf(phase->plan->nnz_W, phase->W);
}

int hybrid_solve_direction(hybrid_phase *phase, const double *c, hybrid_direction *d) {
    return phase->elastic.outer
               ? hybrid_elastic_solve(phase, phase->force, c, d->dw, d->dy)
               : hybrid_solve_kkt(phase->plan, phase->force, c, &phase->kkt, d->dw, d->dy);
}

int hybrid_factor_with_inertia(hybrid_phase *phase, hybrid_iterate *it, double least) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const int dependent = phase->state->rows_dependent && !phase->elastic.outer;
    const double plain_epsilon = dependent ? HYBRID_INERTIA_DELTA_C : 0.0;
    const double largest = phase->at->theta > HYBRID_FEASIBLE_C ? HYBRID_INERTIA_FAR_DELTA_W_MAX
                                                                : HYBRID_INERTIA_DELTA_W_MAX;
    const int lessen = least == 0.0 && it->indefinite >= HYBRID_INERTIA_TURNS &&
                       it->served < HYBRID_INERTIA_TURNS;
    const double first = lessen ? it->shift / HYBRID_INERTIA_DECAY : least;
    double shift = first, epsilon = plain_epsilon;
    int singular = 0;
    hybrid_barrier_diagonal(form, at, it->z_lower, it->z_upper, phase->D);
    for (int i = 0; i < plan->n && phase->identity; i++) phase->D[i] += 1.0;
    for (;;) {
        int result = phase->elastic.outer ? hybrid_elastic_factor(phase, shift, epsilon)
                                          : hybrid_factor(plan, phase->W, phase->D, shift, at->A,
                                                          epsilon, 0, &phase->kkt);
        form->answer->factors++;
        if (result == HYBRID_KKT_RIGHT)
            result = hybrid_solve_direction(phase, at->c, &phase->direction);
        if (result == HYBRID_KKT_RIGHT) {
            it->indefinite = shift > least && !singular ? it->indefinite + 1 : 0;
            it->served = shift == first ? it->served + 1 : 0;
            if (shift > 0.0) it->shift = shift;
            phase->damped = shift > 0.0 || phase->identity || phase->elastic.outer;
            if (least == 0.0) it->curved = shift == 0.0 && shows_curvature(phase);
            return HYBRID_SOLVED;
        }
        singular |= result == HYBRID_KKT_SINGULAR && shift == least;
        if (epsilon == 0.0 &&
            (result == HYBRID_KKT_SINGULAR || phase->kkt.inertia.negative < plan->m)) {
            epsilon = HYBRID_INERTIA_DELTA_C;
            continue;
        }
        if (shift == least && result == HYBRID_KKT_SINGULAR)
            epsilon = plain_epsilon; /* rows are not the reason */
        shift = next_shift(it, shift, least);
        if (!(shift <= largest)) return hybrid_fail(phase, HYBRID_NOT_NEARER, HYBRID_WRONG_INERTIA);
    }
}
