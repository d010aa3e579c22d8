"""The core in C is built once, kept safely, and done without where it cannot be had."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import InputError, Problem, Solver, doctor
from casadi_hybrid.barrier import newton
from casadi_hybrid.basics.errors import CacheWarning, CompilerWarning
from casadi_hybrid.casadi_api.stored import text as stored
from casadi_hybrid.cli import main
from casadi_hybrid.engine import constants, library
from casadi_hybrid.engine.building import build, cache
from casadi_hybrid.engine.building import compiler as compilers
from casadi_hybrid.engine.building.build import Sources, key_of, load
from casadi_hybrid.engine.building.compiler import BuildError, Compiler, compiler_of
from casadi_hybrid.engine.building.processor import Processor, processor
from casadi_hybrid.engine.library import engine, engine_status
from casadi_hybrid.engine.self_test import self_test

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no core on Windows")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A process that has built nothing yet, with a cache of its own."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv(library.VARIABLE, raising=False)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    # A compiler that the tests' environment happens to have is not found.
    monkeypatch.setattr(compilers, "WHEEL", "casadi_hybrid_no_such_wheel")
    monkeypatch.setattr(library, "_core", library._Core())
    # Nothing here is about speed, and many of these tests build the core anew.
    plain = ("-O0" if flag == "-O3" else flag for flag in compilers.FLAGS)
    monkeypatch.setattr(compilers, "FLAGS", tuple(plain))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # nothing stays where tests are killed
    cache.private_folder.cache_clear()
    yield tmp_path / "cache"
    cache.private_folder.cache_clear()


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def answer(number=42, flags=()):
    """A library of one function."""
    header = "#pragma once\nint answer(void);\n"
    text = f'#include "answer.h"\nint answer(void) {{ return {number}; }}\n'
    return Sources("answer", {"answer.c": text, "answer.h": header}, flags)


def script(path, text):
    """A program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- the cache -----------------------------------------------------------------------------------


def test_a_library_is_built_once(compiler, folder):
    loaded, first = load(answer())
    assert loaded.answer() == 42
    assert not first.cached
    assert first.seconds > 0
    assert first.notes == ()
    again = build.library(answer())
    assert again == replace(first, cached=True)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert first.path.is_relative_to(folder)
    assert leftovers(folder) == []
    assert load(answer(43))[0].answer() == 43


def cut_short(entry):
    (file,) = entry.glob("answer.[sd]*")
    file.write_bytes(file.read_bytes()[:1000])


@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        lambda entry: (entry / "record.json").write_text("{"),
        lambda entry: (entry / "record.json").write_text("[]"),
        lambda entry: (entry / "record.json").unlink(),
        lambda entry: entry.chmod(0o777),
        lambda entry: [path.unlink() for path in entry.iterdir()],
    ],
)
def test_a_damaged_entry_is_rebuilt(compiler, folder, damage):
    first = build.library(answer())
    damage(first.path.parent)
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert not found.cached
    assert found.path == first.path
    assert build.library(answer()).cached
    assert leftovers(folder) == []


def test_others_may_write_to_the_cache(compiler, folder):
    folder.mkdir()
    folder.chmod(0o777)
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert list(folder.iterdir()) == []
    (note,) = found.notes
    assert str(folder) in note
    assert "0777" in note
    assert "for this process alone" in note
    assert build.library(answer()).cached  # within this process


def test_a_folder_above_the_cache_is_open_to_all(compiler, folder):
    folder.mkdir(mode=0o700)
    folder.parent.chmod(0o777)
    assert "everyone may write" in build.library(answer()).notes[0]
    assert list(folder.iterdir()) == []


def test_the_cache_belongs_to_another(compiler, folder, monkeypatch):
    folder.mkdir(mode=0o700)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert f"belongs to user {me}, not to this one ({me + 1})" in found.notes[0]
    assert list(folder.iterdir()) == []


