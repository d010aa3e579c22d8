/* The constants of the core, by the folder that owns them. One constant has one meaning.
 *
 * The letters are those of the source, in brackets after each constant:
 *
 *     WB    Waechter and Biegler, Math. Program. 106, 2006, by section or equation; in quotes the
 *           option of IPOPT
 *     NW    Nocedal and Wright, Numerical Optimization, 2nd ed., 2006
 *     CGT   Conn, Gould and Toint, Trust-Region Methods, 2000
 *     LM    Madsen, Nielsen and Tingleff, Methods for Non-Linear Least Squares Problems, 2004
 *     More  More, Lecture Notes in Mathematics 630, 1978
 *     FX    Fletcher and Xu, IMA J. Numer. Anal. 7, 1987
 *     C     the watchdog of Chamberlain et al., Math. Program. Study 16, 1982
 *     u     the rounding of doubles, u = 2^-52 = 2.2e-16, and their range
 *     M     chosen by measurement
 *
 * Numbers without a unit are in those of the standard form. |v| is the largest |entry| of a vector,
 * |v|_1 and |v|_2 are its norms. theta = |c|_1, phi is the barrier function, nu the barrier
 * parameter (mu in WB), E_nu the optimality error. sigma and epsilon are the shifts of the KKT
 * matrix (delta_w, delta_c in WB). The ratio of a step is actual over predicted decrease. */
#ifndef HYBRID_CONSTANTS_H
#define HYBRID_CONSTANTS_H

/* --- Several folders -------------------------------------------------------------------------- */

/* Largest |c_i| of a point that counts as feasible [M] */
#define HYBRID_FEASIBLE_C 1e-6
/* Largest step, relative to 1 + |w|, that is rounding [M] */
#define HYBRID_STEP_ROUNDING 1e-11
/* Replaces a zero divisor [u] */
#define HYBRID_DIVISOR_TINY 1e-300
/* mu_0: nu of a start from x0 alone [WB, "mu_init"] */
#define HYBRID_BARRIER_NU_START 0.1
/* nu of a start from the multipliers of a solution [M] */
#define HYBRID_BARRIER_NU_WARM 1e-6
/* The least nu: 10 u [u] */
#define HYBRID_BARRIER_NU_LEAST 2.220446049250313e-15
/* kappa_epsilon: nu falls once E_nu <= kappa_epsilon nu [WB eq. 7, "barrier_tol_factor"] */
#define HYBRID_BARRIER_KAPPA_EPSILON 10.0
/* tau_min: least part of the way to a bound that a step may take [WB eq. 8, "tau_min"] */
#define HYBRID_BARRIER_TAU_MIN 0.99
/* delta_c: epsilon where rows may be dependent [WB 3.1, "jacobian_regularization_value"] */
#define HYBRID_INERTIA_DELTA_C 1e-8
/* delta_w^max: the largest sigma [WB 3.1, "max_hessian_perturbation"] */
#define HYBRID_INERTIA_DELTA_W_MAX 1e40
/* Largest relative slope of a stationary violation [M] */
#define HYBRID_CERTIFICATE_STATIONARY 1e-5
/* Parts of its length below which a step counts as cut short [M] */
#define HYBRID_LINE_SEARCH_SHORT 0.05

/* --- problem ---------------------------------------------------------------------------------- */

