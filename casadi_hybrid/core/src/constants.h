/* The constants of the core: of several files, then by the folder that uses them.
 *
 * The comment at each says what it is and, in brackets, where its value is from:
 *
 *     WB    Waechter and Biegler, Math. Program. 106, 2006, by section or equation, with their
 *           symbol; in quotes the option of IPOPT
 *     NW    Nocedal and Wright, Numerical Optimization, 2nd ed., 2006
 *     CGT   Conn, Gould and Toint, Trust-Region Methods, 2000
 *     LM    the method of Levenberg and Marquardt: Madsen, Nielsen and Tingleff, Methods for
 *           Non-Linear Least Squares Problems, 2nd ed., 2004; More 1978: its implementation
 *     FX    Fletcher and Xu, IMA J. Numer. Anal. 7, 1987
 *     C     the watchdog of Chamberlain, Powell, Lemarechal and Pedersen, Math. Program. Study 16,
 *           1982
 *     u     the rounding of doubles, u = 2^-52 = 2.2e-16, and their range
 *     M     chosen by measurement
 *
 * Without a unit a number is in those of the standard form, whose scales make no derivative larger
 * than 100 at the start. |v| is the largest |entry| of a vector, |v|_1 and |v|_2 its norms,
 * theta = |c|_1, phi the barrier function, nu the barrier parameter (their mu), E_nu the optimality
 * error, sigma and epsilon the shifts of the KKT matrix (their delta_w, delta_c), and the ratio of
 * a step that of its actual to its predicted decrease. */
#ifndef HYBRID_CONSTANTS_H
#define HYBRID_CONSTANTS_H

/* --- Several files ---------------------------------------------------------------------------- */

/* Largest |c_i| of a point that counts as feasible; so near a bound, relative to max(1, |x|), x is
 * on it [M] */
#define HYBRID_PROGRESS_FEASIBLE 1e-6
/* Steps without progress after which a restoration begins, far from feasibility, or else a run,
 * the elastic problem, or the search for the least |c|_2, ends; most steps from a stationary |c|_1
 * to a stationary |c|_2, beyond RAY_TEST_FAR, and without second derivatives [M] */
#define HYBRID_PROGRESS_STEPS 50
/* Short steps in a row after which a restoration is due, where theta has not fallen, and
 * restorations without progress after which a run ends [M] */
#define HYBRID_PROGRESS_ROUNDS 5
/* What has fallen below this part has become smaller: theta, |c|_2 and the error in the progress
 * tests, theta by short steps, by a second-order correction, and by a restoration, kappa_resto [WB
 * 3.3, "required_infeasibility_reduction"], the error by a step accepted by slopes; f off its
 * tangent that has not is noise */
#define HYBRID_PROGRESS_LEFT 0.9
/* How far constraints without multipliers are moved to have some, relative to max(1, |bound|):
 * about 500 u, and multiplier times distance is 1e-7 there [M] */
#define HYBRID_PROGRESS_PERTURBATION 1e-13
/* kappa_epsilon: nu falls once E_nu <= kappa_epsilon nu [WB eq. 7, "barrier_tol_factor"] */
#define HYBRID_BARRIER_KAPPA_EPSILON 10.0
/* tau_min: least part of the way to a bound that a step may take [WB eq. 8, "tau_min"] */
#define HYBRID_BARRIER_TAU_LEAST 0.99
/* theta_max = this max(1, theta at the start) [WB eq. 21, "theta_max_fact"] */
#define HYBRID_FILTER_MOST 1e4
/* rho of the elastic problem [WB 3.3, "resto_penalty_parameter"] */
#define HYBRID_ELASTIC_PENALTY 1000.0
/* Most steps of SQP, on the active set of an iterate, and back to c = 0 from points of a ray [M] */
#define HYBRID_SQP_STEPS 8
/* g_max: largest |entry| of a scaled gradient [WB 3.8, "nlp_scaling_max_gradient"] */
#define HYBRID_FORM_SCALE_GOAL 100.0
/* How exactly a bound, or a distance from it, is known, relative to max(1, |bound|): 4 u [u] */
#define HYBRID_FORM_ROOM 8.881784197001252e-16
/* Stands for zero where something is divided by it [u] */
#define HYBRID_FORM_TINY 1e-300
/* Largest relative slope at which the violation counts as stationary [M] */
#define HYBRID_CERTIFICATE_STATIONARY_VIOLATION 1e-5
/* Largest violation that may be rounding, as where x is large, and noise of f, relative to
 * |f| or its change since the start [M] */
#define HYBRID_ROUNDING_CAP 0.01
/* Rounding of a sum, relative to the sizes of its terms: 100 u [M] */
#define HYBRID_RESIDUALS_ROUNDING 2.220446049250313e-14
/* nu that goes with the multipliers of a solution: see engine/plan.py [M] */
#define HYBRID_WARM_NU 1e-6
/* nu of a start from x0 alone ["mu_init"] */
#define HYBRID_ITERATE_NU_START 0.1
/* delta_w^0: the first sigma [WB 3.1, "first_hessian_perturbation"] */
#define HYBRID_INERTIA_FIRST 1e-4
/* Multipliers beyond this are implausible: those of a new start are zero then [WB 3.6,
 * "constr_mult_init_max"]. In units of |grad f|: terms of grad L explain no more rounding and leave
 * theirs, smaller multipliers of a solution are looked for, and a point may be degenerate */
