/* The least shift sigma with which the KKT matrix has n positive and m negative eigenvalues, so
 * that the step descends: a third of the last one that served, then eight times as much each
 * time, and epsilon = 1e-8 nu^(1/4) where rows are dependent (Waechter and Biegler, Math. Program.
 * 106, 2006, section 3.1); as barrier/inertia.py. */
#include <math.h>

#include "barrier/barrier.h"

static double lower(double shift) {
    shift /= HYBRID_INERTIA_DECAY;
    return shift > HYBRID_INERTIA_LEAST ? shift : HYBRID_INERTIA_LEAST;
}

/* The shift to try after one that did not do. */
static double larger(const hybrid_iterate *it, double shift, double least) {
    double next;
    if (shift != least)
        return shift * (it->shift == 0.0 ? HYBRID_INERTIA_FIRST_GROWTH : HYBRID_INERTIA_GROWTH);
    next = it->shift == 0.0 ? HYBRID_INERTIA_FIRST : lower(it->shift);
    if (next < least) next = least;
    return next == least && least > 0.0 ? HYBRID_INERTIA_STEEPER * least : next;
}

/* Keeps in the iterate what was learned. */
static void keep(hybrid_iterate *it, double shift, double epsilon, int singular,
                 double plain_epsilon, int bent) {
    int mended = singular && shift == 0.0 && epsilon > plain_epsilon;
    if (it->flat < HYBRID_INERTIA_OFTEN)
        it->flat = singular && shift > 0.0 ? it->flat + 1 : 0;
    if (it->dependent < HYBRID_INERTIA_OFTEN) it->dependent = mended ? it->dependent + 1 : 0;
    if (shift > 0.0) it->shift = shift;
    it->bent = bent ? it->bent + 1 : 0;
}

int hybrid_direction_for(hybrid_cold *cold, const double *c, hybrid_direction *d) {
    return cold->outer ? hybrid_elastic_solve(cold, cold->force, c, d->dw, d->dy)
                       : hybrid_solve(cold->plan, cold->force, c, &cold->kernel, d->dw, d->dy);
}

int hybrid_factor_with_inertia(hybrid_cold *cold, hybrid_iterate *it, double least) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double small = HYBRID_INERTIA_SMALL * pow(it->nu, HYBRID_INERTIA_POWER);
    double shift = least, first, epsilon, plain_epsilon;
    double largest = cold->at->theta > HYBRID_PACE_FEASIBLE ? HYBRID_INERTIA_FAR_LARGEST
                                                              : HYBRID_INERTIA_LARGEST;
    int singular = 0;
    if (it->flat >= HYBRID_INERTIA_OFTEN && lower(it->shift) > least) shift = lower(it->shift);
    first = shift;
    epsilon = it->dependent >= HYBRID_INERTIA_OFTEN ? small : 0.0;
    if (cold->state->rows_dependent && !cold->outer) epsilon = small;
    plain_epsilon = epsilon;
    hybrid_stiffness(form, at, it->z_lower, it->z_upper, cold->D);
    for (int i = 0; i < plan->n && cold->identity; i++) cold->D[i] += 1.0;
    for (;;) {
        int found = cold->outer ? hybrid_elastic_factor(cold, shift, epsilon)
                                : hybrid_factor(plan, cold->W, cold->D, shift, at->A, epsilon, 0,
                                                &cold->kernel);
        form->answer->factors++;
        if (found == 0) found = hybrid_direction_for(cold, at->c, &cold->direction);
        if (found == 0) {
            keep(it, shift, epsilon, singular, plain_epsilon, shift > first && !singular);
            return HYBRID_SOLVED;
        }
        singular |= found == 2 && shift == least;
        if (epsilon == 0.0 && (found == 2 || cold->kernel.inertia.negative < plan->m)) {
            epsilon = small;
            continue;
        }
        if (shift == least && found == 2) epsilon = plain_epsilon; /* rows were not to blame */
        shift = larger(it, shift, least);
        if (!(shift <= largest))
            return hybrid_no_way_on(cold, HYBRID_NOT_NEARER, HYBRID_WRONG_INERTIA);
    }
}
