"""Write the solver of a problem as C99: the core, the plan, the functions and an example."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import casadi_hybrid
from casadi_hybrid.core.binding.plan import options_of, plan_of
from casadi_hybrid.core.export.core import mark, portable_sources
from casadi_hybrid.core.export.functions import LOOPS, PARTS, STRAIGHT, generate
from casadi_hybrid.core.export.layout import layout
from casadi_hybrid.core.export.needs import refuse_foreign
from casadi_hybrid.core.export.tables import plan_text, structure
from casadi_hybrid.core.library import engine
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Vector

_TEMPLATES = Path(__file__).with_name("templates")
_PART = re.compile(r"^@if (\w+)@\n((?:(?!^@if ).)*?)^@end@\n", re.MULTILINE | re.DOTALL)
_FORMS = {
    PARTS: "in parts, what repeats is written once",
    LOOPS: "mapped stages are loops",
    STRAIGHT: "straight code",
}
_NAME = re.compile(r"(?!hybrid_)[A-Za-z](?:_?[A-Za-z0-9])*", re.IGNORECASE)
# Characters of a name that a compiler of C99 tells apart (ISO/IEC 9899:1999, 5.2.4.1).
LONGEST = 63
# Headers and keywords of C, files of an export, targets of CMake, and the library ``m``.
_TAKEN = """\
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg
stdbool stddef stdint stdio stdlib string tgmath time wchar wctype main replay hybrid auto case
char const default do double enum extern goto inline int long register restrict short signed
sizeof static struct switch typedef union unsigned void volatile all all_build clean edit_cache
help install m package package_source rebuild_cache run_tests test zero_check
"""
_MARK = """\
/* Version of the core: an export with another version does not link with it. */
extern const int {0};
const int {0} = 0;
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One solve: the multipliers of its start, and Python's answer."""

    lam_x0: Vector
    lam_g0: Vector
    answer: Any
    # True if the multipliers are those of a solution, even if all are zero.
    of_solution: bool = True

    def inputs(self) -> dict[str, Vector]:
        """Arguments of the solver in C, in the order in which ``replay.c`` reads them."""
        bounds = self.answer.bounds
        numbers = {"x0": self.answer.x0, "p": self.answer.p}
        numbers |= {"lbx": bounds.lbx, "ubx": bounds.ubx, "lbg": bounds.lbg, "ubg": bounds.ubg}
        numbers |= {"lam_x0": self.lam_x0, "lam_g0": self.lam_g0}
        return numbers | {"of_solution": np.array([float(self.of_solution)])}

    def outputs(self) -> dict[str, Vector]:
        """Expected answer, in the order in which ``replay.c`` writes it."""
        a = self.answer
        return {"f": np.array([a.f]), "x": a.x, "g": a.g, "lam_x": a.lam_x, "lam_g": a.lam_g}


@dataclass(frozen=True, slots=True)
class Export:
    """The files of an export, its sizes, and its solves in Python.

    Attributes:
        folder, name: folder of the files, and prefix of all names.
        files: names of the files, with the core's.
        memory, input, output: bytes of the structures ``NAME_memory``, ``NAME_in``, ``NAME_out``.
        tables: bytes of the constant tables of the plan.
        form: form of the functions, "parts", "loops" or "straight".
        cases: the solve from the stored start, then the solves of the loop.
        cold: the solve from the user's start; None if the warm mode alone is exported.
        controller: bytes of ``NAME_controller``, with the memory of all its solvers; 0 without one.
    """

    folder: Path
    name: str
    files: tuple[str, ...]
    memory: int
    input: int
    output: int
    tables: int
    form: str
    cases: tuple[Case, ...]
    cold: Case | None
    controller: int = 0

    @property
    def looped(self) -> bool:
        """True if the functions have loops over repeated parts."""
        return self.form != STRAIGHT

    @property
    def solves(self) -> tuple[Case, ...]:
        """All solves; the one from the user's start comes last."""
        return self.cases if self.cold is None else (*self.cases, self.cold)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        sizes = ("memory", "input", "output", "controller", "tables", "form", "looped")
        figures = {"folder": str(self.folder), "name": self.name, "files": list(self.files)}
        figures |= {size: getattr(self, size) for size in sizes}
        return figures | {"solves": len(self.cases), "cold": self.cold is not None}

    def __str__(self) -> str:
        lines = sum((self.folder / f).read_text("utf-8").count("\n") for f in self.files)
        controller = ""
        if self.controller:
            controller = f"\ncontroller          {self.controller} bytes, its solvers' memory in it"
        return (
            f"{self.name}: {len(self.files)} files, {lines} lines in {self.folder}\n"
            f"modes               {'warm and cold' if self.cold else 'the warm mode alone'}\n"
            f"functions           {_FORMS[self.form]}\n"
            f"memory of a solve   {self.memory} bytes\n"
            f"input, output       {self.input} and {self.output} bytes\n"
            f"tables of the plan  {self.tables} bytes{controller}"
        )


