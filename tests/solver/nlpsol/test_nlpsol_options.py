"""Options of CasADi and IPOPT: translated, harmless, unused or refused, as the page says."""

import ast
import re
import subprocess
import sys
import warnings
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import hock_schittkowski, solved
from support.paths import DOCS

from casadi_hybrid import InputError, Problem, Solver, nlpsol
from casadi_hybrid.solver.options.foreign import OptionWarning

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
def test_what_switches_nothing_is_taken_in_silence(options: dict[str, Any]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = nlpsol("s", "hybrid", NLP, options)
    assert abs(float(solver(x0=0)["f"])) < 1e-10


def test_one_warning_names_all_that_is_not_used():
    options = {
        "ipopt": {"linear_solver": "ma57", "mu_strategy": "adaptive", "bound_relax_factor": 1e-8},
        "ipopt.nlp_scaling_method": "none",
        "hybrid.mu_oracle": "loqo",
        "ipopt.mu_init": 1e-3,  # left out beside that
        "ipopt.warm_start_init_point": "yes",
        "monitor": ["nlp_f"],
        "common_options": {"final_options": {"verbose": True}},
        "convexify_strategy": "regularize",
    }
    with pytest.warns(OptionWarning) as caught:
        nlpsol("s", "hybrid", NLP, options)
    (warning,) = caught
    assert warning.filename == __file__
    for name in (*options["ipopt"], "nlp_scaling_method", "mu_oracle", "mu_init", "monitor"):  # type: ignore[misc]
        assert name in str(warning.message)


def test_a_mu_target_within_the_tolerance_is_left_out():
    """As in scripts for complementarity constraints: the answer is the one asked for, to 1e-6."""
    nlp = {"x": X, "f": ca.sum1(X)}
    options = {"ipopt.mu_target": 1e-7, "ipopt.tol": 1e-7, "ipopt.print_level": 0}
    peer = ca.nlpsol("s", "ipopt", nlp, {**options, "ipopt.sb": "yes", "print_time": False})
    with pytest.warns(OptionWarning, match="mu_target"):
        solver = nlpsol("s", "hybrid", nlp, options)
    found, expected = solver(x0=1, lbx=0), peer(x0=1, lbx=0)
    assert solver.stats()["success"]
    assert ca.norm_inf(found["x"] - expected["x"]) < 1e-6


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({"ipopt.tol": 1e-4}, {"residual_tol": 1e-4}),  # a loose one loosens the residuals too
        ({"ipopt.tol": 1e-9}, {"residual_tol": 1e-6}),
        ({"tol": 1e-4}, {"residual_tol": 1e-6}),
        ({"ipopt.tol": 1e-4, "residual_tol": 1e-7}, {"residual_tol": 1e-7}),
        ({"ipopt.max_iter": 1e2}, {"max_iter": 100}),
        ({"ipopt.max_cpu_time": 3.0, "ipopt.max_wall_time": 2.0}, {"max_time": 2.0}),
        ({"hybrid": {"tol": 1e-9, "print_level": 5}, "hybrid.residual_tol": 1e-7},
         {"tol": 1e-9, "residual_tol": 1e-7, "log": 1}),
        # As CasADi takes them, so that keywords can hold them.
        ({"ipopt__max_iter": 7, "ipopt__tol": 1e-9, "hybrid__residual_tol": 1e-7},
         {"max_iter": 7, "tol": 1e-9, "residual_tol": 1e-7}),
        ({"tol": 1e-9, "ipopt.tol": 1e-9, "ipopt": {"tol": 1e-9}}, {"tol": 1e-9}),
    ],
)  # fmt: skip
def test_options_are_translated(options: dict[str, Any], chosen: dict[str, Any]):
    made = nlpsol("s", "hybrid", NLP, options).options
    assert {name: getattr(made, name) for name in chosen} == chosen


