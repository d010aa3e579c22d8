"""One predictive controller stated with this package, do-mpc and rockit, side by side.

    python benchmarks/control_versus.py [--problems NAME ...] [--steps N] [--markdown]

needs, beside this package, ``pip install do-mpc==5.1.0 sympy rockit-meco``; a tool that is missing
is left out, and said. Each file of ``versus/`` is a controller as a user of the tool writes it: the
same horizon, the same transcription (collocation with as many points, Runge–Kutta with as many
steps), the same costs and limits, the tool's own way of starting warm and its own solver. Their
closed loops run on one plant (``versus/plants.py``, CVODES to 1e-12), a step of each in turn, so
that what else the machine does meets all of them. Columns:

* lines: of the file, without blank ones, comments and docstrings; all are formatted alike;
* set-up: processor seconds of ``controller()``; first: milliseconds of the first step;
* solver, step: milliseconds of processor time, medians of the steps after the first, of the call of
  the solver (rockit: of the function that it makes) and of the whole step;
* times: the median step as a multiple of this package's;
* cost: of the closed loop, the sum of the controllers' own stage costs along the plant's states;
* apart: relative difference of that cost from this package's; tight: the same in loops in which all
  tools solve to 1e-12 and IPOPT does not move bounds (it does so by 1e-8, relative, by default);
* not: steps at which the tool does not call its answer solved; rockit's function does not say.

Variants: "compiled" is do-mpc's ``compile_nlp()`` with IPOPT's options for warm starts, which use
the multipliers that do-mpc passes; "fatrop" is rockit with ``ocp.solver("fatrop", …)``, where its
structure can be found.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import Any

import casadi as ca
import numpy as np
from peers.closed_loop import WARM, prepare
from systems_peers import align
from versus.plants import PLANTS, Plant

HERE = Path(__file__).resolve().parent / "versus"
TOOLS = {"hybrid": "casadi-hybrid", "dompc": "do_mpc", "rockit": "rockit-meco"}
TITLES = {"hybrid": "this package", "dompc": "do-mpc", "rockit": "rockit"}
VARIANTS = (("hybrid", ""), ("dompc", ""), ("dompc", "compiled"), ("rockit", ""),
            ("rockit", "fatrop"))  # fmt: skip
TIGHT = {"tol": 1e-12, "bound_relax_factor": 0.0, "dual_inf_tol": 1e-12, "compl_inf_tol": 1e-12,
         "constr_viol_tol": 1e-12}  # fmt: skip


def lines(path: Path) -> int:
    """How many lines of code a file has: no blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            prose |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        number not in prose and bool(line.strip()) and not line.strip().startswith("#")
        for number, line in enumerate(text.splitlines(), start=1)
    )


class Timed:
    """A function with the processor seconds spent in it."""

    def __init__(self, function: Any) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function returns."""
        began = time.process_time()
        try:
            return self.function(*arguments, **named)
        finally:
            self.seconds += time.process_time() - began

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


@dataclass
class Loop:
    """A controller and its plant.

    Attributes:
        problem, tool, variant: which.
        step: x → (u, whether it is solved).
        solver: what is timed within a step.
        setup: seconds of construction.
        seconds, solving: of each step, and within the solver.
        failed: steps that are not called solved.
        cost: of the closed loop so far.
    """

    problem: str
    tool: str
    variant: str
    step: Callable[[Any], tuple[Any, bool]]
    solver: Timed
    setup: float
    x: Any = None
    before: Any = None
    seconds: list[float] = field(default_factory=list)
    solving: list[float] = field(default_factory=list)
    failed: int = 0
    cost: float = 0.0

    def advance(self, plant: Plant, after: Callable[..., Any]) -> None:
        """One step of the closed loop."""
        if self.x is None:
            self.x, self.before = (np.array(v, dtype=float) for v in (plant.x0, plant.u0))
        spent, began = self.solver.seconds, time.process_time()
        found, solved = self.step(self.x)
        self.seconds.append(time.process_time() - began)
        self.solving.append(self.solver.seconds - spent)
        u = np.asarray(found, dtype=float).ravel()
        self.cost += plant.cost(self.x, u, self.before, plant.dt * (len(self.seconds) - 1))
        self.failed += not solved
        self.x, self.before = after(self.x, u), u


@contextlib.contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """A method of a class, replaced by what is made of it."""
    known = getattr(owner, name)
    setattr(owner, name, make(known))
    try:
        yield
    finally:
        setattr(owner, name, known)


def hybrid(module: Any, variant: str, tight: bool) -> tuple[Any, Timed]:
    """This package's controller."""
    from casadi_hybrid.control import OptimalControl  # noqa: PLC0415

    def stricter(known: Any) -> Any:
        return lambda self, *a, **k: known(self, *a, **k, solver={"tol": TIGHT["tol"]})

    with replaced(OptimalControl, "__init__", stricter if tight else lambda known: known):
        mpc = module.controller()
    solver = mpc.ocp.solver
    timed = solver.within = Timed(solver.within)

    def step(x: Any) -> tuple[Any, bool]:
        found = mpc.step(x)
        return found.control, found.status == "solved"

    return step, timed


