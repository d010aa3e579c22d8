"""Many solves by one call: over threads where C calls all functions, else one by one."""

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
    """Many solves: their answers side by side, and the result of each.

    Attributes:
        x, f, g, lam_x, lam_g, lam_p: as a solve gives them, in one array each: column k is of
            solve k. Of an x or p that is a matrix of w columns w columns are.
        success: of each whether x is a KKT point within the tolerance.
        run: the run of solve k.
    """

    x: NDArray[np.float64]
    f: NDArray[np.float64]
    g: NDArray[np.float64]
    lam_x: NDArray[np.float64]
    lam_g: NDArray[np.float64]
    lam_p: NDArray[np.float64]
    success: NDArray[np.bool_]
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
    given = {name: arguments.get(name) for name in INPUTS}
    solves = {name: solves_in(value, shapes[name]) for name, value in given.items()}
    warm = _warm_starts(warm_start, max(solves.values()))
    columns = _columns(given, solves, len(warm))
    first = {**given, **{k: v[0] for k, v in columns.items()}}
    start, _ = _checked(runner, first, 0, [None] * len(warm))
    engine = engine_of(problem, rows=runner.in_threads)
    core = engine.core(start.bounds, limits, repeated=True)
    core.fill(start, None)
    numbers, places = np.tile(core.numbers, (len(warm), 1)), core.places
    for name, own in columns.items():
        end = places[name].stop  # bounds of equations are none of it, and zero
        numbers[:, end - own.shape[1] : end] = np.tile(own, (len(warm) // len(own), 1))
    starts = {name: places[name] for name in STARTS if given[name] is None}
    sides = _start(runner, numbers, starts, warm)

    def given_of(k: int) -> dict[str, Vector]:
        row = {name: numbers[k, places[name]] for name in INPUTS}
        return row | {name: row[name][problem.m_h :] for name in ("lbg", "ubg")}

    for k in _doubtful(numbers, places).tolist():
        _checked(runner, given_of(k), k, warm)
    success, alone = np.zeros(len(warm), dtype=bool), list(range(len(warm)))
    if runner.in_threads:
        rows = Rows(numbers, *sides, places)
        solve_rows(engine, start.bounds, limits, rows, threads or available_cores())
        success, alone = rows.verdicts()
    made: dict[int, Run] = {}
    for k in alone:
        made[k] = runner.run(given_of(k), warm[k])
        if isinstance(raised := made[k].raised, KeyboardInterrupt):  # it ends more than this solve
            raise raised
        success[k] = made[k].result.success
        for name in OUTPUTS:
            numbers[k, places[name]] = array_of(made[k].outputs[name]).ravel(order="F")

    def run(k: int) -> Run:
        k = range(len(warm))[k]
        if k not in made:
            made[k] = Run(problem, limits, numbers[k], places, *rows.answer(k), rows.called)
        return made[k]

    runner.note(run(-1))
    beside = {}
    for name in OUTPUTS:
        height, w = shapes[name]
        beside[name] = numbers[:, places[name]].reshape(len(warm) * w, height).T
    for array in (numbers, *beside.values()):  # results look at them
        array.setflags(write=False)
    return Batch(**beside, success=success, run=run)


def _warm_starts(warm_start: Result | Warm | None, most: int) -> Warm:
    """The result that each solve starts from, or None."""
    if warm_start is None or isinstance(warm_start, Result):
        return [warm_start] * most
    warm = list(warm_start)
    if most not in (1, len(warm)) or not warm:
        raise InputError(f"warm_start has {len(warm)} results, the arguments {most} columns")
    return warm


def _columns(given: Mapping[str, Any], solves: Mapping[str, int], most: int) -> dict[str, Matrix]:
    """The numbers of arguments that have them for several solves, a row a solve."""
    for name, has in solves.items():
        if most % has:
            raise InputError(f"{name} has numbers for {has} solves, another argument for {most}")
    several = ((name, has) for name, has in solves.items() if has > 1)
    return {name: real_array(given[name], name).T.reshape(has, -1) for name, has in several}


def _checked(
    runner: Runner, one: Mapping[str, Any], k: int, warm: Warm
) -> tuple[Numbers, WorkingSet | None]:
    """The numbers of solve k; what is refused says of which solve, where there are several."""
    try:
        return runner.checked(one, warm[k])
    except InputError as error:
        if len(warm) == 1:
            raise
        raise InputError(f"column {k}: {error}") from None


def _start(
    runner: Runner, numbers: Vector, starts: Mapping[str, slice], warm: Warm
) -> tuple[Any, Any]:
    """Write what warm starts give; their working sets, a row of each, and which solves have one."""
    sides = np.zeros((len(warm), runner.problem.n + runner.problem.m), dtype=np.int8)
    there = np.zeros(len(warm), dtype=np.int8)
    for known, alike in groupby(range(len(warm)), key=warm.__getitem__):
        if known is None:
            continue
        rows = list(alike)
        _checked(runner, {}, rows[0], warm)
        values = start_values(known, runner.problem, None, None, None)
        for name, value in zip(STARTS, values, strict=True):
            if name in starts:
                numbers[rows, starts[name]] = value
        if known.success:
            there[rows] = 1
            sides[rows] = np.concatenate((known.working_set.x, known.working_set.g))
    return sides, there


def _doubtful(numbers: Vector, places: Mapping[str, slice]) -> NDArray[np.intp]:
    """The solves with numbers that are not finite, or bounds that leave nothing between them."""
    bad = np.zeros(len(numbers), dtype=bool)
    for name in ("p", *STARTS):
        bad |= ~np.isfinite(numbers[:, places[name]]).all(axis=1)
    for kind in "xg":
        lower, upper = numbers[:, places[f"lb{kind}"]], numbers[:, places[f"ub{kind}"]]
        sound = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
        bad |= ~sound.all(axis=1)
    return np.flatnonzero(bad)
