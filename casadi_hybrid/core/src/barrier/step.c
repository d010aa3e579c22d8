/* One Newton step of the barrier method: the direction of the KKT system,
 *
 *     w + alpha dw,  y + alpha_y dy,  z + alpha_z dz.
 *
 * alpha and alpha_z are those of the fraction to the boundary; alpha is halved until the filter
 * accepts (Waechter and Biegler, Math. Program. 106, 2006, section 2.3), with second-order
 * corrections of c (section 2.4) and tiny steps (section 3.9). alpha_y is between both, and has the
 * least
 *
 *     |grad f + A'y - z_lower + z_upper|_2    at the new point
 *
 * (IPOPT's option alpha_for_y, "safer-min-dual-infeas"). If noise of f may hide its decrease, the
 * slopes at both ends of the whole step decide (the approximate Wolfe conditions of Hager and
 * Zhang, SIAM J. Optim. 16, 2005). */
#include <math.h>
#include <string.h>

#include "barrier/barrier.h"

/* The filter accepts no step: no status of the method, which goes on in other ways. */
enum { NO_STEP = -1 };

/* The direction's dz and lengths, where (dw, dy) are known. */
static void complete_direction(hybrid_phase *phase, const hybrid_iterate *it, hybrid_direction *d) {
    hybrid_dual_steps(&phase->form, &phase->at->of, it, d);
    hybrid_fraction_to_boundary(&phase->form, &phase->at->of, it, d);
}

/* Evaluates f and c at w + alpha dw. Returns 0, or 1 where a function is not defined. */
static int try_at(hybrid_phase *phase, double alpha, const hybrid_direction *d,
                  hybrid_trial *trial) {
    const double *w = phase->at->of.w;
    for (int i = 0; i < phase->plan->n; i++) trial->of.w[i] = w[i] + alpha * d->dw[i];
    return hybrid_try(phase, trial);
}

/* Evaluates all functions there. */
static int evaluate_at(hybrid_phase *phase, double alpha) {
    return try_at(phase, alpha, &phase->direction, phase->trial) ||
           hybrid_complete(phase, phase->trial);
}

/* alpha_y for phase->next, of which the rest is known. */
static double choose_alpha_y(const hybrid_phase *phase, const hybrid_iterate *it) {
    const hybrid_direction *d = &phase->direction;
    const hybrid_iterate *next = &phase->next;
    const hybrid_point *to = &phase->trial->of;
    const double least = hybrid_min(next->alpha, next->alpha_z);
    const double most = hybrid_max(next->alpha, next->alpha_z);
    double product = 0.0, square = 0.0;
    if (least == most) return least;
    for (int j = 0; j < phase->plan->n; j++) {
        const double slope = to->gradient[j] + hybrid_entry_of_At(phase->plan, to->A, it->y, j) -
                             next->z_lower[j] + next->z_upper[j];
        const double change = hybrid_entry_of_At(phase->plan, to->A, d->dy, j);
        product += slope * change;
        square += change * change;
    }
    return square > 0.0 ? hybrid_clamp(-product / square, least, most) : least;
}

/* phase->next is the iterate at phase->trial, after a part alpha of the direction. */
static void make_next(hybrid_phase *phase, const hybrid_iterate *it, double alpha) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_direction *d = &phase->direction;
    hybrid_iterate *next = &phase->next;
    double alpha_y;
    hybrid_copy_scalars(it, next);
    memcpy(next->filter, it->filter, 2 * (size_t)it->entries * sizeof(double));
    for (int i = 0; i < plan->n; i++) {
        next->z_lower[i] = it->z_lower[i] + d->alpha_z * d->dz_lower[i];
        next->z_upper[i] = it->z_upper[i] + d->alpha_z * d->dz_upper[i];
    }
    hybrid_reset_duals(&phase->form, &phase->trial->of, it->nu, next->z_lower, next->z_upper);
    next->alpha = alpha;
    next->alpha_z = d->alpha_z;
    next->stepped = 1;
    if (!phase->damped)
        phase->trial->of.inner =
            hybrid_settled(&phase->form, &phase->at->of, phase->W, phase->D, 0, d->dw);
    alpha_y = choose_alpha_y(phase, it);
    for (int i = 0; i < plan->m; i++) next->y[i] = it->y[i] + alpha_y * d->dy[i];
}

/* Second-order corrections on the same factorization. Returns as hybrid_filter_accepts, with the
 * point and the direction in place of those that were refused. */