def test_sudo_does_not_make_folders_in_a_home(tmp_path, monkeypatch):
    """With the HOME of another user the superuser's folder would lock that user out."""
    (tmp_path / "home").mkdir()
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    real = Path.stat

    def stat(path, **options):
        found = list(real(path, **options))
        found[4] = 12345
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    folder, why = cache.own_folder()
    assert folder is None
    assert "belongs to another user" in why
    monkeypatch.undo()
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("home", ["file", "closed"])
def test_a_home_that_takes_no_folder(compiler, tmp_path, monkeypatch, home):
    place = tmp_path / home
    if home == "file":
        place.write_text("")
    elif os.geteuid() == 0:
        place = Path("/proc/self")  # closed even to the superuser
    else:
        place.mkdir(mode=0o500)
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(place))
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert "cannot be made" in found.notes[0]


def test_a_full_cache_that_can_only_be_read(compiler, folder, monkeypatch):
    build.library(answer())

    def refuse(*args, dir=None, prefix="", real=cache.tempfile.mkdtemp):
        if dir == folder:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(dir=dir, prefix=prefix)

    monkeypatch.setattr(cache.tempfile, "mkdtemp", refuse)
    found = build.library(answer())
    assert found.cached
    assert found.notes == ()
    loaded, found = load(answer(43))
    assert loaded.answer() == 43
    assert "cannot be written to (Read-only file system)" in found.notes[0]


def test_no_folder_for_temporary_files_either(compiler, folder, monkeypatch):
    folder.write_text("")

    def refuse(*args, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.tempfile, "mkdtemp", refuse)
    with pytest.raises(BuildError, match="No space left on device"):
        build.library(answer())


def test_a_library_that_the_disk_does_not_let_run(compiler, folder, monkeypatch):
    real = ctypes.CDLL

    def refuse(path, *args):
        if Path(path).is_relative_to(folder):
            raise OSError("failed to map segment from shared object")
        return real(path, *args)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert "failed to map segment" in found.notes[0]


