/* The elastic problem of the restoration, the least |c|_1 near a point (Waechter and Biegler 2006,
 * section 3.3),
 *
 *     min  rho sum(p + n) + zeta/2 |R(w - w_R)|^2   s.t.   c(w) - p + n = 0,  p, n >= 0,
 *
 * with zeta = sqrt(nu) and R = 1 / max(1, |w_R|) entry by entry. It is solved by the same Newton
 * step: `inner` is a phase on (w, p, n). Its KKT matrix is that of the problem, since p and n are
 * eliminated. */
#include <math.h>
#include <string.h>

#include "barrier/barrier.h"

void hybrid_place_elastic(hybrid_arena *arena, hybrid_phase *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_plan *own = &outer->elastic.plan;
    *own = *plan;
    own->n = plan->n + 2 * plan->m;
    own->nnz_A = plan->nnz_A + 2 * plan->m;
    own->n_free = own->n_slack = own->n_x = own->n_g = own->limited_memory = 0;
    own->nnz_gradient = own->nnz_g = own->nnz_J = 0;
    own->A_rows = outer->elastic.rows = hybrid_allocate_ints(arena, own->nnz_A);
    own->A_starts = outer->elastic.starts = hybrid_allocate_ints(arena, own->n + 1);
    own->A_cols = 0; /* of its A only products with A' are needed */
    HYBRID_PLACE(arena, plan->n, &outer->elastic.reference, &outer->elastic.proximity);
    outer->elastic.penalty = hybrid_allocate(arena, plan->m);
    outer->elastic.reduced = hybrid_allocate(arena, plan->n > plan->m ? plan->n : plan->m);
    for (int k = 0; k < HYBRID_TRIALS; k++)
        hybrid_place_point(plan, arena, &outer->elastic.bases[k].of);
}

void hybrid_make_elastic(hybrid_phase *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_phase *inner = outer->elastic.inner;
    hybrid_form *form = &inner->form;
    int n = plan->n, m = plan->m;
    memcpy(outer->elastic.rows, plan->A_rows, (size_t)plan->nnz_A * sizeof(int));

    memcpy(outer->elastic.starts, plan->A_starts, (size_t)n * sizeof(int));
    for (int j = n; j <= n + 2 * m; j++) outer->elastic.starts[j] = plan->nnz_A + j - n;
    for (int i = 0; i < 2 * m; i++) outer->elastic.rows[plan->nnz_A + i] = i % m;
    hybrid_copy(n, outer->form.lower, form->lower);
    hybrid_copy(n, outer->form.upper, form->upper);
    hybrid_copy(n, outer->form.room, form->room);
    hybrid_copy(n, outer->form.has_lower, form->has_lower);
    hybrid_copy(n, outer->form.has_upper, form->has_upper);
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
    inner->options = outer->options;
    inner->setup = outer->setup;
    inner->state = outer->state;
    for (int k = 0; k < HYBRID_TRIALS; k++) inner->trials[k].base = &outer->elastic.bases[k];
}

void hybrid_set_proximity(hybrid_phase *outer, double nu) {
    for (int i = 0; i < outer->plan->n; i++) {
        double size = hybrid_max(fabs(outer->elastic.reference[i]), 1.0);
        outer->elastic.proximity[i] = sqrt(nu) / (size * size);
    }
}

void hybrid_evaluate_elastic(const hybrid_phase *outer, hybrid_trial *trial) {
    const hybrid_plan *plan = outer->plan;
    const hybrid_point *base = &trial->base->of;
    hybrid_point *at = &trial->of;
    int n = plan->n, m = plan->m;
    double sum = 0.0, away = 0.0;
    const double *p = at->w + n;
    hybrid_copy(plan->nnz_A, base->A, at->A);
    hybrid_copy(n, base->below, at->below);
    hybrid_copy(n, base->above, at->above);
    trial->logs = trial->base->logs + hybrid_sum_log(2 * m, p);
    trial->outside = trial->base->outside;
    trial->theta = 0.0;
    for (int i = 0; i < n; i++) {
        double step = base->w[i] - outer->elastic.reference[i];
        at->gradient[i] = outer->elastic.proximity[i] * step;
        away += step * at->gradient[i];
    }
    for (int i = 0; i < 2 * m; i++) {
        at->gradient[n + i] = HYBRID_ELASTIC_RHO;
        at->below[n + i] = p[i];
        at->above[n + i] = 1.0;
        at->A[plan->nnz_A + i] = i < m ? -1.0 : 1.0;
        sum += p[i];
        trial->outside |= !(p[i] > 0.0);
    }
    for (int i = 0; i < m; i++) {
        at->c[i] = base->c[i] - p[i] + p[m + i];
        trial->theta += fabs(at->c[i]);
    }
    trial->linear = trial->base->linear + sum; /* p and n have a lower bound alone */
    at->f = HYBRID_ELASTIC_RHO * sum + 0.5 * away;
}

int hybrid_try(hybrid_phase *phase, hybrid_trial *trial) {
    hybrid_phase *outer = phase->elastic.outer;
    if (!outer) return hybrid_try_problem(phase, trial);
    hybrid_copy(outer->plan->n, trial->of.w, trial->base->of.w);
    if (hybrid_try_problem(outer, trial->base)) return 1;
    hybrid_evaluate_elastic(outer, trial);
    return 0;
}

int hybrid_complete(hybrid_phase *phase, hybrid_trial *trial) {
    hybrid_phase *outer = phase->elastic.outer;
    if (!outer) return hybrid_complete_problem(phase, trial);
    if (!trial->base->of.partial) return 0;
    if (hybrid_evaluate_problem(outer, trial->base)) return 1;
    hybrid_evaluate_elastic(outer, trial);
    return 0;
}

int hybrid_elastic_factor(hybrid_phase *inner, double shift, double epsilon) {
    hybrid_phase *outer = inner->elastic.outer;
    const hybrid_plan *plan = outer->plan;
    int n = plan->n, m = plan->m;
    const double *D = inner->D;
    inner->elastic.shift = shift;
    for (int i = 0; i < m; i++)
        outer->elastic.penalty[i] =
            epsilon + 1.0 / (D[n + i] + shift) + 1.0 / (D[n + m + i] + shift);
    for (int i = 0; i < n; i++)
        outer->elastic.reduced[i] = D[i] + shift + outer->elastic.proximity[i];
    return hybrid_factor(plan, inner->W, outer->elastic.reduced, 0.0, inner->at->of.A, 0.0,
                         outer->elastic.penalty, &inner->kkt);
}

int hybrid_elastic_solve(hybrid_phase *inner, const double *force, const double *c, double *dw,
                         double *dy) {
    hybrid_phase *outer = inner->elastic.outer;
    int n = outer->plan->n, m = outer->plan->m;
    const double *D = inner->D + n;
    const double *of_p = force + n, *of_n = of_p + m;
    int result;
    for (int i = 0; i < m; i++)
        outer->elastic.reduced[i] = c[i] + of_p[i] / (D[i] + inner->elastic.shift) -
                                    of_n[i] / (D[m + i] + inner->elastic.shift);
    result = hybrid_solve_kkt(outer->plan, force, outer->elastic.reduced, &inner->kkt, dw, dy);
    if (result) return result;
    for (int i = 0; i < m; i++) {
        dw[n + i] = (-of_p[i] + dy[i]) / (D[i] + inner->elastic.shift);
        dw[n + m + i] = (-of_n[i] - dy[i]) / (D[m + i] + inner->elastic.shift);
    }
    return 0;
}