static int second_order_correction(hybrid_phase *phase, const hybrid_iterate *it, double slope) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    double alpha = phase->direction.alpha, theta = phase->trial->theta;
    double *residual = phase->residual, size = hybrid_norm_inf(plan->n, at->w);
    for (int i = 0; i < plan->m; i++) residual[i] = alpha * at->c[i] + phase->trial->of.c[i];
    for (int number = 0; number < phase->options->corrections; number++) {
        hybrid_direction *second = &phase->other;
        int type;
        if (hybrid_solve_direction(phase, residual, second)) return HYBRID_REJECTED;
        complete_direction(phase, it, second);
        if (try_at(phase, second->alpha, second, phase->corrected)) return HYBRID_REJECTED;
        type =
            hybrid_filter_accepts(&phase->pair, it, size, phase->corrected->theta,
                                  hybrid_phi(&phase->form, phase->corrected, it->nu), alpha, slope);
        if (type && hybrid_complete(phase, phase->corrected)) return HYBRID_REJECTED;
        if (type) {
            hybrid_direction saved = phase->direction;
            phase->direction = phase->other;
            phase->other = saved;
            hybrid_swap_trials(&phase->trial, &phase->corrected);
            return type;
        }
        if (phase->corrected->theta > HYBRID_LINE_SEARCH_KAPPA_SOC * theta) return HYBRID_REJECTED;
        theta = phase->corrected->theta;
        for (int i = 0; i < plan->m; i++)
            residual[i] = second->alpha * residual[i] + phase->corrected->of.c[i];
    }
    return HYBRID_REJECTED;
}

/* A step of no more than rounding is taken without the filter. Returns a status. */
static int tiny_step(hybrid_phase *phase, const hybrid_iterate *it) {
    double alpha = phase->direction.alpha;
    if (it->tiny && it->nu <= it->nu_min)
        return hybrid_fail(phase, HYBRID_NOT_NEARER, HYBRID_TINY_STEPS);
    /* w stays where it is if a function is not defined there. */
    if (evaluate_at(phase, alpha) && evaluate_at(phase, 0.0)) return HYBRID_UNDEFINED;
    make_next(phase, it, alpha);
    phase->next.tiny = it->tiny + 1;
    /* The second in a row: no more can be reached for this nu. */
    if (it->tiny) hybrid_set_barrier(&phase->next, hybrid_next_nu(it->nu, it->nu_min));
    return HYBRID_SOLVED;
}

/* Test by slopes of a refused whole step that has raised phi by no more than noise. The filter
 * takes the change of phi that the slopes at both ends predict. The error has to fall (as in
 * IPOPT's soft restoration). Returns as hybrid_filter_accepts. */
static int accepted_by_slopes(hybrid_phase *phase, const hybrid_iterate *it, double alpha,
                              double rise, double slope) {
    const hybrid_filter_pair *pair = &phase->pair;
    const hybrid_trial *trial = phase->trial;
    double size = hybrid_norm_inf(phase->plan->n, phase->at->of.w), change = 0.0;
    hybrid_error error;
    int type;
    if (!hybrid_may_be_noise(phase, rise, pair->phi) || hybrid_complete(phase, phase->trial))
        return 0;
    hybrid_gradient_of_phi(&phase->form, trial, it->nu, phase->work);
    for (int i = 0; i < phase->plan->n; i++)
        change += 0.5 * alpha * (pair->gradient[i] + phase->work[i]) * phase->direction.dw[i];
    if (!hybrid_may_be_noise(phase, rise - change, pair->phi)) return 0;
    type = hybrid_filter_accepts(pair, it, size, trial->theta, pair->phi + change, alpha, slope);
    if (!type) return 0;
    make_next(phase, it, alpha);
    hybrid_kkt_error(&phase->form, &trial->of, &phase->next, phase->work, &error);
    if (hybrid_error_at(&error, it->nu) >
        HYBRID_LINE_SEARCH_SLOPES_ERROR * hybrid_error_at(&phase->error, it->nu))
        return 0;
    return type;
}

/* The whole step and the last two trial points, for the tests of noise. */
typedef struct {
    double alpha;  /* of the whole step */
    double risen;  /* phi, by the whole step */
    double off[2]; /* distances of f from its tangent, at the last two trial points */
} noise_tests;

/* Tests of a refused trial point for noise of f: by slopes, or whether the whole step may be tried
 * once more, at twice its *alpha. Returns as hybrid_filter_accepts. */
static int test_noise(hybrid_phase *phase, const hybrid_iterate *it, double slope, double *alpha,
                      noise_tests *tests) {
    const double before = tests->off[0], part = *alpha / tests->alpha;
    int type = HYBRID_REJECTED;
    tests->off[0] = tests->off[1];
    if (*alpha == tests->alpha)
        type = accepted_by_slopes(phase, it, *alpha, tests->risen, slope);
    if (!type && hybrid_measure_noise(phase, phase->trial, part, before, &tests->off[1]) &&
        tests->risen <= phase->noise)
        *alpha = 2.0 * tests->alpha;
    return type;
}

