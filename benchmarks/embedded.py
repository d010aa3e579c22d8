"""Exported solvers in C99: what they need, and whether they solve what Python solves.

    python benchmarks/embedded.py costs [NAME ...] [--steps K] [--warm-only]
    python benchmarks/embedded.py cold [SET ...]

``costs`` exports predictive controllers, each with a closed loop of K steps, 1 % noise and guesses
shifted by one interval, compiles them with all warnings as errors and solves the loop. Flash is
counted by ``size`` after the linker has left out what is not called, the stack from the call graph
that GCC writes, instructions under valgrind. "difference" is the largest of any output from
Python's, relative to max(1, |number|); "cold" is the solve from the first start, without
multipliers.

``cold`` exports each problem of a set (by default hs, Hock and Schittkowski's) that Python solves,
and solves it in C from its start without multipliers. "same" are the problems with Python's numbers
to 1e-12, relative to max(1, |number|), in as many steps; "another way" those that are solved
otherwise, listed with the difference of f.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import casadi as ca
import numpy as np
from peers.cases import cases
from warm.families import FAMILIES
from warm.loop import Loop
from warm.stages import program, runge_kutta

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.core.export.compare import GARBAGE, compare, flags_of, replayed, run, spoken
from casadi_hybrid.core.export.export import Export
from casadi_hybrid.problem.building.compiler import Compiler, compiler_of, find_compiler

HEAD = (
    "controller", "n", "m", "functions", "memory", "code, constants", "stack", "compile s",
    "solved", "difference", "instructions", "cold", "instructions, cold",
)  # fmt: skip
SAME = 1e-12
FRAME = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes \(([\w,]+)')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
INDIRECT = "__indirect_call"


# --- Controllers ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Controller:
    """A problem and a closed loop of it: arguments of the first solve, then their changes."""

    nlp: dict[str, Any]
    arguments: dict[str, Any]
    loop: list[dict[str, Any]]


def oscillator(N: int, steps: int) -> Controller:
    """Van der Pol's, its intervals mapped, so that they stay loops."""
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")

    def slope(x: Any, u: Any) -> Any:
        return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0])

    step = ca.Function("step", [x, u], [runge_kutta(slope, 0.25)(x, u)])
    X, U, p = ca.MX.sym("X", 2, N + 1), ca.MX.sym("U", 1, N), ca.MX.sym("p", 2)
    gaps = step.map(N)(X[:, :-1], U) - X[:, 1:]
    nlp = {
        "x": ca.veccat(X, U),
        "p": p,
        "f": ca.sumsqr(X) + ca.sumsqr(U),
        "g": ca.vertcat(X[:, 0] - p, ca.vec(gaps)),
    }
    far = np.r_[np.full(2 * N + 2, np.inf), np.ones(N)]
    arguments = {"lbx": -far, "ubx": far, "lbg": 0.0, "ubg": 0.0}
    random = np.random.default_rng(0)
    steer = nlpsol("steer", "hybrid", nlp)
    state, loop = np.array([0.0, 1.0]), []
    for _ in range(steps + 1):
        loop.append({"p": state})
        u0 = float(steer(p=state, **arguments)["x"][2 * N + 2])
        state = step(state, u0).full().ravel() + 0.01 * random.standard_normal(2)
    return Controller(nlp, {**arguments, **loop[0]}, loop[1:])


def family(name: str, N: int, steps: int) -> Controller:
    """One of ``warm_peers.py``, a graph of scalars."""
    controller = program(FAMILIES[name], N)
    first, *others = (step.arguments for step in Loop(controller).steps(0, steps))
    return Controller(controller.nlp, first, others)


CONTROLLERS = {
    "oscillator-20": partial(oscillator, 20),
    "oscillator-80": partial(oscillator, 80),
    "quadrotor-20": partial(family, "quadrotor", 20),
    "bicycle-20": partial(family, "bicycle", 20),
}


# --- Costs ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Costs:
    """Costs of one solver; None where a tool is missing.

    Attributes:
        seconds: of compiling.
        flash: bytes of code and constants.
        stack: bytes of the deepest chain of calls.
        instructions: of every solve of the export.
    """

    seconds: float
    flash: int | None
    stack: int | None
    instructions: list[int] | None


