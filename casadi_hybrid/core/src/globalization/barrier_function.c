/* The barrier function phi_nu(w) = f(w) - nu sum log(distances to the bounds), its gradient, and
 * the violation theta = |c|_1. Entries with one bound alone are damped (Waechter and Biegler 2006,
 * section 3.7). */
#include <math.h>

#include "globalization/globalization.h"

void hybrid_bound_terms(const hybrid_form *form, hybrid_trial *trial) {
    const double *w = trial->of.w, *below = trial->of.below, *above = trial->of.above;
    const int n = form->plan->n;
    double beyond[HYBRID_BLOCK], alone[HYBRID_BLOCK];
    trial->outside = 0;
    trial->linear = 0.0;
    for (int from = 0; from < n; from += HYBRID_BLOCK) {
        int size = hybrid_block(from, n);
        for (int k = 0; k < size; k++) {
            int i = from + k;
            double has_lower = form->has_lower[i], has_upper = form->has_upper[i];
            double under = form->lower[i] - w[i], over = w[i] - form->upper[i];
            /* The bound is known as exactly as this, and so is w. */
            beyond[k] = (under > over ? under : over) - 2.0 * form->room[i];
            alone[k] = (has_lower - has_lower * has_upper) * below[i] +
                       (has_upper - has_lower * has_upper) * above[i];
        }
        trial->outside |= hybrid_max_entry(size, beyond) > 0.0;
        trial->linear += hybrid_norm1(size, alone);
    }
}

/* Completes a trial after the evaluation of its functions. */
static int visited(hybrid_phase *phase, hybrid_trial *trial, int failed) {
    const hybrid_form *form = &phase->form;
    hybrid_point *at = &trial->of;
    hybrid_distances(&phase->form, at);
    if (failed) {
        phase->state->undefined += !hybrid_is_ended(form->functions); /* or it was not evaluated */
        hybrid_copy(phase->plan->n_x, at->x, phase->state->x_undefined);
        return 1;
    }
    trial->theta = hybrid_norm1(form->plan->m, at->c);
    trial->logs =
        hybrid_sum_log(form->plan->n, at->below) + hybrid_sum_log(form->plan->n, at->above);
    hybrid_bound_terms(form, trial);
    return 0;
}

int hybrid_evaluate_known(hybrid_phase *phase, hybrid_trial *trial, const double *known_x) {
    return visited(phase, trial, hybrid_evaluate(&phase->form, &trial->of, known_x));
}

int hybrid_evaluate_problem(hybrid_phase *phase, hybrid_trial *trial) {
    return hybrid_evaluate_known(phase, trial, 0);
}

int hybrid_try_problem(hybrid_phase *phase, hybrid_trial *trial) {
    return visited(phase, trial, hybrid_evaluate_values(&phase->form, &trial->of));
}

int hybrid_complete_problem(hybrid_phase *phase, hybrid_trial *trial) {
    return trial->of.partial && hybrid_evaluate_problem(phase, trial);
}

int hybrid_search_ends(const hybrid_phase *phase) {
    const hybrid_functions *functions = phase->form.functions;
    const hybrid_phase *outer = phase->elastic.outer ? phase->elastic.outer : phase;
    if (hybrid_is_ended(functions)) return HYBRID_STOPPED;
    return hybrid_is_late(functions, outer->history.began + phase->setup->max_time) ? HYBRID_LATE
                                                                                    : HYBRID_SOLVED;
}

double hybrid_phi(const hybrid_form *form, const hybrid_trial *trial, double nu) {
    if (trial->outside) return INFINITY;
    if (!form->bounds) return trial->of.f;
    return trial->of.f - nu * (trial->logs - HYBRID_BARRIER_KAPPA_D * trial->linear);
}

void hybrid_gradient_of_phi(const hybrid_form *form, const hybrid_trial *at, double nu,
                            double *restrict slope) {
    const double *has_lower = form->has_lower, *has_upper = form->has_upper;
    const double *below = at->of.below, *above = at->of.above, *gradient = at->of.gradient;
    for (int i = 0; i < form->plan->n; i++) {
        double Aty = has_upper[i] / above[i] - has_lower[i] / below[i];
        double alone = HYBRID_BARRIER_KAPPA_D * nu * (has_lower[i] - has_upper[i]);
        slope[i] = gradient[i] + nu * Aty + alone;
    }
}

void hybrid_filter_pair_at(const hybrid_form *form, const hybrid_trial *at, double nu,
                           hybrid_filter_pair *pair) {
    pair->theta = at->theta;
    pair->phi = hybrid_phi(form, at, nu);
    hybrid_gradient_of_phi(form, at, nu, pair->gradient);
}

int hybrid_measure_noise(hybrid_phase *phase, const hybrid_trial *trial, double part, double before,
                         double *off) {
    const hybrid_point *at = &phase->at->of, *to = &trial->of;
    const double range = hybrid_max(fabs(at->f), fabs(at->f - phase->f_start));
    double slope = 0.0;
    int noise;
    for (int i = 0; i < phase->plan->n; i++) slope += at->gradient[i] * (to->w[i] - at->w[i]);
    *off = fabs(to->f - at->f - slope);
    noise =
        to->f == at->f || (part <= HYBRID_LINE_SEARCH_SHORT && *off > HYBRID_NOISE_KEPT * before);
    if (!noise || !(*off > phase->noise && *off <= HYBRID_NOISE_CAP * range)) return 0;
    phase->noise = 2.0 * *off; /* errors of both signs differ by so much */
    return 1;
}
