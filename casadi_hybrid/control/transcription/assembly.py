"""A program in the making: its unknowns, parameters, rows and costs by name, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, Signal, matrix, spread
from casadi_hybrid.control.transcription.program import BOUNDS, NONE, Block, Program, Role
from casadi_hybrid.control.transcription.terms import Constraint
from casadi_hybrid.utils.errors import InputError

_KINDS = ("x", "p", "g")
LAST = -1
"""The stage of what belongs to none: it comes after all others."""


class Assembly:
    """A program in the making; all symbols it hands out are in physical units.

    As ``kind`` ``ca.SX`` unrolls the horizon, which evaluates fastest; ``ca.MX`` keeps one interval
    as a function that is mapped over the horizon.
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind
        self.cost: Any = kind(0)
        self._blocks: dict[str, dict[str, Block]] = {key: {} for key in _KINDS}
        self._parts: dict[str, list[Any]] = {key: [] for key in _KINDS}
        self._stages: dict[str, list[int]] = {key: [] for key in _KINDS}
        self._numbers: dict[str, list[Array]] = {key: [] for key in ("x0", "p", *BOUNDS)}
        self._ties: list[tuple[str, str, int]] = []

    def variable(
        self, name: str, rows: int, stages: Sequence[int], *, lower: Any = -np.inf,
        upper: Any = np.inf, start: Any = 0.0, scale: Any = 1.0, stride: int = 1,
        role: Role = NONE, part: str = "",
    ) -> Any:  # fmt: skip
        """Add unknowns, one column for each entry of ``stages``; return them as a matrix."""
        size = matrix(scale, rows, len(stages), f"scale of {name!r}")
        symbol = self.kind.sym(part + name, *size.shape)
        self._place("x", part, name, symbol, size, stages, stride, role=role,
                    x0=start, lbx=lower, ubx=upper)  # fmt: skip
        return symbol if (size == 1.0).all() else symbol * size

    def tie(self, name: str, other: str, column: int) -> None:
        """Take the bounds of one column of unknowns away: it equals that of another one."""
        self._ties.append((name, other, column))

    def parameter(
        self, name: str, value: Any, rows: int, columns: int, stride: int = 0, *,
        role: Role = NONE, part: str = "",
    ) -> Any:  # fmt: skip
        """Add a parameter with a value that may change between solves; return it as a matrix."""
        symbol, scale = self.kind.sym(part + name, rows, columns), np.ones((rows, columns))
        self._place("p", part, name, symbol, scale, [0] * columns, stride, role=role, p=value)
        return symbol

    def constrain(
        self, name: str, rows: Any, stages: Sequence[int], lower: Any = 0.0, upper: Any = 0.0, *,
        scale: Any = 1.0, stride: int = 1, entries: Sequence[str] = (), role: Role = NONE,
        part: str = "",
    ) -> None:  # fmt: skip
        """Add lower ≤ rows ≤ upper, an equation by default; one column for each stage."""
        rows = self.kind(rows)
        size = matrix(scale, rows.shape[0], rows.shape[1], f"scale of {name!r}")
        scaled = rows if (size == 1.0).all() else rows / size
        self._place("g", part, name, scaled, size, stages, stride, entries, role,
                    lbg=lower, ubg=upper)  # fmt: skip

    def build(self) -> Program:
        """Return the collected program, its unknowns and rows ordered by stage."""
        order = {key: self._order(key) for key in _KINDS}
        x, p, g = (ca.vertcat(self.kind(0, 1), *self._parts[key]) for key in _KINDS)
        self.cost = ca.densify(self.cost)  # where nothing is minimized it has no entry
        if self.kind is ca.SX:
            nlp = {"x": x[order["x"]], "p": p, "f": self.cost, "g": g[order["g"]]}
        else:
            graph = ca.Function("graph", [*self._parts["x"], *self._parts["p"]], [self.cost, g])
            z, q = ca.MX.sym("x", x.numel()), ca.MX.sym("p", p.numel())
            f, g = graph.call(self._pieces(z, q), True, False)
            nlp = {"x": z, "p": q, "f": f, "g": g[order["g"]]}
        numbers: dict[str, Any] = {
            key: np.concatenate([np.zeros(0), *parts])[order["x" if key == "x0" else key[-1]]]
            for key, parts in self._numbers.items()
        }
        blocks = {
            key: {name: replace(block, where=np.argsort(order[key])[block.where])
                  for name, block in self._blocks[key].items()}
            for key in _KINDS
        }  # fmt: skip
        ties = np.arange(numbers["x0"].size)
        for one, other, column in self._ties:
            held, place = (
                blocks["x"][name].where.reshape(blocks["x"][name].shape, order="F")[:, column]
                for name in (one, other)
            )
            ties[held], numbers["lbx"][held], numbers["ubx"][held] = place, -np.inf, np.inf
        stages = {key: np.array(self._stages[key], dtype=int)[order[key]] for key in ("x", "g")}
        after = {key: np.arange(stage.size) for key, stage in stages.items()}
        for key, places in after.items():
            for block in blocks[key].values():
                places[block.where] = block.after
        return Program(self.name, nlp, **numbers, variables=blocks["x"], parameters=blocks["p"],
                       constraints=blocks["g"], stages=stages, after=after, ties=ties)  # fmt: skip

    def reader(self, name: str, program: Program, outputs: Sequence[Any]) -> ca.Function:
        """Return the function (x, p) of the built program that gives expressions of its symbols."""
        arguments = [program.nlp["x"], program.nlp["p"]]
        if self.kind is ca.SX:
            return ca.Function(name, arguments, [self.kind(output) for output in outputs])
        graph = ca.Function(name, [*self._parts["x"], *self._parts["p"]], outputs)
        return ca.Function(name, arguments, graph.call(self._pieces(*arguments)))

    def _pieces(self, z: Any, q: Any) -> list[Any]:
        pieces: list[Any] = []
        back = np.argsort(self._order("x")).tolist()
        for column, parts in ((z[back], self._parts["x"]), (q, self._parts["p"])):
            places = np.cumsum([0, *(part.numel() for part in parts)]).tolist()
            pieces += ca.vertsplit(column, places) if parts else []
        return pieces

    def _place(
        self, key: str, part: str, name: str, symbols: Any, scale: Array, stages: Sequence[int],
        stride: int, entries: Sequence[str] = (), role: Role = NONE, **numbers: Any,
    ) -> None:  # fmt: skip
        rows, columns = scale.shape
        label = part + name
        if label in self._blocks[key]:
            raise InputError(f"{self.name} has two blocks named {label!r}; give each its own name")
        if len(stages) != columns:
            raise AssertionError(f"{name!r} has {columns} columns and {len(stages)} stages")
        where = len(self._stages[key]) + np.arange(scale.size)
        self._blocks[key][label] = Block(
            where, (rows, columns), scale, stride, tuple(entries), role, part, name
        )
        self._parts[key].append(ca.vec(symbols))
        self._stages[key] += np.repeat(stages, rows).tolist()
        for kind, value in numbers.items():
            self._numbers[kind].append(
                (matrix(value, rows, columns, name) / scale).ravel(order="F")
            )

    def _order(self, key: str) -> list[int]:
        stages = np.array(self._stages[key], dtype=int)
        stages[stages == LAST] = stages.max(initial=0) + 1
        return [int(place) for place in np.argsort(stages, kind="stable")]


