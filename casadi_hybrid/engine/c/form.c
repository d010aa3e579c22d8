/* The standard form: min f(w) s.t. c(w) = 0, lower <= w <= upper, as standard_form/form.py. */
#include <math.h>
#include <string.h>

#include "internal.h"

double *hybrid_take(hybrid_arena *arena, long long count) {
    double *at = arena->doubles ? arena->doubles + arena->used_doubles : 0;
    arena->used_doubles += count;
    return at;
}

int *hybrid_take_ints(hybrid_arena *arena, long long count) {
    int *at = arena->ints ? arena->ints + arena->used_ints : 0;
    arena->used_ints += count;
    return at;
}

void hybrid_place_point(const hybrid_plan *plan, hybrid_arena *arena, hybrid_point *point) {
    point->w = hybrid_take(arena, plan->n);
    point->gradient = hybrid_take(arena, plan->n);
    point->c = hybrid_take(arena, plan->m);
    point->A = hybrid_take(arena, plan->nnz_A);
    point->below = hybrid_take(arena, plan->n);
    point->above = hybrid_take(arena, plan->n);
    point->x = hybrid_take(arena, plan->n_x);
    point->raw_gradient = hybrid_take(arena, plan->n_x);
    point->raw_g = hybrid_take(arena, plan->n_g);
    point->out = hybrid_take(arena, 1 + plan->nnz_gradient + plan->nnz_g + plan->nnz_J);
    point->raw_J = point->out ? point->out + 1 + plan->nnz_gradient + plan->nnz_g : 0;
}

void hybrid_place_form(const hybrid_plan *plan, hybrid_arena *arena, hybrid_form *form) {
    form->scale_c = hybrid_take(arena, plan->m);
    form->target = hybrid_take(arena, plan->m);
    form->lower = hybrid_take(arena, plan->n);
    form->upper = hybrid_take(arena, plan->n);
    form->room = hybrid_take(arena, plan->n);
    form->clipped = hybrid_take(arena, plan->n_x);
    form->lam = hybrid_take(arena, plan->n_g);
    form->H = hybrid_take(arena, plan->nnz_H);
    form->has_lower = hybrid_take_ints(arena, plan->n);
    form->has_upper = hybrid_take_ints(arena, plan->n);
}

static double clip(double value, double lower, double upper) {
    return value < lower ? lower : value > upper ? upper : value;
}

/* Whether a lower bound is at most its upper bound, and both leave a value between them. */
static int ordered(int count, const double *lower, const double *upper) {
    int crossed = 0;
    for (int i = 0; i < count; i++)
        crossed |= !(lower[i] <= upper[i]) | (lower[i] == INFINITY) | (upper[i] == -INFINITY);
    return !crossed;
}

/* Whether the numbers are such as can be solved with. */
static int sound(const hybrid_plan *plan, const hybrid_numbers *of) {
    return hybrid_all_finite(plan->n_x, of->x0) && hybrid_all_finite(plan->n_p, of->p) &&
           hybrid_all_finite(plan->n_x, of->lam_x0) && hybrid_all_finite(plan->n_g, of->lam_g0) &&
           ordered(plan->n_x, of->lbx, of->ubx) && ordered(plan->n_g, of->lbg, of->ubg);
}

/* Whether the bounds are of the kinds that the plan was made for. */
static int fits(const hybrid_plan *plan, const hybrid_numbers *of) {
    int other = 0;
    for (int i = 0; i < plan->n_x; i++) {
        int fixed = !(of->lbx[i] < of->ubx[i]);
        other |= fixed != (plan->kind_x[i] == HYBRID_EQUAL);
    }
    for (int i = 0; i < plan->n_g; i++) {
        int absent = (fabs(of->lbg[i]) == INFINITY) & (fabs(of->ubg[i]) == INFINITY);
        int kind = absent ? HYBRID_ABSENT : of->lbg[i] < of->ubg[i] ? HYBRID_OPEN : HYBRID_EQUAL;
        other |= kind != plan->kind_g[i];
    }
    return !other;
}

/* Whether the form has every variable and every row, each in its own place: what is left out is
 * left out of increasing numbers. */
