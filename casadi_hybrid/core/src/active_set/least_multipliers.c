/* Multipliers at one point: the least change of given ones with which L is stationary, by
 *
 *     [ I   A'       ] [d ]     [grad f + A'y - z_lower + z_upper]
 *     [ A  -epsilon  ] [dy] = - [0                               ],    d = 0 where pinned,
 *
 * whose d is what least squares leave of the slope, and becomes zero where that can. */

#include "active_set/active_set.h"

/* y += the least change, z those of other bounds; model->force becomes grad f + A'y. Returns a
 * status. */
static int change_multipliers(hybrid_model *model, const hybrid_form *form, const hybrid_point *at,
                              double *y, const double *z_lower, const double *z_upper) {
    const hybrid_plan *plan = form->plan;
    if (hybrid_is_late(form->functions, model->until)) return HYBRID_LATE;
    form->answer->factors++;
    if (hybrid_factor_pinned(plan, model->W, at->A, 1.0, HYBRID_INERTIA_DELTA_C, &model->kkt))
        return HYBRID_NO_SET;
    for (int k = 0; k <= HYBRID_CORRECTIONS; k++) { /* of what epsilon dy leaves */
        hybrid_gradient_of_L(plan, at, y, model->force);
        for (int i = 0; i < plan->n; i++) model->force[i] += z_upper[i] - z_lower[i];
        if (hybrid_solve_pinned(plan, model->W, at->A, model->force, model->left, &model->kkt,
                                model->dw, model->dy))
            return HYBRID_NO_SET;
        for (int i = 0; i < plan->m; i++) y[i] += model->dy[i];
        if (hybrid_norm_inf(plan->n, model->dw) <= HYBRID_MULTIPLIERS_SLOPE_LEFT) break;
    }
    hybrid_gradient_of_L(plan, at, y, model->force);
    return HYBRID_SOLVED;
}

int hybrid_least_multipliers(hybrid_model *model, const hybrid_form *form, const hybrid_point *at,
                             const double *y0, double *y, double *z_lower, double *z_upper) {
    const hybrid_plan *plan = form->plan;
    int *pinned = model->kkt.pinned, wrong = 1;
    hybrid_zero(plan->nnz_W, model->W);
    hybrid_zero(plan->m, model->left);
    hybrid_zero(plan->n, model->kkt.move);
    while (wrong) {
        int status;
        hybrid_copy(plan->m, y0, y);
        status = change_multipliers(model, form, at, y, z_lower, z_upper);
        if (status) return status;
        wrong = 0;
        for (int i = 0; i < plan->n; i++) {
            const double slope = model->force[i];
            if (!pinned[i]) continue;
            z_lower[i] = model->sides[i] == 1 ? hybrid_max(slope, 0.0) : 0.0;
            z_upper[i] = model->sides[i] == 2 ? hybrid_max(-slope, 0.0) : 0.0;
            pinned[i] = z_lower[i] + z_upper[i] > 0.0;
            wrong |= !pinned[i];
        }
    }
    return HYBRID_SOLVED;
}
