/* The least |c|^2 / 2 inside the bounds, before anything else, as barrier/restoration.py with the
 * goal zero: damped steps of Gauss and Newton, or with the curvature of c where that is slow, by
 * the KKT matrix with E = I. What the careful path has to judge, a violation that falls no more,
 * ends it. */
#include <math.h>
#include <string.h>

#include "globalization/globalization.h"
#include "feasibility/feasibility.h"

void hybrid_place_root(const hybrid_plan *plan, hybrid_arena *arena, hybrid_root *root) {
    root->z_lower = hybrid_take(arena, plan->n);
    root->z_upper = hybrid_take(arena, plan->n);
    root->units = hybrid_take(arena, plan->n);
}

void hybrid_copy_root(const hybrid_plan *plan, const hybrid_root *from, hybrid_root *to) {
    hybrid_root kept = *to;
    *to = *from;
    to->z_lower = kept.z_lower;
    to->z_upper = kept.z_upper;
    to->units = kept.units;
    hybrid_set(plan->n, from->z_lower, to->z_lower);
    hybrid_set(plan->n, from->z_upper, to->z_upper);
    hybrid_set(plan->n, from->units, to->units);
}

static double square(int count, const double *v) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += v[i] * v[i];
    return sum;
}

/* Squared norms of the columns of A; their mean in the place of each where steps are cautious. */
static void measure_units(const hybrid_plan *plan, const hybrid_point *at, int cautious,
                          double *units) {
    double sum = 0.0;
    for (int i = 0; i < plan->n; i++) units[i] = 0.0;
    for (int k = 0; k < plan->nnz_A; k++) units[plan->A_cols[k]] += at->A[k] * at->A[k];
    if (!cautious) return;
    for (int i = 0; i < plan->n; i++) sum += units[i];
    for (int i = 0; i < plan->n; i++) units[i] = sum / plan->n;
}

static void go_to_trial(hybrid_cold *cold) {
    hybrid_spot *new = cold->trial;
    cold->trial = cold->at;
    cold->at = new;
}

void hybrid_begin_root(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_root *root = &cold->root;
    double theta = cold->at->theta < 1.0 ? cold->at->theta : 1.0, nu = cold->now.nu;
    /* Slacks at the values of their rows, and w a little inside its bounds. */
    hybrid_set(plan->n, at->w, cold->trial->of.w);
    for (int k = 0; k < plan->n_slack; k++)
        cold->trial->of.w[plan->n_free + k] += at->c[plan->slack_row[k]];
    hybrid_interior(form, HYBRID_RESTORATION_ROOM * theta, cold->trial->of.w);
    if (!hybrid_visit_problem(cold, cold->trial)) go_to_trial(cold);
    at = &cold->at->of;
    nu = hybrid_between(nu, HYBRID_RESTORATION_NU_LOW, HYBRID_RESTORATION_NU_HIGH);
    nu *= HYBRID_RESTORATION_NU_SHARE;
    nu *= theta > HYBRID_RESTORATION_NU_LOW ? theta : HYBRID_RESTORATION_NU_LOW;
    root->nu = form->bounds ? nu : 0.0;
    for (int i = 0; i < plan->n; i++) {
        root->z_lower[i] = form->has_lower[i] ? root->nu / at->below[i] : 0.0;
        root->z_upper[i] = form->has_upper[i] ? root->nu / at->above[i] : 0.0;
    }
    root->cautious = cold->attempt->cautious;
    root->damping = root->cautious ? HYBRID_RESTORATION_CAUTIOUS : HYBRID_RESTORATION_DAMPING;
    root->mark = INFINITY;
    root->curved = root->steps = 0;
    root->begun = 1;
    measure_units(plan, at, root->cautious, root->units);
}

/* The search ends at a root, whose multipliers are those of least squares: cold->next at `spot`. */
static void end(hybrid_cold *cold, const hybrid_spot *spot) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    hybrid_iterate *next = &cold->next;
    hybrid_residuals residuals;
    cold->root.begun = 0;
    hybrid_copy(plan, &cold->now, 0, next);
    memset(next->z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(next->z_upper, 0, (size_t)plan->n * sizeof(double));
    hybrid_least_squares(cold, &spot->of, next->z_lower, next->z_upper, next->y);
    next->tiny = 1;
    hybrid_judge(cold, &spot->of, next, &residuals);
    if (hybrid_merit(cold->numbers, &residuals) <= 1.0) return;
    for (int i = 0; i < plan->n; i++) {
        double lower = next->nu / spot->of.below[i], upper = next->nu / spot->of.above[i];
        lower = hybrid_between(lower, HYBRID_BARRIER_LEAST_Z, HYBRID_BARRIER_LARGEST_Z);
        upper = hybrid_between(upper, HYBRID_BARRIER_LEAST_Z, HYBRID_BARRIER_LARGEST_Z);
        next->z_lower[i] = form->has_lower[i] ? lower : 0.0;
        next->z_upper[i] = form->has_upper[i] ? upper : 0.0;
    }
    next->tiny = 0;
    hybrid_least_squares(cold, &spot->of, next->z_lower, next->z_upper, next->y);
}

