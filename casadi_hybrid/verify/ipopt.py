"""IPOPT (Wächter and Biegler, 2006) as a second opinion, through ``casadi.nlpsol``.

IPOPT rejects problems with more equations than variables. They are passed in the L1-elastic form

    min f(x) + ρ Σ(s⁺ + s⁻)   subject to   h(x) = s⁺ − s⁻,   s⁺, s⁻ ≥ 0,

which has the same solutions if ρ exceeds the largest multiplier. ρ is raised until h vanishes.
Inequalities have no slacks. IPOPT's return status is recorded and not used: the problem's own
functions judge every answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.face import Faces, Instance
from casadi_hybrid.verify.first_order.kkt import FirstOrder, first_order
from casadi_hybrid.verify.first_order.rows import Indices
from casadi_hybrid.verify.point import read_problem

Warm = tuple[Vector, Vector] | None
# First penalty ρ, its factor, and how often it is raised.
RHO = 10.0
RAISE = 10.0
RAISES = 6
VANISHED = 1e-8  # scaled ‖h‖_∞ at which the slacks of the elastic form have vanished
SOLVED = 1e-6  # scaled residuals of a KKT point; above, the elastic form is tried too

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
# IPOPT moves a start off its bounds by these; a warm start is to stay.
PUSHES = "bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push"
WARM = {f"warm_start_{name}": 1e-10 for name in PUSHES} | {
    "warm_start_init_point": "yes",
    "mu_init": 1e-10,
}
# Return statuses of IPOPT without a run.
NO_RUN = (
    *("Not_Enough_Degrees_Of_Freedom", "Invalid_Number_Detected", "Invalid_Problem_Definition"),
    *("Invalid_Option", "Unrecoverable_Exception", "NonIpopt_Exception_Thrown"),
    *("Insufficient_Memory", "Internal_Error"),
)


@dataclass(frozen=True, eq=False)
class IpoptRun:
    """The end of an IPOPT run, judged by the problem's own functions.

    Attributes:
        x, f: the last point and the objective there.
        multipliers: IPOPT's multipliers of the constraints, L = f + lam_gᵀg + lam_xᵀx.
        conditions: first-order conditions at x with fitted multipliers, and as ``given`` with
            IPOPT's. None when it did not run or its point is not finite.
        rho: last penalty of the elastic form, None for the plain form.
        raises: number of increases of ρ.
        status: IPOPT's return status.
        iterations: number of iterations of the last run.
        elapsed: seconds of all runs, without building the solvers.
        lam_x: IPOPT's multipliers of the bounds.
    """

    x: Vector
    f: float
    multipliers: Vector
    conditions: FirstOrder | None
    rho: float | None
    raises: int
    status: str
    iterations: int
    elapsed: float
    lam_x: Vector

    def __post_init__(self) -> None:
        for array in (self.x, self.multipliers, self.lam_x):
            array.setflags(write=False)

    @property
    def form(self) -> str:
        """``"plain"`` or ``"elastic"``."""
        return "plain" if self.rho is None else "elastic"

    @property
    def merit(self) -> float:
        """The larger scaled first-order residual; infinite without one."""
        if self.conditions is None:
            return np.inf
        # The first two are feasibility and stationarity.
        merit = np.max([measure.scaled for measure in self.conditions.residuals[:2]])
        return float(merit) if np.isfinite(merit) else np.inf


def run_ipopt(
    problem: Problem | Mapping[str, Any], x0: Vector, p: Vector, multipliers: Vector | None = None
) -> IpoptRun:
    """Run IPOPT from a start, or warm with multipliers lam_g, with the problem's own bounds."""
    problem = read_problem(problem)
    warm = None if multipliers is None else (np.zeros(problem.n), multipliers)
    return ask_ipopt(Instance(problem, Evaluator(problem, p), problem.bounds), x0, warm)


def ask_ipopt(instance: Instance, x0: Vector, warm: Warm = None) -> IpoptRun:
    """Run IPOPT from a start; (lam_x, lam_g) make it a warm start from a supposed solution."""
    equations = np.flatnonzero(instance.bounds.lbg == instance.bounds.ubg)
    plain = None
    # IPOPT rejects more equations than variables; then only the elastic form is left.
    if equations.size <= x0.size:
        plain = _run(instance, equations[:0], x0, warm)
        if plain.merit <= SOLVED or equations.size == 0:
            return plain
    # The elastic form may succeed if the plain answer is no KKT point: the better one counts.
    elastic = _run(instance, equations, x0, warm)
    if plain is None:
        return elastic
    elapsed = plain.elapsed + elastic.elapsed
    return replace(elastic, elapsed=elapsed) if elastic.merit < plain.merit else plain


