/* The quadratic model at one iterate:
 *
 *     min force'd + d'W d / 2  s.t.  c + A d = 0,  lower <= w + d <= upper.
 *
 * Bounds of the working set are met with equality. All wrong entries of the set are exchanged at
 * once as long as they become fewer (the primal-dual active-set method of Hintermueller, Ito and
 * Kunisch, SIAM J. Optim. 13, 2003). Then one bound after the other is exchanged, by a parametric
 * homotopy from the iterate's data to the model's (Ferreau, Bock and Diehl, Int. J. Robust
 * Nonlinear Control 18, 2008). */
#include <math.h>
#include <string.h>

#include "active_set/active_set.h"

void hybrid_place_quadratic_program(const hybrid_plan *plan, hybrid_arena *arena,
                                    hybrid_model *model) {
    int n = plan->n;
    hybrid_place_kkt(plan, arena, &model->kkt);
    model->W = hybrid_allocate(arena, plan->nnz_W);
    HYBRID_PLACE(arena, n, &model->force, &model->dw, &model->z, &model->homotopy_w,
                 &model->homotopy_z);
    HYBRID_PLACE(arena, plan->m, &model->dy, &model->left, &model->along);
    model->sides = hybrid_allocate_ints(arena, n);
    model->wrong = hybrid_allocate_ints(arena, n);
    model->first_sides = hybrid_allocate_ints(arena, n);
    hybrid_place_schur(plan, arena, &model->schur); /* last: much memory that is seldom used */
}

static const double convex[][2] = HYBRID_SQP_REGULARIZATIONS; /* (epsilon, shift) */

int hybrid_pinned_solution(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    for (int p = 0; p < model->kkt.n_pins; p++) {
        int i = model->kkt.pins[p];
        model->kkt.move[i] = (model->sides[i] == 1 ? form->lower[i] : form->upper[i]) - at->w[i];
    }
    return hybrid_solve_pinned(plan, model->W, at->A, model->force, at->c, &model->kkt, model->dw,
                               model->dy);
}

int hybrid_regularized_solution(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    /* Next to a point without multipliers epsilon times their changes exceeds what is left of the
     * rows. */
    static const double precise[][2] = HYBRID_SQP_PERTURBED_REGULARIZATIONS;
    const double(*regularizations)[2] = form->perturbed ? precise : convex;
    const int many = form->perturbed ? HYBRID_COUNT(precise) : HYBRID_COUNT(convex);
    const hybrid_plan *plan = form->plan;
    hybrid_kkt *kkt = &model->kkt;
    const int n = plan->n;
    double largest = 0.0; /* of W, or 1; found where it is needed */
    int indefinite = regularizations[model->regularization][1] > HYBRID_SQP_SHIFT_FLAT;
    if (hybrid_is_late(form->functions, model->until)) return HYBRID_LATE; /* sets may be many */
    for (int i = 0; i < n; i++) kkt->pinned[i] = model->sides[i] != 0;
    for (int k = model->regularization; k < many; k++) {
        double epsilon = regularizations[k][0], shift = regularizations[k][1];
        int result;
        if (indefinite == (shift <= HYBRID_SQP_SHIFT_FLAT)) continue;
        if (shift > 0.0 && largest == 0.0) {
            largest = hybrid_largest_entry_of_W(plan, model->W, kkt->low_rank);
            if (!(largest > 1.0)) largest = 1.0;
        }
        result = hybrid_factor_pinned(plan, model->W, at->A, shift * largest, epsilon, kkt);
        if (result == HYBRID_KKT_RIGHT) result = hybrid_pinned_solution(model, form, at);
        form->answer->factors++;
        if (result == HYBRID_KKT_RIGHT) {
            model->regularization = k;
            model->shift = shift * largest;
            return HYBRID_SOLVED;
        }
        indefinite = indefinite || (result == HYBRID_KKT_WRONG_INERTIA && epsilon > 0.0);
    }
    return HYBRID_NO_SET;
}

