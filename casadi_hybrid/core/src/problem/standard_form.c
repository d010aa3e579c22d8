/* The standard form:
 *
 *     min f(w)  s.t.  c(w) = 0,  lower <= w <= upper,  w = (free variables, slacks),
 *
 * with f scaled, c = scale g - target for equations and scale g - slack for inequalities; its
 * values, derivatives and multipliers out of the user's, and back. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "problem/problem.h"

void hybrid_place_point(const hybrid_plan *plan, hybrid_arena *arena, hybrid_point *point) {
    const int slacks = plan->nnz_A - plan->kept_A; /* there is room for their entries after J */
    HYBRID_PLACE(arena, plan->n, &point->w, &point->own_gradient, &point->below, &point->above);
    point->gradient = point->own_gradient;
    point->inner = 0.0;
    point->c = hybrid_allocate(arena, plan->m);
    point->A = point->own_A = hybrid_allocate(arena, plan->nnz_A);
    point->x = hybrid_allocate(arena, plan->n_x);
    point->out =
        hybrid_allocate(arena, 1 + plan->nnz_gradient + plan->nnz_g + plan->nnz_J + slacks);
    point->raw_J = point->out ? point->out + 1 + plan->nnz_gradient + plan->nnz_g : 0;
    /* If nothing is left out of them, they lie in the output of the first function. */
    point->raw_gradient = plan->nnz_gradient < plan->n_x ? hybrid_allocate(arena, plan->n_x)
                          : point->out                   ? point->out + 1
                                                         : 0;
    point->raw_g = plan->nnz_g < plan->n_g ? hybrid_allocate(arena, plan->n_g)
                   : point->out            ? point->out + 1 + plan->nnz_gradient
                                           : 0;
}

void hybrid_place_form(const hybrid_plan *plan, hybrid_arena *arena, hybrid_form *form) {
    HYBRID_PLACE(arena, plan->m, &form->scale_c, &form->target);
    HYBRID_PLACE(arena, plan->n, &form->lower, &form->upper, &form->room, &form->has_lower,
                 &form->has_upper);
    form->clipped = hybrid_allocate(arena, plan->n_x);
    form->lam = hybrid_allocate(arena, plan->n_g);
    form->H = hybrid_allocate(arena, plan->nnz_H);
    hybrid_place_low_rank(plan, arena, &form->low_rank);
}

void hybrid_clear_counts(hybrid_answer *answer) {
    answer->steps = answer->firsts = answer->seconds = answer->values = 0;
    answer->factors = answer->chosen = answer->doubts = 0;
    answer->in_firsts = answer->in_seconds = answer->in_values = 0.0;
    answer->order = HYBRID_FIRST_ORDER;
    answer->newton = NAN;
}

double hybrid_time(const hybrid_functions *functions) {
    return functions->now ? functions->now() : 0.0;
}

int hybrid_is_late(const hybrid_functions *functions, double until) {
    return until < INFINITY && hybrid_time(functions) >= until;
}

/* Nonzeros of a column to their places, which increase; nothing where they lie there. */
static void spread(int count, int size, const int *at, const double *from, double *to) {
    if (count == size) return;
    hybrid_zero(size, to);
    for (int k = 0; k < count; k++) to[at[k]] = from[k];
}

int hybrid_call_first(hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    const hybrid_functions *functions = form->functions;
    const double *out = point->out;
    double began = hybrid_time(functions);
    int failed = functions->first(functions->self, point->x, form->numbers->p, point->out);
    form->answer->firsts += !failed || !hybrid_is_ended(functions);
    form->answer->in_firsts += hybrid_time(functions) - began;
    if (failed) return 1;
    if (!hybrid_all_finite(1 + plan->nnz_gradient + plan->nnz_g, out)) return 1;
    point->sum_J = hybrid_norm1(plan->nnz_J, point->raw_J);
    if (!isfinite(point->sum_J) && !hybrid_all_finite(plan->nnz_J, point->raw_J)) return 1;
    point->raw_f = *out++;
    spread(plan->nnz_gradient, plan->n_x, plan->gradient_at, out, point->raw_gradient);
    spread(plan->nnz_g, plan->n_g, plan->g_at, out + plan->nnz_gradient, point->raw_g);
    return 0;
}

