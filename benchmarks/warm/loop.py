"""Closed loops of a program: the steps that all solvers get, and the clock of their calls.

One solver steers, IPOPT at a tolerance of 1e-10, and leaves at every instant the measured state and
its last solution, shifted by one interval. All solvers that are measured get exactly these, primal
and dual: none of them profits from where its own last answer happened to lie, and a step that one
of them fails is a step for all others too. The first solve, from a cold guess, is not measured.

An interior-point solution has a small multiplier at every bound, and active-set solvers take each
that is not zero for an active one. So the solution is made sharp: a multiplier that is smaller than
the distance to its bound becomes zero, and where it is larger the unknown is put onto its bound.

One Python call a step is measured. The settings take turns with whole loops: each runs the steps of
one seed in a row, as a controller would, and begins at another place of the row for the next seed,
so that what else the machine does hits all alike. Before a loop one call is made that does not
count. The garbage collector rests during a call, and answers are judged after the loop.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from casadi_hybrid.utils.errors import CompilerWarning, InputError
from warm.judge import TOLERANCE, Judge
from warm.peers import Setting
from warm.stages import Program, Vector

NOISE = 0.01
STEERING = {
    "print_time": False,
    "ipopt": {
        "print_level": 0, "sb": "yes", "tol": 1e-10, "bound_relax_factor": 0.0, "max_iter": 3000,
    },
}  # fmt: skip
ERRORS = (RuntimeError, ValueError, ArithmeticError, CompilerWarning)
SOLVED, FALSE, FAILED, RAISED, LEFT = "solved", "false success", "failed", "raised", "left out"


# --- Steps ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Step:
    """One call: its number, its arguments as a user has them, and the state it was measured at."""

    number: int
    state: Vector
    arguments: dict[str, Any]


class Loop:
    """The closed loops of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._solver = ca.nlpsol("steering", "ipopt", program.nlp, STEERING)
        self._judge = Judge(program)
        self._bounds = {
            name: ca.DM(getattr(program, name)) for name in ("lbx", "ubx", "lbg", "ubg")
        }

    def steps(self, seed: int, count: int) -> list[Step]:
        """The first ``count`` warm steps of the loop with the noise of this seed.

        Raises:
            InputError: where the steering solver finds no KKT point, so that there is no loop.
        """
        program, family = self._program, self._program.family
        random = np.random.default_rng([seed, program.N])
        state, steps = np.array(family.start), list[Step]()
        guess: dict[str, Vector] = {"x0": program.cold(state)}
        for number in range(count + 1):
            p = np.array([*state, number * family.dt])
            arguments = {key: ca.DM(value) for key, value in (guess | {"p": p}).items()}
            arguments |= self._bounds
            if number:
                steps.append(Step(number, state, arguments))
            x, lam_x, lam_g = self._sharp(self._solve(arguments, seed, number))
            moved = program.shifted(x, lam_x, lam_g)
            guess = dict(zip(("x0", "lam_x0", "lam_g0"), moved, strict=True))
            state = program.step(state, program.first_input(x)).full().ravel()
            state = state + NOISE * np.array(family.scale) * random.standard_normal(state.size)
        return steps

    def _sharp(self, answer: dict[str, Vector]) -> tuple[Vector, Vector, Vector]:
        """x, λ_x and λ_g of the solution with zeros for multipliers of what is not active."""
        program = self._program
        x, lam_x = _sharp(answer["x"], answer["lam_x"], program.lbx, program.ubx)
        return x, lam_x, _sharp(answer["g"], answer["lam_g"], program.lbg, program.ubg)[1]

    def _solve(self, arguments: dict[str, Any], seed: int, number: int) -> dict[str, Vector]:
        """The steering solution, from the guess or else from a cold one."""
        p = arguments["p"]
        cold = self._program.cold(p.full().ravel()[:-1])
        for x0 in (arguments["x0"], ca.DM(cold)):
            answer = self._solver(x0=x0, p=p, **self._bounds)
            if self._judge(answer, p)[0] <= TOLERANCE:
                return {key: value.full().ravel() for key, value in answer.items()}
        raise InputError(
            f"{self._program.label}, seed {seed}: no KKT point was found for step {number}, so the "
            "loop cannot go on; leave this family, horizon or seed out"
        )