int hybrid_find_violated_bounds(hybrid_model *model, const hybrid_form *form,
                                const hybrid_point *at) {
    const double *w = at->w, *dw = model->dw, *lower = form->lower, *upper = form->upper;
    const int n = form->plan->n;
    int *restrict wrong = model->wrong, count = 0;
    for (int i = 0; i < n; i++) {
        double target = w[i] + dw[i], room = HYBRID_FORM_ROOM * hybrid_max(fabs(w[i]), 1.0);
        int below = target < lower[i] - room, above = target > upper[i] + room;
        wrong[i] = below + 2 * above;
        count += below | above;
    }
    return count;
}

/* Says in wrong[] what is wrong with entry i of the set, by its z. */
static void judge_pinned(hybrid_model *model, int i) {
    const int wrong = model->z[i] < 0.0;
    model->count += wrong - (model->wrong[i] != 0);
    model->wrong[i] = 3 * wrong;
}

/* Says there what is wrong with the set, by dw and the z of what is pinned. */
static void judge_set(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    model->count = hybrid_find_violated_bounds(model, form, at);
    for (int i = 0; i < form->plan->n; i++)
        if (model->sides[i]) judge_pinned(model, i);
}

/* The model's solution with the bounds pinned, and what is wrong with the set. Returns a status. */
static int solve_pinned_set(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    int status = hybrid_regularized_solution(model, form, at);
    if (status) return status;
    model->count = hybrid_find_violated_bounds(model, form, at);
    hybrid_zero(plan->n, model->z);
    if (model->kkt.changed) {
        hybrid_add_low_rank(plan, model->kkt.low_rank, model->dw, 0, 0, model->z);
        for (int i = 0; i < plan->n; i++)
            if (!model->kkt.pinned[i]) model->z[i] = 0.0;
    }
    for (int p = 0; p < model->kkt.n_pins; p++) {
        int i = model->kkt.pins[p];
        double slope = model->force[i] + model->z[i] +
                       hybrid_curvature_of(plan, model->W, at->A, model->dw, model->dy, i);
        model->z[i] = model->sides[i] == 1 ? slope : -slope;
        judge_pinned(model, i);
    }
    return HYBRID_SOLVED;
}

/* Solves a changed set by the last factorization and the Schur complement, if these serve. A set
 * with which nothing is wrong has a factorization of its own. Returns a status. */
static int solve_changed_set(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    int status;
    if (!hybrid_solve_schur(model, form, at)) {
        judge_set(model, form, at);
        if (model->count) return HYBRID_SOLVED;
    }
    status = solve_pinned_set(model, form, at);
    if (!status) hybrid_begin_schur(form->plan, model);
    return status;
}

/* Exchanges all that is wrong at once, as long as it becomes less. Returns a status. */
static int exchange_sets(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    while (model->count) {
        int before = model->count, status;
        for (int i = 0; i < form->plan->n; i++)
            if (model->wrong[i]) model->sides[i] = model->wrong[i] % 3;
        status = solve_pinned_set(model, form, at);
        if (status) return status;
        if (model->count >= before) return HYBRID_NO_SET;
    }
    return HYBRID_SOLVED;
}

/* The first wrong entry on the line from (homotopy_w, homotopy_z) to the solution, and the part of
 * the line up to it in *least. */
static int first_crossing(const hybrid_model *model, const hybrid_form *form,
                          const hybrid_point *at, double *least) {
    int first = 0;
    *least = 1.0;
    for (int i = 0; i < form->plan->n; i++) {
        double part = 1.0, step = at->w[i] + model->dw[i] - model->homotopy_w[i];
        if (!model->wrong[i]) continue;
        if (model->wrong[i] == 1) part = (form->lower[i] - model->homotopy_w[i]) / step;
        if (model->wrong[i] == 2) part = (form->upper[i] - model->homotopy_w[i]) / step;
        if (model->wrong[i] == 3)
            part = model->homotopy_z[i] / (model->homotopy_z[i] - model->z[i]);
        if (i == 0 || part < *least) {
            *least = part;
            first = i;
        }
    }
    if (*least < 0.0) *least = 0.0;
    return first;
}

/* Releases a bound of a set whose rows and bounds contradict each other. Then epsilon dy is what K
 * leaves of the rows, and the multipliers grow along a direction without end. The bound whose
 * multiplier becomes negative first leaves the set, as in dual methods (Goldfarb and Idnani, Math.
 * Program. 27, 1983). The direction is that of a second step, by the rest of the rows. It is such a
 * ray only if A' times it is no more than rounding at free entries and more at a pinned one: rows
 * that are met in the limit are left too if dy is large. Returns whether there was such a bound. */
