/* When the violation, the objective or the error has last improved by a share of itself: a run that
 * does not improve any more ends. */
#include <math.h>

#include "globalization/globalization.h"

void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error, int t) {
    hybrid_mark *old = &it->mark;
    if (old->made && old->nu == it->nu) {
        double larger = old->theta > theta ? old->theta : theta;
        int nearer = larger > HYBRID_PACE_FEASIBLE && theta < HYBRID_PACE_THETA * old->theta;
        int lower = f < old->f - HYBRID_PACE_F * fabs(f);
        int better = error < HYBRID_PACE_ERROR * old->error && !(it->bent && isinf(old->error));
        if (!(nearer || lower || better)) {
            if (it->bent && f < old->f - HYBRID_PACE_BELOW * fabs(f)) old->error = INFINITY;
            return;
        }
    }
    it->mark.nu = it->nu;
    it->mark.theta = theta;
    it->mark.f = f;
    it->mark.error = error;
    it->mark.t = t;
    it->mark.made = 1;
    it->mark.rounds = 0;
}
