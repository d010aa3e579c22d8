/* Restoration by the elastic problem, the least |c|_1 near a point, as barrier/elastic.py:
 *
 *     min  rho sum(p + n) + zeta/2 |R(w - w_R)|^2   s.t.   c(w) - p + n = 0,  p, n >= 0.
 *
 * It is solved by the same Newton step: `inner` is a mode of its own on (w, p, n), whose kernel is
 * that of the problem with p and n eliminated. */
#include <math.h>
#include <string.h>

#include "barrier/barrier.h"

void hybrid_place_elastic(hybrid_arena *arena, hybrid_cold *outer) {
    const hybrid_plan *plan = outer->plan;
    int entries = plan->nnz_A + 2 * plan->m;
    outer->lifted_rows = hybrid_take_ints(arena, entries);
    outer->lifted_cols = hybrid_take_ints(arena, entries);
    outer->lifted_starts = hybrid_take_ints(arena, plan->n + 2 * plan->m + 1);
    outer->lifted = *plan;
    outer->lifted.n = plan->n + 2 * plan->m;
    outer->lifted.n_free = outer->lifted.n_slack = 0;
    outer->lifted.n_x = outer->lifted.n_g = outer->lifted.limited_memory = 0;
    outer->lifted.nnz_gradient = outer->lifted.nnz_g = outer->lifted.nnz_J = 0;
    outer->lifted.nnz_A = entries;
    outer->lifted.A_rows = outer->lifted_rows;
    outer->lifted.A_cols = outer->lifted_cols;
    outer->lifted.A_starts = outer->lifted_starts;
    outer->reference = hybrid_take(arena, plan->n);
    outer->proximity = hybrid_take(arena, plan->n);
    outer->penalty = hybrid_take(arena, plan->m);
    outer->reduced = hybrid_take(arena, plan->n > plan->m ? plan->n : plan->m);
    for (int k = 0; k < HYBRID_SPOTS; k++) hybrid_place_point(plan, arena, &outer->bases[k].of);
}

void hybrid_make_elastic(hybrid_cold *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_cold *inner = outer->inner;
    hybrid_form *form = &inner->form;
    int n = plan->n, m = plan->m;
    memcpy(outer->lifted_rows, plan->A_rows, (size_t)plan->nnz_A * sizeof(int));
    memcpy(outer->lifted_cols, plan->A_cols, (size_t)plan->nnz_A * sizeof(int));
    memcpy(outer->lifted_starts, plan->A_starts, (size_t)n * sizeof(int));
    for (int j = n; j <= n + 2 * m; j++) outer->lifted_starts[j] = plan->nnz_A + j - n;
    for (int i = 0; i < m; i++) {
        int of_p = plan->nnz_A + i, of_n = of_p + m;
        outer->lifted_rows[of_p] = outer->lifted_rows[of_n] = i;
        outer->lifted_cols[of_p] = n + i;
        outer->lifted_cols[of_n] = n + m + i;
    }
    hybrid_set(n, outer->form.lower, form->lower);
    hybrid_set(n, outer->form.upper, form->upper);
    hybrid_set(n, outer->form.room, form->room);
    hybrid_set(n, outer->form.has_lower, form->has_lower);
    hybrid_set(n, outer->form.has_upper, form->has_upper);
    for (int i = n; i < n + 2 * m; i++) {
        form->lower[i] = form->room[i] = 0.0;
        form->upper[i] = INFINITY;
        form->has_lower[i] = 1.0;
        form->has_upper[i] = 0.0;
    }
    form->bounds = outer->form.bounds + 2 * m;
    form->plain = 0;
    form->functions = outer->form.functions;
    form->numbers = inner->numbers = outer->numbers;
    form->answer = inner->answer = outer->answer;
    inner->attempt = outer->attempt;
    inner->state = outer->state;
    for (int k = 0; k < HYBRID_SPOTS; k++) inner->spots[k].base = &outer->bases[k];
}

