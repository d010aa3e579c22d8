"""Whether every success is true: made-up problems with known solutions, through every door.

    python benchmarks/doubt.py [--solves N] [--hours H] [--file FILE] [--print] [NAME ...]

A family makes problems by seed. A problem is a chain of calls: the first from a cold start, the
others warm with other bounds and parameters (``problems/doubtful.py``). An answer with ``success``
is judged by CasADi's exact derivatives, within 1e-6, or 100 ε of the terms at the least multipliers
where that is more:

* *false*: a bound is violated, or no multipliers make x stationary and complementary;
* *unproven*: the point is right, but the returned multipliers do not show it: their residual,
  summed without rounding, is too large, or the rounding of its terms may be (ε·Σ|J||λ|);
* *wrong*: x of a convex problem is further from x* than residuals of 1e-6 allow;
* *rejected*: ``verify`` alone says that a first-order condition fails.

*lost* is a call without success; every problem has a solution. Finished chains are lines of FILE,
from which a second run goes on. Names are of families and doors. Exit status 1: one is not true.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import casadi as ca
import numpy as np
from peers.judge import TOLERANCE, Judge, Mask, Vector
from problems.doubtful import EPS, FAMILIES, NAMES, Call

from casadi_hybrid import Opti, Problem, Solver, nlpsol
from casadi_hybrid.core.export.compare import STRICT
from casadi_hybrid.verify import Rejection, verify

NEAR, RIDGE, STEPS, STEPS_OF_C = (1e-8, 1e-6, 1e-4, 1e-3), 1e-9, 9, 60
OTHER_CONDITIONS = {Rejection.NOT_A_MINIMIZER, Rejection.UNDECIDED, Rejection.EXCEEDED_BETWEEN}
COUNTS = "solves", "successes", "false", "wrong", "unproven", "rejected", "lost", "raised"
STARTS, FOUND = ("x0", "lam_x0", "lam_g0"), ["x", "lam_x", "lam_g"]
Answers = Iterator[tuple[Any, ...]]
"""Of each call: whether it is called a success, x, lam_x, lam_g; of a controller its program."""


class Doubt(Judge):
    """The judge of one parametric problem."""

    def __init__(self, nlp: dict[str, Any]) -> None:
        super().__init__(nlp)
        self._problem = Problem.from_nlp({name: nlp[name] for name in "xpfg"})

    @staticmethod
    def _least_squares(normals: Any, target: Vector, low: Mask, high: Mask) -> Vector:
        """Of many multipliers the least: rows that rounding alone tells apart count as one."""
        wide = np.hstack((normals, RIDGE * np.eye(len(normals))))
        return Judge._least_squares(wide, np.r_[target, np.zeros(len(normals))], low, high)

    def wrong(self, call: Call, x: Any, lam_x: Any, lam_g: Any, right: Any = None) -> str:
        """The name of what is not true of a success; empty where all is."""
        x, lam_x, lam_g = (ca.DM(part).full().ravel() for part in (x, lam_x, lam_g))
        judge = self.at(**{name: call[name] for name in NAMES})
        _, gradient, values, normals = judge._at(x)
        rows, lam, m = abs(normals), np.r_[lam_g, lam_x], lam_g.size
        room = 100 * EPS * np.r_[rows[:m] @ np.abs(x), np.abs(x)].max()
        if not judge._violation(values) <= max(1.01 * TOLERANCE, room):
            return "false"

        def terms(lam: Vector) -> float:
            return float((np.abs(gradient) + rows.T @ np.abs(lam)).max())

        def error(lam: Vector) -> float:
            return judge._kkt(gradient + normals.T @ lam, values, lam)

        pairs = judge._kkt(np.zeros_like(x), values, lam)
        shown = max(EPS * terms(lam), exact_slope(gradient, normals, lam), pairs)
        if not shown <= 1.01 * max(TOLERANCE, 100 * EPS * terms(0 * lam)):
            least = min((judge._fit(gradient, values, normals, near) for near in NEAR), key=error)
            most = 1.01 * max(TOLERANCE, 100 * EPS * terms(least))
            if not error(least) <= most:
                return "false"
            if not shown <= most:
                return "unproven"
        if right is not None and not np.linalg.norm(x - right[0]) <= right[1]:
            return "wrong"
        answer = {"x": x, "lam_x": lam_x, "lam_g": lam_g}
        numbers = {name: call[name] for name in NAMES}
        report = verify(self._problem, answer, ipopt=False, **numbers)
        return "rejected" if set(report.categories) - OTHER_CONDITIONS else ""


def exact_slope(gradient: Vector, normals: Any, lam: Vector) -> float:
    """‖∇f + Jᵀλ‖_∞ of these numbers, without rounding."""
    columns = (normals if isinstance(normals, np.ndarray) else normals.toarray()).T.tolist()
    if not np.isfinite(lam).all():
        return np.inf
    factors = [Fraction(one) for one in lam.tolist()]
    pulls = (
        sum(Fraction(a) * b for a, b in zip(one, factors, strict=True) if a) for one in columns
    )
    return float(max(abs(Fraction(a) + b) for a, b in zip(gradient.tolist(), pulls, strict=True)))


def one_by_one(nlp: Any, calls: list[Call], door: str) -> Answers:
    """Each call from the answer of the one before, by numbers or by ``warm_start``."""
    by_class, solver = Solver(Problem.from_nlp(nlp)), nlpsol("s", "hybrid", nlp)
    names, found, warm = solver.name_in(), dict[str, Any](), None
    ask: Any = solver
    if door == "graph":
        inside = {name: ca.MX.sym(name, *solver.size_in(name)) for name in names}
        outside = solver(**inside)
        ask = ca.Function("graph", [*inside.values()], [outside[n] for n in FOUND], names, FOUND)
    elif door == "map":
        ask = solver.map(2, "serial")
    for call in calls:
        start = dict(zip(STARTS, found.values(), strict=True)) if found else {}
        start = {"warm_start": warm} if "warm_start" in door else start
        if "Solver" in door:
            warm = by_class.solve(**{**start, **call})
            found = {name: getattr(warm, name) for name in FOUND}
        else:
            full = {**start, **call}
            if door == "map":
                full = {name: ca.repmat(ca.DM(value), 1, 2) for name, value in full.items()}
            elif door == "graph":
                full = dict.fromkeys(STARTS, 0.0) | full
            answer = ask(**full)
            warm, found = solver.result, {name: answer[name][:, -1] for name in FOUND}
        yield warm.success, *found.values()


def at_once(nlp: Any, calls: list[Call], threads: int, numbers: bool) -> Answers:
    """All calls in a batch, cold; then each from the answer to the call before, twice."""
    solver, zero = nlpsol("s", "hybrid", nlp), np.zeros(nlp["g"].numel())
    given = {name: np.column_stack([call[name] for call in calls]) for name in NAMES}
    if "lam_g0" in calls[-1]:
        given["lam_g0"] = np.column_stack([call.get("lam_g0", zero) for call in calls])
    start: dict[str, Any] = {"x0": calls[0]["x0"]}
    for _ in range(3):
        found = solver.batch(threads=threads, **(start | given))
        parts = found.x, found.lam_x, found.lam_g
        yield from ((bool(found.success[k]), *(v[:, k] for v in parts)) for k in range(len(calls)))
        before = np.roll(np.arange(len(calls)), 1)
        start = {"warm_start": [found.result(int(k)) for k in before]}
        if numbers:
            start = {name: v[:, before] for name, v in zip(STARTS, parts, strict=True)}


def by_opti(nlp: Any, calls: list[Call]) -> Answers:
    """Rows of g, then x itself, between bounds that are parameters."""
    opti, m = Opti(), nlp["g"].numel()
    x, *given = opti.variable(nlp["x"].numel()), *(opti.parameter(calls[0][n].size) for n in NAMES)
    functions = ca.Function("fg", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]])
    (f, g), places = functions(x, given[0]), list[int]()
    opti.minimize(f)
    for rows, low, high, at, begin in ((g, *given[3:], "g", 0), (x, *given[1:3], "x", m)):
        for i in np.flatnonzero(np.isfinite(calls[0]["ub" + at])).tolist():
            two = np.isfinite(calls[0]["lb" + at][i])
            opti.subject_to(opti.bounded(low[i], rows[i], high[i]) if two else rows[i] <= high[i])
            places.append(begin + i)
    opti.solver("hybrid")
    for call in calls:
        for parameter, name in zip(given, NAMES, strict=True):
            opti.set_value(parameter, np.nan_to_num(call[name], posinf=0, neginf=0))
        if "x0" in call:
            opti.set_initial(x, call["x0"])
        elif "lam_g0" in call:
            opti.set_initial(opti.lam_g, np.r_[call["lam_g0"], np.zeros(x.numel())][places])
        solved = True
        try:
            opti.solve()
        except RuntimeError:
            solved = False
        best, lam = (opti.debug.value(one) for one in (opti.x, opti.lam_g))
        opti.set_initial(x, best)
        opti.set_initial(opti.lam_g, lam)
        full = np.zeros(m + x.numel())
        full[places] = lam
        yield solved, best, full[m:], full[:m]


def linked(export: Any, objects: Path) -> Path:
    """The program ``replay.c`` of an export; the core's objects are compiled once."""
    command = ["cc", *STRICT, "-O1"]
    if not any(objects.iterdir()):
        core = map(str, (export.folder / "core").glob("*.c"))
        subprocess.run([*command, f"-I{export.folder}", "-c", *core], cwd=objects, check=True)
    own = [file for file in export.files if file.startswith(export.name) and ".c" in file]
    files = [*own, "replay.c", *map(str, objects.glob("*.o"))]
    subprocess.run([*command, *files, "-lm", "-o", "replay"], cwd=export.folder, check=True)
    return Path(export.folder, "replay")