def test_smaller_tolerances_of_ipopt_are_used():
    given = {"constr_viol_tol": 1e-9, "dual_inf_tol": 1.0, "compl_inf_tol": 1e-4}
    tolerances = nlpsol("s", "hybrid", NLP, {"ipopt": given}).options.limits.tolerances
    kept = tolerances.feasibility, tolerances.stationarity, tolerances.complementarity
    assert kept == (1e-9, 1e-6, 1e-6)


def test_warm_start_option_decides_on_multipliers():
    plain = nlpsol("s", "hybrid", NLP)
    found = plain(x0=0, ubg=1)
    known = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"], "ubg": 1}
    counts = {}
    for word in ("yes", "no"):
        solver = solved(NLP, {"ipopt.warm_start_init_point": word}, **known)
        counts[word] = solver.stats()["iter_count"]
    plain(x0=found["x"], ubg=1)
    assert counts == {"yes": 0, "no": plain.stats()["iter_count"]}
    assert counts["no"] > 0
    with pytest.raises(InputError, match="must be 'yes' or 'no'"):
        nlpsol("s", "hybrid", NLP, {"ipopt.warm_start_init_point": "maybe"})


@pytest.mark.parametrize("tol", [1e-8, 1e-10, 1e-12])
def test_a_smaller_tolerance_is_met(tol: float):
    """Where a bound is active without a multiplier, ν alone decides how far off the answer is."""
    x = ca.SX.sym("x", 3)
    nlp = {"x": x, "f": x[0] ** 2 + (x[1] - 1) ** 2 + x[2] ** 4}
    solver = solved(nlp, {"ipopt.tol": tol}, x0=1, lbx=0)
    assert solver.stats()["success"]
    assert solver.result.residuals.complementarity <= tol


PAGE = DOCS / "from_ipopt.md"
ALL = """
import casadi as ca
x = ca.SX.sym("x")
words = {"print_options_documentation": "yes", "print_advanced_options": "yes"}
ca.nlpsol("s", "ipopt", {"x": x, "f": x**2}, {"ipopt": words})()
"""
SAMPLES = {
    "tol": 1e-4, "constr_viol_tol": 1e-9, "dual_inf_tol": 1e-9, "compl_inf_tol": 1e-9,
    "max_iter": 3, "max_wall_time": 9.0, "max_cpu_time": 9.0, "diverging_iterates_tol": 1e9,
    "hessian_approximation": "limited-memory", "warm_start_init_point": "no", "print_level": 5,
    "mu_init": 1e-3, "bound_push": 0.1, "constr_mult_init_max": 10.0, "max_soc": 0,
}  # fmt: skip
"""A value of every option that is used, which is not the default."""


def rows() -> dict[str, tuple[str, str]]:
    """The table: pattern → what becomes of it, and the sentence."""
    found: dict[str, tuple[str, str]] = {}
    table = PAGE.read_text("utf-8").split("| option of IPOPT |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        names, kind, said = (cell.strip() for cell in line.strip("|").split(" | "))
        assert said
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in found, name
            found[name] = kind, said
    return found


TABLE = rows()


def documented() -> set[str]:
    """The options that IPOPT itself documents."""
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, check=True)
    text = done.stdout.split("This is Ipopt version")[0]
    return set(re.findall(r"^([a-z][a-z0-9_]*) +.*\(", text, flags=re.MULTILINE))


def row(name: str) -> str | None:
    """The row of a name: its own, or the one that all that begin so have."""
    if name in TABLE:
        return name
    near = [one for one in TABLE if one[-1] == "*" and name.startswith(one[:-1])]
    assert len(near) <= 1, (name, near)
    return near[0] if near else None


