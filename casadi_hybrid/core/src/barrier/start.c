/* The first iterate of the barrier method (Waechter and Biegler 2006, section 3.6), strictly inside
 * the bounds: w_i at least push*max(1, |bound|) from each, z = 1 where there is a bound, and y of
 * least squares,
 *
 *     min_y |grad f + A'y - z_lower + z_upper|.
 *
 * Where nu is not given it is 0.1, or, where it is less, the mean over all entries with bounds of
 *
 *     |grad f + A'y| min(distance to the nearer bound, 1),    y of least squares for z = 0,
 *
 * and z = nu / 0.1: with nu = 0.1 and z = 1 the barrier outweighs an objective of small gradients,
 * leads far from x0, and bounds hold the steps back from there. */
#include <math.h>

#include "feasibility/feasibility.h"
#include "barrier/barrier.h"

/* Keeps a point of the method itself, in run->work, as far from the bounds as it is. An entry that
 * is not inside moves no farther than nu / z, as on the central path. */
static void keep_distance(hybrid_run *run, double nu) {
    const hybrid_form *form = &run->form;
    double *w = run->at->of.w;
    for (int i = 0; i < run->plan->n; i++) {
        const int low = run->now.z_lower[i] > 0.0;
        const double z = low ? run->now.z_lower[i] : run->now.z_upper[i], to = nu / z;
        const double bound = low ? form->lower[i] : form->upper[i];
        const double distance = low ? run->work[i] - bound : bound - run->work[i];
        if (!(z > 0.0) || !(fabs(w[i] - bound) > distance)) continue;
        if (distance > (1.0 - HYBRID_BARRIER_TAU_MIN) * to) w[i] = run->work[i];
        else if (fabs(w[i] - bound) > to) w[i] = low ? bound + to : bound - to;
    }
}

/* The first point, inside the bounds; less far where a function is not defined there. Returns a
 * status. */
static int first_point(hybrid_run *run, double unfinished) {
    static const double shares[] = HYBRID_START_PUSH_SHARES;
    double *known = run->answer->x; /* where the functions are known: at the start */
    hybrid_copy(run->plan->n_x, run->trial->of.x, known);
    hybrid_swap_trials(&run->at, &run->trial);
    for (int k = 0; k < HYBRID_COUNT(shares); k++) {
        hybrid_copy(run->plan->n, run->work, run->at->of.w);
        hybrid_push_inside(&run->form, shares[k] * run->options->push, run->at->of.w);
        if (unfinished > 0.0) keep_distance(run, unfinished);
        if (!hybrid_evaluate_known(run, run->at, k ? 0 : known)) return HYBRID_SOLVED;
    }
    return HYBRID_UNDEFINED;
}

/* The multipliers of such a point. Of two bounds, whose net multiplier is known, the farther one
 * has the multiplier of the central path. */
