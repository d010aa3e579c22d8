"""IPOPT (Wächter and Biegler, 2006) as a second opinion, through ``casadi.nlpsol``.

IPOPT refuses problems with more equalities than variables. They are given to it in the L1-elastic
form

    min f(x) + ρ Σ(s⁺ + s⁻)   subject to   h(x) = s⁺ − s⁻,   s⁺, s⁻ ≥ 0,

which has the same solutions once ρ exceeds the largest multiplier. ρ is raised until h vanishes.
What IPOPT says of its own success is recorded and never used: every answer is judged by the
problem's own functions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.problem import Problem
from casadi_hybrid.verify.kkt import FirstOrder, first_order

RHO = 10.0
RAISE = 10.0
RAISES = 6
VANISHED = 1e-8
"""Scaled ‖h‖_∞ at which the slacks of the elastic form have vanished."""
SOLVED = 1e-6
"""Scaled residuals above this are no KKT point, and the elastic form is tried too."""

COLD: dict[str, Any] = {
    "tol": 1e-10,
    "constr_viol_tol": 1e-10,
    "compl_inf_tol": 1e-10,
    # An "acceptable" point is a looser test that would end the run early.
    "acceptable_iter": 0,
    # Relaxed bounds would let the slacks of the elastic form be negative.
    "bound_relax_factor": 0.0,
    "max_iter": 500,
    "print_level": 0,
    "sb": "yes",
}
WARM: dict[str, Any] = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-10,
    "warm_start_bound_frac": 1e-10,
    "warm_start_slack_bound_push": 1e-10,
    "warm_start_slack_bound_frac": 1e-10,
    "warm_start_mult_bound_push": 1e-10,
    "mu_init": 1e-10,
}
# IPOPT's words for "there was no run".
NO_RUN = (
    "Not_Enough_Degrees_Of_Freedom",
    "Invalid_Number_Detected",
    "Invalid_Problem_Definition",
    "Invalid_Option",
    "Unrecoverable_Exception",
    "NonIpopt_Exception_Thrown",
    "Insufficient_Memory",
    "Internal_Error",
)


@dataclass(frozen=True, eq=False)
class IpoptRun:
    """Where IPOPT ended, judged by the problem's own functions.

    Attributes:
        x, f: its point and the objective there.
        multipliers: its own multipliers λ of h, L = f + λᵀh.
        conditions: first-order conditions at x with fitted multipliers; ``conditions.given``
            judges IPOPT's own. None when it did not run or its point is not finite.
        form: ``"plain"`` or ``"elastic"``.
        rho: last penalty of the elastic form, None for the plain form.
        raises: how often ρ was raised.
        status: IPOPT's own word.
        iterations: of the last run.
        elapsed: seconds, with all runs.
    """

    x: Vector
    f: float
    multipliers: Vector
    conditions: FirstOrder | None
    form: str
    rho: float | None
    raises: int
    status: str
    iterations: int
    elapsed: float

    def __post_init__(self) -> None:
        for array in (self.x, self.multipliers):
            array.setflags(write=False)

    @property
    def merit(self) -> float:
        """The larger scaled first-order residual, infinite where there is none."""
        if self.conditions is None:
            return np.inf
        merit = max(self.conditions.feasibility.scaled, self.conditions.stationarity.scaled)
        return merit if np.isfinite(merit) else np.inf


def run_ipopt(
    problem: Problem, x0: Vector, p: Vector, multipliers: Vector | None = None
) -> IpoptRun:
    """Run IPOPT from a start.

    The plain form is tried where IPOPT takes it (m ≤ n). The elastic form follows where it does
    not, or where the plain answer is no KKT point; then the better of the two is returned.

    Args:
        problem: the problem.
        x0: start.
        p: parameter values.
        multipliers: given, they make this a warm start from a supposed solution.
    """
    began = time.perf_counter()
    plain = _plain(problem, x0, p, multipliers, began) if problem.m <= problem.n else None
    if plain is not None and plain.merit <= SOLVED:
        return plain
    elastic = _elastic(problem, x0, p, multipliers, began)
    return elastic if plain is None or elastic.merit < plain.merit else plain


def _plain(
    problem: Problem, x0: Vector, p: Vector, multipliers: Vector | None, began: float
) -> IpoptRun:
    x, q, f, h = _graph(problem)
    solver = _nlpsol({"x": x, "p": q, "f": f, "g": h}, warm=multipliers is not None)
    lam = np.zeros(problem.m) if multipliers is None else multipliers
    answer = _call(solver, x0=x0, p=p, lbg=0, ubg=0, lam_g0=lam)
    return _judge(problem, p, answer, solver, began, "plain", None, 0)


def _elastic(
    problem: Problem, x0: Vector, p: Vector, multipliers: Vector | None, began: float
) -> IpoptRun:
    x, q, f, h = _graph(problem)
    n, m = problem.n, problem.m
    up, down, rho = (type(x).sym(name, size) for name, size in (("up", m), ("down", m), ("r", 1)))
    nlp = {
        "x": ca.vertcat(x, up, down),
        "p": ca.vertcat(q, rho),
        "f": f + rho * (ca.sum1(up) + ca.sum1(down)),
        "g": h - up + down,
    }
    solver = _nlpsol(nlp, warm=multipliers is not None)
    lam = np.zeros(m) if multipliers is None else multipliers
    h0 = np.nan_to_num(problem.functions.residual(x0, p).full().ravel(), posinf=0.0, neginf=0.0)
    start = np.concatenate((x0, np.maximum(h0, 0.0), np.maximum(-h0, 0.0)))
    lower = np.concatenate((np.full(n, -np.inf), np.zeros(2 * m)))
    weight = max(RHO, 2 * float(np.abs(lam).max()))
    for raises in range(RAISES + 1):
        # Stationarity in s: λ ∓ ρ is CasADi's multiplier of s± ≥ 0, which is not positive.
        bounds = np.concatenate((np.zeros(n), lam - weight, -lam - weight))
        values = np.append(p, weight)
        answer = _call(
            solver, x0=start, p=values, lbx=lower, lbg=0, ubg=0, lam_g0=lam, lam_x0=bounds
        )
        run = _judge(problem, p, answer, solver, began, "elastic", weight, raises)
        # A slack that is not zero has its multiplier at ±ρ.
        exact = np.abs(run.multipliers).max() < 0.999 * weight
        there = run.conditions
        if exact and there is not None and there.feasibility.scaled <= VANISHED:
            break
        weight *= RAISE
    return run


def _graph(problem: Problem) -> tuple[Any, Any, Any, Any]:
    """f and h on fresh symbols: the problem's own x may be a stack of several."""
    kind: Any = type(problem.x)
    graph = ca.Function("graph", [problem.x, problem.p], [problem.f, problem.h])
    x, p = kind.sym("x", problem.n), kind.sym("p", problem.n_p)
    f, h = graph.call([x, p], True, False)
    return x, p, f, h


