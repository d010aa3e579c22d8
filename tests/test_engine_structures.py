"""The structures that Python hands to the core, field by field as the headers in C have them.

Nothing else would say that one has a field more, or two in another order: C would read and write
beside them.
"""

import ctypes as ct
import re
from pathlib import Path
from typing import Any

import engine_runs
import pytest
from engine_cases import (
    Arena,
    FilterPairData,
    FormData,
    KktData,
    LowRankData,
    PointData,
    SpectrumData,
)

from casadi_hybrid.basics import matrices
from casadi_hybrid.engine import external, ldl, library, options, solve, structures

FOLDER = Path(library.__file__).parent
MIRRORS = {
    "hybrid_plan": structures.PlanData,
    "hybrid_secants": structures.SecantsData,
    "hybrid_functions": structures.FunctionsData,
    "hybrid_numbers": structures.NumbersData,
    "hybrid_residuals": structures.ResidualsData,
    "hybrid_answer": structures.AnswerData,
    "hybrid_buffer": structures.BufferData,
    "hybrid_buffers": structures.BuffersData,
    "hybrid_slope": structures.SlopeData,
    "hybrid_batch": structures.BatchData,
    "hybrid_observer": structures.ObserverData,
    "hybrid_view": solve._ViewData,
    "hybrid_run_options": options.RunData,
    "hybrid_options": options.OptionsData,
    "hybrid_progress": engine_runs.ProgressData,
    "hybrid_ray": engine_runs.RayData,
    "hybrid_iterate": engine_runs.IterateData,
    "hybrid_state": engine_runs.StateData,
    "hybrid_ldl": ldl.Analysis,
    "hybrid_fixed": ldl.FixedAnalysis,
    "hybrid_inertia": ldl.Found,
    "hybrid_adapter": external.AdapterData,
    "hybrid_shapes": external.ShapesData,
    "hybrid_matrix": matrices.MatrixData,
    "hybrid_arena": Arena,
    "hybrid_point": PointData,
    "hybrid_low_rank": LowRankData,
    "hybrid_form": FormData,
    "hybrid_kkt": KktData,
    "hybrid_filter_pair": FilterPairData,
    "hybrid_spectrum": SpectrumData,
}
POINTERS = ("hybrid_first", "hybrid_second")  # to functions
PLAIN = {ct.c_void_p: "pointer", ct.c_double: "double", ct.c_int: "int", ct.c_longlong: "long long"}


def in_header(name: str) -> list[tuple[str, str]]:
    """(field, kind) of a structure, in the order of the headers."""
    texts = [path.read_text() for path in sorted(FOLDER.rglob("*.h"))]
    text = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)
    (body,) = re.findall(r"typedef struct(?: \w+)? \{([^{}]*)\} " + name + ";", text)
    found = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        if known := re.search(r"\(\*(\w+)\)", declaration):
            found.append((known[1], "pointer"))
            continue
        words = re.fullmatch(r"(?:const )?(?:signed )?(long long|\w+) (.*)", declaration, re.DOTALL)
        for one in words[2].split(","):
            kind = "pointer" if "*" in one or words[1] in POINTERS else words[1]
            field = re.search(r"\w+", one)[0]
            found.append((field, "long long" if kind == "casadi_int" else kind))
    return found


def in_python(mirror: Any) -> list[tuple[str, str]]:
    """The same of its mirror."""
    names = {kind: name for name, kind in MIRRORS.items()} | PLAIN
    found = []
    for field, kind in mirror._fields_:
        element = kind
        while issubclass(element, ct.Array):
            element = element._type_
        found.append((field.rstrip("_"), names[element]))
    return found


@pytest.mark.parametrize("name", MIRRORS)
def test_a_structure_is_that_of_the_headers(name: str) -> None:
    assert in_python(MIRRORS[name]) == in_header(name)


def test_every_structure_is_looked_at() -> None:
    modules = (external, ldl, options, solve, structures)
    known = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, ct.Structure)
    }
    assert known <= {*MIRRORS.values()}