def by_c(nlp: Any, calls: list[Call], objects: Path) -> Answers:
    """The exported solver, compiled: a line of numbers for each call."""
    n, m, last = nlp["x"].numel(), nlp["g"].numel(), list[Vector]()
    with TemporaryDirectory() as folder:
        export = nlpsol("one", "hybrid", nlp).export(folder, **calls[0])
        source, line_end = export.folder / "replay.c", 'printf("\\n");'
        source.write_text(source.read_text().replace(line_end, line_end + " fflush(stdout);"))
        both = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([linked(export, objects)], text=True, **both) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            for call in calls:
                start = dict(zip(STARTS, last or [0, np.zeros(n), np.zeros(m)], strict=True))
                parts = [(start | call)[name] for name in ("x0", *NAMES, "lam_x0", "lam_g0")]
                numbers = np.hstack([*parts, float(bool(last))]).tolist()
                print(" ".join(map(repr, numbers)), file=running.stdin, flush=True)
                status, _, _, *found = map(float, running.stdout.readline().split())
                x, _, *lam = np.split(np.array(found), (n, n + m, 2 * n + m))
                last = [x, *lam]
                yield status == 0, *last
            running.stdin.close()


DOORS = (
    "nlpsol", "nlpsol warm_start", "graph", "map", "Solver", "Solver warm_start", "Opti", "batch 1",
    "batch 2", "C",
)  # fmt: skip


