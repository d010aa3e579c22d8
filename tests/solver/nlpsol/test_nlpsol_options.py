"""Options of CasADi and IPOPT: translated, harmless, unused or refused."""

import warnings

import casadi as ca
import numpy as np
import pytest
from support.cases.core import warm
from support.cases.nlp import hock_schittkowski, solved

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.solver.options.foreign import NOT_USED, ONLY_OFF, WITHOUT_EFFECT, OptionWarning

X = ca.SX.sym("x", 2)
NLP = {"x": X, "f": ca.sumsqr(X - 1), "g": ca.sum1(X)}
SILENT = [
    {"print_time": 0, "verbose": False, "calc_lam_p": False, "calc_multipliers": True},
    {"no_nlp_grad": True, "cache": {}, "jit_options": {"flags": ["-O3"]}, "compiler": "shell"},
    {"detect_simple_bounds": True, "inputs_check": False, "common_options": {}, "user_data": 3},
    {"ipopt": {"tol": None, "mu_target": 0.0, "sb": "yes"}, "expand": None, "equality": [True]},
    {"ipopt": None, "ipopt__print_level": 0, "ipopt__sb": "yes", "hybrid": None, "cache": None},
    {"bound_consistency": False, "min_lam": 0, "discrete": [False, False], "monitor": []},
]