def test_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv(cache.VARIABLE, "~/elsewhere")
    assert cache.default_folder() == Path("/home/ann/elsewhere")
    monkeypatch.setenv(cache.VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.default_folder() == Path("/caches/casadi_hybrid")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache.default_folder() == Path("/home/ann/.cache/casadi_hybrid")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.default_folder() == Path("/home/ann/Library/Caches/casadi_hybrid")


def test_what_was_left_behind_and_what_nobody_uses_is_removed(compiler, folder):
    old = build.library(answer()).path.parent
    for name in (".work-old", ".work-young"):
        (folder / name).mkdir()
    long_ago = time.time() - 100 * 86400
    for path in (old, folder / ".work-old"):
        os.utime(path, (long_ago, long_ago))
    kept = build.library(answer(43)).path.parent
    assert sorted(folder.iterdir()) == [folder / ".work-young", kept]


# The whole package would take a second to import.
PROCESS = """
import sys, time, types
from pathlib import Path
sys.modules["casadi_hybrid"] = package = types.ModuleType("casadi_hybrid")
folder, start, *package.__path__ = map(Path, sys.argv[1:])
package.__path__ = [str(path) for path in package.__path__]
from casadi_hybrid.engine.building.build import Sources, load
print("ready", flush=True)
while not start.exists():
    time.sleep(0.001)
loaded, found = load(Sources("answer", {"answer.c": "int answer(void) { return 42; }"}))
print(loaded.answer(), found.path.is_relative_to(folder), found.notes, flush=True)
"""


def processes(number, folder, start, **variables):
    """Python processes that have imported what builds and wait for ``start`` to be there."""
    command = [sys.executable, "-c", PROCESS, str(folder), str(start)]
    command.append(str(Path(library.__file__).parents[1]))
    environment = {**os.environ, **variables}
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(number)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    start.touch()
    return started


def test_two_processes_at_once(compiler, folder, tmp_path):
    started = processes(2, folder, tmp_path / "start")
    assert [process.communicate()[0] for process in started] == ["42 True ()\n"] * 2
    (entry,) = folder.iterdir()
    assert sorted(path.suffix for path in entry.iterdir()) == [".json", compilers.suffix()]


def test_a_process_that_is_killed_while_it_builds(compiler, folder, tmp_path):
    """Its compiler has written half of a library by then."""
    slow = script(
        tmp_path / "slow",
        f'case "$*" in *-v) echo "slow version 1";; *) {compiler} "$@"; '
        "for file in answer.*; do case $file in *.c) ;; *) head -c 900 $file > half; "
        f"mv half $file;; esac; done; touch {tmp_path}/half; sleep 60;; esac",
    )
    (process,) = processes(1, folder, tmp_path / "start", CC=slow)
    while not (tmp_path / "half").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert len(leftovers(folder)) == len(list(folder.iterdir())) == 1
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert not found.cached


# --- compilers -----------------------------------------------------------------------------------


def test_without_a_compiler_everything_works(no_compiler, folder):
    with pytest.raises(BuildError, match=r"no C compiler was found.*casadi_hybrid\[compiler\]"):
        build.library(answer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine() is None
    status = engine_status()
    assert not status.available
    assert status.path is None
    assert str(status).startswith("Python: no C compiler was found")
    assert "\n" not in str(status)
    x = ca.SX.sym("x")
    assert Solver(Problem(x=x, f=(x - 1) ** 2, lbx=2)).solve([3]).x == pytest.approx(2)


def test_who_compiles_in_every_process_is_told_once(compiler, folder):
    folder.mkdir()
    folder.chmod(0o777)
    said = rf"anew in every process.*{folder}.*0777.*CASADI_HYBRID_CACHE may name"
    with pytest.warns(CacheWarning, match=said):
        assert engine() is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine() is not None


def processor_with(*features):
    return lambda: replace(processor(), features=features)


@pytest.fixture
def built(compiler, tmp_path, monkeypatch):
    """What a compiler built that is there no more, on a processor with two instructions."""
    monkeypatch.setattr(build, "processor", processor_with("one", "two"))
    found = build.library(answer())
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return found


def test_without_a_compiler_what_one_built_before_serves(built, monkeypatch):
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert found == replace(built, cached=True)
    monkeypatch.setattr(build, "processor", processor_with("three", "two", "one"))
    assert build.library(answer()).path == built.path
    monkeypatch.setenv("CC", "/no/such/cc")
    (note,) = build.library(answer()).notes
    assert "/no/such/cc" in note


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, entry: patch.setattr(build, "processor", processor_with("one", "three")),
        lambda patch, entry: patch.setattr(build, "_c_library", lambda: "glibc 1.0"),
        lambda patch, entry: patch.setattr(ca.CasadiMeta, "version", staticmethod(lambda: "99.0")),
        lambda patch, entry: patch.setattr(compilers, "FLAGS", ("-O1",)),
        lambda patch, entry: cut_short(entry),
        lambda patch, entry: entry.chmod(0o777),
        lambda patch, entry: entry.parent.chmod(0o777),
        lambda patch, entry: (entry / "record.json").write_text("[]"),
    ],
)
def test_what_was_built_for_something_else_does_not_serve(built, monkeypatch, change):
    change(monkeypatch, built.path.parent)
    with pytest.raises(BuildError, match="no C compiler was found"):
        build.library(answer())


def test_other_sources_or_flags_are_another_library(built):
    for sources in (answer(43), answer(flags=("-O1",)), replace(answer(), name="other")):
        with pytest.raises(BuildError, match="no C compiler was found"):
            build.library(sources)


def test_what_nobody_knows_the_processor_of_does_not_serve(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "processor", processor_with())
    build.library(answer())
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match="no C compiler was found"):
        build.library(answer())


def test_what_options_of_the_users_made_does_not_serve(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", f"{compiler} -ffast-math")
    build.library(answer())
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match="no C compiler was found"):
        build.library(answer())


