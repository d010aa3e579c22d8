"""A solver as C99: it compiles without a warning, and answers what Python answers."""

import importlib.util
import os
import shutil
import sys

import casadi as ca
import numpy as np
import pytest
from support.cases.core import corridor, van_der_pol
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.cli import main
from casadi_hybrid.core.export.compare import compare, spoken
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.export.needs import HEADERS
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building.compiler import compiler_of
from casadi_hybrid.solver.solve import POINTS, STOPS
from casadi_hybrid.utils.status import StopReason

CLOSE = 1e-12
UNSOLVED = -1


@pytest.fixture(scope="module")
def oscillator(tmp_path_factory):
    """A closed loop of 20 steps, exported."""
    case, draws = van_der_pol(30), np.random.default_rng(0)
    solver, numbers = nlpsol("vdp", "hybrid", case.nlp), {"p": case.numbers["p"]}
    loop = (case.moved(numbers, solver.result.x, draws) for _ in range(20))
    return solver.export(tmp_path_factory.mktemp("vdp"), loop=loop, loops=True, **case.numbers)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A problem with every kind of bound, with bounds and parameters that change: warm alone."""
    nlp, arguments = corridor()
    solver = nlpsol("rows", "hybrid", nlp)
    ubg, raised = arguments["ubg"], 0.02 * (arguments["ubg"] > 0)
    loop = [{"p": 2.0 + 0.4 * k, "ubg": ubg + raised * k} for k in range(6)]
    return solver.export(tmp_path_factory.mktemp("rows"), loop=loop, cold=False, **arguments)


@pytest.fixture(scope="module")
def searching(tmp_path_factory):
    """The same problem, exported with the search from any start."""
    nlp, arguments = corridor()
    return nlpsol("found", "hybrid", nlp).export(tmp_path_factory.mktemp("found"), **arguments)


def driver(folder, name, body):
    """A C program with an export's memory, input and output, and a clock that ticks when asked."""
    source = folder / "driver.c"
    source.write_text(f'''
#include <stdio.h>
#include <string.h>
#include "{name}.h"
static {name}_memory memory;
static {name}_in in;
static {name}_out out;
static double seconds;
double now(void);
double now(void) {{ return seconds += 1.0; }}
int main(void) {{
    memset(&memory, 0xff, sizeof memory);
    in = {name}_stored;
{body}
    return 0;
}}
''')
    return source


def run(program, text=""):
    """Output of a program; a sanitizer's finding fails."""
    done = ended([str(program)], input=text)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def assert_answered(line, case):
    """Compare a line of the replay with the answer of Python."""
    status, steps, *numbers = line.split()
    assert (int(status), int(steps)) == (0, case.answer.iterations)
    expected = np.concatenate(list(case.outputs().values()))
    np.testing.assert_allclose(np.array(numbers, float), expected, rtol=CLOSE, atol=CLOSE)


# --- answers --------------------------------------------------------------------------------------


def test_closed_loop_answers_as_python(oscillator, compiler):
    assert all(case.answer.engine == "c" for case in oscillator.cases)
    compared = compare(oscillator, compiler_of((compiler,)))
    assert compared.solved == (21, 21)
    assert compared.cold == (0, oscillator.cold.answer.iterations)
    assert compared.difference <= CLOSE
    assert oscillator.looped


def test_every_kind_of_bound_is_kept(rows, sanitized):
    lines = run(sanitized(rows, rows.folder / "replay.c"), spoken(rows.cases)).splitlines()
    sets = set()
    for line, case in zip(lines, rows.cases, strict=True):
        assert_answered(line, case)
        sets.add(tuple(np.sign(case.answer.lam_g)))
    assert len(sets) > 1  # the active rows have changed on the way
    assert "status 0" in run(sanitized(rows, rows.folder / "main.c"))


def test_bad_numbers_have_a_status(rows, sanitized):
    """Bounds of other kinds, numbers that are none, functions that are not defined."""
    inputs = rows.cases[0].inputs()
    cases = [
        ({"lbx": np.full(5, -np.inf)}, C.HYBRID_OTHER_PATTERN),
        ({"ubg": np.full(7, np.inf)}, C.HYBRID_OTHER_PATTERN),
        ({"p": np.array([np.nan])}, C.HYBRID_BAD_NUMBERS),
        ({"lbx": inputs["ubx"] + 1}, C.HYBRID_BAD_NUMBERS),
        ({"x0": np.full(5, 1e3)}, C.HYBRID_UNDEFINED),
        ({}, 0),
    ]
    given = [np.concatenate([*{**inputs, **changes}.values()]) for changes, _ in cases]
    text = "\n".join(" ".join(map(repr, map(float, numbers))) for numbers in given)
    lines = run(sanitized(rows, rows.folder / "replay.c"), text).splitlines()
    assert [int(line.split()[0]) for line in lines] == [status for _, status in cases]


