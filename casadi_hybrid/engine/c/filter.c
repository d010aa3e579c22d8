/* theta, phi_nu and the filter: as barrier/merit.py and barrier/filter.py. */
#include <float.h>
#include <math.h>

#include "cold.h"

int hybrid_visit(hybrid_cold *cold, hybrid_spot *spot) {
    return cold->outer ? hybrid_elastic_visit(cold, spot) : hybrid_visit_problem(cold, spot);
}

int hybrid_visit_problem(hybrid_cold *cold, hybrid_spot *spot) {
    const hybrid_form *form = &cold->form;
    hybrid_point *at = &spot->of;
    hybrid_distances(&cold->form, at);
    if (hybrid_evaluate(&cold->form, at, 0)) {
        cold->state->undefined++;
        hybrid_set(cold->plan->n_x, at->x, cold->state->x_undefined);
        return 1;
    }
    spot->theta = hybrid_sum(form->plan->m, at->c);
    spot->logs = 0.0;
    spot->outside = 0;
    for (int i = 0; i < form->plan->n; i++) {
        double room = -2.0 * form->room[i];
        if (form->has_lower[i]) {
            spot->outside |= at->w[i] - form->lower[i] < room;
            spot->logs += log(at->below[i]);
        }
        if (form->has_upper[i]) {
            spot->outside |= form->upper[i] - at->w[i] < room;
            spot->logs += log(at->above[i]);
        }
    }
    return 0;
}

double hybrid_phi(const hybrid_form *form, const hybrid_spot *spot, double nu) {
    double linear = 0.0;
    if (spot->outside) return INFINITY;
    if (!form->bounds) return spot->of.f;
    for (int i = 0; i < form->plan->n; i++) {
        if (form->has_lower[i] && !form->has_upper[i]) linear += spot->of.below[i];
        if (form->has_upper[i] && !form->has_lower[i]) linear += spot->of.above[i];
    }
    return spot->of.f - nu * (spot->logs - HYBRID_MERIT_DAMPING * linear);
}

void hybrid_weigh(const hybrid_form *form, const hybrid_spot *at, double nu,
                  hybrid_worth *worth) {
    const hybrid_point *of = &at->of;
    worth->theta = at->theta;
    worth->phi = hybrid_phi(form, at, nu);
    for (int i = 0; i < form->plan->n; i++) {
        double pull = 0.0, slope = of->gradient[i];
        if (form->has_upper[i]) pull += 1.0 / of->above[i];
        if (form->has_lower[i]) pull -= 1.0 / of->below[i];
        slope += nu * pull;
        if (form->has_lower[i] != form->has_upper[i])
            slope += HYBRID_MERIT_DAMPING * nu * (form->has_lower[i] ? 1.0 : -1.0);
        worth->gradient[i] = slope;
    }
}

static double theta_min(double theta_start) {
    return HYBRID_FILTER_LEAST * (theta_start > 1.0 ? theta_start : 1.0);
}

/* slope^s without overflow. */
static double power(double slope) {
    return pow(slope < 1e100 ? slope : 1e100, HYBRID_MERIT_S_PHI);
}

/* What the violation asks of a step that has to decrease phi. */
static double asked(double theta) {
    return HYBRID_MERIT_DELTA * pow(theta, HYBRID_MERIT_S_THETA);
}

double hybrid_smallest_step(const hybrid_worth *worth, double theta_start, double slope) {
    double least = HYBRID_MERIT_GAMMA_THETA, theta = worth->theta;
    if (slope < 0.0) {
        double other = HYBRID_MERIT_GAMMA_PHI * theta / -slope;
        if (other < least) least = other;
        if (theta <= theta_min(theta_start)) {
            other = asked(theta) / power(-slope);
            if (other < least) least = other;
        }
    }
    return 0.05 * (least > 1e-14 ? least : 1e-14);
}

int hybrid_blocks(const hybrid_iterate *it, double theta, double phi, double reach) {
    double most = HYBRID_FILTER_MOST * (it->theta_start > 1.0 ? it->theta_start : 1.0);
    if (theta > most * (reach > 1.0 ? reach : 1.0)) return 1;
    for (int i = 0; i < it->entries; i++)
        if (theta >= it->filter[2 * i] && phi >= it->filter[2 * i + 1]) return 1;
    return 0;
}

int hybrid_verdict(const hybrid_worth *worth, const hybrid_iterate *it, double size, double theta,
                   double phi, double alpha, double slope) {
    double noise = 10.0 * DBL_EPSILON * fabs(worth->phi);
    double fall = phi - worth->phi - noise;
    int better, lower;
    if (!isfinite(phi) || hybrid_blocks(it, theta, phi, sqrt(size))) return 0;
    if (slope < 0.0 && worth->theta <= theta_min(it->theta_start) &&
        alpha * power(-slope) > asked(worth->theta))
        return fall <= HYBRID_MERIT_ETA * alpha * slope ? 'f' : 0;
    better = theta <= (1.0 - HYBRID_MERIT_GAMMA_THETA) * worth->theta && worth->theta > 0.0;
    lower = fall <= -HYBRID_MERIT_GAMMA_PHI * worth->theta;
    return better || lower ? 'h' : 0;
}

int hybrid_extend(const hybrid_worth *worth, hybrid_iterate *it) {
    double theta = (1.0 - HYBRID_MERIT_GAMMA_THETA) * worth->theta;
    double phi = worth->phi - HYBRID_MERIT_GAMMA_PHI * worth->theta;
    int kept = 0;
    for (int i = 0; i < it->entries; i++) {
        double *old = &it->filter[2 * i];
        if (!(old[0] < theta || old[1] < phi)) continue;
        it->filter[2 * kept] = old[0];
        it->filter[2 * kept + 1] = old[1];
        kept++;
    }
    if (kept == HYBRID_FILTER) return 1;
    it->filter[2 * kept] = theta;
    it->filter[2 * kept + 1] = phi;
    it->entries = kept + 1;
    return 0;
}
