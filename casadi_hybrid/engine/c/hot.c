/* The warm mode: full Newton steps on an active set that is predicted anew at every step, as
 * barrier/hot.py. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "internal.h"

/* What the mode works on. */
typedef struct {
    hybrid_form form;
    hybrid_kernel kernel;
    hybrid_point points[2];
    hybrid_point *at, *trial;
    double *y, *dy, *dw, *z_lower, *z_upper;
    double *W, *force, *slope, *work; /* work: as long as w or x */
    double *began;                    /* x of the first iterate */
    int *at_lower, *at_upper;
} hot;

static int longer(int a, int b) { return a > b ? a : b; }

static void place(const hybrid_plan *plan, hybrid_arena *arena, hot *h) {
    h->form.plan = plan;
    hybrid_place_form(plan, arena, &h->form);
    hybrid_place_kernel(plan, arena, &h->kernel);
    hybrid_place_point(plan, arena, &h->points[0]);
    hybrid_place_point(plan, arena, &h->points[1]);
    h->at = &h->points[0];
    h->trial = &h->points[1];
    h->y = hybrid_take(arena, plan->m);
    h->dy = hybrid_take(arena, plan->m);
    h->dw = hybrid_take(arena, plan->n);
    h->z_lower = hybrid_take(arena, plan->n);
    h->z_upper = hybrid_take(arena, plan->n);
    h->W = hybrid_take(arena, plan->nnz_W);
    h->force = hybrid_take(arena, plan->n);
    h->slope = hybrid_take(arena, plan->n);
    h->work = hybrid_take(arena, longer(plan->n, plan->n_x));
    h->began = hybrid_take(arena, plan->n_x);
    h->at_lower = hybrid_take_ints(arena, plan->n);
    h->at_upper = hybrid_take_ints(arena, plan->n);
}

void hybrid_warm_memory(const hybrid_plan *plan, long long *doubles, long long *ints) {
    hybrid_arena arena = {0, 0, 0, 0};
    hot h;
    memset(&h, 0, sizeof h);
    place(plan, &arena, &h);
    *doubles = arena.used_doubles;
    *ints = arena.used_ints;
}

/* The first guess: the working set given, or the bounds whose multiplier exceeds the distance. */
static void guess(hot *h) {
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    for (int i = 0; i < plan->n; i++) {
        if (of->side_x) {
            int side = i < plan->n_free
                           ? of->side_x[plan->free_at[i]]
                           : of->side_g[plan->row_at[plan->slack_row[i - plan->n_free]]];
            h->at_lower[i] = side == -1 && form->has_lower[i];
            h->at_upper[i] = side == 1 && form->has_upper[i];
        } else {
            h->at_lower[i] = form->has_lower[i] && h->z_lower[i] > h->at->below[i];
            h->at_upper[i] =
                form->has_upper[i] && h->z_upper[i] > h->at->above[i] && !h->at_lower[i];
        }
    }
}

/* Factors and solves for (dw, dy) onto c = 0 and the pinned bounds. `remedy`: the first of the
 * remedies for a singular kernel to try, and then the one of use. Returns a status. */
static int pinned_step(hot *h, int *remedy) {
    static const double remedies[][2] = HYBRID_POLISH_REMEDIES; /* (epsilon, shift) */
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    hybrid_kernel *kernel = &h->kernel;
    double largest = hybrid_largest(plan->nnz_W, h->W);
    double epsilon = 0.0, shift = 0.0;
    if (!(largest > 1.0)) largest = 1.0;
    for (int i = 0; i < plan->n; i++) {
        kernel->pinned[i] = h->at_lower[i] || h->at_upper[i];
        kernel->move[i] = h->at_lower[i]   ? form->lower[i] - h->at->w[i]
                          : h->at_upper[i] ? form->upper[i] - h->at->w[i]
                                           : 0.0;
    }
    for (;; (*remedy)++) {
        int found;
        if (*remedy >= HYBRID_POLISH_REMEDIES_COUNT) return HYBRID_NO_SET;
        epsilon = remedies[*remedy][0];
        shift = remedies[*remedy][1] * largest;
        form->answer->factors++;
        found = hybrid_factor_pinned(plan, h->W, h->at->A, shift, epsilon, kernel);
        if (found == 0) break;
        if (found == 3) {
            form->answer->doubts++;
            return HYBRID_DOUBT;
        }
        if (found == 1 && epsilon > 0.0) return HYBRID_NO_SET;
    }
    if (hybrid_solve_pinned(plan, h->W, h->at->A, h->force, h->at->c, kernel, h->dw, h->dy)) {
        form->answer->doubts++;
        return HYBRID_DOUBT;
    }
    return HYBRID_SOLVED;
}

/* Drops pinned bounds whose multiplier has the wrong sign and adds those that w + dw violates.
 * Returns whether anything has changed. */
