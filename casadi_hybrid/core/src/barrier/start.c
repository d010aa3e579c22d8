/* The first iterate of the barrier method (Waechter and Biegler 2006, section 3.6). It is strictly
 * inside the bounds, w_i at least push*max(1, |bound|) from each. z = 1 for every bound, and y is
 * that of least squares,
 *
 *     min_y |grad f + A'y - z_lower + z_upper|.
 *
 * If nu is not given it is at most 0.1, and at most the mean over all entries with bounds of
 *
 *     |grad f + A'y| min(distance to the nearer bound, 1),    y of least squares for z = 0,
 *
 * and z = nu / 0.1. With nu = 0.1 and z = 1 the barrier would outweigh an objective of small
 * gradients and lead far from x0, and bounds would hold the steps back from there. */
#include <math.h>

#include "feasibility/feasibility.h"
#include "barrier/barrier.h"

/* Keeps a point of the method itself, in phase->work, as far from the bounds as it is. An entry
 * that is not inside moves no farther than nu / z, as on the central path. */
static void keep_distance(hybrid_phase *phase, double nu) {
    const hybrid_form *form = &phase->form;
    double *w = phase->at->of.w;
    for (int i = 0; i < phase->plan->n; i++) {
        const int low = phase->now.z_lower[i] > 0.0;
        const double z = low ? phase->now.z_lower[i] : phase->now.z_upper[i], to = nu / z;
        const double bound = low ? form->lower[i] : form->upper[i];
        const double distance = low ? phase->work[i] - bound : bound - phase->work[i];
        if (!(z > 0.0) || !(fabs(w[i] - bound) > distance)) continue;
        if (distance > (1.0 - HYBRID_BARRIER_TAU_MIN) * to) w[i] = phase->work[i];
        else if (fabs(w[i] - bound) > to) w[i] = low ? bound + to : bound - to;
    }
}

/* The first point, inside the bounds; less far where a function is not defined there. Returns a
 * status. */
static int first_point(hybrid_phase *phase, double unfinished) {
    static const double shares[] = HYBRID_START_PUSH_SHARES;
    double *known = phase->answer->x; /* where the functions are known: at the start */
    hybrid_copy(phase->plan->n_x, phase->trial->of.x, known);
    hybrid_swap_trials(&phase->at, &phase->trial);
    for (int k = 0; k < HYBRID_COUNT(shares); k++) {
        hybrid_copy(phase->plan->n, phase->work, phase->at->of.w);
        hybrid_push_inside(&phase->form, shares[k] * phase->options->push, phase->at->of.w);
        if (unfinished > 0.0) keep_distance(phase, unfinished);
        if (!hybrid_evaluate_known(phase, phase->at, k ? 0 : known)) return HYBRID_SOLVED;
    }
    return HYBRID_UNDEFINED;
}

/* The multipliers of such a point. Of two bounds, whose net multiplier is known, the farther one
 * has the multiplier of the central path. */
static void set_unfinished_multipliers(hybrid_phase *phase) {
    const hybrid_form *form = &phase->form;
    const hybrid_point *at = &phase->at->of;
    hybrid_iterate *it = &phase->now;
    for (int i = 0; i < phase->plan->n; i++) {
        const int low = form->has_lower[i] > 0.0, high = form->has_upper[i] > 0.0;
        const double far = low && high ? it->nu / hybrid_max(at->below[i], at->above[i]) : 0.0;
        if (low) it->z_lower[i] += far;
        if (high) it->z_upper[i] += far;
        if (low && it->z_lower[i] == 0.0) it->z_lower[i] = it->nu / at->below[i];
        if (high && it->z_upper[i] == 0.0) it->z_upper[i] = it->nu / at->above[i];
    }
}

/* The given multipliers, those of bounds at least on the central path of nu, and with a small nu
 * only where they nearly solve this problem. */
static void set_warm_multipliers(hybrid_phase *phase) {
    const hybrid_form *form = &phase->form;
    const hybrid_point *at = &phase->at->of;
    hybrid_iterate *it = &phase->now;
    hybrid_error error;
    hybrid_kkt_error(form, at, it, phase->work, &error);
    if (hybrid_error_at(&error, 0.0) > 1.0 && it->nu < HYBRID_BARRIER_NU_WARM_FAR)
        it->nu = HYBRID_BARRIER_NU_WARM_FAR;
    hybrid_to_central_path(form, at, it);
}

/* The first nu of phase->now, of residuals for z = 0 in phase->work. From a point that is not
 * feasible, where these say less, it is not below that for multipliers which fit badly. */
