/* SQP: full steps of sequential quadratic programming (Nocedal and Wright, Numerical Optimization,
 * 2nd ed., section 18.1). Each takes the solution of the quadratic model at the iterate, whose
 * active set is predicted anew. The scaled error has to fall, but not at once (the watchdog of
 * Chamberlain, Powell, Lemarechal and Pedersen, Math. Program. Study 16, 1982). */
#include <math.h>
#include <string.h>

#include "active_set/active_set.h"

/* Bounds may be infinite and numbers none: without these some loops would not end. */
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the engine needs infinity and NaN: compile it without -ffast-math and -ffinite-math-only"
#endif

/* Memory of the method. */
typedef struct {
    hybrid_form form;
    hybrid_model model;
    hybrid_point points[2];
    hybrid_point *at, *trial;
    double *y, *y_before;          /* y_before: before the last move */
    hybrid_bound_multipliers held; /* the multipliers of bounds */
    double *work;                  /* work: as long as w, x or g */
    double *terms;                 /* work: as long as x or g */
    hybrid_sizes sizes;            /* at the iterate */
    double *began;                 /* x of the first iterate */
    double start;                  /* the clock at the start */
    int curved;                    /* of the task */
} sqp;

static void place(const hybrid_plan *plan, hybrid_arena *arena, sqp *h) {
    h->form.plan = plan;
    hybrid_place_form(plan, arena, &h->form);
    hybrid_place_quadratic_program(plan, arena, &h->model);
    hybrid_place_point(plan, arena, &h->points[0]);
    hybrid_place_point(plan, arena, &h->points[1]);
    h->at = &h->points[0];
    h->trial = &h->points[1];
    HYBRID_PLACE(arena, plan->m, &h->y, &h->y_before);
    HYBRID_PLACE(arena, plan->n, &h->held.z_lower, &h->held.z_upper);
    h->held.at = hybrid_allocate_ints(arena, plan->n);
    h->work = hybrid_allocate(arena, hybrid_max_int(hybrid_max_int(plan->n, plan->n_x), plan->n_g));
    h->terms = hybrid_allocate(arena, hybrid_max_int(plan->n_x, plan->n_g));
    h->began = hybrid_allocate(arena, plan->n_x);
}

void hybrid_sqp_memory(const hybrid_plan *plan, long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    sqp h;
    place(plan, &arena, &h);
    *doubles = arena.used_doubles;
    *ints = arena.used_ints;
}

/* The first guess: the working set given, or the bounds whose multiplier exceeds the distance. */
static void guess_set(sqp *h) {
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    int *sides = h->model.sides;
    memset(sides, 0, (size_t)plan->n * sizeof(int));
    for (int i = 0; i < plan->n && of->side_x; i++) {
        int side = i < plan->n_free
                       ? of->side_x[plan->free_at[i]]
                       : of->side_g[plan->row_at[plan->slack_row[i - plan->n_free]]];
        if (side == -1 && form->lower[i] > -INFINITY) sides[i] = 1;
        if (side == 1 && form->upper[i] < INFINITY) sides[i] = 2;
    }
    for (int k = 0; k < h->held.count && !of->side_x; k++) {
        const int i = h->held.at[k];
        const double w = h->at->w[i], lower = form->lower[i], upper = form->upper[i];
        const double room = hybrid_room(lower, upper);
        if (h->held.z_upper[i] > hybrid_distance(w, upper, room)) sides[i] = 2;
        if (h->held.z_lower[i] > hybrid_distance(lower, w, room)) sides[i] = 1;
    }
}

/* The multipliers of bounds at h->at are what its slope leaves to those of the set. */
static void update_bound_multipliers(sqp *h) {
    const hybrid_kkt *kkt = &h->model.kkt;
    hybrid_bound_multipliers *held = &h->held;
    hybrid_gradient_of_L(h->form.plan, h->at, h->y, h->model.force);
    for (int k = 0; k < held->count; k++)
        held->z_lower[held->at[k]] = held->z_upper[held->at[k]] = 0.0;
    held->count = kkt->n_pins;
    for (int k = 0; k < kkt->n_pins; k++) {
        const int i = held->at[k] = kkt->pins[k];
        const double slope = h->model.force[i];
        if (h->model.sides[i] == 1 && slope > 0.0) held->z_lower[i] = slope;
        if (h->model.sides[i] == 2 && slope < 0.0) held->z_upper[i] = -slope;
    }
}

/* Exchanges the present point and y with those before the last move. */
static void swap_points(sqp *h) {
    hybrid_point *at = h->at;
    double *y = h->y;
    h->y = h->y_before;
    h->y_before = y;
    h->at = h->trial;
    h->trial = at;
}

