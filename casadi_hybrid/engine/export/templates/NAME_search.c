/* @NAME@ from any start: the warm mode, then the barrier method. */
#include <math.h>
#include <string.h>

#include "@NAME@.h"

extern const hybrid_plan @NAME@_plan;

int @NAME@_search(@NAME@_memory *memory, const @NAME@_in *in, const hybrid_functions *functions,
                  hybrid_numbers *numbers, hybrid_answer *answer);

/* How the barrier method starts from x0 alone, and how from multipliers that did not lead on. */
static const hybrid_attempt from_nothing = @first@;
static const hybrid_attempt from_nearby = @near@;

/* Seconds of the user's clock. */
static double time_of(const @NAME@_in *in) { return in->now ? in->now() : 0.0; }

/* One attempt by the barrier method after so many steps; the clock was at `began` when the solve
 * began. Returns a status. */
static int attempt(@NAME@_memory *memory, const @NAME@_in *in, hybrid_attempt how,
                   const hybrid_functions *functions, const hybrid_numbers *numbers, int steps,
                   double began, hybrid_answer *answer) {
    int status;
    if (in->now) how.max_time = in->max_time - (time_of(in) - began);
    how.t0 = steps;
    hybrid_state_attach(&@NAME@_plan, memory->of_state, memory->guess, &memory->state);
    memory->state.rows = memory->row;
    memory->state.capacity = 1;
    status = hybrid_cold_begin(&@NAME@_plan, functions, numbers, &how, memory->cold,
                               memory->numbers, memory->integers, &memory->state, answer);
    while (status == HYBRID_PAUSED) status = hybrid_cold_run(memory->cold);
    return status;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Whether another way from the same start may solve what ended with this status. */
static int may_go_on(int status) {
    return status != HYBRID_SOLVED && status != HYBRID_UNBOUNDED &&
           status != HYBRID_BAD_NUMBERS && status != HYBRID_OTHER_PATTERN;
}

/* Whether a bound at this distance is active: its multiplier exceeds it, or it is next to nothing. */
static int is_active(double distance, double bound, double lam, double near) {
    return lam > distance || (lam >= 0.0 && distance <= near * larger(1.0, fabs(bound)));
}

/* The side of each active bound, 2 where both are equal. */
static void active(int count, const double *v, const double *lower, const double *upper,
                   const double *lam, double near, signed char *side) {
    int i;
    for (i = 0; i < count; i++) {
        side[i] = 0;
        if (isfinite(upper[i]) && is_active(upper[i] - v[i], upper[i], lam[i], near)) side[i] = 1;
        if (isfinite(lower[i]) && is_active(v[i] - lower[i], lower[i], -lam[i], near)) side[i] = -1;
        if (lower[i] == upper[i]) side[i] = 2;
    }
}

/* Rows that say the same twice share one multiplier in any parts, however large: the least ones on
 * the active set of the solution, where the warm mode finds them. */
static void lessen(@NAME@_memory *memory, const hybrid_functions *functions,
                   const hybrid_numbers *numbers, hybrid_answer *answer) {
    hybrid_answer other = *answer;
    hybrid_numbers here = *numbers;
    int status, steps = answer->steps, factors = answer->factors;
    double near = numbers->feasibility;
    active(@UPPER@_N_X, answer->x, here.lbx, here.ubx, answer->lam_x, near, memory->side_x);
    active(@UPPER@_N_G, answer->g, here.lbg, here.ubg, answer->lam_g, near, memory->side_g);
    memset(memory->no_lam, 0, sizeof memory->no_lam);
    here.x0 = answer->x;
    here.lam_x0 = here.lam_g0 = memory->no_lam;
    here.side_x = memory->side_x;
    here.side_g = memory->side_g;
    other.x = memory->x;
    other.g = memory->g;
    other.lam_x = memory->lam_x;
    other.lam_g = memory->lam_g;
    status = hybrid_warm(&@NAME@_plan, functions, &here, memory->numbers, memory->integers, &other);
    answer->steps = steps + other.steps;
    answer->factors = factors + other.factors;
    if (status != HYBRID_SOLVED || !(other.largest_lam < answer->largest_lam)) return;
    memcpy(answer->x, memory->x, sizeof memory->x);
    memcpy(answer->lam_x, memory->lam_x, sizeof memory->lam_x);
    memcpy(answer->g, memory->g, @UPPER@_N_G * sizeof(double));
    memcpy(answer->lam_g, memory->lam_g, @UPPER@_N_G * sizeof(double));
    answer->end = other.end;
}

/* Whether one point is nearer to a solution than another: one within its bounds is nearer than one
 * that is not, else that with the least residuals. */
static int is_nearer(const hybrid_numbers *numbers, const hybrid_residuals *one,
                     const hybrid_residuals *other) {
    int within = one->feasibility <= numbers->feasibility;
    if (within != (other->feasibility <= numbers->feasibility)) return within;
    return hybrid_merit(numbers, one) < hybrid_merit(numbers, other);
}

/* The best point of an attempt that has not solved it, where it is nearer than the answer so far. */
static void best_of(const hybrid_state *state, const hybrid_numbers *numbers,
                    hybrid_answer *answer) {
    const hybrid_plan *plan = &@NAME@_plan;
    int i;
    if (state->best.t < 0 || !is_nearer(numbers, &state->of_best, &answer->end)) return;
    for (i = 0; i < plan->n_x; i++) { /* where it is fixed, or stands in nothing, it stays */
        double at_least = larger(numbers->x0[i], numbers->lbx[i]);
        answer->x[i] = at_least < numbers->ubx[i] ? at_least : numbers->ubx[i];
    }
    for (i = 0; i < plan->n_free; i++) answer->x[plan->free_at[i]] = state->best.w[i];
    answer->end = state->of_best;
}

/* Whether the caller's limits leave nothing for another attempt. */
static int is_spent(const @NAME@_in *in, int steps, double began) {
    return steps >= in->max_iter || (in->now && time_of(in) - began >= in->max_time);
}

/* The warm mode where there are multipliers, then the barrier method from them, then from x0 alone.
 * Returns a status, and in the answer the steps and factorizations of all. */
int @NAME@_search(@NAME@_memory *memory, const @NAME@_in *in, const hybrid_functions *functions,
                  hybrid_numbers *numbers, hybrid_answer *answer) {
    double began = time_of(in);
    int factors, steps;
    int status = hybrid_warm(&@NAME@_plan, functions, numbers, memory->numbers, memory->integers,
                             answer);
    if (status == HYBRID_LARGE && answer->huge) {
        lessen(memory, functions, numbers, answer);
        return HYBRID_SOLVED;
    }
    if (!may_go_on(status) || status == HYBRID_LIMIT) return status;
    steps = answer->steps;
    factors = answer->factors;
    if (status != HYBRID_COLD) {
        status = attempt(memory, in, from_nearby, functions, numbers, steps, began, answer);
        if (answer->steps < steps) answer->steps = steps;
        steps = answer->steps;
        factors = answer->factors += factors;
        if (may_go_on(status)) {
            best_of(&memory->state, numbers, answer);
            if (is_spent(in, steps, began)) return HYBRID_LIMIT;
        }
    }
    if (may_go_on(status)) {
        numbers->max_iter = in->max_iter > steps ? in->max_iter - steps : 0;
        status = attempt(memory, in, from_nothing, functions, numbers, 0, began, answer);
        if (may_go_on(status)) best_of(&memory->state, numbers, answer);
        answer->steps += steps;
        answer->factors += factors;
    }
    if (status == HYBRID_SOLVED && answer->huge) lessen(memory, functions, numbers, answer);
    return status;
}