@dataclass
class Horizon:
    """Grid points 0 … N with N intervals between them; symbols in physical units, by columns.

    Attributes:
        integrand: (x, z, u, p, t) → what the integral costs add up, 1×1.
        fractions: of the N + 1 grid points in the duration, from 0 to 1.
        first, prefix: the stage of its first grid point, and what names of its blocks begin with.
        guess: start values by name.
        duration: a number or a symbol.
        times: as declared, where the first phase begins at zero.
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
    times: Any = None
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
        """Scales of the rows of the equations: their change by those of z at the guess, up to 1."""
        model, kinds = self.model, ("state", "algebraic", "control")
        slopes = ca.fabs(ca.jacobian(model.moves.equations(*model.arguments), model.arguments[1]))
        rows = ca.mtimes(slopes, ca.DM(model.limits("algebraic", "scale")))
        declared = model.signals["parameter"].items()
        p = [spread(model.values[name], s.size, self.times, name) for name, s in declared]
        parts = *([self.guess[name] for name in model.signals[kind]] for kind in kinds), p
        none = np.zeros((0, self.N + 1))
        at = [np.vstack([none, *part]) for part in (*parts, [self.times])]
        found = ca.Function("sizes", model.arguments, [rows])(*at).full().max(axis=1)
        return np.where(np.isfinite(found) & (found > 0.0), np.minimum(found, 1.0), 1.0)

    def stages(self, points: bool = False) -> list[int]:
        """Return the stages of the intervals, or of all grid points."""
        return list(range(self.first, self.first + self.N + points))

    def at(self, k: int | slice) -> list[Any]:
        """Return (x, z, u, p, t) at grid points; u is the control of the interval that begins."""
        return [column[:, k] for column in (self.X, self.Z, self.W, self.P, self.T)]

    def unknown(
        self, name: str, signal: Signal, stages: list[int], start: Any, stride: int = 1,
        place: str = "",
    ) -> Any:  # fmt: skip
        """Add unknowns of a signal with its limits; return them."""
        return self.assembly.variable(
            placed(name, place), signal.size, stages, lower=signal.lower, upper=signal.upper,
            start=start, scale=signal.scale, stride=stride, role=Role(name, place=place),
            part=self.prefix,
        )  # fmt: skip

    def constrain(self, name: str, rows: Any, stages: list[int], *limits: Any, **rest: Any) -> None:
        """Add rows to the program; see :meth:`Assembly.constrain`."""
        self.assembly.constrain(name, rows, stages, *limits, part=self.prefix, **rest)

    def close(self, name: str, gaps: Any, stride: int = 1) -> None:
        """Add the rows of the dynamics: a gap of each state, ``stride`` columns an interval."""
        self.constrain(
            name, gaps, np.repeat(self.stages(), stride).tolist(), stride=stride,
            scale=self.model.limits("state", "scale"), entries=self.model.entry_names("state"),
            role=Role(kind="dynamics"),
        )  # fmt: skip

    def limit(self, kind: str, rows: Any, place: str, stages: list[int], stride: int = 1) -> None:
        """Add rows for the limits of all of a kind that have any."""
        for name, where in self.model.places(kind).items():
            signal = self.model.signals[kind][name]
            if np.isfinite([signal.lower, signal.upper]).any():
                self.constrain(placed(name, place), rows[where, :], stages, signal.lower,
                               signal.upper, scale=signal.scale, stride=stride,
                               role=Role(name, place=place))  # fmt: skip

    def unknowns(self, kind: str, count: int) -> Any:
        """Add all of a kind at so many grid points as unknowns; return them, one column each."""
        stages = self.stages(points=True)[:count]
        return ca.vertcat(self.assembly.kind(0, count), *(
            self.unknown(name, signal, stages, self.guess[name][:, :count])
            for name, signal in self.model.signals[kind].items()
        ))  # fmt: skip


def placed(name: str, place: str) -> str:
    """Return the name of a block of a quantity that has several."""
    return f"{name} {place}" if place else name


def each(function: ca.Function, kind: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function for each column of its arguments, side by side.

    In MX graphs the function is mapped, so that the graph does not grow with the columns.
    """
    count = max(int(column.shape[1]) for column in columns)
    return list(function.map(count).call([kind(column) for column in columns]))