def costs(export: Export, compiler: Compiler, folder: Path) -> Costs:
    """Compile an export into a folder and count."""
    gcc = "gcc" in compiler.version
    graph = ("-fcallgraph-info=su", "-fstack-usage") if gcc else ()
    objects, began = [], time.perf_counter()
    for file in export.files:
        if file.endswith(".c") and file != "main.c":
            objects.append(folder / Path(file.replace("/", "_")).with_suffix(".o"))
            words = [*compiler.command, *flags_of(compiler), *graph, "-c", file]
            run([*words, "-o", str(objects[-1])], export.folder)
    seconds = time.perf_counter() - began
    replay = folder / "replay"
    run([*compiler.command, *map(str, objects), "-lm", GARBAGE, "-o", str(replay)], folder)
    flash = stack = None
    if gcc and shutil.which("size"):
        own = [str(path) for path in objects if path.name != "replay.o"]
        entry = f"-Wl,-e,{export.name}_solve"
        run([*compiler.command, "-nostdlib", "-r", GARBAGE, entry, *own, "-o", "kept"], folder)
        text, data, _ = map(int, run(["size", "kept"], folder).splitlines()[1].split()[:3])
        flash = text + data  # nothing but constants with addresses in them is data
    if gcc:
        graphs = "\n".join(path.with_suffix(".ci").read_text("utf-8") for path in objects)
        pointed = [f"{export.name}.c:{word}" for word in ("first", "second")]
        stack = deepest(graphs, f"{export.name}_solve", pointed)
    counted = instructions(export, replay) if shutil.which("valgrind") else None
    return Costs(seconds, flash, stack, counted)


def instructions(export: Export, replay: Path) -> list[int]:
    """Instructions of every solve."""
    name, out = f"{export.name}_solve_in", replay.with_name("counted")
    options = f"--callgrind-out-file={out}", f"--toggle-collect={name}", f"--dump-after={name}"
    words = ["valgrind", "-q", "--tool=callgrind", *options, str(replay)]
    run(words, replay.parent, spoken(export.solves))
    counts = []
    for number in range(1, len(export.solves) + 1):
        text = Path(f"{out}.{number}").read_text(encoding="utf-8")
        summary = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        counts.append(int(summary[1]) if summary else 0)
    return counts


def deepest(graphs: str, entry: str, pointed: Sequence[str]) -> int | None:
    """Bytes of stack at most below a function; None where they have no bound.

    Args:
        graphs: the text of the files that ``-fcallgraph-info=su`` wrote.
        entry: the function.
        pointed: the titles of the functions that are called through pointers.
    """
    listed = FRAME.findall(graphs)
    frames = {title: int(size) for title, size, _ in listed}
    calls: dict[str, set[str]] = defaultdict(set)
    for source, target in EDGE.findall(graphs):
        calls[source].add(target)
    calls[INDIRECT] = set(pointed)
    depths: dict[str, float] = {}

    def depth(title: str) -> float:
        if title not in depths:
            depths[title] = float("inf")  # remains for a function that reaches itself
            depths[title] = frames.get(title, 0) + max(map(depth, calls[title]), default=0)
        return depths[title]

    bounded = all(kind != "dynamic" for *_, kind in listed)  # as an array of variable length is
    return int(depth(entry)) if bounded and depth(entry) < float("inf") else None