static void set_unfinished_multipliers(hybrid_run *run) {
    const hybrid_form *form = &run->form;
    const hybrid_point *at = &run->at->of;
    hybrid_iterate *it = &run->now;
    for (int i = 0; i < run->plan->n; i++) {
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
static void set_warm_multipliers(hybrid_run *run) {
    const hybrid_form *form = &run->form;
    const hybrid_point *at = &run->at->of;
    hybrid_iterate *it = &run->now;
    hybrid_error error;
    hybrid_kkt_error(form, at, it, run->work, &error);
    if (hybrid_error_at(&error, 0.0) > 1.0 && it->nu < HYBRID_BARRIER_NU_WARM_FAR)
        it->nu = HYBRID_BARRIER_NU_WARM_FAR;
    hybrid_to_central_path(form, at, it);
}

/* The first nu of run->now, of residuals for z = 0 in run->work. From a point that is not feasible,
 * where these say less, it is not below that for multipliers which fit badly. */
static double fitting_nu(const hybrid_run *run) {
    const hybrid_form *form = &run->form;
    const hybrid_point *at = &run->at->of;
    const int infeasible = run->at->theta > HYBRID_FEASIBLE_C;
    const double least = infeasible ? HYBRID_BARRIER_NU_WARM_FAR : 0.0;
    double sum = 0.0;
    int bounded = 0;
    for (int i = 0; i < run->plan->n; i++) {
        const double below = form->has_lower[i] > 0.0 ? at->below[i] : INFINITY;
        const double above = form->has_upper[i] > 0.0 ? at->above[i] : INFINITY;
        if (below == INFINITY && above == INFINITY) continue;
        sum += fabs(run->work[i]) * hybrid_min(hybrid_min(below, above), 1.0);
        bounded++;
    }
    /* Nothing is known where the objective's gradient is zero. */
    if (!(sum > run->numbers->tol * bounded)) return HYBRID_BARRIER_NU_START;
    return hybrid_clamp(sum / bounded, least, HYBRID_BARRIER_NU_START);
}

/* nu and y of a start from x0 alone, and z. */
static void fit_nu(hybrid_run *run) {
    const hybrid_point *at = &run->at->of;
    hybrid_iterate *it = &run->now;
    hybrid_equal_multipliers(&run->form, 0.0, it);
    hybrid_least_squares_y(run, at, it->z_lower, it->z_upper, it->y);
    it->nu = fitting_nu(run);
    run->small_nu = it->nu < HYBRID_BARRIER_NU_START;
    hybrid_equal_multipliers(&run->form, it->nu / HYBRID_BARRIER_NU_START, it);
    hybrid_least_squares_y_again(run, at, it->z_lower, it->z_upper, it->y);
}

/* The given multipliers. Where they are implausible, and residuals are more than a hundredth of
 * them, those of bounds that are become zero, and y is to be fitted (section 3.6). Returns whether
 * it is. */
static int read_multipliers(hybrid_run *run) {
    const hybrid_residuals *start = &run->answer->start;
    const double misfit = hybrid_max(start->stationarity, start->complementarity);
    const double most =
        HYBRID_START_LAM_MAX *
        hybrid_max(hybrid_norm_inf(run->plan->n_x, run->trial->of.raw_gradient), 1.0);
    hybrid_iterate *it = &run->now;
    double largest = 0.0;
    hybrid_multipliers_in(&run->form, it->y, it->z_lower, it->z_upper, 0);
    largest = hybrid_max(largest, hybrid_norm_inf(run->plan->m, it->y));
    largest = hybrid_max(largest, hybrid_norm_inf(run->plan->n, it->z_lower));
    largest = hybrid_max(largest, hybrid_norm_inf(run->plan->n, it->z_upper));
    if (!(largest > most && misfit > 0.01 * largest)) return 0;
    for (int i = 0; i < run->plan->n; i++) {
        if (it->z_lower[i] > most) it->z_lower[i] = 0.0;
        if (it->z_upper[i] > most) it->z_upper[i] = 0.0;
    }
    return 1;
}

int hybrid_first_iterate(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    const hybrid_run_options *options = run->options;
    hybrid_iterate *it = &run->now;
    double unfinished = 0.0;
    int implausible = 0;
    if (options->near) {
        implausible = read_multipliers(run);
        unfinished = hybrid_unfinished_nu(&run->form, run->work, it->z_lower, it->z_upper);
    }
    run->small_nu = 0;
    if (first_point(run, unfinished)) return HYBRID_UNDEFINED;
    it->nu = options->nu > 0.0 ? options->nu : HYBRID_BARRIER_NU_START;
    it->nu_min = options->nu_min;
    it->theta_start = run->at->theta;
    run->f_start = run->at->of.f;
    it->t = run->setup->t0;
    if (!options->near) hybrid_equal_multipliers(&run->form, 1.0, it);
    if (run->dense)
        run->state->rows_dependent =
            hybrid_rows_are_dependent(plan, run->at->of.A, run->dense);
    if (unfinished > 0.0) {
        it->nu = unfinished;
        run->history.goes_on = 1;
        set_unfinished_multipliers(run);
        if (implausible) hybrid_least_squares_y(run, &run->at->of, it->z_lower, it->z_upper, it->y);
        return HYBRID_SOLVED;
    }
    if (options->near && !implausible) {
        set_warm_multipliers(run);
        return HYBRID_SOLVED;
    }
    if ((options->nu == 0.0 || implausible) && run->form.bounds && !run->setup->root) fit_nu(run);
    else hybrid_least_squares_y(run, &run->at->of, it->z_lower, it->z_upper, it->y);
    if (run->setup->root && plan->m) hybrid_begin_least_squares(run, run->at->theta);
    return HYBRID_SOLVED;
}
