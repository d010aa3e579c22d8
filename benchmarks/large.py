"""Large problems, each solved twice in a process of its own: this package beside IPOPT with MUMPS.

    python benchmarks/large.py [--only FAMILY:SIZE ...] [--solvers NAME ...] [--limit S] [--clock C]

Problems: ``problems/large.py``, at sizes of any number. Seconds, of processor time by default:
building the solver, its first call, a second one from the same start; peak memory of the process in
MiB above what it had before building. "ok" where the KKT residual, recomputed from the problem's
own functions, is at most 1e-6 (``peers/judge.py``). Settings: ``peers/solvers.py``.

For a family of several sizes the exponent of the first call's time in n is printed, in which the
iterations are, and that of the time of one iteration.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from peers.judge import TOLERANCE, Judge
from peers.solvers import SOLVERS, Make
from problems.large import LARGE
from warm.summary import exponent

from casadi_hybrid import nlpsol

SIZES = (
    "distributed:200", "boundary:200", "parabolic:200", "torsion:300", "surface:100",
    "horizon:20000", "network:500", "network:2000",
)  # fmt: skip
OURS, PEER = "hybrid", "ipopt"
HEAD = ("problem", "n", "solver", "ok", "it.", "build", "first", "second", "MiB", "f")
WIDTHS = (-16, 8, -14, 4, 6, 8, 8, 8, 7, 14)
CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}
MAKES: dict[str, Make] = {
    **SOLVERS, "hybrid threads": lambda nlp: nlpsol("ours", "hybrid", dict(nlp), {"threads": 2}),
}  # fmt: skip


def measure(family: str, size: int, solver: str, clock: str, pipe: Connection) -> None:
    """Solve twice in this process and send what came of it."""
    data = LARGE[family](size)
    bounds = {key: data[key] for key in ("x0", "lbx", "ubx", "lbg", "ubg")}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    now = CLOCKS[clock]
    marks = [now()]
    run = MAKES[solver]({key: data[key] for key in ("x", "f", "g")})
    marks.append(now())
    for _ in range(2):
        found = run(**bounds)
        marks.append(now())
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    stats = run.stats()
    point = (found[key].full().ravel().tolist() for key in ("x", "lam_g", "lam_x"))
    pipe.send({
        "n": len(data["x0"]), "residual": Judge(data).residual(*point), "f": float(found["f"]),
        "iterations": int(stats["iter_count"]),
        "times": [b - a for a, b in pairwise(marks)], "memory": memory,
    })  # fmt: skip


def run_alone(
    family: str, size: int, solver: str, clock: str, limit: float
) -> dict[str, Any] | None:
    """What :func:`measure` sends, None where the limit has passed or the process has died."""
    context = get_context("spawn")
    pipe, child = context.Pipe()
    given = family, size, solver, clock, child
    process = context.Process(target=measure, args=given, daemon=True)
    process.start()
    child.close()
    try:
        return pipe.recv() if pipe.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def aligned(cells: Sequence[str]) -> str:
    """One line of the table."""
    return " ".join(
        cell.ljust(-width) if width < 0 else cell.rjust(width)
        for cell, width in zip(cells, WIDTHS, strict=True)
    ).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=SIZES, help="family:size")
    parser.add_argument("--solvers", nargs="+", choices=MAKES, default=[OURS, PEER])
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for a process")
    parser.add_argument("--clock", choices=CLOCKS, default="processor")
    chosen = parser.parse_args()
    wanted = [tuple(name.partition(":")[::2]) for name in chosen.only]
    for family, size in wanted:
        if family not in LARGE or not size.isdigit():
            parser.error(f"no problem {family}:{size}; families are {', '.join(LARGE)}")
    for library in ("OMP", "OPENBLAS"):  # one thread each, or processor time compares nothing
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    print(aligned(HEAD), flush=True)
    grown: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for family, size in wanted:
        for solver in chosen.solvers:
            found = run_alone(family, int(size), solver, chosen.clock, chosen.limit)
            name = f"{family}-{size}"
            if found is None:
                print(aligned([name, "", solver, "time", *[""] * 6]), flush=True)
                continue
            good = "yes" if found["residual"] <= TOLERANCE else "no"
            times = [f"{seconds:.2f}" for seconds in found["times"]]
            n, first = found["n"], found["times"][1]
            each = first / max(found["iterations"], 1)
            grown.setdefault((family, solver), []).append((n, first, each))
            print(
                aligned([
                    name, str(n), solver, good, str(found["iterations"]), *times,
                    f"{found['memory']:.0f}", f"{found['f']:.8g}",
                ]),
                flush=True,
            )  # fmt: skip
    for (family, solver), rows in grown.items():
        if len(rows) > 1:
            n, first, each = zip(*rows, strict=True)
            print(
                f"{family}, {solver}: first call n^{exponent(n, first):.2f}, "
                f"an iteration n^{exponent(n, each):.2f}"
            )


if __name__ == "__main__":
    main()
