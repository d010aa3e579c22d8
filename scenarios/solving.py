"""Solving an optimal control problem by the hybrid solver, by IPOPT and by peers, judged alike.

Every solver gets the same program and starts from the same point with zero multipliers. What it
says of its own success is shown but decides nothing: KKT residuals are recomputed from the
program's functions, and :func:`casadi_hybrid.verify.verify` gives the verdict.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import casadi as ca
import numpy as np
from reporting import TOL, Answer, Check, finish, no_worse_than, progress

from casadi_hybrid import Problem, nlpsol
from casadi_hybrid.control import OptimalControl, Program, Solution
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
STRICT = Peer("IPOPT", "ipopt", {**IPOPT.options, "ipopt.bound_relax_factor": 0.0})
"""IPOPT without its widening of bounds, which alone leaves KKT residuals of 1e-6, and which the
price of a hundred limits at once rewards."""
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


def make_solver(program: Program, peer: Peer | None = None) -> Any:
    """Return the hybrid solver (no peer) or CasADi's own for the peer, ready to be called."""
    if peer is None:
        return nlpsol("hybrid", "hybrid", problem_of(program))
    options = dict(peer.options)
    if peer.plugin == "fatrop":  # a program of multiple shooting has its order, by stages
        equality = (program.lbg == program.ubg).tolist()
        options |= {"structure_detection": "auto", "equality": equality}
    return ca.nlpsol("peer", peer.plugin, dict(program.nlp), options)


_PROBLEMS: dict[int, tuple[Mapping[str, Any], Problem]] = {}


def problem_of(program: Program) -> Problem:
    """Return the program's functions, built once for our solver and for all verdicts."""
    nlp, place = program.nlp, id(program.nlp)
    if place not in _PROBLEMS:
        names = {key: getattr(program, key) for key in ("constraint_names", "variable_names")}
        _PROBLEMS[place] = nlp, Problem.from_nlp(dict(nlp), name=program.name, **names)
    return _PROBLEMS[place][1]


def stopped(stats: Mapping[str, Any]) -> str:
    """Return a solver's word for why it stopped, also where FATROP has a number."""
    status = stats["return_status"]
    return status if isinstance(status, str) else str(stats["unified_return_status"])


def solve(ocp: OptimalControl, peer: Peer | None = None, **numbers: Any) -> Answer:
    """Solve cold by the hybrid solver (no peer) or a solver of the wheel, and judge the answer.

    ``numbers`` are those of :meth:`casadi_hybrid.control.OptimalControl.numbers`.
    """
    label = "hybrid" if peer is None else peer.label
    progress(f"{ocp.name}: {label} ...")
    program = ocp.numbers(**numbers)
    started = time.perf_counter()
    solver = make_solver(program, peer)
    ends = [time.perf_counter()]
    for _ in range(2 if peer is None else 1):
        found = solver(**program.arguments)
        ends.append(time.perf_counter())
    build, first, *_ = seconds = np.diff([started, *ends])
    stats = solver.stats()
    wrong = "" if peer is not None or stats["success"] else solver.explain()
    solution = ocp.solution(program, found, stats, wrong)
    report = judge(solution)
    more = {"complementarity": report.complementarity.value, "build": build, "first": first,
            "detail": solution.explanation}  # fmt: skip
    iterations = int(stats.get("iter_count", -1))
    return Answer(
        label, report, stopped(stats), iterations, seconds[-1], peer is None, solution, more
    )


def solve_with_all(
    ocp: OptimalControl, *peers: Peer, short: bool = False, **numbers: Any
) -> list[Answer]:
    """Return the answers of the hybrid solver, of IPOPT and, unless short, of the peers."""
    answers = [solve(ocp, **numbers), solve(ocp, IPOPT, **numbers)]
    for peer in () if short else peers:
        try:
            answers.append(solve(ocp, peer, **numbers))
        except RuntimeError as error:
            progress(f"{peer.label} raised: {str(error).splitlines()[-1]}")
    return answers


def finish_answers(
    arguments: argparse.Namespace,
    *groups: Sequence[Answer],
    others: Sequence[Answer] = (),
    checks: Sequence[Check] = (),
    facts: Mapping[str, Any] | None = None,
    **rest: Any,
) -> int:
    """Finish a scenario whose table has these answers, a group for each problem.

    A group has ours, IPOPT's and those of the peers. The scenario fails when ours is not accepted
    or worse than IPOPT's. ``others`` are shown and required of nobody.
    """
    alone, facts = len(groups) == 1, dict(facts or {})
    if alone:
        ours, ipopt, *_ = (answer.solution.x for answer in groups[0])  # in scaled unknowns
        facts["distance to IPOPT's point"] = float(np.abs(ours - ipopt).max())
    else:
        *groups, others = ([replace(a, label=f"{a.solution.ocp.name}: {a.label}") for a in group]
                           for group in (*groups, others))  # fmt: skip
    for ours, *_ in groups:
        solution = ours.solution
        parts = getattr(solution, "parts", {"" if alone else solution.ocp.name: solution})
        for part, of_part in parts.items():
            facts[f"{part} between the grid points".strip()] = str(of_part.violation())
    program = max((group[0].solution.program for group in groups), key=lambda program: program.n)
    return finish(
        arguments,
        (program.n, program.m),
        [*chain(*groups), *(replace(answer, required=False) for answer in others)],
        checks=[*(no_worse_than(*group[:2]) for group in groups), *checks],
        facts=facts,
        **rest,
    )


def judge(solution: Solution) -> Report:
    """Ask the verifier about a point with the solver's own multipliers."""
    program = solution.program
    return verify(problem_of(program), solution, **program.arguments, tol=TOL, ipopt=False)
