/* Refinement of a solution if rounding explains a part of its residuals. A bound is estimated to be
 * active if its z exceeds the distance to it (the primal-dual indicator of El-Bakry, Tapia and
 * Zhang, SIAM Review 36, 1994). Newton steps are taken on the KKT equations with these bounds met,
 * as long as they leave less to explain. */
#include "globalization/globalization.h"
#include "active_set/active_set.h"

/* The estimate of the active set: 1 for a lower bound, 2 for an upper one. */
static void estimate_set(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it,
                         int *sides) {
    for (int i = 0; i < form->plan->n; i++) {
        const double room = form->room[i], tol = form->numbers->tol;
        int lower = form->has_lower[i] && (it->z_lower[i] > at->below[i] ||
                                           hybrid_is_met_bound(room, at->below[i], tol));
        int upper = form->has_upper[i] && (it->z_upper[i] > at->above[i] ||
                                           hybrid_is_met_bound(room, at->above[i], tol));
        sides[i] = lower ? 1 : upper ? 2 : 0;
    }
}

/* The multipliers of the bounds that are active. Returns HYBRID_NO_SET where one has the wrong
 * sign. */
static int update_bound_multipliers(hybrid_phase *phase, const hybrid_point *at,
                                    hybrid_iterate *next) {
    const int *sides = phase->sides;
    hybrid_multiply_At(phase->plan, at->A, next->y, phase->work);
    for (int i = 0; i < phase->plan->n; i++) {
        double slope = at->gradient[i] + phase->work[i];
        next->z_lower[i] = sides[i] == 1 ? slope : 0.0;
        next->z_upper[i] = sides[i] == 2 ? -slope : 0.0;
        if (next->z_lower[i] < 0.0 || next->z_upper[i] < 0.0) return HYBRID_NO_SET;
    }
    return HYBRID_SOLVED;
}

/* A Newton step from phase->next at `from` on the active set, to `to`. */
static int step(hybrid_phase *phase, const hybrid_trial *from, hybrid_trial *to) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &from->of;
    hybrid_iterate *next = &phase->next;
    hybrid_model model = {.kkt = phase->kkt,
                          .W = phase->W,
                          .force = phase->force,
                          .sides = phase->sides,
                          .dw = phase->direction.dw,
                          .dy = phase->direction.dy,
                          .until = INFINITY};
    int status;
    if (hybrid_hessian(&phase->form, at, next->y, 1.0, phase->W)) return HYBRID_UNDEFINED;
    hybrid_gradient_of_L(plan, at, next->y, phase->force);
    status = hybrid_regularized_solution(&model, &phase->form, at);
    if (status) return status;
    for (int i = 0; i < plan->n; i++) {
        double w = at->w[i] + (model.sides[i] ? model.kkt.move[i] : model.dw[i]);
        if (form->has_lower[i] && !(w - form->lower[i] >= 0.0)) return HYBRID_NO_SET;
        if (form->has_upper[i] && !(form->upper[i] - w >= 0.0)) return HYBRID_NO_SET;
        to->of.w[i] = w;
    }
    for (int i = 0; i < plan->m; i++) next->y[i] += model.dy[i];
    if (hybrid_evaluate_problem(phase, to)) return HYBRID_NO_SET;
    return update_bound_multipliers(phase, &to->of, next);
}

static double error_of(hybrid_phase *phase, const hybrid_point *at, const hybrid_iterate *it) {
    hybrid_error error;
    hybrid_kkt_error(&phase->form, at, it, phase->work, &error);
    return hybrid_error_at(&error, 0.0);
}

void hybrid_refine_solution(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    hybrid_iterate *it = &phase->now;
    hybrid_residuals residuals;
    int most = phase->numbers->max_iter - it->t;
    double least = hybrid_iterate_residuals(phase, &phase->at->of, it, &residuals);
    if (most > HYBRID_REFINEMENT_STEPS) most = HYBRID_REFINEMENT_STEPS;
    estimate_set(&phase->form, &phase->at->of, it, phase->sides);
    hybrid_copy_iterate(plan, it, 0, &phase->next);
    while (most-- > 0 && least > 1.0) {
        hybrid_trial *from = phase->at, *to = phase->trial;
        const int t = ++it->t;
        double plain;
        if (step(phase, from, to)) return;
        if (error_of(phase, &to->of, &phase->next) > phase->numbers->tol) return;
        plain = hybrid_iterate_residuals(phase, &to->of, &phase->next, &residuals);
        if (!(hybrid_merit(phase->numbers, &residuals) <= 1.0 && plain < least)) return;
        least = plain;
        hybrid_copy_iterate(plan, &phase->next, 0, it);
        it->t = t;
        it->stepped = 0;
        phase->at = to;
        phase->trial = from;
    }
}
