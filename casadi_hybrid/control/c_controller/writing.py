"""Writes a controller in C around an exported solver: inputs and outputs have names and units."""

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
    """A control law to be written."""

    ocp: Statement
    program: Program  # of scenarios the nominal one, with the values of the export
    parts: Mapping[str, Any]  # parameters that each part fixes, by prefix
    limits: Limits
    default: Array
    words: str  # default controls in words
    tolerance: float  # largest violation of a plan that is used, in scaled units
    shifted: bool  # True if a step is an interval after the one before
    softened: Softened | None = None
    # (x, sent, p, t) → x after the delay in seconds, see Delay.by_intervals.
    ahead: ca.Function | None = None
    delay: float = 0.0
    deadline: float = np.inf  # seconds for a step, if there is a clock

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
    """Write the solver and its controller, with a loop of solves to compare; see MPC.export."""
    if loose := [name for name in law.ocp.model.signals["state"] if name not in law.ocp.fixed]:
        raise InputError(f"{law.ocp.name} leaves {', '.join(loose)} free at the start: initial(…)")
    if name is None:
        name = re.sub("[^A-Za-z0-9]+", "_", law.program.name).strip("_").lower()
    arguments = law.program.arguments
    export: Export = solver.export(folder, name, loop=loop, loops=loops, cold=cold, **arguments)
    softened, files, target = None, list(export.files), export.folder
    if law.softened is not None:
        softened, names = law.softened.write(target, name, loops=loops, cold=cold)
        files += names
    texts = {}
    for label, function in law.functions.items():
        word = f"{name}_{label}"
        texts[f"{word}.c"] = text_of_functions([named(function, word)], word)
    words = _words(law, export, softened)
    rows = _memory(law, export, softened, words)
    words["memory_table"] = listing([(label, str(size)) for label, size in rows])
    for template in ("NAME_control.h", "NAME_control.c", "cortex-m7.cmake"):
        texts[template.replace("NAME", name)] = _filled(template, words)
    for file, text in texts.items():
        (target / file).write_text(text, encoding="utf-8")
    readme = target / "README.md"
    # The template's two parts go before the solver's section and into its table of files.
    section, rest = _filled("README.md", words).split("## Files\n")
    page = readme.read_text("utf-8").replace("## The solver\n", f"{section}## The solver alone\n")
    page = page.replace("| `main.c` | an", f"{rest}| `main.c` | of the solver alone: an")
    readme.write_text(page, encoding="utf-8")
    return replace(export, files=tuple(sorted([*files, *texts])), controller=rows[-1][1])


def _filled(template: str, words: Mapping[str, Any]) -> str:
    return filled((_TEMPLATES / template).read_text("utf-8"), words)