def test_the_one_used_last_serves(compiler, tmp_path, monkeypatch):
    paths = []
    for number in (1, 2):
        mine = script(tmp_path / f"mine{number}", f'exec {compiler} "$@"')
        monkeypatch.setenv("CC", mine)
        paths.append(build.library(answer()).path)
        os.utime(paths[-1].parent, (time.time() + number, time.time() + number))
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert paths[0] != paths[1]
    assert build.library(answer()).path == paths[1]


def test_a_container_built_with_a_compiler_and_run_without(compiler, tmp_path, capsys, monkeypatch):
    assert engine() is not None
    monkeypatch.setattr(library, "_core", library._Core())
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    rows = dict(line.split(maxsplit=1) for line in said.splitlines() if "  " in line)
    assert rows["compiler"] == "none"
    assert rows["engine"].startswith("C, from the cache")
    assert rows["self-test"] == "passed"


def test_who_asks_for_c_is_warned_once(no_compiler, monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "c")
    with pytest.warns(CompilerWarning, match="no C compiler was found.*the same results"):
        assert engine() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine() is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("exit 1", "does not answer as a C compiler"),
        ("echo no version here", "does not answer as a C compiler"),
        (None, "cannot be run"),
        ('test "$1" = -v && echo odd version 1', "cannot compile answer"),
        ('test "$1" = -v && echo odd version 1 || kill -9 $$', "ended by signal 9"),
        ('test "$1" = -v && echo odd version 1 || touch "$0"', "cannot compile answer"),
    ],
)
def test_a_cc_that_fails_gives_way(compiler, tmp_path, monkeypatch, given, why):
    path = tmp_path / "odd"
    monkeypatch.setenv("CC", str(path) if given is None else script(path, given))
    loaded, found = load(answer())
    assert loaded.answer() == 42
    (note,) = found.notes
    assert str(path) in note
    assert why in note
    assert str(path) not in found.compiler


