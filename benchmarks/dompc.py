"""do-mpc's example controllers and estimators in closed loop, with this package and with IPOPT.

    python benchmarks/dompc.py --examples FOLDER [--steps 10] [--only TEXT ...]
        [--solvers NAME ...] [--tight] [--cold] [--exact] [--json FILE] [--reference FILE]

FOLDER is the folder examples/ of a checkout of do-mpc's repository, version 5.1; do-mpc itself is
installed (``pip install do-mpc==5.1.0 sympy "numpy<2.4"``: it imports sympy unasked, and its
examples turn 1×1 arrays into numbers, which later versions of NumPy refuse). Every example's
``main.py`` runs as it is, once with each solver, in a process and a closed loop of its own:

* hybrid: after the ``setup()`` of a controller or an estimator the one line
  ``mpc.S = casadi_hybrid.nlpsol("S", "hybrid", mpc.nlp, mpc.settings.nlpsol_opts)``;
* ipopt: as do-mpc sets it up. It gets multipliers too, which IPOPT leaves unused by default;
* ipopt-warm: from the second step on with IPOPT's options for warm starts (pushes of 1e-8 and
  ``mu_init`` 1e-6, the best of three by trial on these examples; "ipopt-warm-4" and "ipopt-warm-2"
  have 1e-4 and 1e-2); "ipopt-exact" is ipopt-warm without relaxed bounds.

Numbers of several solvers stand in their order. Columns:

* iterations: the sum over the loop;
* KKT points: answers whose unscaled residuals, recomputed from the problem's functions, are at
  most 1e-6. IPOPT moves bounds outwards by 1e-8 relative unless told not to: a number in brackets
  counts the points by bounds moved like that, where it differs;
* first, later: milliseconds of processor time of the first call, and the median of the others;
* states, inputs: the largest difference between the loops of "hybrid" and "ipopt", relative to the
  largest value of that state or input (values below 1e-3 count as 1e-3);
* f, u: every problem of the loop with "ipopt" is also solved by this package, cold. f is the
  largest relative difference of the objectives, negative where this package's is smaller, u that of
  the loop's use of the answer, a controller's first input or an estimator's last state. Where f
  agrees and u does not, the problem does not say which input is best, or has several optima;
* residual: the largest of this package's answers in both loops, and of IPOPT's.

With ``--cold`` multipliers stay unused. With ``--tight`` IPOPT's bounds are not relaxed and all
solvers have ``tol`` 1e-10. ``--reference FILE`` takes the records that ``--json`` wrote in another
run of as many steps, such as one with ``--tight --cold``, and adds how far each of the two loops is
from the loop with IPOPT in that run. With ``--exact`` every problem of both loops is also solved to
``tol`` 1e-12, and "errors" says how far the u of each loop is from that: of the first solve, and
the median of the others.
"""

from __future__ import annotations

import argparse
import builtins
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

import casadi as ca
import casadi.tools
import numpy as np
from peers.judge import TOLERANCE, Judge
from peers.report import table

from casadi_hybrid import nlpsol

EXAMPLES = (
    "CSTR",
    "batch_reactor",
    "batch_reactor_differentiator",
    "double_inverted_pendulum",
    "dynamic_bicycle_model",
    "industrial_poly",
    "kinematic_bicycle_model",
    "kite",
    "oscillating_masses_discrete",
    "oscillating_masses_discrete_dae",
    "rotating_oscillating_masses_mhe_mpc",
)
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
OURS, IPOPT = "hybrid", "ipopt"
SMALL, RELAXED, SHORTEST = 1e-3, 1e-8, 1e-4
COLD = {"ipopt.warm_start_init_point": "no"}
TIGHT = {"ipopt.tol": 1e-10, "ipopt.bound_relax_factor": 0.0}
EXACT = {"tol": 1e-12, "warm": False}
QUIET = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
UNRELAXED = {"ipopt.bound_relax_factor": 0.0}
PUSHES = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push")
Loop = dict[str, Any]


def warm(mu: float) -> dict[str, Any]:
    """IPOPT's options for a warm start that begins with this barrier parameter."""
    pushes = {f"ipopt.warm_start_{name}": 1e-8 for name in PUSHES}
    return {**QUIET, "ipopt.warm_start_init_point": "yes", "ipopt.mu_init": mu, **pushes}


