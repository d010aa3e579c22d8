/* The constants of the core, by the file that uses them.
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

/* Largest |c_i| of a point that counts as feasible [M] */
#define HYBRID_PROGRESS_FEASIBLE 1e-6
/* Steps without progress after which a restoration begins, far from feasibility; most steps from a
 * stationary |c|_1 to a stationary |c|_2; iterates beyond RAY_TEST_FAR after which a run has
 * diverged; steps from one without the filter that led nowhere until the next [M] */
#define HYBRID_PROGRESS_SLOW_STEPS 20
/* Part below which the violation has to fall for progress [M] */
#define HYBRID_PROGRESS_THETA 0.99
/* Steps without progress after which a run, or the search for the least |c|_2, ends [M] */
#define HYBRID_PROGRESS_STEPS 50
/* How far constraints without multipliers are moved to have some, relative to max(1, |bound|):
 * about 500 u, and multiplier times distance is 1e-7 there [M] */
#define HYBRID_PROGRESS_PERTURBATION 1e-13
/* kappa_epsilon: nu falls once E_nu <= kappa_epsilon nu [WB eq. 7, "barrier_tol_factor"] */
#define HYBRID_BARRIER_KAPPA_EPSILON 10.0
/* tau_min: least part of the way to a bound that a step may take [WB eq. 8, "tau_min"] */
#define HYBRID_BARRIER_TAU_LEAST 0.99
/* nu of a warm start whose multipliers are far off: a smaller one holds iterates at edges [M] */
#define HYBRID_BARRIER_NU_FAR_OFF 1e-3
/* theta_max = this max(1, theta at the start) [WB eq. 21, "theta_max_fact"] */
#define HYBRID_FILTER_MOST 1e4
/* rho of the elastic problem [WB 3.3, "resto_penalty_parameter"] */
#define HYBRID_ELASTIC_PENALTY 1000.0
/* eta: least ratio of a step that is taken [NW alg. 4.1, More 1978] */
#define HYBRID_TRUST_REGION_ACCEPT 1e-4
/* Ratio below which the radius shrinks, or the damping grows [NW alg. 4.1, More 1978] */
#define HYBRID_TRUST_REGION_SHRINK_BELOW 0.25
/* Ratio from which the radius grows or the damping falls, and below which a step is corrected
 * [NW alg. 4.1, More 1978] */
#define HYBRID_TRUST_REGION_GROW_ABOVE 0.75
/* Composite steps in which |c|_2 has to halve [M] */
#define HYBRID_POLICY_PATIENCE 6
/* Most steps of SQP, and on the active set of an iterate [M] */
#define HYBRID_SQP_STEPS 8
/* g_max: largest |entry| of a scaled gradient [WB 3.8, "nlp_scaling_max_gradient"] */
#define HYBRID_FORM_SCALE_GOAL 100.0
/* How exactly a bound, or a distance from it, is known, relative to max(1, |bound|): 4 u [u] */
#define HYBRID_FORM_ROOM 8.881784197001252e-16
/* Stands for zero where something is divided by it [u] */
#define HYBRID_FORM_TINY 1e-300
/* Largest relative slope at which the violation counts as stationary [M] */
#define HYBRID_CERTIFICATE_STATIONARY_VIOLATION 1e-5
/* Largest violation that may be rounding, as where x is large [M] */
#define HYBRID_ROUNDING_CAP 0.01
/* Multipliers beyond this make rounding of a distance matter: 1e8 u is 2e-8 [u] */
#define HYBRID_ROUNDING_HUGE 1e8
/* Rounding of a sum, relative to the sizes of its terms: 100 u [M] */
#define HYBRID_RESIDUALS_ROUNDING 2.220446049250313e-14
/* Most corrections of a solution by its residual [M] */
#define HYBRID_LINEAR_REFINEMENTS 3
/* nu of a start from x0 alone ["mu_init"] */
#define HYBRID_ITERATE_NU_START 0.1
/* kappa_w^+ before any sigma has served [WB 3.1, "perturb_inc_fact_first"] */
#define HYBRID_INERTIA_FIRST_GROWTH 100.0
/* delta_w^0: the first sigma [WB 3.1, "first_hessian_perturbation"] */
#define HYBRID_INERTIA_FIRST 1e-4
/* Multipliers of a new start are no larger, else zero [WB 3.6, "constr_mult_init_max"] */
#define HYBRID_INERTIA_IMPLAUSIBLE 1000.0
/* delta_c: epsilon where rows may depend on each other, in the inertia correction times
 * nu^kappa_c [WB 3.1, "jacobian_regularization_value"] */
