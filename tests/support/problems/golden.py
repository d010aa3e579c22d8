"""The golden table: how the default method ends on the fast collections, written anew by

    python tests/support/problems/golden.py

A row is the verdict, f to 1e-6 and the iterations, within a fifth or three. What a start that is
moved by 1e-13 changes by more hangs on the last bit, so on the processor, and is null.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from peers.cases import Case, cases

from casadi_hybrid import nlpsol

FILE = ROOT / "tests" / "data" / "golden.json"
SETS = ("hs", "more", "systems", "squares", "truth")
TRAPS = ("point-as-disc", "sign-pendulum-30", "sign-pendulum-state-20", "welded-beam-thin")
Row = list[Any]
MOVED, SEEDS = 1e-13, 20


def problems() -> Iterator[tuple[str, Case]]:
    """Of each set, and of the traps those that once took hundreds of steps or thousands."""
    for group in SETS:
        yield from ((f"{group} {case.name}", case) for case in cases(group))
    yield from ((f"trap {c.name}", c) for c in cases("hopeless") if c.name in TRAPS)


def mirrored(case: Case) -> Case:
    """In -x and -g, the last entries first: lower bounds become upper ones, and sums other sums."""

    def build() -> dict[str, Any]:
        nlp = case.build()
        x, g = nlp["x"], nlp["g"][::-1] if nlp["g"].numel() else nlp["g"]
        f, g = ca.substitute([nlp["f"], -g], [x], [-x[::-1]])
        ends = {key: -np.array(nlp[key])[::-1] for key in ("lbx", "ubx", "lbg", "ubg")}
        swapped = {key.translate(str.maketrans("lu", "ul")): ends[key] for key in ends}
        return {"x": x, "f": f, "g": g, **swapped}

    return replace(case, build=build, x0=tuple(-value for value in case.x0[::-1]))


def row_of(case: Case, seed: int = 0) -> tuple[Row, Any, dict[str, Any]]:
    """The row, the problem and its answer; from a start that is moved where there is a seed."""
    nlp = case.build()
    solver = nlpsol("s", "hybrid", {key: nlp[key] for key in "xfg"})
    bounds = {key: nlp[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    x0 = np.array(case.x0)
    if seed:
        x0 += MOVED * np.random.default_rng(seed).standard_normal(x0.size) * np.maximum(1, abs(x0))
    found = solver(x0=x0, **bounds)
    stats, f = solver.stats(), float(found["f"])
    known = stats["success"] and bool(np.isfinite(f))
    word = f"{stats['stop_reason']} {stats['point_status']}"
    return [word, f if known else None, stats["iter_count"]], nlp, found


def differs(wanted: Row, found: Row) -> list[bool]:
    """Whether verdict, f and iterations are others; what is null may be anything."""
    word, f, steps = wanted
    return [
        word not in (None, found[0]),
        f is not None and not abs(f - (found[1] or 0.0)) <= 1e-6 * max(1.0, abs(f)),
        steps is not None and abs(steps - found[2]) > max(3, 0.2 * steps),
    ]


def main() -> None:
    """Write the file."""
    lines = []
    for name, case in problems():
        row = row_of(case)[0]
        moved = [differs(row, row_of(case, seed)[0]) for seed in range(1, SEEDS + 1)]
        row = [None if any(one) else part for part, *one in zip(row, *moved, strict=True)]
        row[1] = row[1] and float(f"{row[1]:.10g}")
        lines.append(f'  "{name}": {json.dumps(row)}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
