"""What a wheel brings compiled: the same core for any processor and for x86-64-v3."""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from engine_ldl_kernel import LdlKernel

from casadi_hybrid.engine import installed, ldl
from casadi_hybrid.engine.blocks.operations import SAME_BITS
from casadi_hybrid.engine.building.build import Sources
from casadi_hybrid.engine.building.compiler import FLAGS
from casadi_hybrid.engine.library import core_sources
from casadi_hybrid.kernel.kernel import Layout
from casadi_hybrid.kernel.sparse import Pattern, Sparse

sys.path.insert(0, str(Path(__file__).parents[1]))
hatch_build = pytest.importorskip("hatch_build", reason="hatchling is not installed")
V3 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The libraries, as the hook makes them for a wheel of this machine."""
    compiler = hatch_build.given_compiler()
    if not compiler:
        pytest.skip("there is no C compiler here")
    out = tmp_path_factory.mktemp("_lib")
    hatch_build.build(out, compiler, hatch_build.tag_of(compiler))
    return out


@pytest.fixture
def from_folder(folder, monkeypatch):
    monkeypatch.setattr(installed, "_FOLDER", folder)
    installed._level.cache_clear()
    yield folder
    installed._level.cache_clear()


def features() -> set[str]:
    """In Linux's words; empty where it does not say them."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text("utf-8").splitlines() if told.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def test_the_library_for_this_processor_is_loaded(from_folder):
    loaded, found = installed.obtain(core_sources())
    assert found.path.parent == from_folder
    assert found.cached
    assert found.compiler == installed.COMPILER
    assert loaded.hybrid_interface_version() > 0
    if platform.machine() == "x86_64" and features():
        assert (".v3." in found.path.name) == (features() >= V3)


def test_a_wheel_is_compiled_as_a_checkout_is():
    assert {*hatch_build.FLAGS, "-fPIC"} == {*FLAGS, "-s"}
    assert hatch_build.SAME_BITS == SAME_BITS


def test_what_is_not_installed_is_built(from_folder, monkeypatch):
    asked = []
    monkeypatch.setattr(installed, "load", lambda sources: asked.append(sources.name) or (0, 0))
    installed.obtain(Sources("another", {"another.c": "int another;"}))
    assert asked == ["another"]


def test_both_cores_have_the_same_bits(folder):
    cores = sorted(folder.glob("hybrid.*"))
    if len(cores) < 2 or not features() >= V3:
        pytest.skip("this processor has one core")
    random = np.random.default_rng(0)
    W, A = random.normal(size=(90, 90)), random.normal(size=(40, 90))
    b, found = random.normal(size=130), []
    for core in cores:
        kernel = LdlKernel(Layout(full(W).pattern, full(A).pattern), ldl.declare(ctypes.CDLL(core)))
        kernel.factor(full(W + W.T), np.ones(90), full(A), 1e-8)
        found.append(kernel.solve(b))
    assert found[0].tobytes() == found[1].tobytes()


def full(matrix: np.ndarray) -> Sparse:
    columns, rows = np.nonzero(np.ones(matrix.T.shape))
    return Sparse(Pattern(matrix.shape, rows, columns), matrix[rows, columns])


def test_a_wheel_is_named_after_what_it_is_for(monkeypatch):
    monkeypatch.delenv("CASADI_HYBRID_TARGET", raising=False)
    assert hatch_build.tag_of([]) in hatch_build.TARGETS  # by zig: for any such machine
    assert hatch_build.tag_of(["cc"]).endswith(("x86_64", "aarch64", "arm64", "amd64"))
    monkeypatch.setenv("CASADI_HYBRID_TARGET", "win_amd64")
    assert hatch_build.tag_of(hatch_build.given_compiler()) == "win_amd64"
    assert hatch_build.Hook.dependencies.__get__(Wheel())() == [hatch_build.ZIG]


class Wheel:
    target_name = "wheel"


def test_what_cannot_be_compiled_says_why():
    with pytest.raises(RuntimeError, match="nothing-like-this"):
        hatch_build.run([sys.executable, "-c", "import sys; sys.exit('nothing-like-this')"])
