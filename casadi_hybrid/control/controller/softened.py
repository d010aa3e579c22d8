"""What a controller in C has beside its solver: the softened problem, a prediction over a delay."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.controller.names import after, enumeration, quantities, table
from casadi_hybrid.control.following import Following
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.program import Block, Program, common
from casadi_hybrid.engine.export.export import Export
from casadi_hybrid.engine.export.functions import named, text_of_functions


def write_function(function: ca.Function, folder: Path, name: str) -> str:
    """Write a function into the folder of an export; return the file's name."""
    text = text_of_functions([named(function, name)], name)
    (folder / f"{name}.c").write_text(text, encoding="utf-8")
    return f"{name}.c"


def _work(function: ca.Function, prefix: str) -> dict[str, int]:
    """The places that a function works in, as the templates name them."""
    return {f"{prefix}_{kind}": max(1, getattr(function, f"sz_{kind}")())
            for kind in ("arg", "res", "iw", "w")}  # fmt: skip


def words_of_following(own: Following | None) -> dict[str, Any]:
    """What the templates ask for of limits that are expressions of parameters."""
    if own is None:
        return {"follows": False}
    count = own.function.numel_out(0)
    return {"follows": True, "followed": count, **_work(own.function, "follow")}


@dataclass(frozen=True)
class Ahead:
    """The state one delay later, where a step is an interval; see :meth:`Delay.by_intervals`."""

    model: Model
    seconds: float
    function: ca.Function
    sent: int

    def write(self, folder: Path, name: str) -> str:
        """Write it into the folder of an export; return the file's name."""
        return write_function(self.function, folder, f"{name}_ahead")

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
        return {
            "delay": True, "delay_seconds": repr(self.seconds), "sent": self.sent,
            "ahead_p": table(of), "ahead_p_count": len(of),
            "ahead_places": max(1, len(of)),
            "ahead_values": table([float(v) for v in values]),
            "ahead_scales": table(scales),
            **_work(self.function, "ahead"),
        }  # fmt: skip

    @property
    def bytes(self) -> int:
        """Of the memory of a prediction on this machine."""
        f = self.function
        integers = (max(1, f.sz_iw()) + 1) // 2
        return 8 * int(f.sz_arg() + f.sz_res() + max(1, f.sz_w()) + integers)


_SHARED = "core/", "README.md", "LICENSE", "CMakeLists.txt", "main.c", "replay.c", "_static.c"
"""What the export of the problem itself has too."""


@dataclass(frozen=True)
class Softened:
    """The softened problem of a controller.

    Attributes:
        solver, program: of it, with the numbers of the export.
        amounts: its unknowns that are violations, with the names of limits.
        before: names of limits that were soft in the problem itself.
    """

    solver: Any
    program: Program
    amounts: Sequence[tuple[str, Block]]
    before: Set[str]

    def write(
        self, folder: Path, name: str, *, loops: bool | None, cold: bool
    ) -> tuple[Export, list[str]]:
        """Write its solver into the folder of an export; return it and the files' names."""
        with tempfile.TemporaryDirectory() as apart:
            written: Export = self.solver.export(
                apart, f"{name}_softened", loops=loops, cold=cold, **self.program.arguments
            )
            own = [
                file for file in written.files
                if not (file.startswith(_SHARED[:-1]) or file.endswith(_SHARED[-1]))
            ]  # fmt: skip
            for file in own:
                shutil.copyfile(Path(apart) / file, folder / file)
        return written, own

    def words(self, name: str, program: Program) -> dict[str, Any]:
        """What the templates ask for; the program is that of the problem itself."""
        own = self.program
        if program.p.size != own.p.size:
            raise AssertionError("the softened problem has other parameters")
        x = common(program.variables, own.variables)
        g = common(program.constraints, own.constraints)
        of, blocks = zip(*self.amounts, strict=True)
        sizes = [block.where.size for block in blocks]
        names = quantities([(label, 1, "", "") for label in dict.fromkeys(of)], "limit")
        at = {quantity.name: quantity.at for quantity in names}
        return {
            "common_x": x.shape[1], "hard_x": table(x[0]), "soft_x": table(x[1]),
            "common_g": g.shape[1], "hard_g": table(g[0]), "soft_g": table(g[1]),
            "soft_after_x": table(after(own.variables, own.n)),
            "soft_after_g": table(after(own.constraints, own.m)),
            "violation_places": enumeration(names, f"{name.upper()}_VIOLATED"),
            "violations": len(names), "violated_names": [q.name for q in names],
            "violated_words": [q.word.upper() for q in names],
            "was_soft": table(quantity.name in self.before for quantity in names),
            "amounts": sum(sizes),
            "amount_x": table(np.concatenate([b.where for b in blocks])),
            "amount_scale": table(np.concatenate([b.scale.ravel(order="F") for b in blocks])),
            "amount_of": table(np.repeat([at[label] for label in of], sizes)),
        }  # fmt: skip