/* Where steps lead no further: at a root; with a smaller barrier; or for the careful path. */
static int closer(hybrid_cold *cold, const double *units) {
    hybrid_root *root = &cold->root;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    double violation = hybrid_largest(plan->m, at->c), size = sqrt(square(plan->m, at->c));
    if (violation <= HYBRID_RESTORATION_ROUGH_ROOT) {
        end(cold, cold->at);
        return HYBRID_SOLVED;
    }
    if (!(root->nu > HYBRID_RESTORATION_LEAST_NU * size * (size < 1.0 ? size : 1.0)))
        return HYBRID_BLOCKED;
    if (violation > HYBRID_PACE_FEASIBLE) return HYBRID_BLOCKED; /* maybe a stationary one */
    hybrid_set(plan->n, units, root->units);
    root->nu *= HYBRID_RESTORATION_LESS_NU;
    return HYBRID_SOLVED;
}

/* |c|^2 / 2 with the barrier of the search. */
static double value_of(const hybrid_cold *cold, const hybrid_spot *spot) {
    if (spot->outside) return INFINITY;
    return 0.5 * square(cold->plan->m, spot->of.c) - cold->root.nu * spot->logs;
}

/* What the quadratic model says the step gains. `slope`: of the value; W: NULL for none. */
static double expected(hybrid_cold *cold, const double *W, const double *D, const double *slope,
                       const double *step) {
    const hybrid_plan *plan = cold->plan;
    double bend, along = 0.0;
    hybrid_times_A(plan, cold->at->of.A, step, cold->residual);
    bend = square(plan->m, cold->residual);
    if (W) hybrid_times_W(plan, W, step, cold->work);
    for (int i = 0; i < plan->n; i++) {
        bend += step[i] * D[i] * step[i];
        if (W) bend += step[i] * cold->work[i];
        along += slope[i] * step[i];
    }
    return -along - 0.5 * bend;
}

/* The largest part of dw after which every distance is at least 1 - tau of what it is. */
static double share(const hybrid_form *form, const hybrid_point *at, const double *dw) {
    double tau = HYBRID_SETTINGS_TAU_LEAST;
    int n = form->plan->n;
    double below = hybrid_share_to_zero(n, at->below, dw, 1.0, form->has_lower, tau);
    double above = hybrid_share_to_zero(n, at->above, dw, -1.0, form->has_upper, tau);
    return below < above ? below : above;
}

/* Multipliers of the bounds after a part alpha of the step. */
static void move_bounds(hybrid_cold *cold, double alpha) {
    const hybrid_form *form = &cold->form;
    hybrid_root *root = &cold->root;
    hybrid_direction *d = &cold->direction;
    hybrid_iterate of = cold->now;
    of.nu = root->nu;
    of.z_lower = root->z_lower;
    of.z_upper = root->z_upper;
    hybrid_dual_steps(form, &cold->at->of, &of, d);
    for (int i = 0; i < cold->plan->n; i++) {
        root->z_lower[i] += alpha * d->dz_lower[i];
        root->z_upper[i] += alpha * d->dz_upper[i];
    }
    hybrid_safe_duals(form, &cold->trial->of, root->nu, root->z_lower, root->z_upper);
}

/* Goes to the trial point. Returns HYBRID_BLOCKED, with nothing changed, where the violation hardly
 * falls any more. */
static int take(hybrid_cold *cold, double alpha, double damping, const double *units) {
    const hybrid_plan *plan = cold->plan;
    hybrid_root *root = &cold->root;
    double before = square(plan->m, cold->at->of.c), now = square(plan->m, cold->trial->of.c);
    int watched = (root->steps + 1) % HYBRID_RESTORATION_WATCH == 0;
    if (hybrid_largest(plan->m, cold->trial->of.c) <= HYBRID_RESTORATION_ROOT) {
        end(cold, cold->trial);
        go_to_trial(cold);
        return HYBRID_SOLVED;
    }
    if (watched && now > HYBRID_RESTORATION_SLOW * root->mark) return HYBRID_BLOCKED;
    if (watched) root->mark = now;
    move_bounds(cold, alpha);
    hybrid_set(plan->n, units, root->units);
    root->damping = damping;
    root->steps++;
    root->curved = !(now <= HYBRID_RESTORATION_FAST * before);
    go_to_trial(cold);
    return HYBRID_SOLVED;
}

