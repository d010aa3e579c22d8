/* The barrier parameter: nu becomes max(floor, min(kappa nu, nu^theta)) as long as E_nu is at most
 * kappa_epsilon nu (Waechter and Biegler 2006, eq. 7). */
#include <math.h>

#include "barrier/barrier.h"

double hybrid_next_nu(double nu, double floor) {
    double by_factor = HYBRID_SETTINGS_KAPPA_NU * nu;
    double by_power = pow(nu, HYBRID_SETTINGS_THETA_NU);
    double next = by_power < by_factor ? by_power : by_factor;
    return next > floor ? next : floor;
}

/* The nu of a cold start where the Lagrangian bends downwards at a warm one. */
static void off_saddle(hybrid_cold *cold, hybrid_iterate *it) {
    const hybrid_form *form = &cold->form;
    const hybrid_point *at = &cold->at->of;
    double start = cold->attempt->nu;
    if (!cold->attempt->near || (it->nu != start && it->nu != HYBRID_BARRIER_NU_FAR_OFF)) return;
    if (it->bent < (it->nu == start ? HYBRID_BARRIER_SADDLE : 1)) return;
    hybrid_with_barrier(it, HYBRID_ITERATE_NU_START);
    hybrid_central(form, at, it);
    hybrid_measure(form, at, it, cold->pull, &cold->error);
}

void hybrid_lower_barrier(hybrid_cold *cold, hybrid_iterate *it, int t) {
    const hybrid_error *error = &cold->error;
    double nu, of_nu;
    int held;
    off_saddle(cold, it);
    nu = it->nu;
    /* Unscaled residuals ask for more. */
    if (hybrid_error_at(error, 0.0) <= cold->numbers->tol &&
        nu <= it->floor * HYBRID_BARRIER_AT_FLOOR) {
        it->floor *= HYBRID_BARRIER_LOWER;
        if (it->floor < HYBRID_SETTINGS_NU_LEAST) it->floor = HYBRID_SETTINGS_NU_LEAST;
    }
    of_nu = hybrid_error_at(error, nu);
    /* Where f still bends downwards a small error is that of a saddle: see barrier.py. */
    held = it->bent && of_nu > HYBRID_SETTINGS_SADDLE * nu;
    while (!held && nu > it->floor && of_nu <= HYBRID_SETTINGS_KAPPA_EPSILON * nu) {
        nu = hybrid_next_nu(nu, it->floor);
        of_nu = hybrid_error_at(error, nu);
    }
    hybrid_with_barrier(it, nu);
    hybrid_mark_progress(it, cold->at->theta, cold->at->of.f, of_nu, t);
}
