"""do-mpc's examples with one line added after ``setup()``, beside the same scripts as they are.

    python benchmarks/dompc_switch.py --examples FOLDER [--steps 10] [--only NAME ...]
        [--json FILE] [--tight] [--cold] [--reference FILE] [--exact]

FOLDER is the folder examples/ of a checkout of do-mpc's repository, version 5.1, as for
``dompc_peers.py``. Every ``main.py`` runs twice in a process of its own: as it is, with IPOPT, and
with ::

    mpc.S = casadi_hybrid.nlpsol("S", "hybrid", mpc.nlp, mpc.settings.nlpsol_opts)

after the controller's ``setup()``, and the same for an estimator. What is compared:

* closed loop: the largest difference of a state and of an input between the two loops over all
  steps, relative to the largest value of that state or input in the loop (what IPOPT leaves of an
  input whose optimum is 0 counts absolutely below 1e-3);
* same problems: every problem that the loop with IPOPT comes to is also solved here, cold. "f" is
  the largest relative difference of the objectives, negative where this package's is smaller; "u"
  is the largest difference of what the loop takes from the answer, the first input of a controller
  and the last state of an estimator; the residuals are the largest of
  the unscaled KKT residuals, recomputed from the problem's functions. Where f agrees and both are
  KKT points but u does not, the problem does not say which input is best, or has several optima;
* points: answers of the loop that are KKT points, which is where the residual by the bounds as they
  are given is at most 1e-6. With them stand the iterations.

With ``--cold`` multipliers are not used, as IPOPT leaves them unused unless told to: here they lead
to the nearest solution, which may be another one than that of a cold start. With ``--tight``
IPOPT's bounds are not relaxed and both solvers have ``tol`` 1e-10: IPOPT moves bounds outwards by
1e-8 relative unless told not to, and with large multipliers that is seen in f.

``--reference FILE`` takes the records that ``--json`` wrote in another run of as many steps, such
as one with ``--tight --cold``, and adds how far each of the two loops is from the loop with IPOPT
in that run, the larger difference of a state or an input: which of the two a difference comes from.

With ``--exact`` every problem of both loops is also solved to ``tol`` 1e-12, and what is added is
how far the "u" of each loop's own answers is from that: of the first solve, the median of the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from peers.closed_loop import Enough, Residuals, prepare
from systems_peers import align

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
SMALL, TOLERANCE = 1e-3, 1e-6
COLD = {"ipopt.warm_start_init_point": "no"}
EXACT = {"tol": 1e-12, "warm": False}
TIGHT = {"ipopt.tol": 1e-10, "ipopt.bound_relax_factor": 0.0}


class Watched:
    """A solver of do-mpc, with a record of each call; and of the same problem solved by another."""

    def __init__(self, owner: Any, other: Any, exact: Any) -> None:
        self.owner, self._solver, self._others = owner, owner.S, {"other": other, "exact": exact}
        self._residuals = Residuals(owner.nlp)
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> Mapping[str, Any]:
        """Solve as do-mpc asks for it."""
        found = self._solver(**given)
        call = self._judged(self._solver, found, given)
        cold = {key: value for key, value in given.items() if not key.startswith("lam")}
        for name, other in self._others.items():
            if other is not None:
                call[name] = self._judged(other, other(**cold), given)
        self.calls.append(call)
        return found

    def stats(self) -> Mapping[str, Any]:
        """Statistics of the last call."""
        return self._solver.stats()

    def _judged(
        self, solver: Any, found: Mapping[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        columns = {key: ca.DM(value).full().ravel(order="F") for key, value in given.items()}
        residual, _, f = self._residuals(found, columns)
        answer = self.owner._opt_x(found["x"])
        mpc = type(self.owner).__name__ == "MPC"
        used = answer["_u", 0, 0] if mpc else answer["_x", -1, -1]
        stats = solver.stats()
        return {
            "f": f,
            "residual": residual,
            "iterations": int(stats["iter_count"]),
            "success": bool(stats["success"]),
            "u": np.asarray(ca.DM(used).full()).ravel().tolist(),
        }


def work(
    folder: Path, solver: str, steps: int, target: Path, extra: dict[str, Any], exact: bool
) -> None:
    """Run an example's main.py for so many steps and write what its controllers did."""
    prepare()
    import do_mpc  # noqa: PLC0415 - after the names and the backend are in place

    watched: list[Watched] = []

    def switching(setup: Any) -> Any:
        def switched(self: Any) -> None:
            self.settings.nlpsol_opts.update(extra)
            setup(self)
            ours = nlpsol("S", "hybrid", self.nlp, self.settings.nlpsol_opts)
            if solver == "hybrid":
                self.S = ours  # the one line
            finer = nlpsol("S", "hybrid", self.nlp, EXACT) if exact else None
            self.S = Watched(self, None if solver == "hybrid" else ours, finer)
            watched.append(self.S)

        return switched

    for kind in (do_mpc.controller.MPC, do_mpc.estimator.MHE):
        kind.setup = switching(kind.setup)
    step, made = do_mpc.controller.MPC.make_step, [0]

    def stepped(self: Any, *arguments: Any, **named: Any) -> Any:
        if made[0] == steps:
            raise Enough
        made[0] += 1
        return step(self, *arguments, **named)

    do_mpc.controller.MPC.make_step = stepped
    np.random.seed(1)  # noqa: NPY002 - the examples draw from it
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    end = "done"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(folder / "main.py"), run_name="__main__")
    except Enough:
        pass
    except Exception as error:  # noqa: BLE001 - whatever ended the script is the record
        end = f"{type(error).__name__}: {error}"
    records = []
    for each in watched:
        data, nlp = each.owner.data, each.owner.nlp
        records.append(
            {
                "owner": type(each.owner).__name__,
                "sizes": [nlp["x"].numel(), nlp["g"].numel()],
                "states": np.asarray(data["_x"]).tolist(),
                "inputs": np.asarray(data["_u"]).tolist(),
                "calls": each.calls,
            }
        )
    target.write_text(json.dumps({"end": end, "loops": records}), encoding="utf-8")


