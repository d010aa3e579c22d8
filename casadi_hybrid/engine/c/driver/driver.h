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
    int excused;         /* whether only what rounding explains makes it one */
    int leaves;          /* whether steps lead away from it if they do: from a saddle point */
} hybrid_sight;

/* Where iterates have run away for some time: extrapolates along their ray. Returns 1 with the far end
 * at cold->at where that proves that f falls without bound, else 0 with nothing changed. */
int hybrid_extrapolate(hybrid_cold *cold);

/* Places the memory of an attempt, whose form is made; cold->work has the start. `even`: whether
 * steep rows are scaled alone, as for composite steps. Returns a status. */
int hybrid_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_attempt *attempt, int even,
                 void *bytes, hybrid_arena *arena, hybrid_state *state, hybrid_answer *answer);

/* Looks at the iterate. Returns HYBRID_SOLVED, or HYBRID_DIVERGED where it is not finite. */
int hybrid_see(hybrid_cold *cold, hybrid_sight *sight);
/* Writes it down. Returns HYBRID_PAUSED where a step is due, else how the attempt has ended. */
int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight);
/* After the step, which has ended with a status. Returns HYBRID_PAUSED, or that. */
int hybrid_went(hybrid_cold *cold, const hybrid_sight *sight, int status);
/* Remembers the iterate that was looked at as the last one. Returns the status. */
int hybrid_end_there(hybrid_cold *cold, int status);
/* Completes the answer after a run that has ended with a status, which it returns. */
int hybrid_ended(hybrid_cold *cold, int status);

void hybrid_place_composite(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one);

#endif
