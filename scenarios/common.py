"""What every scenario shares: how its methods run and how their answers are judged.

A scenario is a problem, a start and a table of :class:`Method` rows. Every method starts from the
same point and gets the same budget; IPOPT solves the same problem; every answer is judged by
:func:`casadi_hybrid.verify.verify`. The scenario fails, with exit code 1, when the answer of a
method that is marked ``required`` is not accepted or when one of the scenario's own checks fails.

All seconds are wall clock of one solve in this process, interpreted functions, without building
the functions or the solver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from reporting import TOL, Check, finish, no_worse_than, progress, row_of
from scipy.linalg import solve_triangular
from solving import IPOPT, SLEQP, Named, Peer

from casadi_hybrid import DesignError, Problem, Progress, Result, Solver
from casadi_hybrid.basics.inputs import as_vector
from casadi_hybrid.control import OptimalControl
from casadi_hybrid.iterations import Iteration
from casadi_hybrid.iterations.law import Correction
from casadi_hybrid.iterations.rules import ScheduleRule
from casadi_hybrid.plotting import deviation
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.verify import Report, run_ipopt, verify

AUTO, LOOK_AHEAD = "hybrid (auto)", "hybrid: look-ahead"
"""Labels of the default method and of the look-ahead member of the family."""


@dataclass(frozen=True)
class Method:
    """One row of a scenario's table.

    The method is a name of :data:`casadi_hybrid.METHODS`, with options, or an iteration object. The
    scenario fails when the answer of a required one is not accepted.
    """

    label: str
    method: str | Iteration
    options: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False


@dataclass
class Trace:
    """The course of a solve, recorded through the solver's callback.

    A :class:`~casadi_hybrid.History` also keeps every correction, whose m×m matrices fill the
    memory over tens of thousands of iterations.
    """

    rows: list[tuple[float, float]] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    keep_points: bool = False

    def __call__(self, progress: Progress) -> None:
        """Record one iterate."""
        residuals = progress.residuals
        self.rows.append((residuals.feasibility, residuals.stationarity))
        if self.keep_points:
            self.points.append(progress.state.x)

    feasibility = property(lambda self: np.array([row[0] for row in self.rows]))
    stationarity = property(lambda self: np.array([row[1] for row in self.rows]))


@dataclass(frozen=True)
class Run:
    """A method with its answer, its course and the verdict on the answer."""

    method: Method
    result: Result
    trace: Trace
    report: Report
    problem: Problem = field(repr=False)
    p: Any = field(repr=False)

    @property
    def label(self) -> str:
        """That of the method."""
        return self.method.label

    @cached_property
    def at(self) -> Evaluation:
        """The problem's functions and both derivatives at the answer."""
        p = as_vector(self.p, self.problem.n_p, "p")
        return Oracle(self.problem.functions, p).second(self.result.x, self.result.lam_g)

    def row(self) -> dict[str, Any]:
        """Return the table row as plain values."""
        result = self.result
        return row_of(
            self.label,
            self.report,
            result.stop.name,
            result.iterations,
            result.elapsed,
            required=self.method.required,
            detail=result.detail,
        )


@dataclass(frozen=True)
class Reference:
    """A peer's answer to the same problem from the same start, judged by the same functions."""

    label: str
    report: Report
    row: dict[str, Any]

    @classmethod
    def of(cls, label: str, problem: Problem, p: Any, answer: Any, *told: Any) -> Reference:
        """Return it, judged, with what the peer told: its last word, iterations and seconds."""
        report = verify(problem, answer, p=p, tol=TOL)
        return cls(label, report, row_of(label, report, *told))


def equations(ocp: OptimalControl, units: Mapping[str, float] | None = None) -> Problem:
    """Return an optimal control problem without limits as one of equations.

    ``units`` are those of the rows, by the state that they are about; by default the rows are
    divided by the states' scales.
    """
    program = ocp.program

    def rows(name: str) -> Any:
        block = program.constraints[name]
        states = (
            ocp.model.signals["state"]
            if name == "dynamics"
            else [name.removeprefix("initial ").removeprefix("final ")]
        )
        factor = block.scale / [[units[state]] for state in states] if units else block.scale**0
        return program.nlp["g"][block.where.tolist()] * factor.ravel(order="F")

    x, p, f = (program.nlp[key] for key in ("x", "p", "f"))
    return Problem(x=x, p=p, f=f, h={name: rows(name) for name in program.constraints},
                   name=ocp.name)  # fmt: skip


