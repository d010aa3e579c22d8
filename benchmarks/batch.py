"""What threads give: many warm solves in one call, over one thread and over more.

    python benchmarks/batch.py [--families NAME ...] [--solves K] [--threads K ...] [--repeat K]

The solves are the steps of closed loops of ``warm_peers.py``, from the guesses there, in
another order, so that dear ones do not lie together. Milliseconds by the wall clock of a quiet
machine, the median of the rounds, in each of which all take turns; "one by one" is a call of the
solver for each, "gain" what it takes by one thread over what it takes by so many. "same bits" says
whether every number of every solve is that of the solve alone; "beside NaN" the same for all others
where one in ten is asked for what no solver has.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from warm.families import FAMILIES
from warm.loop import Loop, quiet
from warm.stages import program

from casadi_hybrid import nlpsol

OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")
MOVING = ("x0", "lam_x0", "lam_g0", "p")
Arguments = dict[str, Any]


def steps_of(name: str, solves: int) -> tuple[Any, list[Arguments]]:
    """A family's problem, and the arguments of so many warm steps, mixed."""
    made = program(FAMILIES[name], FAMILIES[name].horizons[0])
    loops, per_loop = -(-solves // 60), min(solves, 60)
    with quiet():
        found = [step for seed in range(loops) for step in Loop(made).steps(seed + 1, per_loop)]
    order = np.random.default_rng(0).permutation(len(found))[:solves]
    return made.nlp, [found[k].arguments for k in order]


def columns(steps: Sequence[Arguments]) -> Arguments:
    """The arguments of one call for all of them."""
    fixed = {key: value for key, value in steps[0].items() if key not in MOVING}
    return fixed | {key: ca.horzcat(*(step[key] for step in steps)) for key in MOVING}


def same(found: Any, alone: Sequence[Arguments], which: Sequence[int]) -> bool:
    """Whether these columns are, to the last bit, what each solve gives alone."""
    return all(
        np.array(getattr(found, name))[:, k].tobytes() == np.array(alone[k][name]).ravel().tobytes()
        for k in which
        for name in OUTPUTS
    )


def measured(name: str, solves: int, threads: Sequence[int], repeat: int) -> str:
    """The row of one family."""
    nlp, steps = steps_of(name, solves)
    solver = nlpsol("solver", "hybrid", nlp)
    alone = [solver(**step) for step in steps]
    given = columns(steps)
    spent: dict[int, list[float]] = {count: [] for count in (0, *threads)}
    for _ in range(repeat):
        for count, seconds in spent.items():
            began = time.perf_counter()
            if count:
                found = solver.batch(threads=count, **given)
            else:
                for step in steps:
                    solver(**step)
            seconds.append(time.perf_counter() - began)
    bits = same(found, alone, range(solves))
    bad = [k for k in range(solves) if k % 10 == 3]
    given["p"][:, bad] = 1e200  # finite, and nothing is where it leads
    beside = same(solver.batch(**given), alone, sorted({*range(solves)} - {*bad}))
    times = {count: 1e3 * float(np.median(seconds)) for count, seconds in spent.items()}
    first = times[threads[0]]
    cells = [f"{times[count]:9.1f}" for count in times]
    cells += [f"{first / times[count]:8.2f}" for count in threads[1:]]
    return f"{name:14}" + "".join(cells) + f"{bits!s:>11}{beside!s:>12}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = ("van_der_pol", "quadrotor", "cart_pole", "bicycle")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=names)
    parser.add_argument("--solves", type=int, default=300)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--repeat", type=int, default=9)
    chosen = parser.parse_args()
    heads = ["one by one", *(f"{k} thread{'s' * (k > 1)}" for k in chosen.threads)]
    heads = [f"{head:>11}" if k == 0 else f"{head:>9}" for k, head in enumerate(heads)]
    print(f"{chosen.solves} warm solves, milliseconds")
    print(f"{'':12}" + "".join(heads) + "    gain" * (len(chosen.threads) - 1), end="")
    print("  same bits  beside NaN")
    for name in chosen.families:
        print(measured(name, chosen.solves, chosen.threads, chosen.repeat), flush=True)


if __name__ == "__main__":
    main()
