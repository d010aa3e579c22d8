"""Do short calls, each from the point returned, come to what one long call does?

    python benchmarks/chains.py [--half 1] [--limits 3 6 12 20] [--last] [--ipopt]

Every second problem of the collections is solved in one call and by a chain of calls of few
iterations, which goes on by x0, lam_x0 and lam_g0 from the point returned, or from the last iterate
(``--last``). Within 1.5: with success, in at most 1.5 times the iterations of the long call.
``--ipopt``: IPOPT, with its option warm_start_init_point in all calls but the first. The problems
are those with a long call of more than 6 and at most ``--most`` iterations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from peers.cases import Case, cases

from casadi_hybrid import nlpsol

GROUPS = ("control", "hs", "more")
Call = Callable[[dict[str, Any] | None, int], tuple[dict[str, Any], bool, int]]
QUIET = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}


def caller(case: Case, given: argparse.Namespace) -> Call:
    """A call from an earlier answer, None for x0: the answer, success, iterations."""
    built = case.build()
    nlp = {key: built[key] for key in "xfg"}
    numbers = {key: built[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    first = {**numbers, "x0": list(case.x0) or built["x0"]}
    if given.ipopt:
        made: dict[Any, Any] = {}

        def by_ipopt(before: Any, most: int) -> Any:
            warm = before is not None
            if (warm, most) not in made:
                options = {"ipopt.max_iter": most, **QUIET}
                options |= {"ipopt.warm_start_init_point": "yes"} if warm else {}
                made[warm, most] = ca.nlpsol("s", "ipopt", nlp, options)
            start = numbers_of(before) if warm else {}
            found = made[warm, most](**{**first, **start})
            stats = made[warm, most].stats()
            return found, stats["success"], stats["iter_count"]

        return by_ipopt
    solver = nlpsol("s", "hybrid", nlp)

    def by_hybrid(before: Any, most: int) -> Any:
        start = {} if before is None else numbers_of(before)
        result = solver.within(np.inf, most, **{**first, **start})
        found = {"x": result.x, "lam_x": result.lam_x, "lam_g": result.lam_g}
        if given.last:
            found = dict(zip(found, result.last.values(), strict=True))
        return found, result.success, result.iterations

    return by_hybrid


def numbers_of(found: dict[str, Any]) -> dict[str, Any]:
    """What a call of CasADi goes on from."""
    return {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}


def chain(call: Call, few: int, long: int) -> tuple[bool, int]:
    """Whether calls of few iterations come to a solution, and how many they take in all."""
    found, spent, idle = None, 0, 0
    while spent < 3 * long + 3 * few and idle < 4:
        found, success, iterations = call(found, few)
        spent += iterations
        idle = 0 if iterations else idle + 1
        if success:
            return True, spent
    return False, spent


def main() -> None:
    """Print a line a chain that fails, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", type=int, default=1, choices=(1, 2))
    parser.add_argument("--limits", type=int, nargs="+", default=[3, 6, 12, 20])
    parser.add_argument("--groups", nargs="+", default=GROUPS)
    parser.add_argument("--most", type=int, default=150)
    parser.add_argument("--largest", type=int, default=1500, help="variables")
    parser.add_argument("--last", action="store_true")
    parser.add_argument("--ipopt", action="store_true")
    given = parser.parse_args()
    print("set      limit  chains  solved  within 1.5  geometric mean of the ratio")
    for group in given.groups:
        ratios: dict[int, list[float]] = {few: [] for few in given.limits}
        for case in cases(group)[given.half - 1 :: 2]:
            if case.build()["x"].numel() > given.largest:
                continue
            call = caller(case, given)
            _, success, long = call(None, given.most)
            if not success or long <= 6:
                continue
            for few in given.limits:
                if few < long:
                    solved, spent = chain(call, few, long)
                    ratios[few].append(spent / long if solved else np.inf)
                    if ratios[few][-1] > 1.5:
                        print(f"  {case.name}, limit {few}: {spent} for {long}, solved {solved}")
        for few, of in ratios.items():
            known = [one for one in of if one < np.inf]
            print(f"{group:8} {few:5} {len(of):7} {len(known):7} {sum(one <= 1.5 for one in of):11}"
                  f" {np.exp(np.mean(np.log(known))):12.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