def run(folder: Path, solver: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """An example with one of the solvers, in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "record"
        command = [sys.executable, __file__, "--worker", solver, "--examples", str(folder)]
        command += ["--steps", str(chosen.steps), "--json", str(target)]
        command += [flag for flag in ("--tight", "--cold", "--exact") if getattr(chosen, flag[2:])]
        with (Path(scratch) / "log").open("w") as log:
            try:
                subprocess.run(
                    command, stdout=log, stderr=log, env={**os.environ, **SINGLE},
                    timeout=chosen.limit, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"end": f"more than {chosen.limit:g} s", "loops": []}
        if not target.exists():
            return {"end": "no record", "loops": []}
        record: dict[str, Any] = json.loads(target.read_text())
        return record


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of two records over time, relative to the size of each signal."""
    a, b = np.atleast_2d(ours), np.atleast_2d(theirs)
    if a.shape != b.shape:
        return np.nan
    if not a.size:
        return 0.0
    return float((np.abs(a - b).max(axis=0) / np.maximum(np.abs(b).max(axis=0), SMALL)).max())


def points(calls: list[dict[str, Any]]) -> str:
    """How many answers are KKT points."""
    return f"{sum(call['residual'] <= TOLERANCE for call in calls)} of {len(calls)}"


def row(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """A line of the table."""
    calls = theirs["calls"]
    others = [call["other"] for call in calls]
    f = [
        (other["f"] - call["f"]) / max(1.0, abs(call["f"]))
        for call, other in zip(calls, others, strict=True)
    ]
    return [
        name,
        theirs["owner"],
        "{} × {}".format(*theirs["sizes"]),
        str(len(calls)),
        f"{apart(ours['states'], theirs['states']):.1e}",
        f"{apart(ours['inputs'], theirs['inputs']):.1e}",
        f"{apart([o['u'] for o in others], [c['u'] for c in calls]):.1e}",
        f"{max(f, key=abs):+.0e}",
        f"{max(call['residual'] for call in ours['calls'] + others):.0e}",
        f"{max(call['residual'] for call in calls):.0e}",
        points(ours["calls"]),
        points(calls),
        str(sum(call["iterations"] for call in ours["calls"])),
        str(sum(call["iterations"] for call in calls)),
    ]


def distances(
    reference: dict[str, Any], name: str, which: int, loops: tuple[dict[str, Any], dict[str, Any]]
) -> list[str]:
    """How far two loops are from that of the reference with IPOPT, where there is one."""
    known = reference.get(name, {"ipopt": {"loops": []}})["ipopt"]["loops"]
    if which >= len(known):
        return ["-", "-"]
    return [
        f"{max(apart(loop[what], known[which][what]) for what in ('states', 'inputs')):.1e}"
        for loop in loops
    ]


def errors(calls: list[dict[str, Any]]) -> str:
    """How far the answers of a loop are from exact ones: of the first, the median of the others."""
    exact = np.array([call["exact"]["u"] for call in calls])
    off = np.abs(np.array([call["u"] for call in calls]) - exact)
    each = (off / np.maximum(np.abs(exact).max(axis=0), SMALL)).max(axis=1)
    return f"{each[0]:.0e}, {np.median(each[1:]):.0e}"


HEADS = (
    "example", "solver of", "n × m", "solves", "states", "inputs", "u", "f", "residual",
    "of IPOPT", "points", "of IPOPT", "iterations", "of IPOPT",
)  # fmt: skip


def main() -> None:
    """Run the examples and print the table."""
    parser = argparse.ArgumentParser(description="do-mpc's examples, switched by one line")
    parser.add_argument("--examples", type=Path, required=True, help="the folder examples/")
    parser.add_argument("--steps", type=int, default=10, help="steps of each closed loop")
    parser.add_argument("--only", nargs="*", default=EXAMPLES, help="names of examples")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one script")
    parser.add_argument("--json", type=Path, help="a file for all records")
    parser.add_argument("--tight", action="store_true", help="tol 1e-10, bounds not relaxed")
    parser.add_argument("--cold", action="store_true", help="leave multipliers unused")
    parser.add_argument("--reference", type=Path, help="records of another run to compare with")
    parser.add_argument("--exact", action="store_true", help="compare with answers to 1e-12")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work(
            chosen.examples.resolve(), chosen.worker, chosen.steps, chosen.json.resolve(),
            (TIGHT if chosen.tight else {}) | (COLD if chosen.cold else {}), chosen.exact,
        )  # fmt: skip
        return
    reference = json.loads(chosen.reference.read_text()) if chosen.reference else None
    heads = [*HEADS, *(("from reference", "IPOPT from it") if reference else ())]
    heads += ["errors", "of IPOPT"] if chosen.exact else []
    rows, records = [], {}
    for name in chosen.only:
        pair = [run(chosen.examples / name, solver, chosen) for solver in ("hybrid", "ipopt")]
        records[name] = dict(zip(("hybrid", "ipopt"), pair, strict=True))
        for solver, record in records[name].items():
            if record["end"] != "done":
                print(f"{name} with {solver}: {record['end']}", flush=True)
        for which, (ours, theirs) in enumerate(
            zip(pair[0]["loops"], pair[1]["loops"], strict=False)
        ):
            if ours["calls"] and theirs["calls"]:
                rows.append(row(name, ours, theirs))
                if reference:
                    rows[-1] += distances(reference, name, which, (ours, theirs))
                if chosen.exact:
                    rows[-1] += [errors(ours["calls"]), errors(theirs["calls"])]
                print(" | ".join(rows[-1]), flush=True)
    print(align([heads, *rows]))
    if chosen.json:
        chosen.json.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