def dompc(module: Any, variant: str, tight: bool) -> tuple[Any, Timed]:
    """do-mpc's controller."""
    from do_mpc.controller import MPC  # noqa: PLC0415

    more = {f"ipopt.{name}": value for name, value in TIGHT.items()} if tight else {}
    if variant == "compiled":
        more |= {f"ipopt.{name}": value for name, value in {**WARM, "mu_init": 1e-6}.items()}

    def told(known: Any) -> Any:
        def setup(self: Any) -> None:
            self.settings.nlpsol_opts.update(more)
            known(self)

        return setup

    with replaced(MPC, "setup", told):
        mpc = module.controller()
    if variant == "compiled":
        import do_mpc.optimizer  # noqa: PLC0415

        do_mpc.optimizer.nlpsol = ca.nlpsol  # compile_nlp() of 5.1.0 looks for it there in vain
        folder = tempfile.mkdtemp()
        with contextlib.chdir(folder):
            mpc.compile_nlp(overwrite=True, libname=f"{folder}/nlp.so")
    timed = mpc.S = Timed(mpc.S)

    def step(x: Any) -> tuple[Any, bool]:
        return mpc.make_step(x.reshape(-1, 1)), bool(mpc.solver_stats["success"])

    return step, timed


def rockit(module: Any, variant: str, tight: bool) -> tuple[Any, Timed]:
    """rockit's controller, a function, which does not say whether it has solved."""
    from rockit import Ocp  # noqa: PLC0415

    made: list[Timed] = []

    def told(known: Any) -> Any:
        def solver(self: Any, name: str, options: Any) -> Any:
            options = dict(options)
            if variant == "fatrop":
                name = "fatrop"
                del options["ipopt"]
                options |= {"fatrop": {"print_level": 0}, "structure_detection": "auto"}
            elif tight:
                options["ipopt"] = {**options["ipopt"], **TIGHT}
            return known(self, name, options)

        return solver

    def timed(known: Any) -> Any:
        def to_function(self: Any, *arguments: Any) -> Timed:
            made.append(Timed(known(self, *arguments)))
            return made[0]

        return to_function

    with replaced(Ocp, "solver", told), replaced(Ocp, "to_function", timed):
        control = module.controller()
    return lambda x: (control(x), True), made[0]


MAKERS = {"hybrid": hybrid, "dompc": dompc, "rockit": rockit}


def loop(problem: str, tool: str, variant: str = "", tight: bool = False) -> Loop:
    """Make a controller, ready for its first step."""
    module = import_module(f"versus.{problem}_{tool}")
    began = time.process_time()
    step, solver = MAKERS[tool](module, variant, tight)
    return Loop(problem, tool, variant, step, solver, time.process_time() - began)