/* Moves by the model's step. Returns a status. */
static int take_step(sqp *h) {
    const hybrid_plan *plan = h->form.plan;
    const hybrid_model *model = &h->model;
    const double inner = model->shift > 0.0 ? 0.0
                                            : hybrid_settled(&h->form, h->at, model->W, 0,
                                                             model->kkt.pinned, model->dw);
    for (int i = 0; i < plan->n; i++) h->trial->w[i] = h->at->w[i] + h->model.dw[i];
    if (hybrid_evaluate(&h->form, h->trial, 0)) return HYBRID_UNDEFINED;
    swap_points(h);
    h->at->inner = inner;
    for (int i = 0; i < plan->m; i++) h->y[i] = h->y_before[i] + h->model.dy[i];
    update_bound_multipliers(h);
    return HYBRID_SOLVED;
}

/* The solution of the quadratic model at h->at becomes h->at. Returns a status. */
static int model_step(sqp *h) {
    hybrid_form *form = &h->form;
    hybrid_model *model = &h->model;
    int status;
    if (hybrid_is_late(form->functions, model->until)) return HYBRID_LATE;
    if (hybrid_hessian(form, h->at, h->y, 1.0, model->W)) return HYBRID_UNDEFINED;
    status = hybrid_solve_quadratic_program(model, form, h->at, h->held.z_lower, h->held.z_upper);
    return status ? status : take_step(h);
}

/* The termination test at h->at, of which error_at has found `error`: HYBRID_SOLVED, or
 * HYBRID_NOT_NEARER where it is no solution. Where rounding may explain a residual it is computed
 * entry by entry. */
static int judge(sqp *h, double error, hybrid_residuals *residuals) {
    const hybrid_form *form = &h->form;
    double *lam_x = form->answer->lam_x, *lam_g = form->answer->lam_g;
    if (hybrid_residuals_of(form, h->at, h->y, &h->held, &h->sizes, h->work, residuals)) {
        hybrid_multipliers_out(form, h->at, h->y, h->held.z_lower, h->held.z_upper, lam_x, lam_g);
        hybrid_residuals_at(form, h->at, lam_x, lam_g, h->work, residuals);
        hybrid_subtract_rounding(form, h->at, lam_x, lam_g, h->work, h->terms, residuals);
    }
    if (!(hybrid_merit(form->numbers, residuals) <= 1.0)) return HYBRID_NOT_NEARER;
    return error <= form->numbers->tol ? HYBRID_SOLVED : HYBRID_NOT_NEARER;
}

static double error_at(sqp *h) {
    return hybrid_scaled_error(&h->form, h->at, h->model.force, h->y, &h->held, h->work, &h->sizes);
}

/* A chord step: one more on the same set and factorization. Returns HYBRID_SOLVED where it led to a
 * solution; else the point is as it was, to the last bit, and the set that of the move before. */
static int chord_step(sqp *h, hybrid_residuals *residuals) {
    const hybrid_residuals here = *residuals;
    if (hybrid_pinned_solution(&h->model, &h->form, h->at) ||
        hybrid_find_violated_bounds(&h->model, &h->form, h->at) || take_step(h))
        return HYBRID_NOT_NEARER;
    if (!judge(h, error_at(h), residuals)) return HYBRID_SOLVED;
    swap_points(h);
    update_bound_multipliers(h);
    *residuals = here;
    return HYBRID_NOT_NEARER;
}

/* Steps until the point is a solution. `before`: the error there. From an unfinished point each has
 * to halve it. Where equations are perturbed many may be needed: next to a double root each halves
 * the distance. Returns a status. */
