/* The barrier parameter: nu becomes max(floor, min(kappa_mu nu, nu^theta_mu)) as long as E_nu is at
 * most kappa_epsilon nu (Waechter and Biegler 2006, eq. 7). And the progress test: a phase ends if
 * it does not improve any more. */
#include <math.h>

#include "barrier/barrier.h"

double hybrid_next_nu(double nu, double nu_min) {
    double by_factor = HYBRID_BARRIER_KAPPA_MU * nu;
    double by_power = pow(nu, HYBRID_BARRIER_THETA_MU);
    double next = by_power < by_factor ? by_power : by_factor;
    return next > nu_min ? next : nu_min;
}

/* After a start from given multipliers: the nu of one without, where the Hessian is indefinite. */
static void raise_nu_at_saddle(hybrid_phase *phase, hybrid_iterate *it) {
    const hybrid_form *form = &phase->form;
    const hybrid_point *at = &phase->at->of;
    double start = phase->options->nu;
    if (!phase->options->near || (it->nu != start && it->nu != HYBRID_BARRIER_NU_WARM_FAR)) return;
    if (it->indefinite < (it->nu == start ? HYBRID_BARRIER_SADDLE_STEPS : 1)) return;
    hybrid_set_barrier(it, HYBRID_BARRIER_NU_START);
    hybrid_to_central_path(form, at, it);
    hybrid_kkt_error(form, at, it, phase->Aty, &phase->error);
}

void hybrid_mark_progress(hybrid_iterate *it, double theta, double f, double error) {
    const hybrid_progress *old = &it->reference;
    if (old->made && old->nu == it->nu) {
        int nearer = hybrid_max(old->theta, theta) > HYBRID_FEASIBLE_C &&
                     theta < HYBRID_PROGRESS_THETA * old->theta;
        int lower = f < old->f - HYBRID_PROGRESS_F * fabs(f);
        int better = error < HYBRID_PROGRESS_ERROR * old->error;
        if (!(nearer || lower || better)) return;
    }
    it->reference = (hybrid_progress){it->nu, theta, f, error, it->t, 1, 0};
}

void hybrid_update_barrier(hybrid_phase *phase, hybrid_iterate *it) {
    const hybrid_error *error = &phase->error;
    const double wide = phase->history.wide;
    double nu, of_nu;
    int held;
    raise_nu_at_saddle(phase, it);
    nu = it->nu;
    /* The floor falls if the scaled error is met and the unscaled residuals or the gap are not. */
    if (wide > 1.0) it->nu_min = hybrid_min(it->nu_min, nu / wide);
    else if (hybrid_error_at(error, 0.0) <= phase->numbers->tol && nu <= it->nu_min)
        it->nu_min /= HYBRID_BARRIER_NU_MIN_FALL;
    it->nu_min = hybrid_max(it->nu_min, HYBRID_BARRIER_NU_LEAST);
    of_nu = hybrid_error_at(error, nu);
    /* A small error is that of a saddle point if the Hessian is still indefinite. */
    held = it->indefinite && HYBRID_BARRIER_KAPPA_EPSILON * of_nu > nu;
    while (!held && nu > it->nu_min && of_nu <= HYBRID_BARRIER_KAPPA_EPSILON * nu) {
        nu = hybrid_next_nu(nu, it->nu_min);
        of_nu = hybrid_error_at(error, nu);
    }
    hybrid_set_barrier(it, nu);
    hybrid_mark_progress(it, phase->at->theta, phase->at->of.f, of_nu);
}
