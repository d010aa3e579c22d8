"""Writes a controller around an exported solver: what goes in and comes out has names and units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.program import Block, Program
from casadi_hybrid.control.signals import Array, Signal
from casadi_hybrid.control.statement import Statement
from casadi_hybrid.engine.export.export import Export, filled
from casadi_hybrid.engine.export.tables import braced, listing, number, structure

_TEMPLATES = Path(__file__).with_name("templates")
_KEYWORDS = frozenset((
    *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else"),
    *("enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register"),
    *("restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef"),
    *("union", "unsigned", "void", "volatile", "while"),
    *("bool", "class", "delete", "new", "private", "public", "template", "this", "virtual"),
))  # fmt: skip


@dataclass(frozen=True)
class Law:
    """What is written.

    Attributes:
        ocp: the problem, of scenarios the one that they have in common.
        program: with the numbers of the export.
        parts: for each part of the program the prefix of its names and the parameters that are its
            own.
        default: the controls where there is no plan.
        words: the same in words.
        applied: the controls before the first step.
        tolerance: the largest violation of a plan that is used, in scaled units.
        shifted: whether a step is an interval after the one before.
    """

    ocp: Statement
    program: Program
    parts: Mapping[str, Any]
    default: Array
    words: str
    applied: Array
    tolerance: float
    shifted: bool


@dataclass(frozen=True)
class Quantity:
    """A member of a structure, a matrix column by column: its name in C, and where it begins."""

    name: str
    word: str
    at: int
    rows: int
    columns: int
    unit: str
    kind: str

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return self.rows * self.columns

    @property
    def member(self) -> str:
        """As a member of a structure."""
        sizes = f"[{self.count}]" if self.count > 1 else ""
        return f"    double {self.word}{sizes};" + (f" /* {self.unit} */" if self.unit else "")


def export_law(
    solver: Any,
    law: Law,
    folder: str | Path,
    name: str | None,
    *,
    loop: Iterable[Mapping[str, Any]] = (),
    loops: bool | None = None,
    cold: bool = True,
) -> Export:
    """Write the solver and its controller; see :meth:`NlpSolver.export` for what is raised.

    Args:
        solver: of the program.
        law: what is written.
        folder: where.
        name: what names begin with; that of the problem by default.
        loop: solves to compare and to count by.
        loops, cold: as there.
    """
    if name is None:
        name = re.sub("[^A-Za-z0-9]+", "_", law.program.name).strip("_").lower()
    written = solver.export(
        folder, name, loop=loop, loops=loops, cold=cold, **law.program.arguments
    )
    return write_controller(written, law)


def write_controller(written: Export, law: Law) -> Export:
    """Write the controller into the folder of an export; return the export with its files.

    Raises:
        InputError: for two names that are one in C, and a state that is free at the start.
        OSError: where the folder cannot be written to.
    """
    ocp, program = law.ocp, law.program
    first = next(iter(law.parts))
    states, controls = ocp.model.signals["state"], ocp.model.signals["control"]
    if loose := [name for name in states if name not in ocp.fixed]:
        raise InputError(f"{ocp.name} leaves {', '.join(loose)} free at the start: initial(…)")
    inputs = _inputs(law)
    outputs = _quantities(
        [(name, s.size, 1, s.unit, "control") for name, s in controls.items()], "control"
    )
    place = {quantity.name: quantity for quantity in inputs}
    total = sum(quantity.count for quantity in outputs)
    N = ocp.intervals if law.shifted else 1
    starts = [
        (block.where[i], place[name].at + i, block.scale.ravel(order="F")[i])
        for prefix in law.parts
        for name, signal in states.items()
        for block in [program.variables[prefix + name]]
        for i in range(signal.size)
    ]
    blocks = [program.variables[first + name] for name in controls]
    scales = np.concatenate([block.scale[:, 0] for block in blocks])
    by_interval = [block.where.reshape(block.shape, order="F") for block in blocks]
    control_x = np.concatenate([np.concatenate([w[:, k] for w in by_interval]) for k in range(N)])
    shown = [(name, block) for name, block in program.variables.items()]
    readable = _quantities(
        [(name, b.shape[0], b.shape[1], "", "") for name, b in shown], "variable"
    )
    upper, p = written.name.upper(), program.p
    values = np.zeros(sum(quantity.count for quantity in inputs))
    places = _from(law, place, values.size, outputs)
    for i, source in enumerate(places):
        if 0 <= source < values.size:
            values[source] = p[i]
    after = {"x": _after(program.variables, program.n), "g": _after(program.constraints, program.m)}
    if not law.shifted:
        after = {key: np.arange(table.size) for key, table in after.items()}
    clock = written.cold is not None
    size = written.memory + written.input + written.output + 8 * (N * total + total + 1) + 16
    words: dict[str, Any] = {
        "NAME": written.name, "UPPER": upper,
        "interval": f"{ocp.length * float(ocp.fractions[1]):g}",
        "input_fields": _members(inputs), "input_places": _enum(inputs, f"{upper}_IN"),
        "inputs": values.size, "output_fields": _members(outputs),
        "output_places": _enum(outputs, f"{upper}_OUT"), "outputs": total,
        "trajectories": ",\n".join(f"    {upper}_READ_{q.word.upper()}" for q in readable),
        "lengths": "\n".join(
            f"#define {upper}_LENGTH_{q.word.upper()} {q.count}" for q in readable
        ),
        "plan_places": N * total, "intervals": N, "starts": len(starts),
        "clock": ", in.now, in.max_time" if clock else "", "default_words": law.words,
        "from": _table(places or [-1]),
        "start_x": _table([s[0] for s in starts]), "start_of": _table([s[1] for s in starts]),
        "start_scale": _table([float(s[2]) for s in starts]),
        "control_x": _table(control_x), "control_scale": _table(scales.tolist()),
        "control_lower": _table(ocp.model.limits("control", "lower").tolist()),
        "control_upper": _table(ocp.model.limits("control", "upper").tolist()),
        "default": _table(law.default.tolist()), "after_x": _table(after["x"]),
        "after_g": _table(after["g"] if after["g"].size else [0]),
        "read_begin": _table(np.cumsum([0, *(q.count for q in readable)])),
        "read_places": program.n, "read_x": _table(np.concatenate([b.where for _, b in shown])),
        "read_scale": _table(
            np.concatenate([b.scale.ravel(order="F") for _, b in shown]).tolist()
        ),
        "written": structure(
            {q.word: values[q.at : q.at + q.count] if q.count > 1 else float(values[q.at])
             for q in inputs}
        ), "applied": _table(law.applied.tolist()),
        "tolerance": number(law.tolerance), "controller": size,
        "first_input": inputs[0].word, "first_unit": inputs[0].unit or "its unit",
        "first_output": outputs[0].word, "first_output_unit": outputs[0].unit or "its unit",
        "table": listing([
            (q.kind, f"`{'inputs' if q in inputs else 'outputs'}.{q.word}` | {q.count} | "
             f"{q.unit or '-'} | {q.name}") for q in (*inputs, *outputs)
        ]),
    }  # fmt: skip
    names = []
    for template in ("NAME_control.h", "NAME_control.c", "cortex-m7.cmake"):
        file = template.replace("NAME", written.name)
        text = filled((_TEMPLATES / template).read_text("utf-8"), words)
        (written.folder / file).write_text(text, encoding="utf-8")
        names.append(file)
    readme = written.folder / "README.md"
    text = filled((_TEMPLATES / "README.md").read_text("utf-8"), words)
    readme.write_text(readme.read_text("utf-8") + text, encoding="utf-8")
    return replace(written, files=tuple(sorted({*written.files, *names})))


def _inputs(law: Law) -> list[Quantity]:
    """The measured state, time where the problem depends on it, parameters and references."""
    ocp = law.ocp
    rows = [(name, s.size, 1, s.unit, "state") for name, s in ocp.model.signals["state"].items()]
    if _timed(law):
        rows.append(("time", 1, 1, "", "time"))
    for name, signal in _given(ocp).items():
        columns = ocp.intervals + 1 if signal.varying else 1
        own = [set(fixed) for fixed in law.parts.values()]
        if not all(name in fixed for fixed in own):
            kind = "reference" if signal.varying else "parameter"
            rows.append((name, signal.size, columns, signal.unit, kind))
    return _quantities(rows, "input")


def _timed(law: Law) -> bool:
    """Whether costs, rows or dynamics depend on the time at the start."""
    nlp, known = law.program.nlp, law.program.parameters
    rows = ca.Function("rows", [nlp["x"], nlp["p"]], [ca.vertcat(nlp["f"], nlp["g"])])
    used = {int(column) for column in np.unique(rows.jac_sparsity(0, 1).get_triplet()[1])}
    times = (known.get(f"{prefix}time") for prefix in law.parts)
    return any(time is not None and used.intersection(time.where.tolist()) for time in times)


def _given(ocp: Statement) -> dict[str, Signal]:
    """What a step is given by name; controls applied before the controller knows itself."""
    signals = {**ocp.model.signals["parameter"], **ocp.signals}
    unknown = {*ocp.freed, *ocp.lagged}
    return {name: signal for name, signal in signals.items() if name not in unknown}


def _from(
    law: Law, place: Mapping[str, Quantity], total: int, outputs: Sequence[Quantity]
) -> list[int]:
    """For each parameter of the program where it is from."""
    found = np.full(law.program.p.size, -1)
    controls = {quantity.name: quantity for quantity in outputs}
    for prefix, fixed in law.parts.items():

        def put(name: str, at: int, prefix: str = prefix) -> None:
            block = law.program.parameters.get(prefix + name)
            if block is not None:
                found[block.where] = at + np.arange(block.where.size)

        for name in law.ocp.fixed:
            put(f"initial {name}", place[name].at)
        for name in (*_given(law.ocp), "time"):
            if name in place and name not in fixed:
                put(name, place[name].at)
        for name, control in law.ocp.lagged.items():
            put(name, total + controls[control].at)
    return [int(source) for source in found]


def _quantities(rows: Sequence[tuple[str, int, int, str, str]], what: str) -> list[Quantity]:
    """The rows (name, rows, columns, unit, kind) with names of C and places.

    Raises:
        InputError: for two names that are one in C.
    """
    made: list[Quantity] = []
    for name, size, columns, unit, kind in rows:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        if not word or word[0].isdigit() or word in _KEYWORDS:
            word = f"{what}_{word}".rstrip("_")
        if same := [other.name for other in made if other.word == word]:
            raise InputError(f"{name!r} and {same[0]!r} are both {word!r} in C; rename one")
        at = made[-1].at + made[-1].count if made else 0
        made.append(Quantity(name, word, at, size, columns, unit, kind))
    return made


def _after(blocks: Mapping[str, Block], size: int) -> np.ndarray:
    table = np.arange(size)
    for block in blocks.values():
        table[block.where] = block.after
    if (table < np.arange(size)).any():
        raise AssertionError("a block moves forward, so that it cannot be shifted in place")
    return table


def _members(quantities: Sequence[Quantity]) -> str:
    return "\n".join(quantity.member for quantity in quantities)


def _enum(quantities: Sequence[Quantity], prefix: str) -> str:
    return ",\n".join(f"    {prefix}_{q.word.upper()} = {q.at}" for q in quantities)


def _table(values: Any) -> str:
    return braced(number(v) if isinstance(v, float) else str(int(v)) for v in values)