#define HYBRID_INERTIA_IMPLAUSIBLE 1000.0
/* delta_c: epsilon where rows may depend on each other [WB 3.1, "jacobian_regularization_value"] */
#define HYBRID_INERTIA_EPSILON 1e-8
/* Curvature up to this, relative to max(1, |W|), may be none, and below minus that it is negative;
 * so much of the Hessian of f is left in the elastic problem, where rows have no curvature [M] */
#define HYBRID_FLAT 1e-8
/* A step cut below this part of its length is short: the noise of f shows by such ones [M] */
#define HYBRID_STEP_SHORT 0.05
/* What is rounding of the error, theta, |c|, a violation, a pivot of the equilibrated K, a step
 * relative to 1 + |w|, or a cosine, as between c and a column of A: steps gain nothing more [M] */
#define HYBRID_EXACT 1e-11
/* Rounding of f, phi, |c|, a slope, a step or nu, relative to it: 10 u [WB 3.9, CGT 17.4] */
#define HYBRID_ROUNDED 2.220446049250313e-15

/* --- problem ---------------------------------------------------------------------------------- */

/* Least scale of f or of a row [WB 3.8, "nlp_scaling_min_value"] */
#define HYBRID_FORM_LEAST_SCALE 1e-8
/* Most that a bound is moved by relaxation, in units of the tolerance of the violation [M] */
#define HYBRID_FORM_WIDEST 0.5
/* Distance from the bounds of a start where no function is defined on them, and, relative to
 * theta <= 1, where the search for the least |c|_2 begins; its first nu relative to nu theta [M] */
#define HYBRID_FORM_OFF 0.01
/* Most secant pairs [M] */
#define HYBRID_QUASI_NEWTON_MEMORY 20
/* Pairs with |r's| below this part of |r||s| are left out [NW eq. 6.26] */
#define HYBRID_QUASI_NEWTON_SKIPPED 1e-8
/* Least step of a pair, relative to 1 + |x|, with first derivatives by finite differences; with
 * exact ones: EXACT [M] */
#define HYBRID_QUASI_NEWTON_DIFFERENCED 1e-6
/* Rounding below this is less than any tolerance notices [M] */
#define HYBRID_ROUNDING_TINY 1e-9
/* s_max: mean multiplier from which the error is scaled [WB eq. 6, "s_max"] */
#define HYBRID_ITERATE_S_MAX 100.0
/* |x| from which the ray test is made, and the ray of iterates followed [M] */
#define HYBRID_RAY_TEST_LARGE 1e3
/* |x| from which a feasible point with f < 0 proves that f is unbounded below [M] */
#define HYBRID_RAY_TEST_FAR 1e10
/* |x| to which the ray of such a point is followed ["diverging_iterates_tol"] */
#define HYBRID_RAY_TEST_END 1e20
/* Least -grad f'x / |f| of an f that falls in proportion to x [M] */
#define HYBRID_RAY_TEST_SLOPE 0.01

/* --- primal_dual and globalization ------------------------------------------------------------ */

/* Eigenvalues of the part of low rank up to this, relative to the largest, are zero [u] */
#define HYBRID_EIGENVALUE_ROUNDING 1e-14
/* kappa_Sigma: largest factor between z and nu/(distance) [WB eq. 16, "kappa_sigma"] */
#define HYBRID_ITERATE_SPREAD 1e10
/* kappa_d: linear damping of variables with one bound, relative to nu [WB 3.7, "kappa_d"] */
#define HYBRID_LINE_SEARCH_DAMPING 1e-5
/* gamma: decrease of theta or of phi, relative to theta [WB eq. 18, "gamma_theta"] */
#define HYBRID_LINE_SEARCH_GAMMA 1e-5
/* s_theta, its exponent of theta [WB eq. 19, "s_theta"] */
#define HYBRID_LINE_SEARCH_S_THETA 1.1
/* s_phi, its exponent of the slope of phi [WB eq. 19, "s_phi"] */
#define HYBRID_LINE_SEARCH_S_PHI 2.3
/* gamma_alpha: shortest step, relative to the least useful one [WB 2.3, "alpha_min_frac"] */
#define HYBRID_LINE_SEARCH_SHORTEST 0.05
/* theta_min = this max(1, theta at the start) [WB 2.3, "theta_min_fact"] */
#define HYBRID_FILTER_LEAST 1e-4
/* eta_phi: least decrease of phi, relative to alpha times its slope [WB eq. 20, "eta_phi"] */
#define HYBRID_FILTER_ETA_PHI 1e-4
/* f has made progress, or is lower of two, where it is less by this part of |f| [M] */
#define HYBRID_PROGRESS_F 1e-3

/* --- feasibility ------------------------------------------------------------------------------ */

/* A row counts as violated from this part of the largest violation; its multiplier may be off by
 * this part of the others' [M] */
