"""The clock: one Python call a step, of every setting, seed by seed.

The settings take turns with whole loops: each runs the steps of one seed in a row, as a controller
would, and begins at another place of the row for the next seed, so that what else the machine does
hits all alike. Before a loop one call is made that does not count. The garbage collector rests
while the clock runs, arguments are ready as ``DM``, and answers are judged afterwards.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.utils.errors import CompilerWarning
from warm.judge import TOLERANCE, Judge
from warm.loop import Loop, Step
from warm.peers import Setting
from warm.stages import Program

_ERRORS = (RuntimeError, ValueError, ArithmeticError, CompilerWarning)
SOLVED, FALSE, FAILED, RAISED, LEFT = "solved", "false success", "failed", "raised", "left out"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Call:
    """One judged call.

    Attributes:
        family, N, seed, step: which problem.
        setting: which solver.
        kind: "solved", a KKT point; "false success", where the solver says success and there is
            none; "failed", where it says so; "raised"; "left out", where its time was up.
        seconds: of the call, by the wall clock.
        processor: seconds of the processor that the calling thread had in it.
        build: seconds that the solver took to be built.
        iterations: as the solver counts; −1 where it does not say.
        residual, f: recomputed.
        word: the solver's own word, or the last line of what it raised.
    """

    family: str
    N: int
    seed: int
    step: int
    setting: str
    kind: str
    seconds: float
    processor: float
    build: float
    iterations: int
    residual: float
    f: float
    word: str

    @property
    def solved(self) -> bool:
        """Whether the answer is a KKT point."""
        return self.kind == SOLVED

    @property
    def place(self) -> tuple[str, int]:
        """The program."""
        return self.family, self.N

    @property
    def instant(self) -> tuple[str, int, int, int]:
        """The program, and the step of it."""
        return self.family, self.N, self.seed, self.step


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        seeds: numbers of the loops.
        steps: warm steps of each.
        patience: seconds of the processor that one setting has for one program, calls alone; what
            is left then is left out.
        compiled: whether functions are compiled.
    """

    seeds: Sequence[int]
    steps: int
    patience: float
    compiled: bool = False


def measure(program: Program, settings: Sequence[Setting], plan: Plan, say: Say) -> list[Call]:
    """Measure the settings on the loops of one program.

    Raises:
        InputError: where there is no loop to measure.
    """
    with ExitStack() as stack:
        if plan.compiled:  # CasADi leaves what it compiles where it works, while the solver lives
            stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        return _measured(program, settings, plan, say)


def _measured(program: Program, settings: Sequence[Setting], plan: Plan, say: Say) -> list[Call]:
    loop, judge = Loop(program), Judge(program)
    solvers: dict[str, Any] = {}
    builds: dict[str, float] = {}
    for setting in settings:
        began = time.perf_counter()
        with quiet():
            try:
                solvers[setting.name] = setting.make(program, plan.compiled)
            except _ERRORS as error:
                solvers[setting.name] = _last(error)
        builds[setting.name] = time.perf_counter() - began
        say(f"{program.label}: {setting.name} built in {builds[setting.name]:.2f} s")
    spent = dict.fromkeys(solvers, 0.0)
    calls: list[Call] = []
    for turn, seed in enumerate(plan.seeds):
        with quiet():
            steps = loop.steps(seed, plan.steps)
        first = turn * len(settings) // max(1, len(plan.seeds))
        for setting in [*settings[first:], *settings[:first]]:
            say(f"{program.label}: seed {seed}, {setting.name}")
            began = time.thread_time()
            left = plan.patience - spent[setting.name]
            with quiet():
                raw = _run(solvers[setting.name], steps, left)
            spent[setting.name] += time.thread_time() - began
            for step, one in zip(steps, raw, strict=True):
                place = (program.family.name, program.N, seed, step.number, setting.name)
                calls.append(Call(*place, **_judged(judge, step, one), build=builds[setting.name]))
    return calls


class _Raw(NamedTuple):
    """What a call gave; no answer where it raised or was left out."""

    word: str
    answer: Any = None
    success: bool = False
    iterations: int = -1
    seconds: float = 0.0
    processor: float = 0.0


def _run(solver: Any, steps: Sequence[Step], patience: float) -> list[_Raw]:
    """Call for every step of one loop, while time is left."""
    if isinstance(solver, str):  # it could not be built
        return [_Raw(solver)] * len(steps)
    until = time.thread_time() + patience
    found: list[_Raw] = []
    if patience > 0:
        with suppress(*_ERRORS):
            solver(**steps[-1].arguments)
    for step in steps:
        if time.thread_time() > until:
            found.append(_Raw(LEFT))
            continue
        word, answer, *seconds = _timed(solver, step.arguments)
        said, success, iterations = _stats(solver)
        found.append(_Raw(word or said, answer, success, iterations, *seconds))
    return found


def _timed(solver: Any, arguments: dict[str, Any]) -> tuple[str, Any, float, float]:
    """What one call raised, its answer, and its seconds by both clocks."""
    gc.collect(0)
    on = gc.isenabled()
    gc.disable()
    answer, word = None, ""
    processor, wall = time.thread_time(), time.perf_counter()
    try:
        answer = solver(**arguments)
    except _ERRORS as error:
        word = _last(error)
    finally:
        wall, processor = time.perf_counter() - wall, time.thread_time() - processor
        if on:
            gc.enable()
    return word, answer, wall, processor


def _stats(solver: Any) -> tuple[str, bool, int]:
    """Status, success and iterations; some plugins raise after a failure, or count nothing."""
    try:
        stats = solver.stats()
    except _ERRORS as error:
        return _last(error), False, -1
    word = stats.get("return_status") or stats.get("unified_return_status") or ""
    return str(word), bool(stats.get("success")), int(stats.get("iter_count", -1))


def _judged(judge: Judge, step: Step, raw: _Raw) -> dict[str, Any]:
    """The fields of a call behind its place."""
    residual, f = np.inf, np.inf
    if raw.answer is None:
        kind = LEFT if raw.word == LEFT else RAISED
    else:
        residual, f = judge(raw.answer, step.arguments["p"])
        kind = SOLVED if residual <= TOLERANCE else FALSE if raw.success else FAILED
    kept = {key: getattr(raw, key) for key in ("word", "iterations", "seconds", "processor")}
    return {**kept, "kind": kind, "residual": residual, "f": f}


def _last(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be printed, by libraries either; the same for all solvers."""
    _flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        _flush()
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(OSError, TypeError, AttributeError):  # where C's own cannot be reached this way
        ctypes.CDLL(None).fflush(None)
