/* The barrier function phi_nu(w) = f(w) - nu sum log(distances to the bounds), damped where there
 * is one bound alone, its gradient, and the violation theta = |c|_1. */
#include <math.h>

#include "globalization/globalization.h"

void hybrid_look_outside(const hybrid_form *form, hybrid_spot *spot) {
    const double *w = spot->of.w, *below = spot->of.below, *above = spot->of.above;
    const int n = form->plan->n;
    double beyond[HYBRID_BLOCK], alone[HYBRID_BLOCK];
    spot->outside = 0;
    spot->linear = 0.0;
    for (int from = 0; from < n; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, n);
        for (int k = 0; k < size; k++) {
            int i = from + k;
            double has_lower = form->has_lower[i], has_upper = form->has_upper[i];
            double under = form->lower[i] - w[i], over = w[i] - form->upper[i];
            beyond[k] = (under > over ? under : over) - HYBRID_FORM_BEYOND * form->room[i];
            alone[k] = (has_lower - has_lower * has_upper) * below[i] +
                       (has_upper - has_lower * has_upper) * above[i];
        }
        spot->outside |= hybrid_most(size, beyond) > 0.0;
        spot->linear += hybrid_sum(size, alone);
    }
}

int hybrid_visit_problem(hybrid_cold *cold, hybrid_spot *spot) {
    return hybrid_visit_known(cold, spot, 0);
}

int hybrid_visit_known(hybrid_cold *cold, hybrid_spot *spot, const double *known_x) {
    const hybrid_form *form = &cold->form;
    hybrid_point *at = &spot->of;
    hybrid_distances(&cold->form, at);
    if (hybrid_evaluate(&cold->form, at, known_x)) {
        const hybrid_observer *observer = form->functions->observer;
        cold->state->undefined += !(observer && observer->ended); /* or it was not evaluated */
        hybrid_set(cold->plan->n_x, at->x, cold->state->x_undefined);
        return 1;
    }
    spot->theta = hybrid_sum(form->plan->m, at->c);
    spot->logs = hybrid_logs(form->plan->n, at->below) + hybrid_logs(form->plan->n, at->above);
    hybrid_look_outside(form, spot);
    return 0;
}

double hybrid_phi(const hybrid_form *form, const hybrid_spot *spot, double nu) {
    if (spot->outside) return INFINITY;
    if (!form->bounds) return spot->of.f;
    return spot->of.f - nu * (spot->logs - HYBRID_MERIT_DAMPING * spot->linear);
}

void hybrid_weigh(const hybrid_form *form, const hybrid_spot *at, double nu,
                  hybrid_worth *worth) {
    const double *has_lower = form->has_lower, *has_upper = form->has_upper;
    const double *below = at->of.below, *above = at->of.above, *gradient = at->of.gradient;
    double *restrict slope = worth->gradient;
    worth->theta = at->theta;
    worth->phi = hybrid_phi(form, at, nu);
    for (int i = 0; i < form->plan->n; i++) {
        double pull = has_upper[i] / above[i] - has_lower[i] / below[i];
        double alone = HYBRID_MERIT_DAMPING * nu * (has_lower[i] - has_upper[i]);
        slope[i] = gradient[i] + nu * pull + alone;
    }
}