#define HYBRID_CERTIFICATE_BROKEN 0.01
/* Part of the violation that a move onto a bound may remove, if the bound blocks [M] */
#define HYBRID_CERTIFICATE_NOTHING 0.1

/* Factor of LM's damping after the first step that is refused, or whose ratio is small, and of that
 * factor after each further one [LM 3.2] */
#define HYBRID_RESTORATION_GROWTH 2.0
/* Factor by which it falls, and nu at the end of its path [M] */
#define HYBRID_RESTORATION_LESS 0.1

/* Least ratio of a step that is taken [More 1978] */
#define HYBRID_RESTORATION_ACCEPT 1e-4
/* Ratios below which the damping grows, and above which it falls [More 1978] */
#define HYBRID_RESTORATION_POOR 0.25
#define HYBRID_RESTORATION_GOOD 0.75
/* First damping, relative to the squared units [LM 3.2, tau] */
#define HYBRID_RESTORATION_DAMPING 1e-3
/* The least and the largest damping [u] */
#define HYBRID_RESTORATION_LEAST_DAMPING 1e-14
#define HYBRID_RESTORATION_MOST_DAMPING 1e100
/* Least unit: the squared norm of a column of A, relative to the largest [u] */
#define HYBRID_RESTORATION_LEAST_UNIT 1e-14
/* Gauss-Newton steps go on while |c|_2^2 falls below this part [FX] */
#define HYBRID_RESTORATION_FAST 0.8
/* Steps of a run from multipliers after which it is given up where it restores feasibility [M] */
#define HYBRID_RESTORATION_NEAR 100

/* --- active_set ------------------------------------------------------------------------------- */

/* (epsilon, shift) of K, the shift relative to max(1, |W|): none, for dependent rows of the set,
 * for directions without curvature, and for negative curvature [M] */
#define HYBRID_SQP_REGULARIZATIONS \
    {{0.0, 0.0}, {1e-10, 0.0}, {1e-10, 1e-8}, {1e-10, 1e-4}, {1e-10, 0.01}}
/* The same where equations are perturbed: epsilon dy would exceed what is left of the rows [M] */
#define HYBRID_SQP_PERTURBED {{0.0, 0.0}, {0.0, 1e-8}, {1e-10, 0.0}, {1e-10, 1e-8}}
/* Most changes of the set, one by one, by the parametric homotopy [M] */
#define HYBRID_SQP_HOMOTOPY 60
/* Least part of the decrease predicted along negative curvature that a step has to gain [M] */
#define HYBRID_SQP_CURVATURE_GAIN 0.25
/* Steps in a row that may leave more than half of the error: of 92 solves that ended at the
 * first one, 16 found a solution with one, 8 with two, 1 with three [form: C; M] */
#define HYBRID_SQP_WATCHDOG 2
/* A chord step is tried where so many times error^2 / (error before) <= tol: ten times what is
 * expected, since a failed step costs more than one saved [M] */
#define HYBRID_SQP_CHORD 20.0

/* --- barrier ---------------------------------------------------------------------------------- */

/* Parts of the distance from the bounds, until all functions are defined there [M] */
#define HYBRID_BARRIER_SHARES {1.0, 0.01, 1e-4}
/* nu of a warm start with E_0 > 1: a smaller one holds iterates at edges [M] */
#define HYBRID_BARRIER_NU_FAR_OFF 1e-3
/* Indefinite Hessians in a row after which a warm start goes on with the nu of one from x0 [M] */
#define HYBRID_BARRIER_SADDLE 8
/* kappa_mu: next nu <= kappa_mu nu [WB eq. 7, "mu_linear_decrease_factor"] */
#define HYBRID_BARRIER_KAPPA_NU 0.2
/* theta_mu: next nu <= nu^theta_mu [WB eq. 7, "mu_superlinear_decrease_power"] */
#define HYBRID_BARRIER_THETA_NU 1.5
/* delta_w^max: the largest sigma [WB 3.1, "max_hessian_perturbation"] */
#define HYBRID_INERTIA_LARGEST 1e40
/* The largest far from feasibility, where a restoration does better, and near it, where the line
 * search finds no step [M] */
#define HYBRID_INERTIA_FAR_LARGEST 1e12
/* kappa_w^+ before any sigma has served, and where the line search finds no step [WB 3.1,
 * "perturb_inc_fact_first"] */
#define HYBRID_INERTIA_FIRST_GROWTH 100.0
/* kappa_w^+ afterwards [WB 3.1, "perturb_inc_fact"] */
#define HYBRID_INERTIA_GROWTH 8.0
/* 1 / kappa_w^-: what the last sigma is divided by [WB 3.1, "perturb_dec_fact"] */
#define HYBRID_INERTIA_DECAY 3.0
/* How often in a row zero fails before it is left out, and a third of the last sigma serves at once
 * before zero is tried again [M] */
#define HYBRID_INERTIA_TURNS 2

/* --- driver ----------------------------------------------------------------------------------- */

/* |x| of the points to which a ray is followed [M] */
#define HYBRID_RAY_STEP_LENGTHS {1e7, 1e9, 1e11}

#endif
