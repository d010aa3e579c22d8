"""Where the engine's own factorizations are in doubt, Python's kernel has the last word.

That is rare, so these tests build a core whose thresholds leave every factorization in doubt.
"""

from __future__ import annotations

import ctypes as ct
import subprocess
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import assert_same_course, needs_engine, python_only

from casadi_hybrid import Problem, Solver, nlpsol
from casadi_hybrid.engine import ldl, structures, warm
from casadi_hybrid.engine.library import core_sources
from casadi_hybrid.kernel.kernel import DenseKernel

DOUBT = (
    ("primal_dual.h", "#define HYBRID_GROWTH 1e6", "#define HYBRID_GROWTH -1.0", 1),
    ("ldl_front.c", "found->doubtful += doubtful;", "found->doubtful += 1 + doubtful;", 2),
)


REFUSAL = (("kkt_matrix.c", "if (hybrid_refined(plan, kernel, residual)) return 0;", "", 1),)


@pytest.fixture(scope="module")
def doubting(tmp_path_factory: pytest.TempPathFactory, compiler: str) -> ct.CDLL:
    """A core that trusts no pivot that it chose."""
    return core_with(DOUBT, tmp_path_factory.mktemp("doubting"), compiler)


def core_with(
    changes: tuple[tuple[str, str, str, int], ...], folder: Path, compiler: str
) -> ct.CDLL:
    """A core with changes: file, what stands there, what instead, how often."""
    needs_engine()
    files = dict(core_sources().files)
    for name, old, new, count in changes:
        assert files[name].count(old) == count
        files[name] = files[name].replace(old, new)
    for name, text in files.items():
        (folder / name).write_text(text)
    library = folder / "changed.so"
    sources = sorted(name for name in files if name.endswith(".c"))
    flags = "-std=c99", "-O0", "-fPIC", "-shared", "-ffp-contract=off"
    subprocess.run([compiler, *flags, *sources, "-o", library, "-lm"], cwd=folder, check=True)
    loaded = ct.CDLL(str(library))
    structures.declare(loaded)
    return loaded


