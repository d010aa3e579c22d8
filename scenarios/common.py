"""What scenarios of equations share: how their methods run and how their answers are judged.

A scenario is a problem, a start and a table of :class:`Method` rows. Every method starts from the
same point and gets the same budget; IPOPT solves the same problem; every answer is judged by
:func:`casadi_hybrid.verify.verify`. The scenario fails, with exit code 1, when the answer of a
method that is marked ``required`` is not accepted or when one of the scenario's own checks fails.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
from reporting import TOL, Answer, progress
from scipy.linalg import solve_triangular
from solving import IPOPT, SLEQP, Peer

from casadi_hybrid import DesignError, Problem, Progress, Solver
from casadi_hybrid.control import OptimalControl, Solution
from casadi_hybrid.paper.iterations import Iteration
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.paper.rules import ScheduleRule
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.output.plotting import deviation
from casadi_hybrid.verify import run_ipopt, verify

AUTO = "hybrid (auto)"
"""Label of the default method."""


@dataclass(frozen=True)
class Method:
    """One row of a scenario's table.

    The method is a name of :data:`casadi_hybrid.METHODS`, with options, or an iteration object.
    """

    label: str
    method: str | Iteration
    options: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False


def equations(ocp: OptimalControl, units: Mapping[str, float] | None = None) -> Problem:
    """Return an optimal control problem without limits as one of equations.

    ``units`` are those of the rows, by the state that they are about; by default the rows are
    divided by the states' scales.
    """
    program = ocp.program

    def rows(name: str) -> Any:
        block = program.constraints[name]
        states = ocp.model.signals["state"] if name == "dynamics" else name.split()[1:]
        factor = block.scale / [[units[state]] for state in states] if units else block.scale**0
        return program.nlp["g"][block.where.tolist()] * factor.ravel(order="F")

    x, p, f = (program.nlp[key] for key in ("x", "p", "f"))
    return Problem(x=x, p=p, f=f, h={name: rows(name) for name in program.constraints},
                   name=ocp.name)  # fmt: skip


def named(ocp: OptimalControl, x: np.ndarray) -> Solution:
    """Return a point of :func:`equations` by name and in physical units."""
    program = ocp.program
    found = {"x": x, "lam_x": np.zeros(program.n), "lam_g": np.zeros(program.m)}
    return ocp.solution(program, found, {})


def solve(
    problem: Problem,
    method: Method,
    x0: Any,
    p: Any,
    *,
    max_iter: int,
    tol: float = TOL,
    **bounds: Any,
) -> Answer:
    """Solve to ``tol`` by one method, from zero multipliers, and judge the answer by ``TOL``.

    Further arguments are bounds of the solve; the verifier reads them from the result.
    """
    progress(f"{problem.name}: {method.label} ...")
    limits = {"tol": tol, "max_iter": max_iter, "max_time": 60.0, "divergence": 1e6}
    solver, noted = Solver(problem, method.method, **limits, **method.options), []

    def note(at: Progress) -> None:
        noted.append((at.residuals.feasibility, at.residuals.stationarity, at.x))

    result = solver.solve(x0, p, callback=note, **bounds)
    report = verify(problem, result, p=p, x0=x0, tol=TOL)
    # A History keeps every correction too: too many m×m matrices over 10⁴ iterations.
    names = "feasibility", "stationarity", "points"
    columns = map(np.array, zip(*noted, strict=True))
    course = SimpleNamespace(**dict(zip(names, columns, strict=True)))
    return Answer(method.label, report, result.stop.name, result.iterations, result.elapsed,
                  method.required, result, {"detail": result.detail}, course)  # fmt: skip


def solve_with_peer(problem: Problem, x0: Any, p: Any, peer: Peer = IPOPT) -> Answer:
    """Solve by a solver of the wheel with its own default tolerance."""
    progress(f"{problem.name}: {peer.label} ...")
    # Fresh symbols: the problem's own x may be a stack of several, which nlpsol does not take.
    kind = type(problem.x)
    x, q = kind.sym("x", problem.n), kind.sym("p", problem.n_p)
    f, c = problem.graph(x, q)
    solver = ca.nlpsol("peer", peer.plugin, {"x": x, "p": q, "f": f, "g": c}, dict(peer.options))
    began = time.perf_counter()
    answer = solver(x0=x0, p=p, lbg=0, ubg=0)
    seconds, stats = time.perf_counter() - began, solver.stats()
    status = str(stats["return_status"])
    # Where IPOPT refuses m > n, it leaves the count of its last problem behind.
    refused = status == "Not_Enough_Degrees_Of_Freedom"
    iterations = 0 if refused else int(stats.get("iter_count", -1))
    report = verify(problem, answer, p=p, tol=TOL)
    return Answer(peer.label, report, status, iterations, seconds)


def apart(trajectories: Iterable[np.ndarray]) -> float:
    """Return the largest distance of any points of trajectories."""
    first, *others = trajectories
    return max(float(deviation(points, first).max()) for points in others)


def references(problem: Problem, x0: Any, p: Any) -> list[Answer]:
    """Return the answers of IPOPT and of SLEQP, which CasADi's wheel for Linux on aarch64 has not.

    Between them is IPOPT's to the elastic form of a problem with m > n, which it refuses else.
    """
    peers = [peer for peer in (IPOPT, SLEQP) if ca.has_nlpsol(peer.plugin)]
    answers = [solve_with_peer(problem, x0, p, peer) for peer in peers]
    if problem.m > problem.n:
        found, label = run_ipopt(problem, x0, p), "IPOPT, elastic form"
        report = verify(problem, {"x": found.x, "lam_g": found.multipliers}, p=p, tol=TOL)
        answers.insert(1, Answer(label, report, found.status, found.iterations, found.elapsed))
    return answers


def row_space_rule(alpha: float, eta_x: float, eta_d: float, theta: float) -> ScheduleRule:
    """M_t = αR_t and D_t = η_d R_t in the metric R_t = (B_t B_tᵀ)⁻¹, split θ : 1 − θ.

    BᵀMB = α·(projector on range(Bᵀ)) whatever the condition of B, so the correction adds the same
    curvature in every direction that the constraints see, and the dual step D_t takes the same
    share of every residual. Needs full row rank, m ≤ n; uses first derivatives only.

    Args:
        alpha: curvature added on range(Bᵀ), in units of f per squared unit of x.
        eta_x: primal step, at most about 2/(‖H‖ + α).
        eta_d: dual step, below α.
        theta: share of the augmented channel; the iterates do not depend on it.
    """

    def decide(at: Evaluation, t: int) -> Correction:
        try:
            L = np.linalg.cholesky(at.B @ at.B.T)
        except np.linalg.LinAlgError:
            raise DesignError("BBᵀ is singular: the Jacobian has lost row rank") from None
        half = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
        R = half.T @ half
        return Correction((theta * alpha) * R, ((1 - theta) * alpha) * R, eta_x, eta_d * R)

    return ScheduleRule(decide)