def test_a_cc_that_fails_alone(no_compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", script(tmp_path / "odd", "exit 1"))
    with pytest.raises(BuildError, match=r"odd \(the env.* CC\) does not answer.*no C compiler"):
        build.library(answer())
    monkeypatch.setenv("CC", "'unfinished")
    with pytest.raises(BuildError, match="'unfinished"):
        build.library(answer())


def test_cc_comes_first_and_may_have_options(compiler, tmp_path, monkeypatch):
    mine = script(tmp_path / "mine", f'echo "$@" >> {tmp_path}/log; exec {compiler} "$@"')
    monkeypatch.setenv("CC", f"{mine} -DSOMETHING")
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert found.compiler.endswith(f"({mine} -DSOMETHING)")
    asked, built = (tmp_path / "log").read_text().splitlines()
    assert asked == "-DSOMETHING -v"
    assert {"-DSOMETHING", "-std=c99", "-ffp-contract=off"} <= set(built.split())
    assert set(compilers.FLAGS) <= set(built.split())
    assert "-march=native" not in built
    assert ("-mavx" in built.split()) == ("avx" in processor().features)


def test_the_compiler_of_the_wheel_comes_last(compiler, tmp_path, monkeypatch):
    name = "casadi_hybrid_wheel_of_tests"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "__main__.py").write_text(
        "import os, sys\n"
        "assert sys.argv[1] == 'cc' and '-mcpu=baseline' in sys.argv\n"
        "assert os.path.dirname(os.environ['ZIG_GLOBAL_CACHE_DIR']) == os.environ['WHERE']\n"
        f"words = [w for w in sys.argv[2:] if not w.startswith('-mcpu')]\n"
        f"os.environ['PATH'] = {os.environ['PATH']!r}\n"
        f"os.execv({compiler!r}, [{compiler!r}, *words])\n"
    )
    (tmp_path / f"{name}-1.2.dist-info").mkdir()
    (tmp_path / f"{name}-1.2.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2\n")
    monkeypatch.setattr(compilers, "WHEEL", name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("WHERE", str(cache.default_folder()))
    assert list(compilers.commands())[-1] == (sys.executable, "-m", name, "cc")
    monkeypatch.setenv("PATH", "")
    loaded, found = load(answer())
    assert loaded.answer() == 42
    assert found.compiler.startswith(f"{name} version 1.2 (")


def test_a_compilation_that_takes_too_long(no_compiler, tmp_path, folder, monkeypatch):
    """The whole group of its processes ends, not only the first."""
    slow = f"echo $$ > {tmp_path}/pid; /bin/sleep 60"
    text = f'test "$1" = -v && echo slow version 1 || ({slow})'
    monkeypatch.setenv("CC", script(tmp_path / "slow", text))
    began = time.perf_counter()
    with pytest.raises(BuildError, match=r"slow did not end within 0\.3 s"):
        build.library(answer(), limit=0.3)
    assert time.perf_counter() - began < 30
    assert list(folder.iterdir()) == []
    group = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    else:
        pytest.fail("a process of the compiler lives on")


def test_an_error_in_the_source_is_one_sentence(compiler, folder):
    wrong = Sources("wrong", {"wrong.c": "int f(void) { return nonsense; }"})
    with pytest.raises(BuildError) as caught:
        build.library(wrong)
    said = str(caught.value)
    assert "cannot compile wrong: wrong.c:1" in said
    assert "nonsense" in said
    assert "\n" not in said
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../up.c", "/etc/up.c", ".hidden.c", "-o.c"])
def test_names_that_are_none_of_a_file_here(name):
    with pytest.raises(InputError, match="no plain name"):
        Sources("fine", {name: ""})
    with pytest.raises(InputError, match="no plain name"):
        Sources(name, {"fine.c": ""})
    with pytest.raises(InputError, match=r"no file whose name ends in \.c"):
        Sources("fine", {"fine.h": ""})


@pytest.mark.parametrize(
    ("machine", "features", "target", "wide"),
    [
        ("x86_64", ("avx", "avx2"), "x86_64-linux-gnu", True),
        ("x86_64", ("sse4_2",), "x86_64-linux-gnu", False),
        ("x86_64", (), "x86_64-linux-gnu", False),
        ("x86_64", ("avx",), "i686-linux-gnu", False),
        ("aarch64", ("asimd",), "aarch64-linux-gnu", False),
    ],
)
def test_instructions_that_the_processor_has(
    tmp_path, monkeypatch, machine, features, target, wide
):
    monkeypatch.setattr(compilers, "processor", lambda: Processor(machine, "", features))
    path = script(tmp_path / "odd", f'echo "Target: {target}\nodd version 1.0"')
    found = compiler_of((path,))
    assert found.version == "odd version 1.0"
    assert found.target == target
    assert ("-mavx" in found.flags) == wide


# --- the key -------------------------------------------------------------------------------------

HERE = Compiler(("/usr/bin/cc",), "gcc 1.0", "machine", ("-O3",))


def test_the_key_is_that_of_the_same_things():
    assert key_of(answer(), HERE) == key_of(answer(), replace(HERE))
    backwards = Sources("answer", dict(reversed(answer().files.items())))
    assert key_of(backwards, HERE) == key_of(answer(), HERE)


@pytest.mark.parametrize(
    ("sources", "by"),
    [
        (answer(43), HERE),
        (answer(flags=("-g",)), HERE),
        (Sources("other", answer().files), HERE),
        (Sources("answer", {**answer().files, "more.h": ""}), HERE),
        (answer(), replace(HERE, version="gcc 1.1")),
        (answer(), replace(HERE, target="other")),
        (answer(), replace(HERE, flags=("-O2",))),
        (answer(), replace(HERE, command=("/usr/bin/clang",))),
    ],
)
def test_the_key_changes_with_sources_and_compiler(sources, by):
    assert key_of(sources, by) != key_of(answer(), HERE)


def test_the_key_changes_with_the_machine_and_casadi(monkeypatch):
    keys = [key_of(answer(), HERE)]
    for features in (("avx",), ("avx", "fma")):
        monkeypatch.setattr(build, "processor", lambda f=features: Processor("x", "y", f))
        keys.append(key_of(answer(), HERE))
    monkeypatch.setattr(build, "_c_library", lambda: "glibc 1.0")
    keys.append(key_of(answer(), HERE))
    monkeypatch.setattr(ca.CasadiMeta, "version", staticmethod(lambda: "99.0"))
    keys.append(key_of(answer(), HERE))
    monkeypatch.setenv("CPATH", "/somewhere")
    keys.append(key_of(answer(), HERE))
    assert len(set(keys)) == len(keys)


# --- the core ------------------------------------------------------------------------------------


def test_the_core_is_clean_c99(compiler):
    strict = ("-O3", "-Wall", "-Wextra", "-Werror", "-pedantic")
    loaded, _ = load(replace(library.core_sources(), flags=strict))
    assert self_test(loaded) == ""
    load(replace(stored.SOURCES, flags=strict))


def test_every_constant_arrives_to_the_last_bit(compiler):
    scalars = {k: v for k, v in constants.constants().items() if not isinstance(v, tuple)}
    assert len(scalars) > 50
    listed = ", ".join(f"(double){name}" for name in scalars)
    text = '#include "constants.h"\nconst double remedies[][2] = HYBRID_POLISH_REMEDIES;\n'
    text += "const int count = HYBRID_POLISH_REMEDIES_COUNT;\n"
    text += f"const double listed[] = {{{listed}}};\n"
    loaded, _ = load(Sources("listed", {"listed.c": text, "constants.h": constants.header()}))
    found = (ctypes.c_double * len(scalars)).in_dll(loaded, "listed")
    assert dict(zip(scalars, found, strict=True)) == scalars
    remedies = constants.constants()["HYBRID_POLISH_REMEDIES"]
    assert ctypes.c_int.in_dll(loaded, "count").value == len(remedies)
    flat = (ctypes.c_double * (2 * len(remedies))).in_dll(loaded, "remedies")
    assert tuple(flat) == tuple(np.ravel(remedies))


def test_no_constant_is_there_in_vain():
    files = library.core_sources().files
    text = "\n".join(files[name] for name in files if name != "constants.h")
    used = set(re.findall(r"\bHYBRID_\w+", text))
    assert not [k for k in constants.constants() if not {k, f"{k}_COUNT"} & used]


def test_a_constant_that_vanishes_is_missed(monkeypatch):
    monkeypatch.delattr(newton, "_TINY_STEPS")
    with pytest.raises(AttributeError, match="_TINY_STEPS"):
        constants.header()


def test_the_committed_constants_are_those_of_the_python_code(monkeypatch):
    committed = library.core_sources().files["constants.h"]
    assert committed == constants.header(), "run python -m casadi_hybrid.engine.constants"
    monkeypatch.setattr(newton, "_TINY_STEPS", 4)
    assert "#define HYBRID_NEWTON_TINY_STEPS 4\n" in constants.header()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-2, "(-2)"),
        (True, "1"),
        (np.float64(1e40), "1e+40"),
        (((1, 2.0),), "{{1, 2.0}}"),
    ],
)
def test_constants_as_c_reads_them(value, text):
    assert constants.in_c(value) == text


