"""Files of trajectories: NumPy's archive without pickled objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from casadi_hybrid.control.model.signals import Array, ByName
from casadi_hybrid.control.transcription.naming import labels
from casadi_hybrid.control.transcription.parametric_bounds import followed
from casadi_hybrid.control.transcription.program import BOUNDS, KINDS, Program
from casadi_hybrid.utils.errors import InputError, in_a_sentence
from casadi_hybrid.utils.output.files import npz_path

# Version of the layout of the file.
VERSION = 3
# Key of an array among the texts of a file.
_ARRAY = "array of this file"
# Difference of values of a program, in its scales, due to rounding and integrators.
SAME = 1e-6


@dataclass(frozen=True)
class Saved(ByName):
    """Content of a solution's file without the problem, for figures and tables.

    Attributes:
        name: of the problem.
        times: of the grid points.
        rows: trajectories by name, as matrices.
        multipliers: by name, as matrices, per physical unit.
        units: by name.
        costs: by name.
        stats: numbers and texts of the solver's statistics.
        point: ``x``, ``lam_x``, ``lam_g``, ``f``, ``g`` and the values of the program, stacked and
            scaled.
        limits: of the program, changed ones: lower and upper, in physical units.
        identity: the names of its unknowns and rows.
    """

    name: str
    times: Array
    rows: Mapping[str, Array] = field(repr=False)
    multipliers: Mapping[str, Array] = field(repr=False)
    units: Mapping[str, str] = field(repr=False)
    costs: Mapping[str, float]
    stats: Mapping[str, Any] = field(repr=False)
    point: Mapping[str, Array] = field(repr=False)
    limits: Mapping[str, Array] = field(repr=False)
    identity: Mapping[str, Any] = field(repr=False)
    explanation: str = ""

    @classmethod
    def of(cls, solution: Any, name: str, rows: Any, multipliers: Any, **shown: Any) -> Saved:
        """Return the content of a file for a solution of one horizon or of several."""
        program, stacked = solution.program, {k: np.atleast_2d(v) for k, v in multipliers.items()}
        point = {key: getattr(solution, key) for key in ("x", "lam_x", "lam_g")} | program.arguments
        point |= dict(zip("fg", map(np.asarray, program.at(solution.x)), strict=True))
        limits = {limited: np.array(pair) for limited, pair in program.limits.items()}
        shown |= {"stats": solution.stats, "explanation": solution.explanation}
        shown |= {"point": point, "limits": limits, "identity": identity(program)}
        return cls(name, solution.times, rows, stacked, **shown)

    def write(self, path: str | Path) -> Path:
        """Write one file; the suffix ``.npz`` is added where it is missing."""
        stats = {k: v.item() if isinstance(v, np.generic) else v for k, v in self.stats.items()}
        stats = {k: v for k, v in stats.items() if isinstance(v, int | float | str | None)}
        return packed(path, "text", {**vars(self), "stats": stats, "version": VERSION})

    @classmethod
    def read(cls, path: str | Path) -> Saved:
        """Read a file of :meth:`write`.

        Raises:
            InputError: for another file, or another version.
        """
        content = unpacked(path, "text", "saved solution")
        if not isinstance(content, dict) or content.pop("version", 0) != VERSION:
            raise InputError(f"{path} was saved by another version; its layout is not known here")
        try:
            return cls(**content)
        except TypeError as problem:
            raise InputError(f"{path} holds no saved solution: {problem}") from None

    def program(self, ocp: Any) -> Program:
        """Return the program of the problem that was solved, with the values of the solve.

        Raises:
            InputError: for another layout, or other costs, rows or limits.
        """
        program = alike(ocp.program, self.identity, f"the file is of {self.name!r}")
        # Limits that follow parameters first, then those that were changed by hand.
        program = followed(replace(program, x0=self.point["x0"], p=self.point["p"]))
        changeable = (
            f"{prefix}{n}" for prefix, part in ocp.prefixed.items() for n in part.limitable
        )
        for label in changeable:
            pair: Any = self.limits.get(label, ())
            if len(pair) and not np.array_equal(program.limits.get(label, ()), pair):
                program = program.with_limits(label, *pair)  # changed by hand
        differences = "; ".join(self._differences(program, labels(program, ocp.prefixed)))
        if differences:
            raise InputError(
                f"the file of {self.name!r} does not solve this problem: {differences}"
            )
        return program

    def _differences(self, program: Program, names: Mapping[str, Any]) -> Iterator[str]:
        """Yield the largest difference of each kind between program and file at the point."""
        f, g = program.at(self.point["x"])
        of = {"f": ["the objective"], "g": names["constraint_names"], "x": names["variable_names"]}
        values: dict[str, Any] = {"f": f, "g": g} | {key: getattr(program, key) for key in BOUNDS}
        for key, value in values.items():
            new, old = np.atleast_1d(value), np.atleast_1d(self.point[key])
            least = SAME**2 if key == "f" else SAME  # costs may be small
            apart = np.flatnonzero(~np.isclose(new, old, SAME, least, equal_nan=True))
            if apart.size:
                i = apart[np.argmax(np.abs(new[apart] - old[apart]))]
                side = {"l": "the lower limit of ", "u": "the upper limit of "}.get(key[0], "")
                words = f"{new[i]:.6g}, it was {old[i]:.6g}"
                words = f"off by {new[i] - old[i]:.3g}" if key == "g" else words
                yield f"{side}{of[key[-1]][i]} is {words}"


def packed(path: str | Path, key: str, content: Any) -> Path:
    """Write dictionaries and lists, and the arrays in them, to one file under a key."""
    arrays: dict[str, Any] = {}

    def named(array: Any) -> dict[str, str]:
        name = str(len(arrays))
        arrays[name] = array
        return {_ARRAY: name}

    # JSON calls `named` for arrays alone, which become entries of the archive: no pickles.
    arrays[key], target = np.array(json.dumps(content, default=named)), npz_path(path)
    np.savez_compressed(target, **arrays)
    return target


def unpacked(path: str | Path, key: str, what: str) -> Any:
    """Return the content of a file of :func:`packed`."""
    try:
        # NumPy leaves a file open that it cannot read.
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            damaged = file.zip.testzip()  # NumPy may stop before the end, where the checksum is
            if damaged:
                raise BadZipFile(f"{damaged} in it is damaged")
            text = str(file[key])
            return json.loads(text, object_hook=lambda d: file[d[_ARRAY]] if _ARRAY in d else d)
    except FileNotFoundError:
        raise
    except Exception as problem:  # noqa: BLE001, a damaged file raises whatever reads it
        raise InputError(f"{path} holds no {what}: {in_a_sentence(problem)}") from None


def identity(program: Program) -> dict[str, Any]:
    """Return the names, shapes and scales of the blocks of a program."""
    rows: dict[str, Any] = {}
    for kind in KINDS:
        blocks = getattr(program, kind).items()
        # The sum stands for all scales of a block.
        rows[kind] = [[name, list(b.shape), float(np.sum(b.scale))] for name, b in blocks]
    return rows


def alike(program: Program, solved: Mapping[str, Any], source: str) -> Program:
    """Return a program, refusing one that differs in identity from the solved one."""
    if identity(program) != solved:
        raise InputError(
            f"{source}, which is not laid out as {program.name!r}: other quantities, constraints, "
            "mesh, scales or another method. Give the problem as it was when it was solved"
        )
    return program


def renumbered(program: Program, solved: Program) -> Program:
    """Return a program with the values of one that is laid out alike."""
    program = alike(program, identity(solved), f"the solution is of {solved.name!r}")
    return replace(program, **solved.arguments, limits=solved.limits)