def _words(law: Law, export: Export, softened: Export | None) -> dict[str, Any]:
    """Return the words of the templates."""
    ocp, program, upper = law.ocp, law.program, export.name.upper()
    states, controls = ocp.model.signals["state"], ocp.model.signals["control"]
    inputs = _inputs(law)
    rows = [(name, s.size, s.unit, "control") for name, s in controls.items()]
    outputs = quantities(rows, "control")
    limits = LimitsInC(law.limits)
    input_of = {quantity.name: quantity for quantity in inputs}
    N = ocp.intervals if law.shifted else 1
    first = next(iter(law.parts))
    blocks = [program.variables[first + name] for name in controls]
    # A linear control has a column more, which the plan does not need.
    by_interval = [block.where.reshape(block.shape, order="F")[:, :N] for block in blocks]
    trajectories = program.variables.values()
    rows = [(name, block.where.size, "", "") for name, block in program.variables.items()]
    readable = quantities(rows, "variable")
    values = np.zeros(total(inputs))
    sources = _sources(law, input_of, values.size, outputs)
    is_input = (sources >= 0) & (sources < values.size)
    # Inputs begin at the values of the export, so that C without input repeats that solve.
    values[sources[is_input]] = program.p[is_input]
    after = program.after
    if not law.shifted:
        after = {"x": np.arange(program.n), "g": np.arange(program.m)}
    period = "The duration is free and no period follows from it: call a step whenever you measure"
    if ocp.free_duration is None:
        length = ocp.length * float(ocp.fractions[1])
        period = f"Call a step once an interval, every {length:g} of the model's time"
    relaxed = law.softened.words(export.name, program) if law.softened else {}
    # For each unknown that a measured state sets, the violation of the limits of this state.
    violation = {label: k for k, label in enumerate(relaxed.get("violated_names", ()))}
    starts = [
        (program.variables[part + name], input_of[name]) for part in law.parts for name in states
    ]
    violated = [violation.get(q.name, -1) for _, q in starts for _ in range(q.count)]
    stop_words = f", `{export.name}_stop_word(controller.out.stop)` why" if export.cold else ""
    tables: dict[str, Any] = {
        "from": sources if sources.size else [-1],
        "start_x": np.concatenate([block.where[: q.count] for block, q in starts]),
        "start_of": np.concatenate([q.at + np.arange(q.count) for _, q in starts]),
        "start_scale": np.concatenate([block.scale[:, 0] for block, _ in starts]),
        "start_violated": violated,
        "control_x": np.vstack(by_interval).ravel(order="F"),
        "control_scale": np.concatenate([block.scale[:, 0] for block in blocks]),
        "control_lower": limits.of_controls(controls, "lower"),
        "control_upper": limits.of_controls(controls, "upper"),
        "default": law.default,
        "applied": first_guess(ocp.model, "control"),
        "after_x": after["x"],
        "after_g": after["g"],
        "read_begin": np.cumsum([0, *(quantity.count for quantity in readable)]),
        "read_x": np.concatenate([block.where for block in trajectories]),
        "read_scale": np.concatenate([block.scale.ravel(order="F") for block in trajectories]),
    }
    words: dict[str, Any] = {
        "NAME": export.name,
        "UPPER": upper,
        "softened": softened is not None,
        "first_violated": "",
        "hard": softened is None,
        "warm_only": export.cold is None,
        "clock": export.cold is not None,
        "stop_said": stop_words,
        "max_time": number(law.deadline),
        "delay": law.ahead is not None,
        "delay_seconds": repr(law.delay),
        "sent": law.ahead.size2_in(1) if law.ahead else 0,
        "follows": program.following is not None,
        "followed": program.following.function.numel_out(0) if program.following else 0,
        "state_count": ocp.model.size("state"),
        "starts": len(violated),
        "timed": "time" in input_of,
        "time_at": input_of["time"].at if "time" in input_of else -1,
        "time_from": f"v[{input_of['time'].at}]" if "time" in input_of else "0.0",
        "period": period,
        "input_fields": members(inputs),
        "input_places": enumeration(inputs, f"{upper}_IN"),
        "inputs": values.size,
        "output_fields": members(outputs),
        "output_places": enumeration(outputs, f"{upper}_OUT"),
        "outputs": total(outputs),
        "trajectories": ",\n".join(f"    {upper}_READ_{q.word.upper()}" for q in readable),
        "lengths": "\n".join(
            f"#define {upper}_LENGTH_{q.word.upper()} {q.count}" for q in readable
        ),
        "plan_places": N * total(outputs),
        "intervals": N,
        "read_places": program.n,
        "default_words": comment(law.words),
        "written": structure(by_word(inputs, values)),
        "tolerance": number(law.tolerance),
        "first_input": inputs[0].word,
        "first_unit": inputs[0].unit or "its unit",
        "first_output": outputs[0].word,
        "first_output_unit": outputs[0].unit or "its unit",
        "first_limit": limits.members[0].word if limits.members else "",
    }
    structures = {"inputs": inputs, "outputs": outputs, "controller.limits": limits.members}
    words["table"] = listing(
        [
            (q.kind, f"`{name}.{q.word}` | {q.count} | {q.unit or '-'} | {q.name}")
            for name, structure_members in structures.items()
            for q in structure_members
        ]
    )
    words |= {label: table(entries) for label, entries in tables.items()}
    words |= limits.words(upper, program, law.softened.program if law.softened else None) | relaxed
    for label, function in law.functions.items():  # sizes of its work arrays
        for kind in ("arg", "res", "iw", "w"):
            words[f"{label}_{kind}"] = max(1, getattr(function, f"sz_{kind}")())
    return words


