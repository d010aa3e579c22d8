"""The libraries that come compiled: how they are made, chosen, made anew and done without."""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.cases.ldl_pieces import LdlKernel
from support.paths import ROOT

from casadi_hybrid import Problem, Solver
from casadi_hybrid.cli import doctor, main
from casadi_hybrid.cli.doctor import self_test
from casadi_hybrid.core import library
from casadi_hybrid.core.evaluation.operations import SAME_BITS
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C
from casadi_hybrid.core.library import engine
from casadi_hybrid.problem.building import BuildError, cache, compiler, suffix
from casadi_hybrid.problem.building.build import Sources, load
from casadi_hybrid.utils.errors import CompilerWarning
from casadi_hybrid.utils.linear_algebra.sparse import Layout, Pattern, Sparse

_spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
hatch_build = module_from_spec(_spec)
_spec.loader.exec_module(hatch_build)
V3 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}


@pytest.fixture(autouse=True)
def _new_process(monkeypatch):
    """Nothing has been loaded yet."""
    monkeypatch.delenv("CASADI_HYBRID_TARGET", raising=False)
    forget()
    yield
    forget()


def forget():
    for one in (library._brought_up_to_date, library._core):
        one.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The libraries, as the hook makes them for a wheel of this machine."""
    given = hatch_build.given_compiler()
    if not given:
        pytest.skip("there is no C compiler here")
    out = tmp_path_factory.mktemp("_lib")
    hatch_build.build(out, given, hatch_build.tag_of(given))
    return out


def features() -> set[str]:
    """In Linux's words; empty where it does not say them."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text("utf-8").splitlines() if told.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def test_the_library_for_this_processor_is_loaded():
    path = Path(library.load("hybrid")._name)
    if platform.machine() == "x86_64" and features():
        assert (".v3." in path.name) == (features() >= V3)


def test_both_cores_have_the_same_bits(folder):
    cores = sorted(folder.glob("hybrid.*"))
    if len(cores) < 2 or not features() >= V3:
        pytest.skip("this processor has one core")
    random = np.random.default_rng(0)
    W, A = random.normal(size=(90, 90)), random.normal(size=(40, 90))
    b, found = random.normal(size=130), []
    for core in cores:
        kernel = LdlKernel(Layout(full(W).pattern, full(A).pattern), C.declare(ctypes.CDLL(core)))
        kernel.factor(full(W + W.T), np.ones(90), full(A), 1e-8)
        found.append(kernel.solve(b))
    assert found[0].tobytes() == found[1].tobytes()


def full(matrix: np.ndarray) -> Sparse:
    columns, rows = np.nonzero(np.ones(matrix.T.shape))
    return Sparse(Pattern(matrix.shape, rows, columns), matrix[rows, columns])


def test_no_piece_of_the_core_is_seen_from_outside(folder):
    core = ctypes.CDLL(folder / f"hybrid{suffix()}")
    assert core.hybrid_solve
    assert core.hybrid_ldl_factor
    assert not hasattr(core, "hybrid_next_nu")


def test_the_flags_of_a_wheel_keep_bits_as_those_of_a_problem_do():
    assert set(hatch_build.FLAGS) == {*compiler.FLAGS, "-s"}
    assert hatch_build.SAME_BITS == SAME_BITS
    assert {folder for folder, _ in hatch_build.LIBRARIES.values()} == set(library.SOURCES)


def test_git_ignores_no_file_of_the_package():
    # hatchling leaves out what .gitignore names, also where git has the file.
    wheel = pytest.importorskip("hatchling.builders.wheel")
    builder = wheel.WheelBuilder(str(ROOT))
    included = {Path(file.distribution_path) for file in builder.recurse_included_files()}
    files = {path.relative_to(ROOT) for path in (ROOT / "casadi_hybrid").rglob("*.*")}
    lacking = [path for path in files - included if not {"_lib", "__pycache__"} & {*path.parts}]
    assert lacking == []


def test_a_wheel_is_named_after_what_it_is_for(monkeypatch):
    assert hatch_build.tag_of([]) in hatch_build.TARGETS  # by zig: for any such machine
    assert hatch_build.tag_of(["cc"]).endswith(("x86_64", "aarch64", "arm64", "amd64"))
    with monkeypatch.context() as patch:
        patch.setattr(hatch_build.sysconfig, "get_platform", lambda: "macosx-11.0-universal2")
        patch.setattr(hatch_build.platform, "machine", lambda: "arm64")
        assert hatch_build.tag_of(["cc"]) == "macosx_11_0_arm64"
    monkeypatch.setenv("CASADI_HYBRID_TARGET", "win_amd64")
    assert hatch_build.tag_of(hatch_build.given_compiler()) == "win_amd64"
    assert hatch_build.Hook.dependencies.__get__(Wheel())() == [hatch_build.ZIG]


class Wheel:
    target_name = "wheel"


def test_what_cannot_be_compiled_says_why():
    with pytest.raises(RuntimeError, match="nothing-like-this"):
        hatch_build.run([sys.executable, "-c", "import sys; sys.exit('nothing-like-this')"])


def test_the_core_is_clean_c99():
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic")
    try:
        assert self_test(load(Sources("hybrid", core_sources(), strict))) == ""
    except BuildError as error:
        if "no C compiler" not in str(error):
            raise
        pytest.skip(str(error))
    stored = ROOT / "casadi_hybrid" / "solver" / "nlpsol" / "stored" / "stored.c"
    load(Sources("stored", {"stored.c": stored.read_text("utf-8")}, strict))


