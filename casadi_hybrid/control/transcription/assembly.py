"""Program under construction: unknowns, parameters, rows and costs by name, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.excess import Limits
from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, Signal, matrix, spread
from casadi_hybrid.control.transcription.program import BOUNDS, KINDS, Block, Program, Role
from casadi_hybrid.control.transcription.terms import Constraint
from casadi_hybrid.utils.errors import InputError

# Stage of the entries that belong to none: they come after all others.
LAST = -1


class Assembly:
    """Program under construction; all symbols that it returns are in physical units.

    ``kind`` ``ca.SX`` unrolls the horizon, which evaluates fastest; ``ca.MX`` maps one interval.
    Keywords ``**layout`` are attributes of :class:`Block`.
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind
        self.cost: Any = kind(0)
        keys = tuple(KINDS.values())
        self._blocks: dict[str, dict[str, Block]] = {key: {} for key in keys}
        self._symbols: dict[str, list[Any]] = {key: [] for key in keys}
        self._stages: dict[str, list[int]] = {key: [] for key in keys}
        self._values: dict[str, list[Array]] = {key: [] for key in ("x0", "p", *BOUNDS)}
        self._ties: list[tuple[str, str, int]] = []

    def variable(
        self, name: str, signal: Any, stages: Sequence[int], start: Any = 0.0, **layout: Any
    ) -> Any:
        """Add unknowns with size, limits and scale of a signal, one column a stage; return them."""
        scale = matrix(signal.scale, signal.size, len(stages), f"scale of {name!r}")
        symbol = self.kind.sym(layout.get("part", "") + name, *scale.shape)
        values = {"x0": start, "lbx": signal.lower, "ubx": signal.upper}
        self._place("x", name, symbol, scale, stages, values, **layout)
        # The solver's unknown is value/scale; a product with ones would enlarge the graph.
        return symbol if (scale == 1.0).all() else symbol * scale

    def tie(self, name: str, other: str, column: int) -> None:
        """Remove the bounds of one column of unknowns that equals a column of another block."""
        self._ties.append((name, other, column))

    def parameter(
        self, name: str, value: Any, rows: int, columns: int = 1, stride: int = 0, **layout: Any
    ) -> Any:
        """Add a parameter with a value that may change between solves; return it as a matrix."""
        symbol, scale = (
            self.kind.sym(layout.get("part", "") + name, rows, columns),
            np.ones((rows, columns)),
        )
        self._place("p", name, symbol, scale, [0] * columns, {"p": value}, stride=stride, **layout)
        return symbol

    def constrain(
        self, name: str, rows: Any, stages: Sequence[int], limits: Any, **layout: Any
    ) -> None:
        """Add limits.lower ≤ rows ≤ limits.upper, divided by limits.scale, a column a stage."""
        rows = self.kind(rows)
        scale = matrix(limits.scale, rows.shape[0], rows.shape[1], f"scale of {name!r}")
        scaled = rows if (scale == 1.0).all() else rows / scale
        values = {"lbg": limits.lower, "ubg": limits.upper}
        self._place("g", name, scaled, scale, stages, values, **layout)

    def build(self) -> Program:
        """Return the collected program, its unknowns and rows ordered by stage."""
        # Ordered by stage, the Jacobian and the Hessian are banded.
        order = {key: self._order(key) for key in self._blocks}
        x, p, g = (ca.vertcat(self.kind(0, 1), *parts) for parts in self._symbols.values())
        self.cost = ca.densify(self.cost)  # where nothing is minimized it has no entry
        if self.kind is ca.SX:
            nlp = {"x": x[order["x"]], "p": p, "f": self.cost, "g": g[order["g"]]}
        else:  # MX: a function of pieces of one column, for an MX column must be one symbol
            graph = self._graph("graph", [self.cost, g])
            z, q = ca.MX.sym("x", x.numel()), ca.MX.sym("p", p.numel())
            f, g = graph.call(self._pieces(z, q), True, False)
            nlp = {"x": z, "p": q, "f": f, "g": g[order["g"]]}
        values: dict[str, Any] = {
            key: np.concatenate([np.zeros(0), *parts])[order["x" if key == "x0" else key[-1]]]
            for key, parts in self._values.items()
        }
        blocks: dict[str, Any] = {}
        for kind, key in KINDS.items():
            # argsort of a permutation is its inverse: the new place of each declared entry.
            place = np.argsort(order[key])
            blocks[kind] = {
                name: replace(block, where=place[block.where])
                for name, block in self._blocks[key].items()
            }
        # A tied unknown has no bounds of its own: twice, active bounds would be dependent.
        ties = np.arange(values["x0"].size)
        for *names, column in self._ties:
            pair = (blocks["variables"][name] for name in names)
            tied, source = (b.where.reshape(b.shape, order="F")[:, column] for b in pair)
            ties[tied], values["lbx"][tied], values["ubx"][tied] = source, -np.inf, np.inf
        stages, after = {}, {}
        for key, kind in (("x", "variables"), ("g", "constraints")):
            stages[key] = np.array(self._stages[key], dtype=int)[order[key]]
            after[key] = np.arange(stages[key].size)
            for block in blocks[kind].values():
                after[key][block.where] = block.after
        return Program(self.name, nlp, **values, **blocks, stages=stages, after=after, ties=ties)

    def reader(self, name: str, program: Program, outputs: Sequence[Any]) -> ca.Function:
        """Return the function (x, p) of the built program that gives expressions of its symbols."""
        arguments = [program.nlp["x"], program.nlp["p"]]
        if self.kind is ca.SX:
            return ca.Function(name, arguments, [self.kind(output) for output in outputs])
        graph = self._graph(name, outputs)
        return ca.Function(name, arguments, graph.call(self._pieces(*arguments)))

    def _graph(self, name: str, outputs: Sequence[Any]) -> ca.Function:
        return ca.Function(name, [*self._symbols["x"], *self._symbols["p"]], outputs)

    def _pieces(self, x: Any, p: Any) -> list[Any]:
        """Return the columns x, ordered by stage, and p, cut into the symbols of the blocks."""
        pieces: list[Any] = []
        # x is ordered by stage, the symbols by declaration: undo the order first.
        declared = x[np.argsort(self._order("x")).tolist()]
        for column, symbols in ((declared, self._symbols["x"]), (p, self._symbols["p"])):
            ends = np.cumsum([0, *(symbol.numel() for symbol in symbols)]).tolist()
            pieces += ca.vertsplit(column, ends) if symbols else []
        return pieces

    def _place(
        self,
        key: str,
        name: str,
        symbols: Any,
        scale: Array,
        stages: Sequence[int],
        values: dict[str, Any],
        **layout: Any,
    ) -> None:
        label = layout.get("part", "") + name
        if label in self._blocks[key]:
            raise InputError(f"{self.name} has two blocks named {label!r}; give each its own name")
        rows, columns = scale.shape
        if len(stages) != columns:
            raise AssertionError(f"{name!r} has {columns} columns and {len(stages)} stages")
        # In the order of declaration; build() puts the places in the order of stages.
        where = len(self._stages[key]) + np.arange(scale.size)
        self._blocks[key][label] = Block(where, (rows, columns), scale, name=name, **layout)
        self._symbols[key].append(ca.vec(symbols))
        self._stages[key] += np.repeat(stages, rows).tolist()
        for kind, value in values.items():
            scaled = matrix(value, rows, columns, name) / scale
            self._values[kind].append(scaled.ravel(order="F"))

    def _order(self, key: str) -> list[int]:
        stages = np.array(self._stages[key], dtype=int)
        stages[stages == LAST] = stages.max(initial=0) + 1
        return [int(place) for place in np.argsort(stages, kind="stable")]


