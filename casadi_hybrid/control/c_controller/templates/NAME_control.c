/* The controller of @NAME@: names, scales and the loop around the solver. */
#include <math.h>
#include <string.h>

#include "@NAME@_control.h"

#define STARTS @starts@
#define INTERVALS @intervals@

/* Source of each parameter of the program: a place of the inputs, of the applied controls (counted
 * on after the inputs), or -1 for a constant. */
static const int from[@UPPER@_PLACES_P] = @from@;

/* The unknowns that a measured state begins, with the state's place and its scale. */
static const int start_x[STARTS] = @start_x@;
static const int start_of[STARTS] = @start_of@;
static const double start_scale[STARTS] = @start_scale@;

/* The unknown of each control on each interval of a plan, and its scale. */
static const int control_x[INTERVALS * @UPPER@_OUTPUTS] = @control_x@;
static const double control_scale[@UPPER@_OUTPUTS] = @control_scale@;
static const double by_default[@UPPER@_OUTPUTS] = @default@;
static const double at_first[@UPPER@_OUTPUTS] = @applied@;

/* For each place the place of the same entry one interval later. */
static const int after_x[@UPPER@_N_X] = @after_x@;
static const int after_g[@UPPER@_PLACES_G] = @after_g@;

/* The unknowns of each trajectory, one after the other, with their scales. */
static const int read_begin[@UPPER@_TRAJECTORIES + 1] = @read_begin@;
static const int read_x[@read_places@] = @read_x@;
static const double read_scale[@read_places@] = @read_scale@;

const @NAME@_inputs @NAME@_written = @written@;

@if limited@
/* Bounds that are limits, of lbx, ubx, lbg and ubg: places, the limit of each, and its divisor. */
typedef struct {
    int count;
    const int *at, *of;
    const double *scale;
@if follows@
    const int *expression; /* followed if the limit is NAN; -1 for none */
@end@
} bounds;
static const @NAME@_limits as_written = @limit_values@;
static const bounds of_limits[] = {@bounds@};

/* The limits of each control; -1 without one. */
static const int control_lower[@UPPER@_OUTPUTS] = @control_lower@;
static const int control_upper[@UPPER@_OUTPUTS] = @control_upper@;

@if follows@
/* @NAME@_follow.c: the parameters of the program -> the limits that are expressions of them. */
int @NAME@_follow(const double **arg, double **res, int *iw, double *w, int mem);

@end@
/* Writes the limits into lbx, ubx, lbg and ubg. */
static void put(const @NAME@_controller *controller, const bounds *of, double *const *bound) {
    const double *limit = (const double *)&controller->limits;
    int i, k;
@if follows@
    const double *arg[@follow_arg@];
    double followed[@followed@], *res[@follow_res@], w[@follow_w@];
    int iw[@follow_iw@];
    arg[0] = controller->in.p;
    res[0] = followed;
    @NAME@_follow(arg, res, iw, w, 0);
@end@
    for (k = 0; k < 4; k++)
        for (i = 0; i < of[k].count; i++) {
            double *to = bound[k] + of[k].at[i], value = limit[of[k].of[i]];
@if follows@
            if (isnan(value) && of[k].expression[i] >= 0) value = followed[of[k].expression[i]];
@end@
            value /= of[k].scale[i];
@if follows@
            if (i && of[k].at[i] == of[k].at[i - 1] && (k % 2 ? value > *to : value < *to))
                continue; /* of several limits at one place the tightest holds */
@end@
            *to = value;
        }
}

@end@
@if softened@
/* The softened problem: places that both problems share, places one interval later, violations of
 * limits, the limit of each, and the limits that are soft in the problem itself. */
static const int hard_x[] = @hard_x@, soft_x[] = @soft_x@;
static const int hard_g[] = @hard_g@, soft_g[] = @soft_g@;
static const int soft_after_x[] = @soft_after_x@;
static const int soft_after_g[] = @soft_after_g@;
static const int amount_x[] = @amount_x@, amount_of[] = @amount_of@;
static const double amount_scale[] = @amount_scale@;
static const int was_soft[@UPPER@_VIOLATIONS] = @was_soft@;
static const int start_violated[STARTS] = @start_violated@;
@if limited@
static const bounds of_soft_limits[] = {@soft_bounds@};
@end@

