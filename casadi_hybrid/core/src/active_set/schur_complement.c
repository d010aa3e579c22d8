/* Small changes of the active set without another factorization: the Schur complement of the
 * entries that were pinned or let go since the last one (Bartlett and Biegler, Optim. Eng. 7,
 * 2006).
 *
 * The base has dw of each entry of w that is free there, and the slope of L of each pinned one. An
 * added bound is a force on a free entry, a dropped one a displacement of a pinned entry. The
 * column of a change is the effect of one unit of it on the base. With the units of the changes the
 * added bounds are met and the dropped ones have no multiplier. */

#include "active_set/active_set.h"

/* A pivot is trusted while it is this part of the largest |number| of its column at least. */
#define TRUST 1e-9

void hybrid_place_schur(const hybrid_plan *plan, hybrid_arena *arena, hybrid_schur *schur) {
    const int most = HYBRID_SCHUR_COLUMNS;
    schur->base = hybrid_allocate(arena, plan->n);
    schur->columns = hybrid_allocate(arena, most * plan->n);
    HYBRID_PLACE(arena, most, &schur->sizes, &schur->units);
    schur->L = hybrid_allocate(arena, most * most);
    schur->of = hybrid_allocate_ints(arena, most);
    schur->used = hybrid_allocate_ints(arena, most);
}

void hybrid_begin_schur(const hybrid_plan *plan, hybrid_model *model) {
    const hybrid_kkt *kkt = &model->kkt;
    hybrid_schur *schur = &model->schur;
    schur->known = 0;
    schur->usable = !kkt->changed;
    if (!schur->usable) return;
    hybrid_copy(plan->n, model->dw, schur->base);
    for (int p = 0; p < kkt->n_pins; p++) {
        int i = kkt->pins[p];
        double slope = model->sides[i] == 1 ? model->z[i] : -model->z[i];
        schur->base[i] = slope + model->shift * model->dw[i];
    }
}

/* Computes into `column` the effect on the base of a unit of a change of entry j. */
static void make_column(const hybrid_plan *plan, hybrid_model *model, const hybrid_point *at, int j,
                        double *column) {
    hybrid_kkt *kkt = &model->kkt;
    const int was_pinned = kkt->pinned[j], size = plan->n + plan->m;
    double *right = kkt->right, *rows = right + plan->n;
    hybrid_zero(size, right);
    if (was_pinned) {
        for (int k = plan->W_starts[j]; k < plan->W_starts[j + 1]; k++)
            right[plan->W_rows[k]] = -model->W[k];
        for (int k = plan->A_starts[j]; k < plan->A_starts[j + 1]; k++)
            rows[plan->A_rows[k]] = -at->A[k];
        for (int p = 0; p < kkt->n_pins; p++) right[kkt->pins[p]] = 0.0;
    }
    right[j] = 1.0;
    hybrid_solve_column(plan, kkt);
    hybrid_copy(plan->n, right, column);
    for (int p = 0; p < kkt->n_pins; p++) {
        int i = kkt->pins[p];
        column[i] = hybrid_curvature_of(plan, model->W, at->A, right, rows, i);
    }
    if (was_pinned) column[j] += model->shift;
}

/* The column of entry j's change, -1 where there is no room for another. */
static int column_of(const hybrid_plan *plan, hybrid_model *model, const hybrid_point *at, int j) {
    hybrid_schur *schur = &model->schur;
    double *column;
    for (int k = 0; k < schur->known; k++)
        if (schur->of[k] == j) return k;
    if (schur->known == HYBRID_SCHUR_COLUMNS) return -1;
    schur->of[schur->known] = j;
    column = schur->columns + (long long)schur->known * plan->n;
    make_column(plan, model, at, j, column);
    schur->sizes[schur->known] = hybrid_norm_inf(plan->n, column);
    return schur->known++;
}

/* Collects the columns: first those of added bounds, then those of dropped ones. Returns the number
 * of added bounds, -1 if the base does not serve. */