def _nlpsol(nlp: dict[str, Any], *, warm: bool) -> Any:
    settings = {**COLD, **WARM} if warm else COLD
    options = {f"ipopt.{name}": value for name, value in settings.items()}
    options |= {"print_time": False, "show_eval_warnings": False, "calc_lam_p": False}
    return ca.nlpsol("reference", "ipopt", nlp, options)


def _call(solver: Any, **arguments: Any) -> dict[str, Vector]:
    answer = solver(**arguments)
    return {name: np.asarray(answer[name].full()).ravel() for name in ("x", "lam_g")}


def _judge(
    problem: Problem,
    p: Vector,
    answer: dict[str, Vector],
    solver: Any,
    began: float,
    form: str,
    rho: float | None,
    raises: int,
) -> IpoptRun:
    stats = solver.stats()
    status = str(stats["return_status"])
    x, multipliers = answer["x"][: problem.n], answer["lam_g"]
    f, conditions = np.nan, None
    if status not in NO_RUN and np.isfinite(x).all():
        try:
            oracle = Oracle(problem.functions, p)
            at = oracle.first(x)
            f, conditions = at.f, first_order(oracle, at, multipliers)
        except EvaluationError:
            pass
    # The count is not set when IPOPT refuses to start.
    iterations = 0 if status in NO_RUN else int(stats["iter_count"])
    elapsed = time.perf_counter() - began
    return IpoptRun(x, f, multipliers, conditions, form, rho, raises, status, iterations, elapsed)
