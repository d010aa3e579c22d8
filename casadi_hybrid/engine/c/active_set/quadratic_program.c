/* The quadratic model at one iterate, as barrier/hot.py:
 *
 *     min force'd + d'W d / 2  s.t.  c + A d = 0,  lower <= w + d <= upper.
 *
 * Bounds of the guessed set are met with equality; all that is wrong with it is exchanged at once
 * as long as it becomes less (Hintermueller, Ito and Kunisch, SIAM J. Optim. 13, 2003), and then
 * one bound after the other on the line from the iterate's data to the model's (Ferreau, Bock and
 * Diehl, Int. J. Robust Nonlinear Control 18, 2008). */
#include <math.h>
#include <string.h>

#include "active_set/active_set.h"

void hybrid_place_model(const hybrid_plan *plan, hybrid_arena *arena, hybrid_model *model) {
    int n = plan->n;
    hybrid_place_kernel(plan, arena, &model->kernel);
    model->W = hybrid_take(arena, plan->nnz_W);
    model->force = hybrid_take(arena, n);
    model->dw = hybrid_take(arena, n);
    model->dy = hybrid_take(arena, plan->m);
    model->left = hybrid_take(arena, plan->m);
    model->along = hybrid_take(arena, plan->m);
    model->z = hybrid_take(arena, n);
    model->first_dw = hybrid_take(arena, n);
    model->first_z = hybrid_take(arena, n);
    model->walk_w = hybrid_take(arena, n);
    model->walk_z = hybrid_take(arena, n);
    model->at_lower = hybrid_take_ints(arena, n);
    model->at_upper = hybrid_take_ints(arena, n);
    model->wrong = hybrid_take_ints(arena, n);
    model->first_lower = hybrid_take_ints(arena, n);
    model->first_upper = hybrid_take_ints(arena, n);
    model->first_wrong = hybrid_take_ints(arena, n);
    hybrid_place_changes(plan, arena, &model->changes); /* last: much memory that is seldom used */
}

static const double convex[][2] = HYBRID_HOT_CONVEX; /* (epsilon, shift) */

/* Rounding violates no bound. */
static double room_at(double w) {
    double size = fabs(w);
    return HYBRID_FORM_ROOM * (size > 1.0 ? size : 1.0);
}

int hybrid_pinned_solution(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    for (int p = 0; p < model->kernel.n_pins; p++) {
        int i = model->kernel.pins[p];
        model->kernel.move[i] = (model->at_lower[i] ? form->lower[i] : form->upper[i]) - at->w[i];
    }
    return hybrid_solve_pinned(plan, model->W, at->A, model->force, at->c, &model->kernel,
                               model->dw, model->dy);
}

/* (dw, dy) with the bounds pinned, by the first of the remedies for K that is of use, which is
 * kept. Returns a status. */
static int remedied(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    /* Next to a point without multipliers epsilon times their changes exceeds what is left of the
     * rows. */
    static const double precise[][2] = HYBRID_POLISH_PRECISE;
    const double(*remedies)[2] = form->numbers->perturbed ? precise : convex;
    const int many = form->numbers->perturbed ? HYBRID_POLISH_PRECISE_COUNT : HYBRID_HOT_CONVEX_COUNT;
    const hybrid_plan *plan = form->plan;
    hybrid_kernel *kernel = &model->kernel;
    const int n = plan->n;
    double largest = 0.0; /* of W, or 1; found where it is asked for */
    int bent = 0;
    if (hybrid_late(form->functions, model->until)) return HYBRID_LATE; /* sets may be many */
    for (int i = 0; i < n; i++) kernel->pinned[i] = model->at_lower[i] | model->at_upper[i];
    for (int remedy = model->remedy; remedy < many; remedy++) {
        double epsilon = remedies[remedy][0], shift = remedies[remedy][1];
        int found;
        if (bent && shift <= HYBRID_POLISH_FLAT) continue;
        if (shift > 0.0 && largest == 0.0) {
            largest = hybrid_largest_of_W(plan, model->W, kernel->low_rank);
            if (!(largest > 1.0)) largest = 1.0;
        }
        found = hybrid_factor_pinned(plan, model->W, at->A, shift * largest, epsilon, kernel);
        if (found == 0) {
            model->remedy = remedy;
            model->shift = shift * largest;
            found = hybrid_pinned_solution(model, form, at);
        }
        form->answer->factors++;
        if (found == 0) return HYBRID_SOLVED;
        bent = bent || (found == 1 && epsilon > 0.0);
    }
    return HYBRID_NO_SET;
}