#define HYBRID_INERTIA_EPSILON 1e-8
/* A radius that is none, a slope whose powers are finite, and the largest damping [u] */
#define HYBRID_UNLIMITED 1e100
/* Curvature up to this, relative to max(1, |W|), may be none, and below minus that it is negative
 * [M] */
#define HYBRID_FLAT 1e-8
/* Eigenvalues this close, relative to the largest, are equal, share a span, or are zero; the same
 * of A'A for the squared norm of a column, and for the damping relative to that [u] */
#define HYBRID_EIGENVALUE_ROUNDING 1e-14
/* What is rounding of the error, theta, |c|, a violation or a singular value of A relative to
 * the largest, a step relative to 1 + |w|, or a cosine, as between c and a column of A [M] */
#define HYBRID_EXACT 1e-11
/* Rounding of f, phi, |c|, a slope, a step or a radius, relative to it: 10 u [WB 3.9, CGT 17.4] */
#define HYBRID_ROUNDED 2.220446049250313e-15

/* --- problem/scaling.c: the start of the standard form ---------------------------------------- */

/* Largest |entry| of a row that composite steps leave unscaled [M] */
#define HYBRID_FORM_STEEP 10.0
/* Least scale of f or of a row [WB 3.8, "nlp_scaling_min_value"] */
#define HYBRID_FORM_LEAST_SCALE 1e-8
/* Most that a bound is moved by relaxation, in units of the tolerance of the violation [M] */
#define HYBRID_FORM_WIDEST 0.5
/* Distance from the bounds of a start where no function is defined on them, and, relative to
 * theta <= 1, where the search for the least |c|_2 begins [M] */
#define HYBRID_FORM_OFF 0.01
/* Most of that, relative to the distance between the bounds [M] */
#define HYBRID_FORM_PART 0.25

/* --- problem/quasi_newton.c: the Hessian from first derivatives ------------------------------- */

/* Most secant pairs [M] */
#define HYBRID_QUASI_NEWTON_MEMORY 20
/* Pairs with |r's| below this part of |r||s| are left out [NW eq. 6.26] */
#define HYBRID_QUASI_NEWTON_SKIPPED 1e-8
/* Least step of a pair, relative to 1 + |x|, with exact first derivatives [M] */
#define HYBRID_QUASI_NEWTON_LEAST 1e-11
/* The same with first derivatives by finite differences [M] */
#define HYBRID_QUASI_NEWTON_LEAST_DIFFERENCED 1e-6

/* --- problem/residuals.c and problem/rounding.c: residuals, and what of them is rounding ------ */

/* s_max: mean multiplier from which the error is scaled, in problem.h [WB eq. 6, "s_max"] */
#define HYBRID_ITERATE_S_MAX 100.0
/* How many roundings a term has that is a product [M] */
#define HYBRID_ROUNDING_PRODUCTS 4.0
/* How many any other term has [M] */
#define HYBRID_ROUNDING_OTHERS 2.0
/* Rounding below this is less than any tolerance notices [M] */
#define HYBRID_ROUNDING_TINY 1e-9
/* Terms of grad L explain its rounding up to so many times |grad f| [M] */
#define HYBRID_RESIDUALS_PULL 100.0
/* Multipliers beyond this times max(1, |grad f|) are huge: smaller ones are looked for [M] */
#define HYBRID_RESIDUALS_HUGE_MULTIPLIER 1e4

/* --- problem/ray_test.c: iterates that run away ----------------------------------------------- */

/* |x| from which the test is made [M] */
#define HYBRID_RAY_TEST_LARGE 1e5
/* |x| from which a feasible point with f < 0 proves that f is unbounded below [M] */
#define HYBRID_RAY_TEST_FAR 1e10
/* |x| from which a run has diverged in any case [M] */
#define HYBRID_RAY_TEST_LOST 1e20
/* Least -grad f'x / |f| of an f that falls in proportion to x [M] */
#define HYBRID_RAY_TEST_SLOPE 0.01
/* Least growth of |x| from iterate to iterate of a point that is no solution [M] */
#define HYBRID_RAY_TEST_FURTHER 2.0
/* The same relative to the terms of a row, where x is large [M] */
#define HYBRID_ROUNDING_FAR 1e-12

