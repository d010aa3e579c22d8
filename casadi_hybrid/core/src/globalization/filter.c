/* The filter of Waechter and Biegler (Math. Program. 106, 2006, section 2.3), whose mu is nu here.
 * A trial point with theta(alpha), phi(alpha) is accepted if the filter does not reject it, and
 *
 *     phi(alpha) <= phi + eta_phi alpha slope                                  (Armijo, eq. 20)
 *
 * where theta <= theta_min and the switching condition holds, slope = grad phi'dw; elsewhere if
 *
 *     theta(alpha) <= (1 - gamma_theta) theta  or  phi(alpha) <= phi - gamma_phi theta    (eq. 18).
 */
#include <math.h>
#include <string.h>

#include "globalization/globalization.h"

static double theta_min(double theta_start) {
    return HYBRID_FILTER_THETA_MIN_FACT * hybrid_max(theta_start, 1.0);
}

static double theta_max(double theta_start) {
    return HYBRID_FILTER_THETA_MAX_FACT * hybrid_max(theta_start, 1.0);
}

/* The switching condition, eq. 19, with delta = 1. */
static int is_switching(double theta, double alpha, double slope) {
    return slope < 0.0 &&
           alpha * pow(-slope, HYBRID_FILTER_S_PHI) > pow(theta, HYBRID_FILTER_S_THETA);
}

static int satisfies_armijo(double phi_change, double alpha, double slope) {
    return phi_change <= HYBRID_FILTER_ETA_PHI * alpha * slope;
}

static int is_sufficient_decrease(double theta, double theta_trial, double phi_change) {
    return (theta > 0.0 && theta_trial <= (1.0 - HYBRID_FILTER_GAMMA_THETA) * theta) ||
           phi_change <= -HYBRID_FILTER_GAMMA_PHI * theta;
}

double hybrid_alpha_min(const hybrid_filter_pair *pair, double theta_start, double slope) {
    const double theta = pair->theta;
    double least = HYBRID_FILTER_GAMMA_THETA;
    if (slope < 0.0) {
        least = hybrid_min(HYBRID_FILTER_GAMMA_PHI * theta / -slope, least);
        if (theta <= theta_min(theta_start))
            least = hybrid_min(pow(theta, HYBRID_FILTER_S_THETA) / pow(-slope, HYBRID_FILTER_S_PHI),
                               least);
    }
    return hybrid_max(HYBRID_FILTER_GAMMA_ALPHA * least, HYBRID_FILTER_ALPHA_ROUNDING);
}

int hybrid_filter_rejects(const hybrid_iterate *it, double theta, double phi, double reach) {
    if (theta > theta_max(it->theta_start) * hybrid_max(reach, 1.0)) return 1;
    for (int i = 0; i < it->entries; i++)
        if (theta >= it->filter[2 * i] && phi >= it->filter[2 * i + 1]) return 1;
    return 0;
}

int hybrid_filter_accepts(const hybrid_filter_pair *pair, const hybrid_iterate *it, double size,
                          double theta, double phi, double alpha, double slope) {
    const double phi_rounding = HYBRID_FILTER_PHI_ROUNDING * fabs(pair->phi); /* section 3.9 */
    const double phi_change = phi - pair->phi - phi_rounding;
    if (!isfinite(phi) || hybrid_filter_rejects(it, theta, phi, sqrt(size))) return HYBRID_REJECTED;
    if (pair->theta <= theta_min(it->theta_start) && is_switching(pair->theta, alpha, slope))
        return satisfies_armijo(phi_change, alpha, slope) ? HYBRID_F_TYPE : HYBRID_REJECTED;
    return is_sufficient_decrease(pair->theta, theta, phi_change) ? HYBRID_H_TYPE : HYBRID_REJECTED;
}

int hybrid_is_restored(const hybrid_phase *phase, const hybrid_trial *trial) {
    const double phi = hybrid_phi(&phase->form, trial, phase->now.nu);
    return trial->theta <= HYBRID_RESTORATION_KAPPA_RESTO * phase->elastic.theta_began &&
           !hybrid_filter_rejects(&phase->now, trial->theta, phi, 1.0);
}

void hybrid_filter_add(const hybrid_filter_pair *pair, hybrid_iterate *it) {
    const double theta = (1.0 - HYBRID_FILTER_GAMMA_THETA) * pair->theta;
    const double phi = pair->phi - HYBRID_FILTER_GAMMA_PHI * pair->theta;
    int count = 0;
    for (int i = 0; i < it->entries; i++) {
        const double *old = &it->filter[2 * i];
        if (!(old[0] < theta || old[1] < phi)) continue; /* dominated by the new one */
        it->filter[2 * count] = old[0];
        it->filter[2 * count + 1] = old[1];
        count++;
    }
    if (count == HYBRID_FILTER) /* the oldest goes */
        memmove(it->filter, it->filter + 2, 2 * (size_t)--count * sizeof(double));
    it->filter[2 * count] = theta;
    it->filter[2 * count + 1] = phi;
    it->entries = count + 1;
}