def test_memory_may_be_handed_in(rows, sanitized, tmp_path):
    """Two solves in one memory, a start without multipliers, and the sizes that were told."""
    body = """
    for (int k = -1; k < 10; k++) printf("%s\\n", rows_word(k));
    printf("%d %d %d\\n", (int)sizeof memory, (int)sizeof in, (int)sizeof out);
    printf("%d\\n", rows_solve_in(&memory, &in, &out));
    rows_next(&in, &out);
    in.p[0] += 0.1;
    printf("%d %d\\n", rows_solve_in(&memory, &in, &out), out.steps > 0);
    memset(in.lam_x0, 0, sizeof in.lam_x0);
    memset(in.lam_g0, 0, sizeof in.lam_g0);
    in.of_solution = 0;
    printf("%d\\n", rows_solve_in(&memory, &in, &out));
"""
    *words, sizes, first, second, cold = run(
        sanitized(rows, driver(tmp_path, "rows", body))
    ).splitlines()
    assert sizes.split() == [str(size) for size in (rows.memory, rows.input, rows.output)]
    assert (first, second, cold) == ("0", "0 1", str(C.HYBRID_NO_GUESS))
    assert len({*words}) == 10  # of nine statuses, and of none


def test_solution_without_active_constraints(tmp_path):
    """All multipliers are zero there, which is no start without multipliers."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    solver = nlpsol("s", "hybrid", {"x": x, "p": p, "f": ca.sumsqr(x - p) + x[0] ** 4})
    export = solver.export(tmp_path, "free", cold=False, p=1.0, loop=[{"p": 2.0}, {"p": 2.5}])
    assert not any(case.lam_x0.any() for case in export.cases)
    assert compare(export).solved == (3, 3)


# --- the search from any start --------------------------------------------------------------------


def test_search_has_limits_and_words(searching, sanitized, tmp_path):
    """Limits of steps, and of seconds by a clock that the user hands in."""
    body = f"""
    int k;
    for (k = 0; k < {len(STOPS)}; k++) printf("%s\\n", found_stop_word(k));
    for (k = 0; k < {len(POINTS)}; k++) printf("%s\\n", found_point_word(k));
    in.now = now; /* of a warm start too */
    in.max_time = 0.5;
    found_solve_in(&memory, &in, &out);
    printf("%s, %d, %d\\n", found_stop_word(out.stop), out.steps, out.x[0] == in.x0[0]);
    in = found_stored;
    memset(in.lam_x0, 0, sizeof in.lam_x0);
    memset(in.lam_g0, 0, sizeof in.lam_g0);
    in.of_solution = 0;
    in.max_iter = 3;
    found_solve_in(&memory, &in, &out);
    printf("%d %d\\n", out.status, out.steps);
    in.max_iter = 100;
    in.now = now;
    in.max_time = 20.0;
    found_solve_in(&memory, &in, &out);
    printf("%s\\n", found_stop_word(out.stop));
    in.max_time = 1e6;
    found_solve_in(&memory, &in, &out);
    printf("%s\\n", found_stop_word(out.stop));
