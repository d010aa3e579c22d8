"""Writes a controller around an exported solver: what goes in and comes out has names and units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.c_controller.names import (
    LimitsInC,
    Quantity,
    Softened,
    by_word,
    enumeration,
    members,
    quantities,
    table,
    total,
)
from casadi_hybrid.control.model.plant import first_guess
from casadi_hybrid.control.model.signals import Array, Signal
from casadi_hybrid.control.transcription.limits import Limits
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.core.export.export import Export, filled
from casadi_hybrid.core.export.functions import named, text_of_functions
from casadi_hybrid.core.export.tables import comment, listing, number, structure
from casadi_hybrid.utils.errors import InputError

_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Law:
    """A control law to be written.

    Attributes:
        ocp, program: the problem, of scenarios the one in common, with the numbers of the export.
        parts: by the prefix of each part of the program the parameters that are its own.
        limits: by name.
        default, words: the controls where there is no plan, and the same in words.
        tolerance: the largest violation of a plan that is used, in scaled units.
        shifted: whether a step is an interval after the one before.
        softened: the softened problem, where there is one.
        ahead, delay: (x, sent, p, t) → x so many seconds later; see :meth:`Delay.by_intervals`.
        deadline: seconds for a step, where there is a clock.
    """

    ocp: Statement
    program: Program
    parts: Mapping[str, Any]
    limits: Limits
    default: Array
    words: str
    tolerance: float
    shifted: bool
    softened: Softened | None = None
    ahead: ca.Function | None = None
    delay: float = 0.0
    deadline: float = np.inf

    @property
    def first(self) -> str:
        """The prefix of the part that counts where one does."""
        return next(iter(self.parts))

    @property
    def functions(self) -> dict[str, ca.Function]:
        """Functions written beside the solvers, by the word of the templates."""
        follow = self.program.following and self.program.following.function
        return {label: f for label, f in (("ahead", self.ahead), ("follow", follow)) if f}


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
    """Write the solver and its controller; see :meth:`MPC.export`.

    ``loop`` are solves to compare and to count by.
    """
    if loose := [name for name in law.ocp.model.signals["state"] if name not in law.ocp.fixed]:
        raise InputError(f"{law.ocp.name} leaves {', '.join(loose)} free at the start: initial(…)")
    if name is None:
        name = re.sub("[^A-Za-z0-9]+", "_", law.program.name).strip("_").lower()
    written: Export = solver.export(
        folder, name, loop=loop, loops=loops, cold=cold, **law.program.arguments
    )
    relaxed, files, at = None, list(written.files), written.folder
    if law.softened is not None:
        relaxed, more = law.softened.write(at, name, loops=loops, cold=cold)
        files += more
    for label, function in law.functions.items():
        files.append(f"{name}_{label}.c")
        text = text_of_functions([named(function, f"{name}_{label}")], f"{name}_{label}")
        (at / files[-1]).write_text(text, encoding="utf-8")
    words = _words(law, written, relaxed)
    rows = _memory(law, written, relaxed, words)
    words["memory_table"] = listing([(what, str(size)) for what, size in rows])
    for template in ("NAME_control.h", "NAME_control.c", "cortex-m7.cmake"):
        files.append(template.replace("NAME", name))
        text = filled((_TEMPLATES / template).read_text("utf-8"), words)
        (at / files[-1]).write_text(text, encoding="utf-8")
    readme = at / "README.md"
    section, rest = filled((_TEMPLATES / "README.md").read_text("utf-8"), words).split("## Files\n")
    page = readme.read_text("utf-8").replace("## The solver\n", f"{section}## The solver alone\n")
    page = page.replace("| `main.c` | an", f"{rest}| `main.c` | of the solver alone: an")
    readme.write_text(page, encoding="utf-8")
    return replace(written, files=tuple(sorted(files)), controller=rows[-1][1])


def _words(law: Law, written: Export, relaxed: Export | None) -> dict[str, Any]:
    """Words of the templates."""
    ocp, program, upper = law.ocp, law.program, written.name.upper()
    controls = ocp.model.signals["control"]
    inputs = _inputs(law)
    outputs = quantities(
        [(name, s.size, s.unit, "control") for name, s in controls.items()], "control"
    )
    limits = LimitsInC(law.limits)
    place = {quantity.name: quantity for quantity in inputs}
    many = total(outputs)
    N = ocp.intervals if law.shifted else 1
    begun = [(program.variables[prefix + name], place[name])
             for prefix in law.parts for name in ocp.model.signals["state"]]  # fmt: skip
    blocks = [program.variables[law.first + name] for name in controls]
    by_interval = [block.where.reshape(block.shape, order="F")[:, :N] for block in blocks]
    shown = list(program.variables.items())
    readable = quantities([(name, b.where.size, "", "") for name, b in shown], "variable")
    values = np.zeros(total(inputs))
    places = _from(law, place, values.size, outputs)
    known = (places >= 0) & (places < values.size)
    values[places[known]] = program.p[known]
    later = program.after
    if not law.shifted:
        later = {"x": np.arange(program.n), "g": np.arange(program.m)}
    soft_words = law.softened.words(written.name, program) if law.softened else {}
    # For each unknown that a measured state begins which violation is that of its limits.
    violation = {label: k for k, label in enumerate(soft_words.get("violated_names", ()))}
    exceeded = [violation.get(q.name, -1) for _, q in begun for _ in range(q.count)]
    words: dict[str, Any] = {
        "NAME": written.name, "UPPER": upper, "softened": relaxed is not None,
        "first_violated": "", "hard": relaxed is None, "warm_only": written.cold is None,
        "delay": law.ahead is not None, "delay_seconds": repr(law.delay),
        "sent": law.ahead.size2_in(1) if law.ahead else 0, "follows": program.following is not None,
        "followed": program.following.function.numel_out(0) if program.following else 0,
        "state_count": ocp.model.size("state"), "starts": len(exceeded),
        "time_from": f"v[{place['time'].at}]" if "time" in place else "0.0",
        "period": (
            f"Call a step once an interval, every {ocp.length * float(ocp.fractions[1]):g} of the "
            "model's time" if ocp.free_duration is None else
            "The duration is free and no period follows from it: call a step whenever you measure"
        ),
        "input_fields": members(inputs), "input_places": enumeration(inputs, f"{upper}_IN"),
        "inputs": values.size, "output_fields": members(outputs),
        "output_places": enumeration(outputs, f"{upper}_OUT"), "outputs": many,
        "trajectories": ",\n".join(f"    {upper}_READ_{q.word.upper()}" for q in readable),
        "lengths": "\n".join(
            f"#define {upper}_LENGTH_{q.word.upper()} {q.count}" for q in readable
        ),
        "plan_places": N * many, "intervals": N,
        "clock": written.cold is not None, "default_words": comment(law.words),
        "stop_said": (
            f", `{written.name}_stop_word(controller.out.stop)` why" if written.cold else ""
        ),
        "max_time": number(law.deadline), "timed": "time" in place,
        "time_at": place["time"].at if "time" in place else -1,
        "from": table(places if places.size else [-1]),
        "start_x": table(np.concatenate([b.where[: q.count] for b, q in begun])),
        "start_of": table(np.concatenate([q.at + np.arange(q.count) for _, q in begun])),
        "start_scale": table(np.concatenate([b.scale[:, 0] for b, _ in begun])),
        "start_violated": table(exceeded),
        "control_x": table(np.vstack(by_interval).ravel(order="F")),
        "control_scale": table(np.concatenate([block.scale[:, 0] for block in blocks])),
        **{f"control_{side}": table(limits.of_controls(controls, side))
           for side in ("lower", "upper")},
        "default": table(law.default), "after_x": table(later["x"]),
        "after_g": table(later["g"]),
        "read_begin": table(np.cumsum([0, *(q.count for q in readable)])),
        "read_places": program.n, "read_x": table(np.concatenate([b.where for _, b in shown])),
        "read_scale": table(np.concatenate([b.scale.ravel(order="F") for _, b in shown])),
        "written": structure(by_word(inputs, values)), "tolerance": number(law.tolerance),
        "applied": table(first_guess(ocp.model, "control")),
        "first_input": inputs[0].word, "first_unit": inputs[0].unit or "its unit",
        "first_output": outputs[0].word, "first_output_unit": outputs[0].unit or "its unit",
        "table": listing([
            (q.kind, f"`{where}.{q.word}` | {q.count} | {q.unit or '-'} | {q.name}")
            for where, of in (("inputs", inputs), ("outputs", outputs),
                              ("controller.limits", limits.members))
            for q in of
        ]),
    }  # fmt: skip
    own = law.softened.program if law.softened else None
    words |= limits.words(written.name, program, own) | soft_words
    for label, f in law.functions.items():  # with the places that it works in
        words |= {f"{label}_{kind}": max(1, getattr(f, f"sz_{kind}")())
                  for kind in ("arg", "res", "iw", "w")}  # fmt: skip
    words["first_limit"] = limits.members[0].word if limits.members else ""
    return words


def _memory(
    law: Law, written: Export, relaxed: Export | None, words: Mapping[str, Any]
) -> list[tuple[str, int]]:
    """Memory of a controller on this machine: doubles, and integers rounded up to eight bytes."""
    numbers = words["plan_places"] + words["outputs"] + words["limit_count"] + 1
    memories, integers = [written.memory], 2
    rows = [("input and output of the solver", written.input + written.output)]
    if relaxed is not None:
        memories.append(relaxed.memory)
        rows.append(("of the softened one", relaxed.input + relaxed.output))
        numbers += words["violations"] + 1
        integers += 3
    if law.ahead is not None:
        places = sum(words[f"ahead_{kind}"] for kind in ("arg", "res", "w"))
        memories.append(8 * (places + (words["ahead_iw"] + 1) // 2))
        numbers += words["sent"] * words["outputs"]
    rows.insert(0, ("memory of a solve", max(memories)))
    rows.append(("plan, limits, controls", 8 * (numbers + 1) + 8 * ((integers + 1) // 2)))
    rows.append((f"`sizeof({written.name}_controller)`", sum(size for _, size in rows)))
    return rows


def _inputs(law: Law) -> list[Quantity]:
    """The measured state, time where the problem depends on it, parameters and references."""
    ocp = law.ocp
    rows = [(name, s.size, s.unit, "state") for name, s in ocp.model.signals["state"].items()]
    rows += [("time", 1, "", "time")] * _timed(law)
    for name, signal in _given(ocp).items():
        columns = ocp.intervals + 1 if signal.varying else 1
        own = [set(fixed) for fixed in law.parts.values()]
        if not all(name in fixed for fixed in own):
            kind = "reference" if signal.varying else "parameter"
            rows.append((name, signal.size * columns, signal.unit, kind))
    return quantities(rows, "input")


def _timed(law: Law) -> bool:
    """Return if costs, rows or dynamics depend on the time at the start."""
    nlp, known = law.program.nlp, law.program.parameters
    rows = ca.Function("rows", [nlp["x"], nlp["p"]], [ca.vertcat(nlp["f"], nlp["g"])])
    used = {int(column) for column in np.unique(rows.jac_sparsity(0, 1).get_triplet()[1])}
    times = (known.get(f"{prefix}time") for prefix in law.parts)
    return any(time is not None and used.intersection(time.where.tolist()) for time in times)


def _given(ocp: Statement) -> dict[str, Signal]:
    """Inputs of a step by name, without the controls applied before, which the controller knows."""
    unknown = {*ocp.freed, *ocp.lagged}
    return {name: signal for name, signal in ocp.given.items() if name not in unknown}


def _from(law: Law, place: Mapping[str, Quantity], total: int, outputs: Sequence[Quantity]) -> Any:
    """For each parameter of the program where it is from."""
    found = np.full(law.program.p.size, -1)
    controls = {quantity.name: total + quantity.at for quantity in outputs}
    at = {name: place[name].at for name in (*_given(law.ocp), "time") if name in place}
    applied = {name: controls[control] for name, control in law.ocp.lagged.items()}
    applied |= {f"initial {name}": place[name].at for name in law.ocp.fixed}
    for prefix, fixed in law.parts.items():
        own = {name: begin for name, begin in at.items() if name not in fixed}
        for name, begin in {**own, **applied}.items():
            if (block := law.program.parameters.get(prefix + name)) is not None:
                found[block.where] = begin + np.arange(block.where.size)
    return found
