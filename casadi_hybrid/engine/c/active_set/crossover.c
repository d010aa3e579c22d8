/* Crossover, as barrier/polish.py: the active set is guessed where z exceeds the distance to the
 * bound, and Newton steps are taken on the KKT equations with these bounds met. They are kept where
 * the error of the whole problem says that the guess was right. */

#include "globalization/globalization.h"
#include "active_set/active_set.h"

void hybrid_active_guess(const hybrid_form *form, const hybrid_point *at,
                         const hybrid_iterate *it, int *sides) {
    for (int i = 0; i < form->plan->n; i++) {
        int lower = form->has_lower[i] && it->z_lower[i] > at->below[i];
        int upper = form->has_upper[i] && it->z_upper[i] > at->above[i];
        sides[i] = lower ? 1 : upper ? 2 : 0;
    }
}

/* Whether multiplier and distance differ by a factor. */
static int is_clear(double z, double distance) {
    return !(z < HYBRID_BARRIER_CLEAR * distance && distance < HYBRID_BARRIER_CLEAR * z);
}

/* Whether every bound is clearly active or not. */
static int all_clear(const hybrid_form *form, const hybrid_point *at, const hybrid_iterate *it) {
    for (int i = 0; i < form->plan->n; i++) {
        if (form->has_lower[i] && !is_clear(it->z_lower[i], at->below[i])) return 0;
        if (form->has_upper[i] && !is_clear(it->z_upper[i], at->above[i])) return 0;
    }
    return 1;
}

/* The step with the active bounds pinned, by the first of the remedies for K that is of use. */
static int solved(hybrid_cold *cold, const hybrid_point *at, hybrid_direction *d) {
    static const double remedies[][2] = HYBRID_POLISH_REMEDIES; /* (epsilon, shift) */
    double largest = hybrid_largest_of_W(cold->plan, cold->W, cold->kernel.low_rank);
    if (!(largest > 1.0)) largest = 1.0;
    for (int number = 0; number < HYBRID_POLISH_REMEDIES_COUNT; number++) {
        double epsilon = remedies[number][0], shift = remedies[number][1] * largest;
        int found = hybrid_factor_pinned(cold->plan, cold->W, at->A, shift, epsilon,
                                         &cold->kernel);
        if (found == 0)
            found = hybrid_solve_pinned(cold->plan, cold->W, at->A, cold->force, at->c,
                                        &cold->kernel, d->dw, d->dy);
        cold->form.answer->factors++;
        if (found == 0) return HYBRID_SOLVED;
        if (found == 1 && epsilon > 0.0) return HYBRID_NO_SET;
    }
    return HYBRID_NO_SET;
}

/* The multipliers of the bounds that are active, where they have the right sign. */
static int multipliers(hybrid_cold *cold, const hybrid_point *at, hybrid_iterate *next) {
    const int *sides = cold->guess;
    hybrid_pull(cold->plan, at->A, next->y, cold->work);
    for (int i = 0; i < cold->plan->n; i++) {
        double slope = at->gradient[i] + cold->work[i];
        next->z_lower[i] = sides[i] == 1 ? slope : 0.0;
        next->z_upper[i] = sides[i] == 2 ? -slope : 0.0;
        if (next->z_lower[i] < 0.0 || next->z_upper[i] < 0.0) return HYBRID_NO_SET;
    }
    return HYBRID_SOLVED;
}

/* A Newton step from cold->next at `from` on the active set, to `to`. */
static int step(hybrid_cold *cold, const hybrid_spot *from, hybrid_spot *to) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &from->of;
    hybrid_kernel *kernel = &cold->kernel;
    hybrid_direction *d = &cold->direction;
    hybrid_iterate *next = &cold->next;
    int status;
    if (hybrid_hessian(&cold->form, at, next->y, 1.0, cold->W)) return HYBRID_UNDEFINED;
    for (int i = 0; i < plan->n; i++) {
        int side = cold->guess[i];
        kernel->pinned[i] = side != 0;
        kernel->move[i] = side == 1   ? form->lower[i] - at->w[i]
                          : side == 2 ? form->upper[i] - at->w[i]
                                      : 0.0;
    }
    hybrid_pull(plan, at->A, next->y, cold->force);
    for (int i = 0; i < plan->n; i++) cold->force[i] += at->gradient[i];
    status = solved(cold, at, d);
    if (status) return status;
    for (int i = 0; i < plan->n; i++) {
        double w = at->w[i] + (kernel->pinned[i] ? kernel->move[i] : d->dw[i]);
        if (form->has_lower[i] && !(w - form->lower[i] >= 0.0)) return HYBRID_NO_SET;
        if (form->has_upper[i] && !(form->upper[i] - w >= 0.0)) return HYBRID_NO_SET;
        to->of.w[i] = w;
    }
    for (int i = 0; i < plan->m; i++) next->y[i] += d->dy[i];
    if (hybrid_visit_problem(cold, to)) return HYBRID_NO_SET;
    return multipliers(cold, &to->of, next);
}