int hybrid_outside(const hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const double *w = at->w, *dw = model->dw, *lower = form->lower, *upper = form->upper;
    const int n = form->plan->n;
    double *restrict beyond = model->z;
    for (int i = 0; i < n; i++) {
        double target = w[i] + dw[i], room = room_at(w[i]);
        double below = (lower[i] - room) - target, above = target - (upper[i] + room);
        beyond[i] = below > above ? below : above;
    }
    return hybrid_most(n, beyond) > 0.0;
}

/* Says in wrong[] which bounds w + dw is beyond: 2 for a lower, 3 for an upper one. Returns how
 * many they are. */
static int mark_outside(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const double *w = at->w, *dw = model->dw, *lower = form->lower, *upper = form->upper;
    const int n = form->plan->n;
    int *restrict wrong = model->wrong, count = 0;
    for (int i = 0; i < n; i++) {
        double target = w[i] + dw[i], room = room_at(w[i]);
        int below = target < lower[i] - room, above = target > upper[i] + room;
        wrong[i] = 2 * below + 3 * above;
        count += below | above;
    }
    return count;
}

/* Says in wrong[] what is wrong with the set, by dw and the z of what is pinned: 1 at a bound whose
 * multiplier has the wrong sign, 2 and 3 at an entry below its lower or above its upper bound. */
static void judge(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const int n = form->plan->n;
    const double *z = model->z;
    model->count = mark_outside(model, form, at);
    for (int i = 0; i < n; i++) {
        if (!model->at_lower[i] && !model->at_upper[i]) continue;
        model->count -= model->wrong[i] != 0;
        model->wrong[i] = z[i] < 0.0;
        model->count += model->wrong[i];
    }
}

/* The model's solution with these bounds pinned, and what is wrong with the set. Returns a status. */
static int pinned(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    int status = remedied(model, form, at);
    if (status) return status;
    model->count = hybrid_outside(model, form, at) ? mark_outside(model, form, at) : 0;
    if (!model->count) memset(model->wrong, 0, (size_t)plan->n * sizeof(int));
    memset(model->z, 0, (size_t)plan->n * sizeof(double));
    if (model->kernel.changed) {
        hybrid_add_low_rank(plan, model->kernel.low_rank, model->dw, 0, 0, model->z);
        for (int i = 0; i < plan->n; i++)
            if (!model->kernel.pinned[i]) model->z[i] = 0.0;
    }
    for (int p = 0; p < model->kernel.n_pins; p++) {
        int i = model->kernel.pins[p];
        double slope = model->force[i] + model->z[i] +
                       hybrid_bend_of(plan, model->W, at->A, model->dw, model->dy, i);
        model->z[i] = model->at_lower[i] ? slope : -slope;
        model->count -= model->wrong[i] != 0;
        model->wrong[i] = model->z[i] < 0.0;
        model->count += model->wrong[i];
    }
    return HYBRID_SOLVED;
}

/* The same by the last factorization where that serves; a set with which nothing is wrong has one of
 * its own. Returns a status. */
static int changed(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    int status;
    if (!hybrid_changed(model, form, at)) {
        judge(model, form, at);
        if (model->count) return HYBRID_SOLVED;
    }
    status = pinned(model, form, at);
    if (!status) hybrid_begin_changes(form->plan, model);
    return status;
}

/* Changes all that is wrong, as long as it becomes less. Returns a status. */
static int exchange(hybrid_model *model, hybrid_form *form, const hybrid_point *at) {
    for (int sets = 0; sets < HYBRID_HOT_SETS; sets++) {
        int before = model->count, status;
        if (before == 0) return HYBRID_SOLVED;
        for (int i = 0; i < form->plan->n; i++) {
            if (!model->wrong[i]) continue;
            model->at_lower[i] = model->wrong[i] == 2;
            model->at_upper[i] = model->wrong[i] == 3;
        }
        status = pinned(model, form, at);
        if (status) return status;
        if (model->count >= before) return HYBRID_NO_SET;
    }
    return HYBRID_NO_SET;
}

/* The first wrong entry on the way from (walk_w, walk_z) to the solution, and the part of the way
 * to it in *least. */
static int met(const hybrid_model *model, const hybrid_form *form, const hybrid_point *at,
               double *least) {
    int first = 0;
    *least = 1.0;
    for (int i = 0; i < form->plan->n; i++) {
        double part = 1.0, step = at->w[i] + model->dw[i] - model->walk_w[i];
        if (!model->wrong[i]) continue;
        if (model->wrong[i] == 1) part = model->walk_z[i] / (model->walk_z[i] - model->z[i]);
        if (model->wrong[i] == 2) part = (form->lower[i] - model->walk_w[i]) / step;
        if (model->wrong[i] == 3) part = (form->upper[i] - model->walk_w[i]) / step;
        if (i == 0 || part < *least) {
            *least = part;
            first = i;
        }
    }
    if (*least < 0.0) *least = 0.0;
    return first;
}