def _sharp(values: Vector, lam: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Active values at the bounds that multipliers point to, and the multipliers of these alone."""
    bound = np.where(lam > 0, high, low)
    on = np.abs(lam) > np.abs(values - bound)  # no bound: infinitely far
    return np.where(on, bound, values), np.where(on, lam, 0.0)


# --- Clock ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Call:
    """One judged call.

    Attributes:
        family, N, seed, step: which problem.
        setting: which solver.
        build: seconds that the solver took to be built.
        kind: "solved", a KKT point; "false success", where the solver says success and there is
            none; "failed", where it says so; "raised"; "left out", where its time was up.
        residual, f: recomputed.
        word: the solver's own word, or the last line of what it raised.
        iterations: as the solver counts; −1 where it does not say.
        wall, processor: seconds of the call, and of the processor by the calling thread.
    """

    family: str
    N: int
    seed: int
    step: int
    setting: str
    build: float
    kind: str
    residual: float
    f: float
    word: str
    iterations: int
    wall: float
    processor: float

    @property
    def solved(self) -> bool:
        """True for a KKT point."""
        return self.kind == SOLVED

    @property
    def place(self) -> tuple[str, int]:
        """The program."""
        return self.family, self.N

    @property
    def instant(self) -> tuple[str, int, int, int]:
        """The program, and the step of it."""
        return self.family, self.N, self.seed, self.step


class _Raw(NamedTuple):
    """An answer that is not judged yet; None where the call raised or was left out."""

    word: str
    answer: Any = None
    success: bool = False
    iterations: int = -1
    wall: float = 0.0
    processor: float = 0.0


def measure(
    program: Program,
    settings: Sequence[Setting],
    seeds: Sequence[int],
    steps: int,
    patience: float,
    compiled: bool = False,
) -> list[Call]:
    """Measure the settings on the loops of one program.

    Args:
        program: the controller.
        settings: the solvers.
        seeds: numbers of the loops.
        steps: warm steps of each.
        patience: processor seconds of one setting, calls alone; the steps after that are left out.
        compiled: whether functions are compiled.

    Raises:
        InputError: where there is no loop to measure.
    """
    calls: list[Call] = []
    # CasADi leaves what it compiles where it works, while the solver lives.
    with TemporaryDirectory() as folder, chdir(folder), quiet():
        loop, judge = Loop(program), Judge(program)
        solvers: dict[str, Any] = {}
        builds: dict[str, float] = {}
        for setting in settings:
            began = time.perf_counter()
            try:
                solvers[setting.name] = setting.make(program, compiled)
            except ERRORS as error:
                solvers[setting.name] = _last_line(error)
            builds[setting.name] = time.perf_counter() - began
        left = dict.fromkeys(solvers, patience)
        for turn, seed in enumerate(seeds):
            arguments = loop.steps(seed, steps)
            first = turn * len(settings) // len(seeds)
            for setting in [*settings[first:], *settings[:first]]:
                name, began = setting.name, time.thread_time()
                answers = _run(solvers[name], arguments, left[name])
                left[name] -= time.thread_time() - began
                for step, raw in zip(arguments, answers, strict=True):
                    place = program.family.name, program.N, seed, step.number, name, builds[name]
                    residual, f = np.inf, np.inf
                    kind = LEFT if raw.word == LEFT else RAISED
                    if raw.answer is not None:
                        residual, f = judge(raw.answer, step.arguments["p"])
                        failed = FALSE if raw.success else FAILED
                        kind = SOLVED if residual <= TOLERANCE else failed
                    told = raw.word, raw.iterations, raw.wall, raw.processor
                    calls.append(Call(*place, kind, residual, f, *told))
    return calls


def _run(solver: Any, steps: Sequence[Step], patience: float) -> list[_Raw]:
    """Call for every step of one loop, while time is left."""
    if isinstance(solver, str):  # it could not be built
        return [_Raw(solver)] * len(steps)
    until, answers = time.thread_time() + patience, list[_Raw]()
    if patience > 0:
        with suppress(*ERRORS):
            solver(**steps[-1].arguments)
    for step in steps:
        late = time.thread_time() > until
        answers.append(_Raw(LEFT) if late else _timed(solver, step.arguments))
    return answers


def _timed(solver: Any, arguments: dict[str, Any]) -> _Raw:
    """One call by both clocks; some plugins raise, also when they are asked for statistics."""
    gc.collect(0)
    gc.disable()
    processor, wall = time.thread_time(), time.perf_counter()
    answer, word = None, ""
    try:
        answer = solver(**arguments)
    except ERRORS as error:
        word = _last_line(error)
    wall, processor = time.perf_counter() - wall, time.thread_time() - processor
    gc.enable()
    try:
        stats = solver.stats()
    except ERRORS as error:
        return _Raw(word or _last_line(error), answer, False, -1, wall, processor)
    word = word or str(stats.get("return_status") or stats.get("unified_return_status") or "")
    success, count = bool(stats.get("success")), int(stats.get("iter_count", -1))
    return _Raw(word, answer, success, count, wall, processor)


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be printed, by libraries either; the same for all solvers."""
    _flush()
    kept, nowhere = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        _flush()
        for number, old in enumerate(kept, start=1):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(OSError, TypeError, AttributeError):  # where C's own cannot be reached this way
        ctypes.CDLL(None).fflush(None)
