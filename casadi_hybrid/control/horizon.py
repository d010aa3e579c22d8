"""The horizon of one phase while it is laid out: its grid and the symbols on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.assembly import Assembly
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array, Signal, spread
from casadi_hybrid.control.terms import Constraint


@dataclass
class Horizon:
    """Grid points 0 … N with N intervals between them; symbols in physical units, by columns.

    Attributes:
        integrand: (x, z, u, p, t) → what the integral costs add up, 1×1.
        fractions: of the N + 1 grid points in the duration, from 0 to 1.
        first, prefix: the stage of its first grid point, and what names of its blocks begin with.
        guess: start values by name.
        duration: a number or a symbol.
        begins, ends: as declared, where the first phase begins at zero.
        T, dt: times, 1×(N + 1), and lengths of the intervals, 1×N.
        X, Z: states and algebraic states at the grid points; Z has no rows where nothing asks.
        U, V: controls at the beginning and at the end of each interval.
        W: controls at the grid points; at the last that of the end of the last interval.
        P: parameters at the grid points, the model's first.
        inside: states and algebraic states at the points of a collocation that are unknowns.
        between: fractions of an interval, states, algebraic states where limits hold between the
            grid points, the last two with one column a point, interval by interval.
    """

    assembly: Assembly
    model: Model
    integrand: ca.Function
    fractions: Array
    first: int = 0
    prefix: str = ""
    guess: dict[str, Array] = field(default_factory=dict)
    duration: Any = 1.0
    begins: float = 0.0
    ends: float = 0.0
    T: Any = None
    dt: Any = None
    X: Any = None
    Z: Any = None
    U: Any = None
    V: Any = None
    W: Any = None
    P: Any = None
    inside: tuple[Any, Any] | None = None
    between: tuple[Array, Any, Any] | None = None

    @property
    def N(self) -> int:
        """Number of intervals."""
        return int(self.fractions.size) - 1

    @cached_property
    def sizes(self) -> Array:
        """Of the rows of the equations: how far the scales of z move them at the guess, up to 1."""
        model, kinds = self.model, ("state", "algebraic", "control")
        slopes = ca.fabs(ca.jacobian(model.moves.equations(*model.arguments), model.arguments[1]))
        rows = ca.mtimes(slopes, ca.DM(model.limits("algebraic", "scale")))
        times = self.begins + (self.ends - self.begins) * self.fractions
        p = [
            spread(model.values[n], s.size, times, n) for n, s in model.signals["parameter"].items()
        ]
        parts = [[self.guess[n] for n in model.signals[kind]] for kind in kinds]
        at = [np.vstack([np.zeros((0, times.size)), *part]) for part in (*parts, p, [times])]
        found = ca.Function("sizes", model.arguments, [rows])(*at).full().max(axis=1)
        return np.where(np.isfinite(found) & (found > 0.0), np.minimum(found, 1.0), 1.0)

    def stages(self, points: bool = False) -> list[int]:
        """Return the stages of the intervals, or of all grid points."""
        return list(range(self.first, self.first + self.N + points))

    def at(self, k: int | slice) -> list[Any]:
        """Return (x, z, u, p, t) at grid points; u is the control of the interval that begins."""
        return [column[:, k] for column in (self.X, self.Z, self.W, self.P, self.T)]

    def unknown(
        self, name: str, signal: Signal, stages: list[int], start: Any, stride: int = 1
    ) -> Any:
        """Add unknowns of a signal with its limits; return them."""
        return self.assembly.variable(
            self.prefix + name, signal.size, stages, lower=signal.lower, upper=signal.upper,
            start=start, scale=signal.scale, stride=stride,
        )  # fmt: skip

    def constrain(self, name: str, rows: Any, stages: list[int], *limits: Any, **rest: Any) -> None:
        """Add rows to the program; see :meth:`Assembly.constrain`."""
        self.assembly.constrain(self.prefix + name, rows, stages, *limits, **rest)

    def limit(self, kind: str, rows: Any, suffix: str, stages: list[int], stride: int = 1) -> None:
        """Add rows for the limits of all of a kind that have any."""
        for name, where in self.model.places(kind).items():
            signal = self.model.signals[kind][name]
            if np.isfinite([signal.lower, signal.upper]).any():
                self.constrain(name + suffix, rows[where, :], stages, signal.lower, signal.upper,
                               scale=signal.scale, stride=stride)  # fmt: skip

    def states(self, count: int) -> Any:
        """Add the states at so many grid points as unknowns; return them, one column each."""
        stages = self.stages(points=True)[:count]
        return ca.vertcat(*(
            self.unknown(name, signal, stages, self.guess[name][:, :count])
            for name, signal in self.model.signals["state"].items()
        ))  # fmt: skip


def each(function: ca.Function, kind: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function for each column of its arguments, side by side.

    In MX graphs the function is mapped, so that the graph does not grow with the columns.
    """
    count = max(int(column.shape[1]) for column in columns)
    return list(function.map(count).call([kind(column) for column in columns]))