@dataclass
class Horizon:
    """Grid points 0 … N with N intervals between them; symbols in physical units, by columns."""

    assembly: Assembly
    model: Model
    integrand: ca.Function  # (x, z, u, p, t) → the integrands of the costs, a column
    fractions: Array  # grid points as fractions of the duration: N + 1 from 0 to 1
    first: int = 0  # stage of the first grid point
    prefix: str = ""
    guess: dict[str, Array] = field(default_factory=dict)  # start values by name
    duration: Any = 1.0  # a number or a symbol
    times: Any = None  # as declared; the first phase begins at zero
    T: Any = None  # times of the grid points, 1×(N + 1)
    dt: Any = None  # lengths of the intervals, 1×N
    X: Any = None  # states at the grid points
    Z: Any = None  # algebraic states at the grid points; no rows if no term needs them
    U: Any = None  # controls at the beginning of each interval
    V: Any = None  # controls at the end of each interval
    W: Any = None  # controls at the grid points; the last column is that of V
    P: Any = None  # parameters at the grid points, the model's first
    # x and z that are unknowns at the points of a collocation.
    inside: tuple[Any, Any] | None = None
    # Fractions, x and z where limits hold between grid points, interval by interval.
    between: tuple[Array, Any, Any] | None = None

    @property
    def N(self) -> int:
        """Number of intervals."""
        return int(self.fractions.size) - 1

    @property
    def model_parameters(self) -> Any:
        """Parameters of the model alone at the grid points."""
        return self.P[: self.model.size("parameter"), :]

    @cached_property
    def sizes(self) -> Array:
        """Scales of the rows of the equations, at most 1."""
        model, kinds = self.model, ("state", "algebraic", "control")
        # A row's change Σ |∂row/∂z|·scale(z) at the guess; above 1 it would loosen the tolerance.
        slopes = ca.fabs(ca.jacobian(model.moves.equations(*model.arguments), model.arguments[1]))
        rows = ca.mtimes(slopes, ca.DM(model.limits("algebraic", "scale")))
        columns = [[self.guess[name] for name in model.signals[kind]] for kind in kinds]
        declared = model.signals["parameter"].items()
        columns.append(
            [spread(model.values[name], s.size, self.times, name) for name, s in declared]
        )
        columns.append([self.times])
        points = [np.vstack([np.zeros((0, self.N + 1)), *parts]) for parts in columns]
        largest = ca.Function("sizes", model.arguments, [rows])(*points).full().max(axis=1)
        usable = np.isfinite(largest) & (largest > 0.0)
        return np.where(usable, np.minimum(largest, 1.0), 1.0)

    def stages(self, points: bool = False, repeat: int = 1) -> list[int]:
        """Return the stages of the intervals, or of all grid points, each repeated."""
        stages = range(self.first, self.first + self.N + points)
        return [stage for stage in stages for _ in range(repeat)]

    def at(self, k: int | slice) -> list[Any]:
        """Return (x, z, u, p, t) at grid points; u is the control of the interval that begins."""
        return [column[:, k] for column in (self.X, self.Z, self.W, self.P, self.T)]

    def unknown(
        self, signal: Signal, stages: list[int], start: Any, stride: int = 1, place: str = ""
    ) -> Any:
        """Add unknowns of a signal with its limits; return them."""
        layout = {"stride": stride, "role": Role(signal.name, place=place), "part": self.prefix}
        return self.assembly.variable(placed(signal.name, place), signal, stages, start, **layout)

    def constrain(
        self, name: str, rows: Any, stages: list[int], limits: Any, **layout: Any
    ) -> None:
        """Add rows with limits to the program; see :meth:`Assembly.constrain`."""
        self.assembly.constrain(name, rows, stages, limits, part=self.prefix, **layout)

    def equate(self, name: str, rows: Any, stages: list[int], scale: Any, **layout: Any) -> None:
        """Add rows = 0, divided by a scale, to the program."""
        self.constrain(name, rows, stages, Limits.equality(scale), **layout)

    def close(self, name: str, gaps: Any, stride: int = 1) -> None:
        """Add the rows of the dynamics: a gap of each state, ``stride`` columns an interval."""
        entries, scale = self.model.entry_names("state"), self.model.limits("state", "scale")
        layout = {"stride": stride, "entries": tuple(entries), "role": Role(kind="dynamics")}
        self.equate(name, gaps, self.stages(repeat=stride), scale, **layout)

    def limit(self, kind: str, rows: Any, place: str, stages: list[int], stride: int = 1) -> None:
        """Add rows for the limits of all quantities of a kind that have any."""
        for name, where in self.model.places(kind).items():
            signal, role = self.model.signals[kind][name], Role(name, place=place)
            if np.isfinite([signal.lower, signal.upper]).any():
                label = placed(name, place)
                self.constrain(label, rows[where, :], stages, signal, stride=stride, role=role)

    def unknowns(self, kind: str, count: int) -> Any:
        """Add all quantities of a kind at the first grid points; return them, a column each."""
        stages = self.stages(points=True)[:count]
        rows = [self.assembly.kind(0, count)]
        for name, signal in self.model.signals[kind].items():
            rows.append(self.unknown(signal, stages, self.guess[name][:, :count]))
        return ca.vertcat(*rows)


