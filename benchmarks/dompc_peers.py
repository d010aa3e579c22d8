"""do-mpc's own example controllers and estimators in closed loop, with IPOPT and with this package.

    python benchmarks/dompc_peers.py --examples FOLDER [--steps 20] [--only TEXT ...] [--json FILE]

FOLDER is the folder examples/ of a checkout of do-mpc's repository, version 5.1; do-mpc itself is
installed (``pip install do-mpc==5.1.0 sympy "numpy<2.4"``: it imports sympy unasked, and its
examples turn 1×1 arrays into numbers, which later versions of NumPy refuse). Every example's
``main.py`` runs as it is, in a process of its own, once with each solver, which lives in its own
closed loop of so many steps:

* hybrid: this package with the options and the arguments that do-mpc passes;
* ipopt: as do-mpc sets it up. It passes multipliers too, which IPOPT leaves unused by default;
* ipopt-warm: the same, silent; from the second step on with IPOPT's options for warm starts
  (``warm_start_init_point``, pushes of 1e-8, ``mu_init`` 1e-6, the best of three by trial on these
  examples; "ipopt-warm-4" and "ipopt-warm-2" are the others, 1e-4 and 1e-2); "ipopt-exact" is
  ipopt-warm without relaxed bounds.

An answer is a KKT point where the unscaled residuals, recomputed from the problem's functions, are
at most 1e-6. IPOPT moves bounds outwards by 1e-8 relative unless told not to: a number in brackets
counts the points by bounds moved like that where it differs. Times are processor time of the call;
"ratio" is the first solver's median over another's, so that less than 1 is a win of the first.
"apart" is the first step whose objective differs from the second solver's by more than 1e-3
relative: from there on the two loops solve different problems.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from peers.closed_loop import PEERS, run_example
from systems_peers import align

TOLERANCE, APART = 1e-6, 1e-3
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
EXAMPLES = (
    "CSTR",
    "double_inverted_pendulum",
    "industrial_poly",
    "batch_reactor",
    "batch_reactor_differentiator",
    "oscillating_masses_discrete",
    "oscillating_masses_discrete_dae",
    "rotating_oscillating_masses_mhe_mpc",
    "kite",
    "kinematic_bicycle_model",
    "dynamic_bicycle_model",
)
DEFAULT = ("hybrid", "ipopt", "ipopt-warm")


@dataclass
class Loop:
    """One solver in the closed loop of one controller or estimator.

    Attributes:
        end: "done", or why the script ended before its last step.
        setup: the record of the solver's construction, n and m among it.
        steps: a record per call.
    """

    example: str
    owner: str
    peer: str
    end: str
    setup: dict[str, Any]
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def warm(self) -> list[dict[str, Any]]:
        """The steps after the first one."""
        return self.steps[1:]

    def iterations(self) -> str:
        """Median and maximum over the steps after the first, cold one."""
        counts = [step["iterations"] for step in self.warm]
        return f"{median(counts):.4g}/{max(counts)}" if counts else "–"

    def solved(self) -> str:
        """KKT points, in brackets those by bounds moved outwards where there are others."""
        counts = [
            sum(step[key] <= TOLERANCE for step in self.steps)
            for key in ("residual", "residual_relaxed")
        ]
        return str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} ({counts[1]})"

    def seconds(self) -> float | None:
        """Median over the steps after the first."""
        return median(step["seconds"] for step in self.warm) if self.warm else None


def run(example: Path, peer: str, chosen: argparse.Namespace) -> list[Loop]:
    """The loops of one example with one solver, run in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        records = Path(scratch) / "records"
        command = [sys.executable, __file__, "--worker", peer, "--examples", str(example.parent)]
        command += ["--only", example.name, "--steps", str(chosen.steps), "--json", str(records)]
        if chosen.keep:
            command += ["--keep", str(chosen.keep)]
        environment = {**os.environ, **SINGLE}
        log = Path(scratch) / "log"
        with log.open("w") as file:
            try:
                ended = subprocess.run(
                    command, stdout=file, stderr=file, env=environment, timeout=chosen.limit,
                    check=False,
                )  # fmt: skip
                end = "done" if ended.returncode == 0 else "failed"
            except subprocess.TimeoutExpired:
                end = "timeout"
        if end == "failed":
            end = (
                f"failed: {(log.read_text(errors='replace').strip() or 'no word').splitlines()[-1]}"
            )
        lines = records.read_text().splitlines() if records.exists() else []
    loops: dict[str, Loop] = {}
    for record in map(json.loads, lines):
        owner = record["owner"]
        if owner not in loops:
            loops[owner] = Loop(example.name, owner, peer, end, record)
        else:
            loops[owner].steps.append(record)
    if not loops:
        print(f"{example.name} with {peer}: {end}", file=sys.stderr)
    return list(loops.values())


def apart(first: Loop, other: Loop) -> str:
    """The first step whose objectives differ."""
    for k, (a, b) in enumerate(zip(first.steps, other.steps, strict=False)):
        if not abs(a["f"] - b["f"]) <= APART * max(1.0, abs(b["f"])):
            return str(k)
    return "–"


