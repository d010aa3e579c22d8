"""Solving a program by the hybrid solver, by IPOPT and by peers, all judged in one way.

Every solver starts from the program's own start with zero multipliers. What it says of its own
success is shown but decides nothing: KKT residuals are recomputed from the program's functions,
and :func:`casadi_hybrid.verify.verify` gives the verdict.

All seconds are wall clock of one solve in this process, interpreted functions, without building
the functions or the solver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from program import Program
from reporting import TOL, Check, finish, progress, word
from stages import StagedSolver

from casadi_hybrid import nlpsol
from casadi_hybrid.verify import Report, verify


@dataclass(frozen=True)
class Peer:
    """A solver of the CasADi wheel with its settings."""

    label: str
    plugin: str
    options: Mapping[str, Any] = field(default_factory=dict)


_QUIET = {"print_time": False}
IPOPT = Peer(
    "IPOPT", "ipopt", {**_QUIET, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.max_iter": 2000}
)
SQP = Peer(
    "SQP (qrqp)",
    "sqpmethod",
    {
        **_QUIET,
        "qpsol": "qrqp",
        "qpsol_options": {"print_iter": False, "print_header": False, "error_on_fail": False},
        "print_header": False,
        "print_iteration": False,
        "print_status": False,
        "convexify_strategy": "regularize",
        "max_iter": 300,
        "tol_pr": 1e-8,
        "tol_du": 1e-8,
    },
)
SQP_CLIPPED = Peer(
    "SQP (piqp)",
    "sqpmethod",
    {
        **SQP.options,
        "qpsol": "piqp",
        "qpsol_options": {"error_on_fail": False},
        "convexify_strategy": "eigen-clip",
        "max_iter": 50,
    },
)
"""SQP for indefinite Hessians: negative eigenvalues are set to zero."""
SLEQP = Peer("SLEQP", "sleqp", {**_QUIET, "print_level": 0, "max_wall_time": 30.0})
FATROP = Peer("FATROP", "fatrop", {**_QUIET, "fatrop": {"print_level": 0, "tolerance": 1e-7}})
"""At its default tolerance of 1e-8 it often goes on to its limit without getting any nearer."""
UNO = Peer("Uno", "uno", {**_QUIET, "uno.logger": "SILENT"})


@dataclass(frozen=True)
class Answer:
    """What a solver returned for a program, and what it is worth.

    Attributes:
        label: the solver.
        x, lam_x, lam_g: the point and its multipliers, in the program's scaled unknowns.
        f: objective.
        stopped: the solver's own word for why it stopped.
        iterations, seconds: cost.
        build: seconds that building the solver and its derivatives took.
        report: the verdict of the verifier.
        history: the iterations' residuals, of the hybrid solver only.
    """

    program: Program = field(repr=False)
    label: str
    x: np.ndarray
    lam_x: np.ndarray
    lam_g: np.ndarray
    f: float
    stopped: str
    iterations: int
    seconds: float
    build: float
    report: Report = field(repr=False)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)
    detail: str = ""

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """The variables by name, in physical units."""
        return self.program.unpack(self.x)

    def row(self) -> dict[str, Any]:
        """Return the table row as plain values."""
        report = self.report
        return {
            "method": self.label,
            "stopped": self.stopped,
            "objective": self.f,
            "feasibility": report.feasibility.value,
            "stationarity": report.stationarity.value,
            "complementarity": report.complementarity.value,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "accepted": report.accepted,
            "verdict": word(report),
            "detail": self.detail,
        }


def make_solver(program: Program, peer: Peer | None = None, **options: Any) -> Any:
    """Return the hybrid solver (no peer) or CasADi's own for the peer, ready to be called."""
    nlp = dict(program.nlp)
    if peer is not None and peer.plugin == "fatrop":
        return StagedSolver(program, {**peer.options, **options})
    if peer is not None:
        return ca.nlpsol("peer", peer.plugin, nlp, {**peer.options, **options})
    names = {
        "constraint_names": program.constraint_names,
        "variable_names": program.variable_names,
    }
    return nlpsol("hybrid", "hybrid", nlp, {**names, **options})


def solve(program: Program, peer: Peer | None = None, **options: Any) -> Answer:
    """Solve from the program's start, cold, and judge the answer.

    Args:
        program: the problem with its numbers.
        peer: a solver of the wheel; none is the hybrid solver.
        **options: further options of the solver.
    """
    label = "hybrid" if peer is None else peer.label
    progress(f"{program.name}: {label} ...")
    started = time.perf_counter()
    solver = make_solver(program, peer, **options)
    began = time.perf_counter()
    found = solver(**program.arguments)
    seconds = time.perf_counter() - began
    stats = solver.stats()
    x, lam_x, lam_g = (found[key].full().ravel() for key in ("x", "lam_x", "lam_g"))
    return Answer(
        program,
        label,
        x,
        lam_x,
        lam_g,
        float(found["f"]),
        str(stats["return_status"]),
        int(stats.get("iter_count", -1)),
        seconds,
        began - started,
        judge(program, x, lam_x, lam_g),
        stats["iterations"] if peer is None else {},
        "" if peer is not None or stats["success"] else solver.explain(),
    )


def solve_with_all(program: Program, peers: Sequence[Peer] = (SQP,)) -> list[Answer]:
    """Return the answers of the hybrid solver, of IPOPT and of the peers, in this order."""
    answers = [solve(program), solve(program, IPOPT)]
    for peer in peers:
        try:
            answers.append(solve(program, peer))
        except RuntimeError as error:
            progress(f"{peer.label} raised: {str(error).splitlines()[-1]}")
    return answers


def finish_answers(
    arguments: argparse.Namespace, name: str, answers: Sequence[Answer], **rest: Any
) -> int:
    """Finish a scenario whose table has these answers to one program, the required one first."""
    ours = answers[0]
    size = (ours.program.n, ours.program.m)
    rows = [answer.row() for answer in answers]
    return finish(arguments, name, size, rows, {ours.label: ours.report}, **rest)


def judge(program: Program, x: np.ndarray, lam_x: np.ndarray, lam_g: np.ndarray) -> Report:
    """Ask the verifier about a point with the solver's own multipliers."""
    numbers = {key: value for key, value in program.arguments.items() if key != "x0"}
    return verify(
        dict(program.nlp),
        {"x": x, "lam_x": lam_x, "lam_g": lam_g},
        **numbers,
        tol=TOL,
        constraint_names=program.constraint_names,
        variable_names=program.variable_names,
        ipopt=False,
    )


def no_worse_than(ours: Answer, reference: Answer) -> Check:
    """The check that our objective is the reference's or better, relative to its size.

    A reference that is not a KKT point itself sets no bar.
    """
    excess = (ours.f - reference.f) / max(1.0, abs(reference.f))
    value = excess if reference.report.accepted else -np.inf
    return Check(f"objective above that of {reference.label}, relative", value, 1e-6)
