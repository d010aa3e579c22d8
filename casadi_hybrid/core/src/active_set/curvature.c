/* Second-order conditions at a KKT point, and a direction of negative curvature.
 *
 * The conditions follow from the inertia of the KKT matrix with the active bounds pinned (Nocedal
 * and Wright, Numerical Optimization, 2nd ed., theorem 16.3). The direction is that of an inverse
 * iteration on that matrix. Its shift is the least one, to a factor of two, with which the inertia
 * is that of a minimum. The iteration begins with a fixed vector, which picks a direction if
 * several have one eigenvalue, and its sign. */
#include <float.h>
#include <math.h>

#include "active_set/active_set.h"

/* Steps of the inverse iteration: each at least halves the part of directions of positive
 * curvature. */
#define STEPS 10

static int factor(hybrid_model *model, hybrid_form *form, const hybrid_point *at, double shift) {
    form->answer->factors++;
    return hybrid_factor_pinned(form->plan, model->W, at->A, shift, HYBRID_INERTIA_DELTA_C,
                                &model->kkt);
}

/* Factors with a shift between the least one above `low` that serves and twice that. Returns
 * whether one does. */
static int factor_shifted(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                          double low) {
    double high = hybrid_max(hybrid_norm_inf(form->plan->nnz_W, model->W), low);
    while (factor(model, form, at, high)) {
        high *= HYBRID_CURVATURE_SHIFT_GROWTH;
        if (!(high <= HYBRID_INERTIA_DELTA_W_MAX)) return 0;
    }
    while (high > 2.0 * low) {
        const double middle = sqrt(low) * sqrt(high);
        if (factor(model, form, at, middle)) low = middle;
        else high = middle;
    }
    return !factor(model, form, at, high);
}

/* A unit direction of negative curvature into model->dw. Returns its curvature, or 0. */
static double direction_of_negative_curvature(hybrid_model *model, hybrid_form *form,
                                              const hybrid_point *at, double flat) {
    const hybrid_plan *plan = form->plan;
    double *d = model->dw;
    if (!factor_shifted(model, form, at, flat)) return 0.0;
    hybrid_zero(plan->m, model->left);
    hybrid_zero(plan->n, model->kkt.move);
    for (int i = 0; i < plan->n; i++) d[i] = 1.0 / (i + sqrt(2.0));
    for (int k = 0; k < STEPS; k++) {
        double size;
        for (int i = 0; i < plan->n; i++) model->force[i] = -d[i];
        if (hybrid_solve_pinned(plan, model->W, at->A, model->force, model->left, &model->kkt, d,
                                model->dy))
            return 0.0;
        size = hybrid_norm2(plan->n, d);
        if (!(size > 0.0 && size < INFINITY)) return 0.0;
        for (int i = 0; i < plan->n; i++) d[i] /= size;
    }
    hybrid_multiply_W(plan, model->W, d, model->z);
    return hybrid_min(hybrid_dot(plan->n, d, model->z), 0.0);
}

/* The part of max(1, |w|) by which a solution may move. It is the model's step, or what the slope
 * and the products of multipliers and distances from bounds allow at this curvature. */
static double inaccuracy(const hybrid_model *model, const hybrid_form *form,
                         const hybrid_point *at, const double *dw, double curvature) {
    const int n = form->plan->n;
    const double size = hybrid_max(hybrid_norm_inf(n, at->w), 1.0);
    const double products = form->answer->end.complementarity * form->scale_f;
    const double steep = hybrid_max(hybrid_norm_inf(n, at->gradient), curvature * size);
    double slope = 0.0, moved = products / hybrid_max(steep, HYBRID_DIVISOR_TINY);
    for (int i = 0; i < n; i++)
        if (!model->kkt.pinned[i]) slope = hybrid_max(slope, fabs(model->force[i]));
    if (dw) moved = hybrid_max(moved, hybrid_norm_inf(n, dw));
    else moved = hybrid_max(moved, slope / hybrid_max(curvature, HYBRID_DIVISOR_TINY));
    return moved / size;
}

int hybrid_second_order(hybrid_model *model, hybrid_form *form, const hybrid_point *at,
                        const double *y, double flat, double *curvature) {
    double largest, *newton = &form->answer->newton;
    int status = HYBRID_SOLVED, order = HYBRID_SUFFICIENT;
    *curvature = 0.0;
    if (hybrid_hessian(form, at, y, 1.0, model->W)) return HYBRID_FIRST_ORDER;
    hybrid_gradient_of_L(form->plan, at, y, model->force);
    largest = hybrid_norm_inf(form->plan->nnz_W, model->W);
    for (int i = 0; i < form->plan->n; i++) model->kkt.pinned[i] = model->sides[i] != 0;
    model->regularization = 0;
    model->shift = 0.0;
    if (factor(model, form, at, -HYBRID_CURVATURE_FLAT * largest) ||
        hybrid_pinned_solution(model, form, at)) {
        order = HYBRID_NECESSARY;
        status = hybrid_regularized_solution(model, form, at);
    }
    if (status == HYBRID_SOLVED &&
        model->shift <= HYBRID_SQP_SHIFT_FLAT * hybrid_max(largest, 1.0)) {
        *newton = inaccuracy(model, form, at, model->dw, largest);
        return order;
    }
    if (status && status != HYBRID_NO_SET) return HYBRID_FIRST_ORDER;
    *newton = inaccuracy(model, form, at, 0, largest);
    flat = hybrid_max(flat, DBL_EPSILON * largest);
    if (!factor(model, form, at, flat))
        return flat > HYBRID_CURVATURE_FLAT * largest &&
                       factor(model, form, at, HYBRID_CURVATURE_FLAT * largest)
                   ? HYBRID_FIRST_ORDER
                   : HYBRID_NECESSARY;
    *curvature = direction_of_negative_curvature(model, form, at, flat);
    return *curvature < 0.0 ? HYBRID_NEGATIVE : HYBRID_FIRST_ORDER;
}
