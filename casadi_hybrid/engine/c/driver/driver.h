/* Runs: their memory, what is done with every iterate, and how they end. */
#ifndef HYBRID_DRIVER_H
#define HYBRID_DRIVER_H

#include "barrier/barrier.h"
#include "trust_region/trust_region.h"

/* What is seen of an iterate before its step. */
typedef struct {
    hybrid_residuals of;
    double merit;        /* the largest residual in units of its tolerance */
    int settled;         /* whether it is a solution if its residuals say so */
    int rounded;         /* whether only what rounding explains makes it one */
    int leaves;          /* whether steps lead away from it if they do: from a saddle point */
} hybrid_inspection;

/* Where iterates have run away for some time: extrapolates along their ray. Returns 1 with the far
 * end at run->at where that proves that f falls without bound, else 0 with nothing changed. */
int hybrid_extrapolate(hybrid_run *run);

/* Places the memory of a run, whose form is made; run->work has the start. `even`: whether
 * steep rows are scaled alone, as for composite steps. Returns a status. */
int hybrid_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_run_options *options, int only_steep,
                 void *bytes, hybrid_arena *arena, hybrid_state *state, hybrid_answer *answer);

/* Looks at the iterate. Returns HYBRID_SOLVED, or HYBRID_DIVERGED where it is not finite. */
int hybrid_inspect(hybrid_run *run, hybrid_inspection *seen);
/* Writes it down. Returns HYBRID_PAUSED where a step is due, else how the run has ended. */
int hybrid_log_iterate(hybrid_run *run, const hybrid_inspection *seen);
/* After the step, which has ended with a status. Returns HYBRID_PAUSED, or that. */
int hybrid_after_step(hybrid_run *run, const hybrid_inspection *seen, int status);
/* Remembers the iterate that was looked at as the last one. Returns the status. */
int hybrid_end_run(hybrid_run *run, int status);
/* Completes the answer after a run that has ended with a status, which it returns. */
int hybrid_finish_run(hybrid_run *run, int status);

void hybrid_place_composite(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one);

#endif