def becomes(name: str, value: object) -> str:
    """What the code does with an option: used, accepted, left out or refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            options = nlpsol("s", "hybrid", NLP, {f"ipopt.{name}": value}).options
        except InputError:
            return "refused"
    if caught:
        assert caught[0].category is OptionWarning
        assert name in str(caught[0].message)
        assert "docs/from_ipopt.md" in str(caught[0].message)
        return "left out"
    return "accepted" if options == nlpsol("s", "hybrid", NLP).options else "used"


def test_every_option_of_ipopt_has_one_row():
    names = documented()
    assert {name for name in names if row(name) is None} == set()
    used = {row(name) for name in names}
    casadis = {"sb", "suppress_all_output"}  # not documented by IPOPT itself
    newer = {"file_append"}  # than the IPOPT of CasADi 3.7
    assert casadis <= set(TABLE) - used <= casadis | newer


@pytest.mark.parametrize("name", [name for name in TABLE if name[-1] != "*"])
def test_an_option_does_what_its_row_says(name: str):
    kind, said = TABLE[name]
    if kind.startswith("at "):
        for value in re.findall("`([^`]*)`", kind):
            assert becomes(name, ast.literal_eval(value)) == "accepted"
        other = {"obj_scaling_factor": -1.0, "mu_target": 0.1, "replace_bounds": "yes"}
        refused = becomes(name, other.get(name, 17))
        assert refused == ("refused" if "refused" in said else "left out")
    else:
        assert becomes(name, SAMPLES.get(name, 17)) == kind


def first_rows(**settings: Any) -> tuple[Any, list[Any]]:
    """The first iterates of HS71 as the callback sees them, and the solver."""
    nlp, numbers = hock_schittkowski(71)
    seen: list[Any] = []
    solver = solved(nlp, {**settings, "iteration_callback": seen.append}, **numbers)
    assert solver.stats()["success"]
    return solver, seen


def test_bound_push_moves_the_start_inside():
    """x0 = 1 and 5 lie on the bounds 1 and 5: push·max(1, |bound|), at most push·(5 − 1)."""
    for push in (1e-2, 1e-1, 3.0):
        x = np.asarray(first_rows(bound_push=push)[1][0].x).ravel()
        inside = [min(push * max(1.0, bound), min(push, 0.5) * 4.0) for bound in (1.0, 5.0)]
        assert x == pytest.approx([1 + inside[0], 5 - inside[1], 5 - inside[1], 1 + inside[0]])


def test_mu_init_is_the_first_mu():
    for mu in (0.1, 1e-3):
        solver, _ = first_rows(mu_init=mu)
        assert solver.stats()["iterations"]["mu"][0] == mu


@pytest.mark.parametrize(
    ("scale", "off", "expected"),
    [(1e-2, 0.0, None), (1e-6, 0.0, None), (1.0, 0.0, 0.1), (0.0, 0.0, 0.1), (1e-6, 0.5, 1e-3)],
)
def test_the_first_barrier_parameter_fits_the_objective(
    scale: float, off: float, expected: float | None
):
    """The mean of |∇f + Aᵀy| min(distance, 1), y by least squares; 1e-3 from infeasible points.

    Multipliers of the bounds are ten times that: 1 with the largest, 0.1.
    """
    rng = np.random.default_rng(7)
    c, A, x0 = rng.normal(size=6), rng.normal(size=(2, 6)), rng.uniform(0.1, 3.9, 6)
    x = ca.SX.sym("x", 6)
    nlp = {"x": x, "f": scale * ca.dot(c, x), "g": ca.mtimes(ca.DM(A), x)}
    seen: list[Any] = []
    options = {"bound_push": 1e-9, "iteration_callback": seen.append}
    solver = nlpsol("s", "hybrid", nlp, options)
    rows = A @ x0 + off
    upper = np.where(np.arange(6) < 3, 4.0, np.inf)
    solver(x0=x0, lbx=0, ubx=upper, lbg=rows, ubg=rows)
    residual = c - A.T @ np.linalg.lstsq(A.T, c, rcond=None)[0]
    mean = scale * np.mean(np.abs(residual) * np.minimum(np.minimum(x0, upper - x0), 1.0))
    found = solver.stats()["iterations"]["mu"][0]
    assert found == pytest.approx(mean if expected is None else expected, rel=1e-6)
    assert np.ravel(seen[0].lam_x)[3:] == pytest.approx([-10 * found] * 3)


def test_first_multipliers_above_the_limit_are_zero():
    assert np.any(first_rows()[1][0].lam_g)
    assert not np.any(first_rows(constr_mult_init_max=0.0)[1][0].lam_g)


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
