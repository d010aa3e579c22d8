"""Many solves by one call: over threads if C calls all functions, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.binding.batch import Rows, solve_rows
from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.solver.nlpsol.function import shapes_of
from casadi_hybrid.solver.nlpsol.runner import Runner
from casadi_hybrid.solver.nlpsol.stats import stats_of
from casadi_hybrid.solver.options.convention import INPUTS, OUTPUTS, STARTS, solves_in
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.run import Run, start_values
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, Vector, real_array
from casadi_hybrid.utils.matrices import array_of
from casadi_hybrid.utils.record.parallel import available_cores

Warm = Sequence[Result | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Many solves: their outputs, column k of solve k, and the run of each."""

    # An x or p that is a matrix of w columns has w columns of each solve.
    x: NDArray[np.float64]
    f: NDArray[np.float64]
    g: NDArray[np.float64]
    lam_x: NDArray[np.float64]
    lam_g: NDArray[np.float64]
    lam_p: NDArray[np.float64]
    success: NDArray[np.bool_]  # x is a KKT point within the tolerance
    run: Callable[[int], Run]

    def __len__(self) -> int:
        return self.success.size

    def result(self, k: int) -> Result:
        """The result of solve k, with residuals, both statuses and ``explain()``."""
        return self.run(k).result

    def stats(self, k: int) -> dict[str, Any]:
        """The statistics of solve k, under CasADi's keys."""
        return stats_of(self.run(k))

    def outputs(self) -> dict[str, ca.DM]:
        """The six matrices by their names, as CasADi has them."""
        return {name: ca.DM(getattr(self, name)) for name in OUTPUTS}


def solve_many(
    runner: Runner,
    arguments: Mapping[str, Any],
    warm_start: Result | Warm | None = None,
    threads: int | None = None,
) -> Batch:
    """Solve many times; see :meth:`~casadi_hybrid.solver.nlpsol.solver.NlpSolver.batch`."""
    problem, limits = runner.problem, runner.limits
    shapes = shapes_of(problem)
    values = {name: arguments.get(name) for name in INPUTS}
    solves = {name: solves_in(value, shapes[name]) for name, value in values.items()}
    warm = _warm_starts(warm_start, max(solves.values()))
    columns = _columns(values, solves, len(warm))
    first = values | {name: rows[0] for name, rows in columns.items()}
    start, _ = _checked(runner, first, 0, [None] * len(warm))
    engine = engine_of(problem, rows=runner.in_threads)
    core = engine.core(start.bounds, limits, repeated=True)
    core.fill(start, None)
    # A row of all arguments and outputs for each solve, in the layout of the core.
    numbers, places = np.tile(core.numbers, (len(warm), 1)), core.places
    for name, rows_of in columns.items():
        end = places[name].stop  # bounds of the equations stand before and stay zero
        # As in CasADi, fewer columns are repeated as a whole: 1 2 1 2.
        repetitions = len(warm) // len(rows_of)
        numbers[:, end - rows_of.shape[1] : end] = np.tile(rows_of, (repetitions, 1))
    starts = {name: places[name] for name in STARTS if values[name] is None}
    sides = _start(runner, numbers, starts, warm)

    def arguments_of(k: int) -> dict[str, Vector]:
        row = {name: numbers[k, places[name]] for name in INPUTS}
        return row | {name: row[name][problem.m_h :] for name in ("lbg", "ubg")}

    # One vectorized test of all solves; the checks with their messages run for suspects alone.
    for k in _doubtful(numbers, places).tolist():
        _checked(runner, arguments_of(k), k, warm)
    success, alone = np.zeros(len(warm), dtype=bool), list(range(len(warm)))
    if runner.in_threads:
        rows = Rows(numbers, *sides, places)
        solve_rows(engine, start.bounds, limits, rows, threads or available_cores())
        success, alone = rows.verdicts()
    runs: dict[int, Run] = {}
    # Solves that call Python, and those with other kinds of bounds than the first.
    for k in alone:
        runs[k] = runner.run(arguments_of(k), warm[k])
        raised = runs[k].raised
        if isinstance(raised, KeyboardInterrupt):  # it ends the whole batch
            raise raised
        success[k] = runs[k].result.success
        for name in OUTPUTS:
            numbers[k, places[name]] = array_of(runs[k].outputs[name]).ravel(order="F")

    def run(k: int) -> Run:
        k = range(len(warm))[k]
        if k not in runs:
            runs[k] = Run(problem, limits, numbers[k], places, *rows.answer(k), rows.called)
        return runs[k]

    # stats() and result are those of the last solve.
    runner.note(run(-1))
    outputs = {}
    for name in OUTPUTS:
        height, width = shapes[name]
        outputs[name] = numbers[:, places[name]].reshape(len(warm) * width, height).T
    for array in (numbers, *outputs.values()):  # results are views of them
        array.setflags(write=False)
    return Batch(**outputs, success=success, run=run)


def _warm_starts(warm_start: Result | Warm | None, most: int) -> Warm:
    """The result that each solve starts from, or None."""
    if warm_start is None or isinstance(warm_start, Result):
        return [warm_start] * most
    warm = list(warm_start)
    if most not in (1, len(warm)) or not warm:
        raise InputError(f"warm_start has {len(warm)} results, the arguments {most} columns")
    return warm


def _columns(values: Mapping[str, Any], solves: Mapping[str, int], most: int) -> dict[str, Matrix]:
    """Values of the arguments that differ between solves, a row a solve."""
    for name, count in solves.items():
        if most % count:
            raise InputError(f"{name} has numbers for {count} solves, another argument for {most}")
    several = ((name, count) for name, count in solves.items() if count > 1)
    return {name: real_array(values[name], name).T.reshape(count, -1) for name, count in several}


def _checked(
    runner: Runner, arguments: Mapping[str, Any], k: int, warm: Warm
) -> tuple[Numbers, WorkingSet | None]:
    """Return the values of solve k; among several solves an error names the column."""
    try:
        return runner.checked(arguments, warm[k])
    except InputError as error:
        if len(warm) == 1:
            raise
        raise InputError(f"column {k}: {error}") from None


def _start(
    runner: Runner, numbers: Vector, starts: Mapping[str, slice], warm: Warm
) -> tuple[Any, Any]:
    """Write the values of the warm starts; return their working sets by row, and a mask of them."""
    sides = np.zeros((len(warm), runner.problem.n + runner.problem.m), dtype=np.int8)
    has_sides = np.zeros(len(warm), dtype=np.int8)
    # One result for all solves is checked once.
    for result, solves in groupby(range(len(warm)), key=warm.__getitem__):
        if result is None:
            continue
        rows = list(solves)
        _checked(runner, {}, rows[0], warm)
        values = start_values(result, runner.problem, None, None, None)
        for name, value in zip(STARTS, values, strict=True):
            if name in starts:
                numbers[rows, starts[name]] = value
        if result.success:
            has_sides[rows] = 1
            sides[rows] = np.concatenate((result.working_set.x, result.working_set.g))
    return sides, has_sides


def _doubtful(numbers: Vector, places: Mapping[str, slice]) -> NDArray[np.intp]:
    """Return the solves with values that are not finite, or with crossed bounds."""
    bad = np.zeros(len(numbers), dtype=bool)
    for name in ("p", *STARTS):
        bad |= ~np.isfinite(numbers[:, places[name]]).all(axis=1)
    for kind in "xg":
        lower, upper = numbers[:, places[f"lb{kind}"]], numbers[:, places[f"ub{kind}"]]
        sound = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
        bad |= ~sound.all(axis=1)
    return np.flatnonzero(bad)
