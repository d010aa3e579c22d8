/* One Newton step of the barrier method, as barrier/newton.py: the direction of the KKT system,
 *
 *     w + alpha dw,  y + alpha dy,  z + alpha_z dz,   alpha, alpha_z by the fraction to the bounds,
 *
 * and alpha halved until the filter accepts (Waechter and Biegler, Math. Program. 106, 2006,
 * section 2.3), with second-order corrections of c (section 2.4), tiny steps (section 3.9) and a
 * full step that is taken unseen where steps stay short, with the way back kept. */
#include <math.h>
#include <string.h>

#include "barrier/barrier.h"

/* That the filter accepts no step is no status of the mode: there are remedies. */
enum { NONE = -1 };

static void swap_spots(hybrid_spot **a, hybrid_spot **b) {
    hybrid_spot *kept = *a;
    *a = *b;
    *b = kept;
}

/* The direction's dz and lengths, where (dw, dy) are known. */
static void complete(hybrid_cold *cold, const hybrid_iterate *it, hybrid_direction *d) {
    hybrid_dual_steps(&cold->form, &cold->at->of, it, d);
    hybrid_lengths(&cold->form, &cold->at->of, it, d);
}

/* Evaluates at w + alpha dw. Returns 0, or 1 where a function is not defined. */
static int try_at(hybrid_cold *cold, double alpha, const hybrid_direction *d,
                  hybrid_spot *spot) {
    const double *w = cold->at->of.w;
    for (int i = 0; i < cold->plan->n; i++) spot->of.w[i] = w[i] + alpha * d->dw[i];
    return hybrid_visit(cold, spot);
}

/* cold->next is the iterate at cold->trial, after a part alpha of the direction. */
static void move(hybrid_cold *cold, const hybrid_iterate *it, double alpha) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_direction *d = &cold->direction;
    hybrid_iterate *next = &cold->next;
    hybrid_copy_numbers(it, next);
    memcpy(next->filter, it->filter, 2 * (size_t)it->entries * sizeof(double));
    for (int i = 0; i < plan->m; i++) next->y[i] = it->y[i] + alpha * d->dy[i];
    for (int i = 0; i < plan->n; i++) {
        next->z_lower[i] = it->z_lower[i] + d->alpha_z * d->dz_lower[i];
        next->z_upper[i] = it->z_upper[i] + d->alpha_z * d->dz_upper[i];
    }
    hybrid_safe_duals(&cold->form, &cold->trial->of, it->nu, next->z_lower, next->z_upper);
    next->alpha = alpha;
    next->alpha_z = d->alpha_z;
    next->stepped = 1;
    next->crossed = 0;
}

/* Second-order corrections on the same factor. Returns the filter's word, with the point and the
 * direction in place of those that were refused, or NONE. */
static int corrected(hybrid_cold *cold, const hybrid_iterate *it, double slope) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double alpha = cold->direction.alpha, theta = cold->trial->theta;
    double *residual = cold->residual, size = hybrid_largest(plan->n, at->w);
    for (int i = 0; i < plan->m; i++)
        residual[i] = alpha * at->c[i] + cold->trial->of.c[i];
    for (int number = 0; number < HYBRID_NEWTON_MAX_CORRECTIONS; number++) {
        hybrid_direction *bent = &cold->other;
        int verdict;
        if (hybrid_direction_for(cold, residual, bent)) return NONE;
        complete(cold, it, bent);
        if (try_at(cold, bent->alpha, bent, cold->bent)) return NONE;
        verdict = hybrid_verdict(&cold->worth, it, size, cold->bent->theta,
                                 hybrid_phi(&cold->form, cold->bent, it->nu), alpha, slope);
        if (verdict) {
            hybrid_direction kept = cold->direction;
            cold->direction = cold->other;
            cold->other = kept;
            swap_spots(&cold->trial, &cold->bent);
            return verdict;
        }
        if (cold->bent->theta > HYBRID_NEWTON_CORRECTED * theta) return NONE;
        theta = cold->bent->theta;
        for (int i = 0; i < plan->m; i++)
            residual[i] = bent->alpha * residual[i] + cold->bent->of.c[i];
    }
    return NONE;
}

/* A step of no more than rounding is taken as it is. */
static int tiny_step(hybrid_cold *cold, const hybrid_iterate *it) {
    double alpha = cold->direction.alpha;
    if (it->tiny >= HYBRID_NEWTON_TINY_STEPS && it->nu <= it->floor)
        return hybrid_no_way_on(cold, HYBRID_NOT_NEARER, HYBRID_TINY_STEPS);
    /* Where a function is not defined there, w stays where it is. */
    if (try_at(cold, alpha, &cold->direction, cold->trial) &&
        try_at(cold, 0.0, &cold->direction, cold->trial))
        return HYBRID_UNDEFINED;
    move(cold, it, alpha);
    cold->next.tiny = it->tiny + 1;
    /* At the end of the path for this nu, whatever the error there says. */
    if (it->tiny) hybrid_with_barrier(&cold->next, hybrid_next_nu(it->nu, it->floor));
    return HYBRID_SOLVED;
}

