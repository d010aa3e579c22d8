"""Write the solver of a problem as C99: the core, the plan, the functions and an example."""

from __future__ import annotations

import ctypes as ct
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import casadi_hybrid
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.export.core import core_of, statuses
from casadi_hybrid.engine.export.functions import QUIETED, Generated, generate
from casadi_hybrid.engine.export.tables import PlanText, listing, structure
from casadi_hybrid.engine.library import engine, engine_status
from casadi_hybrid.engine.plan import ABSENT, EQUAL, OPEN, Plan, plan_of
from casadi_hybrid.engine.structures import PlanData
from casadi_hybrid.engine.warm import WORDS
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.stopping import Limits

CLOSE = 1e-9
"""How near the example has to come to Python's answer, for another C library's sin and exp."""
_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TAKEN = frozenset((
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits"),
    *("locale", "math", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio"),
    *("stdlib", "string", "tgmath", "time", "wchar", "wctype", "main", "replay", "hybrid", "auto"),
    *("case", "char", "const", "default", "do", "double", "enum", "extern", "goto", "inline"),
    *("int", "long", "register", "restrict", "short", "sizeof", "static", "struct", "switch"),
    *("typedef", "union", "unsigned", "void", "volatile", "constants", "internal", "ldl"),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One solve: the start's multipliers, and the answer of Python, which knows the rest."""

    lam_x0: Vector
    lam_g0: Vector
    answer: Any

    def inputs(self) -> dict[str, Vector]:
        """What the solver in C is handed, in the order in which ``replay.c`` reads it."""
        answer, bounds = self.answer, self.answer.bounds
        return {
            "x0": answer.x0, "p": answer.p, "lbx": bounds.lbx, "ubx": bounds.ubx,
            "lbg": bounds.lbg, "ubg": bounds.ubg, "lam_x0": self.lam_x0, "lam_g0": self.lam_g0,
        }  # fmt: skip

    def outputs(self) -> dict[str, Vector]:
        """What it should answer, in the order in which ``replay.c`` writes it."""
        a = self.answer
        return {"f": np.array([a.f]), "x": a.x, "g": a.g, "lam_x": a.lam_x, "lam_g": a.lam_g}


@dataclass(frozen=True, slots=True)
class Export:
    """What was written.

    Attributes:
        folder, name: where, and what names begin with.
        files: the files' names, those of the core too.
        memory, input, output: bytes of the structures ``NAME_memory``, ``NAME_in``, ``NAME_out``.
        tables: bytes of the constant tables of the plan.
        looped: whether mapped stages are loops in the functions.
        cases: the stored start first, then the solves of the loop.
    """

    folder: Path
    name: str
    files: tuple[str, ...]
    memory: int
    input: int
    output: int
    tables: int
    looped: bool
    cases: tuple[Case, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "folder": str(self.folder), "name": self.name, "files": list(self.files),
            "memory": self.memory, "input": self.input, "output": self.output,
            "tables": self.tables, "looped": self.looped, "solves": len(self.cases),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = sum(
            (self.folder / file).read_text(encoding="utf-8").count("\n") for file in self.files
        )
        shape = "mapped stages are loops" if self.looped else "straight code"
        return (
            f"{self.name}: {len(self.files)} files, {lines} lines in {self.folder}\n"
            f"functions           {shape}\n"
            f"memory of a solve   {self.memory} bytes\n"
            f"input, output       {self.input} and {self.output} bytes\n"
            f"tables of the plan  {self.tables} bytes"
        )


def check_name(name: str) -> str:
    """The name, where it can be one of C and of files.

    Raises:
        InputError: where it cannot.
    """
    if not _NAME.fullmatch(name) or name.lower() in _TAKEN or keyword.iskeyword(name):
        raise InputError(
            f"name is {name!r}; it begins names of C and of files: letters, digits and _, a "
            "letter first, no word of C or of its library"
        )
    return name


def write(
    problem: Problem,
    limits: Limits,
    cases: Sequence[Case],
    folder: Path,
    name: str,
    loops: bool | None,
) -> Export:
    """Write everything into a folder, which is made where it is missing.

    Args:
        problem: with second derivatives.
        limits: the tolerances of the stored start.
        cases: the stored start with its answer, then others of the same kinds of bounds.
        folder: where. Files of the same names are replaced.
        name: what names begin with, see :func:`check_name`.
        loops: whether mapped stages stay loops in the functions; None: where straight code is
            long.

    Raises:
        InputError: where there is no engine in C to analyse the problem, or a function cannot be
            written.
        OSError: where the folder cannot be written to.
    """
    library = engine()
    if library is None:
        raise InputError(
            "an export needs the engine in C, which analyses the problem, and that cannot be "
            f"had: {engine_status().reason}"
        )
    functions = problem.functions
    if functions.backend == "compiled":
        raise InputError("the problem's functions are compiled; export it made without compile")
    functions.with_hessian("curvature")  # refuses a problem that has none
    stored = cases[0].answer

    plan = plan_of(library, problem, stored.bounds)
    generated = generate(functions, name, loops)
    core = core_of("hybrid_warm")
    text = PlanText(plan, name)
    memory = _memory(plan, generated)
    sizes = _sizes(plan.data)
    words = _words(plan, generated, memory, text, sizes, core, name)
    words["VERSION"], words["CASADI"] = casadi_hybrid.__version__, ca.CasadiMeta.version()
    files = {f"core/{file}": content for file, content in core.items()}
    for template in sorted(_TEMPLATES.iterdir()):
        files[template.name.replace("NAME", name)] = _filled(template.read_text("utf-8"), words)
    files[f"{name}_plan.c"] = text.text
    files[f"{name}_functions.c"] = generated.text
    files[f"{name}_stored.c"] = _stored(cases[0], limits, name)
    (folder / "core").mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8")
    return Export(
        folder, name, tuple(sorted(files)), ct.sizeof(memory), sizes["input"], sizes["output"],
        text.size, generated.looped, tuple(cases),
    )  # fmt: skip


def _filled(template: str, words: Mapping[str, Any]) -> str:
    return re.sub(r"@(\w+)@", lambda found: str(words[found[1]]), template)


def _memory(plan: Plan, generated: Generated) -> Any:
    """``NAME_memory`` as C lays it out on this machine."""
    n, J = plan.data.n_x, max(1, plan.data.nnz_J)

    class Memory(ct.Structure):
        _fields_ = (
            ("numbers", ct.c_double * max(1, plan.doubles)),
            ("integers", ct.c_int * max(1, plan.ints)),
            *((word, ct.c_double * n) for word in ("gradient", "gradient0")),
            *((word, ct.c_double * J) for word in ("J", "J0")),
            ("w", ct.c_double * generated.w),
            ("iw", ct.c_int * generated.iw),
            ("arg", ct.c_void_p * generated.arg),
            ("res", ct.c_void_p * generated.res),
        )

    return Memory


def _sizes(data: PlanData) -> dict[str, int]:
    """Bytes of input and output: numbers of eight bytes, and whole numbers, rounded up to eight."""
    n, m, p = data.n_x, max(1, data.n_g), max(1, data.n_p)
    return {"input": 8 * (4 * n + p + 3 * m + 4) + 8, "output": 8 * (2 * n + 2 * m + 4) + 16}


def _words(
    plan: Plan,
    generated: Generated,
    memory: Any,
    text: PlanText,
    sizes: Mapping[str, int],
    core: Mapping[str, str],
    name: str,
) -> dict[str, Any]:
    data, upper = plan.data, name.upper()
    # Those after are of the cold mode, which is not written out.
    known = {word: number for word, number in statuses(core).items() if number < len(WORDS)}
    rows = [f"    {upper}_{word} = {number}" for word, number in known.items()]
    cases = [f'    case {number}: return "{WORDS[number]}";' for number in known.values()]
    table = [(f"`{upper}_{word}` {number}", WORDS[number]) for word, number in known.items()]
    g_at = 1 + data.nnz_gradient
    return {
        "NAME": name, "UPPER": upper, "n_x": data.n_x, "n_g": data.n_g, "n_p": data.n_p,
        "places_g": max(1, data.n_g), "places_p": max(1, data.n_p),
        "numbers": max(1, plan.doubles), "integers": max(1, plan.ints),
        "entries_J": max(1, data.nnz_J),
        "size_arg": generated.arg, "size_res": generated.res, "size_iw": generated.iw,
        "size_w": generated.w, "statuses": ",\n".join(rows), "words": "\n".join(cases),
        "status_table": listing(table), "g_at": g_at, "J_at": g_at + data.nnz_g,
        "core_list": "\n".join(f"    core/{file}" for file in core if file.endswith(".c")),
        "closeness": CLOSE, "kinds": _kinds(data), "memory": ct.sizeof(memory),
        "pointer": ct.sizeof(ct.c_void_p), "tables": text.size, **sizes,
        "shape": "; mapped stages are loops" if generated.looped else "",
        "pragmas": ", ".join(f"`-W{word}`" for word in QUIETED),
    }  # fmt: skip


def _kinds(data: PlanData) -> str:
    """The kinds of the bounds in words."""
    fixed = _bytes(data.kind_x, data.n_x).count(EQUAL)
    rows = _bytes(data.kind_g, data.n_g)
    return (
        f"{data.n_x - fixed} free variables and {fixed} fixed ones, {rows.count(EQUAL)} equations, "
        f"{rows.count(OPEN)} inequalities and {rows.count(ABSENT)} rows without a bound"
    )


def _bytes(address: int, count: int) -> bytes:
    return ct.string_at(address, count) if count else b""


def _stored(case: Case, limits: Limits, name: str) -> str:
    """The file with the stored start and the answer from there."""
    tolerances, inputs, outputs = limits.tolerances, case.inputs(), case.outputs()
    numbers: dict[str, float | Vector] = {
        **inputs, "tol": limits.scaled_tol, "feasibility": tolerances.feasibility,
        "stationarity": tolerances.stationarity, "complementarity": tolerances.complementarity,
        "max_iter": int(limits.max_iter), "of_solution": 1,
    }  # fmt: skip
    answer: dict[str, float | Vector] = {
        **outputs, "f": case.answer.f, "status": 0, "steps": case.answer.iterations,
    }  # fmt: skip
    return (
        f"/* A start beside a solution of {name}, and what Python answered from there: of the\n"
        " * residuals and factorizations it says nothing. */\n"
        f'#include <math.h>\n\n#include "{name}.h"\n\n'
        f"const {name}_in {name}_stored = {structure(numbers)};\n\n"
        f"const {name}_out {name}_expected = {structure(answer)};\n"
    )