/* Calls the function of the values alone, likewise. */
static int call_values(hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    const hybrid_functions *functions = form->functions;
    double *out = point->out, *g = out + 1 + plan->nnz_gradient;
    double began = hybrid_time(functions);
    int failed = functions->values(functions->self, point->x, form->numbers->p, out);
    form->answer->values += !failed || !hybrid_is_ended(functions);
    form->answer->in_values += hybrid_time(functions) - began;
    if (failed || !hybrid_all_finite(1 + plan->nnz_g, out)) return 1;
    memmove(g, out + 1, (size_t)plan->nnz_g * sizeof(double));
    point->raw_f = *out;
    spread(plan->nnz_g, plan->n_g, plan->g_at, g, point->raw_g);
    point->partial = 1;
    return 0;
}

/* The user's x of point->w, moved into its bounds. */
static void user_x(const hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    if (plan->n_free == plan->n_x) {
        hybrid_clamp_vector(plan->n_x, point->w, of->lbx, of->ubx, point->x);
        return;
    }
    hybrid_copy(plan->n_x, form->clipped, point->x);
    for (int i = 0; i < plan->n_free; i++) {
        int k = plan->free_at[i];
        point->x[k] = hybrid_clamp(point->w[i], of->lbx[k], of->ubx[k]);
    }
}

void hybrid_distances(const hybrid_form *form, hybrid_point *point) {
    const double *lower = form->lower, *upper = form->upper, *room = form->room, *w = point->w;
    const int n = form->plan->n;
    double *restrict below = point->below, *restrict above = point->above;
    for (int i = 0; i < n; i++) {
        below[i] = hybrid_distance(lower[i], w[i], room[i]);
        above[i] = hybrid_distance(w[i], upper[i], room[i]);
    }
}

/* The user's f and g in the form's units, less the target: what of them is in it. */
static void scale_values(const hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    point->f = form->scale_f * point->raw_f;
    if (form->plain) /* the same bits */
        for (int i = 0; i < plan->m; i++) point->c[i] = point->raw_g[i] - form->target[i];
    else
        for (int i = 0; i < plan->m; i++)
            point->c[i] = point->raw_g[plan->row_at[i]] * form->scale_c[i] - form->target[i];
    for (int k = 0; k < plan->n_slack; k++)
        point->c[plan->slack_row[k]] -= point->w[plan->n_free + k];
}

/* The user's derivatives in the form's units. */
static void scale_derivatives(const hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    point->gradient = form->plain && !plan->n_slack ? point->raw_gradient : point->own_gradient;
    point->A = form->plain ? point->raw_J : point->own_A;
    if (form->plain) { /* the same bits, where they lie */
        if (plan->n_slack) hybrid_copy(plan->n_x, point->raw_gradient, point->gradient);
    } else {
        for (int i = 0; i < plan->n_free; i++)
            point->gradient[i] = form->scale_f * point->raw_gradient[plan->free_at[i]];
        for (int k = 0; k < plan->kept_A; k++)
            point->A[k] = point->raw_J[plan->A_of_J[k]] * form->scale_c[plan->A_rows[k]];
    }
    for (int i = plan->n_free; i < plan->n; i++) point->gradient[i] = 0.0;
    for (int k = plan->kept_A; k < plan->nnz_A; k++) point->A[k] = -1.0;
}

void hybrid_move_slacks(const hybrid_plan *plan, const hybrid_point *at, double *w) {
    hybrid_copy(plan->n, at->w, w);
    for (int k = 0; k < plan->n_slack; k++) w[plan->n_free + k] += at->c[plan->slack_row[k]];
}

int hybrid_evaluate(hybrid_form *form, hybrid_point *point, const double *known_x) {
    const hybrid_plan *plan = form->plan;
    int known;
    point->inner = 0.0;
    user_x(form, point);
    known = known_x && !memcmp(known_x, point->x, (size_t)plan->n_x * sizeof(double));
    if (!known && hybrid_call_first(form, point)) return 1;
    point->partial = 0;
    scale_values(form, point);
    scale_derivatives(form, point);
    return 0;
}

int hybrid_evaluate_values(hybrid_form *form, hybrid_point *point) {
    if (!form->functions->values) return hybrid_evaluate(form, point, 0);
    point->inner = 0.0;
    user_x(form, point);
    if (call_values(form, point)) return 1;
    scale_values(form, point);
    return 0;
}

