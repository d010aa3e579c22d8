"""Options of CasADi and IPOPT: each is translated, harmless, named as unused, or refused."""

import warnings
from typing import Any

import casadi as ca
import pytest

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.casadi_api.foreign import OptionWarning

X = ca.SX.sym("x", 2)
NLP = {"x": X, "f": ca.sumsqr(X - 1), "g": ca.sum1(X)}


@pytest.mark.parametrize(
    "options",
    [
        {"ipopt.sb": "yes", "ipopt.print_level": 0, "print_time": 0, "verbose": False},
        {"ipopt.warm_start_init_point": "yes", "ipopt.warm_start_bound_push": 1e-9},
        {"ipopt.bound_relax_factor": 0, "ipopt.honor_original_bounds": "no"},
        {"ipopt.fixed_variable_treatment": "make_parameter", "ipopt.acceptable_iter": 0},
        {"ipopt.hessian_constant": "yes", "ipopt.jac_c_constant": "yes"},
        {"ipopt": {"obj_scaling_factor": 1.0, "mu_target": 0.0, "derivative_test": "none"}},
        {"calc_lam_p": False, "calc_multipliers": True, "no_nlp_grad": True, "cache": {}},
        {"jit_options": {"flags": ["-O3"]}, "compiler": "shell", "always_inline": False},
        {"detect_simple_bounds": True, "inputs_check": False, "record_time": True},
        {"common_options": {}, "equality": [True], "user_data": 3},
        {"ipopt": {"tol": None, "dual_inf_tol": None}, "expand": None, "cache": None},
        {"ipopt": None, "ipopt__print_level": 0, "ipopt__sb": "yes", "hybrid": None},
        {"bound_consistency": False, "min_lam": 0, "discrete": [False, False], "monitor": []},
    ],
)
def test_what_switches_nothing_is_taken_in_silence(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = nlpsol("s", "hybrid", NLP, options)
    assert abs(float(solver(x0=0)["f"])) < 1e-10


def test_one_warning_names_all_that_is_not_used() -> None:
    options = {
        "ipopt": {"linear_solver": "ma57", "mu_strategy": "adaptive", "bound_relax_factor": 1e-8},
        "ipopt.nlp_scaling_method": "none",
        "monitor": ["nlp_f"],
        "common_options": {"final_options": {"verbose": True}},
        "convexify_strategy": "regularize",
    }
    with pytest.warns(OptionWarning) as caught:
        nlpsol("s", "hybrid", NLP, options)
    (warning,) = caught
    assert warning.filename == __file__
    for name in (*options["ipopt"], "nlp_scaling_method", "monitor", "common_options"):  # type: ignore[misc]
        assert name in str(warning.message)


def test_a_mu_target_within_the_tolerance_is_left_out() -> None:
    """As in scripts for complementarity constraints: the answer is the one asked for, to 1e-6."""
    nlp = {"x": X, "f": ca.sum1(X)}
    options = {"ipopt.mu_target": 1e-7, "ipopt.tol": 1e-7, "ipopt.print_level": 0}
    peer = ca.nlpsol("s", "ipopt", nlp, {**options, "ipopt.sb": "yes", "print_time": False})
    with pytest.warns(OptionWarning, match="mu_target"):
        solver = nlpsol("s", "hybrid", nlp, options)
    found, expected = solver(x0=1, lbx=0), peer(x0=1, lbx=0)
    assert solver.stats()["success"]
    assert ca.norm_inf(found["x"] - expected["x"]) < 1e-6


def test_tolerances_of_ipopt_are_kept_where_they_are_smaller() -> None:
    given = {"constr_viol_tol": 1e-9, "dual_inf_tol": 1.0, "compl_inf_tol": 1e-4}
    tolerances = nlpsol("s", "hybrid", NLP, {"ipopt": given}).options.limits.tolerances
    kept = tolerances.feasibility, tolerances.stationarity, tolerances.complementarity
    assert kept == (1e-9, 1e-6, 1e-6)


def test_a_loose_tolerance_of_ipopt_loosens_the_residuals_too() -> None:
    tols = [
        nlpsol("s", "hybrid", NLP, options).options.residual_tol
        for options in ({"ipopt.tol": 1e-4}, {"ipopt.tol": 1e-9}, {"tol": 1e-4})
    ]
    assert tols == [1e-4, 1e-6, 1e-6]
    both = {"ipopt.tol": 1e-4, "residual_tol": 1e-7}
    assert nlpsol("s", "hybrid", NLP, both).options.residual_tol == 1e-7


def test_multipliers_are_used_unless_ipopt_is_told_not_to() -> None:
    plain = nlpsol("s", "hybrid", NLP)
    found = plain(x0=0, ubg=1)
    known = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"], "ubg": 1}
    counts = {}
    for word in ("yes", "no"):
        solver = nlpsol("s", "hybrid", NLP, {"ipopt.warm_start_init_point": word})
        solver(**known)
        counts[word] = solver.stats()["iter_count"]
    plain(x0=found["x"], ubg=1)
    assert counts == {"yes": 0, "no": plain.stats()["iter_count"]}
    assert counts["no"] > 0
    with pytest.raises(InputError, match="must be 'yes' or 'no'"):
        nlpsol("s", "hybrid", NLP, {"ipopt.warm_start_init_point": "maybe"})


def test_of_two_limits_of_time_the_shorter_counts() -> None:
    options = {"ipopt.max_cpu_time": 3.0, "ipopt.max_wall_time": 2.0}
    assert nlpsol("s", "hybrid", NLP, options).options.max_time == 2.0


def test_options_of_the_plugin_are_the_solvers_own_or_those_of_ipopt() -> None:
    options = {"hybrid": {"tol": 1e-9, "print_level": 5}, "hybrid.residual_tol": 1e-7}
    chosen = nlpsol("s", "hybrid", NLP, options).options
    assert (chosen.tol, chosen.residual_tol, chosen.log) == (1e-9, 1e-7, 1)
    with pytest.warns(OptionWarning, match="mu_init"):
        nlpsol("s", "hybrid", NLP, {"hybrid.mu_init": 1e-3})


def test_names_with_two_underscores_are_those_of_a_plugin() -> None:
    """As CasADi takes them, so that keywords can hold them."""
    options = {"ipopt__max_iter": 7, "ipopt__tol": 1e-9, "hybrid__residual_tol": 1e-7}
    chosen = nlpsol("s", "hybrid", NLP, options).options
    assert (chosen.max_iter, chosen.tol, chosen.residual_tol) == (7, 1e-9, 1e-7)
    ca.nlpsol("s", "ipopt", NLP, {"ipopt__max_iter": 7, "ipopt__print_level": 0})


def test_the_same_value_may_be_given_twice() -> None:
    options = {"tol": 1e-9, "ipopt.tol": 1e-9, "ipopt": {"tol": 1e-9}}
    assert nlpsol("s", "hybrid", NLP, options).options.tol == 1e-9
    with pytest.raises(InputError, match="given twice"):
        nlpsol("s", "hybrid", NLP, {**options, "ipopt.tol": 1e-8})


@pytest.mark.parametrize("tol", [1e-8, 1e-10, 1e-12])
def test_a_smaller_tolerance_is_met(tol: float) -> None:
    """Where a bound is active without a multiplier, ν alone decides how far off the answer is."""
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": x[0] ** 2 + (x[1] - 1) ** 2 + x[2] ** 4}
    solver = nlpsol("s", "hybrid", nlp, {"ipopt.tol": tol})
    solver(x0=1, lbx=0)
    assert solver.stats()["success"]
    assert solver.result.residuals.complementarity <= tol
