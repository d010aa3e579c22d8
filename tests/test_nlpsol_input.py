"""What ``nlpsol`` refuses, by name and before any work, and what it takes as CasADi does."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from nlp_judge import numbers

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.result.record import IterationRecord

X = ca.SX.sym("x", 2)
GOOD = {"x": X, "f": ca.sumsqr(X), "g": ca.sum1(X)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"x0": [1, 2, 3]}, "x0 has shape"),
        ({"x0": [1, np.nan]}, r"x0\[1\] is nan"),
        ({"x0": [1, np.inf]}, r"x0\[1\] is inf"),
        ({"x0": "12"}, "x0 must be real numbers"),
        ({"lbx": [0, np.nan]}, r"lbx\[1\] is nan"),
        ({"lbx": [0, 2], "ubx": [1, 1]}, r"lbx\[1\] = 2 exceeds ubx\[1\] = 1.*x\[1\]"),
        ({"lbx": [-np.inf, np.inf]}, r"lbx\[1\] is inf"),
        ({"ubg": -np.inf}, r"ubg\[0\] is -inf.*no value of g "),
        ({"lbg": 1, "ubg": 0}, r"lbg\[0\] = 1 exceeds ubg\[0\] = 0"),
        ({"lbg": 1 + 1e-13, "ubg": 1}, r"lbg\[0\] = 1\.0000000000001 exceeds ubg\[0\] = 1\.0\."),
        ({"lbg": [0, 0]}, "lbg has shape"),
        ({"lbx": []}, "lbx has shape"),
        ({"lbx": "0"}, "lbx must be real numbers"),
        ({"lam_g0": [np.nan]}, "lam_g0"),
        ({"lam_x0": [1, 2, 3]}, "lam_x0 has shape"),
        ({"p": [1, 2]}, "p has shape"),
        ({"lbX": 0}, "unknown argument 'lbX'; did you mean 'lbx'"),
        ({"lam_g": 0}, "unknown argument 'lam_g'; did you mean 'lam_g0'"),
        ({"lbg": [[1], [2, 3]]}, "lbg must be real numbers"),
        ({"x0": np.nan}, r"x0(\[0\])? is nan"),
        ({"p": [1, np.nan]}, "p has shape"),
        ({"ubg": np.nan}, r"ubg(\[0\])? is nan"),
        ({"x0": ca.DM([0, np.nan])}, r"x0\[1\] is nan"),
        ({"lbx": np.inf}, r"lbx\[0\] is inf"),
        ({"x0": np.zeros((2, 2, 1))}, "x0"),
        ({"x0": np.zeros(2, dtype=complex)}, "x0 must be real"),
        ({"warm_start": 3}, "warm_start must be the result of a solve"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(call: dict[str, Any], message: str) -> None:
    called: list[IterationRecord] = []
    solver = nlpsol("s", "hybrid", GOOD, {"iteration_callback": called.append})
    with pytest.raises(InputError, match=message):
        solver(**call)
    assert not called
    with pytest.raises(RuntimeError, match=r"No stats available.*has not been called"):
        solver.stats()
    for _ in range(3):  # the next calls take a shorter way, and are refused alike
        solver()
    called.clear()
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            solver(**call)
    assert not called


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_iters": 5}, "unknown option 'max_iters'; did you mean 'max_iter'"),
        ({"snopt.tol": 1e-5}, "belongs to snopt, another solver; use ca.nlpsol"),
        ({"snopt": {"tol": 1e-5}}, "belongs to snopt"),
        ({"ipopt.tol": 0}, "tol must be a positive number"),
        ({"error_on_fial": True}, "did you mean 'error_on_fail'"),
        ({"discrete": [False, True]}, "'discrete' = .* is not supported: only real variables"),
        ({"bound_consistency": True}, "clip it yourself"),
        ({"verbose": "no"}, "verbose must be True or False, got 'no'"),
        ({"jit_options": "-O3"}, "jit_options must be a dictionary"),
        ({"compiler": 3}, "compiler must be a text"),
        ({"ipopt": "quiet"}, "ipopt must be a dictionary of options, got str"),
        ({"ipopt.linear_solver": ["mumps"]}, "ipopt.linear_solver must be a number or a text"),
        ({"tol": 1e-7, "ipopt.tol": 1e-3}, "tol is given twice, 1e-07 and, among IPOPT's"),
        ({"ipopt": {"max_iter": 5}, "ipopt.max_iter": 6}, "ipopt.max_iter is given twice, 5 and 6"),
        ({"hybrid": {"tol": 1e-7}, "tol": 1e-8}, "tol is given twice"),
        ({"ipopt.max_cpu_time": "1"}, "ipopt.max_cpu_time must be a positive number"),
        ({"ipopt.mu_target": 1e-3}, "no KKT point"),
        ({"ipopt.obj_scaling_factor": -1}, "minimize -f instead"),
        ({"constr_viol_tol": -1}, "constr_viol_tol must be a positive number"),
        ({"hess_lag": ca.Function("h", [X], [X])}, "hess_lag must take 4 arguments"),
        ({"tol": 0}, "tol must be a positive number"),
        ({"residual_tol": np.nan}, "residual_tol must be"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"max_time": -1}, "max_time must be"),
        ({"divergence": 0}, "divergence must be"),
        ({"error_on_fail": 2}, "error_on_fail must be True or False"),
        ({"print_time": "no"}, "print_time must be True or False"),
        ({"iteration_callback_step": 0}, "iteration_callback_step must be a whole number"),
        ({"log": "yes"}, "log must be a whole number"),
        ({"iteration_callback": 3}, "iteration_callback must be a Python function"),
        ({"iteration_callback": ca.Function("f", [X], [X])}, "'f' has 1 inputs and 1 outputs"),
        ({"constraint_names": ["a", "b"]}, r"constraint_names has 2 name\(s\)"),
        ({"variable_names": "ab"}, "variable_names"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", GOOD, change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("s", "ipopt", GOOD), "use ca.nlpsol"),
        (("", "hybrid", GOOD), "name must be"),
        (("s", "hybrid", [X]), "nlp must be a dictionary"),
        (("s", "hybrid", GOOD, ["tol"]), "options must be a dictionary"),
        (("s", "hybrid", {"f": X[0]}), "has no 'x'"),
        (("s", "hybrid", {**GOOD, "h": X}), "unknown entry 'h'"),
        (("s", "hybrid", {**GOOD, "x": 2 * X}), "must be made of symbols"),
        (("s", "hybrid", {**GOOD, "f": X}), "must be a scalar"),
        (("s", "hybrid", {**GOOD, "f": ca.SX.sym("t")}), "f depends on t"),
        (("s", "hybrid", {**GOOD, "p": X}), "share a symbol"),
        (("s", "hybrid", {**GOOD, "p": ca.MX.sym("p")}), "use one kind"),
        (("s", "hybrid", {**GOOD, "g": X @ X.T}), r"a dense vector is needed, such as ca.vec\(g\)"),
        (("s", "hybrid", {**GOOD, "x": ca.SX.sym("x", 2, 2)}), "give it its shape by ca.reshape"),
        (("s", "hybrid", {"x": ca.SX.sym("x", 1, 2), "f": X[0]}), "f depends on"),
        (("s", "hybrid", {"x": [X[0], X[1]]}), r"join them with ca.vertcat"),
        (("s", "hybrid", {**GOOD, "x": np.zeros(2)}), "must be a CasADi SX or MX symbol"),
    ],
)
def test_bad_problems_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        nlpsol(*arguments)


def test_scalars_and_empty_vectors_are_taken_as_casadi_takes_them() -> None:
    x = ca.SX.sym("x", 3)
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1)})
    for call in ({}, {"lbg": 0, "ubg": 0, "p": 0}, {"lbg": [], "p": ca.DM(0, 1)}, {"x0": ca.DM(3)}):
        np.testing.assert_allclose(numbers(solver(**call)["x"]), 1.0, atol=1e-8)
    np.testing.assert_allclose(
        numbers(solver(ubx=ca.DM([0, ca.inf, 5]))["x"]), [0, 1, 1], atol=1e-6
    )
    np.testing.assert_allclose(numbers(solver(x0=[5, 6, 7], ubx=0)["x"]), 0.0, atol=1e-6)
