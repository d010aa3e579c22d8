/* @NAME@ by name and in physical units: measured state in, control out. One call an interval of
 * @interval@ (time unit of the model). Beside @NAME@.h, which has the solver. */
#ifndef @UPPER@_CONTROL_H
#define @UPPER@_CONTROL_H

#include "@NAME@.h"

/* What a step is given: the measured state, then parameters and references. All are doubles, so
 * that an array of @UPPER@_INPUTS numbers has them at the places of the enumeration. */
typedef struct {
@input_fields@
} @NAME@_inputs;
enum {
@input_places@,
    @UPPER@_INPUTS = @inputs@
};

/* What it answers, within the limits of the controls. */
typedef struct {
@output_fields@
} @NAME@_outputs;
enum {
@output_places@,
    @UPPER@_OUTPUTS = @outputs@
};

/* Trajectories of a plan, for @NAME@_read. */
enum {
@trajectories@,
    @UPPER@_TRAJECTORIES
};
@lengths@

/* Where the control of a step is from. */
enum {
    @UPPER@_BY_SOLUTION = 0,  /* the first control of a plan that solves the problem */
    @UPPER@_BY_FEASIBLE = 1,  /* of a plan that holds all limits, at which the solver was stopped */
    @UPPER@_BY_LAST_PLAN = 2, /* what the last such plan has for this interval */
    @UPPER@_BY_FALLBACK = 3,  /* your function */
    @UPPER@_BY_DEFAULT = 4    /* @default_words@ */
};

/* Begin with @NAME@_begin; then the fallback, in.max_iter@clock@ may be set.
 * Bounds in `in` are those of the program, divided by the scales. */
typedef struct {
    @NAME@_in in;
    @NAME@_out out; /* of the last solve: status, steps, residuals */
    @NAME@_memory memory;
    double plan[@plan_places@], applied[@UPPER@_OUTPUTS];
    double tolerance; /* the largest violation of a plan that is used, in scaled units */
    /* What is asked where there is no plan: returns 0 where it has an answer. May be NULL. */
    int (*fallback)(const @NAME@_inputs *inputs, @NAME@_outputs *outputs);
    int age, begun; /* intervals since the plan; -1 where there is none */
} @NAME@_controller;

#ifdef __cplusplus
extern "C" {
#endif

/* The controller at its start, and the numbers with which it was written. */
void @NAME@_begin(@NAME@_controller *controller);
extern const @NAME@_inputs @NAME@_written;

/* One step; returns where the control is from. controller->out.status says how the solve ended. */
int @NAME@_step(@NAME@_controller *controller, const @NAME@_inputs *inputs,
                @NAME@_outputs *outputs);

/* A trajectory of the last solve in physical units, a column of the quantity a time; returns how
 * many numbers. Of use after @UPPER@_BY_SOLUTION and @UPPER@_BY_FEASIBLE. */
int @NAME@_read(const @NAME@_controller *controller, int trajectory, double *values);

#ifdef __cplusplus
}
#endif

#endif