static int is_whole(const hybrid_plan *plan) {
    return plan->n_free == plan->n_x && plan->m == plan->n_g;
}

double hybrid_time(const hybrid_functions *functions) {
    return functions->now ? functions->now() : 0.0;
}

/* Nonzeros of a column to their places, which increase. */
static void spread(int count, int size, const int *at, const double *from, double *to) {
    if (count == size) {
        memcpy(to, from, (size_t)size * sizeof(double));
        return;
    }
    memset(to, 0, (size_t)size * sizeof(double));
    for (int k = 0; k < count; k++) to[at[k]] = from[k];
}

/* Calls the first function at point->x and spreads what it gives. */
static int first(hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    const hybrid_functions *functions = form->functions;
    const double *out = point->out;
    double began = hybrid_time(functions);
    int failed = functions->first(functions->self, point->x, form->numbers->p, point->out);
    form->answer->firsts++;
    form->answer->in_firsts += hybrid_time(functions) - began;
    if (failed) return 1;
    if (!hybrid_all_finite(1 + plan->nnz_gradient + plan->nnz_g, out)) return 1;
    if (!hybrid_all_finite(plan->nnz_J, point->raw_J)) return 1;
    point->raw_f = *out++;
    spread(plan->nnz_gradient, plan->n_x, plan->gradient_at, out, point->raw_gradient);
    spread(plan->nnz_g, plan->n_g, plan->g_at, out + plan->nnz_gradient, point->raw_g);
    return 0;
}

static double scale_of(double steepest) {
    if (steepest <= HYBRID_FORM_SCALE_GOAL) return 1.0;
    double steep = steepest > 1e-300 ? steepest : 1e-300;
    double scale = HYBRID_FORM_SCALE_GOAL / steep;
    return scale > 1.0 ? 1.0 : scale < 1e-8 ? 1e-8 : scale;
}

/* Scales so that no gradient of f or of a row exceeds the goal at the start. */
static void make_scales(hybrid_form *form, const hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    double steepest = 0.0;
    for (int i = 0; i < plan->n_free; i++) {
        double size = fabs(start->raw_gradient[plan->free_at[i]]);
        if (size > steepest) steepest = size;
    }
    form->scale_f = scale_of(steepest);
    for (int i = 0; i < plan->m; i++) form->scale_c[i] = 0.0;
    for (int k = 0; k < plan->kept_A && !form->unscaled; k++) {
        double size = fabs(start->raw_J[plan->A_of_J[k]]);
        double *row = &form->scale_c[plan->A_rows[k]];
        if (size > *row) *row = size;
    }
    form->plain = form->scale_f == 1.0 && is_whole(plan);
    for (int i = 0; i < plan->m; i++) {
        form->scale_c[i] = scale_of(form->scale_c[i]);
        form->plain &= form->scale_c[i] == 1.0;
    }
}

/* Bounds and targets, scaled. */
static void make_bounds(hybrid_form *form) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    for (int i = 0; i < plan->m; i++) {
        int row = plan->row_at[i];
        form->target[i] =
            plan->kind_g[row] == HYBRID_EQUAL ? of->lbg[row] * form->scale_c[i] : 0.0;
    }
    for (int i = 0; i < plan->n_free; i++) {
        form->lower[i] = of->lbx[plan->free_at[i]];
        form->upper[i] = of->ubx[plan->free_at[i]];
    }
    for (int k = 0; k < plan->n_slack; k++) {
        int i = plan->slack_row[k], row = plan->row_at[i];
        form->lower[plan->n_free + k] = of->lbg[row] * form->scale_c[i];
        form->upper[plan->n_free + k] = of->ubg[row] * form->scale_c[i];
    }
    form->bounds = 0;
    for (int i = 0; i < plan->n && form->relaxation > 0.0; i++) {
        double low = fabs(form->lower[i]), high = fabs(form->upper[i]);
        form->lower[i] -= form->relaxation * (low > 1.0 ? low : 1.0);
        form->upper[i] += form->relaxation * (high > 1.0 ? high : 1.0);
    }
    for (int i = 0; i < plan->n; i++) {
        double low = fabs(form->lower[i]), high = fabs(form->upper[i]);
        double size = low < high ? low : high;
        form->has_lower[i] = isfinite(form->lower[i]) != 0;
        form->has_upper[i] = isfinite(form->upper[i]) != 0;
        form->bounds += form->has_lower[i] + form->has_upper[i];
        form->room[i] = HYBRID_FORM_ROOM * (isfinite(size) && size > 1.0 ? size : 1.0);
    }
}

