/* The progress test: when the violation, the objective or the error has last improved by a part of
 * itself. A run that does not improve any more ends. */
#include <math.h>

#include "globalization/globalization.h"

void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error) {
    hybrid_progress *old = &it->reference;
    if (old->made && old->nu == it->nu) {
        double larger = old->theta > theta ? old->theta : theta;
        int nearer = larger > HYBRID_PROGRESS_FEASIBLE &&
                     theta < HYBRID_PROGRESS_LEFT * old->theta;
        int lower = f < old->f - HYBRID_PROGRESS_F * fabs(f);
        int better = error < HYBRID_PROGRESS_LEFT * old->error;
        if (!(nearer || lower || better)) return;
    }
    it->reference = (hybrid_progress){it->nu, theta, f, error, it->t, 1, 0};
}
