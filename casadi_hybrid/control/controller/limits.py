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
    """The limits that a problem declares, as the members of a structure.

    Args:
        limits: by name, with what has changed.
        units: by name.

    Attributes:
        members: a side of a limit each.
        values: as they are now.
    """

    def __init__(self, limits: Limits, units: dict[str, str]) -> None:
        self._limits, rows = limits, []
        values: list[Array] = []
        self._at: dict[tuple[str, str], int] = {}
        for name, declared in limits.declared.items():
            for side, now in zip(_SIDES, limits.now(name), strict=True):
                if np.isfinite(getattr(declared, side)).any():
                    self._at[name, side] = sum(value.size for value in values)
                    rows.append((f"{name} {side}", now.size, 1, units.get(name, ""), "limit"))
                    values.append(now)
        self.members: list[Quantity] = quantities(rows, "limit")
        self.values: Array = np.concatenate([*values, np.zeros(0)])

    def words(self, name: str, program: Program, softened: Program | None) -> dict[str, Any]:
        """What the templates ask for.

        Args:
            name: of the export.
            program: with the numbers of the export.
            softened: the softened one, where there is one.
        """
        upper = name.upper()
        words: dict[str, Any] = {}
        for prefix, of in (("", program), ("soft_", softened)):
            for key in ("lbx", "ubx", "lbg", "ubg"):
                rows = [] if of is None else self._rows(of, key)
                words |= {
                    f"{prefix}{key}_count": len(rows),
                    f"{prefix}{key}_at": table(at for at, _, _ in rows),
                    f"{prefix}{key}_of": table(of for _, of, _ in rows),
                    f"{prefix}{key}_scale": table(float(scale) for _, _, scale in rows),
                }
        by_word = {q.word: self.values[q.at : q.at + q.count] for q in self.members}
        return words | {
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