def check_name(name: str) -> str:
    """Return the name if it is valid for C and for files, else refuse it."""
    flaw = ""
    if len(name) > LONGEST:
        flaw = f"of {len(name)} characters, and C99 tells no more than {LONGEST} apart"
    elif not _NAME.fullmatch(name):
        flaw = "but has to be letters, digits and single _ between them, a letter first, no hybrid_"
    elif name.lower() in _TAKEN.split() or keyword.iskeyword(name):
        flaw = "which C, one of its libraries, CMake or the core has already"
    if flaw:
        raise InputError(
            f"name is {name!r}, {flaw}: names of C, files and a target of CMake have it. Give "
            "another, name=…, to the export or the problem, as OptimalControl(…, name=…)"
        )
    return name


def check_problem(problem: Problem) -> None:
    """Refuse a problem whose functions cannot be written, before a solve."""
    functions = problem.functions
    if functions.backend == "compiled":
        raise InputError("the problem's functions are compiled; export it made without compile")
    refuse_foreign((functions.first,))
    functions.with_hessian("curvature")  # refuses a problem that has none


def write(
    problem: Problem,
    limits: Limits,
    cases: Sequence[Case],
    folder: Path,
    name: str,
    loops: bool | None,
    cold: Case | None,
) -> Export:
    """Write all files into a folder, which is made if missing; files of the same names go."""
    # cases: the stored start with its answer, then others with the same kinds of bounds.
    # cold: the solve from the user's start; None writes the warm mode alone.
    library = engine()
    plan = plan_of(library, problem, cases[0].answer.bounds)
    generated = generate(problem.functions, name, loops)
    version = mark()
    core = {**portable_sources(), "mark.c": _MARK.format(version)}
    text, size = plan_text(plan, name)
    options = options_of(problem, limits) if cold else None
    words = layout(library, plan, generated, options, name)
    versions = {"VERSION": casadi_hybrid.__version__, "CASADI": ca.CasadiMeta.version()}
    words |= {"MARK": version, "tables": size, **versions}
    files = {f"core/{file}": content for file, content in core.items()}
    for template in sorted(_TEMPLATES.iterdir()):
        files[template.name.replace("NAME", name)] = filled(template.read_text("utf-8"), words)
    for part in ("control", "ahead", "softened", "search"):  # of an earlier export
        for path in folder.glob(f"{name}_{part}*.[ch]"):
            path.unlink()
    files[f"{name}_plan.c"] = text
    files[f"{name}_functions.c"] = generated.text
    files[f"{name}_stored.c"] = _stored(cases[0], limits, name, cold is not None)
    (folder / "core").mkdir(parents=True, exist_ok=True)
    _remove_other(folder / "core")
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8")
    sizes = words["memory"], words["input"], words["output"], size
    return Export(folder, name, tuple(sorted(files)), *sizes, generated.form, tuple(cases), cold)


def _remove_other(core: Path) -> None:
    """Remove the core of an earlier export: ``core/*.c`` would compile files of two versions."""
    if (core / "hybrid.h").exists():
        for file in (*core.glob("*.c"), *core.glob("*.h")):
            file.unlink()


def filled(template: str, words: Mapping[str, Any]) -> str:
    """Fill a template; a part between ``@if WORD@`` and ``@end@`` stays if the word is true."""
    replaced = 1
    while replaced:
        # Innermost parts first: the pattern has no @if inside, so nested ones take another round.
        template, replaced = _PART.subn(lambda m: m[2] if words[m[1]] else "", template)
    return re.sub(r"@(\w+)@", lambda m: str(words[m[1]]), template)


def _stored(case: Case, limits: Limits, name: str, cold: bool) -> str:
    """The file with the stored start and its answer."""
    tolerances, tol = limits.tolerances, limits.scaled_tol
    numbers: dict[str, Any] = {**case.inputs(), "tol": tol, "feasibility": tolerances.feasibility}
    numbers |= {"stationarity": tolerances.stationarity}
    numbers |= {"complementarity": tolerances.complementarity}
    numbers |= {"max_iter": int(limits.max_iter), "of_solution": 1}
    if cold:
        numbers |= {"max_time": limits.max_time, "now": 0}
    steps = case.answer.iterations
    answer = {**case.outputs(), "f": case.answer.f, "status": 0, "steps": steps}
    return (
        f"/* A start near a solution of {name}, and Python's answer from there, without residuals\n"
        " * and factorizations. */\n"
        f'#include <math.h>\n\n#include "{name}.h"\n\n'
        f"const {name}_in {name}_stored = {structure(numbers)};\n\n"
        f"const {name}_out {name}_expected = {structure(answer)};\n"
    )