static int iterate(sqp *h, double before, int unfinished, hybrid_residuals *residuals) {
    hybrid_answer *answer = h->form.answer;
    const hybrid_numbers *numbers = h->form.numbers;
    const int steps = h->form.perturbed ? h->form.perturbed : HYBRID_SQP_STEPS;
    const int most = numbers->max_iter < steps ? numbers->max_iter : steps;
    double reference = INFINITY;
    int watched = 0; /* steps in a row that left more than half of the reference error */
    while (answer->steps < most) {
        const double violation = answer->steps ? 0.0 : h->sizes.c;
        double now;
        int status = model_step(h);
        if (status == HYBRID_LATE) return status;
        answer->steps++;
        if (status) return status;
        now = error_at(h);
        status = judge(h, now, residuals);
        if (status != HYBRID_NOT_NEARER) return status;
        if (h->form.perturbed && now <= HYBRID_SQP_ERROR_ROUNDING) break;
        if (h->form.perturbed) continue;
        if (unfinished && !(now <= 0.5 * before)) return HYBRID_NOT_NEARER;
        if (answer->steps == numbers->max_iter) return HYBRID_LIMIT;
        if (violation > HYBRID_SQP_FAR_VIOLATION &&
            h->sizes.c > HYBRID_SQP_FIRST_VIOLATION * violation)
            return HYBRID_NOT_NEARER;
        /* The first step may raise it: the multipliers of the guess need not fit the new data. */
        watched = now <= 0.5 * reference ? 0 : watched + 1;
        if (!watched) reference = now;
        if (watched > HYBRID_SQP_WATCHDOG || (watched && now <= HYBRID_SQP_ERROR_ROUNDING)) {
            int within = hybrid_merit(numbers, residuals) <= 1.0;
            return now <= HYBRID_SQP_ERROR_ROUNDING && within ? HYBRID_SOLVED : HYBRID_NOT_NEARER;
        }
        if (answer->steps < most && HYBRID_SQP_CHORD * now * now <= numbers->tol * before) {
            answer->steps++;
            if (!chord_step(h, residuals)) return HYBRID_SOLVED;
        }
        before = now;
    }
    return answer->steps == numbers->max_iter && !h->form.perturbed ? HYBRID_LIMIT
                                                                    : HYBRID_NOT_NEARER;
}

/* Looks for smaller multipliers of h->at, which is moved onto the active bounds next to it: without
 * implausible ones, where the others can do without them. Returns a status. */
static int reduce_multipliers(sqp *h, hybrid_residuals *residuals) {
    const hybrid_form *form = &h->form;
    const int n = form->plan->n;
    int *pinned = h->model.kkt.pinned, status;
    double huge;
    guess_set(h);
    for (int i = 0; i < n; i++) {
        const double bound = h->model.sides[i] == 1 ? form->lower[i] : form->upper[i];
        pinned[i] = h->model.sides[i] && fabs(h->at->w[i] - bound) <= form->numbers->tol;
        h->trial->w[i] = pinned[i] ? bound : h->at->w[i];
    }
    if (hybrid_evaluate(&h->form, h->trial, 0)) return HYBRID_UNDEFINED;
    swap_points(h);
    huge = HYBRID_RESIDUALS_HUGE_LAM * hybrid_max(hybrid_norm_inf(n, h->at->gradient), 1.0);
    for (int i = 0; i < form->plan->m; i++)
        if (fabs(h->y_before[i]) > huge) h->y_before[i] = 0.0;
    status = hybrid_least_multipliers(&h->model, form, h->at, h->y_before, h->y, h->held.z_lower,
                                      h->held.z_upper);
    return status ? status : judge(h, error_at(h), residuals);
}

/* The second-order conditions that the last model shows: none where a bound of its set has hardly
 * a multiplier, since a direction may leave that. */
static int order_of(const sqp *h) {
    const hybrid_kkt *kkt = &h->model.kkt;
    if (!h->form.answer->steps || h->model.shift > 0.0 || h->form.functions->secants)
        return HYBRID_FIRST_ORDER;
    for (int k = 0; k < kkt->n_pins; k++) {
        const int i = kkt->pins[k];
        if (!(h->held.z_lower[i] + h->held.z_upper[i] > h->form.numbers->tol))
            return HYBRID_FIRST_ORDER;
    }
    return HYBRID_NECESSARY;
}

/* The active bounds of a solution, in units of f and of w, whose largest entry is `size`. */
static void find_active_bounds(sqp *h, double size) {
    const hybrid_form *form = &h->form;
    const double slope =
        hybrid_max(hybrid_norm_inf(form->plan->n, h->at->gradient), sqrt(form->numbers->tol));
    memset(h->model.sides, 0, (size_t)form->plan->n * sizeof(int));
    for (int k = 0; k < h->held.count; k++) {
        const int i = h->held.at[k];
        const double w = h->at->w[i], lower = form->lower[i], upper = form->upper[i];
        if (h->held.z_upper[i] * size > (upper - w) * slope) h->model.sides[i] = 2;
        if (h->held.z_lower[i] * size > (w - lower) * slope) h->model.sides[i] = 1;
    }
}

/* h->trial becomes the point at a distance along model->dw, moved into the bounds. Returns by how
 * much L, which is `value` at h->at, is less there. */