/* The accepted trial point becomes the next iterate, after `cut` short steps in a row. */
static void accept_trial(hybrid_phase *phase, const hybrid_iterate *it, double alpha, int type,
                         int cut) {
    hybrid_iterate *next = &phase->next;
    make_next(phase, it, alpha);
    next->tiny = 0;
    next->cut = alpha <= HYBRID_LINE_SEARCH_SHORT * phase->direction.alpha ? cut + 1 : 0;
    if (next->cut == 1) next->theta_cut = phase->pair.theta;
    if (type == HYBRID_H_TYPE) hybrid_filter_add(&phase->pair, next);
}

/* Returns whether short steps call for a restoration: the filter keeps them short, and far from
 * feasibility theta has hardly fallen meanwhile. */
static int is_held_by_filter(const hybrid_phase *phase, const hybrid_iterate *it) {
    const double theta = phase->pair.theta;
    return theta > HYBRID_FEASIBLE_C && theta > HYBRID_LINE_SEARCH_SHORT_THETA * it->theta_cut;
}

/* The filter line search. Returns HYBRID_SOLVED with the new iterate, NO_STEP, or a status. */
static int line_search(hybrid_phase *phase, const hybrid_iterate *it) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_filter_pair *pair = &phase->pair;
    const double size = hybrid_norm_inf(plan->n, phase->at->of.w);
    const int many_short = it->cut >= HYBRID_LINE_SEARCH_SHORT_STEPS && plan->m;
    noise_tests tests = {phase->direction.alpha, INFINITY, {INFINITY, INFINITY}};
    double slope = 0.0, alpha_min, alpha;
    int first = 1;
    if (hybrid_norm_inf(plan->n, phase->direction.dw) / (1.0 + size) < HYBRID_LINE_SEARCH_TINY_STEP)
        return tiny_step(phase, it);
    for (int i = 0; i < plan->n; i++) slope += pair->gradient[i] * phase->direction.dw[i];
    alpha_min = hybrid_alpha_min(pair, it->theta_start, slope);
    if (many_short && is_held_by_filter(phase, it)) return NO_STEP;
    for (alpha = tests.alpha; alpha >= alpha_min; alpha *= 0.5, first = 0) {
        double phi;
        int type, end = hybrid_search_ends(phase);
        if (end) return end;
        if (try_at(phase, alpha, &phase->direction, phase->trial)) continue;
        phi = hybrid_phi(&phase->form, phase->trial, it->nu);
        if (alpha == tests.alpha) tests.risen = phi - pair->phi;
        type = hybrid_filter_accepts(pair, it, size, phase->trial->theta, phi, alpha, slope);
        if (!type && first && phase->trial->theta >= pair->theta) {
            type = second_order_correction(phase, it, slope);
            if (type) alpha = phase->direction.alpha;
        }
        if (!type && !phase->elastic.outer) type = test_noise(phase, it, slope, &alpha, &tests);
        if (!type || hybrid_complete(phase, phase->trial)) continue;
        accept_trial(phase, it, alpha, type, many_short ? 0 : it->cut);
        return HYBRID_SOLVED;
    }
    return NO_STEP;
}

/* The distance of the trial point from the iterate, relative to 1 + |w|. */
static double relative_step(const hybrid_phase *phase) {
    const double *w = phase->at->of.w, *new = phase->trial->of.w;
    double distance = 0.0;
    for (int i = 0; i < phase->plan->n; i++) distance = hybrid_max(distance, fabs(new[i] - w[i]));
    return distance / (1.0 + hybrid_norm_inf(phase->plan->n, w));
}

int hybrid_newton_step(hybrid_phase *phase, hybrid_iterate *it) {
    const hybrid_plan *plan = phase->plan;
    double least = 0.0;
    if (phase->elastic.outer ? hybrid_hessian(&phase->elastic.outer->form, &phase->at->base->of,
                                              it->y, HYBRID_ELASTIC_OBJECTIVE, phase->W)
                             : hybrid_hessian_of_phase(phase))
        return HYBRID_UNDEFINED;
    hybrid_filter_pair_at(&phase->form, phase->at, it->nu, &phase->pair);
    for (int i = 0; i < plan->n; i++) phase->force[i] = phase->Aty[i] + phase->pair.gradient[i];
    for (;;) {
        int status = hybrid_factor_with_inertia(phase, it, least);
        if (status) return status;
        complete_direction(phase, it, &phase->direction);
        status = line_search(phase, it);
        if (status == HYBRID_SOLVED && least > 0.0 && relative_step(phase) <= HYBRID_STEP_ROUNDING)
            return HYBRID_BLOCKED;
        if (status != NO_STEP) return status;
        /* Near feasibility the model of the objective has failed: a shorter, steeper step. */
        least *= HYBRID_STEEPER_SHIFT_GROWTH;
        if (least < HYBRID_STEEPER_SHIFT_FIRST) least = HYBRID_STEEPER_SHIFT_FIRST;
        if (phase->pair.theta > HYBRID_FEASIBLE_C || least > HYBRID_STEEPER_SHIFT_LARGEST)
            return HYBRID_BLOCKED;
    }
}