@pytest.fixture
def doubt(doubting: ct.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every factorization of the problems that are made from now on is in doubt."""
    known = warm.engine
    monkeypatch.setattr(warm, "engine", lambda: known() and doubting)
    monkeypatch.setattr(ldl, "PRODUCTS", -1)  # no fixed order


def coupled(n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables that a sum couples, equations and inequalities, and bounds, some of them active."""
    x, p = ca.SX.sym("x", n), ca.SX.sym("p")
    place = ca.DM(np.arange(n) % 7 / 7)
    f = ca.sumsqr(x - place) + ca.sum1(x[:9]) ** 2 + ca.sum1(x**4)
    g = ca.vertcat(*(x[i] + x[i + 1] ** 2 - 0.01 * i - p for i in range(0, 20, 2)))
    bounds = {"lbx": -0.2, "ubx": 0.5, "lbg": 0, "ubg": [0.0] * 5 + [1.0] * 5}
    return {"x": x, "p": p, "f": f, "g": g}, {"x0": 0.1, "p": 0.05, **bounds}


SIZES = {"lapack": 60, "feral": 160}


@pytest.mark.parametrize("kernel", SIZES)
def test_iterates_are_those_of_python(kernel: str, doubt: None) -> None:
    nlp, numbers = coupled(SIZES[kernel])
    solver = nlpsol("solver", "hybrid", nlp)
    found = solver(**numbers)
    stats = solver.stats()
    with python_only():
        twin = nlpsol("solver", "hybrid", nlp)
        wanted = twin(**numbers)
    assert (stats["engine"], stats["engine_note"], stats["kernel"]) == ("c", "", kernel)
    assert_same_course(stats, twin.stats())
    for name in ("x", "lam_x", "lam_g"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-7, atol=1e-7)


def test_the_kernel_of_the_solutions_is_told(
    tmp_path: Path, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a solution asks for chosen pivots, after a factorization that had none."""
    refusing = core_with(REFUSAL, tmp_path, compiler)
    nlp, numbers = coupled(SIZES["lapack"])
    told = []
    for core in (warm.engine(), refusing):
        monkeypatch.setattr(warm, "engine", lambda core=core: core)
        for options in ({}, {"max_time": 100.0}):
            solver = nlpsol("solver", "hybrid", nlp, options)
            found = solver(**numbers)
            told.append((solver.stats()["engine"], solver.stats()["kernel"]))
            near = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}
            solver(**{**numbers, **near, "p": 0.051})
            told.append((solver.stats()["engine"], solver.stats()["kernel"]))
    assert told == 4 * [("c", "ldl-fixed")] + 4 * [("c", "ldl")]


@pytest.mark.parametrize("quick", [False, True])
def test_warm_solves_too(doubt: None, quick: bool) -> None:
    nlp, numbers = coupled(SIZES["feral"])
    solver = nlpsol("solver", "hybrid", nlp, {} if quick else {"max_time": 100.0})
    for p in (0.05, 0.06, 0.07):
        found = solver(**{**numbers, "p": p})
        numbers |= {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}
    stats = solver.stats()
    assert (stats["engine"], stats["kernel"], stats["success"]) == ("c", "feral", True)
    with python_only():
        wanted = nlpsol("solver", "hybrid", nlp)(**{**numbers, "p": p})
    np.testing.assert_allclose(found["x"], wanted["x"], atol=1e-6)


@pytest.mark.parametrize("method", ["factor_entries", "solve"])
def test_what_it_raises_is_told(doubt: None, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """C has no answer then, Python goes on, and the note says what was raised."""

    class Failing(DenseKernel):
        def fail(self, *_: Any) -> None:
            raise MemoryError("no room for it")

    setattr(Failing, method, Failing.fail)
    monkeypatch.setattr("casadi_hybrid.engine.outside.DenseKernel", Failing)
    nlp, numbers = coupled(SIZES["lapack"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASADI_HYBRID_ENGINE", "python")
        wanted = Solver(Problem.from_nlp(nlp)).solve(**numbers)
    result = Solver(Problem.from_nlp(nlp)).solve(**numbers)
    assert result.success
    assert (result.engine, result.kernel, result.iterations) == (
        "python", "lapack", wanted.iterations,
    )  # fmt: skip
    assert "in doubt" in result.engine_note
    assert "MemoryError: no room for it" in result.engine_note
    np.testing.assert_allclose(result.x, wanted.x, atol=1e-7)


def test_ctrl_c_in_it_ends_the_solve(doubt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Stopped(DenseKernel):
        def factor_entries(self, *given: Any) -> None:
            calls.append(given)
            if len(calls) == 4:
                raise KeyboardInterrupt
            super().factor_entries(*given)

    monkeypatch.setattr("casadi_hybrid.engine.outside.DenseKernel", Stopped)
    nlp, numbers = coupled(SIZES["lapack"])
    with pytest.raises(KeyboardInterrupt) as caught:
        Solver(Problem.from_nlp(nlp)).solve(**numbers)
    assert len(calls) == 4
    assert caught.value.result.stop.name == "STOPPED_BY_USER"


def test_threads_of_casadi_get_the_same(doubt: None) -> None:
    """They ask no kernel of Python's: what is in doubt there is left to Python as a whole."""
    nlp, numbers = coupled(SIZES["lapack"])
    solver, p = nlpsol("solver", "hybrid", nlp), ca.MX.sym("p")
    graph = ca.Function("graph", [p], [solver(**{**numbers, "p": p})["x"]])
    values = [0.05, 0.06, 0.07]
    found = graph.map(3, "thread", 2)(ca.DM(values).T)
    with python_only():
        twin = nlpsol("solver", "hybrid", nlp)
        for i, value in enumerate(values):
            wanted = twin(**{**numbers, "p": value})
            np.testing.assert_allclose(found[:, i], wanted["x"], atol=1e-7)
