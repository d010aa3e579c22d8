"""A function of the user that fails in the middle of a solve is reported, wherever it runs."""

from __future__ import annotations

import casadi as ca
import pytest

import casadi_hybrid as hy


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_an_integrator_that_fails_midway_is_reported_by_its_name(kind: type) -> None:
    """x' = x² from x0 ends at x0 / (1 − x0); the solver is drawn to where it has no end."""
    y = ca.SX.sym("y")
    options = {"show_eval_warnings": False, "max_num_steps": 60, "print_stats": False}
    flow = ca.integrator("flow", "cvodes", {"x": y, "ode": y**2}, 0.0, 1.0, options)
    x = kind.sym("x")
    end = flow.call([x, *([kind(0, 1)] * (flow.n_in() - 1))])[0]
    solver = hy.nlpsol("solver", "hybrid", {"x": x, "f": -end})
    with pytest.raises(RuntimeError, match="flow"):
        solver(x0=0.2)
