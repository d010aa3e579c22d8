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
static int update_bound_multipliers(hybrid_run *run, const hybrid_point *at, hybrid_iterate *next) {
    const int *sides = run->sides;
    hybrid_multiply_At(run->plan, at->A, next->y, run->work);
    for (int i = 0; i < run->plan->n; i++) {
        double slope = at->gradient[i] + run->work[i];
        next->z_lower[i] = sides[i] == 1 ? slope : 0.0;
        next->z_upper[i] = sides[i] == 2 ? -slope : 0.0;
        if (next->z_lower[i] < 0.0 || next->z_upper[i] < 0.0) return HYBRID_NO_SET;
    }
    return HYBRID_SOLVED;
}

/* A Newton step from run->next at `from` on the active set, to `to`. */
static int step(hybrid_run *run, const hybrid_trial *from, hybrid_trial *to) {
    const hybrid_form *form = &run->form;
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &from->of;
    hybrid_iterate *next = &run->next;
    hybrid_model model = {.kkt = run->kkt, .W = run->W, .force = run->force, .sides = run->sides,
                          .dw = run->direction.dw, .dy = run->direction.dy, .until = INFINITY};
    int status;
    if (hybrid_hessian(&run->form, at, next->y, 1.0, run->W)) return HYBRID_UNDEFINED;
    hybrid_gradient_of_L(plan, at, next->y, run->force);
    status = hybrid_regularized_solution(&model, &run->form, at);
    if (status) return status;
    for (int i = 0; i < plan->n; i++) {
        double w = at->w[i] + (model.sides[i] ? model.kkt.move[i] : model.dw[i]);
        if (form->has_lower[i] && !(w - form->lower[i] >= 0.0)) return HYBRID_NO_SET;
        if (form->has_upper[i] && !(form->upper[i] - w >= 0.0)) return HYBRID_NO_SET;
        to->of.w[i] = w;
    }
    for (int i = 0; i < plan->m; i++) next->y[i] += model.dy[i];
    if (hybrid_evaluate_problem(run, to)) return HYBRID_NO_SET;
    return update_bound_multipliers(run, &to->of, next);
}

static double error_of(hybrid_run *run, const hybrid_point *at, const hybrid_iterate *it) {
    hybrid_error error;
    hybrid_kkt_error(&run->form, at, it, run->work, &error);
    return hybrid_error_at(&error, 0.0);
}

void hybrid_refine_solution(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    hybrid_iterate *it = &run->now;
    hybrid_residuals residuals;
    int most = run->numbers->max_iter - it->t;
    double least = hybrid_iterate_residuals(run, &run->at->of, it, &residuals);
    if (most > HYBRID_REFINEMENT_STEPS) most = HYBRID_REFINEMENT_STEPS;
    estimate_set(&run->form, &run->at->of, it, run->sides);
    hybrid_copy_iterate(plan, it, 0, &run->next);
    while (most-- > 0 && least > 1.0) {
        hybrid_trial *from = run->at, *to = run->trial;
        const int t = ++it->t;
        double plain;
        if (step(run, from, to)) return;
        if (error_of(run, &to->of, &run->next) > run->numbers->tol) return;
        plain = hybrid_iterate_residuals(run, &to->of, &run->next, &residuals);
        if (!(hybrid_merit(run->numbers, &residuals) <= 1.0 && plain < least)) return;
        least = plain;
        hybrid_copy_iterate(plan, &run->next, 0, it);
        it->t = t;
        it->stepped = 0;
        run->at = to;
        run->trial = from;
    }
}