def run(
    problem: str, kinds: Sequence[tuple[str, str]], steps: int, tight: bool = False
) -> tuple[list[Loop], list[str]]:
    """The closed loops of one problem, a step of each in turn, and what could not run."""
    plant = PLANTS[problem]
    after = plant.after()
    loops, said = [], []
    for tool, variant in kinds:
        try:
            made = loop(problem, tool, variant, tight)
            made.advance(plant, after)
        except Exception as error:  # noqa: BLE001, the table says so
            text = str(error).strip().splitlines() or [type(error).__name__]
            why = next((line for line in text if "Fatrop:" in line or "failed" in line), text[-1])
            said.append(f"{problem}, {_title(tool, variant)}: {why[:160]}")
        else:
            loops.append(made)
    for _ in range(steps - 1):
        for each in list(loops):
            try:
                each.advance(plant, after)
            except Exception as error:  # noqa: BLE001
                loops.remove(each)
                said.append(f"{problem}, {_title(each.tool, each.variant)}: {error}")
    return loops, said


HEADER = ("problem", "tool", "lines", "set-up s", "first ms", "solver ms", "step ms", "times",
          "cost", "apart", "tight", "not")  # fmt: skip


def rows(loops: Sequence[Loop], tight: Sequence[Loop]) -> list[list[str]]:
    """The rows of one problem; the first loop is this package's."""
    ours = loops[0]
    exact = {each.tool: each.cost for each in tight}
    found = []
    for each in loops:
        plain = not each.variant and each is not ours
        found.append(
            [
                each.problem,
                _title(each.tool, each.variant),
                str(lines(HERE / f"{each.problem}_{each.tool}.py")),
                f"{each.setup:.2f}",
                f"{1e3 * each.seconds[0]:.0f}",
                f"{1e3 * median(each.solving[1:]):.2f}",
                f"{1e3 * median(each.seconds[1:]):.2f}",
                f"{median(each.seconds[1:]) / median(ours.seconds[1:]):.1f}",
                f"{each.cost:.9g}",
                "–" if each is ours else _apart(each.cost, ours.cost),
                _apart(exact[each.tool], exact["hybrid"]) if plain and each.tool in exact else "–",
                "–" if each.tool == "rockit" else str(each.failed),
            ]
        )
    return found


def markdown(table: Sequence[Sequence[str]]) -> str:
    """The table as documentation takes it."""
    head, *body = table
    rule = ["---", "---", *["--:"] * (len(head) - 2)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *body))


def versions() -> str:
    """What ran, when, on what."""
    parts = [f"{name} {metadata.version(name)}" for name in ("casadi", *TOOLS.values())
             if _installed(name)]  # fmt: skip
    return f"{date.today()}; Python {platform.python_version()}, {', '.join(parts)}"


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _title(tool: str, variant: str) -> str:
    return TITLES[tool] + (f", {variant}" if variant else "")


def _apart(value: float, other: float) -> str:
    return f"{abs(value - other) / abs(other):.0e}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let the tools' words on the way out of the table."""
    words = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(words):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(words):
            yield


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the loops and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=list(PLANTS), default=list(PLANTS))
    parser.add_argument("--steps", type=int, help="of each loop, at least 2")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    missing = [name for name in ("do_mpc", "rockit-meco") if not _installed(name)]
    if missing:
        print(f"left out: {', '.join(missing)}; pip install do-mpc==5.1.0 sympy rockit-meco")
    if "do_mpc" not in missing:
        prepare()
    kinds = [(tool, variant) for tool, variant in VARIANTS if TOOLS[tool] not in missing]
    table, said = [list(HEADER)], []
    for problem in given.problems:
        steps = given.steps or PLANTS[problem].steps
        with quiet():
            loops, why = run(problem, kinds, steps)
            tight, _ = run(problem, [kind for kind in kinds if not kind[1]], steps, tight=True)
        found = rows(loops, tight)
        table += found
        said += why
        print(align(found), file=sys.stderr)
    print(versions())
    print(markdown(table) if given.markdown else align(table))
    for sentence in said:
        print(f"left out: {sentence}")


if __name__ == "__main__":
    main()