def _run(instance: Instance, elastic: Indices, x0: Vector, warm: Warm) -> IpoptRun:
    """Run IPOPT with slacks in the equations ``elastic``; in the plain form if there are none."""
    x, p, f, g = _symbols(instance)
    bounds, parameters, kind = instance.bounds, instance.evaluator.p, type(x)
    m, k = bounds.lbg.size, elastic.size
    up, down, rho = kind.sym("up", k), kind.sym("down", k), kind.sym("rho")
    nlp = {"x": x, "p": ca.vertcat(p, rho), "f": f, "g": g}
    h0 = np.zeros(k)
    if k:
        # Start with s⁺ − s⁻ = h(x0), so that the elastic equations hold.
        g0 = np.asarray(instance.problem.graph(x0, parameters)[1].full()).ravel()[elastic]
        h0 = np.nan_to_num(g0, posinf=0.0, neginf=0.0) - bounds.lbg[elastic]
        pick = ca.DM.triplet(elastic.tolist(), list(range(k)), ca.DM.ones(k), m, k)
        nlp["x"] = ca.vertcat(x, up, down)
        nlp["f"] = f + rho * (ca.sum1(up) + ca.sum1(down))
        nlp["g"] = g + ca.mtimes(pick, down - up)
    settings = COLD | (WARM if warm else {})
    if instance.problem.functions.hessian != EXACT:
        settings["hessian_approximation"] = "limited-memory"
    options = {f"ipopt.{name}": value for name, value in settings.items()}
    options |= {"print_time": False, "show_eval_warnings": False, "calc_lam_p": False}
    solver = ca.nlpsol("reference", "ipopt", nlp, options)
    lam_x, lam_g = warm or (np.zeros(x0.size), np.zeros(m))
    lam = lam_g[elastic]
    arguments = {
        "x0": np.concatenate((x0, np.maximum(h0, 0.0), np.maximum(-h0, 0.0))),
        "lbx": np.concatenate((bounds.lbx, np.zeros(2 * k))),
        "ubx": np.concatenate((bounds.ubx, np.full(2 * k, np.inf))),
        "lbg": bounds.lbg,
        "ubg": bounds.ubg,
        "lam_g0": lam_g,
    }
    # The L1 penalty is exact for ρ > ‖λ‖_∞ (Nocedal and Wright, theorem 17.3).
    weight = max(RHO, 2 * float(np.abs(lam).max(initial=0.0)))
    elapsed = 0.0
    for raises in range(RAISES + 1):
        # From ρ ∓ λ + lam = 0, CasADi's multiplier of s± ≥ 0 is ±λ − ρ ≤ 0.
        lam_x0 = np.concatenate((lam_x, lam - weight, -lam - weight))
        began = time.perf_counter()
        answer = solver(p=np.append(parameters, weight), lam_x0=lam_x0, **arguments)
        elapsed += time.perf_counter() - began
        run = _judge(instance, answer, solver, elapsed, weight if k else None, raises)
        # A nonzero slack has its multiplier at ±ρ.
        exact = np.abs(run.multipliers[elastic]).max(initial=0.0) < 0.999 * weight
        vanished = run.conditions and run.conditions.residuals.feasibility.scaled <= VANISHED
        if not k or (exact and vanished):
            break
        weight *= RAISE
    return run


def _symbols(instance: Instance) -> tuple[Any, Any, Any, Any]:
    """Return x, p, f and g on fresh symbols: the problem's own x may be a stack of several."""
    graph = instance.problem.differentiable_graph
    inline = graph is instance.problem.graph  # else derivatives belong to the call
    kind = type(instance.problem.x) if inline else ca.MX
    x, p = (kind.sym(name, graph.numel_in(i)) for i, name in enumerate("xp"))
    f, g = graph.call([x, p], inline, not inline)
    return x, p, f, g


def _judge(
    instance: Instance, answer: Any, solver: Any, elapsed: float, rho: float | None, raises: int
) -> IpoptRun:
    stats, n = solver.stats(), instance.problem.n
    status = str(stats["return_status"])
    x, lam_x, lam_g = (answer[name].full().ravel() for name in ("x", "lam_x", "lam_g"))
    x, lam_x = x[:n], lam_x[:n]
    f, conditions = np.nan, None
    if status not in NO_RUN and np.isfinite(x).all():
        with suppress(EvaluationError):
            faces = Faces(instance, x)
            f, conditions = faces.rows.f, first_order(faces, (lam_x, lam_g))
    # IPOPT does not set the count if it rejects the start.
    iterations = 0 if status in NO_RUN else int(stats["iter_count"])
    return IpoptRun(x, f, lam_g, conditions, rho, raises, status, iterations, elapsed, lam_x)