def where(horizon: Horizon, constraint: Constraint) -> list[tuple[str, list[Any], list[int]]]:
    """Return the place in the intervals, the arguments and the stages of a constraint's columns."""
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
        return [("at begin", begins, h.stages()), ("at end", ends, h.stages())]
    moves, jumps = _moves(h, constraint)
    if constraint.at == "unknowns":
        places, jumps = places if Z.shape[0] else [], last is not None
    if not moves:
        return places
    # That of the last interval is the value at the last grid point already.
    count = N - len(places)
    if count and jumps:
        places.append(("at end", [column[:, :count] for column in ends], h.stages()[:count]))
    if h.between is not None:
        taus, X, Z = h.between
        each_interval = np.repeat(np.arange(N), taus.size).tolist()
        t, dt, u, v, p = (column[:, each_interval]
                          for column in (h.T[:, :N], h.dt, h.U, h.V, h.P[:, :N]))  # fmt: skip
        tau = h.assembly.kind(ca.DM(np.tile(taus, N)).T)
        w = u + (v - u) * ca.repmat(tau, u.shape[0], 1)
        stages = np.repeat(h.stages(), taus.size).tolist()
        places.append(("inside", [X, Z, w, p, t + tau * dt], stages))
    return places


def _moves(horizon: Horizon, constraint: Constraint) -> tuple[bool, bool]:
    """Return if the expression changes within an interval, and if it jumps at the end."""
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