/* Whether an iterate is a solution. */
static int is_solved(hybrid_cold *cold, const hybrid_point *at, double error) {
    hybrid_residuals residuals;
    if (error > cold->numbers->tol) return 0;
    hybrid_judge(cold, at, &cold->next, &residuals);
    return hybrid_merit(cold->numbers, &residuals) <= 1.0;
}

static double error_of(hybrid_cold *cold, const hybrid_point *at, const hybrid_iterate *it) {
    hybrid_error error;
    hybrid_measure(&cold->form, at, it, cold->work, &error);
    return hybrid_error_at(&error, 0.0);
}

/* Steps on the active set from `it`, with the solution in cold->next at cold->trial. */
static int follow(hybrid_cold *cold, const hybrid_iterate *it, int *spent) {
    const hybrid_spot *from = cold->at;
    int most = cold->numbers->max_iter - it->t;
    double error = error_of(cold, &from->of, it);
    hybrid_copy(cold->plan, it, 0, &cold->next);
    if (most > HYBRID_POLISH_STEPS) most = HYBRID_POLISH_STEPS;
    for (*spent = 1; *spent <= most; ++*spent) {
        hybrid_spot *to = cold->trial;
        double now, most_left;
        int status = step(cold, from, to);
        if (status) return status;
        now = error_of(cold, &to->of, &cold->next);
        if (is_solved(cold, &to->of, now)) return HYBRID_SOLVED;
        most_left = HYBRID_POLISH_BETTER * error;
        if (now > (most_left > HYBRID_POLISH_ENOUGH ? most_left : HYBRID_POLISH_ENOUGH))
            return HYBRID_NO_SET;
        error = now;
        /* The next step leads from here to the other place. */
        cold->trial = cold->bent;
        cold->bent = to;
        from = to;
    }
    *spent = most;
    return HYBRID_NO_SET;
}

int hybrid_polish(hybrid_cold *cold, hybrid_iterate *it, int *spent) {
    int *sides = cold->sides, same = it->guessed, status;
    *spent = 0;
    if (!(it->fresh && it->nu <= HYBRID_SETTINGS_POLISH_BELOW)) return HYBRID_NO_SET;
    hybrid_active_guess(&cold->form, &cold->at->of, it, sides);
    for (int i = 0; same && i < cold->plan->n; i++) same = sides[i] == cold->guess[i];
    cold->sides = cold->guess;
    cold->guess = sides;
    it->guessed = 1;
    it->fresh = 0;
    if (!same) return HYBRID_NO_SET;
    if (!(it->nu <= HYBRID_BARRIER_LATE || all_clear(&cold->form, &cold->at->of, it)))
        return HYBRID_NO_SET;
    status = follow(cold, it, spent);
    if (status == HYBRID_SOLVED) {
        cold->next.fresh = it->fresh;
        cold->next.crossed = 1;
        cold->next.stepped = 0;
    }
    return status;
}

void hybrid_sharpen(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    hybrid_iterate *it = &cold->now;
    hybrid_residuals residuals;
    int most = cold->numbers->max_iter - it->t;
    double least = hybrid_judge(cold, &cold->at->of, it, &residuals);
    if (most > HYBRID_POLISH_SHARPER) most = HYBRID_POLISH_SHARPER;
    hybrid_active_guess(&cold->form, &cold->at->of, it, cold->guess);
    hybrid_copy(plan, it, 0, &cold->next);
    while (most-- > 0 && least > 1.0) {
        hybrid_spot *from = cold->at, *to = cold->trial;
        const int t = ++it->t;
        double plain;
        if (step(cold, from, to)) return;
        if (error_of(cold, &to->of, &cold->next) > cold->numbers->tol) return;
        plain = hybrid_judge(cold, &to->of, &cold->next, &residuals);
        if (!(hybrid_merit(cold->numbers, &residuals) <= 1.0 && plain < least)) return;
        least = plain;
        hybrid_copy(plan, &cold->next, 0, it);
        it->t = t;
        it->crossed = 1;
        it->stepped = 0;
        cold->at = to;
        cold->trial = from;
    }
}
