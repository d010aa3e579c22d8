"""Derivatives through integrators of a DAE: right here also where CasADi gets them wrong."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, solution_sensitivity
from casadi_hybrid.problem.graph import directions

RIGHT = pytest.mark.skipif(directions.BEFORE_3_8, reason="CasADi 3.7 gets them wrong")
STEPS = 10  # more directions at once than CasADi gets right here, which are 8


def chain(algebraic: bool, *, of_z: bool = False) -> dict[str, Any]:
    """ẋ = z·x − x + u in steps, z = x²: as a DAE or with z put in; rows on the last z, or none."""
    x, z, u = ca.SX.sym("x"), ca.SX.sym("z"), ca.SX.sym("u")
    dae = {"x": x, "p": u, "quad": x**2 + u**2}
    if algebraic:
        dae |= {"z": z, "ode": z * x - x + u, "alg": x**2 - z}
    else:
        dae |= {"ode": x**3 - x + u}
    options = {"number_of_finite_elements": 1, "interpolation_order": 2}
    step = ca.integrator("step", "collocation", dae, 0.0, 0.1, options)
    U, P = ca.MX.sym("U", STEPS), ca.MX.sym("P", 2)
    X, cost, last = P[0], P[1] * ca.sumsqr(U), []
    for k in range(STEPS):
        made = step(x0=X, p=U[k])
        X, cost = made["xf"], cost + made["qf"]
        last.append(made["zf"] if algebraic else X**2)
    rows = [*last[-2:], X] if of_z else [X]
    return {"x": U, "p": P, "f": cost, "g": ca.vertcat(*rows)}


@pytest.mark.parametrize("of_z", [False, pytest.param(True, marks=RIGHT)])
def test_dae_derivatives_match_the_ode(of_z: bool) -> None:
    before = ca.GlobalOptions.getMaxNumDir()
    with_z, without = (Problem.from_nlp(chain(z, of_z=of_z)).functions for z in (True, False))
    assert ca.GlobalOptions.getMaxNumDir() == before
    point, p = np.linspace(-0.5, 0.5, STEPS), [0.8, 0.1]
    lam = np.arange(1.0, with_z.second.size1_in("lam") + 1.0)
    outputs, expected = (functions.second(point, lam, p) for functions in (with_z, without))
    for ours, theirs in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=0, atol=1e-9)


@RIGHT
def test_dae_solution_matches_the_ode() -> None:
    points, slopes = [], []
    for algebraic in (True, False):
        problem = Problem.from_nlp(chain(algebraic, of_z=algebraic), lbx=-1, ubx=1)
        free = {"lbg": [-ca.inf, -ca.inf, 0.1], "ubg": [ca.inf, ca.inf, 0.1]}
        rows = free if algebraic else {"lbg": 0.1, "ubg": 0.1}
        result = Solver(problem).solve(np.zeros(STEPS), [0.8, 0.1], **rows)
        assert result.success
        assert result.hessian == "exact"
        points.append(result.x)
        slopes.append(solution_sensitivity(problem, result)["jac_x_p"])
    np.testing.assert_allclose(*points, rtol=0, atol=1e-7)
    np.testing.assert_allclose(*slopes, rtol=0, atol=1e-6)


def test_older_casadi_refuses_zf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directions, "BEFORE_3_8", True)
    with pytest.raises(InputError, match=r"zf .* update CasADi"):
        _ = Problem.from_nlp(chain(True, of_z=True)).functions
    assert Problem.from_nlp(chain(True)).functions is not None