/* g_max: largest |entry| of a scaled gradient [WB 3.8, "nlp_scaling_max_gradient"] */
#define HYBRID_FORM_G_MAX 100.0
/* Least scale of f or of a row [WB 3.8, "nlp_scaling_min_value"] */
#define HYBRID_FORM_SCALE_MIN 1e-8
/* Accuracy of a bound, or of a distance from it, relative to max(1, |bound|): 4 u [u] */
#define HYBRID_FORM_ROOM 8.881784197001252e-16
/* Most that relaxation moves a bound, in units of the tolerance of the violation [M] */
#define HYBRID_FORM_RELAXATION_MAX 0.5
/* Distance from the bounds of a start where no function is defined on them [M] */
#define HYBRID_FORM_START_INSIDE 0.01
/* s_max: mean multiplier from which the error is scaled [WB eq. 6, "s_max"] */
#define HYBRID_ERROR_S_MAX 100.0
/* |lam| in units of |grad f| from which smaller multipliers are looked for [M] */
#define HYBRID_RESIDUALS_HUGE_LAM 1000.0
/* Rounding of a sum, relative to the sizes of its terms: 100 u [M] */
#define HYBRID_RESIDUALS_ROUNDING 2.220446049250313e-14
/* Rounding below this is less than any tolerance notices [M] */
#define HYBRID_ROUNDING_TINY 1e-9
/* Largest violation that rounding may explain, as where x is large [M] */
#define HYBRID_ROUNDING_CAP 0.01
/* Terms of grad L beyond this, in units of |grad f|, explain no rounding [M] */
#define HYBRID_ROUNDING_LAM_MAX 1000.0
/* Most secant pairs [M] */
#define HYBRID_QUASI_NEWTON_PAIRS 20
/* Pairs with |r's| below this part of |r||s| are left out [NW eq. 6.26] */
#define HYBRID_QUASI_NEWTON_SKIPPED 1e-8
/* Least step of a pair, relative to 1 + |x|, with exact first derivatives [M] */
#define HYBRID_QUASI_NEWTON_LEAST_STEP 1e-11
/* The same with first derivatives by finite differences [M] */
#define HYBRID_QUASI_NEWTON_LEAST_DIFFERENCED_STEP 1e-6
/* |x| from which the ray test is made, and the ray of iterates followed [M] */
#define HYBRID_RAY_TEST_LARGE 1e3
/* |x| from which a feasible point with f < 0 proves that f is unbounded below [M] */
#define HYBRID_RAY_TEST_FAR 1e10
/* |x| to which the ray of such a point is followed ["diverging_iterates_tol"] */
#define HYBRID_RAY_TEST_END 1e20
/* Least -grad f'x / |f| of an f that falls in proportion to x [M] */
#define HYBRID_RAY_TEST_SLOPE 0.01
/* Least part of |x| by which an entry, or a row for its slope, moves along the ray [M] */
#define HYBRID_RAY_TEST_MOVED 0.01
/* Largest violation of a point that is large, by rounding of the terms of a row [M] */
#define HYBRID_RAY_TEST_VIOLATION 0.01
/* Steps in a row beyond RAY_TEST_FAR without a proof, after which the iterates diverge [M] */
#define HYBRID_RAY_TEST_STEPS 50

/* --- primal_dual ------------------------------------------------------------------------------ */

/* kappa_Sigma: largest factor between z and nu/(distance) [WB eq. 16, "kappa_sigma"] */
#define HYBRID_BARRIER_KAPPA_SIGMA 1e10
/* Smallest pivot of the equilibrated K that is not rounding [M] */
#define HYBRID_PIVOT_ROUNDING 1e-11
/* Least diagonal entry of R, relative to the first and n, of rows that are independent: 10 u [u] */
#define HYBRID_RANK_ROUNDING 2.220446049250313e-15
/* Eigenvalues of the part of low rank up to this, relative to the largest, are zero [u] */
#define HYBRID_LOW_RANK_ROUNDING 1e-14
/* Most steps of a phase where the Hessian is not defined [M] */
#define HYBRID_HESSIAN_UNDEFINED_STEPS 50

/* --- globalization ---------------------------------------------------------------------------- */

/* kappa_d: linear damping of variables with one bound, relative to nu [WB 3.7, "kappa_d"] */
#define HYBRID_BARRIER_KAPPA_D 1e-5
/* gamma_theta: sufficient decrease of theta, relative to theta [WB eq. 18, "gamma_theta"] */
#define HYBRID_FILTER_GAMMA_THETA 1e-5
/* gamma_phi: sufficient decrease of phi, relative to theta [WB eq. 18, "gamma_phi", 1e-8 there] */
#define HYBRID_FILTER_GAMMA_PHI 1e-5
/* s_theta, s_phi: exponents of the switching condition [WB eq. 19, "s_theta", "s_phi"] */
#define HYBRID_FILTER_S_THETA 1.1
#define HYBRID_FILTER_S_PHI 2.3
/* eta_phi: Armijo's part of alpha grad phi'dw [WB eq. 20, "eta_phi"] */
#define HYBRID_FILTER_ETA_PHI 1e-4
/* gamma_alpha: safety factor of alpha_min [WB eq. 23, "alpha_min_frac"] */
#define HYBRID_FILTER_GAMMA_ALPHA 0.05
/* theta_min, theta_max, both relative to max(1, theta at the start) [WB eqs. 19, 21,
 * "theta_min_fact", "theta_max_fact"] */
