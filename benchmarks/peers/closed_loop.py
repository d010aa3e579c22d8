"""One of do-mpc's example scripts in this process, with a solver of choice behind its controllers.

The script itself runs, up to a number of steps of the closed loop: what it draws is not drawn, and
the ``nlpsol`` of its MPC and MHE objects is replaced by one that keeps a record of every call. The
simulator's own root finders stay as they are. do-mpc gives the last answer, not shifted, as x0 and
from the second call on its multipliers as lam_x0 and lam_g0.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import pickle
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import casadi as ca
import casadi.tools
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid import nlpsol

Vector = NDArray[np.float64]
Options = Mapping[str, Any]
RELAXED = 1e-8  # IPOPT's default bound_relax_factor
KEPT = 6  # calls kept for a replay: the first, cold one and five warm ones
QUIET = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
WARM = {"warm_start_init_point": "yes"} | {
    f"warm_start_{part}": 1e-8
    for part in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
}
WARM["warm_start_mult_bound_push"] = 1e-8


def _warm(mu: float, **others: Any) -> Options:
    """IPOPT's options for a warm start that begins with this barrier parameter."""
    return {f"ipopt.{name}": value for name, value in {**WARM, "mu_init": mu, **others}.items()}


# Options that IPOPT gets beside those of do-mpc: in the first call, in the others.
PEERS: dict[str, tuple[Options, Options] | None] = {
    "hybrid": None,
    "ipopt": ({}, {}),
    "ipopt-warm": (QUIET, {**QUIET, **_warm(1e-6)}),
    "ipopt-warm-4": (QUIET, {**QUIET, **_warm(1e-4)}),
    "ipopt-warm-2": (QUIET, {**QUIET, **_warm(1e-2)}),
    "ipopt-exact": (
        {**QUIET, "ipopt.bound_relax_factor": 0.0},
        {**QUIET, **_warm(1e-6, bound_relax_factor=0.0)},
    ),
}


class Enough(Exception):
    """The closed loop has made its steps."""


class Residuals:
    """The unscaled KKT residual of a point, from the functions of the problem itself."""

    def __init__(self, nlp: Mapping[str, Any]) -> None:
        x, p, f, g = (nlp[key] for key in ("x", "p", "f", "g"))
        lam = type(x).sym("lam", g.numel())
        slope = ca.gradient(f + ca.dot(lam, ca.densify(g)), x)
        self._evaluate = ca.Function("values", [x, p, lam], [slope, g, f])

    def __call__(
        self, found: Mapping[str, Any], given: Mapping[str, Vector]
    ) -> tuple[float, float, float]:
        """The residual by the bounds as given, by bounds moved as IPOPT moves them, and f.

        A residual is the largest of violation, ‖∇ₓL‖_∞ over the variables that are not fixed, and
        |λ|·(distance to the bound that its sign points to), |λ| where there is none.
        """
        x, lam_x, lam_g = (found[key].full().ravel() for key in ("x", "lam_x", "lam_g"))
        slope, g, f = self._evaluate(x, given["p"], lam_g)
        low = np.concatenate((given["lbg"], given["lbx"]))
        high = np.concatenate((given["ubg"], given["ubx"]))
        values, lam = np.concatenate((g.full().ravel(), x)), np.concatenate((lam_g, lam_x))
        free = given["lbx"] < given["ubx"]
        stationarity = np.abs((slope.full().ravel() + lam_x)[free]).max(initial=0.0)

        def worst(moved: float) -> float:
            away = np.where(low < high, moved, 0.0)
            least = np.where(np.isfinite(low), low - away * np.maximum(1.0, np.abs(low)), low)
            most = np.where(np.isfinite(high), high + away * np.maximum(1.0, np.abs(high)), high)
            violation = np.maximum(least - values, values - most).max(initial=0.0)
            gaps = []
            for bound in (np.where(lam > 0, high, low), np.where(lam > 0, most, least)):
                gaps.append(np.where(np.isfinite(bound), np.abs(bound - values), 1.0))
            pairs = np.where(low == high, 0.0, np.abs(lam) * np.minimum(*gaps))
            residual = float(max(violation, stationarity, pairs.max(initial=0.0)))
            return residual if np.isfinite(residual) else np.inf

        with np.errstate(invalid="ignore", over="ignore"):
            return worst(0.0), worst(RELAXED), float(f)


class Captured:
    """The characters that reach file descriptors 1 and 2."""

    def __init__(self) -> None:
        self.characters = 0
        self.opening = ""

    @contextmanager
    def during(self) -> Iterator[None]:
        """Catch what this process writes, its libraries included."""
        _flush()
        kept = [os.dup(1), os.dup(2)]
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                yield
            finally:
                _flush()
                for number, old in enumerate(kept, start=1):
                    os.dup2(old, number)
                    os.close(old)
                file.seek(0)
                text = file.read().decode(errors="replace")
                self.characters += len(text)
                self.opening = (self.opening + text)[:400]


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


def _column(value: Any, length: int) -> Vector:
    """Numbers of an argument: DM, array, number, or one of ``casadi.tools``' structures."""
    dense = ca.DM(getattr(value, "cat", value)).full().ravel(order="F")
    return np.full(length, dense[0]) if dense.size == 1 else dense