@pytest.mark.parametrize("options", SILENT)
def test_options_without_effect_are_silent(options, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = nlpsol("s", "hybrid", NLP, options)
    assert abs(float(solver(x0=0)["f"])) < 1e-10
    assert capfd.readouterr() == ("", "")


OFF = {"True or False": False, "a number": 0, "a text": "", "a dictionary": {}, "a list": []}


def test_the_listed_options_are_casadis_own():
    """Every name accepted for CasADi's sake is an option there, and harmless where it is off."""
    table = [line for line in str(ca.nlpsol.__doc__).splitlines() if "|" in line or "+" in line]
    # (long names are broken over several lines of their cell)
    cells = [line.split("|")[1].strip() if line.count("|") == 5 else "\n" for line in table]
    documented = {*"".join(cells).split(), *ca.nlpsol_options("ipopt")}
    off = {name: OFF.get(kind) for name, kind in WITHOUT_EFFECT.items()}
    off |= dict.fromkeys((*ONLY_OFF, *NOT_USED), False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlpsol("s", "hybrid", NLP, off)
    assert set(off) <= documented


def test_start_outside_bounds_warns_where_asked():
    solver = nlpsol("s", "hybrid", NLP, {"warn_initial_bounds": True})
    with pytest.warns(UserWarning, match=r"x\[0\]"):
        solver(x0=[3, 0], ubx=2)
    solver(x0=[1, 0], ubx=2)


def test_one_warning_names_all_unused():
    steering = {"linear_solver": "ma57", "mu_strategy": "adaptive", "bound_relax_factor": 1e-8}
    steering |= {"mu_init": 1e-3, "warm_start_init_point": "yes"}  # the former beside the latter
    options = {"ipopt": steering, "ipopt.nlp_scaling_method": "none", "hybrid.mu_oracle": "loqo"}
    options |= {"common_options": {"final_options": {"verbose": True}}, "monitor": ["nlp_f"]}
    with pytest.warns(OptionWarning) as caught:
        nlpsol("s", "hybrid", NLP, {**options, "convexify_strategy": "regularize"})
    (warning,) = caught
    assert warning.filename == __file__
    unused = [*steering, "nlp_scaling_method", "mu_oracle", "monitor", "common_options"]
    unused.remove("warm_start_init_point")
    assert all(name in str(warning.message) for name in unused)


TRANSLATED = [
    ({"ipopt.tol": 1e-4}, {"residual_tol": 1e-4}),  # a loose one loosens the residuals too
    ({"ipopt.tol": 1e-9}, {"residual_tol": 1e-6}),
    ({"tol": 1e-4}, {"residual_tol": 1e-6}),
    ({"ipopt.tol": 1e-4, "residual_tol": 1e-7}, {"residual_tol": 1e-7}),
    ({"ipopt.max_iter": 1e2}, {"max_iter": 100}),
    ({"ipopt.max_cpu_time": 3.0, "ipopt.max_wall_time": 2.0}, {"max_time": 2.0}),
    ({"hybrid": {"tol": 1e-9, "print_level": 5}}, {"tol": 1e-9, "log": 1}),
    ({"ipopt__max_iter": 7, "hybrid__residual_tol": 1e-7}, {"max_iter": 7, "residual_tol": 1e-7}),
    ({"tol": 1e-9, "ipopt.tol": 1e-9, "ipopt": {"tol": 1e-9}}, {"tol": 1e-9}),
]


@pytest.mark.parametrize(("options", "chosen"), TRANSLATED)
def test_options_are_translated(options, chosen):
    solver = nlpsol("s", "hybrid", NLP, options)
    assert {name: getattr(solver.options, name) for name in chosen} == chosen


def test_warm_start_option_decides_on_multipliers():
    plain = nlpsol("s", "hybrid", NLP)
    start = warm(plain(x0=0, ubg=1))
    plain(x0=start["x0"], ubg=1)
    cold = plain.stats()["iter_count"]
    assert cold > 0
    for word, count in (("yes", 0), ("no", cold)):
        solver = solved(NLP, {"ipopt.warm_start_init_point": word}, **start, ubg=1)
        assert solver.stats()["iter_count"] == count
    with pytest.raises(InputError, match="must be 'yes' or 'no'"):
        nlpsol("s", "hybrid", NLP, {"ipopt.warm_start_init_point": "maybe"})


@pytest.mark.parametrize("option", ["tol", "compl_inf_tol"])
@pytest.mark.parametrize("tol", [1e-8, 1e-10, 1e-12])
def test_smaller_tolerances_are_met(option, tol):
    """Bounds active without a multiplier: ν alone decides how far off the answer is."""
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": x[0] ** 2 + (x[1] - 1) ** 2 + x[2] ** 4}
    solver = solved(nlp, {f"ipopt.{option}": tol, "ipopt.dual_inf_tol": 1.0}, x0=1, lbx=0)
    assert solver.stats()["success"]
    assert solver.result.residuals.complementarity <= tol
    assert solver.result.residuals.stationarity <= 1e-6  # a larger tolerance is not used


BECOMES = [
    ("used", 1e-9, "tol constr_viol_tol dual_inf_tol compl_inf_tol mu_init bound_push"),
    ("used", 9.0, "max_wall_time max_cpu_time diverging_iterates_tol constr_mult_init_max"),
    ("used", 0, "max_iter max_soc"),
    ("used", 5, "print_level"),
    ("used", "limited-memory", "hessian_approximation"),
    ("used", "no", "warm_start_init_point"),
    ("accepted", 0, "acceptable_iter bound_relax_factor file_print_level mu_target"),
    ("accepted", "no", "honor_original_bounds replace_bounds skip_finalize_solution_call"),
    ("accepted", "make_parameter", "fixed_variable_treatment"),
    ("accepted", "make_parameter_nodual", "fixed_variable_treatment"),
    ("accepted", 1, "obj_scaling_factor"),
    ("accepted", "none", "derivative_test"),
    ("accepted", "", "output_file"),
    ("accepted", 17, "check_derivatives_for_naninf grad_f_constant hessian_constant"),
    ("accepted", 17, "inf_pr_output jac_c_constant jac_d_constant mumps_mem_percent sb"),
    ("accepted", 17, "print_advanced_options print_frequency_iter print_frequency_time"),
    ("accepted", 17, "print_info_string print_options_documentation print_options_mode"),
    ("accepted", 17, "print_timing_statistics print_user_options suppress_all_output"),
    ("accepted", 17, "warm_start_bound_frac warm_start_bound_push warm_start_mult_bound_push"),
    ("accepted", 17, "warm_start_slack_bound_frac warm_start_slack_bound_push"),
    ("left out", 17, "acceptable_iter bound_relax_factor file_print_level honor_original_bounds"),
    ("left out", 17, "derivative_test output_file fixed_variable_treatment obj_scaling_factor"),
    ("left out", 17, "acceptable_tol bound_frac linear_solver max_resto_iter mu_strategy"),
    ("left out", 17, "nlp_scaling_method option_file_name watchdog_trial_iter_max"),
    ("left out", 1e-7, "mu_target"),  # the answer is the one asked for, to the tolerance
    ("refused", -1.0, "obj_scaling_factor"),
    ("refused", 0.1, "mu_target"),
    ("refused", "yes", "replace_bounds"),
]


def becomes(name, value):
    """Return used, accepted, left out or refused for an option of IPOPT."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            options = nlpsol("s", "hybrid", NLP, {f"ipopt.{name}": value}).options
        except InputError:
            return "refused"
    if caught:
        assert caught[0].category is OptionWarning
        assert name in str(caught[0].message)
        return "left out"
    return "accepted" if options == nlpsol("s", "hybrid", NLP).options else "used"


@pytest.mark.parametrize(("kind", "value", "names"), BECOMES)
def test_options_of_ipopt_have_their_kind(kind, value, names):
    for name in names.split():
        assert becomes(name, value) == kind, name


def first_rows(**settings):
    """The solver of HS71, and its iterates as the callback sees them."""
    nlp, numbers = hock_schittkowski(71)
    seen = []
    solver = solved(nlp, {**settings, "iteration_callback": seen.append}, **numbers)
    assert solver.stats()["success"]
    return solver, seen


def test_first_point_follows_its_options():
    """Distances from bounds 1 and 5, where x0 lies: push·max(1, |bound|), at most push·(5 − 1)."""
    for push in (1e-2, 1e-1, 3.0):
        x = np.asarray(first_rows(bound_push=push)[1][0].x).ravel()
        inside = [min(push * max(1.0, bound), min(push, 0.5) * 4.0) for bound in (1.0, 5.0)]
        assert x == pytest.approx([1 + inside[0], 5 - inside[1], 5 - inside[1], 1 + inside[0]])
    for mu in (0.1, 1e-3):
        assert first_rows(mu_init=mu)[0].stats()["iterations"]["mu"][0] == mu
    assert np.any(first_rows()[1][0].lam_g)
    assert not np.any(first_rows(constr_mult_init_max=0.0)[1][0].lam_g)


FIRST_MU = [(1e-2, 0, None), (1e-6, 0, None), (1, 0, 0.1), (0, 0, 0.1), (1e-6, 0.5, 1e-3)]


@pytest.mark.parametrize(("scale", "off", "expected"), FIRST_MU)
def test_first_mu_fits_the_objective(scale, off, expected):
    """The mean of |∇f + Aᵀy| min(distance, 1), y by least squares; 1e-3 from infeasible points.

    Multipliers of the bounds are ten times that: 1 with the largest, 0.1.
    """
    rng = np.random.default_rng(7)
    c, A, x0 = rng.normal(size=6), rng.normal(size=(2, 6)), rng.uniform(0.1, 3.9, 6)
    x = ca.SX.sym("x", 6)
    nlp = {"x": x, "f": scale * ca.dot(c, x), "g": ca.mtimes(ca.DM(A), x)}
    seen = []
    options = {"bound_push": 1e-9, "iteration_callback": seen.append}
    rows, upper = A @ x0 + off, np.where(np.arange(6) < 3, 4.0, np.inf)
    solver = solved(nlp, options, x0=x0, lbx=0, ubx=upper, lbg=rows, ubg=rows)
    residual = c - A.T @ np.linalg.lstsq(A.T, c, rcond=None)[0]
    mean = scale * np.mean(np.abs(residual) * np.minimum(np.minimum(x0, upper - x0), 1.0))
    mu = solver.stats()["iterations"]["mu"][0]
    assert mu == pytest.approx(mean if expected is None else expected, rel=1e-6)
    assert np.ravel(seen[0].lam_x)[3:] == pytest.approx([-10 * mu] * 3)


def test_solver_class_has_the_same_settings():
    nlp, numbers = hock_schittkowski(71)
    problem = Problem.from_nlp(nlp, **numbers)
    for setting in ({"mu_init": 1e-3}, {"bound_push": 0.1}, {"max_soc": 0}, {"threads": 2}):
        solver, _ = first_rows(**setting)
        result = Solver(problem, **setting).solve()
        assert result.iterations == solver.stats()["iter_count"]
    for name in ("mu_init", "threads"):
        with pytest.raises(InputError, match=f"{name} must be"):
            Solver(problem, **{name: 0})
    with pytest.raises(InputError, match="unknown option 'mu_init' for 'closed-form'"):
        Solver(problem, "closed-form", mu_init=1e-3)
