/* The filter (Waechter and Biegler 2006, section 2.3): with slope = grad phi'dw, a step for which
 *
 *     alpha (-slope)^s_phi > theta^s_theta
 *
 * near feasibility has to decrease phi, phi(alpha) <= phi + eta alpha slope; any other one theta by
 * gamma_theta theta or phi by gamma_phi theta. No pair (theta, phi) of the filter may be as good in
 * both. */
#include <math.h>
#include <string.h>

#include "globalization/globalization.h"

static double theta_min(double theta_start) {
    return HYBRID_FILTER_THETA_MIN_FACT * hybrid_max(theta_start, 1.0);
}

double hybrid_alpha_min(const hybrid_filter_pair *pair, double theta_start, double slope) {
    double least = HYBRID_FILTER_GAMMA_THETA, theta = pair->theta;
    if (slope < 0.0) {
        double other = HYBRID_FILTER_GAMMA_PHI * theta / -slope;
        if (other < least) least = other;
        if (theta <= theta_min(theta_start)) {
            other = pow(theta, HYBRID_FILTER_S_THETA) / pow(-slope, HYBRID_FILTER_S_PHI);
            if (other < least) least = other;
        }
    }
    return hybrid_max(HYBRID_FILTER_GAMMA_ALPHA * least, HYBRID_FILTER_ALPHA_ROUNDING);
}

int hybrid_filter_rejects(const hybrid_iterate *it, double theta, double phi, double reach) {
    double most = HYBRID_FILTER_THETA_MAX_FACT * (it->theta_start > 1.0 ? it->theta_start : 1.0);
    if (theta > most * hybrid_max(reach, 1.0)) return 1;
    for (int i = 0; i < it->entries; i++)
        if (theta >= it->filter[2 * i] && phi >= it->filter[2 * i + 1]) return 1;
    return 0;
}

int hybrid_filter_accepts(const hybrid_filter_pair *pair, const hybrid_iterate *it, double size,
                          double theta, double phi, double alpha, double slope) {
    double noise = HYBRID_FILTER_PHI_ROUNDING * fabs(pair->phi);
    double fall = phi - pair->phi - noise;
    int better, lower;
    if (!isfinite(phi) || hybrid_filter_rejects(it, theta, phi, sqrt(size))) return 0;
    if (slope < 0.0 && pair->theta <= theta_min(it->theta_start) &&
        alpha * pow(-slope, HYBRID_FILTER_S_PHI) > pow(pair->theta, HYBRID_FILTER_S_THETA))
        return fall <= HYBRID_FILTER_ETA_PHI * alpha * slope ? 'f' : 0;
    better = theta <= (1.0 - HYBRID_FILTER_GAMMA_THETA) * pair->theta && pair->theta > 0.0;
    lower = fall <= -HYBRID_FILTER_GAMMA_PHI * pair->theta;
    return better || lower ? 'h' : 0;
}

int hybrid_is_restored(const hybrid_run *run, const hybrid_trial *trial) {
    double phi = hybrid_phi(&run->form, trial, run->now.nu);
    return trial->theta <= HYBRID_RESTORATION_KAPPA_RESTO * run->elastic.theta_began &&
           !hybrid_filter_rejects(&run->now, trial->theta, phi, 1.0);
}

void hybrid_filter_add(const hybrid_filter_pair *pair, hybrid_iterate *it) {
    double theta = (1.0 - HYBRID_FILTER_GAMMA_THETA) * pair->theta;
    double phi = pair->phi - HYBRID_FILTER_GAMMA_PHI * pair->theta;
    int kept = 0;
    for (int i = 0; i < it->entries; i++) {
        double *old = &it->filter[2 * i];
        if (!(old[0] < theta || old[1] < phi)) continue;
        it->filter[2 * kept] = old[0];
        it->filter[2 * kept + 1] = old[1];
        kept++;
    }
    if (kept == HYBRID_FILTER) /* the oldest goes */
        memmove(it->filter, it->filter + 2, 2 * (size_t)--kept * sizeof(double));
    it->filter[2 * kept] = theta;
    it->filter[2 * kept + 1] = phi;
    it->entries = kept + 1;
}
