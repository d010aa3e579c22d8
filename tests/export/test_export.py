"""A solver as C99: it compiles without a warning, and answers what Python answers."""

import importlib.util
import os
import re
import shutil
import sys

import casadi as ca
import numpy as np
import pytest
from support.cases.core import corridor
from support.cases.watched import ended
from support.paths import ROOT

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.cli import main
from casadi_hybrid.core.export.compare import STRICT, compare, spoken
from casadi_hybrid.core.export.compare import run as run_in
from casadi_hybrid.core.export.core import core_sources, words_of
from casadi_hybrid.core.export.needs import HEADERS
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building.compiler import compiler_of
from casadi_hybrid.solver.solve import POINTS, STOPS
from casadi_hybrid.utils.status import StopReason

CLOSE = 1e-12
UNSOLVED = -1


def van_der_pol(N=12):
    """Multiple shooting of an oscillator, its stages mapped; (nlp, step, arguments)."""
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    slope = ca.Function("slope", [x, u], [ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0])])
    step = ca.Function("step", [x, u], [x + 0.2 * slope(x + 0.1 * slope(x, u), u)])
    X, U, p = ca.MX.sym("X", 2, N + 1), ca.MX.sym("U", 1, N), ca.MX.sym("p", 2)
    shot = step.map(N)(X[:, :-1], U) - X[:, 1:]
    nlp = {
        "x": ca.veccat(X, U), "p": p, "f": ca.sumsqr(X) + ca.sumsqr(U),
        "g": ca.vertcat(X[:, 0] - p, ca.vec(shot)),
    }  # fmt: skip
    at = np.r_[np.full(2 * N + 2, np.inf), np.full(N, 0.8)]
    return nlp, step, {"p": [0, 1], "lbx": -at, "ubx": at, "lbg": 0, "ubg": 0}


@pytest.fixture(scope="module")
def oscillator(tmp_path_factory):
    """A closed loop of 20 steps, exported."""
    nlp, step, arguments = van_der_pol()
    solver = nlpsol("vdp", "hybrid", nlp)
    controls = slice(2 * 13, 2 * 13 + 1)

    def loop():
        state = np.array([0.0, 1.0])
        for k in range(20):
            disturbance = 0.02 * np.array([np.sin(k), np.cos(2 * k)])
            state = step(state, solver.result.x[controls]).full().ravel() + disturbance
            yield {"p": state}

    return solver.export(tmp_path_factory.mktemp("vdp"), loop=loop(), loops=True, **arguments)


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
    source.write_text(
        f'''
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
'''
    )
    return source


def run(program, text=""):
    """What a program prints; a sanitizer's finding fails."""
    done = ended([str(program)], input=text)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def assert_answered(line, case):
    """A line of what was replayed is the answer of Python."""
    status, steps, *numbers = line.split()
    assert (int(status), int(steps)) == (0, case.answer.iterations)
    expected = np.concatenate(list(case.outputs().values()))
    np.testing.assert_allclose(np.array(numbers, float), expected, rtol=CLOSE, atol=CLOSE)


# --- what is exported answers as Python does -----------------------------------------------------


def test_a_closed_loop_answers_as_python_does(oscillator, compiler):
    assert all(case.answer.engine == "c" for case in oscillator.cases)
    compared = compare(oscillator, compiler_of((compiler,)))
    assert compared.solved == (21, 21)
    assert compared.cold == (0, oscillator.cold.answer.iterations)
    assert compared.difference <= CLOSE
    assert oscillator.looped
    assert "solved 21 of 21" in str(compared)
    assert str(oscillator.memory) in str(oscillator)


def test_every_kind_of_bound_under_the_sanitizers(rows, sanitized):
    found = run(sanitized(rows, rows.folder / "replay.c"), spoken(rows.cases)).splitlines()
    sets = set()
    for line, case in zip(found, rows.cases, strict=True):
        assert_answered(line, case)
        sets.add(tuple(np.sign(case.answer.lam_g)))
    assert len(sets) > 1  # the active rows have changed on the way
    assert "status 0" in run(sanitized(rows, rows.folder / "main.c"))