void hybrid_set_proximity(hybrid_cold *outer, double nu) {
    for (int i = 0; i < outer->plan->n; i++) {
        double size = fabs(outer->reference[i]);
        if (!(size > 1.0)) size = 1.0;
        outer->proximity[i] = sqrt(nu) / (size * size);
    }
}

void hybrid_lift(const hybrid_cold *outer, hybrid_spot *spot) {
    const hybrid_plan *plan = outer->plan;
    const hybrid_point *base = &spot->base->of;
    hybrid_point *at = &spot->of;
    int n = plan->n, m = plan->m;
    double sum = 0.0, away = 0.0;
    const double *p = at->w + n;
    hybrid_set(plan->nnz_A, base->A, at->A);
    hybrid_set(n, base->below, at->below);
    hybrid_set(n, base->above, at->above);
    spot->logs = spot->base->logs + hybrid_logs(2 * m, p);
    spot->outside = spot->base->outside;
    spot->theta = 0.0;
    for (int i = 0; i < n; i++) {
        double step = base->w[i] - outer->reference[i];
        at->gradient[i] = outer->proximity[i] * step;
        away += step * at->gradient[i];
    }
    for (int i = 0; i < 2 * m; i++) {
        at->gradient[n + i] = HYBRID_ELASTIC_PENALTY;
        at->below[n + i] = p[i];
        at->above[n + i] = 1.0;
        at->A[plan->nnz_A + i] = i < m ? -1.0 : 1.0;
        sum += p[i];
        spot->outside |= !(p[i] > 0.0);
    }
    for (int i = 0; i < m; i++) {
        at->c[i] = base->c[i] - p[i] + p[m + i];
        spot->theta += fabs(at->c[i]);
    }
    spot->linear = spot->base->linear + sum; /* p and n have a lower bound alone */
    at->f = HYBRID_ELASTIC_PENALTY * sum + 0.5 * away;
}

int hybrid_elastic_visit(hybrid_cold *inner, hybrid_spot *spot) {
    hybrid_cold *outer = inner->outer;
    hybrid_set(outer->plan->n, spot->of.w, spot->base->of.w);
    if (hybrid_visit_problem(outer, spot->base)) return 1;
    hybrid_lift(outer, spot);
    return 0;
}

int hybrid_elastic_factor(hybrid_cold *inner, double shift, double epsilon) {
    hybrid_cold *outer = inner->outer;
    const hybrid_plan *plan = outer->plan;
    int n = plan->n, m = plan->m;
    const double *D = inner->D;
    inner->shift = shift;
    for (int i = 0; i < m; i++)
        outer->penalty[i] = epsilon + 1.0 / (D[n + i] + shift) + 1.0 / (D[n + m + i] + shift);
    for (int i = 0; i < n; i++) outer->reduced[i] = D[i] + shift + outer->proximity[i];
    return hybrid_factor(plan, inner->W, outer->reduced, 0.0, inner->at->of.A, 0.0,
                         outer->penalty, &inner->kernel);
}

int hybrid_elastic_solve(hybrid_cold *inner, const double *force, const double *c, double *dw,
                         double *dy) {
    hybrid_cold *outer = inner->outer;
    int n = outer->plan->n, m = outer->plan->m;
    const double *D = inner->D + n;
    const double *of_p = force + n, *of_n = of_p + m;
    int found;
    for (int i = 0; i < m; i++)
        outer->reduced[i] = c[i] + of_p[i] / (D[i] + inner->shift) -
                            of_n[i] / (D[m + i] + inner->shift);
    found = hybrid_solve(outer->plan, force, outer->reduced, &inner->kernel, dw, dy);
    if (found) return found;
    for (int i = 0; i < m; i++) {
        dw[n + i] = (-of_p[i] + dy[i]) / (D[i] + inner->shift);
        dw[n + m + i] = (-of_n[i] - dy[i]) / (D[m + i] + inner->shift);
    }
    return 0;
}

int hybrid_visit(hybrid_cold *cold, hybrid_spot *spot) {
    return cold->outer ? hybrid_elastic_visit(cold, spot) : hybrid_visit_problem(cold, spot);
}
