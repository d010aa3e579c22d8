/* Runs: their memory, what is done with every iterate, and how they end. */
#ifndef HYBRID_DRIVER_H
#define HYBRID_DRIVER_H

#include "barrier/barrier.h"
#include "trust_region/trust_region.h"

/* What is seen of an iterate before its step. */
typedef struct {
    hybrid_residuals of;
    double reach, merit; /* |x|, and the largest residual in units of its tolerance */
    int settled;         /* whether it is a solution if its residuals say so */
    int leaves;          /* whether steps lead away from it if they do: from a saddle point */
} hybrid_sight;

/* Whether the iterate is for the careful path to judge: a status, or 0. */
int hybrid_beyond(hybrid_cold *cold, const hybrid_sight *sight);
/* Whether residuals within the tolerances are those of iterates that run away. */
int hybrid_runs_away(const hybrid_cold *cold, double reach);

/* Places the memory of an attempt, whose form is made; cold->work has the start. `even`: whether
 * steep rows are scaled alone, as for composite steps. Returns a status. */
int hybrid_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                 const hybrid_numbers *numbers, const hybrid_attempt *attempt, int even,
                 void *bytes, hybrid_arena *arena, hybrid_state *state, hybrid_answer *answer);

/* Looks at the iterate. Returns a status; where it is not HYBRID_SOLVED, what is handed over. */
int hybrid_see(hybrid_cold *cold, hybrid_sight *sight);
/* Writes it down. Returns HYBRID_PAUSED where a step is due, else how the attempt has ended. */
int hybrid_record(hybrid_cold *cold, const hybrid_sight *sight);
/* After the step, which has ended with a status. Returns HYBRID_PAUSED, or that. */
int hybrid_went(hybrid_cold *cold, const hybrid_sight *sight, int status);
/* Says in the state where the careful path goes on: at the iterate that was looked at, whose row is
 * written again there. Returns the status. */
int hybrid_hand_over(hybrid_cold *cold, int status);
/* Completes the answer after a run that has ended with a status, which it returns. */
int hybrid_ended(hybrid_cold *cold, int status);

/* Whether singular values of a problem of this size are found sooner than by LAPACK. */
int hybrid_is_small(const hybrid_plan *plan);
void hybrid_place_composite(const hybrid_plan *plan, hybrid_arena *arena, hybrid_composite *one);

#endif
