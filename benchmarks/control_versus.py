"""One predictive controller stated with this package, do-mpc and rockit, side by side.

    python benchmarks/control_versus.py [--problems NAME ...] [--steps N] [--markdown]

needs, beside this package, ``pip install do-mpc==5.1.0 sympy rockit-meco``; a tool that is missing
is left out, and said. Each file of ``versus/`` is a controller as a user of the tool writes it: the
same horizon, the same transcription (collocation with as many points, Runge–Kutta with as many
steps), the same costs and limits, the tool's own way of starting warm and its own solver. Their
closed loops run on one plant (``versus/plants.py``, CVODES to 1e-12), a step of each in turn, so
that what else the machine does meets all of them. Columns:

* lines: of the file, without blank ones, comments and docstring; all are formatted alike;
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
import contextlib
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import casadi as ca
import numpy as np
from dompc import prepare, warm
from peers.report import table
from versus.plants import PLANTS, Plant
from warm.loop import quiet

HERE = Path(__file__).resolve().parent / "versus"
TOOLS = {"hybrid": "casadi-hybrid", "dompc": "do_mpc", "rockit": "rockit-meco"}
TITLES = {"hybrid": "this package", "dompc": "do-mpc", "rockit": "rockit"}
VARIANTS = (("hybrid", ""), ("dompc", ""), ("dompc", "compiled"), ("rockit", ""),
            ("rockit", "fatrop"))  # fmt: skip
TIGHT = {"tol": 1e-12, "bound_relax_factor": 0.0, "dual_inf_tol": 1e-12, "compl_inf_tol": 1e-12,
         "constr_viol_tol": 1e-12}  # fmt: skip
HEAD = ("problem", "tool", "lines", "set-up s", "first ms", "solver ms", "step ms", "times", "cost",
        "apart", "tight", "not")  # fmt: skip


class Timed:
    """A function with the processor seconds spent in it."""

    def __init__(self, function: Any) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        began = time.process_time()
        try:
            return self.function(*arguments, **named)
        finally:
            self.seconds += time.process_time() - began

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


Step = Callable[[Any], tuple[Any, bool]]


# --- Each tool: its step, x → (u, solved), and the function that solves ---------------------------
def hybrid(module: Any, variant: str, tight: bool) -> tuple[Step, Timed]:
    """This package's controller."""
    from casadi_hybrid.control import OptimalControl  # noqa: PLC0415

    plain = OptimalControl.__init__
    more: dict[str, Any] = {"solver": {"tol": TIGHT["tol"]}} if tight else {}

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        plain(self, *arguments, **named, **more)

    with patch.object(OptimalControl, "__init__", init):
        mpc = module.controller()
    solver = mpc.ocp.solver
    timed = solver.within = Timed(solver.within)

    def step(x: Any) -> tuple[Any, bool]:
        answer = mpc.step(x)
        return answer.control, answer.status == "solved"

    return step, timed


def dompc(module: Any, variant: str, tight: bool) -> tuple[Step, Timed]:
    """do-mpc's controller."""
    import do_mpc.optimizer  # noqa: PLC0415
    from do_mpc.controller import MPC  # noqa: PLC0415

    plain = MPC.setup
    more = {f"ipopt.{name}": value for name, value in TIGHT.items()} if tight else {}
    more |= warm(1e-6) if variant == "compiled" else {}

    def setup(self: Any) -> None:
        self.settings.nlpsol_opts.update(more)
        plain(self)

    with patch.object(MPC, "setup", setup):
        mpc = module.controller()
    if variant == "compiled":
        do_mpc.optimizer.nlpsol = ca.nlpsol  # compile_nlp() of 5.1.0 looks for it there in vain
        folder = tempfile.mkdtemp()
        with contextlib.chdir(folder):
            mpc.compile_nlp(overwrite=True, libname=f"{folder}/nlp.so")
    timed = mpc.S = Timed(mpc.S)
    return lambda x: (mpc.make_step(x.reshape(-1, 1)), bool(mpc.solver_stats["success"])), timed


def rockit(module: Any, variant: str, tight: bool) -> tuple[Step, Timed]:
    """rockit's controller, a function, which does not say whether it has solved."""
    from rockit import Ocp  # noqa: PLC0415

    made, plain_solver, plain_function = list[Timed](), Ocp.solver, Ocp.to_function

    def solver(self: Any, name: str, options: dict[str, Any]) -> Any:
        if variant == "fatrop":
            others = {key: value for key, value in options.items() if key != "ipopt"}
            structure = {"fatrop": {"print_level": 0}, "structure_detection": "auto"}
            return plain_solver(self, "fatrop", others | structure)
        more = {"ipopt": {**options["ipopt"], **(TIGHT if tight else {})}}
        return plain_solver(self, name, options | more)

    def to_function(self: Any, *arguments: Any) -> Timed:
        made.append(Timed(plain_function(self, *arguments)))
        return made[0]

    with patch.object(Ocp, "solver", solver), patch.object(Ocp, "to_function", to_function):
        control = module.controller()
    return lambda x: (control(x), True), made[0]


MAKERS = {"hybrid": hybrid, "dompc": dompc, "rockit": rockit}