class Recorder:
    """What a controller of do-mpc holds as its solver: the chosen one, with a record per call."""

    def __init__(
        self,
        peer: str,
        owner: str,
        nlp: dict[str, Any],
        options: Options,
        out: TextIO,
        keep: Path | None,
    ) -> None:
        self._owner, self._out, self._nlp, self._file = owner, out, nlp, keep
        self._residuals = Residuals(nlp)
        self._calls: list[dict[str, Vector]] = []
        self._last: Any = None
        captured, began = Captured(), time.process_time()
        with captured.during():
            self._solvers = self._made(peer, options)
        self._write(
            {
                "kind": type(nlp["x"]).__name__,
                "n": nlp["x"].numel(),
                "m": nlp["g"].numel(),
                "n_p": nlp["p"].numel(),
                "options": {name: str(value) for name, value in options.items()},
                "setup_seconds": time.process_time() - began,
                "characters": captured.characters,
                "opening": captured.opening,
            }
        )

    def _made(self, peer: str, options: Options) -> list[Any]:
        """The solvers of the first and of the later calls."""
        extra = PEERS[peer]
        if extra is None:
            return [nlpsol("S", "hybrid", self._nlp, dict(options))] * 2
        cold = ca.nlpsol("S", "ipopt", self._nlp, {**options, **extra[0]})
        if extra[0] == extra[1]:
            return [cold, cold]
        return [cold, ca.nlpsol("S", "ipopt", self._nlp, {**options, **extra[1]})]

    def __call__(self, **arguments: Any) -> Mapping[str, Any]:
        """Solve as do-mpc asks for it."""
        n, m = self._nlp["x"].numel(), self._nlp["g"].numel()
        lengths = {"p": self._nlp["p"].numel(), "lbg": m, "ubg": m, "lam_g0": m}
        given = {key: _column(value, lengths.get(key, n)) for key, value in arguments.items()}
        self._last = self._solvers[bool(self._calls)]
        arguments = {key: getattr(value, "cat", value) for key, value in arguments.items()}
        captured = Captured()
        with captured.during():
            clock, began = time.perf_counter(), time.process_time()
            found = self._last(**arguments)
            seconds, clock = time.process_time() - began, time.perf_counter() - clock
        stats = self._last.stats()
        strict, relaxed, f = self._residuals(found, given)
        self._calls.append(given)
        self._keep()
        self._write(
            {
                "given": sorted(arguments),
                "warm": bool(np.any(given.get("lam_g0", 0)) or np.any(given.get("lam_x0", 0))),
                "iterations": int(stats["iter_count"]),
                "status": str(stats["return_status"]),
                "success": bool(stats["success"]),
                "seconds": max(seconds, 1e-4),
                "clock": clock,
                "residual": strict,
                "residual_relaxed": relaxed,
                "f": f,
                "characters": captured.characters,
                "opening": captured.opening,
            }
        )
        return found

    def stats(self) -> Mapping[str, Any]:
        """Statistics of the last call."""
        return self._last.stats()

    def _keep(self) -> None:
        """Leave the functions and the calls' arguments in a file, for a replay."""
        if self._file is None or len(self._calls) > KEPT:
            return
        parts = [self._nlp[key] for key in ("x", "p", "f", "g")]
        nlp = ca.Function("nlp", parts[:2], parts[2:], ["x", "p"], ["f", "g"])
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(pickle.dumps({"nlp": nlp.serialize(), "calls": self._calls}))

    def _write(self, record: Mapping[str, Any]) -> None:
        self._out.write(json.dumps({"owner": self._owner, **record}) + "\n")
        self._out.flush()


def run_example(folder: Path, peer: str, steps: int, out: TextIO, keep: Path | None) -> None:
    """Run an example's main.py for so many steps; a line of JSON per solver and per call."""
    prepare()
    import do_mpc  # noqa: PLC0415 - after the names and the backend are in place
    from do_mpc.optimizer import Optimizer  # noqa: PLC0415

    original, create, step = ca.nlpsol, Optimizer.create_nlp, do_mpc.controller.MPC.make_step
    made = 0

    def replaced(name: str, plugin: str, nlp: Any, options: Options | None = None) -> Any:
        if not owners or plugin != "ipopt":
            return original(name, plugin, nlp, dict(options or {}))
        file = keep / f"{folder.name}-{peer}-{owners[-1]}.pkl" if keep else None
        return Recorder(peer, owners[-1], nlp, options or {}, out, file)

    owners: list[str] = []

    def created(self: Any) -> None:
        owners.append(type(self).__name__)
        create(self)
        owners.pop()

    def stepped(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal made
        if made == steps:
            raise Enough
        made += 1
        return step(self, *arguments, **named)

    casadi.tools.nlpsol = replaced
    Optimizer.create_nlp, do_mpc.controller.MPC.make_step = created, stepped
    np.random.seed(1)  # noqa: NPY002 - the examples draw from it
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        runpy.run_path(str(folder / "main.py"), run_name="__main__")
    except Enough:
        return


def prepare() -> None:
    """Import do-mpc with the names it looks for, and let nothing that it draws be drawn."""
    _silence_drawing()
    # From 3.8 on casadi.tools lacks the names that do-mpc looks for there.
    casadi.tools.structure3 = casadi.tools.structure
    for name in dir(ca):
        if not name.startswith("_") and not hasattr(casadi.tools, name):
            setattr(casadi.tools, name, getattr(ca, name))
    import do_mpc  # noqa: PLC0415 - after the names and the backend are in place

    for name in ("plot_results", "plot_predictions", "reset_axes"):
        setattr(do_mpc.graphics.Graphics, name, lambda *_, **__: None)


def _silence_drawing() -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg", force=True)
    from matplotlib import pyplot as plt  # noqa: PLC0415

    nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    plt.show = plt.pause = plt.ion = nothing
    builtins.input = lambda *_: ""
