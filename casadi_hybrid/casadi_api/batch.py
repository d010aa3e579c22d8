"""Many solves by one call: over threads where the engine in C does them, else one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import count, real_array
from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.basics.parallel import available_cores
from casadi_hybrid.casadi_api.convention import (
    INPUTS,
    OUTPUTS,
    check_columns,
    each_solve,
    solves_in,
)
from casadi_hybrid.casadi_api.rows import Runs, doubtful, numbers_in_rows, sides_of
from casadi_hybrid.casadi_api.run import Run
from casadi_hybrid.casadi_api.runner import Runner
from casadi_hybrid.engine.batch import Rows, Workers
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.problem.columns import as_column
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.result.result import Result
from casadi_hybrid.session.start import read_start


@dataclass(frozen=True, slots=True)
class Batch:
    """Many solves: their answers side by side, and the result of each.

    Attributes:
        x, f, g, lam_x, lam_g, lam_p: as a solve gives them, in one array each: column k is of
            solve k. Of an x or p that is a matrix of w columns w columns are.
        success: of each whether x is a KKT point within the tolerance.
    """

    x: NDArray[np.float64]
    f: NDArray[np.float64]
    g: NDArray[np.float64]
    lam_x: NDArray[np.float64]
    lam_g: NDArray[np.float64]
    lam_p: NDArray[np.float64]
    success: NDArray[np.bool_]
    _runs: Sequence[Run]

    def __len__(self) -> int:
        return len(self._runs)

    def run(self, k: int) -> Run:
        """The run of solve k."""
        return self._runs[k]

    def result(self, k: int) -> Result:
        """The result of solve k, with residuals, both statuses and ``explain()``."""
        return self._runs[k].result

    def stats(self, k: int) -> dict[str, Any]:
        """The statistics of solve k, under CasADi's keys."""
        return self._runs[k].stats

    def outputs(self) -> dict[str, ca.DM]:
        """The six matrices by their names, as CasADi has them."""
        return {name: ca.DM(getattr(self, name)) for name in OUTPUTS}


def solve_many(
    runner: Runner,
    given: Mapping[str, Any],
    solves: Sequence[int],
    warm: Sequence[Result | None],
    threads: int | None = None,
) -> Batch:
    """Solve as often as the arguments have numbers for; a solve that fails harms no other.

    Args:
        runner: of the solver.
        given: the arguments by CasADi's names, None for what was left out.
        solves: of each argument how many solves it has numbers for.
        warm: of each solve the result that it starts from, or None.
        threads: at most so many; None for as many as there are cores.

    Raises:
        InputError: for bad numbers of any solve, before the first.
    """
    problem = runner.problem
    for k, known in enumerate(warm):
        if known is not None and (k == 0 or known is not warm[k - 1]):
            _checked(runner, dict.fromkeys(("x0", "lam_x0", "lam_g0")), k, warm)
    if runner.in_threads:
        return _over_threads(runner, given, solves, warm, threads or available_cores())
    columns, runs = [], []
    numbers = [
        _checked(runner, {**one, "p": as_column(_p(runner, one), problem.shapes.get("p"))}, k, warm)
        for k, one in enumerate(each_solve(given, solves, len(warm)))
    ]
    for one, start in zip(numbers, warm, strict=True):
        outputs, run = _alone(runner, one, start)
        runs.append(run)
        columns.append(outputs)
    success = np.array([run.result.success for run in runs])
    beside = {name: np.hstack([each[name].full() for each in columns]) for name in OUTPUTS}
    for array in beside.values():
        array.setflags(write=False)
    return Batch(**beside, success=success, _runs=runs)


def batch_of(
    runner: Runner,
    shapes: Mapping[str, tuple[int, int]],
    arguments: Mapping[str, Any],
    warm_start: Result | Sequence[Result | None] | None,
    threads: int | None,
) -> Batch:
    """What :meth:`~casadi_hybrid.casadi_api.solver.NlpSolver.batch` returns.

    Raises:
        InputError: for bad numbers of any solve, an unknown argument, or symbols.
    """
    for word, value in arguments.items():
        if word not in INPUTS:
            raise InputError(f"unknown argument {word!r}{suggest(word, INPUTS)}")
        if isinstance(value, ca.SX | ca.MX):
            raise InputError(f"{word} is a symbol, and a batch is for numbers; see solver.map")
    if threads is not None:
        threads = count(threads, "threads", at_least=1)
    given = {name: arguments.get(name) for name in INPUTS}
    solves = [1 if v is None else solves_in(v, shapes[name]) for name, v in given.items()]
    most = max(solves)
    if warm_start is None or isinstance(warm_start, Result):
        return solve_many(runner, given, solves, [warm_start] * most, threads)
    warm = list(warm_start)
    if most not in (1, len(warm)) or not warm:
        raise InputError(f"warm_start has {len(warm)} results, the arguments {most} columns")
    return solve_many(runner, given, solves, warm, threads)