# --- Closed loops ---------------------------------------------------------------------------------
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
    step: Step
    solver: Timed
    setup: float
    x: Any = None
    before: Any = None
    seconds: list[float] = field(default_factory=list)
    solving: list[float] = field(default_factory=list)
    failed: int = 0
    cost: float = 0.0

    @property
    def title(self) -> str:
        """Tool and variant."""
        return TITLES[self.tool] + (f", {self.variant}" if self.variant else "")

    def advance(self, plant: Plant, after: Callable[..., Any]) -> None:
        """One step of the closed loop."""
        if self.x is None:
            self.x, self.before = (np.array(v, dtype=float) for v in (plant.x0, plant.u0))
        spent, began = self.solver.seconds, time.process_time()
        control, solved = self.step(self.x)
        self.seconds.append(time.process_time() - began)
        self.solving.append(self.solver.seconds - spent)
        u = np.asarray(control, dtype=float).ravel()
        self.cost += plant.cost(self.x, u, self.before, plant.dt * (len(self.seconds) - 1))
        self.failed += not solved
        self.x, self.before = after(self.x, u), u


def loop(problem: str, tool: str, variant: str = "", tight: bool = False) -> Loop:
    """Make a controller, ready for its first step."""
    module = import_module(f"versus.{problem}_{tool}")
    began = time.process_time()
    step, solver = MAKERS[tool](module, variant, tight)
    return Loop(problem, tool, variant, step, solver, time.process_time() - began)


def run(
    problem: str, kinds: Sequence[tuple[str, str]], steps: int, tight: bool = False
) -> tuple[list[Loop], list[str]]:
    """The closed loops of one problem, a step of each in turn, and reasons of those left out."""
    plant, reasons = PLANTS[problem], []
    after, loops = plant.after(), dict[tuple[str, str], Loop]()
    for number in range(steps):
        for kind in list(loops) if number else kinds:
            try:
                if number == 0:
                    loops[kind] = loop(problem, *kind, tight)
                loops[kind].advance(plant, after)
            except Exception as error:  # noqa: BLE001, the table says so
                loops.pop(kind, None)
                lines = str(error).strip().splitlines() or [type(error).__name__]
                told = [line for line in lines if "Fatrop:" in line or "failed" in line]
                reasons.append(f"{problem}, {' '.join(kind)}: {(told or lines[-1:])[0][:160]}")
    return list(loops.values()), reasons


def rows(loops: Sequence[Loop], tight: Sequence[Loop]) -> list[list[str]]:
    """The rows of one problem; the first loop is this package's."""
    ours, cells = loops[0], []
    exact = {each.tool: each.cost for each in tight}
    for each in loops:
        lines = (HERE / f"{each.problem}_{each.tool}.py").read_text("utf-8").splitlines()[1:]
        later, plain = median(each.seconds[1:]), not each.variant and each is not ours
        row = [each.problem, each.title]
        row.append(str(sum(line.strip()[:1] not in ("", "#") for line in lines)))
        row += [f"{each.setup:.2f}", f"{1e3 * each.seconds[0]:.0f}"]
        row += [f"{1e3 * median(each.solving[1:]):.2f}", f"{1e3 * later:.2f}"]
        row += [f"{later / median(ours.seconds[1:]):.1f}", f"{each.cost:.9g}"]
        row.append("–" if each is ours else apart(each.cost, ours.cost))
        known = plain and each.tool in exact
        row.append(apart(exact[each.tool], exact["hybrid"]) if known else "–")
        row.append("–" if each.tool == "rockit" else str(each.failed))
        cells.append(row)
    return cells


def version(tool: str) -> str:
    """Distribution and version of a tool, empty where it is not installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return f"{TOOLS[tool]} {metadata.version(TOOLS[tool])}"
    return ""


def apart(value: float, other: float) -> str:
    return f"{abs(value - other) / abs(other):.0e}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the loops and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=list(PLANTS), default=list(PLANTS))
    parser.add_argument("--steps", type=int, help="of each loop, at least 2")
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    kinds = [kind for kind in VARIANTS if version(kind[0]) or kind[0] == "hybrid"]
    if missing := set(TOOLS) - {tool for tool, _ in kinds}:
        print(f"left out: {', '.join(missing)}; pip install do-mpc==5.1.0 sympy rockit-meco")
    if version("dompc"):
        prepare()
    body, remarks = [], []
    for problem in chosen.problems:
        steps = chosen.steps or PLANTS[problem].steps
        with quiet(), warnings.catch_warnings(action="ignore"):
            loops, reasons = run(problem, kinds, steps)
            tight, _ = run(problem, [kind for kind in kinds if not kind[1]], steps, tight=True)
        body += rows(loops, tight)
        remarks += reasons
        print(table([HEAD, *body[-len(loops) :]]), file=sys.stderr)
    versions = [f"Python {platform.python_version()}", f"casadi {ca.__version__}"]
    versions += [version(tool) for tool in TOOLS if version(tool)]
    print(f"{date.today()}; {', '.join(versions)}")
    print(table([HEAD, *body], chosen.markdown))
    for remark in remarks:
        print(f"left out: {remark}")


if __name__ == "__main__":
    main()
