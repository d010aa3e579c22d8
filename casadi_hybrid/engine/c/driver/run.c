/* The cold mode: a primal-dual barrier method with a filter, as barrier/barrier.py and loop.py.
 *
 * A doubtful factorization or a full filter ends it with a status, and the state says where the careful
 * path goes on: at the iterate whose step could not be taken. */
#include <math.h>
#include <string.h>

#include "feasibility/feasibility.h"
#include "active_set/active_set.h"
#include "driver/driver.h"

/* Without an objective a feasible point is a solution, whatever the barrier still wants. */
static int at_root(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_iterate *root = &cold->next;
    hybrid_residuals residuals;
    if (!cold->attempt->feasibility) return 0;
    if (!(hybrid_largest(plan->m, at->c) <= cold->numbers->tol)) return 0;
    hybrid_copy(plan, &cold->now, 0, root);
    memset(root->y, 0, (size_t)plan->m * sizeof(double));
    memset(root->z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(root->z_upper, 0, (size_t)plan->n * sizeof(double));
    root->tiny = 1;
    hybrid_judge(cold, at, root, &residuals);
    return hybrid_merit(cold->numbers, &residuals) <= 1.0;
}

static void swap_iterates(hybrid_cold *cold) {
    hybrid_iterate kept = cold->now;
    cold->now = cold->next;
    cold->next = kept;
}

/* The step that is due. Returns a status. */
static int step(hybrid_cold *cold) {
    hybrid_iterate *it = &cold->now, plain;
    hybrid_spot *new;
    int spent, idle, status;
    if (cold->restoring || cold->root.begun) return hybrid_restore(cold, it->t + 1);
    if (hybrid_extrapolate(cold)) {
        it->t++;
        return HYBRID_SOLVED;
    }
    hybrid_lower_barrier(cold, it, it->t);
    status = hybrid_polish(cold, it, &spent);
    if (status == HYBRID_SOLVED) {
        cold->next.t = it->t + spent;
    } else {
        if (status != HYBRID_NO_SET) return status;
        if (spent && it->t + spent >= cold->numbers->max_iter) {
            it->t += spent;
            return HYBRID_SOLVED;
        }
        idle = it->t + spent - it->mark.t;
        if (idle >= HYBRID_PACE_CRAWL && it->mark.theta > HYBRID_PACE_FEASIBLE)
            return hybrid_begin_restoration(cold, it->t + spent);
        if (idle >= HYBRID_PACE_STALL || it->mark.rounds >= HYBRID_PACE_ROUNDS)
            return hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_NO_PROGRESS);
        plain = *it;
        status = hybrid_newton(cold, it);
        if ((status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) &&
            hybrid_forget(cold->form.functions->secants)) {
            *it = plain; /* what points elsewhere have shown misleads here */
            status = hybrid_newton(cold, it);
        }
        if (status == HYBRID_NOT_NEARER && cold->at->theta <= cold->numbers->tol)
            return HYBRID_STALLED;
        if (status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) {
            *it = plain;
            return hybrid_begin_restoration(cold, it->t + spent);
        }
        if (status) return status;
        cold->next.t = it->t + spent + 1;
    }
    swap_iterates(cold);
    new = cold->trial;
    cold->trial = cold->at;
    cold->at = new;
    if (!cold->now.crossed && at_root(cold)) swap_iterates(cold);
    return HYBRID_SOLVED;
}

/* Looks at the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status = hybrid_see(cold, &sight);
    if (status) return status;
    if (sight.excused && cold->looked && !cold->restoring && !cold->root.begun) {
        hybrid_sharpen(cold);
        hybrid_see(cold, &sight);
    }
    status = hybrid_record(cold, &sight);
    return status == HYBRID_PAUSED ? hybrid_went(cold, &sight, step(cold)) : status;
}

int hybrid_interior_point(const hybrid_plan *plan, const hybrid_functions *functions,
                          const hybrid_numbers *numbers, const hybrid_attempt *attempt,
                          void *bytes, double *doubles, int *ints, hybrid_state *state,
                          hybrid_answer *answer) {
    hybrid_arena arena = {0, 0, 0, 0};
    int status;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 0, bytes, &arena, state, answer);
    if (!status) status = hybrid_first_iterate(bytes);
    if (status) return answer->status = status;
    while ((status = advance(bytes)) == HYBRID_PAUSED) {}
    return hybrid_ended(bytes, status);
}