def complain(runner: Runner, batch: Batch) -> None:
    """Raise what the first of the failed solves would have raised alone.

    Raises:
        SolveError: where ``error_on_fail`` is set.
        Exception: what a user's callback or model function raised.
    """
    # What runs on threads has no callback, so that nothing was raised where there is a solution.
    failed = np.flatnonzero(~batch.success).tolist()
    for k in failed if runner.in_threads else range(len(batch)):
        runner.complain(batch.run(k))


def _p(runner: Runner, one: Mapping[str, Any]) -> Any:
    """The parameters of a solve, zero where neither it nor the problem has any."""
    missing = one["p"] is None and runner.problem.p0 is None
    return 0.0 if missing else one["p"]


def _checked(
    runner: Runner, one: Mapping[str, Any], k: int, warm: Sequence[Result | None]
) -> Numbers:
    """The numbers of solve k.

    Raises:
        InputError: for bad ones; it says of which solve, where there are several.
    """
    known = dict(one)
    if runner.problem.p0 is None:
        known.setdefault("p", 0.0)
    if not runner.options.warm:
        known["lam_x0"] = known["lam_g0"] = None
    try:
        return read_start(runner.problem, warm[k], **known)[0]
    except InputError as error:
        if len(warm) == 1:
            raise
        raise InputError(f"column {k}: {error}") from None


def _alone(runner: Runner, one: Numbers, warm: Result | None) -> tuple[dict[str, ca.DM], Run]:
    """A solve by itself, for better or worse."""
    bounds, m_h = one.bounds, runner.problem.m_h
    given = (
        one.x0, one.p, bounds.lbx, bounds.ubx, bounds.lbg[m_h:], bounds.ubg[m_h:], one.lam_x0,
        one.lam_g0,
    )  # fmt: skip
    return runner.run(given, warm)


def _over_threads(
    runner: Runner,
    given: Mapping[str, Any],
    solves: Sequence[int],
    warm: Sequence[Result | None],
    threads: int,
) -> Batch:
    problem = runner.problem
    engine = engine_of(problem)
    assert not isinstance(engine, str)
    check_columns(given, solves, len(warm))
    columns = {
        name: real_array(value, name)
        for (name, value), has in zip(given.items(), solves, strict=True)
        if has > 1
    }
    first = {**given, **{name: value[:, 0] for name, value in columns.items()}}
    start = _checked(runner, {**first, "p": _p(runner, first)}, 0, warm)
    workers: Workers | None = runner.workers
    if workers is None or workers.plan is not plan_of(engine.library, problem, start.bounds):
        limits = runner.options.limits
        workers = runner.workers = Workers(engine, start.bounds, limits, problem.parameter_gradient)
    places_in, places_out, outputs = workers.places
    numbers = numbers_in_rows(given, columns, warm, start, places_in)
    for k in doubtful(numbers, places_in).tolist():
        _checked(runner, {n: numbers[k, place] for n, place in places_in.items()}, k, warm)
    rows = Rows(numbers, *sides_of(warm, problem.n, problem.m), outputs)
    called = workers.solve(rows, threads)
    others: dict[int, Run] = {}
    success = rows.success()
    for k in np.flatnonzero(rows.refused()).tolist():
        one = _checked(runner, {n: numbers[k, place] for n, place in places_in.items()}, k, warm)
        found, run = _alone(runner, one, warm[k])
        others[k], success[k] = run, run.result.success
        for name in OUTPUTS:
            rows.outputs[k, places_out[name]] = array_of(found[name]).ravel()
    runs = Runs(runner, rows, (places_in, places_out), others, called)
    runner.note(runs[-1])
    rows.outputs.setflags(write=False)  # results look at them
    beside = {name: rows.outputs[:, places_out[name]].T for name in OUTPUTS}
    return Batch(**beside, success=success, _runs=runs)
