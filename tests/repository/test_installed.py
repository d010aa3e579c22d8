"""The libraries that come compiled: their making, their choice, and a package without them."""

import ctypes
import json
import os
import platform
import re
import shutil
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from support.cases.ldl_pieces import factored
from support.cases.watched import ended
from support.paths import ROOT

import casadi_hybrid
from casadi_hybrid.cli import doctor, main
from casadi_hybrid.core import library
from casadi_hybrid.core.evaluation.operations import SAME_BITS
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building import BuildError, cache, suffix
from casadi_hybrid.problem.building import compiler as compilers
from casadi_hybrid.problem.building.build import Sources, load

_spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
hatch_build = module_from_spec(_spec)
_spec.loader.exec_module(hatch_build)
LIBRARIES = Path(casadi_hybrid.__file__).parent / "_lib"
V3 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}
SOLVE = """
import casadi as ca
from casadi_hybrid import Solver
x = ca.SX.sym("x")
print(Solver({"x": x, "f": (x - 1) ** 2}).solve([3]).x)
"""


@pytest.fixture(autouse=True)
def _for_this_machine(monkeypatch):
    monkeypatch.delenv("CASADI_HYBRID_TARGET", raising=False)


def features() -> set[str]:
    """Instruction sets in Linux's words; empty where it does not say them."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def test_wheel_flags_keep_bits_of_problems():
    assert set(hatch_build.FLAGS) == {*compilers.FLAGS, "-s"}
    assert hatch_build.SAME_BITS == SAME_BITS
    assert {folder for folder, _ in hatch_build.LIBRARIES.values()} == set(library.SOURCES)


def test_wheel_has_every_file_of_package():
    # hatchling leaves out what .gitignore names, also where git has the file.
    wheel = pytest.importorskip("hatchling.builders.wheel")
    builder = wheel.WheelBuilder(str(ROOT))
    included = {Path(file.distribution_path) for file in builder.recurse_included_files()}
    files = {path.relative_to(ROOT) for path in (ROOT / "casadi_hybrid").rglob("*.*")}
    lacking = [path for path in files - included if not {"_lib", "__pycache__"} & {*path.parts}]
    assert lacking == []


def test_wheel_is_named_after_its_platform(monkeypatch):
    assert hatch_build.tag_of([]) in hatch_build.TARGETS  # by zig: for any such machine
    monkeypatch.setattr(hatch_build.sysconfig, "get_platform", lambda: "macosx-11.0-universal2")
    monkeypatch.setattr(hatch_build.platform, "machine", lambda: "arm64")
    assert hatch_build.tag_of(["cc"]) == "macosx_11_0_arm64"
    monkeypatch.setenv("CASADI_HYBRID_TARGET", "win_amd64")
    assert hatch_build.tag_of(hatch_build.given_compiler()) == "win_amd64"
    wheel = SimpleNamespace(target_name="wheel")
    assert hatch_build.Hook.dependencies.__get__(wheel)() == [hatch_build.ZIG]


def test_failed_compilation_says_why():
    with pytest.raises(RuntimeError, match="nothing-like-this"):
        hatch_build.run([sys.executable, "-c", "import sys; sys.exit('nothing-like-this')"])


def test_core_is_clean_c99():
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic")
    try:
        assert doctor.self_test(load(Sources("hybrid", core_sources(), strict))) == ""
    except BuildError as error:
        if "no C compiler" not in str(error):
            raise
        pytest.skip(str(error))
    stored = ROOT / "casadi_hybrid" / "solver" / "nlpsol" / "stored" / "stored.c"
    load(Sources("stored", {"stored.c": stored.read_text("utf-8")}, strict))


def test_self_test_sees_fused_products():
    headers = {name: text for name, text in core_sources().items() if name.endswith(".h")}
    source = """