def _memory(
    law: Law, export: Export, softened: Export | None, words: Mapping[str, Any]
) -> list[tuple[str, int]]:
    """Return the memory of a controller on this machine in bytes, part by part."""
    doubles = words["plan_places"] + words["outputs"] + words["limit_count"] + 1
    memories, integers = [export.memory], 2
    rows = [("input and output of the solver", export.input + export.output)]
    if softened is not None:
        memories.append(softened.memory)
        rows.append(("of the softened one", softened.input + softened.output))
        doubles += words["violations"] + 1
        integers += 3
    if law.ahead is not None:
        places = sum(words[f"ahead_{kind}"] for kind in ("arg", "res", "w"))
        memories.append(8 * (places + (words["ahead_iw"] + 1) // 2))
        doubles += words["sent"] * words["outputs"]
    # Solves come one after the other, in a union of their memories.
    rows.insert(0, ("memory of a solve", max(memories)))
    # Integers have four bytes; their sum is rounded up to eight.
    rows.append(("plan, limits, controls", 8 * (doubles + 1) + 8 * ((integers + 1) // 2)))
    rows.append((f"`sizeof({export.name}_controller)`", sum(size for _, size in rows)))
    return rows


def _inputs(law: Law) -> list[Quantity]:
    """Return the measured state, time if the problem depends on it, parameters and references."""
    ocp = law.ocp
    rows = [(name, s.size, s.unit, "state") for name, s in ocp.model.signals["state"].items()]
    rows += [("time", 1, "", "time")] * _timed(law)
    for name, signal in _given(ocp).items():
        if all(name in fixed for fixed in law.parts.values()):
            continue
        columns, kind = (ocp.intervals + 1, "reference") if signal.varying else (1, "parameter")
        rows.append((name, signal.size * columns, signal.unit, kind))
    return quantities(rows, "input")


def _timed(law: Law) -> bool:
    """Return true if costs, rows or dynamics depend on the time at the start."""
    nlp, parameters = law.program.nlp, law.program.parameters
    rows = ca.Function("rows", [nlp["x"], nlp["p"]], [ca.vertcat(nlp["f"], nlp["g"])])
    # Columns of the Jacobian's pattern that have an entry, without values.
    used = {int(column) for column in np.unique(rows.jac_sparsity(0, 1).get_triplet()[1])}
    times = (parameters.get(f"{prefix}time") for prefix in law.parts)
    return any(time is not None and used.intersection(time.where.tolist()) for time in times)


def _given(ocp: Statement) -> dict[str, Signal]:
    """Return the parameters of a step by name; the controller knows the controls before."""
    unknown = {*ocp.freed, *ocp.lagged}
    return {name: signal for name, signal in ocp.given.items() if name not in unknown}


def _sources(
    law: Law, input_of: Mapping[str, Quantity], count: int, outputs: Sequence[Quantity]
) -> Any:
    """Return the place of each parameter of the program among inputs, then outputs; or -1."""
    sources = np.full(law.program.p.size, -1)
    output_at = {quantity.name: count + quantity.at for quantity in outputs}
    in_all = {name: output_at[control] for name, control in law.ocp.lagged.items()}
    in_all |= {f"initial {name}": input_of[name].at for name in law.ocp.fixed}
    for prefix, fixed in law.parts.items():
        names = [n for n in (*_given(law.ocp), "time") if n in input_of and n not in fixed]
        for name, begin in {**{n: input_of[n].at for n in names}, **in_all}.items():
            if (block := law.program.parameters.get(prefix + name)) is not None:
                sources[block.where] = begin + np.arange(block.where.size)
    return sources