/* --- primal_dual/kkt_system.c: least-squares multipliers, rank of A, undefined Hessians ------- */

/* A pivot of QR below this times n u times the largest counts as zero [u] */
#define HYBRID_INERTIA_RANK 10.0
/* Most steps of a run with the identity for a Hessian that is not defined [M] */
#define HYBRID_BARRIER_UNDEFINED 10

/* --- primal_dual/low_rank.c and primal_dual/bounds.c ------------------------------------------ */

/* kappa_Sigma: largest factor between z and nu/(distance) [WB eq. 16, "kappa_sigma"] */
#define HYBRID_ITERATE_SPREAD 1e10

/* --- globalization/barrier_function.c --------------------------------------------------------- */

/* kappa_d: linear damping of variables with one bound, relative to nu [WB 3.7, "kappa_d"] */
#define HYBRID_LINE_SEARCH_DAMPING 1e-5
/* So many times FORM_ROOM out, a point is outside its bound [u] */
#define HYBRID_FORM_BEYOND 2.0

/* --- globalization/filter.c ------------------------------------------------------------------- */

/* gamma_theta: decrease of theta, relative to theta [WB eq. 18, "gamma_theta"] */
#define HYBRID_LINE_SEARCH_GAMMA_THETA 1e-5
/* gamma_phi: decrease of phi, relative to theta [WB eq. 18; value of "gamma_phi"] */
#define HYBRID_LINE_SEARCH_GAMMA_PHI 1e-8
/* s_theta, its exponent of theta [WB eq. 19, "s_theta"] */
#define HYBRID_LINE_SEARCH_S_THETA 1.1
/* s_phi, its exponent of the slope of phi [WB eq. 19, "s_phi"] */
#define HYBRID_LINE_SEARCH_S_PHI 2.3
/* eta_phi: decrease of phi, relative to alpha times its slope [WB eq. 20; value of "eta_phi"] */
#define HYBRID_LINE_SEARCH_ETA 1e-8
/* gamma_alpha: shortest step, relative to the least useful one [WB 2.3, "alpha_min_frac"] */
#define HYBRID_LINE_SEARCH_SHORTEST 0.05
/* The least useful step is no less than this [u] */
#define HYBRID_LINE_SEARCH_LEAST 1e-14
/* theta_min = this max(1, theta at the start) [WB 2.3, "theta_min_fact"] */
#define HYBRID_FILTER_LEAST 1e-4
/* kappa_resto: part of theta left by a restoration [WB 3.3, "required_infeasibility_reduction"] */
#define HYBRID_ELASTIC_REDUCTION 0.9

/* --- globalization/progress.c: what counts as progress since the reference -------------------- */

/* f has fallen by this part of |f| [M] */
#define HYBRID_PROGRESS_F 1e-3
/* The error has fallen below this part [M] */
#define HYBRID_PROGRESS_ERROR 0.9
/* So far below a saddle, relative to |f|, f is on its way from there [M] */
#define HYBRID_PROGRESS_BELOW 1e-9

/* --- feasibility/certificate.c: the slope of the violation ------------------------------------ */

/* A row counts as violated from this part of the largest violation; its multiplier may be off by
 * this part of the others' [M] */
#define HYBRID_CERTIFICATE_BROKEN 0.01
/* Part of the violation that a move onto a bound may remove, if the bound blocks [M] */
#define HYBRID_CERTIFICATE_NOTHING 0.1
/* So near a bound, relative to max(1, |x|), x is on it [M] */
#define HYBRID_CERTIFICATE_ON 1e-6

/* --- feasibility/least_squares.c: damped Gauss-Newton steps for the least |c|_2 --------------- */

/* Factor of the damping after the first step that is refused, or whose ratio is small, and of that
 * factor after each further one [LM 3.2] */
#define HYBRID_RESTORATION_GROWTH 2.0
/* Factor by which it falls, and nu at the end of its path [M] */
#define HYBRID_RESTORATION_LESS 0.1

/* --- feasibility/least_squares_ends.c: how that begins and ends ------------------------------- */