def test_what_cannot_be_solved_has_a_status(rows, sanitized):
    """Bounds of other kinds, numbers that are none, functions that are not defined."""
    inputs = rows.cases[0].inputs()
    given = [
        {**inputs, "lbx": np.full(5, -np.inf)},
        {**inputs, "ubg": np.full(7, np.inf)},
        {**inputs, "p": np.array([np.nan])},
        {**inputs, "lbx": inputs["ubx"] + 1},
        {**inputs, "x0": np.full(5, 1e3)},
        inputs,
    ]
    lines = (" ".join(map(repr, map(float, np.concatenate(list(one.values()))))) for one in given)
    found = run(sanitized(rows, rows.folder / "replay.c"), "\n".join(lines)).splitlines()
    expected = ["OTHER_PATTERN", "OTHER_PATTERN", "BAD_NUMBERS", "BAD_NUMBERS", "UNDEFINED"]
    statuses = [getattr(C, f"HYBRID_{word}") for word in expected]
    assert [int(line.split()[0]) for line in found] == [*statuses, 0]


def test_memory_that_is_handed_in(rows, sanitized, tmp_path):
    """Two solves in one memory, a start without multipliers, and the sizes that were said."""
    source = driver(
        tmp_path, "rows", """
    printf("%d %d %d\\n", (int)sizeof memory, (int)sizeof in, (int)sizeof out);
    printf("%d\\n", rows_solve_in(&memory, &in, &out));
    rows_next(&in, &out);
    in.p[0] += 0.1;
    printf("%d %d\\n", rows_solve_in(&memory, &in, &out), out.steps > 0);
    memset(in.lam_x0, 0, sizeof in.lam_x0);
    memset(in.lam_g0, 0, sizeof in.lam_g0);
    in.of_solution = 0;
    printf("%s\\n", rows_word(rows_solve_in(&memory, &in, &out)));
    printf("%s\\n", rows_word(-1));
""",
    )  # fmt: skip
    sizes, first, second, cold, none = run(sanitized(rows, source)).splitlines()
    assert [int(size) for size in sizes.split()] == [rows.memory, rows.input, rows.output]
    assert (first, second) == ("0", "0 1")
    assert cold == "there is no warm start"
    assert none == "no status of this solver"


def test_a_solution_at_which_nothing_is_active(sanitized, tmp_path):
    """All multipliers are zero there, which is no start without multipliers."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    solver = nlpsol("s", "hybrid", {"x": x, "p": p, "f": ca.sumsqr(x - p) + x[0] ** 4})
    export = solver.export(tmp_path, "free", p=1.0, loop=[{"p": 2.0}, {"p": 2.5}])
    found = run(sanitized(export, tmp_path / "replay.c"), spoken(export.cases)).splitlines()
    for line, case in zip(found, export.cases, strict=True):
        assert not case.lam_x0.any()
        assert_answered(line, case)


# --- the search from any start -------------------------------------------------------------------


def test_limits_of_the_search(searching, sanitized, tmp_path):
    """Of steps, and of seconds by a clock that the user hands in."""
    source = driver(
        tmp_path, "found", """
    printf("%d %d %d\\n", (int)sizeof memory, (int)sizeof in, (int)sizeof out);
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
""",
    )  # fmt: skip
    sizes, warm, steps, time, done = run(sanitized(searching, source)).splitlines()
    written = searching.memory, searching.input, searching.output
    assert tuple(map(int, sizes.split())) == written
    assert warm == f"{StopReason.TIME_LIMIT.value}, 0, 1"
    assert steps == f"{UNSOLVED} 3"
    assert (time, done) == (StopReason.TIME_LIMIT.value, StopReason.CONVERGED.value)


def test_at_a_limit_the_best_point_of_all_runs_comes_back(searching, sanitized, tmp_path):
    """Of wrong multipliers; the last run may have no step left, and knows x0 alone."""
    source = driver(
        tmp_path, "found", """
    static const double wrong[] = {50.0, -50.0, 50.0, 50.0, 1.0, 0.0, -1e3};
    int i, most, status;
    for (i = 0; i < FOUND_N_X; i++) in.x0[i] = 2.5, in.lam_x0[i] = 9.0;
    for (i = 0; i < FOUND_N_G; i++) in.lam_g0[i] = wrong[i];
    for (most = 0, status = -1; status && most < 60; most++) {
        in.max_iter = most;
        status = found_solve(&in, &out);
        printf("%d %.17g\\n", status, out.feasibility);
    }
    in.now = now;
    for (most = 0, status = -1; status && most < 600; most++) {
        in.max_time = most + 0.5;
        status = found_solve(&in, &out);
        printf("%d %.17g\\n", status, out.feasibility);
    }