/* The full step unseen, with the way back kept. Returns NONE where it is not taken. */
static int watched_step(hybrid_cold *cold, const hybrid_iterate *it) {
    double scale = it->theta_start > 1.0 ? it->theta_start : 1.0;
    double alpha = cold->direction.alpha;
    if (try_at(cold, alpha, &cold->direction, cold->trial)) return NONE;
    if (!(cold->trial->theta <= HYBRID_FILTER_MOST * scale)) return NONE;
    move(cold, it, alpha);
    cold->next.cut = 0;
    hybrid_extend(&cold->worth, &cold->next);
    hybrid_copy(cold->plan, it, 0, &cold->watched);
    cold->watched.cut = -HYBRID_NEWTON_REST;
    cold->watched.watching = 0;
    cold->next.watching = 2; /* the point of now has to be kept */
    return HYBRID_SOLVED;
}

/* The filter line search. Returns HYBRID_SOLVED with the new iterate, NONE, or a status. */
static int search(hybrid_cold *cold, const hybrid_iterate *it) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_worth *worth = &cold->worth;
    double size = hybrid_largest(plan->n, cold->at->of.w), slope = 0.0, least, alpha;
    int cut = it->cut, first = 1;
    if (hybrid_largest(plan->n, cold->direction.dw) / (1.0 + size) < HYBRID_NEWTON_TINY)
        return tiny_step(cold, it);
    for (int i = 0; i < plan->n; i++) slope += worth->gradient[i] * cold->direction.dw[i];
    least = hybrid_smallest_step(worth, it->theta_start, slope);
    if (it->cut >= HYBRID_NEWTON_MAX_SHORT && plan->m) {
        /* The filter lets the iterate crawl: far from feasibility the restoration's work, where
         * it has led away from there. */
        int far = worth->theta > HYBRID_PACE_FEASIBLE, found;
        if (far && worth->theta > it->theta_cut) return NONE;
        found = far ? NONE : watched_step(cold, it);
        if (found != NONE) return found;
        cut = 0;
    }
    for (alpha = cold->direction.alpha; alpha >= least; alpha *= 0.5, first = 0) {
        int verdict;
        if (try_at(cold, alpha, &cold->direction, cold->trial)) continue;
        verdict = hybrid_verdict(worth, it, size, cold->trial->theta,
                                 hybrid_phi(&cold->form, cold->trial, it->nu), alpha, slope);
        if (!verdict && first && cold->trial->theta >= worth->theta) {
            int word = corrected(cold, it, slope);
            if (word != NONE) {
                verdict = word;
                alpha = cold->direction.alpha;
            }
        }
        if (!verdict) continue;
        move(cold, it, alpha);
        cold->next.tiny = 0;
        cold->next.watching = 0;
        cold->next.cut = alpha <= HYBRID_NEWTON_SHORT * cold->direction.alpha ? cut + 1
                         : cut < 0                                             ? cut
                                                                               : 0;
        if (cold->next.cut == 1) cold->next.theta_cut = worth->theta;
        if (verdict == 'h') hybrid_extend(worth, &cold->next);
        return HYBRID_SOLVED;
    }
    return NONE;
}

/* How far the trial point is from the iterate, relative. */
static double distance(const hybrid_cold *cold) {
    const double *w = cold->at->of.w, *new = cold->trial->of.w;
    double found = 0.0;
    for (int i = 0; i < cold->plan->n; i++) {
        double step = fabs(new[i] - w[i]);
        if (!(step <= found)) found = step;
    }
    return found / (1.0 + hybrid_largest(cold->plan->n, w));
}

/* Goes back to the iterate from which a full step was taken unseen. */
static int back(hybrid_cold *cold) {
    hybrid_copy(cold->plan, &cold->watched, 0, &cold->next);
    swap_spots(&cold->trial, &cold->kept);
    return HYBRID_SOLVED;
}

int hybrid_newton(hybrid_cold *cold, hybrid_iterate *it) {
    const hybrid_plan *plan = cold->plan;
    double least = 0.0;
    int found;
    if (cold->outer
            ? hybrid_hessian(&cold->outer->form, &cold->at->base->of, it->y,
                             HYBRID_ELASTIC_CURVATURE_OF_F, cold->W)
            : hybrid_bend(cold))
        return HYBRID_UNDEFINED;
    hybrid_weigh(&cold->form, cold->at, it->nu, &cold->worth);
    for (int i = 0; i < plan->n; i++) cold->force[i] = cold->pull[i] + cold->worth.gradient[i];
    for (;;) {
        int status = hybrid_factor_with_inertia(cold, it, least);
        if (status) return status;
        complete(cold, it, &cold->direction);
        found = search(cold, it);
        if (found > 0) return found;
        if (found == HYBRID_SOLVED && least > 0.0 &&
            distance(cold) <= HYBRID_NEWTON_LEAST_STIFF) {
            found = NONE;
            break;
        }
        if (found == HYBRID_SOLVED || cold->worth.theta > HYBRID_PACE_FEASIBLE || it->watching)
            break;
        /* Only the objective is at stake, and its model misleads: a shorter, steeper step. */
        least *= HYBRID_NEWTON_STIFFER;
        if (least < HYBRID_NEWTON_STIFF) least = HYBRID_NEWTON_STIFF;
        if (least > HYBRID_NEWTON_STIFFEST) break;
    }
    if (found == HYBRID_SOLVED) {
        if (cold->next.watching == 2) {
            /* The point of now stays where it is, and the trial's place becomes that of now. */
            swap_spots(&cold->kept, &cold->at);
            cold->next.watching = 1;
        }
        return found;
    }
    return it->watching ? back(cold) : HYBRID_BLOCKED;
}