"""
    lines = run(sanitized(searching, driver(tmp_path, "found", body))).splitlines()
    *words, warm, steps, time, done = lines
    assert words == [one.value for one in (*STOPS, *POINTS)]
    assert warm == f"{StopReason.TIME_LIMIT.value}, 0, 1"
    assert steps == f"{UNSOLVED} 3"
    assert (time, done) == (StopReason.TIME_LIMIT.value, StopReason.CONVERGED.value)


# --- files ----------------------------------------------------------------------------------------


CPP = """
#include "found.h"
static found_in in;
static found_out out;
int main() {
    in = found_stored;
    return found_solve(&in, &out);
}
"""


def test_cpp_calls_an_export(searching, tmp_path):
    command = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if command is None:
        pytest.skip("no C++ compiler on this machine")
    (tmp_path / "driver.cpp").write_text(CPP)
    strict = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffast-math")
    words = [*strict, f"-I{searching.folder}", "-c", "driver.cpp", "-o", "driver.o"]
    made = ended([command, *words], cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert b"\0found_solve\0" in (tmp_path / "driver.o").read_bytes()  # not mangled


def test_fast_math_is_refused(searching, compiler):
    words = ["-std=c99", "-ffast-math", "-c", "core/sqp.c", "-o", os.devnull]
    done = ended([compiler, *words], cwd=searching.folder)
    assert done.returncode
    assert "-ffast-math" in done.stderr


def test_folders_hold_one_portable_core(rows, searching):
    core, other = ({*(export.folder / "core").iterdir()} for export in (rows, searching))
    assert {file.name for file in core} == {file.name for file in other}
    lines = [line for file in core for line in file.read_text().splitlines()]
    included = {line.split()[1] for line in lines if line.startswith("#include <")}
    assert included == {f"<{header}>" for header in HEADERS}
    assert 3 * rows.memory < searching.memory < 10 * rows.memory
    assert (rows.folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_command_of_readme_compiles(compiler, tmp_path):
    """Under any name: main.c and replay.c stand beside its files."""
    x = ca.SX.sym("x")
    nlpsol("r", "hybrid", {"x": x, "f": (x - 1) ** 2}).export(tmp_path, cold=False)
    page = (tmp_path / "README.md").read_text().replace("\\\n", " ")
    command = next(line.strip() for line in page.splitlines() if line.startswith("    cc "))
    done = ended(f"{compiler}{command[2:]} && ./example", shell=True, cwd=tmp_path)
    assert not done.returncode, done.stderr
    assert "status 0" in done.stdout


def test_tables_do_not_leak_memory(tmp_path):
    case, texts = van_der_pol(), set()
    for left in (1, 2):
        for size in range(100, 20_000, 50):
            np.full(size, left, np.int32)  # the next array of this size may lie here
        nlpsol("same", "hybrid", case.nlp).export(tmp_path, cold=False, **case.numbers)
        texts.add((tmp_path / "same_plan.c").read_text())
    assert len(texts) == 1


def test_versions_of_core_do_not_mix(rows, compiler, tmp_path, monkeypatch):
    """Two exports in one program share one core; a plan of another version does not link."""
    other = core_sources()
    other["sqp.c"] += "\n"
    monkeypatch.setattr("casadi_hybrid.core.export.core.core_sources", lambda: other)
    x = ca.SX.sym("x")
    newer = nlpsol("newer", "hybrid", {"x": x, "f": (x - 1) ** 2}).export(tmp_path, cold=False)
    files = [str(path) for path in tmp_path.glob("newer*.c")]
    for folder, links in ((rows.folder, False), (newer.folder, True)):
        core = (str(path) for path in (folder / "core").glob("*.c"))
        words = [compiler, "-std=c99", "-O0", f"-I{tmp_path}", tmp_path / "main.c", *files, *core]
        done = ended([*words, "-lm", "-o", "both"], cwd=tmp_path)
        assert (done.returncode == 0) == links
        assert ("hybrid_core_" in done.stderr) == (not links)


def test_older_core_is_replaced(rows, tmp_path):
    folder = shutil.copytree(rows.folder, tmp_path / "folder")
    (folder / "core" / "own.txt").write_text("mine")
    (folder / "core" / "older.c").write_text("int older;")
    solver = nlpsol("small", "hybrid", {"x": (x := ca.SX.sym("x")), "f": (x - 1) ** 2})
    solver.export(folder, x0=0, cold=False)
    left = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {*rows.files, "core/own.txt", "small.c"} <= left
    assert "core/older.c" not in left


# --- refusals and the command ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "2nd"}, "2nd"),
        ({"name": "m"}, "'m'"),  # a library of C
        ({"name": "test"}, "'test'"),  # which CMake would refuse, with its ctest
        ({"name": "hybrid_run"}, "hybrid_run"),
        ({"name": "arm__left"}, "arm__left"),
        ({"loops": True}, "repeats"),
        ({"ubg": -5.0, "lbg": -5.0}, "failed"),
        ({"loop": [{"lbx": 0.0}]}, "solve 1 of the loop"),
        ({"p": [1, 2, 3]}, "p has shape"),
        ({"q": 1}, "argument 'q'"),
    ],
)
def test_bad_exports_are_refused(tmp_path, change, message):
    nlp, arguments = corridor()
    with pytest.raises(InputError, match=message):
        nlpsol("refused", "hybrid", nlp).export(tmp_path / "out", **{**arguments, **change})
    assert not (tmp_path / "out").exists()
    learned = nlpsol("s", "hybrid", nlp, {"hessian_approximation": "limited-memory"})
    with pytest.raises(InputError, match="second derivatives"):
        learned.export(tmp_path, **arguments)


MODULE = """
import casadi as ca
x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}
"""
NUMBERS = "numbers = {'p': 1, 'lbg': 0, 'ubg': 1}"
PROBLEMS = """
def problem():
    return nlp, {"p": 1, "lbg": 0, "ubg": 1}, [{"p": 1.2}]