@pytest.fixture
def checkout(tmp_path, folder, monkeypatch):
    """One whose libraries are as old as its sources, with the hook that makes them."""
    package = tmp_path / "with spaces and é" / "casadi_hybrid"
    for name in library.SOURCES:
        shutil.copytree(ROOT / "casadi_hybrid" / name, package / name)
    shutil.copy(ROOT / "hatch_build.py", package.parent)
    shutil.copytree(folder, package / "_lib")
    (package / "_lib" / "stamp").touch()
    monkeypatch.setattr(library, "_PACKAGE", package)
    monkeypatch.setattr(library, "_FOLDER", package / "_lib")
    forget()
    return package


def change(package, text):
    """Another interface; as if it had been saved a while later."""
    header = package / "core" / "src" / "hybrid.h"
    header.write_text(header.read_text("utf-8") + text, encoding="utf-8")
    os.utime(header, (time.time() + 9, time.time() + 9))


def test_what_is_up_to_date_is_not_compiled(checkout, monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    assert Path(library.load("hybrid")._name).parent == checkout / "_lib"


def test_a_change_of_a_source_is_compiled(checkout, monkeypatch):
    change(checkout, "#undef HYBRID_INTERFACE_VERSION\n#define HYBRID_INTERFACE_VERSION 99\n")
    assert library.load("hybrid").hybrid_interface_version() == 99
    forget()
    monkeypatch.setattr(subprocess, "run", None)  # though the file is of a time to come
    assert Path(library.load("hybrid")._name).is_file()


def test_a_change_that_cannot_be_compiled_is_said(checkout):
    change(checkout, "nonsense\n")
    with pytest.warns(CompilerWarning, match=r"have changed.*are those of before(.|\n)*nonsense"):
        assert library.load("hybrid").hybrid_interface_version() == library.INTERFACE


def test_a_checkout_that_was_never_compiled(checkout, monkeypatch):
    shutil.rmtree(checkout / "_lib")
    assert Path(library.load("hybrid_stored")._name).is_file()
    forget()
    shutil.rmtree(checkout / "_lib")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match=r"has no library 'hybrid'; .*no-such-compiler"):
        library.load("hybrid")


@pytest.fixture
def no_core(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_PACKAGE", tmp_path / "casadi_hybrid")
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    forget()


def test_without_the_core_nothing_is_solved_and_why_is_said(no_core, tmp_path):
    x, where = ca.SX.sym("x"), f"core in C cannot be had: {tmp_path} has no library 'hybrid'"
    with pytest.raises(BuildError, match=re.escape(where) + ".*install the package anew"):
        Solver(Problem(x=x, f=(x - 1) ** 2, lbx=2)).solve([3])


def test_a_core_of_another_interface_is_not_used(monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", library.INTERFACE + 1)
    with pytest.raises(BuildError, match=f"calls interface {library.INTERFACE}"):
        engine()


def test_a_file_that_is_no_library(no_core, tmp_path):
    (tmp_path / f"hybrid{suffix()}").write_text("no library")
    with pytest.raises(BuildError, match="cannot be loaded"):
        library.load("hybrid")


def test_the_engine_is_loaded_once_by_all_threads(monkeypatch):
    calls = []

    def counted(name, real=library.load):
        calls.append(name)
        return real(name)

    monkeypatch.setattr(library, "load", counted)
    found = []
    threads = [threading.Thread(target=lambda: found.append(engine())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["hybrid"]
    assert found == [engine()] * 4
    assert self_test(engine()) == ""


def test_the_self_test_sees_fused_products():
    every = core_sources()
    headers = {name: every[name] for name in every if name.endswith(".h")}
    text = '#include <math.h>\n#include "hybrid.h"\n'
    text += "double hybrid_rounded_difference(double a, double b, double c)"
    source = f"{text} {{ return fma(a, b, -c); }}\n"
    loaded = load(Sources("fused", {**headers, "fused.c": source}))
    assert "fused products" in self_test(loaded)


def rows_of(said):
    return dict(line.split(maxsplit=1) for line in said.splitlines() if "  " in line)


def test_the_doctor(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    rows = rows_of(said)
    kind = "x86-64-v3 processors" if ".v3." in engine()._name else "any processor"
    assert rows["engine"] == f"C, for {kind} ({engine()._name})"
    assert rows["self-test"] == "passed"
    assert rows["casadi"] == ca.CasadiMeta.version()
    assert rows["cache"].startswith(f"{tmp_path / 'cache'}, owner ")
    assert "right" in rows["solver"]
    assert re.search(r"again \S+ ms$", rows["solver"])
    for part in ("export", "compiled functions", "verification", "IPOPT", "figures"):
        assert part in rows["available"]
    assert rows["not"] == "available  nothing"
    assert said.endswith("everything works\n")
    (tmp_path / "cache").chmod(0o777)
    assert main(["doctor"]) == 0
    assert "0777" in rows_of(capsys.readouterr().out)["cache"]


def test_the_doctor_says_what_is_not_available(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "WHEEL", "casadi_hybrid_no_such_wheel")
    monkeypatch.setattr(doctor, "has_feral", lambda: False)
    monkeypatch.setattr(ca, "has_nlpsol", lambda name: name != "ipopt")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["broken"] == []
    assert found["found"]["compiler"] == "none"
    lacking = found["found"]["not available"]
    assert "compile=True" in lacking
    assert "casadi_hybrid[compiler]" in lacking
    assert "no verification" in lacking
    assert "IPOPT: CasADi cannot load" in lacking
    assert found["found"]["available"] == "export; figures"


def test_the_doctor_says_what_is_broken(no_core, capsys):
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "broken: the core in C cannot be had: " in said
    assert "export: needs the engine in C" in said


def test_the_doctor_tests_the_core(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda core: "it cannot add")
    assert main(["doctor"]) == 1
    assert "broken: the engine in C fails its self-test: it cannot add" in capsys.readouterr().out