def chain(family: str, door: str, seed: int, objects: Path) -> dict[str, Any]:
    """Solve one chain by one door and judge all answers."""
    make, random = FAMILIES[family], np.random.default_rng([seed, *family.encode()])
    counts, first, number = Counter[str](dict.fromkeys(COUNTS, 0)), "", -1
    calls, right, judge = list[Call](), [None], None
    try:
        if door in ("MPC", "MHE"):
            answers = make(random, STEPS)
        else:
            nlp, calls, right = make(random, STEPS_OF_C if door == "C" else STEPS)
            judge, threads = Doubt(nlp), int(door[-1]) if "batch" in door else 0
            answers = (
                at_once(nlp, calls, threads, bool(seed // 10 % 2)) if threads
                else by_opti(nlp, calls) if door == "Opti"
                else by_c(nlp, calls, objects) if door == "C" else one_by_one(nlp, calls, door)
            )  # fmt: skip
        for number, (solved, *answer) in enumerate(answers):
            counts["solves"] += 1
            counts["successes" if solved else "lost"] += 1
            if solved:
                call = calls[number % len(calls)] if calls else {}
                for program in answer[3:]:
                    judge = judge or Doubt(dict(program.nlp))
                    call = {name: ca.DM(program.arguments[name]).full().ravel() for name in NAMES}
                found = judge.wrong(call, *answer[:3], right[number % len(right)])
                counts[found] += 1
                first = first or (found and f"call {number}: {found}")
    except Exception as error:  # noqa: BLE001 - whatever a door raises is a finding
        counts["raised"] += 1
        first = first or f"after call {number}: {type(error).__name__}: {str(error)[:150]}"
    del counts[""]
    return {"family": family, "door": door, "seed": seed, "first": first, **counts}


def show(rows: list[dict[str, Any]]) -> int:
    """Print tables by family and by door, and first findings; the number of untrue successes."""
    for label in ("family", "door"):
        print(f"\n| {label} | {' | '.join(COUNTS)} |\n|---|{'---:|' * len(COUNTS)}")
        for name in (*sorted({row[label] for row in rows}), "all"):
            own = [row for row in rows if name in (row[label], "all")]
            print(f"| {name} | {' | '.join(f'{sum(r[c] for r in own):,}' for c in COUNTS)} |")
    print()
    for row in {(row["family"], row["first"][-6:]): row for row in rows if row["first"]}.values():
        print(f"{row['family']}, {row['door']}, seed {row['seed']}: {row['first']}")
    return sum(row[count] for row in rows for count in ("false", "wrong", "unproven"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="families or doors; all by default"
    )
    parser.add_argument("--solves", type=int, default=300_000, help="at least so many in FILE")
    parser.add_argument("--hours", type=float, default=1.0, help="begin no chain after these")
    parser.add_argument("--file", type=Path, default=Path("doubt.jsonl"))
    parser.add_argument("--print", action="store_true", help="print the tables of FILE alone")
    options = parser.parse_args()
    options.file.touch()
    rows = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    done, seed = {(row["family"], row["seed"]) for row in rows}, -1
    until = time.monotonic() + (0 if options.print else 3600 * options.hours)
    with TemporaryDirectory() as objects, options.file.open("a", encoding="utf-8") as kept:
        while sum(row["solves"] for row in rows) < options.solves and time.monotonic() < until:
            seed += 1
            for place, family in enumerate(FAMILIES):
                door = (
                    family[:3].upper()
                    if family[:3] in ("mpc", "mhe")
                    else DOORS[(seed + place) % len(DOORS)]
                )
                chosen = not options.names or {family, door} & set(options.names)
                if chosen and (family, seed) not in done and time.monotonic() < until:
                    rows.append(chain(family, door, seed, Path(objects)))
                    print(json.dumps(rows[-1]), file=kept, flush=True)
    return 1 if show(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