#include <math.h>
#include "hybrid.h"
double hybrid_rounded_difference(double a, double b, double c) { return fma(a, b, -c); }
"""
    fused = load(Sources("fused", {**headers, "fused.c": source}))
    assert "fused products" in doctor.self_test(fused)


def test_both_cores_have_same_bits():
    paths = sorted(LIBRARIES.glob("hybrid.*"))
    if len(paths) < 2 or not features() >= V3:
        pytest.skip("this processor has one core")
    random = np.random.default_rng(0)
    W, A = random.normal(size=(90, 90)), random.normal(size=(40, 90))
    b, problem = random.normal(size=130), (W + W.T, np.ones(90), A, 1e-8)
    kernels = [factored(C.declare(ctypes.CDLL(path)), problem) for path in paths]
    assert kernels[0].solve(b).tobytes() == kernels[1].solve(b).tobytes()


def test_pieces_of_core_are_hidden():
    core = ctypes.CDLL(LIBRARIES / f"hybrid{suffix()}")
    assert core.hybrid_solve
    assert not hasattr(core, "hybrid_next_nu")


@pytest.fixture
def checkout(tmp_path):
    """A copy of the package that was never compiled, with a hook that does not optimize."""
    package = tmp_path / "with spaces and é" / "casadi_hybrid"
    ignored = shutil.ignore_patterns("_lib", "__pycache__")
    shutil.copytree(ROOT / "casadi_hybrid", package, ignore=ignored)
    hook = (ROOT / "hatch_build.py").read_text("utf-8").replace("-O3", "-O0")
    (package.parent / "hatch_build.py").write_text(hook, "utf-8")
    return package


def python(package: Path, script: str, **environment: str):
    """A new process with this package."""
    variables = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONUTF8": "1"} | environment
    return ended([sys.executable, "-c", script], cwd=package.parent, env=variables)


def test_checkout_compiles_itself_after_a_change(checkout, compiler):
    no_compiler = {"CC": "no-such-compiler"}
    done = python(checkout, SOLVE, **no_compiler)
    assert re.search("BuildError.*no-such-compiler", done.stderr)
    done = python(checkout, SOLVE, CC=compiler)
    assert (done.returncode, done.stderr) == (0, "")
    again = python(checkout, SOLVE, **no_compiler)  # nothing has changed
    assert (again.stdout, again.stderr) == (done.stdout, "")
    source = checkout / "core" / "src" / "driver" / "solve.c"
    os.utime(source, (time.time() + 9, time.time() + 9))
    changed = python(checkout, SOLVE, **no_compiler)
    assert changed.stdout == done.stdout  # by the libraries of before
    assert re.search(r"CompilerWarning(.|\n)*no-such-compiler", changed.stderr)


def test_missing_or_damaged_core_is_named(checkout):
    (checkout.parent / "hatch_build.py").unlink()
    assert re.search("BuildError.*no library 'hybrid'", python(checkout, SOLVE).stderr)
    done = python(checkout, "from casadi_hybrid.cli import main\nprint(main(['doctor']))")
    assert "broken: " in done.stdout
    assert done.stdout.endswith("1\n")
    (checkout / "_lib").mkdir()
    (checkout / "_lib" / f"hybrid{suffix()}").write_text("no library")
    assert re.search("BuildError.*cannot be loaded", python(checkout, SOLVE).stderr)


def test_core_of_other_interface_is_refused():
    script = "from casadi_hybrid.core import library\nlibrary.INTERFACE += 1\nlibrary.engine()"
    done = ended([sys.executable, "-c", script])
    assert f"interface {library.INTERFACE + 1}" in done.stderr


def test_threads_load_core_once():
    script = """
import threading
from casadi_hybrid.core import library
names, cores, load = [], [], library.load
library.load = lambda name: names.append(name) or load(name)
threads = [threading.Thread(target=lambda: cores.append(library.engine())) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert names == ["hybrid"] and len(cores) == 4 and len(set(map(id, cores))) == 1
"""
    done = ended([sys.executable, "-c", script])
    assert done.returncode == 0, done.stderr


@pytest.fixture
def found_by_doctor(capsys):
    def run():
        assert main(["doctor", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["broken"] == []
        return report["found"]

    return run


def test_doctor_reports_engine_and_parts(tmp_path, monkeypatch, found_by_doctor):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    rows = found_by_doctor()
    if platform.machine() == "x86_64" and features():
        assert ("x86-64-v3" in rows["engine"]) == (features() >= V3)
    assert rows["self-test"] == "passed"
    assert rows["casadi"] == ca.CasadiMeta.version()
    for part in ("export", "compiled functions", "verification", "IPOPT", "figures"):
        assert part in rows["available"]
    assert rows["cache"].startswith(str(tmp_path / "cache"))
    (tmp_path / "cache").chmod(0o777)
    assert "0777" in found_by_doctor()["cache"]


def test_doctor_names_missing_parts(monkeypatch, found_by_doctor):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compilers, "WHEEL", "casadi_hybrid_no_such_wheel")
    monkeypatch.setattr(doctor, "has_feral", lambda: False)
    monkeypatch.setattr(ca, "has_nlpsol", lambda name: name != "ipopt")
    rows = found_by_doctor()
    assert rows["compiler"] == "none"
    for part in ("compile=True", "casadi_hybrid[compiler]", "verification", "IPOPT"):
        assert part in rows["not available"]


def test_doctor_tests_core(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda core: "it cannot add")
    assert main(["doctor"]) == 1
    assert "it cannot add" in capsys.readouterr().out