""",
    )  # fmt: skip
    found = np.loadtxt(run(sanitized(searching, source)).splitlines())
    for solves in np.split(found, np.flatnonzero(found[:, 0] == 0)[:1] + 1):
        assert solves[-1, 0] == 0
        assert (solves[:-1, 0] == UNSOLVED).all()
        within = solves[:, 1] <= 1e-6  # of more steps more was seen
        assert 1 <= np.argmax(within) < len(solves) // 2
        assert (np.diff(within.astype(int)) >= 0).all()


def test_a_program_in_another_language_calls_it(rows, searching, tmp_path):
    command = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if command is None:
        pytest.skip("no C++ compiler on this machine")
    strict = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffast-math")
    for export in (rows, searching):  # the warm mode alone, and with the cold mode
        name = export.name
        (tmp_path / "driver.cpp").write_text(
            f"""
#include <cstdio>
#include "{name}.h"
static {name}_in in;
static {name}_out out;
int main() {{
    in = {name}_stored;
    std::printf("%d\\n", {name}_solve(&in, &out));
    return 0;
}}
"""
        )
        words = [*strict, f"-I{export.folder}", "-c", "driver.cpp", "-o", f"{name}.o"]
        made = ended([command, *words], cwd=tmp_path)
        assert (made.returncode, made.stderr) == (0, "")
        symbols = (tmp_path / f"{name}.o").read_bytes()
        assert f"{name}_solve".encode() in symbols
        assert f"_Z{len(name) + 6}{name}_solve".encode() not in symbols


def test_options_without_infinity_are_refused(searching, compiler):
    words = ["-std=c99", "-ffast-math", "-c", "core/sqp.c", "-o", os.devnull]
    done = ended([compiler, *words], cwd=searching.folder)
    assert done.returncode
    assert "compile it without -ffast-math" in done.stderr


# --- what is written -----------------------------------------------------------------------------


def test_the_core_needs_three_headers_alone(rows, searching):
    core, other = ({*(export.folder / "core").iterdir()} for export in (rows, searching))
    assert {file.name for file in core} == {file.name for file in other}
    text = "".join(file.read_text() for file in core)
    assert {*re.findall(r"^#include <([^>]+)>", text, re.MULTILINE)} == {*HEADERS}


def test_every_status_has_a_word_that_python_has():
    warm, whole = (words_of("A_", cold=cold) for cold in (False, True))
    assert warm["status_table"].count("\n") == 8
    assert "`A_UNSOLVED` -1" in whole["status_table"]
    for enumeration, words in ((STOPS, whole["stop_cases"]), (POINTS, whole["point_cases"])):
        said = [f'    case {k}: return "{one.value}";' for k, one in enumerate(enumeration)]
        assert words.splitlines() == said


def test_the_tables_have_nothing_of_what_was_in_memory(tmp_path):
    nlp, _, arguments = van_der_pol()
    texts = set()
    for left in (1, 2):
        for size in range(100, 20_000, 50):
            np.full(size, left, np.int32)  # what the next array of this size may lie in
        nlpsol("same", "hybrid", nlp).export(tmp_path, cold=False, **arguments)
        texts.add((tmp_path / "same_plan.c").read_text())
    assert len(texts) == 1


def test_the_license_is_that_of_the_project(rows):
    assert (rows.folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_search_costs_memory(rows, searching):
    assert 3 * rows.memory < searching.memory < 10 * rows.memory
    assert "STOP_UNBOUNDED" in (searching.folder / "found.h").read_text()
    assert "STOP_UNBOUNDED" not in (rows.folder / "rows.h").read_text()
    assert ("warm and cold" in str(searching), "alone" in str(rows)) == (True, True)


def test_it_does_not_link_with_the_core_of_another_version(rows, compiler, tmp_path, monkeypatch):
    """Whose plan may have other places: two exports in one program share one core."""
    other = core_sources()
    other["sqp.c"] += "\n"
    monkeypatch.setattr("casadi_hybrid.core.export.core.core_sources", lambda: other)
    x = ca.SX.sym("x")
    newer = nlpsol("newer", "hybrid", {"x": x, "f": (x - 1) ** 2}).export(tmp_path, cold=False)
    own = [str(path) for path in tmp_path.glob("newer*.c")]
    for folder, links in ((rows.folder, False), (newer.folder, True)):
        core = (str(path) for path in (folder / "core").glob("*.c"))
        words = [compiler, "-std=c99", "-O0", f"-I{tmp_path}", tmp_path / "main.c", *own, *core]
        done = ended([*words, "-lm", "-o", "both"], cwd=tmp_path)
        assert (done.returncode == 0) == links
        assert ("hybrid_core_" in done.stderr) == (not links)


def test_the_command_of_the_page_compiles_it(compiler, tmp_path):
    """Whatever the name: there are main.c and replay.c beside its files."""
    x = ca.SX.sym("x")
    export = nlpsol("r", "hybrid", {"x": x, "f": (x - 1) ** 2}).export(tmp_path, cold=False)
    page = (tmp_path / "README.md").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^    cc (.*)", page, re.MULTILINE)
    command = f"{compiler} {command} && ./example"
    done = ended(command, shell=True, cwd=export.folder)
    assert not done.returncode, done.stderr
    assert "status 0" in done.stdout


@pytest.mark.parametrize("which", ["rows", "searching"])
def test_files_hold_what_the_page_lists(which, request):
    rows = request.getfixturevalue(which)
    page = (rows.folder / "README.md").read_text()
    for file in {*rows.files} - {"CMakeLists.txt", "README.md"}:
        assert f"`{file}`" in page or file.startswith("core/")
    assert "@" not in "".join(
        (rows.folder / f).read_text()
        for f in ("README.md", "CMakeLists.txt", f"{rows.name}.h", f"{rows.name}.c")
    )
    assert "4 free variables and 1 fixed ones, 1 equations, 5 inequalities and 1 rows" in page


def test_an_older_core_is_replaced(rows, tmp_path):
    """The command on the page compiles ``core/*.c``, which is of one version."""
    folder = shutil.copytree(rows.folder, tmp_path / "folder")
    (folder / "core" / "own.txt").write_text("mine")
    (folder / "core" / "older.c").write_text("int older;")
    solver = nlpsol("small", "hybrid", {"x": (x := ca.SX.sym("x")), "f": (x - 1) ** 2})
    solver.export(folder, x0=0, cold=False)
    left = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {*rows.files, "core/own.txt", "small.c"} <= left
    assert "core/older.c" not in left


def test_straight_code_and_loops(oscillator, tmp_path):
    nlp, _, arguments = van_der_pol(3)
    straight = nlpsol("few", "hybrid", nlp).export(tmp_path, **arguments)
    assert not straight.looped  # few operations
    nlp, _, arguments = van_der_pol(60)
    looped = nlpsol("many", "hybrid", nlp).export(tmp_path, **arguments)
    assert looped.looped

    def lines(export):
        return (export.folder / f"{export.name}_functions.c").read_text().count("\n")

    # Of five times as many stages only the patterns are longer.
    assert lines(looped) < 3 * lines(oscillator)


@pytest.mark.pages
def test_the_page_says_what_works(tmp_path, monkeypatch, capsys):
    """Its Python writes a folder, and its C uses names that are there."""
    page = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/embedded.md", "exec"), names)
    assert "memory of a solve" in capsys.readouterr().out
    for c, word, folder in zip(
        re.findall(r"```c\n(.*?)```", page, re.DOTALL), ("lift", "oscillator"),
        ("lift", "embedded"), strict=True,
    ):  # fmt: skip
        used = re.sub("#include.*", "", c)
        header = "".join(path.read_text() for path in (tmp_path / folder).glob("*.h"))
        for name in re.findall(rf"\b(?:{word}|{word.upper()})_\w+", used):
            assert re.search(rf"\b{name}\b", header), name


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "2nd"}, "name is '2nd'"),
        ({"name": "m"}, "name is 'm', which C, one of its libraries"),
        ({"name": "test"}, "name is 'test'"),  # which CMake would refuse, with its ctest
        ({"name": "hybrid_run"}, "name is 'hybrid_run'"),
        ({"name": "arm__left"}, "name is 'arm__left'"),
        ({"loops": True}, "too little of the problem repeats"),
        ({"ubg": -5.0, "lbg": -5.0}, "failed, and an export stores solutions"),
        ({"loop": [{"lbx": 0.0}]}, "solve 1 of the loop has bounds of other kinds"),
        ({"p": [1, 2, 3]}, "p has shape"),
        ({"q": 1}, "unknown argument 'q'"),
    ],
)
def test_refusals(tmp_path, change, message):
    nlp, arguments = corridor()
    with pytest.raises(InputError, match=message):
        nlpsol("refused", "hybrid", nlp).export(tmp_path / "out", **{**arguments, **change})
    assert not (tmp_path / "out").exists()


def test_a_problem_without_second_derivatives_is_refused(tmp_path):
    nlp, arguments = corridor()
    solver = nlpsol("s", "hybrid", nlp, {"hessian_approximation": "limited-memory"})
    with pytest.raises(InputError, match="second derivatives are needed"):
        solver.export(tmp_path, **arguments)


# --- the command ---------------------------------------------------------------------------------

MODULE = """
import casadi as ca
x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}
def problem():
    return nlp, {"p": 1, "lbg": 0, "ubg": 1}, [{"p": 1.2}]
def alone():
    return {"x": x, "p": p, "f": ca.sumsqr(x - p)}
def unbounded():
    return nlp
"""


def test_the_command_writes_a_folder(tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODULE)
    place = str(tmp_path / "model.py")
    assert main(["export", place, "--out", str(tmp_path / "a"), "--no-compare"]) == 0
    assert "problem_stop_word" in (tmp_path / "a" / "problem.h").read_text()
    (tmp_path / "a" / "problem_search.c").write_text("of an older version, which no more compiles")
    assert "memory of a solve" in capsys.readouterr().out
    assert main(["export", place, "--out", str(tmp_path / "a"), "--no-compare", "--warm-only"]) == 0
    assert (tmp_path / "a" / "problem.h").is_file()
    assert not (tmp_path / "a" / "problem_search.c").exists()
    words = ["export", f"{place}:alone", "--out", str(tmp_path / "b"), "--name", "small"]
    assert main([*words, "--no-compare"]) == 0
    assert (tmp_path / "b" / "small_plan.c").is_file()
    capsys.readouterr()
    assert main(["export", f"{place}:unbounded", "--out", str(tmp_path / "c"), "--no-compare"]) == 2
    assert "was given no numbers of one" in capsys.readouterr().err  # rows of g, and no bound
    beside = "numbers = {'p': 1, 'lbg': 0, 'ubg': 1}\n"  # as `verify` reads them
    (tmp_path / "plain.py").write_text(MODULE.partition("def")[0] + beside)
    words = ["export", str(tmp_path / "plain.py"), "--out", str(tmp_path / "d"), "--no-compare"]
    assert main(words) == 0


def test_the_command_says_why_it_fails(tmp_path, capsys, monkeypatch):
    (tmp_path / "model.py").write_text(MODULE)
    monkeypatch.setattr("casadi_hybrid.cli.embedded.CLOSE", -1.0)
    words = ["export", str(tmp_path / "model.py"), "--out", str(tmp_path / "a"), "--warm-only"]
    assert main(words) == 1
    assert "C does not answer as Python does: it solved 2 of 2" in capsys.readouterr().err


def test_the_command_takes_a_module(tmp_path, monkeypatch):
    (tmp_path / "a_model_for_export.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "a_model_for_export:problem", "--out", "out", "--no-compare"]) == 0
    assert (tmp_path / "out" / "problem.c").is_file()
    assert sys.modules.pop("a_model_for_export")


# --- other tools, where there are any ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("which", ["gcc", "clang", "zig"])
def test_compilers(oscillator, rows, searching, which):
    if which == "zig":
        if importlib.util.find_spec("ziglang") is None:
            pytest.skip("there is no wheel ziglang")
        found = compiler_of((sys.executable, "-m", "ziglang", "cc"))
    elif shutil.which(which):
        found = compiler_of((which,))
    else:
        pytest.skip(f"there is no {which}")
    for export in (oscillator, rows, searching):
        compared = compare(export, found)
        assert compared.solved[0] == compared.solved[1] == len(export.cases)
        assert compared.difference <= CLOSE
        assert compared.cold == (export.cold and (0, export.cold.answer.iterations))


@pytest.mark.slow
def test_valgrind(searching, compiler, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    sources = [file for file in searching.files if file.endswith(".c") and file != "main.c"]
    program = str(tmp_path / "replay")
    run_in([compiler, *STRICT, *sources, "-lm", "-o", program], searching.folder)
    words = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program]
    done = ended(words, input=spoken(searching.solves))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_cmake(rows, oscillator, tmp_path):
    """Both in one program, which compiles the core once."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    (tmp_path / "main.c").write_text(
        '#include "vdp.h"\n#include "rows.h"\nint main(void) {\n'
        "    static vdp_out a;\n    static rows_out b;\n"
        "    return vdp_solve(&vdp_stored, &a) + rows_solve(&rows_stored, &b);\n}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(both C)\nenable_testing()\n"
        f'add_subdirectory("{rows.folder}" rows)\nadd_subdirectory("{oscillator.folder}" vdp)\n'
        "add_executable(both main.c)\ntarget_link_libraries(both rows vdp)\n"
        "add_test(NAME both COMMAND both)\n"
    )
    environment = {**os.environ, "CTEST_OUTPUT_ON_FAILURE": "1"}
    build = tmp_path / "build"
    build.mkdir()
    for words in (["cmake", "-S", str(tmp_path), "-B", "."], ["cmake", "--build", "."], ["ctest"]):
        done = ended(words, cwd=build, env=environment)
        assert not done.returncode, done.stdout + done.stderr
    assert "3 tests passed" in done.stdout or "0 tests failed out of 3" in done.stdout