def row(name: str, controller: Controller, compiler: Compiler, cold: bool) -> list[str]:
    """Export, compare, count; the cells of one row."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as objects:
        solver = nlpsol(name.replace("-", "_"), "hybrid", controller.nlp)
        export = solver.export(folder, loop=controller.loop, cold=cold, **controller.arguments)
        compared = compare(export, compiler)
        counted = costs(export, compiler, Path(objects))
        text = (Path(folder) / f"{export.name}_functions.c").read_text(encoding="utf-8")
    *warm, last = counted.instructions or (None,)
    most = max(warm) if warm and cold else max(counted.instructions or (0,))
    ended = "" if compared.cold is None else f"status {compared.cold[0]}, {compared.cold[1]} steps"
    lines = f"{text.count(chr(10)):,} lines, {export.form}"
    return [
        name, str(solver.size1_in(0)), str(solver.size1_out(2)), lines, f"{export.memory:,}",
        number(counted.flash), number(counted.stack), f"{counted.seconds:.0f}",
        f"{compared.solved[0]}/{compared.solved[1]}", f"{compared.difference:.1g}",
        number(most or None), ended, number(last if cold else None),
    ]  # fmt: skip


def number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def print_costs(names: Iterable[str], steps: int, compiler: Compiler, cold: bool) -> None:
    """The table of the costs of these controllers."""
    print(f"{compiler}\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in names:
        cells = row(name, CONTROLLERS[name](steps), compiler, cold)
        print(f"| {' | '.join(cells)} |", flush=True)


# --- Cold starts ----------------------------------------------------------------------------------
def verdicts(group: str, compiler: Compiler) -> Iterator[tuple[str, str, str]]:
    """Name, verdict and remark for each problem of a set; the core is compiled once."""
    words = [*compiler.command, *flags_of(compiler)]
    with TemporaryDirectory() as name:
        core = Path(name)
        for case in cases(group):
            entry = case.build()
            solver = nlpsol("one", "hybrid", {key: entry[key] for key in ("x", "f", "g")})
            bounds = {key: entry[key] for key in ("lbx", "ubx", "lbg", "ubg")}
            with TemporaryDirectory() as folder:
                try:
                    export = solver.export(folder, x0=list(case.x0), **bounds)
                except InputError as error:
                    yield case.name, "not solved by Python", str(error)[:80]
                    continue
                if not list(core.glob("*.o")):
                    sources = map(str, (export.folder / "core").glob("*.c"))
                    run([*words, f"-I{export.folder}", "-c", *sources], core)
                own = [file for file in export.files if re.fullmatch(r"one\w*\.c", file)]
                objects = map(str, core.glob("*.o"))
                run([*words, *own, "replay.c", *objects, "-lm", "-o", "replay"], export.folder)
                yield case.name, *verdict(export)


def verdict(export: Export) -> tuple[str, str]:
    """The solve from the start beside Python's: a verdict, and a remark if they differ."""
    case = export.solves[-1]
    ((status, steps, numbers),) = replayed(export.folder / "replay", [case])
    in_python = case.answer.iterations
    if status:
        return f"status {status}", f"after {steps} steps; {in_python} in Python"
    expected = np.concatenate(list(case.outputs().values()))
    apart = np.abs(numbers - expected) / np.maximum(1.0, np.abs(expected))
    if steps == in_python and apart.max() <= SAME:
        return "same", ""
    return "another way", f"{steps} steps, {in_python} in Python, f {apart[0]:.1g} off"


def print_verdicts(groups: Sequence[str], compiler: Compiler) -> None:
    """The problems of these sets that differ, and how many there are of each verdict."""
    for group in groups:
        counts = Counter[str]()
        for name, kind, remark in verdicts(group, compiler):
            counts[kind] += 1
            if remark:
                print(f"{name}: {kind}: {remark}", flush=True)
        print(f"{group}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="question", required=True)
    costly = commands.add_parser("costs", help="size, stack and instructions of controllers")
    costly.add_argument("names", nargs="*", choices=[*CONTROLLERS, []], metavar="NAME")
    costly.add_argument("--steps", type=int, default=20, metavar="K", help="of the closed loop")
    costly.add_argument("--warm-only", action="store_true", help="without the search")
    cold = commands.add_parser("cold", help="solves from the starts of a set's problems")
    cold.add_argument("names", nargs="*", metavar="SET", help="of problems (default hs)")
    for command in (costly, cold):
        command.add_argument("--compiler", metavar="COMMAND", help="default: the first one found")
    chosen = parser.parse_args()
    words = chosen.compiler
    compiler = compiler_of(tuple(shlex.split(words))) if words else find_compiler()
    if compiler is None:
        parser.error("no C compiler on this machine")
    if chosen.question == "cold":
        print_verdicts(chosen.names or ["hs"], compiler)
    else:
        print_costs(chosen.names or CONTROLLERS, chosen.steps, compiler, not chosen.warm_only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