#define HYBRID_FILTER_THETA_MIN_FACT 1e-4
#define HYBRID_FILTER_THETA_MAX_FACT 1e4
/* Rounding of phi, relative to |phi|: 10 u [WB 3.9] */
#define HYBRID_FILTER_PHI_ROUNDING 2.220446049250313e-15
/* The least alpha_min: 10 u [u] */
#define HYBRID_FILTER_ALPHA_ROUNDING 2.220446049250313e-15
/* Part of the distance of f from its tangent that is left over a quarter of the step: noise [M] */
#define HYBRID_NOISE_KEPT 0.9
/* The largest noise of f, relative to |f| or its change since the start [M] */
#define HYBRID_NOISE_CAP 0.01
/* kappa_resto: part of theta that a restoration may leave [WB 3.3,
 * "required_infeasibility_reduction"] */
#define HYBRID_RESTORATION_KAPPA_RESTO 0.9

/* --- feasibility ------------------------------------------------------------------------------ */

/* Part of the largest violation that is its rounding [M] */
#define HYBRID_CERTIFICATE_ROUNDING 1e-11
/* Part of the largest violation from which a row counts as violated [M] */
#define HYBRID_CERTIFICATE_VIOLATED 0.01
/* Part by which the multiplier of a violated row may be less than the largest [M] */
#define HYBRID_CERTIFICATE_UNEQUAL 0.01
/* Distance from a bound, relative to max(1, |x|), of an x that is on it [M] */
#define HYBRID_CERTIFICATE_ON_BOUND 1e-6
/* Part of the violation that a move onto a bound may remove, if the bound blocks [M] */
#define HYBRID_CERTIFICATE_BOUND_GAIN 0.1
/* Damping: its first value, relative to the squared units [LM 3.2, tau], and its range [u] */
#define HYBRID_LEAST_SQUARES_DAMPING_FIRST 1e-3
#define HYBRID_LEAST_SQUARES_DAMPING_MIN 1e-14
#define HYBRID_LEAST_SQUARES_DAMPING_MAX 1e100
/* Its factor after a refused step or a poor one, and of that factor after each further one [LM 3.2,
 * nu], and its factor after a good one [M] */
#define HYBRID_LEAST_SQUARES_DAMPING_GROWTH 2.0
#define HYBRID_LEAST_SQUARES_DAMPING_FALL 0.1
/* Ratios of a step: the least that is accepted, and the limits of poor and good ones [More] */
#define HYBRID_LEAST_SQUARES_RATIO_ACCEPT 1e-4
#define HYBRID_LEAST_SQUARES_RATIO_POOR 0.25
#define HYBRID_LEAST_SQUARES_RATIO_GOOD 0.75
/* Least unit: the squared norm of a column of A, relative to the largest [u] */
#define HYBRID_LEAST_SQUARES_UNIT_MIN 1e-14
/* Gauss-Newton steps go on while |c|_2^2 falls below this part [FX] */
#define HYBRID_LEAST_SQUARES_FAST 0.8
/* Its first nu relative to nu theta, the factor of the next, and the last one relative to
 * |c|_2 min(1, |c|_2) [M] */
#define HYBRID_LEAST_SQUARES_NU_START 0.01
#define HYBRID_LEAST_SQUARES_NU_FALL 0.1
#define HYBRID_LEAST_SQUARES_NU_MIN 1e-11
/* Largest |gradient of its function|, relative to nu, of a point that is stationary [M] */
#define HYBRID_LEAST_SQUARES_KAPPA_EPSILON 10.0
/* Least distance of its start from bounds, relative to theta <= 1 [M] */
#define HYBRID_LEAST_SQUARES_PUSH 0.01
/* Largest cosine between c and a column of A that is rounding [M] */
#define HYBRID_LEAST_SQUARES_COSINE 1e-11
/* Largest |c| of a root [M] */
#define HYBRID_LEAST_SQUARES_ROOT 1e-11
/* Steps between two tests of its progress, and most from a stationary |c|_1 to a stationary
 * |c|_2; |c|_2 hardly falls if so much is left then [M] */
#define HYBRID_LEAST_SQUARES_STEPS 50
#define HYBRID_LEAST_SQUARES_SLOW 0.9

