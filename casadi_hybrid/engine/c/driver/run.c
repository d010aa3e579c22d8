/* The cold mode: a primal-dual barrier method with a filter, as barrier/barrier.py and loop.py.
 *
 * What it does not do itself (proofs of a stationary violation or of a ray, doubtful
 * factorizations, functions that are not defined) ends it with a status, and the state says where
 * the careful path goes on: at the iterate whose step could not be taken. */
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

/* The largest factor by which a row would be scaled less with the scales of now. */
static double eased(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    double *old = cold->residual, *now = cold->penalty, found = 0.0;
    for (int i = 0; i < plan->m; i++) old[i] = now[i] = HYBRID_FORM_SCALE_GOAL;
    for (int k = 0; k < plan->kept_A; k++) {
        int row = plan->A_rows[k], of_J = plan->A_of_J[k];
        double before = fabs(cold->answer->J0[of_J]), size = fabs(cold->at->of.raw_J[of_J]);
        if (before > old[row]) old[row] = before;
        if (size > now[row]) now[row] = size;
    }
    for (int i = 0; i < plan->m; i++)
        if (old[i] / now[i] > found) found = old[i] / now[i];
    return found;
}

/* A step of the restoration; where it ends the barrier method goes on. */
static int restore(hybrid_cold *cold, int t) {
    int status = hybrid_elastic_step(cold);
    if (status) return status;
    cold->now.stepped = cold->now.crossed = 0;
    cold->now.t = t;
    if (hybrid_restored(cold)) {
        hybrid_end_elastic(cold);
        cold->restoring = 0;
        cold->now.mark.t = t;
        cold->now.mark.rounds++;
    }
    return HYBRID_SOLVED;
}

/* A step of the search for a root; where it ends the barrier method goes on. */
static int seek(hybrid_cold *cold, int t) {
    int status = hybrid_root_step(cold);
    if (status) return status;
    if (!cold->root.begun) {
        swap_iterates(cold);
        cold->now.mark.t = t;
        cold->now.mark.rounds++;
    }
    cold->now.stepped = cold->now.crossed = 0;
    cold->now.t = t;
    return HYBRID_SOLVED;
}

/* Reduces the violation alone from step t on. */
static int block(hybrid_cold *cold, int t) {
    const hybrid_plan *plan = cold->plan;
    hybrid_iterate *it = &cold->now;
    double size = hybrid_largest(plan->n, cold->at->of.w);
    if (cold->at->theta <= HYBRID_BARRIER_ROUNDED * (size > 1.0 ? size : 1.0))
        return HYBRID_BLOCKED;
    if (plan->m > plan->n) return HYBRID_BLOCKED;
    if (cold->attempt->rescale && eased(cold) >= HYBRID_FORM_EASED) return HYBRID_BLOCKED;
    hybrid_hand_over(cold, HYBRID_BLOCKED);
    hybrid_weigh(&cold->form, cold->at, it->nu, &cold->worth);
    if (hybrid_extend(&cold->worth, it)) return HYBRID_FULL;
    it->cut = it->watching = 0;
    hybrid_begin_elastic(cold, cold->worth.theta);
    cold->restoring = 1;
    return restore(cold, t + 1);
}

/* The step of the mode that is due. Returns a status; where it is not HYBRID_SOLVED, the state
 * can be handed over. */
static int step(hybrid_cold *cold) {
    hybrid_iterate *it = &cold->now, plain;
    hybrid_spot *new;
    int spent, idle, status;
    if (cold->restoring) return restore(cold, it->t + 1);
    if (cold->root.begun) return seek(cold, it->t + 1);
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
            return block(cold, it->t + spent);
        if (idle >= HYBRID_PACE_STALL || it->mark.rounds >= HYBRID_PACE_ROUNDS)
            return HYBRID_NOT_NEARER;
        plain = *it;
        status = hybrid_newton(cold, it);
        if ((status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) &&
            hybrid_forget(cold->form.functions->secants)) {
            *it = plain; /* what points elsewhere have shown misleads here */
            status = hybrid_newton(cold, it);
        }
        if (status == HYBRID_NOT_NEARER && cold->at->theta <= cold->numbers->tol) return status;
        if (status == HYBRID_BLOCKED || status == HYBRID_NOT_NEARER) {
            *it = plain;
            return block(cold, it->t + spent);
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
    status = hybrid_record(cold, &sight);
    return status == HYBRID_PAUSED ? hybrid_went(cold, &sight, step(cold)) : status;
}

int hybrid_cold_run(void *bytes) {
    hybrid_cold *cold = bytes;
    hybrid_state *state = cold->state;
    double began = hybrid_time(cold->form.functions);
    int status = HYBRID_PAUSED;
    state->count = 0;
    while (status == HYBRID_PAUSED && state->count < state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    return hybrid_ended(cold, status);
}
