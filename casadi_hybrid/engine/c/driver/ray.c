/* Iterates that run away: as barrier/rays.py and barrier/leap.py, as far as they prove nothing.
 * Where f falls in proportion to x, -grad f'x >= s |f|, at feasible points that are large, f may
 * fall without bound; what may be a proof of that is the careful path's to judge. */
#include <math.h>

#include "driver/driver.h"

/* Whether f falls in proportion to x: the slope of f along x is a part of f itself. */
static int falls_outwards(const hybrid_cold *cold) {
    const hybrid_point *at = &cold->at->of;
    double along = hybrid_dot(cold->plan->n_x, at->raw_gradient, at->x);
    return -along >= HYBRID_RAYS_SLOPE * fabs(at->raw_f);
}

int hybrid_runs_away(const hybrid_cold *cold, double reach) {
    return reach >= HYBRID_RAYS_LARGE && reach >= HYBRID_RAYS_FURTHER * cold->reach_before &&
           falls_outwards(cold);
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Whether all bounds are met as far as that can be known far out: as point/kkt.py. */
static int is_met(const hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_numbers *of = cold->numbers;
    const hybrid_point *at = &cold->at->of;
    double *sizes = cold->sizes;
    if (hybrid_excess(plan->n_x, at->x, of->lbx, of->ubx) > HYBRID_KKT_MET) return 0;
    hybrid_sizes_of_rows(plan, at, sizes);
    for (int i = 0; i < plan->n_g; i++) {
        double room = hybrid_between(HYBRID_KKT_FAR * sizes[i], HYBRID_KKT_MET, HYBRID_KKT_CAP);
        double over = larger(at->raw_g[i] - of->ubg[i], of->lbg[i] - at->raw_g[i]);
        if (over > room) return 0;
    }
    return 1;
}

/* Remembers the least f of feasible points that are large. Returns whether that may be a proof. */
static int looks_unbounded(hybrid_cold *cold, const hybrid_sight *sight) {
    const double f = cold->at->of.raw_f;
    if (!(sight->reach >= HYBRID_RAYS_LARGE) || !(f < 0.0)) return 0;
    if (sight->reach > HYBRID_RAYS_FAR) return 1;
    if (sight->merit <= 1.0 && !hybrid_runs_away(cold, sight->reach)) return 0;
    if (f < cold->state->seen && is_met(cold)) cold->state->seen = f;
    return 0;
}

int hybrid_beyond(hybrid_cold *cold, const hybrid_sight *sight) {
    const hybrid_attempt *attempt = cold->attempt;
    const hybrid_point *at = &cold->at->of;
    double most = attempt->alone ? HYBRID_RAYS_FAR : HYBRID_RAYS_LOST;
    if (!(sight->reach < most) || sight->reach > attempt->divergence) return HYBRID_FAR;
    if (at->raw_f < -attempt->divergence) return HYBRID_FAR;
    if (!hybrid_all_finite(cold->plan->m, cold->now.y)) return HYBRID_FAR;
    if (attempt->alone) return HYBRID_SOLVED;
    if (looks_unbounded(cold, sight)) return HYBRID_FAR;
    if (!(at->raw_f < 0.0 && sight->reach >= HYBRID_LEAP_FROM * larger(cold->first_size, 1.0)))
        return HYBRID_SOLVED;
    return falls_outwards(cold) ? HYBRID_FAR : HYBRID_SOLVED;
}