static double gain_at(sqp *h, double distance, double value) {
    const hybrid_form *form = &h->form;
    hybrid_point *to = h->trial;
    for (int i = 0; i < form->plan->n; i++)
        to->w[i] =
            hybrid_clamp(h->at->w[i] + distance * h->model.dw[i], form->lower[i], form->upper[i]);
    if (hybrid_evaluate(&h->form, to, 0)) return -INFINITY;
    return value - to->f - hybrid_dot(form->plan->m, h->y, to->c);
}

/* The second-order conditions at h->at. With a direction of negative curvature it goes to the
 * farthest point along it, to one side or the other, that gains enough. L has to be less there by a
 * quarter at least of the predicted decrease. If there is none, a bound is in the way, or L is not
 * known so exactly. Curvature counts only if it changes L by more than the tolerance over the size
 * of w. Returns HYBRID_PAUSED at such a point, else HYBRID_SOLVED. */
static int follow_negative_curvature(sqp *h) {
    const hybrid_plan *plan = h->form.plan;
    const double value = h->at->f + hybrid_dot(plan->m, h->y, h->at->c);
    const double most = hybrid_max(hybrid_norm_inf(plan->n, h->at->w), 1.0);
    int *order = &h->form.answer->order, side = h->curved;
    const double least = h->form.numbers->tol * hybrid_max(fabs(value), 1.0);
    const double flat = 2.0 * least / (most * most * hybrid_max(plan->n, 1.0));
    double curvature;
    find_active_bounds(h, most);
    *order = hybrid_second_order(&h->model, &h->form, h->at, h->y, flat, &curvature);
    if (*order != HYBRID_NEGATIVE) return HYBRID_SOLVED;
    for (double size = most; size > HYBRID_SQP_CURVATURE_SHORTEST * most; size *= 0.25)
        for (int k = 0; k < 2; k++, side = -side) {
            const double length = size / hybrid_norm_inf(plan->n, h->model.dw);
            const double said = -0.5 * curvature * length * length;
            if (!(said > least)) continue;
            if (!(gain_at(h, side * length, value) >= HYBRID_SQP_CURVATURE_GAIN * said))
                continue;
            swap_points(h);
            hybrid_copy(plan->m, h->y_before, h->y);
            return HYBRID_PAUSED;
        }
    *order = HYBRID_FIRST_ORDER;
    return HYBRID_SOLVED;
}

/* Shows h->at to the observer, after the steps of the answer. */
static void show(sqp *h, const hybrid_residuals *at, double nu, double moved) {
    const hybrid_answer *answer = h->form.answer;
    hybrid_observer *observer = h->form.functions->observer;
    const double part = answer->steps ? 1.0 : 0.0;
    double row[HYBRID_ROW] = {answer->steps, at->f, at->feasibility, at->stationarity,
                              at->complementarity, nu, moved, part, part, 0.0, 0.0};
    const hybrid_view view = {row, h->at->x, h->at->raw_g, answer->lam_x, answer->lam_g, 0};
    if (!observer) return;
    row[HYBRID_ROW - 1] = hybrid_time(h->form.functions) - h->start;
    hybrid_multipliers_out(&h->form, h->at, h->y, h->held.z_lower, h->held.z_upper,
                           answer->lam_x, answer->lam_g);
    hybrid_observe(observer, &view);
}

/* The ray test at h->at, of which answer->end has the residuals. */
static int ray_test(sqp *h, hybrid_ray *ray) {
    const hybrid_numbers *numbers = h->form.numbers;
    double merit = hybrid_merit(numbers, &h->form.answer->end);
    return hybrid_ray_test(&h->form, h->at, merit, h->terms, h->trial, ray);
}

/* Copies the point to the answer, and says how far it is from the first. Returns the status. */
static int deliver(sqp *h, int status) {
    const int n_x = h->form.plan->n_x;
    hybrid_answer *answer = h->form.answer;
    hybrid_multipliers_out(&h->form, h->at, h->y, h->held.z_lower, h->held.z_upper,
                           answer->lam_x, answer->lam_g);
    hybrid_copy_to_answer(&h->form, h->at);
    for (int i = 0; i < n_x; i++) h->work[i] = h->at->x[i] - h->began[i];
    answer->moved = hybrid_norm_inf(n_x, h->work);
    if (status == HYBRID_SOLVED && answer->huge) status = HYBRID_LARGE;
    return answer->status = status;
}