int hybrid_make_form(hybrid_form *form, hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    if (!sound(plan, of)) return HYBRID_BAD_NUMBERS;
    if (!fits(plan, of)) return HYBRID_OTHER_PATTERN;
    for (int i = 0; i < plan->n_x; i++) {
        form->clipped[i] = clip(of->x0[i], of->lbx[i], of->ubx[i]);
        start->x[i] = plan->kind_x[i] == HYBRID_EQUAL ? form->clipped[i] : of->x0[i];
    }
    if (first(form, start)) return HYBRID_UNDEFINED;
    make_scales(form, start);
    make_bounds(form);
    for (int i = 0; i < plan->n_free; i++) start->w[i] = form->clipped[plan->free_at[i]];
    for (int k = 0; k < plan->n_slack; k++) {
        int i = plan->slack_row[k];
        start->w[plan->n_free + k] = start->raw_g[plan->row_at[i]] * form->scale_c[i];
    }
    for (int i = 0; i < plan->n; i++)
        start->w[i] = clip(start->w[i], form->lower[i], form->upper[i]);
    return HYBRID_SOLVED;
}

/* The user's x of point->w, moved into its bounds. */
static void user_x(const hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    if (plan->n_free < plan->n_x)
        memcpy(point->x, form->clipped, (size_t)plan->n_x * sizeof(double));
    for (int i = 0; i < plan->n_free; i++) {
        int k = plan->free_at[i];
        point->x[k] = clip(point->w[i], of->lbx[k], of->ubx[k]);
    }
}

static void distances(const hybrid_form *form, hybrid_point *point) {
    for (int i = 0; i < form->plan->n; i++) {
        double room = form->room[i];
        double below = form->has_lower[i] ? point->w[i] - form->lower[i] : 1.0;
        double above = form->has_upper[i] ? form->upper[i] - point->w[i] : 1.0;
        point->below[i] = below < room ? room : below;
        point->above[i] = above < room ? room : above;
    }
}

/* The user's values in the form's units, less the target: what of them is in it. */
static void scaled(const hybrid_form *form, hybrid_point *point) {
    const hybrid_plan *plan = form->plan;
    point->f = form->scale_f * point->raw_f;
    if (form->plain) { /* the same bits, and nothing to look up */
        memcpy(point->gradient, point->raw_gradient, (size_t)plan->n_x * sizeof(double));
        memcpy(point->A, point->raw_J, (size_t)plan->nnz_J * sizeof(double));
        for (int i = 0; i < plan->m; i++) point->c[i] = point->raw_g[i] - form->target[i];
        return;
    }
    for (int i = 0; i < plan->n_free; i++)
        point->gradient[i] = form->scale_f * point->raw_gradient[plan->free_at[i]];
    for (int i = 0; i < plan->m; i++)
        point->c[i] = point->raw_g[plan->row_at[i]] * form->scale_c[i] - form->target[i];
    for (int k = 0; k < plan->kept_A; k++)
        point->A[k] = point->raw_J[plan->A_of_J[k]] * form->scale_c[plan->A_rows[k]];
}

int hybrid_evaluate(hybrid_form *form, hybrid_point *point, const double *known_x) {
    const hybrid_plan *plan = form->plan;
    int known;
    distances(form, point);
    user_x(form, point);
    known = known_x && !memcmp(known_x, point->x, (size_t)plan->n_x * sizeof(double));
    if (!known && first(form, point)) return 1;
    scaled(form, point);
    for (int i = plan->n_free; i < plan->n; i++) point->gradient[i] = 0.0;
    for (int k = 0; k < plan->n_slack; k++)
        point->c[plan->slack_row[k]] -= point->w[plan->n_free + k];
    for (int k = plan->kept_A; k < plan->nnz_A; k++) point->A[k] = -1.0;
    return 0;
}

