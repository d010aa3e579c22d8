"""What exported solvers need: size, stack and instructions of predictive controllers in C99.

    python benchmarks/embedded.py [--steps K] [--compiler COMMAND] [--warm-only] [NAME ...]

Each controller is exported with a closed loop of K steps (20), 1 % noise, guesses shifted by one
interval; it is compiled with all warnings as errors, solves the loop, and its instructions are
counted under valgrind. "cold" is the solve from the first start, without multipliers. "difference"
is the largest of any output from Python's, relative to max(1, |number|).
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import casadi as ca
import numpy as np
from embedded_costs import costs
from warm.families import FAMILIES
from warm.loop import Loop
from warm.stages import program, runge_kutta

from casadi_hybrid import nlpsol
from casadi_hybrid.core.export.compare import compare
from casadi_hybrid.problem.building.compiler import Compiler, compiler_of, find_compiler

HEAD = (
    "controller", "n", "m", "functions", "memory", "code, constants", "stack", "compile s",
    "solved", "difference", "instructions", "cold", "instructions, cold",
)  # fmt: skip


@dataclass(frozen=True)
class Controller:
    """A problem and a closed loop of it: arguments of the first solve, then their changes."""

    nlp: dict[str, Any]
    arguments: dict[str, Any]
    loop: list[dict[str, Any]]


def oscillator(N: int) -> Callable[[int], Controller]:
    """Van der Pol's, its intervals mapped, so that they stay loops."""

    def make(steps: int) -> Controller:
        x, u = ca.SX.sym("x", 2), ca.SX.sym("u")

        def slope(x: Any, u: Any) -> Any:
            return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0])

        step = ca.Function("step", [x, u], [runge_kutta(slope, 0.25)(x, u)])
        X, U, p = ca.MX.sym("X", 2, N + 1), ca.MX.sym("U", 1, N), ca.MX.sym("p", 2)
        gaps = step.map(N)(X[:, :-1], U) - X[:, 1:]
        nlp = {
            "x": ca.veccat(X, U), "p": p, "f": ca.sumsqr(X) + ca.sumsqr(U),
            "g": ca.vertcat(X[:, 0] - p, ca.vec(gaps)),
        }  # fmt: skip
        far = np.r_[np.full(2 * N + 2, np.inf), np.ones(N)]
        random = np.random.default_rng(0)
        state, loop = np.array([0.0, 1.0]), []
        steer = nlpsol("steer", "hybrid", nlp)
        arguments = {"lbx": -far, "ubx": far, "lbg": 0.0, "ubg": 0.0}
        for _ in range(steps + 1):
            loop.append({"p": state})
            u0 = float(steer(p=state, **arguments)["x"][2 * N + 2])
            state = step(state, u0).full().ravel() + 0.01 * random.standard_normal(2)
        return Controller(nlp, {**arguments, **loop[0]}, loop[1:])

    return make


def family(name: str, N: int) -> Callable[[int], Controller]:
    """One of ``warm_peers.py``, a graph of scalars."""

    def make(steps: int) -> Controller:
        made = program(FAMILIES[name], N)
        found = [step.arguments for step in Loop(made).steps(0, steps)]
        return Controller(made.nlp, found[0], found[1:])

    return make


CONTROLLERS = {
    "oscillator-20": oscillator(20),
    "oscillator-80": oscillator(80),
    **{f"{name}-{N}": family(name, N) for name, N in (("quadrotor", 20), ("bicycle", 20))},
}


def row(name: str, controller: Controller, compiler: Compiler, cold: bool) -> list[str]:
    """Export, compare, count; the cells of one row."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as objects:
        solver = nlpsol(name.replace("-", "_"), "hybrid", controller.nlp)
        written = solver.export(folder, loop=controller.loop, cold=cold, **controller.arguments)
        compared = compare(written, compiler)
        counted = costs(written, compiler, Path(objects))
        text = (Path(folder) / f"{written.name}_functions.c").read_text(encoding="utf-8")
    *warm, last = counted.instructions or (None,)
    most = max(warm) if warm and cold else max(counted.instructions or (0,))
    ended = "" if compared.cold is None else f"status {compared.cold[0]}, {compared.cold[1]} steps"
    shape = f"{text.count(chr(10)):,} lines, {written.form}"
    return [
        name, str(solver.size1_in(0)), str(solver.size1_out(2)), shape, f"{written.memory:,}",
        figure(counted.flash), figure(counted.stack), f"{counted.seconds:.0f}",
        f"{compared.solved[0]}/{compared.solved[1]}", f"{compared.difference:.1g}",
        figure(most or None), ended, figure(last if cold else None),
    ]  # fmt: skip


def figure(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CONTROLLERS))
    parser.add_argument("--steps", type=int, default=20, metavar="K")
    parser.add_argument("--compiler", metavar="COMMAND", help="the first that is found by default")
    parser.add_argument("--warm-only", action="store_true", help="without the search")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(CONTROLLERS)
    if unknown or arguments.steps < 1:
        parser.error(f"no controller {', '.join(unknown)}" if unknown else "--steps must be >= 1")
    words = arguments.compiler
    compiler = compiler_of(tuple(shlex.split(words))) if words else find_compiler()
    print(f"{compiler}\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in arguments.names or CONTROLLERS:
        controller = CONTROLLERS[name](arguments.steps)
        cells = row(name, controller, compiler, not arguments.warm_only)
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