@end@
@if delay@
/* @NAME@_ahead.c: the state, the controls sent, the parameters and the time -> the state one delay
 * later. */
int @NAME@_ahead(const double **arg, double **res, int *iw, double *w, int mem);

@end@
void @NAME@_begin(@NAME@_controller *controller) {
    memset(controller, 0, sizeof *controller);
    controller->in = @NAME@_stored;
@if clock@
    controller->in.max_time = @max_time@;
@end@
@if softened@
    controller->softened_in = @NAME@_softened_stored;
@end@
@if limited@
    controller->limits = as_written;
@end@
    memcpy(controller->applied, at_first, sizeof controller->applied);
    controller->tolerance = @tolerance@;
    controller->age = -1;
}

/* Shifts values by one interval. Places only move back, so `to` may be `v`. */
static void shift(double *to, const double *v, const int *after, int count) {
    int i;
    for (i = 0; i < count; i++) to[i] = v[after[i]];
}

/* The next start, one interval later: of the last solution, or of the start before. */
static void move_on(@NAME@_controller *controller) {
    @NAME@_in *in = &controller->in;
    const @NAME@_out *out = &controller->out;
    const int solved = controller->begun == 2;
    shift(in->x0, solved ? out->x : in->x0, after_x, @UPPER@_N_X);
    shift(in->lam_x0, solved ? out->lam_x : in->lam_x0, after_x, @UPPER@_N_X);
    shift(in->lam_g0, solved ? out->lam_g : in->lam_g0, after_g, @UPPER@_N_G);
    if (solved) in->of_solution = 1;
    if (controller->age >= 0) controller->age++;
@if softened@
    if (controller->relaxed) {
        @NAME@_softened_in *soft = &controller->softened_in;
        const @NAME@_softened_out *last = &controller->softened_out;
        shift(soft->x0, last->x, soft_after_x, @UPPER@_SOFTENED_N_X);
        shift(soft->lam_x0, last->lam_x, soft_after_x, @UPPER@_SOFTENED_N_X);
        shift(soft->lam_g0, last->lam_g, soft_after_g, @UPPER@_SOFTENED_N_G);
        in->of_solution = 0; /* of another problem */
    } else {
        controller->softened_in = @NAME@_softened_stored;
        memset(controller->softened_in.lam_x0, 0, sizeof controller->softened_in.lam_x0);
        memset(controller->softened_in.lam_g0, 0, sizeof controller->softened_in.lam_g0);
    }
@end@
}

/* Sets the parameters from the inputs and the applied controls. */
static void set_parameters(@NAME@_controller *controller, const double *v) {
    int i;
    for (i = 0; i < @UPPER@_N_P; i++) {
        double *p = controller->in.p + i;
        if (from[i] >= @UPPER@_INPUTS) *p = controller->applied[from[i] - @UPPER@_INPUTS];
        else if (from[i] >= 0) *p = v[from[i]];
    }
}

@if delay@
/* Predicts the inputs at the moment at which the control acts. Returns 0 if one is not finite. */
static int predict(@NAME@_controller *controller, double *v) {
    double after[@state_count@], time = @time_from@;
    int i;
    controller->memory.ahead.arg[0] = v;
    controller->memory.ahead.arg[1] = controller->sent;
    controller->memory.ahead.arg[2] = controller->in.p;
    controller->memory.ahead.arg[3] = &time;
    controller->memory.ahead.res[0] = after;
    @NAME@_ahead(controller->memory.ahead.arg, controller->memory.ahead.res,
                 controller->memory.ahead.iw, controller->memory.ahead.w, 0);
    for (i = 0; i < @state_count@; i++) {
        if (!isfinite(after[i])) return 0;
        v[i] = after[i];
    }
@if timed@
    v[@time_at@] += @delay_seconds@;
@end@
    return 1;
}