static int collect_columns(const hybrid_plan *plan, hybrid_model *model, const hybrid_form *form,
                           const hybrid_point *at) {
    hybrid_schur *schur = &model->schur;
    int added = 0;
    schur->count = 0;
    for (int dropped = 0; dropped < 2; dropped++) {
        for (int i = 0; i < plan->n; i++) {
            int was = model->kkt.pinned[i], is = model->sides[i] != 0, k;
            double goal = (model->sides[i] == 1 ? form->lower[i] : form->upper[i]) - at->w[i];
            if (was && is && goal != model->kkt.move[i]) return -1; /* other side */
            if (was == is || was != dropped) continue;
            k = column_of(plan, model, at, i);
            if (k < 0) return -1;
            schur->used[schur->count] = k;
            schur->units[schur->count++] = (is ? goal : 0.0) - schur->base[i];
        }
        if (!dropped) added = schur->count;
    }
    return added;
}

/* The units of each change by L D L' of the Schur complement. Its pivots have the signs of their
 * kinds, added or dropped, if and only if bounds are independent and the model is convex along free
 * entries. Returns 0, or 1 if they have not. */
static int solve_complement(const hybrid_plan *plan, hybrid_schur *schur, int added) {
    const int count = schur->count;
    double *L = schur->L, *t = schur->units;
    for (int r = 0; r < count; r++) {
        const int row = schur->of[schur->used[r]];
        const double sign = r < added ? 1.0 : -1.0;
        double size = schur->sizes[schur->used[r]], pivot;
        t[r] *= sign;
        for (int c = 0; c <= r; c++) {
            double entry = schur->columns[(long long)schur->used[c] * plan->n + row];
            L[r * count + c] = sign * entry;
        }
        for (int c = 0; c < r; c++) {
            for (int k = 0; k < c; k++) /* L holds L D below its diagonal until here */
                L[r * count + c] -= L[r * count + k] * L[c * count + k];
        }
        pivot = L[r * count + r];
        for (int c = 0; c < r; c++) {
            double factor = L[r * count + c] / L[c * count + c];
            pivot -= factor * L[r * count + c];
            L[r * count + c] = factor;
            t[r] -= factor * t[c];
        }
        if (!(sign * pivot > TRUST * size)) return 1;
        L[r * count + r] = pivot;
    }
    for (int r = 0; r < count; r++) t[r] /= L[r * count + r];
    for (int r = count - 1; r >= 0; r--)
        for (int c = 0; c < r; c++) t[c] -= L[r * count + c] * t[r];
    return 0;
}

int hybrid_solve_schur(hybrid_model *model, const hybrid_form *form, const hybrid_point *at) {
    const hybrid_plan *plan = form->plan;
    const hybrid_kkt *kkt = &model->kkt;
    hybrid_schur *schur = &model->schur;
    double *u = model->z; /* the base with all changes */
    int added;
    if (!schur->usable) return 1;
    added = collect_columns(plan, model, form, at);
    if (added < 0 || solve_complement(plan, schur, added)) return 1;
    hybrid_copy(plan->n, schur->base, u);
    for (int k = 0; k < schur->count; k++) {
        const double *column = schur->columns + (long long)schur->used[k] * plan->n;
        const double by = schur->units[k];
        for (int i = 0; i < plan->n; i++) u[i] += by * column[i];
    }
    for (int k = 0; k < schur->count; k++) { /* the other one of dw and slope */
        int i = schur->of[schur->used[k]];
        u[i] = schur->units[k] + (k < added ? 0.0 : kkt->move[i]);
    }
    for (int i = 0; i < plan->n; i++) {
        int side = model->sides[i];
        double move = (side == 1 ? form->lower[i] : form->upper[i]) - at->w[i];
        double slope = u[i] - model->shift * move;
        model->dw[i] = side ? move : u[i];
        model->z[i] = side ? (side == 1 ? slope : -slope) : 0.0;
    }
    return 0;
}