/* Places the memory and sets the task of one call. */
static void prepare(sqp *h, const hybrid_plan *plan, const hybrid_functions *functions,
                    const hybrid_numbers *numbers, const hybrid_sqp_task *task, hybrid_arena *arena,
                    hybrid_answer *answer) {
    const int perturbed = task->perturbed > 0;
    place(plan, arena, h);
    h->start = hybrid_time(functions);
    h->curved = task->curved;
    h->form.functions = functions;
    h->form.numbers = numbers;
    h->form.answer = answer;
    h->form.perturbed = task->perturbed;
    h->form.relaxation = perturbed ? HYBRID_SQP_PERTURBED_BOUNDS : 0.0;
    h->form.unscaled = perturbed;
    h->form.placing = 0;
    h->model.until = numbers->max_time > 0.0 ? h->start + numbers->max_time : INFINITY;
    h->model.kkt.answer = answer;
    h->model.kkt.at_once = functions->at_once;
    h->model.kkt.low_rank = &h->form.low_rank;
    /* Next to a point without multipliers the residual of a row is far smaller than its terms. */
    h->model.kkt.precise = perturbed;
    hybrid_clear_counts(answer);
    answer->start = (hybrid_residuals){NAN, INFINITY, INFINITY, INFINITY}; /* unknown yet */
    if (functions->secants) functions->secants->count = 0;
}

/* The functions and multipliers at the start. Returns a status. */
static int evaluate_start(sqp *h) {
    const hybrid_plan *plan = h->form.plan;
    hybrid_answer *answer = h->form.answer;
    const int status = hybrid_make_form(&h->form, h->at);
    if (status) return status;
    hybrid_copy(plan->n_x, h->at->raw_gradient, answer->gradient0);
    hybrid_copy(plan->nnz_J, h->at->raw_J, answer->J0);
    if (answer->x_start) hybrid_copy(plan->n_x, h->at->x, answer->x_start);
    hybrid_copy(plan->n_x, h->at->x, h->began);
    if (hybrid_evaluate(&h->form, h->at, h->began)) return HYBRID_UNDEFINED;
    hybrid_copy(plan->n_x, h->at->x, h->began);
    h->held.count =
        hybrid_multipliers_in(&h->form, h->y, h->held.z_lower, h->held.z_upper, h->held.at);
    hybrid_gradient_of_L(plan, h->at, h->y, h->model.force);
    return HYBRID_SOLVED;
}

int hybrid_sqp(const hybrid_plan *plan, const hybrid_functions *functions,
               const hybrid_numbers *numbers, double *doubles, int *ints, hybrid_answer *answer) {
    const hybrid_sqp_task plain = {0, 0, 0};
    return hybrid_run_sqp(plan, functions, numbers, &plain, doubles, ints, answer);
}

int hybrid_run_sqp(const hybrid_plan *plan, const hybrid_functions *functions,
                   const hybrid_numbers *numbers, const hybrid_sqp_task *task, double *doubles,
                   int *ints, hybrid_answer *answer) {
    hybrid_arena arena = {doubles, ints, 0, 0};
    hybrid_ray ray = {INFINITY, INFINITY, 0};
    sqp h;
    double error;
    int status, proof, unfinished;
    prepare(&h, plan, functions, numbers, task, &arena, answer);
    if (!task->curved && !hybrid_has_guess(plan, numbers)) return answer->status = HYBRID_NO_GUESS;
    status = evaluate_start(&h);
    if (status) return answer->status = status;
    error = error_at(&h);
    status = judge(&h, error, &answer->start);
    answer->end = answer->start;
    if (task->curved) return deliver(&h, follow_negative_curvature(&h));
    show(&h, &answer->start, HYBRID_BARRIER_NU_WARM, 0.0);
    proof = ray_test(&h, &ray);
    unfinished =
        !numbers->side_x &&
        hybrid_unfinished_nu(&h.form, h.at->w, h.held.z_lower, h.held.z_upper) > 0.0;
    if (task->least) {
        status = reduce_multipliers(&h, &answer->end);
    } else if (!proof && status == HYBRID_NOT_NEARER && unfinished &&
               numbers->max_iter <= HYBRID_SQP_STEPS) {
        status = HYBRID_NO_SET; /* there is no step to spare for a set that may be none */
    } else if (!proof && status == HYBRID_NOT_NEARER) {
        guess_set(&h);
        status = iterate(&h, error, unfinished, &answer->end);
        if (status == HYBRID_SOLVED) proof = ray_test(&h, &ray);
    }
    if (status == HYBRID_SOLVED && !task->least) answer->order = order_of(&h);
    status = deliver(&h, proof ? proof : status);
    if (answer->steps && (status == HYBRID_SOLVED || status == HYBRID_LARGE))
        show(&h, &answer->end, 0.0, answer->moved);
    answer->elapsed = hybrid_time(functions) - h.start;
    return status;
}
