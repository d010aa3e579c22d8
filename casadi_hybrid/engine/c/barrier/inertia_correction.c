/* The inertia correction: the least shift sigma with which the KKT matrix has n positive and m
 * negative eigenvalues, so that the step descends; a third of the last one that served, then eight
 * times as much each time, and epsilon = 1e-8 where rows are dependent (Waechter and Biegler, Math.
 * Program. 106, 2006, section 3.1). */
#include "barrier/barrier.h"

/* The shift to try after one that did not serve. */
static double larger(const hybrid_iterate *it, double shift, double least) {
    double next;
    if (shift != least)
        return shift * (it->shift == 0.0 ? HYBRID_INERTIA_FIRST_GROWTH : HYBRID_INERTIA_GROWTH);
    next = it->shift == 0.0 ? HYBRID_INERTIA_FIRST : it->shift / HYBRID_INERTIA_DECAY;
    if (next < least) next = least;
    return next == least && least > 0.0 ? HYBRID_INERTIA_GROWTH * least : next;
}

/* Saves in the iterate what the next one begins with. */
static void keep(hybrid_iterate *it, double shift, double epsilon, int singular,
                 double plain_epsilon, int indefinite) {
    int mended = singular && shift == 0.0 && epsilon > plain_epsilon;
    if (it->flat < HYBRID_INERTIA_OFTEN) it->flat = singular && shift > 0.0 ? it->flat + 1 : 0;
    if (it->dependent < HYBRID_INERTIA_OFTEN) it->dependent = mended ? it->dependent + 1 : 0;
    if (shift > 0.0) it->shift = shift;
    it->indefinite = indefinite ? it->indefinite + 1 : 0;
}

int hybrid_direction_for(hybrid_run *run, const double *c, hybrid_direction *d) {
    return run->elastic.outer
               ? hybrid_elastic_solve(run, run->force, c, d->dw, d->dy)
               : hybrid_solve_kkt(run->plan, run->force, c, &run->kkt, d->dw, d->dy);
}

int hybrid_factor_with_inertia(hybrid_run *run, hybrid_iterate *it, double least) {
    const hybrid_form *form = &run->form;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const double next = it->shift / HYBRID_INERTIA_DECAY;
    const double first = it->flat >= HYBRID_INERTIA_OFTEN ? hybrid_max(next, least) : least;
    const double largest = run->at->theta > HYBRID_PROGRESS_FEASIBLE ? HYBRID_INERTIA_FAR_LARGEST
                                                                     : HYBRID_INERTIA_LARGEST;
    double shift = first, epsilon, plain_epsilon;
    int singular = 0;
    epsilon = it->dependent >= HYBRID_INERTIA_OFTEN ? HYBRID_INERTIA_EPSILON : 0.0;
    if (run->state->rows_dependent && !run->elastic.outer) epsilon = HYBRID_INERTIA_EPSILON;
    plain_epsilon = epsilon;
    hybrid_stiffness(form, at, it->z_lower, it->z_upper, run->D);
    for (int i = 0; i < plan->n && run->identity; i++) run->D[i] += 1.0;
    for (;;) {
        int found = run->elastic.outer
                        ? hybrid_elastic_factor(run, shift, epsilon)
                        : hybrid_factor(plan, run->W, run->D, shift, at->A, epsilon, 0, &run->kkt);
        form->answer->factors++;
        if (found == 0) found = hybrid_direction_for(run, at->c, &run->direction);
        if (found == 0) {
            keep(it, shift, epsilon, singular, plain_epsilon, shift > first && !singular);
            return HYBRID_SOLVED;
        }
        singular |= found == 2 && shift == least;
        if (epsilon == 0.0 && (found == 2 || run->kkt.inertia.negative < plan->m)) {
            epsilon = HYBRID_INERTIA_EPSILON;
            continue;
        }
        if (shift == least && found == 2) epsilon = plain_epsilon; /* rows are not the reason */
        shift = larger(it, shift, least);
        if (!(shift <= largest))
            return hybrid_no_way_on(run, HYBRID_NOT_NEARER, HYBRID_WRONG_INERTIA);
    }
}