/* Calls the second function with form->lam. */
static int second(hybrid_form *form, const hybrid_point *at) {
    const hybrid_functions *functions = form->functions;
    double began = hybrid_time(functions);
    int failed = functions->second(functions->self, at->x, form->lam, form->numbers->p, form->H);
    form->answer->seconds++;
    form->answer->in_seconds += hybrid_time(functions) - began;
    return failed || !hybrid_all_finite(form->plan->nnz_H, form->H);
}

int hybrid_curvature(hybrid_form *form, const hybrid_point *at, const double *y, double *W) {
    const hybrid_plan *plan = form->plan;
    /* It is affine in the multipliers: the difference leaves the rows' part alone. */
    memset(form->lam, 0, (size_t)plan->n_g * sizeof(double));
    for (int i = 0; i < plan->m; i++) form->lam[plan->row_at[i]] = y[i] * form->scale_c[i];
    if (second(form, at)) return 1;
    for (int k = 0; k < plan->nnz_W; k++) W[k] = form->H[plan->W_of_H[k]];
    memset(form->lam, 0, (size_t)plan->n_g * sizeof(double));
    if (second(form, at)) return 1;
    for (int k = 0; k < plan->nnz_W; k++) W[k] -= form->H[plan->W_of_H[k]];
    return 0;
}

int hybrid_hessian(hybrid_form *form, const hybrid_point *at, const double *y, double objective,
                   double *W) {
    const hybrid_plan *plan = form->plan;
    double scale = objective * form->scale_f;
    if (form->plain && objective == 1.0) {
        memcpy(form->lam, y, (size_t)plan->m * sizeof(double));
        if (second(form, at)) return 1;
        memcpy(W, form->H, (size_t)plan->nnz_W * sizeof(double));
        return 0;
    }
    memset(form->lam, 0, (size_t)plan->n_g * sizeof(double));
    for (int i = 0; i < plan->m; i++)
        form->lam[plan->row_at[i]] = y[i] * form->scale_c[i] / scale;
    if (second(form, at)) return 1;
    for (int k = 0; k < plan->nnz_W; k++) W[k] = scale * form->H[plan->W_of_H[k]];
    return 0;
}

void hybrid_multipliers_in(const hybrid_form *form, double *y, double *z_lower, double *z_upper) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    for (int i = 0; i < plan->m; i++)
        y[i] = of->lam_g0[plan->row_at[i]] * form->scale_f / form->scale_c[i];
    for (int i = 0; i < plan->n; i++) {
        /* A slack is stationary where z_upper - z_lower is the y of its row. */
        double net = i < plan->n_free ? of->lam_x0[plan->free_at[i]] * form->scale_f
                                      : y[plan->slack_row[i - plan->n_free]];
        z_lower[i] = form->has_lower[i] && net < 0.0 ? -net : 0.0;
        z_upper[i] = form->has_upper[i] && net > 0.0 ? net : 0.0;
    }
}

void hybrid_multipliers_out(const hybrid_form *form, const hybrid_point *at, const double *y,
                            const double *z_lower, const double *z_upper, double *lam_x,
                            double *lam_g) {
    const hybrid_plan *plan = form->plan;
    if (form->plain) {
        memcpy(lam_g, y, (size_t)plan->m * sizeof(double));
        for (int i = 0; i < plan->n_x; i++) lam_x[i] = z_upper[i] - z_lower[i];
        return;
    }
    memset(lam_g, 0, (size_t)plan->n_g * sizeof(double));
    for (int i = 0; i < plan->m; i++)
        lam_g[plan->row_at[i]] = y[i] * form->scale_c[i] / form->scale_f;
    if (plan->n_free < plan->n_x) {
        /* The multiplier of a fixed variable is what its stationarity needs. */
        for (int i = 0; i < plan->n_x; i++) lam_x[i] = -at->raw_gradient[i];
        for (int k = 0; k < plan->nnz_J; k++)
            lam_x[plan->J_cols[k]] -= at->raw_J[k] * lam_g[plan->J_rows[k]];
    }
    for (int i = 0; i < plan->n_free; i++)
        lam_x[plan->free_at[i]] = (z_upper[i] - z_lower[i]) / form->scale_f;
}