def row(loops: Sequence[Loop | None], title: str) -> list[str]:
    """The cells of one controller; the loops in the order of the solvers."""

    def cell(loop: Loop | None, text: str) -> str:
        return text if loop is not None else "–"

    def each(texts: Iterable[str]) -> str:
        return " | ".join(texts)

    some = next(loop for loop in loops if loop is not None)
    times = [loop.seconds() if loop else None for loop in loops]
    ratios = [
        f"{times[0] / other:.2f}" if times[0] is not None and other is not None else "–"
        for other in times[1:]
    ]
    first, second = (*loops, None)[:2]
    return [
        title,
        str(some.setup["n"]),
        str(some.setup["m"]),
        each(cell(loop, str(len(loop.steps)) if loop else "") for loop in loops),
        each(loop.iterations() if loop else "–" for loop in loops),
        each(loop.solved() if loop else "–" for loop in loops),
        each("–" if seconds is None else f"{1e3 * seconds:.4g}" for seconds in times),
        each(ratios) or "–",
        each(str(loop.steps[0]["iterations"]) if loop and loop.steps else "–" for loop in loops),
        each(
            f"{1e3 * loop.steps[0]['seconds']:.4g}" if loop and loop.steps else "–"
            for loop in loops
        ),
        apart(first, second) if first and second else "–",
    ]


HEADER = (
    "example/object", "n", "m", "steps", "iterations, median/max", "KKT points", "ms a step",
    "ratio", "first: iterations", "first: ms", "apart",
)  # fmt: skip


def table(loops: Sequence[Loop], peers: Sequence[str]) -> str:
    """All rows, the geometric means of the ratios and what was written below them."""
    titles = list(dict.fromkeys((loop.example, loop.owner) for loop in loops))
    found = {(loop.example, loop.owner, loop.peer): loop for loop in loops}
    groups = [[found.get((*title, peer)) for peer in peers] for title in titles]
    rows = [list(HEADER)]
    rows += [row(group, "/".join(title)) for title, group in zip(titles, groups, strict=True)]
    lines = [f"solvers, from left to right: {' | '.join(peers)}", align(rows), ""]
    for place, peer in enumerate(peers[1:], start=1):
        for name, key, part in (
            ("seconds of a later step, median", "seconds", slice(1, None)),
            ("iterations of a later step, mean", "iterations", slice(1, None)),
            ("seconds of the first step", "seconds", slice(0, 1)),
            ("iterations of the first step", "iterations", slice(0, 1)),
        ):
            ratios = []
            for group in groups:
                ours, other = group[0], group[place]
                if ours is None or other is None or not (ours.steps[part] and other.steps[part]):
                    continue
                middle = median if key == "seconds" else _mean
                values = [
                    middle([step[key] for step in loop.steps[part]]) for loop in (ours, other)
                ]
                ratios.append(max(values[0], 1e-9) / max(values[1], 1e-9))
            if ratios:
                lines.append(
                    f"{peers[0]} / {peer}: geometric mean {geometric_mean(ratios):.2f} of {name} "
                    f"({sum(ratio > 1 for ratio in ratios)} of {len(ratios)} above 1)"
                )
    lines.append("")
    for peer in peers:
        mine = [loop for loop in loops if loop.peer == peer]
        calls = sum(step["characters"] for loop in mine for step in loop.steps)
        setup = sum(loop.setup["characters"] for loop in mine)
        seconds = sum(loop.setup["setup_seconds"] for loop in mine)
        steps = [step for loop in mine for step in loop.steps]
        solved = [
            sum(s[key] <= TOLERANCE for s in steps) for key in ("residual", "residual_relaxed")
        ]
        claimed = sum(step["success"] for step in steps)
        total = sum(step["seconds"] for step in steps)
        lines.append(
            f"{peer}: {solved[0]} ({solved[1]} by moved bounds) KKT points of {len(steps)} calls, "
            f"{claimed} claimed; {total:.1f} s in calls, {seconds:.1f} s in construction; "
            f"characters written: {calls} in calls, {setup} in construction"
        )
    lines += [
        f"{loop.example}/{loop.owner} with {loop.peer}: {loop.end}"
        for loop in loops
        if loop.end != "done"
    ]
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=Path, required=True, help="examples/ of do-mpc 5.1")
    parser.add_argument("--steps", type=int, default=20, help="steps of each closed loop")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the examples' names")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(DEFAULT))
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a process")
    parser.add_argument("--json", type=Path, help="write every record to this file")
    parser.add_argument("--keep", type=Path, help="folder for the first calls' problems, pickled")
    parser.add_argument("--worker", choices=list(PEERS), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    folder = chosen.examples.resolve()
    if chosen.worker:
        with chosen.json.open("w") as out:
            keep = chosen.keep.resolve() if chosen.keep else None
            run_example(folder / chosen.only[0], chosen.worker, chosen.steps, out, keep)
        return
    names = [name for name in EXAMPLES if any(text in name for text in chosen.only)]
    missing = [name for name in names if not (folder / name / "main.py").exists()]
    if missing:
        parser.error(f"{folder} lacks {', '.join(missing)}")
    loops = [
        loop for name in names for peer in chosen.peers for loop in run(folder / name, peer, chosen)
    ]
    print(table(loops, chosen.peers))
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(loop) for loop in loops], indent=1))


if __name__ == "__main__":
    main()