/* Where rows and bounds of the set contradict each other, epsilon dy is what K leaves of the rows and
 * the multipliers run along a direction without an end: the bound whose multiplier is the first to
 * become negative on it leaves the set, as in dual methods (Goldfarb and Idnani, Math. Program. 27,
 * 1983). Returns whether there was such a bound. */
static int release(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    hybrid_kernel *kernel = &model->kernel;
    const double epsilon = form->numbers->perturbed ? 0.0 : convex[model->remedy][0];
    double *dw = model->walk_w, *dy = model->along, *rows = model->left, least = INFINITY;
    int first = -1;
    if (epsilon == 0.0 || epsilon * hybrid_largest(plan->m, model->dy) <= form->numbers->tol) return 0;
    for (int i = 0; i < plan->m; i++) rows[i] = epsilon * model->dy[i];
    memset(model->walk_z, 0, (size_t)plan->n * sizeof(double));
    memset(kernel->move, 0, (size_t)plan->n * sizeof(double));
    if (hybrid_solve_pinned(plan, model->W, at->A, model->walk_z, rows, kernel, dw, dy)) return 0;
    for (int p = 0; p < kernel->n_pins; p++) {
        int i = kernel->pins[p];
        double slope = hybrid_bend_of(plan, model->W, at->A, dw, dy, i);
        double rate = model->at_lower[i] ? slope : -slope;
        if (!(rate < 0.0) || !(model->z[i] < least * -rate)) continue;
        least = model->z[i] / -rate;
        first = i;
    }
    if (first < 0) return 0;
    model->wrong[first] = model->count = 1;
    model->remedy = 0;
    return 1;
}

/* Changes what is met first on the way from the iterate, one after the other, from the first set
 * and what it gave. Returns a status. */
static int walk(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                const double *z_lower, const double *z_upper) {
    size_t numbers = (size_t)form->plan->n * sizeof(double);
    size_t integers = (size_t)form->plan->n * sizeof(int);
    int last = -1;
    model->changes.usable = 0; /* the first one is factored */
    memcpy(model->dw, model->first_dw, numbers);
    memcpy(model->z, model->first_z, numbers);
    memcpy(model->at_lower, model->first_lower, integers);
    memcpy(model->at_upper, model->first_upper, integers);
    memcpy(model->wrong, model->first_wrong, integers);
    memcpy(model->walk_w, at->w, numbers);
    for (int i = 0; i < form->plan->n; i++)
        model->walk_z[i] = model->at_lower[i]   ? z_lower[i]
                           : model->at_upper[i] ? z_upper[i]
                                                : 0.0;
    for (int changes = 0; changes < HYBRID_HOT_WALK; changes++) {
        double least;
        int status, first = met(model, form, at, &least);
        /* One that was just met: only rounding gives its multiplier this sign. */
        if (first == last && model->wrong[first] == 1) return HYBRID_NO_SET;
        last = first;
        for (int i = 0; i < form->plan->n; i++) {
            double z = model->walk_z[i] + least * (model->z[i] - model->walk_z[i]);
            model->walk_w[i] += least * (at->w[i] + model->dw[i] - model->walk_w[i]);
            model->walk_z[i] = z > 0.0 ? z : 0.0;
        }
        model->walk_z[first] = 0.0;
        model->at_lower[first] = model->wrong[first] == 2;
        model->at_upper[first] = model->wrong[first] == 3;
        status = changed(model, form, at);
        if (status) return status;
        if (model->count == 0 && changes + 1 < HYBRID_HOT_WALK) return HYBRID_SOLVED;
    }
    return HYBRID_NO_SET;
}

int hybrid_solve_model(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                       const double *z_lower, const double *z_upper) {
    size_t numbers = (size_t)form->plan->n * sizeof(double);
    size_t integers = (size_t)form->plan->n * sizeof(int);
    int status;
    model->remedy = 0;
    status = pinned(model, form, at);
    if (status) return status;
    for (int sets = 0; sets < HYBRID_HOT_SETS && !model->count; sets++) {
        if (!release(model, form, at)) return HYBRID_SOLVED;
        status = exchange(model, form, at);
        if (status && status != HYBRID_NO_SET) return status;
    }
    memcpy(model->first_dw, model->dw, numbers);
    memcpy(model->first_z, model->z, numbers);
    memcpy(model->first_lower, model->at_lower, integers);
    memcpy(model->first_upper, model->at_upper, integers);
    memcpy(model->first_wrong, model->wrong, integers);
    status = exchange(model, form, at);
    return status == HYBRID_NO_SET ? walk(model, form, at, z_lower, z_upper) : status;
}