static double fitting_nu(const hybrid_phase *phase) {
    const hybrid_form *form = &phase->form;
    const hybrid_point *at = &phase->at->of;
    const int infeasible = phase->at->theta > HYBRID_FEASIBLE_C;
    const double least = infeasible ? HYBRID_BARRIER_NU_WARM_FAR : 0.0;
    double sum = 0.0;
    int bounded = 0;
    for (int i = 0; i < phase->plan->n; i++) {
        const double below = form->has_lower[i] > 0.0 ? at->below[i] : INFINITY;
        const double above = form->has_upper[i] > 0.0 ? at->above[i] : INFINITY;
        if (below == INFINITY && above == INFINITY) continue;
        sum += fabs(phase->work[i]) * hybrid_min(hybrid_min(below, above), 1.0);
        bounded++;
    }
    /* Nothing is known where the objective's gradient is zero. */
    if (!(sum > phase->numbers->tol * bounded)) return HYBRID_BARRIER_NU_START;
    return hybrid_clamp(sum / bounded, least, HYBRID_BARRIER_NU_START);
}

/* nu and y of a start from x0 alone, and z. */
static void fit_nu(hybrid_phase *phase) {
    const hybrid_point *at = &phase->at->of;
    hybrid_iterate *it = &phase->now;
    hybrid_equal_multipliers(&phase->form, 0.0, it);
    hybrid_least_squares_y(phase, at, it->z_lower, it->z_upper, phase->options->lam_most, it->y);
    it->nu = fitting_nu(phase);
    phase->small_nu = it->nu < HYBRID_BARRIER_NU_START;
    hybrid_equal_multipliers(&phase->form, it->nu / HYBRID_BARRIER_NU_START, it);
    hybrid_least_squares_y_again(phase, at, it->z_lower, it->z_upper, phase->options->lam_most,
                                 it->y);
}

/* The given multipliers. Where they are implausible, and residuals are more than a hundredth of
 * them, those of bounds that are become zero, and y is to be fitted (section 3.6). Returns whether
 * it is. */
static int read_multipliers(hybrid_phase *phase) {
    const hybrid_residuals *start = &phase->answer->start;
    const double misfit = hybrid_max(start->stationarity, start->complementarity);
    const double most =
        HYBRID_START_LAM_MAX *
        hybrid_max(hybrid_norm_inf(phase->plan->n_x, phase->trial->of.raw_gradient), 1.0);
    hybrid_iterate *it = &phase->now;
    double largest = 0.0;
    hybrid_multipliers_in(&phase->form, it->y, it->z_lower, it->z_upper, 0);
    largest = hybrid_max(largest, hybrid_norm_inf(phase->plan->m, it->y));
    largest = hybrid_max(largest, hybrid_norm_inf(phase->plan->n, it->z_lower));
    largest = hybrid_max(largest, hybrid_norm_inf(phase->plan->n, it->z_upper));
    if (!(largest > most && misfit > 0.01 * largest)) return 0;
    for (int i = 0; i < phase->plan->n; i++) {
        if (it->z_lower[i] > most) it->z_lower[i] = 0.0;
        if (it->z_upper[i] > most) it->z_upper[i] = 0.0;
    }
    return 1;
}

int hybrid_first_iterate(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_phase_options *options = phase->options;
    hybrid_iterate *it = &phase->now;
    double unfinished = 0.0;
    int implausible = 0;
    if (options->near) {
        implausible = read_multipliers(phase);
        unfinished = hybrid_unfinished_nu(&phase->form, phase->work, it->z_lower, it->z_upper);
    }
    phase->small_nu = 0;
    if (first_point(phase, unfinished)) return HYBRID_UNDEFINED;
    it->nu = options->nu > 0.0 ? options->nu : HYBRID_BARRIER_NU_START;
    it->nu_min = options->nu_min;
    it->theta_start = phase->at->theta;
    phase->f_start = phase->at->of.f;
    it->t = phase->setup->t0;
    if (!options->near) hybrid_equal_multipliers(&phase->form, 1.0, it);
    if (phase->dense)
        phase->state->rows_dependent =
            hybrid_rows_are_dependent(plan, phase->at->of.A, phase->dense);
    if (unfinished > 0.0) {
        it->nu = unfinished;
        phase->history.goes_on = 1;
        set_unfinished_multipliers(phase);
        if (implausible)
            hybrid_least_squares_y(phase, &phase->at->of, it->z_lower, it->z_upper,
                                   phase->options->lam_most, it->y);
        return HYBRID_SOLVED;
    }
    if (options->near && !implausible) {
        set_warm_multipliers(phase);
        return HYBRID_SOLVED;
    }
    if ((options->nu == 0.0 || implausible) && phase->form.bounds && !phase->setup->root)
        fit_nu(phase);
    else hybrid_least_squares_y(phase, &phase->at->of, it->z_lower, it->z_upper,
                                phase->options->lam_most, it->y);
    if (phase->setup->root && plan->m) hybrid_begin_least_squares(phase, phase->at->theta);
    return HYBRID_SOLVED;
}