def placed(name: str, place: str) -> str:
    """Return the name of a block of a quantity that has several."""
    return f"{name} {place}" if place else name


def each(function: ca.Function, kind: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function for each column of its arguments, side by side."""
    count = max(int(column.shape[1]) for column in columns)
    # In MX graphs the map is one node: the graph does not grow with the columns.
    return list(function.map(count).call([kind(column) for column in columns]))


def where(horizon: Horizon, constraint: Constraint) -> list[tuple[str, list[Any], list[int]]]:
    """Return the place in the intervals, the arguments and the stages of a constraint's columns."""
    h, N, Z = horizon, horizon.N, horizon.Z
    if constraint.place != "path":
        k = 0 if constraint.place == "start" else N
        return [("", h.at(k), [h.first + k])]
    # Each: place in the intervals, arguments (x, z, u, p, t) by columns, stages of these.
    places = [("", h.at(slice(None)), h.stages(points=True))]
    if constraint.at == "points":
        return places
    begins = h.at(slice(N))
    last = _last(h)
    # An end has the next grid point's x, but u and p of its own interval.
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
    # At the last grid point a row holds the value at the end of the last interval already.
    count = N - len(places)
    if count and jumps:
        places.append(("at end", [column[:, :count] for column in ends], h.stages()[:count]))
    if h.between is not None:
        taus, X, Z = h.between
        each_interval = np.repeat(np.arange(N), taus.size).tolist()
        t, dt, u, v, p = (c[:, each_interval] for c in (h.T[:, :N], h.dt, h.U, h.V, h.P[:, :N]))
        tau = h.assembly.kind(ca.DM(np.tile(taus, N)).T)
        w = u + (v - u) * ca.repmat(tau, u.shape[0], 1)
        places.append(("inside", [X, Z, w, p, t + tau * dt], h.stages(repeat=taus.size)))
    return places


def _moves(horizon: Horizon, constraint: Constraint) -> tuple[bool, bool]:
    """Return if the expression changes within an interval, and if it jumps at the end."""
    model, expression = horizon.model, constraint.expression
    x, z, _, _, t = model.arguments
    controls = model.signals["control"].items()
    # A held control jumps at grid points, and z follows it at once through the equations.
    held = [model.symbol(name) for name, signal in controls if not signal.linear]
    linear = [model.symbol(name) for name, signal in controls if signal.linear]
    moves = ca.depends_on(expression, ca.vertcat(x, z, t, *linear))
    jumps = ca.depends_on(expression, ca.vertcat(ca.SX(0, 1), *held, *([z] if held else [])))
    return not model.discrete and bool(moves), bool(jumps)


def _last(horizon: Horizon) -> Any:
    """Return the algebraic states at the ends of the intervals, None where they are no unknowns."""
    X, Z = horizon.inside or (horizon.X, horizon.Z)
    if not Z.shape[0] or Z.shape[1] <= X.shape[1]:  # the last point is not the end
        return None
    points = int(Z.shape[1]) // horizon.N
    return Z[:, points - 1 :: points]
