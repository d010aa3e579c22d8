/* The controller of @NAME@: names, scales and the loop around the solver. */
#include <math.h>
#include <string.h>

#include "@NAME@_control.h"

#define STARTS @starts@
#define INTERVALS @intervals@

/* Where each parameter of the program is from: a place of the inputs, of the applied controls
 * (counted on after the inputs), or -1 for what stays. */
static const int from[@UPPER@_PLACES_P] = @from@;

/* The unknowns that a measured state begins, with the state's place and its scale. */
static const int start_x[STARTS] = @start_x@;
static const int start_of[STARTS] = @start_of@;
static const double start_scale[STARTS] = @start_scale@;

/* The unknown of each control on each interval of a plan, and its scale. */
static const int control_x[INTERVALS * @UPPER@_OUTPUTS] = @control_x@;
static const double control_scale[@UPPER@_OUTPUTS] = @control_scale@;
static const double control_lower[@UPPER@_OUTPUTS] = @control_lower@;
static const double control_upper[@UPPER@_OUTPUTS] = @control_upper@;
static const double by_default[@UPPER@_OUTPUTS] = @default@;
static const double at_first[@UPPER@_OUTPUTS] = @applied@;

/* What stands at a place one interval later. */
static const int after_x[@UPPER@_N_X] = @after_x@;
static const int after_g[@UPPER@_PLACES_G] = @after_g@;

/* The unknowns of each trajectory, one after the other, with their scales. */
static const int read_begin[@UPPER@_TRAJECTORIES + 1] = @read_begin@;
static const int read_x[@read_places@] = @read_x@;
static const double read_scale[@read_places@] = @read_scale@;

const @NAME@_inputs @NAME@_written = @written@;

void @NAME@_begin(@NAME@_controller *controller) {
    memset(controller, 0, sizeof *controller);
    controller->in = @NAME@_stored;
    memcpy(controller->applied, at_first, sizeof controller->applied);
    controller->tolerance = @tolerance@;
    controller->age = -1;
}

/* The next start: `x` and its multipliers one interval later. Places only move back, so that it may
 * be the start itself. */
static void shift(@NAME@_in *in, const double *x, const double *lam_x, const double *lam_g) {
    int i;
    for (i = 0; i < @UPPER@_N_X; i++) {
        in->x0[i] = x[after_x[i]];
        in->lam_x0[i] = lam_x[after_x[i]];
    }
    for (i = 0; i < @UPPER@_N_G; i++) in->lam_g0[i] = lam_g[after_g[i]];
}

/* Parameters, and the measured state at the start of the guess. A state that exceeds its limits by
 * no more than the tolerance is at them; from one farther away the plan may begin outside. */
static int take(@NAME@_controller *controller, const double *v) {
    @NAME@_in *in = &controller->in;
    double measured[@UPPER@_INPUTS];
    int i;
    for (i = 0; i < @UPPER@_INPUTS; i++) {
        if (!isfinite(v[i])) return 0;
        measured[i] = v[i];
    }
    for (i = 0; i < STARTS; i++) {
        int at = start_x[i];
        double scaled = measured[start_of[i]] / start_scale[i];
        in->lbx[at] = @NAME@_stored.lbx[at];
        in->ubx[at] = @NAME@_stored.ubx[at];
        if (scaled < in->lbx[at]) {
            if (in->lbx[at] - scaled <= controller->tolerance) scaled = in->lbx[at];
            else in->lbx[at] = -INFINITY;
        }
        if (scaled > in->ubx[at]) {
            if (scaled - in->ubx[at] <= controller->tolerance) scaled = in->ubx[at];
            else in->ubx[at] = INFINITY;
        }
        in->x0[at] = scaled;
        measured[start_of[i]] = scaled * start_scale[i];
    }
    for (i = 0; i < @UPPER@_N_P; i++) {
        if (from[i] >= @UPPER@_INPUTS) in->p[i] = controller->applied[from[i] - @UPPER@_INPUTS];
        else if (from[i] >= 0) in->p[i] = measured[from[i]];
    }
    return 1;
}

int @NAME@_step(@NAME@_controller *controller, const @NAME@_inputs *inputs,
                @NAME@_outputs *outputs) {
    @NAME@_out *out = &controller->out;
    double *u = (double *)outputs;
    int i, by = @UPPER@_BY_LAST_PLAN;
    if (controller->begun) { /* an interval has gone by since the last step */
        const int solved = controller->begun == 2;
        shift(&controller->in, solved ? out->x : controller->in.x0,
              solved ? out->lam_x : controller->in.lam_x0,
              solved ? out->lam_g : controller->in.lam_g0);
        if (solved) controller->in.of_solution = 1;
        if (controller->age >= 0) controller->age++;
    }
    controller->begun = 1;
    if (take(controller, (const double *)inputs)) {
        @NAME@_solve_in(&controller->memory, &controller->in, out);
        if (out->status == @UPPER@_SOLVED) {
            by = @UPPER@_BY_SOLUTION;
            controller->begun = 2;
        } else if (out->feasibility <= controller->tolerance) {
            by = @UPPER@_BY_FEASIBLE;
        }
    }
    if (by != @UPPER@_BY_LAST_PLAN) {
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
    for (i = 0; i < @UPPER@_OUTPUTS; i++) {
        if (u[i] < control_lower[i]) u[i] = control_lower[i];
        if (u[i] > control_upper[i]) u[i] = control_upper[i];
    }
    memcpy(controller->applied, u, sizeof controller->applied);
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