/* The first nu: this part of nu theta, theta <= 1 [M] */
#define HYBRID_RESTORATION_NU_SHARE 0.01
/* First damping, relative to the squared units [LM 3.2, tau] */
#define HYBRID_RESTORATION_DAMPING 1e-3
/* Gauss-Newton steps go on while |c|_2^2 falls below this part [FX] */
#define HYBRID_RESTORATION_FAST 0.8
/* Steps of a run from multipliers after which it is given up where it restores feasibility [M] */
#define HYBRID_RESTORATION_NEAR 100

/* --- active_set/quadratic_program.c: the quadratic model and its working set ------------------ */

/* (epsilon, shift) of K, the shift relative to max(1, |W|): none, for dependent rows of the set,
 * for directions without curvature, and for negative curvature [M] */
#define HYBRID_SQP_REGULARIZATIONS \
    {{0.0, 0.0}, {1e-10, 0.0}, {1e-10, 1e-8}, {1e-10, 1e-4}, {1e-10, 0.01}}
/* The same where equations are perturbed: epsilon dy would exceed what is left of the rows [M] */
#define HYBRID_CROSSOVER_PRECISE {{0.0, 0.0}, {0.0, 1e-8}, {1e-10, 0.0}, {1e-10, 1e-8}}
/* Most changes of the set, one by one, by the parametric homotopy [M] */
#define HYBRID_SQP_HOMOTOPY 60

/* --- active_set/sqp.c: full steps of SQP ------------------------------------------------------ */

/* Steps in a row that may leave more than half of the error: of 92 solves that ended at the
 * first one, 16 found a solution with one, 8 with two, 1 with three [form: C; M] */
#define HYBRID_SQP_WATCHDOG 2
/* A chord step is tried where so many times error^2 / (error before) <= tol: ten times what is
 * expected, since a failed step costs more than one saved [M] */
#define HYBRID_SQP_CHORD 20.0

/* --- active_set/crossover.c: steps on the active set of an iterate ---------------------------- */

/* Largest nu at which they are tried [M] */
#define HYBRID_CROSSOVER_BELOW 1e-3
/* Part of the error that each may leave [M] */
#define HYBRID_CROSSOVER_BETTER 0.1

/* --- trust_region/subproblem.c: the subproblem and its radius --------------------------------- */

/* Radius after a step that is refused, relative to its length [NW alg. 4.1] */
#define HYBRID_TRUST_REGION_REFUSED 0.25
/* Factor of the radius after a good step [M] */
#define HYBRID_TRUST_REGION_GROWTH 3.0

/* --- trust_region/composite_step.c: the composite step and its penalty ------------------------ */

/* Part of the radius that the normal step may take [NW 18.5] */
#define HYBRID_COMPOSITE_NORMAL_SHARE 0.8
/* 1 - rho: part of the gain in penalty |c|_2 that f may use up [NW eq. 18.36] */
#define HYBRID_COMPOSITE_SHARE 0.7
/* Penalty over the least that serves [M] */
#define HYBRID_COMPOSITE_RAISE 1.5
/* A Newton step is tried up to so many radii [M] */
#define HYBRID_COMPOSITE_NONMONOTONE 10.0

/* --- trust_region/escape.c: points beyond a least violation ----------------------------------- */

/* Distances of the scan, relative to max(1, |w|_2) [M] */
#define HYBRID_VIOLATION_SCAN_DISTANCES \
    {1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0}

/* --- barrier/start.c: the first iterate ------------------------------------------------------- */

/* Parts of the distance from the bounds, until all functions are defined there [M] */
#define HYBRID_BARRIER_SHARES {1.0, 0.01, 1e-4}
/* Error E_0 from which given multipliers are far off [M] */
#define HYBRID_BARRIER_FAR_OFF 1.0
/* The last shift of a warm start: a larger one slows variables without curvature down [M] */
#define HYBRID_BARRIER_SHIFT_NEARBY 1e-10

/* --- barrier/parameter.c: the barrier parameter ----------------------------------------------- */