def named(ocp: OptimalControl, label: str, x: np.ndarray) -> Named:
    """Return a point of :func:`equations` by name and in physical units."""
    program = ocp.program
    found = {"x": x, "lam_x": np.zeros(program.n), "lam_g": np.zeros(program.m)}
    return Named(label, ocp.solution(program, found, {}))


def solve(
    problem: Problem,
    method: Method,
    x0: Any,
    p: Any,
    *,
    max_iter: int,
    max_time: float = 60.0,
    keep_points: bool = False,
    tol: float = TOL,
    **bounds: Any,
) -> Run:
    """Solve to ``tol`` by one method, from zero multipliers, and judge the answer by ``TOL``.

    Further arguments are bounds of the solve; the verifier reads them from the result.
    """
    progress(f"{problem.name}: {method.label} ...")
    solver = Solver(
        problem,
        method.method,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        divergence=1e6,
        **method.options,
    )
    trace = Trace(keep_points=keep_points)
    result = solver.solve(x0, p, callback=trace, **bounds)
    report = verify(problem, result, p=p, x0=x0, tol=TOL)
    return Run(method, result, trace, report, problem, p)


def solve_with_peer(problem: Problem, x0: Any, p: Any, peer: Peer = IPOPT) -> Reference:
    """Solve by a solver of the wheel with its own default tolerance."""
    progress(f"{problem.name}: {peer.label} ...")
    # Fresh symbols: the problem's own x may be a stack of several, which nlpsol does not take.
    kind = type(problem.x)
    x, q = kind.sym("x", problem.n), kind.sym("p", problem.n_p)
    f, c = problem.graph(x, q)
    nlp = {"x": x, "p": q, "f": f, "g": c}
    solver = ca.nlpsol("reference", peer.plugin, nlp, dict(peer.options))
    began = time.perf_counter()
    answer = solver(x0=x0, p=p, lbg=0, ubg=0)
    seconds = time.perf_counter() - began
    stats = solver.stats()
    status = str(stats["return_status"])
    refused = status == "Not_Enough_Degrees_Of_Freedom"
    # Where IPOPT refuses m > n, it leaves the count of its last problem behind.
    iterations = 0 if refused else int(stats.get("iter_count", -1))
    return Reference.of(peer.label, problem, p, answer, status, iterations, seconds)


def apart(trajectories: Iterable[Any]) -> float:
    """Return the largest distance of any points of trajectories; those without any are left out."""
    first, *others = (np.array(points) for points in trajectories if len(points))
    return max(float(deviation(points, first).max()) for points in others)


def elastic(problem: Problem, x0: Any, p: Any) -> Reference:
    """Return IPOPT's answer to the elastic form of a problem, which it never refuses."""
    found = run_ipopt(problem, x0, p)
    answer = {"x": found.x, "lam_g": found.multipliers}
    told = found.status, found.iterations, found.elapsed
    return Reference.of("IPOPT, elastic form", problem, p, answer, *told)


def references(problem: Problem, x0: Any, p: Any, *, refused: bool = False) -> list[Reference]:
    """Return the answers of IPOPT and of SLEQP, between them IPOPT's where it has ``refused``.

    CasADi's wheel for Linux on aarch64 has no SLEQP.
    """
    peers = [peer for peer in (IPOPT, SLEQP) if ca.has_nlpsol(peer.plugin)]
    ipopt, *others = (solve_with_peer(problem, x0, p, peer) for peer in peers)
    return [ipopt, *([elastic(problem, x0, p)] if refused else []), *others]


def conclude(
    arguments: argparse.Namespace,
    problem: Problem,
    runs: Sequence[Run],
    peers: Sequence[Reference],
    *,
    checks: Sequence[Check] = (),
    **rest: Any,
) -> int:
    """Finish a scenario of runs and peers; the first run may be no worse than the first peer."""
    return finish(
        arguments,
        (problem.n, problem.m),
        [*(run.row() for run in runs), *(peer.row for peer in peers)],
        {run.method.label: run.report for run in runs if run.method.required},
        checks=[no_worse_than(runs[0], peers[0]), *checks],
        **rest,
    )


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
