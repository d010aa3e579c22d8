"""Collects unknowns, parameters, rows and costs by name, and closes them into a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.signals import matrix

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
        self._parts: dict[str, list[Any]] = {key: [] for key in _KINDS}
        self._numbers: dict[str, list[Any]] = {
            key: [] for key in ("x0", "lbx", "ubx", "lbg", "ubg", "p")
        }
        self._blocks: dict[str, dict[str, tuple[Any, ...]]] = {key: {} for key in _KINDS}
        self._stages: dict[str, list[Any]] = {key: [] for key in _KINDS}
        self._count = dict.fromkeys(_KINDS, 0)
        self._ties: list[tuple[str, str, int]] = []

    def variable(
        self, name: str, rows: int, stages: Sequence[int], *, lower: Any = -np.inf,
        upper: Any = np.inf, start: Any = 0.0, scale: Any = 1.0, stride: int = 1,
    ) -> Any:  # fmt: skip
        """Add unknowns, one column for each entry of ``stages``; return them as a matrix."""
        shape = (rows, len(stages))
        size = matrix(scale, *shape, f"scale of {name!r}")
        symbol = self.kind.sym(name, *shape)
        self._place("x", name, shape, size, stages, stride)
        self._parts["x"].append(ca.vec(symbol))
        for key, value in (("x0", start), ("lbx", lower), ("ubx", upper)):
            self._numbers[key].append((matrix(value, *shape, name) / size).ravel(order="F"))
        return symbol if (size == 1.0).all() else symbol * size

    def tie(self, name: str, other: str, column: int) -> None:
        """Take the bounds of one column of unknowns away: it equals that of another one."""
        self._ties.append((name, other, column))
        begin = list(self._blocks["x"]).index(name)
        rows = self._blocks["x"][name][1][0]
        for key, value in (("lbx", -np.inf), ("ubx", np.inf)):
            self._numbers[key][begin][column * rows : (column + 1) * rows] = value

    def parameter(self, name: str, value: Any, rows: int, columns: int, stride: int = 0) -> Any:
        """Add a parameter with a value that may change between solves; return it as a matrix."""
        shape = (rows, columns)
        symbol = self.kind.sym(name, *shape)
        self._place("p", name, shape, np.ones(shape), [0] * columns, stride)
        self._parts["p"].append(ca.vec(symbol))
        self._numbers["p"].append(matrix(value, *shape, name).ravel(order="F"))
        return symbol

    def constrain(
        self, name: str, rows: Any, stages: Sequence[int], lower: Any = 0.0, upper: Any = 0.0, *,
        scale: Any = 1.0, stride: int = 1, entries: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Add lower ≤ rows ≤ upper, an equation by default; one column for each stage."""
        rows = self.kind(rows)
        shape = (int(rows.shape[0]), int(rows.shape[1]))
        size = matrix(scale, *shape, f"scale of {name!r}")
        self._place("g", name, shape, size, stages, stride, tuple(entries))
        self._parts["g"].append(ca.vec(rows if (size == 1.0).all() else rows / size))
        for key, value in (("lbg", lower), ("ubg", upper)):
            self._numbers[key].append((matrix(value, *shape, name) / size).ravel(order="F"))

    def build(self) -> Program:
        """Return the collected program, its unknowns and rows ordered by stage."""
        order = {key: self._order(key) for key in _KINDS}
        parts = {
            key: ca.vertcat(self.kind(0, 1), *collected) for key, collected in self._parts.items()
        }
        x, p, g = (parts[key] for key in _KINDS)
        self.cost = ca.densify(self.cost)  # where nothing is minimized it has no entry
        if self.kind is ca.SX:
            nlp = {"x": x[order["x"]], "p": p, "f": self.cost, "g": g[order["g"]]}
        else:
            graph = ca.Function("graph", [*self._parts["x"], *self._parts["p"]], [self.cost, g])
            z, q = ca.MX.sym("x", x.numel()), ca.MX.sym("p", p.numel())
            f, g = graph.call(self._pieces(z, q), True, False)
            nlp = {"x": z, "p": q, "f": f, "g": g[order["g"]]}
        numbers: dict[str, Any] = {
            key: (np.concatenate(part) if part else np.zeros(0))[
                order[key[-1] if key != "x0" else "x"]
            ]
            for key, part in self._numbers.items()
        }
        blocks = {
            key: {
                name: Block(np.argsort(order[key])[begin : begin + shape[0] * shape[1]],
                            shape, *more)
                for name, (begin, shape, *more) in self._blocks[key].items()
            }
            for key in _KINDS
        }  # fmt: skip
        ties = np.arange(numbers["x0"].size)
        for one, other, column in self._ties:
            held, place = (
                blocks["x"][name].where.reshape(blocks["x"][name].shape, order="F")[:, column]
                for name in (one, other)
            )
            ties[held] = place
        stages = {key: np.array(self._stages[key], dtype=int)[order[key]] for key in ("x", "g")}
        return Program(self.name, nlp, **numbers, variables=blocks["x"], parameters=blocks["p"],
                       constraints=blocks["g"], stages=stages,
                       ties=ties if self._ties else None)  # fmt: skip

    def reader(self, name: str, program: Program, outputs: Sequence[Any]) -> ca.Function:
        """Return the function (x, p) of the built program that gives expressions of its symbols."""
        empty = self.kind(0, 1)
        x, p = (ca.vertcat(empty, *self._parts[key]) for key in ("x", "p"))
        if self.kind is ca.SX:
            arguments = [program.nlp["x"], program.nlp["p"]]
            return ca.Function(name, arguments, [self.kind(output) for output in outputs])
        graph = ca.Function(name, [*self._parts["x"], *self._parts["p"]], outputs)
        z, q = ca.MX.sym("x", x.numel()), ca.MX.sym("p", p.numel())
        return ca.Function(name, [z, q], graph.call(self._pieces(z, q)))

    def _pieces(self, z: Any, q: Any) -> list[Any]:
        back = np.argsort(self._order("x")).tolist()
        return [*_split(z[back], self._parts["x"]), *_split(q, self._parts["p"])]

    def _place(
        self,
        key: str,
        name: str,
        shape: tuple[int, int],
        scale: Any,
        stages: Sequence[int],
        stride: int,
        *more: Any,
    ) -> None:
        if name in self._blocks[key]:
            raise InputError(f"{self.name} has two blocks named {name!r}; give each its own name")
        if len(stages) != shape[1]:
            raise AssertionError(f"{name!r} has {shape[1]} columns and {len(stages)} stages")
        self._blocks[key][name] = (self._count[key], shape, scale, stride, *more)
        self._count[key] += shape[0] * shape[1]
        self._stages[key] += np.repeat(np.asarray(stages, dtype=int), shape[0]).tolist()

    def _order(self, key: str) -> list[int]:
        if key == "p":
            return list(range(self._count["p"]))
        stages = np.array(self._stages[key], dtype=int)
        stages[stages == LAST] = stages.max(initial=0) + 1
        return [int(place) for place in np.argsort(stages, kind="stable")]


def _split(column: Any, parts: Sequence[Any]) -> list[Any]:
    places = np.cumsum([0, *(part.numel() for part in parts)]).tolist()
    return ca.vertsplit(column, places) if parts else []