/* What pulls at w: the barrier alone, in cold->force, and with A'c, in `slope`. Returns whether
 * that is zero. */
static int is_flat(hybrid_cold *cold, const double *units, double *slope) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const double nu = cold->root.nu, pushed = HYBRID_RESTORATION_PUSHED * nu;
    const double size = sqrt(square(plan->m, at->c));
    int flat = 1;
    hybrid_pull(plan, at->A, at->c, slope);
    for (int i = 0; i < plan->n; i++) {
        double upper = form->has_upper[i] ? 1.0 / at->above[i] : 0.0;
        double lower = form->has_lower[i] ? 1.0 / at->below[i] : 0.0;
        double least = HYBRID_RESTORATION_FLAT * sqrt(units[i]) * size;
        if (!(least > pushed)) least = pushed;
        cold->force[i] = nu * (upper - lower);
        slope[i] += cold->force[i];
        flat &= fabs(slope[i]) <= least;
    }
    return flat;
}

/* The squared norms of now, and of before where those were larger by far. */
static double renew_units(hybrid_cold *cold, double *units) {
    const hybrid_root *root = &cold->root;
    double largest = 0.0;
    measure_units(cold->plan, &cold->at->of, root->cautious, units);
    for (int i = 0; i < cold->plan->n; i++) {
        double old = HYBRID_RESTORATION_FORGET * root->units[i];
        if (units[i] < old) units[i] = old;
        if (units[i] > largest) largest = units[i];
    }
    return largest > HYBRID_FORM_TINY ? largest : HYBRID_FORM_TINY;
}

int hybrid_root_step(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    hybrid_root *root = &cold->root;
    double *units = cold->root_units, *slope = cold->root_slope, *D = cold->root_D;
    double *dw = cold->direction.dw, *step = cold->other.dw;
    double damping = root->damping, growth = HYBRID_RESTORATION_GROWTH;
    double least_unit = HYBRID_RESTORATION_UNIT * renew_units(cold, units);
    double alpha = 0.0, gain = 0.0, gained = 0.0, value = value_of(cold, cold->at);
    double reach = 1.0 + hybrid_largest(plan->n, at->w);
    int curved = root->curved;
    if (is_flat(cold, units, slope)) return closer(cold, units);
    if (curved && hybrid_curvature(&cold->form, at, at->c, cold->W)) return HYBRID_UNDEFINED;
    hybrid_stiffness(form, at, root->z_lower, root->z_upper, D);
    for (;; growth *= HYBRID_RESTORATION_FASTER) {
        int found;
        for (int i = 0; i < plan->n; i++) {
            double unit = units[i] > least_unit ? units[i] : least_unit;
            cold->D[i] = D[i] + damping * unit;
        }
        found = hybrid_factor(plan, curved ? cold->W : 0, cold->D, 0.0, at->A, 1.0, 0,
                              &cold->kernel);
        form->answer->factors++;
        /* A doubtful pivot can only spoil a step, and what a step gains is looked at. */
        if (found == 3 && cold->kernel.inertia.negative == plan->m) found = 0;
        if (found && curved) { /* once more, without the curvature */
            curved = 0;
            growth /= HYBRID_RESTORATION_FASTER;
            continue;
        }
        if (!found) {
            if (hybrid_solve(plan, cold->force, at->c, &cold->kernel, dw, cold->direction.dy)) {
                form->answer->doubts++;
                return HYBRID_DOUBT;
            }
            alpha = share(form, at, dw);
            for (int i = 0; i < plan->n; i++) step[i] = alpha * dw[i];
            if (hybrid_largest(plan->n, step) <= HYBRID_RESTORATION_STILL * reach)
                return closer(cold, units);
            for (int i = 0; i < plan->n; i++) cold->trial->of.w[i] = at->w[i] + step[i];
            if (!hybrid_visit_problem(cold, cold->trial)) {
                gain = expected(cold, curved ? cold->W : 0, D, slope, step);
                gained = value - value_of(cold, cold->trial);
                if (gained > HYBRID_RESTORATION_GAINED * gain) break;
            }
        }
        if (damping < HYBRID_RESTORATION_REFUSED) damping = HYBRID_RESTORATION_REFUSED;
        damping *= growth;
        if (damping > HYBRID_RESTORATION_LARGEST_DAMPING) return closer(cold, units);
    }
    if (gained / gain > HYBRID_RESTORATION_GOOD && alpha > HYBRID_RESTORATION_LONG) {
        damping *= HYBRID_RESTORATION_LESS;
        if (damping < HYBRID_RESTORATION_LEAST_DAMPING) damping = HYBRID_RESTORATION_LEAST_DAMPING;
    } else if (gained / gain < HYBRID_RESTORATION_BAD) {
        damping *= HYBRID_RESTORATION_MORE;
    }
    return take(cold, alpha, damping, units);
}