/* --- active_set ------------------------------------------------------------------------------- */

/* Most steps of SQP, and of the refinement of a solution [M] */
#define HYBRID_SQP_STEPS 8
#define HYBRID_REFINEMENT_STEPS 8
/* Rounding of the error: steps gain nothing more [M] */
#define HYBRID_SQP_ERROR_ROUNDING 1e-11
/* From this violation on, the first step has to leave less than this part of it [M] */
#define HYBRID_SQP_FAR_VIOLATION 0.01
#define HYBRID_SQP_FIRST_VIOLATION 0.9
/* (epsilon, shift) of K, the shift relative to max(1, |W|): none, for dependent rows of the set,
 * for directions without curvature, and for negative curvature [M] */
#define HYBRID_SQP_REGULARIZATIONS \
    {{0.0, 0.0}, {1e-10, 0.0}, {1e-10, 1e-8}, {1e-10, 1e-4}, {1e-10, 0.01}}
/* The same where equations are perturbed: epsilon dy would exceed what is left of the rows [M] */
#define HYBRID_SQP_PERTURBED_REGULARIZATIONS {{0.0, 0.0}, {0.0, 1e-8}, {1e-10, 0.0}, {1e-10, 1e-8}}
/* The shift in them for directions without curvature; larger ones: for negative curvature */
#define HYBRID_SQP_SHIFT_FLAT 1e-8
/* How far bounds without multipliers are moved to have some, relative to max(1, |bound|): about
 * 500 u, and multiplier times distance is 1e-7 there [M] */
#define HYBRID_SQP_PERTURBED_BOUNDS 1e-13
/* Most changes of the set, one by one, by the parametric homotopy [M] */
#define HYBRID_SQP_HOMOTOPY_CHANGES 60
/* Steps in a row that may leave more than half of the error: of 92 solves that ended at the
 * first one, 16 found a solution with one, 8 with two, 1 with three [form: C; M] */
#define HYBRID_SQP_WATCHDOG 2
/* A chord step is tried where so many times error^2 / (error before) <= tol: ten times what is
 * expected, since a failed step costs more than one saved [M] */
#define HYBRID_SQP_CHORD 20.0
/* Largest |slope| that least multipliers leave [M] */
#define HYBRID_MULTIPLIERS_SLOPE_LEFT 1e-11
/* Curvature up to this, relative to |W|, may be none, and below minus that it is negative [M] */
#define HYBRID_CURVATURE_FLAT 1e-8
/* Factor between two shifts for a direction of negative curvature [M] */
#define HYBRID_CURVATURE_SHIFT_GROWTH 100.0
/* Least step along negative curvature, relative to max(1, |w|), and least part of the predicted
 * decrease that it gains [M] */
#define HYBRID_SQP_CURVATURE_SHORTEST 3.162277660168379e-06
#define HYBRID_SQP_CURVATURE_GAIN 0.25

/* --- barrier ---------------------------------------------------------------------------------- */

/* kappa_mu: next nu <= kappa_mu nu [WB eq. 7, "mu_linear_decrease_factor"] */
#define HYBRID_BARRIER_KAPPA_MU 0.2
/* theta_mu: next nu <= nu^theta_mu [WB eq. 7, "mu_superlinear_decrease_power"] */
#define HYBRID_BARRIER_THETA_MU 1.5
/* Divisor of the floor of nu where the scaled error is met, the residuals are not [M] */
#define HYBRID_BARRIER_NU_MIN_FALL 10.0
/* nu of a warm start with E_0 > 1: a smaller one holds iterates at edges [M] */
#define HYBRID_BARRIER_NU_WARM_FAR 1e-3
/* Indefinite Hessians in a row after which a warm start goes on with the nu of one from x0 [M] */
#define HYBRID_BARRIER_SADDLE_STEPS 8
/* Parts of the distance from the bounds, until all functions are defined there [M] */
#define HYBRID_START_PUSH_SHARES {1.0, 0.01, 1e-4}
/* Given multipliers beyond this, in units of |grad f|, are implausible [WB 3.6,
 * "constr_mult_init_max"] */
