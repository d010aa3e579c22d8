"""Limits by name in the C of a controller: where each stands among the bounds of its programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from casadi_hybrid.control.controller.names import (
    Quantity,
    enumeration,
    members,
    quantities,
    table,
    total,
)
from casadi_hybrid.control.predictive.limits import Limits
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array
from casadi_hybrid.engine.export.tables import structure

_SIDES = "lower", "upper"


class LimitsInC:
    """The limits that a problem declares: a side of each a member of a structure, with values."""

    def __init__(self, limits: Limits, units: dict[str, str]) -> None:
        self._limits = limits
        now = {
            (name, side): value
            for name, declared in limits.declared.items()
            for side, value in zip(_SIDES, limits.now(name), strict=True)
            if np.isfinite(getattr(declared, side)).any()
        }
        rows = [(f"{name} {side}", value.size, 1, units.get(name, ""), "limit")
                for (name, side), value in now.items()]  # fmt: skip
        self.members: list[Quantity] = quantities(rows, "limit")
        self.values: Array = np.concatenate([*now.values(), np.zeros(0)])
        self._at = {key: member.at for key, member in zip(now, self.members, strict=True)}

    def words(self, name: str, program: Program, softened: Program | None) -> dict[str, Any]:
        """What the templates ask for of the programs with the numbers of the export."""
        upper = name.upper()
        by_word = {q.word: self.values[q.at : q.at + q.count] for q in self.members}
        return {
            "bounds": self._bounds(program),
            "soft_bounds": self._bounds(softened) if softened else "",
            "limited": bool(self.members),
            "limit_fields": members(self.members),
            "limit_places": enumeration(self.members, f"{upper}_LIMIT"),
            "limit_count": total(self.members),
            "limit_values": structure(
                {word: v if v.size > 1 else float(v[0]) for word, v in by_word.items()}
            ),
        }

    def of_controls(self, controls: Sequence[str], sizes: Sequence[int], side: str) -> list[int]:
        """The place of the limit of each control on a side, -1 where it has none."""
        found = []
        for name, size in zip(controls, sizes, strict=True):
            at = self._at.get((name, side))
            found += [-1] * size if at is None else [at + i for i in range(size)]
        return found

    def _bounds(self, program: Program) -> str:
        """The tables of the bounds that are limits, as initializers."""
        found = []
        for key in ("lbx", "ubx", "lbg", "ubg"):
            rows = self._rows(program, key)
            at, of = (f"(const int[]){table(row[k] for row in rows)}" for k in (0, 1))
            scale = f"(const double[]){table(row[2] for row in rows)}"
            found.append(f"{{{len(rows)}, {at}, {of}, {scale}}}")
        return ",\n    ".join(found)

    def _rows(self, program: Program, key: str) -> list[tuple[int, int, float]]:
        """For each bound that is a limit: its place, that of the limit, and its scale."""
        blocks = program.variables if key.endswith("x") else program.constraints
        scales = np.ones(program.n if key.endswith("x") else program.m)
        for block in blocks.values():
            scales[block.where] = block.scale.ravel(order="F")
        found = []
        for (name, side), at in self._at.items():
            if side[0] != key[0]:
                continue
            for i in range(self._limits.now(name)[0].size):
                moved = self._limits.moved_in(program, name, side, i)
                changed = np.flatnonzero(getattr(moved, key) != getattr(program, key))
                found += [(int(place), at + i, float(scales[place])) for place in changed]
        return found
