/* The filter (Waechter and Biegler 2006, section 2.3): with slope = grad phi'dw, a step for which
 *
 *     alpha (-slope)^s_phi > theta^s_theta
 *
 * near feasibility has to decrease phi, phi(alpha) <= phi + eta alpha slope; any other one theta by
 * gamma_theta theta or phi by gamma_phi theta. No pair (theta, phi) of the filter may be as good in
 * both. */
#include <math.h>

#include "globalization/globalization.h"

static double theta_min(double theta_start) {
    return HYBRID_FILTER_LEAST * hybrid_max(theta_start, 1.0);
}

/* slope^s without overflow. */
static double power(double slope) {
    return pow(slope < HYBRID_UNLIMITED ? slope : HYBRID_UNLIMITED,
               HYBRID_LINE_SEARCH_S_PHI);
}

/* The right-hand side of the switching condition. */
static double asked(double theta) {
    return pow(theta, HYBRID_LINE_SEARCH_S_THETA);
}

double hybrid_smallest_step(const hybrid_filter_pair *pair, double theta_start, double slope) {
    double least = HYBRID_LINE_SEARCH_GAMMA_THETA, theta = pair->theta;
    if (slope < 0.0) {
        double other = HYBRID_LINE_SEARCH_GAMMA_PHI * theta / -slope;
        if (other < least) least = other;
        if (theta <= theta_min(theta_start)) {
            other = asked(theta) / power(-slope);
            if (other < least) least = other;
        }
    }
    if (!(least > HYBRID_LINE_SEARCH_LEAST)) least = HYBRID_LINE_SEARCH_LEAST;
    return HYBRID_LINE_SEARCH_SHORTEST * least;
}

int hybrid_filter_rejects(const hybrid_iterate *it, double theta, double phi, double reach) {
    double most = HYBRID_FILTER_MOST * (it->theta_start > 1.0 ? it->theta_start : 1.0);
    if (theta > most * hybrid_max(reach, 1.0)) return 1;
    for (int i = 0; i < it->entries; i++)
        if (theta >= it->filter[2 * i] && phi >= it->filter[2 * i + 1]) return 1;
    return 0;
}

int hybrid_filter_accepts(const hybrid_filter_pair *pair, const hybrid_iterate *it, double size,
                          double theta, double phi, double alpha, double slope) {
    double noise = HYBRID_ROUNDED * fabs(pair->phi);
    double fall = phi - pair->phi - noise;
    int better, lower;
    if (!isfinite(phi) || hybrid_filter_rejects(it, theta, phi, sqrt(size))) return 0;
    if (slope < 0.0 && pair->theta <= theta_min(it->theta_start) &&
        alpha * power(-slope) > asked(pair->theta))
        return fall <= HYBRID_LINE_SEARCH_ETA * alpha * slope ? 'f' : 0;
    better = theta <= (1.0 - HYBRID_LINE_SEARCH_GAMMA_THETA) * pair->theta && pair->theta > 0.0;
    lower = fall <= -HYBRID_LINE_SEARCH_GAMMA_PHI * pair->theta;
    return better || lower ? 'h' : 0;
}

int hybrid_restored(const hybrid_run *run, const hybrid_trial *trial) {
    double phi = hybrid_phi(&run->form, trial, run->now.nu);
    return trial->theta <= HYBRID_ELASTIC_REDUCTION * run->elastic.theta_began &&
           !hybrid_filter_rejects(&run->now, trial->theta, phi, 1.0);
}

/* Of a full filter the pair goes that alone blocks the least: of each the rectangle from it to its
 * neighbours, as an archive of points is kept short where several objectives are minimized (Beume,
 * Naujoks and Emmerich 2007). What blocks most, the pairs with the least theta and the least phi,
 * stays. */
static void drop_least(hybrid_iterate *it) {
    const double *pairs = it->filter;
    int order[HYBRID_FILTER], out = 0;
    double least = INFINITY;
    for (int i = 0; i < it->entries; i++) {
        int k = i;
        for (; k > 0 && pairs[2 * order[k - 1]] > pairs[2 * i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int k = 1; k < it->entries - 1; k++) {
        const double *before = pairs + 2 * order[k - 1], *one = pairs + 2 * order[k];
        double area = (pairs[2 * order[k + 1]] - one[0]) * (before[1] - one[1]);
        if (!(area < least)) continue;
        least = area;
        out = order[k];
    }
    for (int i = out; i < it->entries - 1; i++) {
        it->filter[2 * i] = it->filter[2 * (i + 1)];
        it->filter[2 * i + 1] = it->filter[2 * (i + 1) + 1];
    }
    it->entries--;
}

void hybrid_filter_add(const hybrid_filter_pair *pair, hybrid_iterate *it) {
    double theta = (1.0 - HYBRID_LINE_SEARCH_GAMMA_THETA) * pair->theta;
    double phi = pair->phi - HYBRID_LINE_SEARCH_GAMMA_PHI * pair->theta;
    int kept = 0;
    for (int i = 0; i < it->entries; i++) {
        double *old = &it->filter[2 * i];
        if (!(old[0] < theta || old[1] < phi)) continue;
        it->filter[2 * kept] = old[0];
        it->filter[2 * kept + 1] = old[1];
        kept++;
    }
    it->entries = kept;
    if (kept == HYBRID_FILTER) drop_least(it);
    it->filter[2 * it->entries] = theta;
    it->filter[2 * it->entries + 1] = phi;
    it->entries++;
}
