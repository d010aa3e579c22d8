/* The standard form of a solve at its start. Its numbers are checked; f and the rows are scaled by
 * min(1, 100/|largest derivative at the start|) (Waechter and Biegler 2006, section 3.8). Bounds
 * are scaled and widened, and the first w is made. */
#include <math.h>

#include "problem/problem.h"

/* Returns whether a pair of bounds leaves no value between them. */
static int crossed(double lower, double upper) {
    return !(lower <= upper) | (lower == INFINITY) | (upper == -INFINITY);
}

/* Checks that the numbers can be solved with, and that the bounds are of the plan's kinds. Returns
 * a status. */
static int check_numbers(const hybrid_plan *plan, const hybrid_numbers *of) {
    int bad = 0, other = 0;
    for (int i = 0; i < plan->n_x; i++) {
        double lower = of->lbx[i], upper = of->ubx[i];
        bad |= crossed(lower, upper);
        other |= !(lower < upper) != (plan->kind_x[i] == HYBRID_EQUAL);
    }
    for (int i = 0; i < plan->n_g; i++) {
        double lower = of->lbg[i], upper = of->ubg[i];
        int absent = (fabs(lower) == INFINITY) & (fabs(upper) == INFINITY);
        int kind = absent ? HYBRID_ABSENT : lower < upper ? HYBRID_OPEN : HYBRID_EQUAL;
        bad |= crossed(lower, upper);
        other |= kind != plan->kind_g[i];
    }
    if (bad || !hybrid_all_finite(plan->n_x, of->x0) || !hybrid_all_finite(plan->n_p, of->p) ||
        !hybrid_all_finite(plan->n_x, of->lam_x0) || !hybrid_all_finite(plan->n_g, of->lam_g0))
        return HYBRID_BAD_NUMBERS;
    return other ? HYBRID_OTHER_PATTERN : HYBRID_SOLVED;
}

static double scale_of(double steepest) {
    if (!(steepest > HYBRID_FORM_G_MAX)) return 1.0;
    return hybrid_clamp(HYBRID_FORM_G_MAX / steepest, HYBRID_FORM_SCALE_MIN, 1.0);
}

/* The largest entry of each row of A at the start, unscaled. */
static void largest_entries(const hybrid_plan *plan, const hybrid_point *start, double *of_row) {
    for (int i = 0; i < plan->m; i++) of_row[i] = 0.0;
    for (int k = 0; k < plan->kept_A; k++) {
        double size = fabs(start->raw_J[plan->A_of_J[k]]);
        double *row = &of_row[plan->A_rows[k]];
        if (size > *row) *row = size;
    }
}

/* Scales so that no gradient of f or of a row exceeds 100 at the start. */
static void make_scales(hybrid_form *form, const hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    double steepest = 0.0;
    for (int i = 0; i < plan->n_free; i++)
        steepest = hybrid_max(steepest, fabs(start->raw_gradient[plan->free_at[i]]));
    form->scale_f = scale_of(steepest);
    /* With every variable and every row these are in their places: their numbers increase. */
    form->plain = form->scale_f == 1.0 && plan->n_free == plan->n_x && plan->m == plan->n_g &&
                  !form->perturbed;
    for (int i = 0; i < plan->m; i++) form->scale_c[i] = 1.0;
    if (form->unscaled || hybrid_norm_inf(plan->nnz_J, start->raw_J) <= HYBRID_FORM_G_MAX) return;
    largest_entries(plan, start, form->scale_c);
    for (int i = 0; i < plan->m; i++) {
        form->scale_c[i] = scale_of(form->scale_c[i]);
        form->plain &= form->scale_c[i] == 1.0;
    }
}

/* The distance by which a relaxation moves a bound. */
static double widening(double bound, double relaxation, double most) {
    return hybrid_min(relaxation * hybrid_max(fabs(bound), 1.0), most);
}

