"""Solvers as functions that CasADi calls, arguments read in place, structures as laid out."""

import ctypes as ct
import gc
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.cases.core import bits, core, warm

from casadi_hybrid import nlpsol
from casadi_hybrid.core import library
from casadi_hybrid.core.binding import core as engine_core
from casadi_hybrid.core.evaluation.library import BLOCKS
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C, Headers
from casadi_hybrid.problem.building.build import Sources, load
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils import casadi_internals
from casadi_hybrid.utils.core_constants import CORE

FOLDER = Path(library.__file__).parent


def solver_of(a: float) -> NlpSolver:
    """The nearest point to (a, 2a) on the disc of radius 1."""
    x = ca.MX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - ca.vertcat(a, 2 * a)), "g": ca.sumsqr(x)}
    return nlpsol("solver", "hybrid", nlp)


def answer(solver: NlpSolver) -> dict[str, bytes]:
    return bits(solver(x0=0.1, ubg=1))


def test_many_solvers_keep_their_data() -> None:
    numbers = np.linspace(-2, 2, 80)
    alone = [answer(solver_of(a)) for a in numbers]
    solvers = [solver_of(a) for a in numbers]
    assert [answer(solver) for solver in solvers] == alone
    assert [answer(solver) for solver in reversed(solvers)] == alone[::-1]
    del solvers[::2]
    gc.collect()
    again = [solver_of(a) for a in numbers[::2]]
    assert [answer(solver) for solver in again] == alone[::2]
    assert [answer(solver) for solver in solvers] == alone[1::2]


def test_adapter_is_clean_c99() -> None:
    folder = FOLDER / "binding" / "adapter"
    files = {path.name: path.read_text("utf-8") for path in folder.glob("[ag]*.[ch]")}
    headers = {name: text for name, text in core_sources().items() if name.endswith(".h")}
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes")
    loaded = load(Sources("hybrid_adapter", {**files, **headers}, strict))
    assert loaded.hybrid_ready_n_in() == 1
    assert loaded.hybrid_in_graph_n_in() == 9


# --- arguments of a warm solve --------------------------------------------------------------------

x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 3)
NLP = {"x": x, "p": p, "f": ca.sumsqr(x - p) + ca.exp(x[0]), "g": ca.sum1(x)}
P = [0.5, 0.0, -1.0]


def solved(value: object) -> dict[str, bytes]:
    """A warm solve with this p."""
    solver = nlpsol("s", "hybrid", NLP)
    bounds = {"lbg": ca.DM(0), "ubg": ca.DM(1), "lbx": ca.DM([-1, -1, -1]), "ubx": 2.0}
    first = solver(p=P, x0=[0.1, 0.1, 0.1], **bounds)
    outputs = solver(p=value, **warm(first), **bounds)
    assert solver.stats()["success"]
    return bits(outputs)


@pytest.mark.parametrize(
    "value",
    [
        ca.vertcat(ca.DM(P[:2]), ca.DM(P[2:])),
        ca.DM([9.0, *P, 9.0])[1:4],
        ca.DM(np.array([P]).T),
        ca.DM(P).T,
        ca.sparsify(ca.DM(P)),
        P,
        np.array(P),
    ],
)
def test_shape_of_arguments_changes_no_bit(value: object) -> None:
    assert solved(value) == solved(ca.DM(P))


@pytest.mark.parametrize(("name", "absent"), [("is_known", False), ("trigger", None)])
def test_unknown_casadi_changes_no_bit(
    name: str, absent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = solved(ca.DM(P))
    monkeypatch.setattr(engine_core, name, lambda: absent)
    assert solved(ca.DM(P)) == expected


def test_layout_of_casadi_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert casadi_internals.is_known()
    assert casadi_internals.trigger()
    assert casadi_internals.instruction_methods()
    fields = [(name, ct.c_void_p) for name in ("pattern", "begin", "end", "room")]
    other = type("Other", (ct.Structure,), {"_fields_": fields})
    other.of = classmethod(lambda kind, matrix: kind.from_address(int(matrix.this)))
    monkeypatch.setattr(casadi_internals, "MatrixData", other)
    assert not casadi_internals.is_known.__wrapped__()


# --- structures -----------------------------------------------------------------------------------

PIECES = "arena point trial bound_multipliers low_rank form kkt filter_pair state iterate"
INTERFACE = (
    "ldl inertia fixed view observer secants functions plan numbers residuals answer phase_options "
    "options buffer buffers matrix shapes adapter rows slot record pool"
)
BLOCK = "vector casadi special linear program run function functions"
STRUCTURES = {
    "core": (core, ("src",), PIECES),
    "adapter": (C, ("binding/adapter", "src"), INTERFACE),
    "evaluation": (BLOCKS, ("evaluation/c",), BLOCK),
}
"""Declarations that ctypes has, folders of the headers, and names of the structures."""


def layouts(headers: Headers, names: list[str]) -> list[str]:
    """Conditions that every field has the place and the size that ctypes gives it."""
    checks = []
    for name in names:
        kind = getattr(headers, name)
        checks.append(f"sizeof({name}) == {ct.sizeof(kind)}")
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            checks.append(f"offsetof({name}, {field}) == {place.offset}")
            checks.append(f"sizeof((({name} *)0)->{field}) == {place.size}")
    return checks


@pytest.mark.parametrize("of", STRUCTURES)
def test_structures_are_those_of_compiler(of: str, compiler: str, tmp_path: Path) -> None:
    headers, folders, words = STRUCTURES[of]
    prefix = "blocks" if of == "evaluation" else "hybrid"
    checks = layouts(headers, [f"{prefix}_{word}" for word in words.split()])
    included = [path for path in (FOLDER / folders[0]).rglob("*.h") if path.name != "operations.h"]
    if of != "evaluation":
        checks += [f"{name} == {value}" for name, value in CORE.items()]
        included += [FOLDER / "src" / name for name in ("constants.h", "driver/phases.h")]
    lines = ["#include <stddef.h>", *(f'#include "{path}"' for path in sorted(included))]
    lines += [f'_Static_assert({check}, "{check}");' for check in checks]
    file = tmp_path / "layouts.c"
    file.write_text("\n".join(lines))
    folders = [f"-I{FOLDER / folder}" for folder in folders]
    subprocess.run([compiler, "-std=c11", "-fsyntax-only", *folders, str(file)], check=True)
