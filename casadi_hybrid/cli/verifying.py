"""``casadi-hybrid verify``: solve and judge the user's problem, and compare with IPOPT."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from casadi_hybrid.cli.own import ANSWER, NAMES, TOGETHER, Own, read
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.solver import Solver
from casadi_hybrid.utils.output.text import show
from casadi_hybrid.utils.status import PointStatus
from casadi_hybrid.verify import verify

if TYPE_CHECKING:
    from casadi_hybrid.verify import Report

ACCEPTED, REJECTED, UNSOLVED = 0, 1, 3
# Name, objective, feasibility, stationarity, iterations, seconds, end: of fixed widths, so that the
# own answer is printed before IPOPT runs.
_ROW = "{:6}  {:13}  {:7}  {:8}  {:5}  {:8}  {}"
_HEADS = _ROW.format("", "objective", "feasib.", "station.", "iter.", "time (s)", "ended")


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "verify",
        help="solve and judge a problem of one's own, and hold it against IPOPT",
        description="Solve the problem that a file states, judge the answer by the problem's own "
        "functions, and run IPOPT from the answer and from the start. FILE.py has a Problem, "
        "CasADi's dictionary, a ca.Opti, an OptimalControl, a solver of nlpsol, or a function that "
        f"returns one, by the name of {', '.join(NAMES[:-1])} or {NAMES[-1]}, or by NAME; or in a "
        "tuple one of these and a dictionary of numbers, for an OptimalControl as its solve takes "
        f"them. The dictionary may be a variable {TOGETHER} beside it too; beside CasADi's or a "
        "solver the variables x0, p, lbx, ubx, lbg and ubg are read. "
        f"Where it has {ANSWER} (a point, or what a solver returned), that is judged as well. "
        f"Exit codes: {ACCEPTED} solved and accepted; {REJECTED} an answer is rejected; 2 wrong "
        f"input; {UNSOLVED} no solution was found (infeasible, unbounded, a limit).",
    )
    parser.add_argument(
        "problem", metavar="FILE", help="FILE.py, FILE.py:NAME, MODULE:NAME, or FILE.nl of AMPL"
    )
    parser.add_argument("--method", default="hybrid", help="of the solver (default hybrid)")
    parser.add_argument("--tol", type=float, help="of the solver and of the verdict (1e-6)")
    parser.add_argument("--max-iter", type=int, metavar="N", help="iterations at most")
    parser.add_argument("--no-ipopt", action="store_true", help="leave IPOPT out")
    parser.add_argument("--json", action="store_true", help="print result and verdict as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Solve and judge a problem; return the exit code of the outcome."""
    user = read(arguments.problem)
    solver = Solver(user.problem, arguments.method, tol=arguments.tol, max_iter=arguments.max_iter)
    numbers = dict(user.numbers)
    result = solver.solve(numbers.pop("x0", None), **numbers)
    if not arguments.json:
        ended = result.stop.name, result.f, result.residuals, result.iterations, result.elapsed
        show(f"{_HEADS}\n{_row('hybrid', *ended)}")
    report = _judged(user, result, arguments)
    answer = None if user.answer is None else _judged(user, user.answer, arguments)
    if arguments.json:
        verdict = None if answer is None else answer.to_dict()
        show("", {"result": _plain(result), "report": report.to_dict(), ANSWER: verdict})
    else:
        _show(result, report, answer)
    if answer is not None and not answer.accepted:
        return REJECTED
    if report.accepted:
        return ACCEPTED
    # A KKT point by the solver that the verifier rejects is a fault, another point is no solution.
    return REJECTED if result.point is PointStatus.KKT_POINT else UNSOLVED


def _plain(result: Result) -> dict[str, Any]:
    """Return the solver's statistics; the report has x, f and the residuals."""
    return {
        "stop": result.stop.name,
        "point": result.point.name,
        "iterations": result.iterations,
        "seconds": result.elapsed,
        "evaluations": dict(result.evaluations),
        "lam_x": result.lam_x.tolist(),
        "lam_g": result.lam_g.tolist(),
        "explanation": result.explain(),
    }


def _judged(user: Own, answer: Any, arguments: argparse.Namespace) -> Report:
    numbers = {k: v for k, v in user.numbers.items() if not k.startswith("lam_")}
    start = user.problem.numbers(numbers.pop("x0", None), numbers.get("p")).x0
    # x0 lets IPOPT run from the start of the solve too.
    numbers |= {"x0": start, "tol": arguments.tol or 1e-6, "ipopt": not arguments.no_ipopt}
    return verify(user.stated or user.problem, answer, **numbers)


def _show(result: Result, report: Report, answer: Report | None) -> None:
    ipopt = report.reference
    if ipopt is not None:
        at = ipopt.conditions
        measures = at and (ipopt.f, at.residuals, ipopt.iterations, ipopt.elapsed)
        show(_row("IPOPT", ipopt.status, *(measures or (None,) * 4)))
    if answer is not None:
        show(_row(ANSWER, "given", answer.f, answer, None, None))
    show(f"\n{report}")
    if answer is not None:
        show(f"\nthe {ANSWER} of the file:\n{answer}")
    if result.point is not PointStatus.KKT_POINT:
        show(f"\n{result.explain()}")


def _row(name: str, ended: str, f: Any, residuals: Any, iterations: Any, seconds: Any) -> str:
    measures = [getattr(residuals, key, None) for key in ("feasibility", "stationarity")]
    # A report has measures, a result numbers.
    values = (f, *(getattr(measure, "value", measure) for measure in measures), iterations, seconds)
    forms = (".8g", ".1e", ".1e", "d", ".2g")
    shown = ("" if v is None else f"{v:{form}}" for v, form in zip(values, forms, strict=True))
    return _ROW.format(name, *shown, ended)