#define HYBRID_START_LAM_MAX 1000.0
/* Progress: theta or the error fell below this part, or f by this part of |f| [M] */
#define HYBRID_PROGRESS_THETA 0.9
#define HYBRID_PROGRESS_ERROR 0.9
#define HYBRID_PROGRESS_F 1e-3
/* Steps without progress after which a restoration begins, or a phase ends [M] */
#define HYBRID_PROGRESS_STEPS 50
/* Restorations without progress after which a phase ends [M] */
#define HYBRID_PROGRESS_ROUNDS 5
/* Part of theta that a second-order correction may leave [WB 2.4, "kappa_soc", 0.99 there] */
#define HYBRID_LINE_SEARCH_KAPPA_SOC 0.9
/* Largest step, relative to 1 + |w|, that is tiny: 10 u [WB 3.9, "tiny_step_tol"] */
#define HYBRID_LINE_SEARCH_TINY_STEP 2.220446049250313e-15
/* Short steps in a row after which a restoration is due, if more than this part of theta is left
 * [M] */
#define HYBRID_LINE_SEARCH_SHORT_STEPS 5
#define HYBRID_LINE_SEARCH_SHORT_THETA 0.9
/* Part of the error that a step accepted by slopes may leave [M] */
#define HYBRID_LINE_SEARCH_SLOPES_ERROR 0.9
/* delta_w^0: the first sigma [WB 3.1, "first_hessian_perturbation"] */
#define HYBRID_INERTIA_DELTA_W_0 1e-4
/* kappa_w^+ bar: growth of sigma before any has served [WB 3.1, "perturb_inc_fact_first"] */
#define HYBRID_INERTIA_KAPPA_W_PLUS_BAR 100.0
/* kappa_w^+: its growth afterwards [WB 3.1, "perturb_inc_fact"] */
#define HYBRID_INERTIA_KAPPA_W_PLUS 8.0
/* 1 / kappa_w^-: divisor of the last sigma [WB 3.1, "perturb_dec_fact"] */
#define HYBRID_INERTIA_DECAY 3.0
/* The largest sigma far from feasibility, where a restoration does better [M] */
#define HYBRID_INERTIA_FAR_DELTA_W_MAX 1e12
/* Times in a row that zero fails before it is left out. As many times a third of the last sigma
 * has to serve at once before zero is tried again [M] */
#define HYBRID_INERTIA_TURNS 2
/* The barrier hides no curvature of W if it adds no more than this part of |W| [M] */
#define HYBRID_INERTIA_BARRIER_CURVATURE 1e-4
/* Where the line search finds no step near feasibility: first, factor and last of larger sigmas
 * [M] */
#define HYBRID_STEEPER_SHIFT_FIRST 1e-4
#define HYBRID_STEEPER_SHIFT_GROWTH 100.0
#define HYBRID_STEEPER_SHIFT_LARGEST 1e12
/* rho of the elastic problem [WB 3.3, "resto_penalty_parameter"] */
#define HYBRID_ELASTIC_RHO 1000.0
/* Part of the Hessian of f that is left in it, where rows have no curvature [M] */
#define HYBRID_ELASTIC_OBJECTIVE 1e-8
/* Its last nu, relative to |c| <= 1 [M] */
#define HYBRID_ELASTIC_NU_END 1e-5
/* theta that is rounding, relative to max(1, |w|): no restoration begins there [M] */
#define HYBRID_RESTORATION_THETA_ROUNDING 1e-11

/* --- driver ----------------------------------------------------------------------------------- */

/* |x| of the points to which a ray is followed, and most steps back to c = 0 from each [M] */
#define HYBRID_RAY_LENGTHS {1e7, 1e9, 1e11}
#define HYBRID_RAY_STEPS 8
/* Steps from multipliers after which a phase that restores feasibility is given up [M] */
#define HYBRID_RESTORATION_NEAR_STEPS 100
/* Least violation of an iterate next to a degenerate point, with multipliers that fit [M] */
#define HYBRID_NEARBY_VIOLATION 1e-13
/* f is lower of two where it is less by this part of |f| [M] */
#define HYBRID_OUTCOME_LOWER_F 1e-3
/* The gradient of f at the start is faint up to the tolerance divided by this [M] */
#define HYBRID_OUTCOME_FAINT_GRADIENT 1e-3
/* |lam|_2 of a degenerate point, and the part of it that does not cancel [M] */
#define HYBRID_OUTCOME_DEGENERATE_LAM 1000.0
#define HYBRID_OUTCOME_DEGENERATE_SUM 1e-2

#endif