/* kappa_mu: next nu <= kappa_mu nu [WB eq. 7, "mu_linear_decrease_factor"] */
#define HYBRID_BARRIER_KAPPA_NU 0.2
/* theta_mu: next nu <= nu^theta_mu [WB eq. 7, "mu_superlinear_decrease_power"] */
#define HYBRID_BARRIER_THETA_NU 1.5
/* The least nu whatever the tolerances [M] */
#define HYBRID_BARRIER_NU_LEAST 1e-15
/* Factor of the floor of nu where the unscaled residuals are not met [M] */
#define HYBRID_BARRIER_LOWER 0.1
/* So many times the floor, nu is on it [u] */
#define HYBRID_BARRIER_AT_NU_MIN 1.001
/* Least E_nu / nu at which nu is held while the Hessian is indefinite [M] */
#define HYBRID_BARRIER_SADDLE_SHARE 0.1
/* Indefinite Hessians in a row after which a warm start goes on with the nu of one from x0 [M] */
#define HYBRID_BARRIER_SADDLE 8

/* --- barrier/inertia_correction.c: sigma and epsilon ------------------------------------------ */

/* delta_w^min: the least one [WB 3.1, "min_hessian_perturbation"] */
#define HYBRID_INERTIA_LEAST 1e-20
/* delta_w^max: the largest one [WB 3.1, "max_hessian_perturbation"] */
#define HYBRID_INERTIA_LARGEST 1e40
/* The largest far from feasibility, where a restoration does better, and near it, where the line
 * search finds no step [M] */
#define HYBRID_INERTIA_FAR_LARGEST 1e12
/* kappa_w^+ afterwards [WB 3.1, "perturb_inc_fact"] */
#define HYBRID_INERTIA_GROWTH 8.0
/* 1 / kappa_w^-: what the last sigma is divided by [WB 3.1, "perturb_dec_fact"] */
#define HYBRID_INERTIA_DECAY 3.0
/* kappa_c [WB 3.1, "jacobian_regularization_exponent"] */
#define HYBRID_INERTIA_POWER 0.25
/* Singular K in a row after which sigma, or epsilon, is there from the first [M] */
#define HYBRID_INERTIA_OFTEN 3

/* --- barrier/step.c: the Newton step and its line search -------------------------------------- */

/* kappa_soc: part of theta to which each has to bring it [WB 2.4, "kappa_soc"] */
#define HYBRID_STEP_CORRECTED 0.99
/* Tiny steps in a row after which the run ends at the floor of nu [form: WB 3.9; M] */
#define HYBRID_STEP_TINY_STEPS 3
/* A step cut below this part of its length is short [M] */
#define HYBRID_STEP_SHORT 0.05
/* Short steps in a row after which a full one is taken without the filter [form: C; M] */
#define HYBRID_STEP_MAX_SHORT 5
/* Relative length of a step that is rounding under it [M] */
#define HYBRID_STEP_LEAST_STIFF 1e-9
/* What of the Hessian of f is left in that of the elastic problem: too little to matter [M] */
#define HYBRID_ELASTIC_CURVATURE_OF_F 1e-8

/* --- barrier/restoration.c: the restoration --------------------------------------------------- */

/* Floor of the elastic problem's nu [M] */
#define HYBRID_ELASTIC_NU_MIN 1e-12
/* nu at which the violation is nearly stationary, relative to min(1, |c|) [M] */
#define HYBRID_ELASTIC_SMALL 1e-4

/* --- driver/run.c and driver/inspect.c: runs -------------------------------------------------- */

/* Restorations without progress after which it ends [M] */
#define HYBRID_PROGRESS_RESTORATIONS 5
/* A run whose residuals fall below this part in a step is not ended by its own limit [M] */
#define HYBRID_PROGRESS_CONVERGING 0.5
/* |grad L| of multipliers that fit, relative to max(1, |grad f|) [M] */
#define HYBRID_PROGRESS_FITS 0.5

/* --- driver/ray.c and driver/memory.c: the extrapolation along a ray -------------------------- */

/* Steps of iterates that run away before the first one; the next after twice as many [M] */
#define HYBRID_RAY_STEP_AFTER 10
/* |x| from which it is tried, relative to max(1, |x0|) [M] */
#define HYBRID_RAY_STEP_FROM 1000.0
/* |x| of the points it leads to [M] */
#define HYBRID_RAY_STEP_LENGTHS {1e7, 1e9, 1e11}
/* Most Gauss-Newton steps back to c = 0 from each [M] */
#define HYBRID_RAY_STEP_STEPS 8

#endif
