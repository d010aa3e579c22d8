"""Collects unknowns, parameters, rows and costs by name, and closes them into a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.program import BOUNDS, Block, Program
from casadi_hybrid.control.signals import Array, matrix

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
    ) -> Any:  # fmt: skip
        """Add unknowns, one column for each entry of ``stages``; return them as a matrix."""
        size = matrix(scale, rows, len(stages), f"scale of {name!r}")
        symbol = self.kind.sym(name, *size.shape)
        self._place("x", name, symbol, size, stages, stride, x0=start, lbx=lower, ubx=upper)
        return symbol if (size == 1.0).all() else symbol * size

    def tie(self, name: str, other: str, column: int) -> None:
        """Take the bounds of one column of unknowns away: it equals that of another one."""
        self._ties.append((name, other, column))

    def parameter(self, name: str, value: Any, rows: int, columns: int, stride: int = 0) -> Any:
        """Add a parameter with a value that may change between solves; return it as a matrix."""
        symbol = self.kind.sym(name, rows, columns)
        self._place("p", name, symbol, np.ones((rows, columns)), [0] * columns, stride, p=value)
        return symbol

    def constrain(
        self, name: str, rows: Any, stages: Sequence[int], lower: Any = 0.0, upper: Any = 0.0, *,
        scale: Any = 1.0, stride: int = 1, entries: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Add lower ≤ rows ≤ upper, an equation by default; one column for each stage."""
        rows = self.kind(rows)
        size = matrix(scale, rows.shape[0], rows.shape[1], f"scale of {name!r}")
        scaled = rows if (size == 1.0).all() else rows / size
        self._place("g", name, scaled, size, stages, stride, entries, lbg=lower, ubg=upper)

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
        return Program(self.name, nlp, **numbers, variables=blocks["x"], parameters=blocks["p"],
                       constraints=blocks["g"], stages=stages,
                       ties=ties if self._ties else None)  # fmt: skip

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
        self, key: str, name: str, symbols: Any, scale: Array, stages: Sequence[int], stride: int,
        entries: Sequence[str] = (), **numbers: Any,
    ) -> None:  # fmt: skip
        rows, columns = scale.shape
        if name in self._blocks[key]:
            raise InputError(f"{self.name} has two blocks named {name!r}; give each its own name")
        if len(stages) != columns:
            raise AssertionError(f"{name!r} has {columns} columns and {len(stages)} stages")
        where = len(self._stages[key]) + np.arange(scale.size)
        self._blocks[key][name] = Block(where, (rows, columns), scale, stride, tuple(entries))
        self._parts[key].append(ca.vec(symbols))
        self._stages[key] += np.repeat(stages, rows).tolist()
        for of, value in numbers.items():
            self._numbers[of].append((matrix(value, rows, columns, name) / scale).ravel(order="F"))

    def _order(self, key: str) -> list[int]:
        stages = np.array(self._stages[key], dtype=int)
        stages[stages == LAST] = stages.max(initial=0) + 1
        return [int(place) for place in np.argsort(stages, kind="stable")]
