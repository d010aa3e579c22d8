/* Phases: their memory, what is done with every iterate, and how they end. */
#ifndef HYBRID_DRIVER_H
#define HYBRID_DRIVER_H

#include "barrier/barrier.h"

/* The inspection of an iterate before its step. */
typedef struct {
    hybrid_residuals of;
    double merit; /* the largest residual in units of its tolerance */
    int settled;  /* whether it is a solution if its residuals are small enough */
    int rounded;  /* whether they are only without what rounding explains, or may be next to here,
                   * where a bound far out is met */
} hybrid_inspection;

/* Doubles of the arrays of a state; hybrid_state_attach puts them there. */
long long hybrid_state_doubles(const hybrid_plan *plan);
void hybrid_state_attach(const hybrid_plan *plan, double *doubles, hybrid_state *state);

/* Bytes, doubles and ints of memory that a phase needs; `dense`: that of its options. */
void hybrid_interior_point_memory(const hybrid_plan *plan, int dense, long long *bytes,
                                  long long *doubles, long long *ints);
/* A phase by the interior-point method. With HYBRID_SOLVED the answer is complete; with
 * HYBRID_INFEASIBLE, HYBRID_STALLED or HYBRID_UNBOUNDED state->now is the last iterate. */
int hybrid_interior_point(const hybrid_plan *plan, const hybrid_functions *functions,
                          const hybrid_numbers *numbers, const hybrid_phase_options *options,
                          const hybrid_phase_setup *setup, void *bytes, double *doubles, int *ints,
                          hybrid_state *state, hybrid_answer *answer);

/* Extrapolates along the ray of iterates that have run away for some time. Returns 1 with the far
 * end at phase->at if f falls without bound there, else 0 with nothing changed. */
int hybrid_extrapolate(hybrid_phase *phase);

/* Places the memory of a phase, and makes its form; phase->work has the start then.
 * Returns a status. */
int hybrid_begin_phase(const hybrid_plan *plan, const hybrid_functions *functions,
                       const hybrid_numbers *numbers, const hybrid_phase_options *options,
                       const hybrid_phase_setup *setup, void *bytes, hybrid_arena *arena,
                       hybrid_state *state, hybrid_answer *answer);

/* Inspects the iterate. Returns HYBRID_SOLVED, or HYBRID_DIVERGED where it is not finite. */
int hybrid_inspect_iterate(hybrid_phase *phase, hybrid_inspection *seen);
/* Shows it to the observer, saves it where it is one of the best, and makes the termination test.
 * Returns HYBRID_PAUSED where a step is due, else how the phase has ended. */
int hybrid_log_iterate(hybrid_phase *phase, const hybrid_inspection *seen);
/* After the step, which has ended with a status. Returns HYBRID_PAUSED, or that. */
int hybrid_after_step(hybrid_phase *phase, const hybrid_inspection *seen, int status);
/* Completes the answer after a phase that has ended with a status, which it returns. */
int hybrid_finish_phase(hybrid_phase *phase, int status);

#endif