static int release(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    hybrid_kkt *kkt = &model->kkt;
    const double tol = form->numbers->tol;
    const double epsilon = convex[model->regularization][0];
    double *dw = model->homotopy_w, *dy = model->along, *rows = model->left;
    double *rates = model->homotopy_z, least = INFINITY, rounding;
    int first = -1;
    if (form->perturbed) return 0; /* only the set at hand is asked for */
    if (epsilon * hybrid_norm_inf(plan->m, model->dy) <= tol) return 0;
    for (int i = 0; i < plan->m; i++) rows[i] = epsilon * model->dy[i];
    hybrid_zero(plan->n, model->homotopy_z);
    hybrid_zero(plan->n, kkt->move);
    if (hybrid_solve_pinned(plan, model->W, at->A, model->homotopy_z, rows, kkt, dw, dy)) return 0;
    if (!(epsilon * hybrid_norm_inf(plan->m, dy) > tol)) return 0;
    hybrid_multiply_At(plan, at->A, dy, rates);
    rounding = sqrt(epsilon) * hybrid_norm_inf(plan->n, rates);
    for (int i = 0; i < plan->n; i++) {
        double rate = model->sides[i] == 1 ? rates[i] : -rates[i];
        if (!kkt->pinned[i]) {
            if (!(fabs(rate) <= rounding)) return 0;
        } else if (rate < -rounding && model->z[i] < least * -rate) {
            least = model->z[i] / -rate;
            first = i;
        }
    }
    if (first < 0) return 0;
    model->wrong[first] = 3;
    model->count = 1;
    model->regularization = 0;
    return 1;
}

/* The parametric homotopy from the iterate to the model's solution: from the first set on, changes
 * what is met first on it, one bound after the other. Returns a status. */
static int homotopy(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                    const double *z_lower, const double *z_upper) {
    int last = -1, status = solve_pinned_set(model, form, at);
    if (status) return status;
    hybrid_begin_schur(form->plan, model);
    hybrid_copy(form->plan->n, at->w, model->homotopy_w);
    for (int i = 0; i < form->plan->n; i++)
        model->homotopy_z[i] = model->sides[i] == 1   ? z_lower[i]
                               : model->sides[i] == 2 ? z_upper[i]
                                                      : 0.0;
    for (int changes = 0; changes < HYBRID_SQP_HOMOTOPY_CHANGES; changes++) {
        double least;
        int first = first_crossing(model, form, at, &least);
        /* One that was just met: only rounding gives its multiplier this sign. */
        if (first == last && model->wrong[first] == 3) return HYBRID_NO_SET;
        last = first;
        for (int i = 0; i < form->plan->n; i++) {
            double z = model->homotopy_z[i] + least * (model->z[i] - model->homotopy_z[i]);
            model->homotopy_w[i] += least * (at->w[i] + model->dw[i] - model->homotopy_w[i]);
            model->homotopy_z[i] = z > 0.0 ? z : 0.0;
        }
        model->homotopy_z[first] = 0.0;
        model->sides[first] = model->wrong[first] % 3;
        status = solve_changed_set(model, form, at);
        if (status) return status;
        if (!model->count) return HYBRID_SOLVED;
    }
    return HYBRID_NO_SET;
}

int hybrid_solve_quadratic_program(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                                   const double *z_lower, const double *z_upper) {
    const size_t size = (size_t)form->plan->n * sizeof(int);
    int status;
    model->regularization = 0;
    status = solve_pinned_set(model, form, at);
    if (status) return status;
    for (int sets = 0; sets < HYBRID_SQP_HOMOTOPY_CHANGES && !model->count; sets++) {
        if (!release(model, form, at)) return HYBRID_SOLVED;
        status = exchange_sets(model, form, at);
        if (status && status != HYBRID_NO_SET) return status;
    }
    memcpy(model->first_sides, model->sides, size);
    status = exchange_sets(model, form, at);
    if (status != HYBRID_NO_SET) return status;
    memcpy(model->sides, model->first_sides, size);
    return homotopy(model, form, at, z_lower, z_upper);
}