@end@
/* Sets bounds, parameters, and the state at the start of the guess. A state that exceeds its limits
 * by at most the tolerance is moved onto them. Without a softened problem the plan may begin outside.
 * Returns the number of entries farther outside, -1 if an input is not finite. */
static int take(@NAME@_controller *controller, const double *v) {
    @NAME@_in *in = &controller->in;
    double measured[@UPPER@_INPUTS];
@if limited@
    double *const bound[] = {in->lbx, in->ubx, in->lbg, in->ubg};
@end@
    int i, far = 0;
    for (i = 0; i < @UPPER@_INPUTS; i++) {
        if (!isfinite(v[i])) return -1;
        measured[i] = v[i];
    }
    set_parameters(controller, measured);
@if limited@
    put(controller, of_limits, bound);
@end@
@if delay@
    if (!predict(controller, measured)) return -1;
@end@
    for (i = 0; i < STARTS; i++) {
        int at = start_x[i];
        double scaled = measured[start_of[i]] / start_scale[i];
        double inside = scaled < in->lbx[at] ? in->lbx[at] : scaled;
        if (inside > in->ubx[at]) inside = in->ubx[at];
        if (fabs(inside - scaled) <= controller->tolerance) {
            scaled = inside;
        } else {
            far++;
@if hard@
            in->lbx[at] = -INFINITY;
            in->ubx[at] = INFINITY;
@end@
        }
        in->x0[at] = scaled;
        measured[start_of[i]] = scaled * start_scale[i];
    }
    set_parameters(controller, measured);
    return far;
}

