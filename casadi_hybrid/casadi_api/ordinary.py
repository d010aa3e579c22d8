"""A solve by all attempts, of which the engine makes those that it takes: numbers in, a run out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.at_once import CutShort
from casadi_hybrid.attempts.solve import Automatic
from casadi_hybrid.attempts.verdict import undefined_result
from casadi_hybrid.attempts.warm import read_start
from casadi_hybrid.basics.errors import Interrupted, MissingNumberError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.call import Call
from casadi_hybrid.casadi_api.callbacks import StepCallback
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.runs import Run
from casadi_hybrid.casadi_api.stats import casadi_stats
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.blocks.compiled import Compiled
from casadi_hybrid.engine.blocks.serving import functions_of
from casadi_hybrid.explain.diagnosis import listed
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result

_OF_SOLVES = "scipy.linalg.blas", "scipy.linalg.lapack", "scipy.sparse", "scipy.sparse.csgraph"


def load_for_solves() -> None:
    """Load what a solve may need at any time, beside this module: then none waits for an import."""
    for name in _OF_SOLVES:
        import_module(name)


def solve(
    problem: Problem,
    options: NlpOptions,
    limits: Limits,
    compiled: Compiled | None,
    start: tuple[Any, Any, Any],
    warm_start: Result | None,
    others: Mapping[str, Any],
) -> Run:
    """Solve with what a user gave, None for what was left out.

    What a user's function raises, and Ctrl-C where there is an iterate already, is kept in the run.

    Args:
        problem, options, limits: what is solved, and how.
        compiled: the functions as machine code, where they were asked for.
        start: x0, lam_x0, lam_g0; ``warm_start``: the result of a solve nearby.
        others: p and the bounds, by name.

    Raises:
        InputError: for a bad argument, before any evaluation.
        KeyboardInterrupt: before the first iterate.
    """
    x0, lam_x0, lam_g0 = start
    if not options.warm:
        lam_x0 = lam_g0 = None
    numbers, warm = read_start(problem, warm_start, x0, lam_x0, lam_g0, **others)
    x0, p, bounds = numbers.x0, numbers.p, numbers.bounds
    if options.warn_initial_bounds and ((x0 < bounds.lbx) | (x0 > bounds.ubx)).any():
        outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
        names = listed([problem.functions.variable_names[i] for i in outside])
        warnings.warn(f"x0 is outside its bounds at {names}", UserWarning, stacklevel=5)
    callback = None
    if options.iteration_callback is not None:
        callback = StepCallback(
            options.iteration_callback,
            options.iteration_callback_step,
            options.iteration_callback_ignore_errors,
            problem.parameter_gradient,
            p,
        )
    watch = Watch(bounds, callback, int(options.log), options.divergence)
    began = time.process_time()
    raised: BaseException | None = None
    ready = compiled is not None and compiled.code is not None
    try:
        result = Automatic().run(problem, Call(numbers, limits, warm, watch=watch))
    except KeyboardInterrupt as error:
        if not isinstance(error, Interrupted) or error.result is None:
            raise
        result, raised = error.result, error
    watch.hold(result.iterations)
    said = functions_of(problem, result, bool(options.machine_code), compiled, ready)
    stats = casadi_stats(result, watch.lists, callback, time.process_time() - began, said)
    if raised is None and callback is not None:
        raised = callback.raised
    if raised is None and not result.success and result.error is not None:
        raised = result.error.__cause__  # of a function that raised; None where it gave NaN
    return Run(result, stats, p, raised)


def out_of_time(best: Result) -> Result:
    """The best point of a solve whose time was over."""
    return altered(best, stop=StopReason.TIME_LIMIT, detail="")


def cut_short(cut: CutShort) -> Run:
    """The run of a solve by the engine that Ctrl-C has ended."""
    lists, functions = cut.watch.lists, cut.functions
    stats = casadi_stats(cut.result, lists, None, cut.result.elapsed, functions)
    return Run(cut.result, stats, cut.p, cut)


def without_numbers(
    problem: Problem, limits: Limits, row: Sequence[Vector], missing: MissingNumberError
) -> Run:
    """The run of a solve in a graph, one of whose arguments has no number."""
    x0, p, lbx, ubx, lbg, ubg, _, _ = row
    bounds, why = Bounds(lbx, ubx, lbg, ubg), "no numbers"
    result = undefined_result(problem, bounds, p, x0, limits.tolerances, missing, why)
    stats = casadi_stats(result, Watch(bounds).lists, None, 0.0, ("interpreted", ""))
    return Run(result, stats, p)