def alone():
    return {"x": x, "p": p, "f": ca.sumsqr(x - p)}
def unbounded():
    return nlp
"""


def test_command_writes_folders(tmp_path, capsys, monkeypatch):
    """From a file, from a module by name, and from names as ``verify`` reads them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODULE + PROBLEMS)
    (tmp_path / "plain.py").write_text(MODULE + NUMBERS)

    def export(place, out, *words):
        return main(["export", place, "--out", out, "--no-compare", *words])

    assert export("model.py", "a") == 0
    assert "problem_stop_word" in (tmp_path / "a" / "problem.h").read_text()
    (tmp_path / "a" / "problem_search.c").write_text("of an older version, which no more compiles")
    assert export("model.py", "a", "--warm-only") == 0
    assert "problem_stop_word" not in (tmp_path / "a" / "problem.h").read_text()
    assert not (tmp_path / "a" / "problem_search.c").exists()
    assert export("model.py:alone", "b", "--name", "small") == 0
    assert (tmp_path / "b" / "small_plan.c").is_file()
    assert export("model.py:unbounded", "c") == 2
    assert "numbers" in capsys.readouterr().err  # rows of g, and no bound
    assert export("plain.py", "d") == 0
    (tmp_path / "model.py").rename(tmp_path / "a_model_for_export.py")
    assert export("a_model_for_export:problem", "e") == 0
    assert sys.modules.pop("a_model_for_export")


def test_command_fails_for_other_answers(tmp_path, capsys, monkeypatch):
    (tmp_path / "model.py").write_text(MODULE + PROBLEMS)
    monkeypatch.setattr("casadi_hybrid.cli.embedded.CLOSE", -1.0)
    words = ["export", str(tmp_path / "model.py"), "--out", str(tmp_path / "a"), "--warm-only"]
    assert main(words) == 1
    assert "2 of 2" in capsys.readouterr().err


# --- other tools, where there are any -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("command", ["gcc", "clang", f"{sys.executable} -m ziglang cc"])
def test_compilers_agree(oscillator, rows, searching, command):
    words = command.split()
    if not shutil.which(words[0]) or (words[1:] and importlib.util.find_spec("ziglang") is None):
        pytest.skip("this compiler is not here")
    for export in (oscillator, rows, searching):
        compared = compare(export, compiler_of((*words,)))
        assert compared.solved[0] == compared.solved[1] == len(export.cases)
        assert compared.difference <= CLOSE
        assert compared.cold == (export.cold and (0, export.cold.answer.iterations))


CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(both C)
enable_testing()
add_subdirectory("{rows}" rows)
add_subdirectory("{vdp}" vdp)
add_executable(both main.c)
target_link_libraries(both rows vdp)
add_test(NAME both COMMAND both)
"""
BOTH = """
#include "vdp.h"
#include "rows.h"
int main(void) {
    static vdp_out a;
    static rows_out b;
    return vdp_solve(&vdp_stored, &a) + rows_solve(&rows_stored, &b);
}
"""


@pytest.mark.slow
def test_cmake_builds_two_exports(rows, oscillator, tmp_path):
    """Both in one program, which compiles the core once."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    (tmp_path / "main.c").write_text(BOTH)
    text = CMAKE.format(rows=rows.folder, vdp=oscillator.folder)
    (tmp_path / "CMakeLists.txt").write_text(text)
    for command in ("cmake -S . -B build", "cmake --build build", "ctest --test-dir build"):
        done = ended(command.split(), cwd=tmp_path)
        assert not done.returncode, done.stdout + done.stderr
    assert "out of 3" in done.stdout