/* Bounds and targets, scaled. */
static void make_bounds(hybrid_form *form, const hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    for (int i = 0; i < plan->m; i++) {
        int row = plan->row_at[i];
        double value = form->perturbed ? start->raw_g[row] : of->lbg[row];
        form->target[i] = plan->kind_g[row] == HYBRID_EQUAL ? value * form->scale_c[i] : 0.0;
    }
    hybrid_gather(plan->n_free, plan->n_x, plan->free_at, of->lbx, form->lower);
    hybrid_gather(plan->n_free, plan->n_x, plan->free_at, of->ubx, form->upper);
    for (int k = 0; k < plan->n_slack; k++) {
        int i = plan->slack_row[k], row = plan->row_at[i];
        form->lower[plan->n_free + k] = of->lbg[row] * form->scale_c[i];
        form->upper[plan->n_free + k] = of->ubg[row] * form->scale_c[i];
    }
    for (int i = 0; i < plan->n && form->relaxation > 0.0; i++) {
        int slack = i - plan->n_free;
        double most = HYBRID_FORM_RELAXATION_MAX * of->feasibility;
        if (slack >= 0) most *= form->scale_c[plan->slack_row[slack]];
        form->lower[i] -= widening(form->lower[i], form->relaxation, most);
        form->upper[i] += widening(form->upper[i], form->relaxation, most);
    }
    form->bounds = 0;
    for (int i = 0; i < plan->n; i++)
        form->bounds += (form->lower[i] > -INFINITY) + (form->upper[i] < INFINITY);
}

void hybrid_find_bounds(hybrid_form *form) {
    for (int i = 0; i < form->plan->n; i++) {
        form->has_lower[i] = form->lower[i] > -INFINITY;
        form->has_upper[i] = form->upper[i] < INFINITY;
        form->room[i] = hybrid_room(form->lower[i], form->upper[i]);
    }
}

/* The functions at the start; where they are not defined there, at one that is moved into its
 * bounds, then a little off them. Returns 0, or 1 where they are not defined anywhere of these. */
static int evaluate_start(hybrid_form *form, hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    if (!hybrid_call_first(form, start)) return 0;
    if (!form->placing) return 1;
    hybrid_copy(plan->n_x, form->clipped, start->x);
    if (!hybrid_call_first(form, start)) return 0;
    for (int i = 0; i < plan->n_x; i++) {
        double lower = of->lbx[i], upper = of->ubx[i];
        double room = HYBRID_FORM_START_INSIDE * hybrid_min(upper - lower, 1.0);
        form->clipped[i] = hybrid_clamp(form->clipped[i], lower + room, upper - room);
    }
    hybrid_copy(plan->n_x, form->clipped, start->x);
    return hybrid_call_first(form, start);
}

void hybrid_initial_w(const hybrid_form *form, hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    hybrid_gather(plan->n_free, plan->n_x, plan->free_at, form->clipped, start->w);
    for (int k = 0; k < plan->n_slack; k++) {
        int i = plan->slack_row[k];
        start->w[plan->n_free + k] =
            hybrid_clamp(start->raw_g[plan->row_at[i]] * form->scale_c[i],
                         form->lower[plan->n_free + k], form->upper[plan->n_free + k]);
    }
}

int hybrid_make_form(hybrid_form *form, hybrid_point *start) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    int status = check_numbers(plan, of);
    if (status) return status;
    hybrid_clamp_vector(plan->n_x, of->x0, of->lbx, of->ubx, form->clipped);
    hybrid_copy(plan->n_x, of->x0, start->x);
    for (int i = 0; i < plan->n_x && plan->n_free < plan->n_x; i++)
        if (plan->kind_x[i] == HYBRID_EQUAL) start->x[i] = form->clipped[i];
    if (evaluate_start(form, start)) return HYBRID_UNDEFINED;
    make_scales(form, start);
    make_bounds(form, start);
    hybrid_initial_w(form, start);
    return HYBRID_SOLVED;
}