@pytest.mark.parametrize("value", ["word", None, float("nan"), float("inf")])
def test_what_is_no_constant_is_refused(value):
    with pytest.raises(TypeError, match="cannot be a constant"):
        constants.in_c(value)


def test_the_engine_is_loaded_once_by_all_threads(compiler, monkeypatch):
    calls = []

    def counted(sources, real=build.load):
        calls.append(sources.name)
        return real(sources)

    monkeypatch.setattr(library, "obtain", counted)
    found = []
    threads = [threading.Thread(target=lambda: found.append(engine())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["hybrid"]
    assert found == [engine()] * 4
    status = engine_status()
    assert status.available
    assert status.reason == ""
    assert not status.cached
    assert status.path.is_file()
    assert self_test(engine()) == ""


def test_the_switch(compiler, folder, monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "python")
    assert engine() is None
    assert not engine_status().available
    assert not folder.exists()
    assert engine("c") is not None  # what is said in the call counts
    monkeypatch.setenv(library.VARIABLE, "c")
    assert engine() is engine("auto")
    assert engine("python") is None
    monkeypatch.setenv(library.VARIABLE, "pyhton")
    for ask in (engine, engine_status):
        with pytest.raises(InputError, match="did you mean 'python'"):
            ask()
    with pytest.raises(InputError, match="engine is 'fortran'"):
        engine("fortran")


def test_a_core_of_another_interface_is_not_used(compiler, monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", library.INTERFACE + 1)
    assert engine() is None
    assert f"calls interface {library.INTERFACE}" in engine_status().reason


def test_a_package_without_its_sources(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    assert engine() is None
    assert f"not in {tmp_path}; install the package anew" in engine_status().reason


def test_the_self_test_sees_fused_products(compiler):
    every = library.core_sources().files
    headers = {name: every[name] for name in every if name.endswith(".h")}
    text = '#include <math.h>\n#include "hybrid.h"\n'
    text += "int hybrid_interface_version(void) { return HYBRID_INTERFACE_VERSION; }\n"
    text += "double hybrid_rounded_difference(double a, double b, double c)"
    source = f"{text} {{ return fma(a, b, -c); }}\n"
    loaded, _ = load(Sources("fused", {**headers, "fused.c": source}))
    assert "fused products" in self_test(loaded)


# --- the doctor ----------------------------------------------------------------------------------


def test_the_doctor_with_a_compiler(compiler, folder, capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    rows = dict(line.split(maxsplit=1) for line in said.splitlines() if "  " in line)
    assert rows["engine"].startswith("C, compiled just now")
    assert rows["self-test"] == "passed"
    assert rows["casadi"] == ca.CasadiMeta.version()
    assert f"{folder}, owner " in rows["cache"]
    assert "mode 0700, 1 library" in rows["cache"]
    assert "right" in rows["solver"]
    assert said.endswith("everything works\n")


def test_the_doctor_without_a_compiler(no_compiler, capsys, monkeypatch):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["broken"] == []
    assert found["found"]["compiler"] == "none"
    assert "casadi_hybrid[compiler]" in found["found"]["engine"]
    monkeypatch.setenv(library.VARIABLE, "c")
    with pytest.warns(CompilerWarning):
        assert main(["doctor"]) == 1
    assert "broken: the engine in C cannot be had: no C compiler" in capsys.readouterr().out


def test_the_doctor_says_what_is_broken(compiler, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda core: "it cannot add")
    assert main(["doctor"]) == 1
    assert "broken: the engine in C fails its self-test: it cannot add" in capsys.readouterr().out
    monkeypatch.setattr(library, "_core", library._Core())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", script(tmp_path / "cc", 'test "$1" = -v && echo cc version 1'))
    assert main(["doctor"]) == 1
    assert "cannot compile hybrid: ended with code 1" in capsys.readouterr().out
    monkeypatch.setenv(library.VARIABLE, "python")
    assert main(["doctor"]) == 0
    monkeypatch.setenv(library.VARIABLE, "C")
    assert main(["doctor"]) == 2
    assert "the environment variable CASADI_HYBRID_ENGINE is 'C'" in capsys.readouterr().err


def test_the_doctor_sees_a_cache_it_cannot_trust(compiler, folder, capsys):
    folder.mkdir()
    folder.chmod(0o777)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "0777" in said
    assert "note 1" in said
    shutil.rmtree(folder)


def test_the_compiler_of_this_machine(compiler):
    found = compiler_of((compiler,))
    assert "version" in found.version
    assert found.version.lower().startswith(("gcc", "clang", "apple", "debian", "ubuntu"))
    assert found.target