static int exchange(hot *h) {
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    const double *w = h->at->w;
    int changed = 0;
    hybrid_times_W(plan, h->W, h->dw, h->slope);
    hybrid_pull(plan, h->at->A, h->dy, h->work);
    for (int i = 0; i < plan->n; i++) {
        /* Rounding violates no bound. */
        double size = fabs(w[i]), room = HYBRID_FORM_ROOM * (size > 1.0 ? size : 1.0);
        double target = w[i] + h->dw[i], slope = h->force[i] + h->slope[i] + h->work[i];
        int lower, upper;
        if (h->at_lower[i] || h->at_upper[i]) {
            lower = h->at_lower[i] && slope >= 0.0;
            upper = h->at_upper[i] && slope <= 0.0;
        } else {
            lower = form->has_lower[i] && target < form->lower[i] - room;
            upper = form->has_upper[i] && target > form->upper[i] + room;
        }
        changed |= lower != h->at_lower[i] || upper != h->at_upper[i];
        h->at_lower[i] = lower;
        h->at_upper[i] = upper;
    }
    return changed;
}

/* Moves by (h->dw, h->dy); the multipliers of bounds are those of the set. Returns a status. */
static int move(hot *h) {
    const hybrid_plan *plan = h->form.plan;
    hybrid_point *new = h->trial;
    for (int i = 0; i < plan->n; i++) new->w[i] = h->at->w[i] + h->dw[i];
    if (hybrid_evaluate(&h->form, new, 0)) return HYBRID_UNDEFINED;
    for (int i = 0; i < plan->m; i++) h->y[i] += h->dy[i];
    hybrid_pull(plan, new->A, h->y, h->slope);
    for (int i = 0; i < plan->n; i++) {
        double slope = new->gradient[i] + h->slope[i];
        h->z_lower[i] = h->at_lower[i] && slope > 0.0 ? slope : 0.0;
        h->z_upper[i] = h->at_upper[i] && slope < 0.0 ? -slope : 0.0;
    }
    h->trial = h->at;
    h->at = new;
    return HYBRID_SOLVED;
}

/* Undoes the last move, but for the multipliers of bounds, which the next one makes anew. */
static void back(hot *h) {
    hybrid_point *new = h->at;
    for (int i = 0; i < h->form.plan->m; i++) h->y[i] -= h->dy[i];
    h->at = h->trial;
    h->trial = new;
}

/* The solution of the quadratic model at h->at becomes h->at. Returns a status. */
static int model_step(hot *h) {
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    int remedy = 0, sets = 0, status;
    if (hybrid_hessian(&h->form, h->at, h->y, 1.0, h->W)) return HYBRID_UNDEFINED;
    hybrid_pull(plan, h->at->A, h->y, h->force);
    for (int i = 0; i < plan->n; i++) h->force[i] += h->at->gradient[i];
    do {
        if (sets++ == HYBRID_HOT_SETS) return HYBRID_NO_SET;
        status = pinned_step(h, &remedy);
        if (status) return status;
    } while (exchange(h));
    return move(h);
}

/* Judges h->at: HYBRID_SOLVED, HYBRID_EXCUSED, or HYBRID_NOT_NEARER where it is no solution. */
static int judge(hot *h, double error, hybrid_residuals *residuals) {
    const hybrid_form *form = &h->form;
    hybrid_answer *answer = form->answer;
    int excused;
    hybrid_multipliers_out(form, h->at, h->y, h->z_lower, h->z_upper, answer->lam_x,
                           answer->lam_g);
    excused = hybrid_residuals_at(form, h->at, answer->lam_x, answer->lam_g, h->work, residuals);
    if (hybrid_merit(form->numbers, residuals) <= 1.0)
        return error <= form->numbers->tol ? HYBRID_SOLVED : HYBRID_NOT_NEARER;
    return excused ? HYBRID_EXCUSED : HYBRID_NOT_NEARER;
}

static double error_at(hot *h) {
    return hybrid_scaled_error(&h->form, h->at, h->y, h->z_lower, h->z_upper, h->work);
}

/* One more step on the same set and factorization, into h->trial, h->dw and h->dy. Returns 0 where
 * the set holds there, another number where it does not or nothing is known. */
static int again(hot *h) {
    hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    const double *w = h->at->w;
    hybrid_pull(plan, h->at->A, h->y, h->force);
    for (int i = 0; i < plan->n; i++) {
        h->force[i] += h->at->gradient[i];
        h->kernel.move[i] = h->at_lower[i]   ? form->lower[i] - w[i]
                            : h->at_upper[i] ? form->upper[i] - w[i]
                                             : 0.0;
    }
    if (hybrid_solve_pinned(plan, h->W, h->at->A, h->force, h->at->c, &h->kernel, h->dw, h->dy))
        return 1;
    for (int i = 0; i < plan->n; i++) {
        double size = fabs(w[i]), room = HYBRID_FORM_ROOM * (size > 1.0 ? size : 1.0);
        double target = w[i] + h->dw[i];
        if (target < form->lower[i] - room || target > form->upper[i] + room) return 1;
    }
    return 0;
}