def where(horizon: Horizon, constraint: Constraint) -> list[tuple[str, list[Any], list[int]]]:
    """The suffix of the name, the arguments and the stages of a constraint's columns."""
    h, N, Z = horizon, horizon.N, horizon.Z
    if constraint.place != "path":
        k = 0 if constraint.place == "start" else N
        return [("", h.at(k), [h.first + k])]
    places = [("", h.at(slice(None)), h.stages(points=True))]
    if constraint.at == "points":
        return places
    begins = h.at(slice(N))
    last = _last(h)
    ends = [h.X[:, 1:], Z[:, 1:] if last is None else last, h.V, h.P[:, :N], h.T[:, 1:]]
    if constraint.at == "intervals":
        return [("", begins, h.stages())]
    if constraint.at == "ends":
        return [(" at begin", begins, h.stages()), (" at end", ends, h.stages())]
    moves, jumps = _moves(h, constraint)
    if constraint.at == "unknowns":
        places, jumps = places if Z.shape[0] else [], last is not None
    if not moves:
        return places
    # That of the last interval is the value at the last grid point already.
    count = N - len(places)
    if count and jumps:
        before = [column[:, :count] for column in ends]
        places.append((" at end", before, h.stages()[:count]))
    if h.between is not None:
        taus, X, Z = h.between
        each_interval = np.repeat(np.arange(N), taus.size).tolist()
        t, dt, u, v, p = (column[:, each_interval]
                          for column in (h.T[:, :N], h.dt, h.U, h.V, h.P[:, :N]))  # fmt: skip
        tau = h.assembly.kind(ca.DM(np.tile(taus, N)).T)
        w = u + (v - u) * ca.repmat(tau, u.shape[0], 1)
        stages = np.repeat(h.stages(), taus.size).tolist()
        places.append((" inside", [X, Z, w, p, t + tau * dt], stages))
    return places


def _moves(horizon: Horizon, constraint: Constraint) -> tuple[bool, bool]:
    """Whether the expression changes within an interval, and whether it jumps at its end."""
    model = horizon.model
    x, z, _, _, t = model.arguments
    controls = model.signals["control"].items()
    held = [model.symbol(name) for name, signal in controls if not signal.linear]
    linear = [model.symbol(name) for name, signal in controls if signal.linear]
    moving = ca.vertcat(x, z, t, *linear)
    jumping = ca.vertcat(ca.SX(0, 1), *held, *([z] if held else []))
    return (
        not model.discrete and bool(ca.depends_on(constraint.expression, moving)),
        bool(ca.depends_on(constraint.expression, jumping)),
    )


def _last(horizon: Horizon) -> Any:
    """The algebraic states of its own control at the end of each interval, None where unknown."""
    X, Z = horizon.inside or (horizon.X, horizon.Z)
    if not Z.shape[0] or Z.shape[1] <= X.shape[1]:  # the last point is not the end
        return None
    each_interval = int(Z.shape[1]) // horizon.N
    return Z[:, each_interval - 1 :: each_interval]
