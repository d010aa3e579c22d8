/* @NAME@ by name and in physical units: measured state in, control out. Beside @NAME@.h, which has
 * the solver. @period@. */
#ifndef @UPPER@_CONTROL_H
#define @UPPER@_CONTROL_H

#include "@NAME@.h"
@if softened@
#include "@NAME@_softened.h"
@end@

/* Inputs of a step: the measured state, then parameters and references. All are doubles, so that an
 * array of @UPPER@_INPUTS numbers has them at the places of the enumeration. */
typedef struct {
@input_fields@
} @NAME@_inputs;
enum {
@input_places@,
    @UPPER@_INPUTS = @inputs@
};

/* Outputs of a step, within the limits of the controls. */
typedef struct {
@output_fields@
} @NAME@_outputs;
enum {
@output_places@,
    @UPPER@_OUTPUTS = @outputs@
};

@if limited@
/* Limits that may change between steps, in physical units; a side that was declared without a limit
 * is not here. Different lower and upper limits must stay different, equal ones equal, also if they
 * follow an expression: else it is another problem (@UPPER@_OTHER_PATTERN). */
@if follows@
/* A limit that is NAN follows its declared expression of inputs. */
@end@
typedef struct {
@limit_fields@
} @NAME@_limits;
enum {
@limit_places@,
    @UPPER@_LIMITS = @limit_count@
};

@end@
@if softened@
/* Limits that a plan may exceed if no plan keeps them. */
enum {
@violation_places@,
    @UPPER@_VIOLATIONS = @violations@
};

@end@
/* Trajectories of a plan, for @NAME@_read. */
enum {
@trajectories@,
    @UPPER@_TRAJECTORIES
};
@lengths@

/* Source of the control of a step. */
enum {
    @UPPER@_BY_SOLUTION = 0,  /* the first control of a plan that solves the problem */
    @UPPER@_BY_FEASIBLE = 1,  /* of an unfinished plan that keeps all limits */
    @UPPER@_BY_LAST_PLAN = 2, /* the control of the last such plan for this interval */
    @UPPER@_BY_FALLBACK = 3,  /* your function, controller.fallback */
    @UPPER@_BY_DEFAULT = 4,   /* @default_words@ */
    @UPPER@_BY_SOFTENED = 5   /* a plan that exceeds limits, as little as their weights demand */
};

/* Begin with @NAME@_begin; then these may be set:
 * - fallback;
@if limited@
 * - limits;
@end@
@if clock@
 * - in.now, a monotonic clock in seconds, and in.max_time, the limit of the solves of a step,
 *   @max_time@ as written;
@end@
 * - in.max_iter, steps of a solve.
 * Bounds in `in` are those of the program, divided by the scales; a step writes them. */
typedef struct {
    @NAME@_in in;
    @NAME@_out out; /* of the last solve: status, steps, residuals */
@if softened@
    @NAME@_softened_in softened_in;
    @NAME@_softened_out softened_out;
    double violated[@UPPER@_VIOLATIONS]; /* excess of the last plan, physical units */
@end@
    union {
        @NAME@_memory solve;
@if softened@
        @NAME@_softened_memory softened;
@end@
@if delay@
        struct {
            const double *arg[@ahead_arg@];
            double *res[@ahead_res@], w[@ahead_w@];
            int iw[@ahead_iw@];
        } ahead;
@end@
    } memory;
@if limited@
    @NAME@_limits limits;
@end@
@if delay@
    double sent[@sent@ * @UPPER@_OUTPUTS]; /* controls on their way, the oldest first */
@end@
    double plan[@plan_places@], applied[@UPPER@_OUTPUTS];
    double tolerance; /* the largest violation of a plan that is used, in scaled units */
    /* Called without a plan: returns 0 if it has an answer. May be NULL. */
    int (*fallback)(const @NAME@_inputs *inputs, @NAME@_outputs *outputs);
    int age, begun; /* intervals since the plan; -1 without one */
@if softened@
    int strained, relaxed; /* limits could not be kept the step before; the last plan exceeds them */
    int waited;            /* steps of a continued softened solve without progress, */
    double left;           /* and its least residual, or 0 */
@end@
} @NAME@_controller;

#ifdef __cplusplus
extern "C" {
#endif

/* The controller at its start, and the inputs with which it was written. */
void @NAME@_begin(@NAME@_controller *controller);
extern const @NAME@_inputs @NAME@_written;

/* One step; returns the source of the control. controller->out.status says how the solve ended. */
int @NAME@_step(@NAME@_controller *controller, const @NAME@_inputs *inputs,
                @NAME@_outputs *outputs);

/* Copies a trajectory of the last solve in physical units, a column a time; returns its size. Of use
 * after @UPPER@_BY_SOLUTION and @UPPER@_BY_FEASIBLE. */
int @NAME@_read(const @NAME@_controller *controller, int trajectory, double *values);

#ifdef __cplusplus
}
#endif

#endif
