"""Solvers as functions that CasADi calls, arguments read where they lie, structures as laid out."""

import ctypes as ct
import gc
import pickle
import subprocess
from collections.abc import Iterable
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.cases.core import bits, core, warm

from casadi_hybrid import Problem, nlpsol
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
OF_CORE = (
    "arena", "point", "trial", "bound_multipliers", "low_rank", "form", "kkt",
    "filter_pair", "state",
)  # fmt: skip


def solver_of(a: float) -> NlpSolver:
    """The nearest point to (a, 2a) on the disc of radius 1."""
    x = ca.MX.sym("x", 2)
    nlp = {"x": x, "f": ca.sumsqr(x - ca.vertcat(a, 2 * a)), "g": ca.sumsqr(x)}
    return nlpsol("solver", "hybrid", nlp)


def answer(solver: NlpSolver) -> dict[str, bytes]:
    return bits(solver(x0=0.1, ubg=1))


def test_each_of_many_solvers_keeps_its_own() -> None:
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


def test_the_adapter_is_clean_c99() -> None:
    folder = FOLDER / "binding" / "adapter"
    files = {path.name: path.read_text("utf-8") for path in folder.glob("[ag]*.[ch]")}
    core = core_sources()
    headers = {name: core[name] for name in core if name.endswith(".h")}
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes")
    loaded = load(Sources("hybrid_adapter", {**files, **headers}, strict))
    assert loaded.hybrid_ready_n_in() == 1
    assert loaded.hybrid_in_graph_n_in() == 9


def equations() -> Problem:
    x = ca.SX.sym("x", 2)
    return Problem.from_nlp({"x": x, "f": ca.sumsqr(x - 1) * x[0], "g": x[0] * x[1]})


def test_functions_that_few_methods_call_are_made_when_one_does() -> None:
    problem = equations()
    nlpsol("solver", "hybrid", problem)(x0=[2.0, 0.5], lbg=1, ubg=1)
    functions = problem.functions
    seldom = functions.of_residual, functions.of_second
    assert all(one is not None and "value" not in vars(one) for one in seldom)
    copy = pickle.loads(pickle.dumps(problem)).functions
    at, lam = [2.0, 0.5], [3.0]
    for one in (functions, copy):
        assert one.second is not None
        assert one.second is one.second
        first, whole = one.first(at, []), one.second(at, lam, [])
        assert [str(a) for a in first] == [str(a) for a in whole[:4]]
        assert float(one.residual(at, [])) == float(first[2])
        assert str(whole[4]) == str(one.curvature(at, lam, []))


x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 3)
NLP = {"x": x, "p": p, "f": ca.sumsqr(x - p) + ca.exp(x[0]), "g": ca.sum1(x)}
P = [0.5, 0.0, -1.0]


def solved(value: object) -> dict[str, np.ndarray]:
    """A warm solve with this p."""
    solver = nlpsol("s", "hybrid", NLP)
    bounds = {"lbg": ca.DM(0), "ubg": ca.DM(1), "lbx": ca.DM([-1, -1, -1]), "ubx": 2.0}
    first = solver(p=P, x0=[0.1, 0.1, 0.1], **bounds)
    found = solver(p=value, **warm(first), **bounds)
    assert solver.stats()["success"]
    return {k: v.full() for k, v in found.items()}


def test_this_casadi_is_known() -> None:
    assert casadi_internals.is_known()
    assert casadi_internals.trigger()
    assert casadi_internals.instruction_methods()


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
def test_whatever_the_shape_the_numbers_are_the_same(value: object) -> None:
    found, expected = solved(value), solved(ca.DM(P))
    for name, numbers in expected.items():
        np.testing.assert_array_equal(found[name], numbers, err_msg=name)


def test_of_another_length_the_ordinary_way_says_so() -> None:
    with pytest.raises(ValueError, match="p"):
        solved(ca.DM([1.0, 2.0]))


@pytest.mark.parametrize(("name", "absent"), [("is_known", False), ("trigger", None)])
def test_without_them_the_numbers_are_the_same(
    name: str, absent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = solved(ca.DM(P))
    monkeypatch.setattr(engine_core, name, lambda: absent)
    found = solved(ca.DM(P))
    for label, numbers in expected.items():
        np.testing.assert_array_equal(found[label], numbers, err_msg=label)


def test_a_layout_that_is_not_that_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [(name, ct.c_void_p) for name in ("pattern", "begin", "end", "room")]
    other = type("Other", (ct.Structure,), {"_fields_": fields})
    other.of = classmethod(lambda cls, one: cls.from_address(int(one.this)))
    monkeypatch.setattr(casadi_internals, "MatrixData", other)
    assert not casadi_internals.is_known.__wrapped__()


def layouts(headers: Headers, names: Iterable[str]) -> list[str]:
    """C that compiles where every field has the place and the size that ctypes gives it."""
    checks = []
    for name in names:
        kind = getattr(headers, name)
        checks.append(f"sizeof({name}) == {ct.sizeof(kind)}")
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            checks.append(f"offsetof({name}, {field}) == {place.offset}")
            checks.append(f"sizeof((({name} *)0)->{field}) == {place.size}")
    return [f'_Static_assert({check}, "{check}");' for check in checks]


def test_structures_of_the_evaluation_are_those_of_the_compiler(
    compiler: str, tmp_path: Path
) -> None:
    file = tmp_path / "layouts.c"
    lines = ["#include <stddef.h>", '#include "blocks.h"', *layouts(BLOCKS, BLOCKS._structures)]
    file.write_text("\n".join(lines))
    flags = "-std=c11", "-fsyntax-only", f"-I{FOLDER / 'evaluation' / 'c'}"
    subprocess.run([compiler, *flags, str(file)], check=True)
    assert len(lines) > 30


@pytest.mark.parametrize("of", ["core", "adapter"])
def test_structures_are_those_of_the_compiler(of: str, compiler: str, tmp_path: Path) -> None:
    known = [f"hybrid_{name}" for name in OF_CORE] if of == "core" else list(C._structures)
    checks = layouts(core if of == "core" else C, known)
    checks += [f'_Static_assert({name} == {value}, "{name}");' for name, value in CORE.items()]
    folder = FOLDER / ("src" if of == "core" else "binding/adapter")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*.h"))
    names += ["constants.h", "driver/phases.h"]
    lines = ["#include <stddef.h>", *(f'#include "{name}"' for name in names), *checks]
    file = tmp_path / "layouts.c"
    file.write_text("\n".join(lines))
    flags = "-std=c11", "-fsyntax-only", f"-I{folder}", f"-I{FOLDER / 'src'}"
    subprocess.run([compiler, *flags, str(file)], check=True)
    assert len(lines) > 100
