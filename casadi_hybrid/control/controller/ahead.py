"""The prediction over a delay in the C of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.controller.names import table
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array
from casadi_hybrid.engine.export.functions import named, text_of_functions


@dataclass(frozen=True)
class Ahead:
    """The state one delay later, where a step is an interval; see :meth:`Delay.by_intervals`."""

    model: Model
    seconds: float
    function: ca.Function
    sent: int
    start: Array

    def write(self, folder: Path, name: str) -> str:
        """Write it into the folder of an export; return the file's name."""
        name = f"{name}_ahead"
        text = text_of_functions([named(self.function, name)], name)
        (folder / f"{name}.c").write_text(text, encoding="utf-8")
        return f"{name}.c"

    def words(self, program: Program, prefix: str) -> dict[str, Any]:
        """What the templates ask for; the prefix is that of the part which has the parameters."""
        of: list[int] = []
        values: list[float] = []
        scales: list[float] = []
        for name, signal in self.model.signals["parameter"].items():
            block = program.parameters.get(prefix + name)
            rows = signal.size
            of += [-1] * rows if block is None else block.where[:rows].tolist()
            scales += [1.0] * rows if block is None else block.scale[:, 0].tolist()
            values += np.ravel(self.model.values[name]).tolist() if block is None else rows * [0.0]
        sizes = {kind: getattr(self.function, f"sz_{kind}")() for kind in ("arg", "res")}
        sizes |= {kind: max(1, getattr(self.function, f"sz_{kind}")()) for kind in ("iw", "w")}
        return {
            "delay": True, "delay_seconds": repr(self.seconds), "sent": self.sent,
            "sent_first": table(np.tile(self.start, self.sent).tolist()),
            "ahead_p": table(of), "ahead_p_count": len(of),
            "ahead_places": max(1, len(of)),
            "ahead_values": table([float(v) for v in values]),
            "ahead_scales": table([float(v) for v in scales]),
            **{f"ahead_{kind}": size for kind, size in sizes.items()},
        }  # fmt: skip

    @property
    def bytes(self) -> int:
        """Of the memory of a prediction on this machine."""
        f = self.function
        integers = (max(1, f.sz_iw()) + 1) // 2
        return 8 * int(f.sz_arg() + f.sz_res() + max(1, f.sz_w()) + integers)