SOLVERS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    OURS: ({}, {}),
    IPOPT: ({}, {}),
    "ipopt-warm": (QUIET, warm(1e-6)),
    "ipopt-warm-4": (QUIET, warm(1e-4)),
    "ipopt-warm-2": (QUIET, warm(1e-2)),
    "ipopt-exact": (QUIET | UNRELAXED, warm(1e-6) | UNRELAXED),
}
"""The options beside those of do-mpc, in the first call and in the others."""


# --- One example in this process ------------------------------------------------------------------
class Enough(Exception):
    """The closed loop has made its steps."""


class Recorded:
    """A solver for an object of do-mpc, with a record of each call."""

    def __init__(self, owner: Any, name: str, exact: bool) -> None:
        self.owner, self.calls = owner, list[dict[str, Any]]()
        nlp, options = owner.nlp, owner.settings.nlpsol_opts
        plugin, make = (OURS, nlpsol) if name == OURS else (IPOPT, ca.nlpsol)
        first, later = SOLVERS[name]
        self._last = self._first = make("S", plugin, nlp, {**options, **first})
        self._later = self._first
        if later != first:
            self._later = make("S", plugin, nlp, {**options, **later})
        self._judges = [Judge(nlp), Judge(nlp, RELAXED)]
        self._others = {}
        if name == IPOPT:
            self._others["other"] = nlpsol("S", OURS, nlp, options)
        if exact:
            self._others["exact"] = nlpsol("S", OURS, nlp, EXACT)

    def __call__(self, **arguments: Any) -> Mapping[str, Any]:
        """Solve as do-mpc asks for it, and the same problem by the others from a cold start."""
        self._last = self._later if self.calls else self._first
        began = time.process_time()
        answer = self._last(**arguments)
        seconds = max(time.process_time() - began, SHORTEST)
        call = self._judged(self._last, answer, arguments) | {"seconds": seconds}
        cold = {key: value for key, value in arguments.items() if not key.startswith("lam")}
        for name, other in self._others.items():
            call[name] = self._judged(other, other(**cold), arguments)
        self.calls.append(call)
        return answer

    def stats(self) -> Mapping[str, Any]:
        """Statistics of the last call."""
        return self._last.stats()

    def _judged(
        self, solver: Any, answer: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        columns = {key: ca.DM(value).full().ravel(order="F") for key, value in arguments.items()}
        numbers = {key: columns[key] for key in ("p", "lbx", "ubx", "lbg", "ubg")}
        x, lam_g, lam_x = (answer[key].full().ravel() for key in ("x", "lam_g", "lam_x"))
        judges = [judge.at(**numbers) for judge in self._judges]
        residuals = [judge.residual(x, lam_g, lam_x, fit=False) for judge in judges]
        entries = self.owner._opt_x(answer["x"])
        controls = type(self.owner).__name__ == "MPC"
        used = entries["_u", 0, 0] if controls else entries["_x", -1, -1]
        return {
            "f": judges[0].objective(x),
            "residual": residuals[0],
            "relaxed": residuals[1],
            "iterations": int(solver.stats()["iter_count"]),
            "u": np.asarray(ca.DM(used).full()).ravel().tolist(),
        }


def prepare() -> None:
    """Import do-mpc with the names it looks for, and draw nothing."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg", force=True)
    from matplotlib import pyplot as plt  # noqa: PLC0415

    nothing: Any = lambda *_, **__: None  # noqa: E731
    plt.show = plt.pause = plt.ion = nothing
    builtins.input = lambda *_: ""
    # From 3.8 on casadi.tools lacks the names that do-mpc looks for there.
    casadi.tools.structure3 = casadi.tools.structure
    for name in dir(ca):
        if not name.startswith("_") and not hasattr(casadi.tools, name):
            setattr(casadi.tools, name, getattr(ca, name))
    import do_mpc  # noqa: PLC0415 - after the names and the backend are in place

    for name in ("plot_results", "plot_predictions", "reset_axes"):
        setattr(do_mpc.graphics.Graphics, name, nothing)


def work(folder: Path, name: str, chosen: argparse.Namespace) -> None:
    """Run an example's main.py for so many steps and write what its controllers did."""
    prepare()
    import do_mpc  # noqa: PLC0415 - after the names and the backend are in place

    solvers: list[Recorded] = []
    extra = (TIGHT if chosen.tight else {}) | (COLD if chosen.cold else {})

    def recording(setup: Callable[[Any], None]) -> Callable[[Any], None]:
        def recorded(self: Any) -> None:
            self.settings.nlpsol_opts.update(extra)
            setup(self)
            self.S = Recorded(self, name, chosen.exact)
            solvers.append(self.S)

        return recorded

    for kind in (do_mpc.controller.MPC, do_mpc.estimator.MHE):
        kind.setup = recording(kind.setup)
    step, left = do_mpc.controller.MPC.make_step, iter(range(chosen.steps))

    def stepped(self: Any, *arguments: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise Enough
        return step(self, *arguments, **named)

    do_mpc.controller.MPC.make_step = stepped
    np.random.seed(1)  # noqa: NPY002 - the examples draw from it
    target, end = chosen.json.resolve(), "done"
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(folder / "main.py"), run_name="__main__")
    except Enough:
        pass
    except Exception as error:  # noqa: BLE001 - whatever ended the script is the record
        end = f"{type(error).__name__}: {error}"
    loops = [
        {
            "owner": type(solver.owner).__name__,
            "sizes": [solver.owner.nlp["x"].numel(), solver.owner.nlp["g"].numel()],
            "states": np.asarray(solver.owner.data["_x"]).tolist(),
            "inputs": np.asarray(solver.owner.data["_u"]).tolist(),
            "calls": solver.calls,
        }
        for solver in solvers
    ]
    target.write_text(json.dumps({"end": end, "loops": loops}), encoding="utf-8")


# --- All examples ---------------------------------------------------------------------------------
def run(name: str, solver: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """The record of an example with one solver, in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "record"
        command = [sys.executable, __file__, "--worker", solver, "--only", name]
        command += ["--examples", str(chosen.examples.resolve()), "--json", str(target)]
        command += ["--steps", str(chosen.steps)]
        command += [flag for flag in ("--tight", "--cold", "--exact") if getattr(chosen, flag[2:])]
        ended = "no record"
        try:
            subprocess.run(
                command, capture_output=True, env={**os.environ, **SINGLE}, timeout=chosen.limit,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            ended = f"more than {chosen.limit:g} s"
        if not target.exists():
            return {"end": ended, "loops": []}
        return dict(json.loads(target.read_text()))


def grouped(records: Mapping[str, dict[str, Any]]) -> list[dict[str, Loop]]:
    """The loops of an example by solver, for each of its controllers and estimators."""
    groups: list[dict[str, Loop]] = []
    for solver, record in records.items():
        for which, loop in enumerate(record["loops"]):
            if which == len(groups):
                groups.append({})
            if loop["calls"]:
                groups[which][solver] = loop
    return groups


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of two records over time, relative to the size of each signal."""
    a, b = np.atleast_2d(ours), np.atleast_2d(theirs)
    if a.shape != b.shape:
        return np.nan
    if not a.size:
        return 0.0
    return float((np.abs(a - b).max(axis=0) / np.maximum(np.abs(b).max(axis=0), SMALL)).max())


def points(calls: Sequence[Mapping[str, Any]]) -> str:
    """The number of KKT points, in brackets by bounds moved outwards where that differs."""
    given, moved = (sum(c[key] <= TOLERANCE for c in calls) for key in ("residual", "relaxed"))
    return str(given) if given == moved else f"{given} ({moved})"


def later(loop: Loop, key: str, middle: Callable[[Sequence[float]], float]) -> float:
    """Median or mean over the calls after the first."""
    return middle([call[key] for call in loop["calls"][1:] or loop["calls"]])


HEAD = ("example", "solver of", "n × m", "solves", "iterations", "KKT points", "first ms",
        "later ms")  # fmt: skip
PAIR = ("states", "inputs", "u", "f", "residual")
FROM, ERRORS = "from reference", "errors"


def row(name: str, loops: Mapping[str, Loop]) -> list[str]:
    """The cells of one controller or estimator that are the same for any solvers."""
    some = next(iter(loops.values()))
    calls = [loop["calls"] for loop in loops.values()]
    texts = (
        [str(sum(call["iterations"] for call in each)) for each in calls],
        [points(each) for each in calls],
        [f"{1e3 * each[0]['seconds']:.3g}" for each in calls],
        [f"{1e3 * later(loop, 'seconds', median):.3g}" for loop in loops.values()],
    )
    size = "{} × {}".format(*some["sizes"])
    return [name, some["owner"], size, str(len(calls[0])), *map(", ".join, texts)]


def pair(ours: Loop, theirs: Loop) -> list[str]:
    """The cells that compare the loop of this package with the one of IPOPT."""
    calls = theirs["calls"]
    others = [call["other"] for call in calls]
    differences = [
        (other["f"] - call["f"]) / max(1.0, abs(call["f"]))
        for call, other in zip(calls, others, strict=True)
    ]
    largest = [max(call["residual"] for call in each) for each in (ours["calls"] + others, calls)]
    return [
        f"{apart(ours['states'], theirs['states']):.1e}",
        f"{apart(ours['inputs'], theirs['inputs']):.1e}",
        f"{apart([other['u'] for other in others], [call['u'] for call in calls]):.1e}",
        f"{max(differences, key=abs):+.0e}",
        ", ".join(f"{residual:.0e}" for residual in largest),
    ]


def distance(loop: Loop, reference: Loop) -> str:
    """The larger difference of a state or an input from the loop of a reference."""
    return f"{max(apart(loop[key], reference[key]) for key in ('states', 'inputs')):.1e}"


def errors(loop: Loop) -> str:
    """Distance of a loop's answers from exact ones: of the first, the median of the others."""
    exact = np.array([call["exact"]["u"] for call in loop["calls"]])
    off = np.abs(np.array([call["u"] for call in loop["calls"]]) - exact)
    each = (off / np.maximum(np.abs(exact).max(axis=0), SMALL)).max(axis=1)
    return f"{each[0]:.0e}, {np.median(each[1:]):.0e}"


def ratios(groups: Sequence[Mapping[str, Loop]], peer: str) -> str:
    """Geometric means over the examples of this package's numbers over a peer's."""
    both = [(group[OURS], group[peer]) for group in groups if {OURS, peer} <= group.keys()]
    texts = []
    for title, value in (
        ("seconds of a later step", lambda loop: later(loop, "seconds", median)),
        ("its iterations", lambda loop: later(loop, "iterations", mean)),
        ("seconds of the first step", lambda loop: loop["calls"][0]["seconds"]),
        ("its iterations", lambda loop: loop["calls"][0]["iterations"]),
    ):
        each = [max(value(ours), 1e-9) / max(value(theirs), 1e-9) for ours, theirs in both]
        above = sum(ratio > 1 for ratio in each)
        texts.append(f"{title} {geometric_mean(each):.2f} ({above} of {len(each)} above 1)")
    return f"{OURS} / {peer}, geometric means: {', '.join(texts)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the examples and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=Path, required=True, help="examples/ of do-mpc 5.1")
    parser.add_argument("--steps", type=int, default=10, help="steps of each closed loop")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the examples' names")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=[OURS, IPOPT])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one script")
    parser.add_argument("--json", type=Path, help="file for all records")
    parser.add_argument("--tight", action="store_true", help="tol 1e-10, bounds not relaxed")
    parser.add_argument("--cold", action="store_true", help="leave multipliers unused")
    parser.add_argument("--exact", action="store_true", help="compare with answers to 1e-12")
    parser.add_argument("--reference", type=Path, help="records of another run to compare with")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        work(chosen.examples / chosen.only[0], chosen.worker, chosen)
        return
    names = [name for name in EXAMPLES if any(text in name for text in chosen.only)]
    if missing := [name for name in names if not (chosen.examples / name / "main.py").exists()]:
        parser.error(f"{chosen.examples} lacks {', '.join(missing)}")
    reference = json.loads(chosen.reference.read_text()) if chosen.reference else {}
    head = [*HEAD, *PAIR, *[FROM] * bool(reference), *[ERRORS] * chosen.exact]
    rows, groups, records = [head], list[dict[str, Loop]](), dict[str, Any]()
    for name in names:
        records[name] = {solver: run(name, solver, chosen) for solver in chosen.solvers}
        for solver, record in records[name].items():
            if record["end"] != "done":
                print(f"{name} with {solver}: {record['end']}", flush=True)
        for which, group in enumerate(grouped(records[name])):
            if not group:
                continue
            cells, both = row(name, group), [group[each] for each in (OURS, IPOPT) if each in group]
            cells += pair(*both) if len(both) == 2 else ["–"] * len(PAIR)
            if reference:
                peer = reference.get(name, {}).get(IPOPT, {"loops": []})["loops"][which:]
                cells.append(", ".join(distance(loop, peer[0]) for loop in both if peer))
            if chosen.exact:
                cells.append(" | ".join(map(errors, both)))
            rows.append(cells)
            groups.append(group)
            print(" | ".join(cells), flush=True)
    print(f"solvers, in their order: {', '.join(chosen.solvers)}")
    print(table(rows))
    for peer in chosen.solvers:
        if groups and peer != OURS and OURS in chosen.solvers:
            print(ratios(groups, peer))
    if chosen.json:
        chosen.json.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