/* Steps until the point is a solution. `before`: the error there. Returns a status. */
static int follow(hot *h, double before, hybrid_residuals *residuals) {
    hybrid_answer *answer = h->form.answer;
    const hybrid_numbers *numbers = h->form.numbers;
    double error = INFINITY;
    int most = numbers->max_iter < HYBRID_HOT_STEPS ? numbers->max_iter : HYBRID_HOT_STEPS;
    while (answer->steps < most) {
        double now;
        int status;
        answer->steps++;
        status = model_step(h);
        if (status) return status;
        now = error_at(h);
        status = judge(h, now, residuals);
        if (status != HYBRID_NOT_NEARER) return status;
        /* The first step may raise it: the multipliers of the guess need not fit the new data. */
        if (!(now <= 0.5 * error)) {
            int within = hybrid_merit(numbers, residuals) <= 1.0;
            return now <= HYBRID_HOT_EXACT && within ? HYBRID_SOLVED : HYBRID_NOT_NEARER;
        }
        if (answer->steps < most && 2.0 * now * now <= numbers->tol * before) {
            answer->steps++;
            if (!again(h) && !move(h)) {
                status = judge(h, error_at(h), residuals);
                if (status == HYBRID_SOLVED) return status;
                back(h);
            }
        }
        error = before = now;
    }
    return most < HYBRID_HOT_STEPS ? HYBRID_LIMIT : HYBRID_NOT_NEARER;
}

/* Whether x or the multipliers are so large that more has to be asked. */
static int looked_at(const hybrid_answer *answer) {
    double slope = answer->steepest > 1.0 ? answer->steepest : 1.0;
    double size = answer->largest_x > answer->largest_g ? answer->largest_x : answer->largest_g;
    return size > HYBRID_RESIDUALS_HUGE_MULTIPLIER * slope ||
           !(answer->reach < HYBRID_RAYS_LARGE);
}

/* Copies the point and its derivatives to the answer. */
static int deliver(hot *h, int status) {
    const hybrid_form *form = &h->form;
    const hybrid_plan *plan = form->plan;
    const hybrid_point *at = h->at;
    hybrid_answer *answer = form->answer;
    double began;
    memcpy(answer->x, at->x, (size_t)plan->n_x * sizeof(double));
    memcpy(answer->g, at->raw_g, (size_t)plan->n_g * sizeof(double));
    memcpy(answer->gradient, at->raw_gradient, (size_t)plan->n_x * sizeof(double));
    memcpy(answer->J, at->raw_J, (size_t)plan->nnz_J * sizeof(double));
    answer->moved = 0.0;
    for (int i = 0; i < plan->n_x; i++) {
        double step = fabs(at->x[i] - h->began[i]);
        if (step > answer->moved) answer->moved = step;
    }
    answer->largest_x = hybrid_largest(plan->n_x, answer->lam_x);
    answer->largest_g = hybrid_largest(plan->n_g, answer->lam_g);
    answer->steepest = hybrid_largest(plan->n_x, at->raw_gradient);
    answer->reach = hybrid_largest(plan->n_x, at->x);
    began = hybrid_largest(plan->n_x, h->began);
    if (began > answer->reach) answer->reach = began;
    if (status == HYBRID_SOLVED && looked_at(answer)) status = HYBRID_LARGE;
    return answer->status = status;
}

int hybrid_warm(const hybrid_plan *plan, const hybrid_functions *functions,
                const hybrid_numbers *numbers, double *doubles, int *ints,
                hybrid_answer *answer) {
    hybrid_arena arena = {0, 0, 0, 0};
    hot h;
    double error, began = hybrid_time(functions);
    int status;
    arena.doubles = doubles;
    arena.ints = ints;
    place(plan, &arena, &h);
    h.form.functions = functions;
    h.form.numbers = numbers;
    h.form.answer = answer;
    answer->in_firsts = answer->in_seconds = 0.0;
    answer->steps = answer->firsts = answer->seconds = answer->factors = answer->doubts = 0;
    if (!numbers->side_x && hybrid_sum(plan->n_x, numbers->lam_x0) == 0.0 &&
        hybrid_sum(plan->n_g, numbers->lam_g0) == 0.0)
        return answer->status = HYBRID_COLD;
    status = hybrid_make_form(&h.form, h.at);
    if (status) return answer->status = status;
    memcpy(answer->gradient0, h.at->raw_gradient, (size_t)plan->n_x * sizeof(double));
    memcpy(answer->J0, h.at->raw_J, (size_t)plan->nnz_J * sizeof(double));
    memcpy(h.began, h.at->x, (size_t)plan->n_x * sizeof(double));
    if (hybrid_evaluate(&h.form, h.at, h.began)) return answer->status = HYBRID_UNDEFINED;
    memcpy(h.began, h.at->x, (size_t)plan->n_x * sizeof(double));
    hybrid_multipliers_in(&h.form, h.y, h.z_lower, h.z_upper);
    error = error_at(&h);
    status = judge(&h, error, &answer->start);
    answer->end = answer->start;
    if (status == HYBRID_NOT_NEARER) {
        guess(&h);
        status = follow(&h, error, &answer->end);
    }
    status = deliver(&h, status);
    answer->elapsed = hybrid_time(functions) - began;
    return status;
}