/* Calls the second function. */
static int call_second(hybrid_form *form, const hybrid_point *at, const double *lam, double *H) {
    const hybrid_functions *functions = form->functions;
    double began = hybrid_time(functions);
    int failed = functions->second(functions->self, at->x, lam, form->numbers->p, H);
    form->answer->seconds += !failed || !hybrid_is_ended(functions);
    form->answer->in_seconds += hybrid_time(functions) - began;
    return failed || !hybrid_all_finite(form->plan->nnz_H, H);
}

int hybrid_hessian(hybrid_form *form, const hybrid_point *at, const double *y, double objective,
                   double *W) {
    const hybrid_plan *plan = form->plan;
    hybrid_secants *secants = form->functions->secants;
    const double scale = objective * form->scale_f, by = secants ? 1.0 : scale;
    if (!secants && form->plain && objective == 1.0) return call_second(form, at, y, W);
    hybrid_zero(plan->n_g, form->lam);
    for (int i = 0; i < plan->m; i++) form->lam[plan->row_at[i]] = y[i] * form->scale_c[i] / by;
    if (secants) {
        hybrid_add_secant_point(plan, at, secants);
        hybrid_secant_hessian(plan, secants, scale, form->lam, form->H, &form->low_rank);
    } else if (call_second(form, at, form->lam, form->H)) {
        return 1;
    }
    for (int k = 0; k < plan->nnz_W; k++) W[k] = by * form->H[plan->W_of_H[k]];
    return 0;
}

int hybrid_curvature(hybrid_form *form, const hybrid_point *at, const double *y, double *W) {
    if (form->functions->secants) { /* the rows' part alone is not known */
        form->low_rank.rank = 0;
        hybrid_zero(form->plan->nnz_W, W);
        return 0;
    }
    return hybrid_hessian(form, at, y, DBL_EPSILON, W); /* what is left of f is rounding */
}

int hybrid_multipliers_in(const hybrid_form *form, double *y, double *z_lower, double *z_upper,
                          int *held) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    const int n_free = plan->n_free;
    int count = 0;
    hybrid_gather(plan->m, plan->n_g, plan->row_at, of->lam_g0, y);
    for (int i = 0; i < plan->m && !form->plain; i++)
        y[i] = y[i] * form->scale_f / form->scale_c[i];
    hybrid_zero(plan->n, z_lower);
    hybrid_zero(plan->n, z_upper);
    for (int i = 0; i < plan->n; i++) {
        /* A slack is stationary where z_upper - z_lower is the y of its row. */
        double net = i < n_free ? of->lam_x0[plan->free_at[i]] * form->scale_f
                                : y[plan->slack_row[i - n_free]];
        if (net == 0.0) continue; /* as most are */
        if (net < 0.0 && form->lower[i] > -INFINITY) z_lower[i] = -net;
        else if (net > 0.0 && form->upper[i] < INFINITY) z_upper[i] = net;
        else continue; /* no bound can carry it */
        if (held) held[count] = i;
        count++;
    }
    return count;
}

void hybrid_multipliers_out(const hybrid_form *form, const hybrid_point *at, const double *y,
                            const double *z_lower, const double *z_upper, double *lam_x,
                            double *lam_g) {
    const hybrid_plan *plan = form->plan;
    if (form->plain) {
        hybrid_copy(plan->m, y, lam_g);
        for (int i = 0; i < plan->n_x; i++) lam_x[i] = z_upper[i] - z_lower[i];
        return;
    }
    hybrid_zero(plan->n_g, lam_g);
    for (int i = 0; i < plan->m; i++)
        lam_g[plan->row_at[i]] = y[i] * form->scale_c[i] / form->scale_f;
    if (plan->n_free < plan->n_x) {
        /* The multiplier of a fixed variable is what its stationarity needs. */
        for (int i = 0; i < plan->n_x; i++) lam_x[i] = 0.0 - at->raw_gradient[i];
        for (int k = 0; k < plan->nnz_J; k++)
            lam_x[plan->J_cols[k]] -= at->raw_J[k] * lam_g[plan->J_rows[k]];
    }
    for (int i = 0; i < plan->n_free; i++)
        lam_x[plan->free_at[i]] = (z_upper[i] - z_lower[i]) / form->scale_f;
}