@if softened@
/* True if a limit on time or steps has ended a solve. */
@if clock@
#define CUT_SHORT(out, NAME) \
    ((out)->stop == NAME##_STOP_ITERATION_LIMIT || (out)->stop == NAME##_STOP_TIME_LIMIT)
@end@
@if warm_only@
#define CUT_SHORT(out, NAME) ((out)->status == NAME##_LIMIT)
@end@

@if clock@
/* Remaining seconds, at least a tiny number, as 0 is no limit. */
static double left(const @NAME@_in *in, double began, double most) {
    const double used = in->now ? in->now() - began : 0.0;
    return used < most ? most - used : 1e-9;
}

@end@
/* Copies the entries that both problems share. */
static void hand_over(double *to, const int *here, const double *v, const int *there, int count) {
    int i;
    for (i = 0; i < count; i++) to[here[i]] = v[there[i]];
}

/* Solves the softened problem from the start of the other one; returns 1 with a plan, else 0. */
static int relax(@NAME@_controller *controller) {
    const @NAME@_in *in = &controller->in;
    @NAME@_softened_in *soft = &controller->softened_in;
    @NAME@_softened_out *eased = &controller->softened_out;
@if limited@
    double *const bound[] = {soft->lbx, soft->ubx, soft->lbg, soft->ubg};
@end@
    int i;
    hand_over(soft->x0, soft_x, in->x0, hard_x, @common_x@);
    hand_over(soft->lam_x0, soft_x, in->lam_x0, hard_x, @common_x@);
    hand_over(soft->lam_g0, soft_g, in->lam_g0, hard_g, @common_g@);
    memcpy(soft->p, in->p, sizeof soft->p);
    soft->of_solution = 0;
    soft->max_iter = in->max_iter;
@if clock@
    soft->now = in->now;
    soft->max_time = in->max_time;
@end@
@if limited@
    put(controller, of_soft_limits, bound);
@end@
    @NAME@_softened_solve_in(&controller->memory.softened, soft, eased);
    for (i = 0; i < @amounts@; i++) {
        const double amount = eased->x[amount_x[i]];
        double *most = controller->violated + amount_of[i];
        if (amount > controller->tolerance && amount * amount_scale[i] > *most)
            *most = amount * amount_scale[i];
    }
    return eased->status == @UPPER@_SOFTENED_SOLVED || eased->feasibility <= controller->tolerance;
}

/* The plan of the softened problem as one of the other. */
static void take_eased(@NAME@_controller *controller) {
    const @NAME@_softened_out *eased = &controller->softened_out;
    @NAME@_out *out = &controller->out;
    hand_over(out->x, hard_x, eased->x, soft_x, @common_x@);
    hand_over(out->lam_x, hard_x, eased->lam_x, soft_x, @common_x@);
    hand_over(out->lam_g, hard_g, eased->lam_g, soft_g, @common_g@);
    out->f = eased->f;
    out->feasibility = eased->feasibility;
    out->stationarity = eased->stationarity;
    out->complementarity = eased->complementarity;
    out->status = eased->status;
@if clock@
    out->stop = eased->stop;
    out->point = eased->point;
    out->certificate = eased->certificate;
@end@
    out->steps += eased->steps;
    out->factors += eased->factors;
    controller->relaxed = 1;
    controller->left = 0.0;
}

/* Keeps the start of a softened solve that a limit has ended, unless 50 steps in a row have made no
 * progress. */
static void keep_unfinished(@NAME@_controller *controller) {
    const @NAME@_softened_out *eased = &controller->softened_out;
    const double left = fmax(eased->feasibility, fmax(eased->stationarity, eased->complementarity));
    const double least = controller->left;
    const int nearer = least == 0.0 || left < 0.9 * least;
    const int waited = nearer ? 0 : controller->waited + (eased->steps > 1 ? eased->steps : 1);
    controller->left = 0.0;
    if (waited > 50 || !CUT_SHORT(eased, @UPPER@_SOFTENED)) return;
    take_eased(controller);
    controller->begun = 2; /* the point is a start for both problems */
    controller->left = nearer ? left : least;
    controller->waited = waited;
}

/* True if hard limits are exceeded, with `beyond` only those that the measured state satisfies. */
static int exceeds(const @NAME@_controller *controller, int beyond) {
    const @NAME@_in *in = &controller->in;
    int i, k, known;
    for (k = 0; k < @UPPER@_VIOLATIONS; k++) {
        if (was_soft[k] || controller->violated[k] == 0.0) continue;
        for (i = known = 0; beyond && i < STARTS; i++) {
            const double x = in->x0[start_x[i]];
            known |= start_violated[i] == k && (x < in->lbx[start_x[i]] || x > in->ubx[start_x[i]]);
        }
        if (!known) return 1;
    }
    return 0;
}

@end@
/* Solves; returns the source of the control, BY_LAST_PLAN if there is no new plan. */
static int plan(@NAME@_controller *controller, int far) {
    @NAME@_in *in = &controller->in;
    @NAME@_out *out = &controller->out;
    int usable;
@if softened@
    const int given = in->of_solution;
    int tried = 0, relaxed = 0;
@if clock@
    const double began = in->now ? in->now() : 0.0, most = in->max_time;
@end@
    memset(controller->violated, 0, sizeof controller->violated);
    controller->relaxed = 0;
    out->steps = out->factors = 0;
    if (far || controller->strained) {
        tried = 1;
        relaxed = relax(controller);
        if (far || exceeds(controller, 0)) {
            if (!relaxed) {
                keep_unfinished(controller);
                return @UPPER@_BY_LAST_PLAN;
            }
            controller->strained = exceeds(controller, 1);
            take_eased(controller);
            return @UPPER@_BY_SOFTENED;
        }
        if (relaxed) { /* no limit is exceeded: the other problem starts from this plan */
            hand_over(in->x0, hard_x, controller->softened_out.x, soft_x, @common_x@);
            hand_over(in->lam_x0, hard_x, controller->softened_out.lam_x, soft_x, @common_x@);
            hand_over(in->lam_g0, hard_g, controller->softened_out.lam_g, soft_g, @common_g@);
            in->of_solution = 0;
        }
    }
@if clock@
    in->max_time = left(in, began, most);
@end@
@end@
@if hard@
    (void)far;
@end@
    @NAME@_solve_in(&controller->memory.solve, in, out);
    usable = out->status == @UPPER@_SOLVED || out->feasibility <= controller->tolerance;
@if softened@
    in->of_solution = given;
    /* A solve that a limit has ended proves nothing and goes on in the next step. */
    controller->strained =
        !usable && (relaxed || (tried ? CUT_SHORT(&controller->softened_out, @UPPER@_SOFTENED)
                                      : !CUT_SHORT(out, @UPPER@)));
    if (!usable && !tried && !CUT_SHORT(out, @UPPER@)) {
@if clock@
        in->max_time = left(in, began, most);
@end@
        relaxed = relax(controller);
        if (!relaxed) keep_unfinished(controller);
    }
@if clock@
    in->max_time = most;
@end@
    if (!usable && relaxed) {
        take_eased(controller);
        return @UPPER@_BY_SOFTENED;
    }
    memset(controller->violated, 0, sizeof controller->violated);
@end@
    if (out->status == @UPPER@_SOLVED) return @UPPER@_BY_SOLUTION;
    return usable ? @UPPER@_BY_FEASIBLE : @UPPER@_BY_LAST_PLAN;
}

int @NAME@_step(@NAME@_controller *controller, const @NAME@_inputs *inputs,
                @NAME@_outputs *outputs) {
    const @NAME@_out *out = &controller->out;
@if limited@
    const double *limit = (const double *)&controller->limits;
@end@
    double *u = (double *)outputs;
    int i, by = @UPPER@_BY_LAST_PLAN, far;
@if delay@
    for (i = 0; !controller->begun && i < @sent@; i++)
        memcpy(controller->sent + i * @UPPER@_OUTPUTS, controller->applied,
               sizeof controller->applied);
@end@
    if (controller->begun) move_on(controller); /* an interval has passed since the last step */
    controller->begun = 1;
    far = take(controller, (const double *)inputs);
    if (far >= 0) by = plan(controller, far);
    if (by != @UPPER@_BY_LAST_PLAN) {
        if (out->status == @UPPER@_SOLVED) controller->begun = 2;
        for (i = 0; i < INTERVALS * @UPPER@_OUTPUTS; i++)
            controller->plan[i] = out->x[control_x[i]] * control_scale[i % @UPPER@_OUTPUTS];
        controller->age = 0;
    }
    if (controller->age >= 0 && controller->age < INTERVALS) {
        memcpy(u, controller->plan + controller->age * @UPPER@_OUTPUTS,
               sizeof controller->applied);
    } else if (controller->fallback && !controller->fallback(inputs, outputs)) {
        by = @UPPER@_BY_FALLBACK;
    } else {
        memcpy(u, by_default, sizeof by_default);
        by = @UPPER@_BY_DEFAULT;
    }
@if limited@
    for (i = 0; i < @UPPER@_OUTPUTS; i++) {
@if follows@
        const double low = controller->in.lbx[control_x[i]] * control_scale[i];
        const double high = controller->in.ubx[control_x[i]] * control_scale[i];
        if (u[i] < low) u[i] = low;
        if (u[i] > high) u[i] = high;
@end@
        if (control_lower[i] >= 0 && u[i] < limit[control_lower[i]]) u[i] = limit[control_lower[i]];
        if (control_upper[i] >= 0 && u[i] > limit[control_upper[i]]) u[i] = limit[control_upper[i]];
    }
@end@
    memcpy(controller->applied, u, sizeof controller->applied);
@if delay@
    memmove(controller->sent, controller->sent + @UPPER@_OUTPUTS,
            (@sent@ - 1) * sizeof controller->applied);
    memcpy(controller->sent + (@sent@ - 1) * @UPPER@_OUTPUTS, u, sizeof controller->applied);
@end@
    return by;
}

int @NAME@_read(const @NAME@_controller *controller, int trajectory, double *values) {
    int i, begin, count;
    if (trajectory < 0 || trajectory >= @UPPER@_TRAJECTORIES) return 0;
    begin = read_begin[trajectory];
    count = read_begin[trajectory + 1] - begin;
    for (i = 0; i < count; i++)
        values[i] = controller->out.x[read_x[begin + i]] * read_scale[begin + i];
    return count;
}
