"""Compilation of a problem's C code: the cache of libraries, the choice of a compiler, the key."""

import ctypes
import errno
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import casadi as ca
import pytest

from casadi_hybrid.problem.building import BuildError, build, cache, suffix
from casadi_hybrid.problem.building import compiler as compilers
from casadi_hybrid.problem.building.build import Sources, key_of, load
from casadi_hybrid.problem.building.compiler import Compiler, compiler_of, processor

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its compilers are scripts")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A process that has built nothing yet, with a cache of its own."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    # A compiler that the tests' environment happens to have is not found.
    monkeypatch.setattr(compilers, "WHEEL", "casadi_hybrid_no_such_wheel")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # nothing stays if tests are killed
    cache.private_folder.cache_clear()
    yield tmp_path / "cache"
    cache.private_folder.cache_clear()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder that decides where the cache is."""
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def answer(number=42, flags=()):
    header = "#pragma once\nint answer(void);\n"
    text = f'#include "answer.h"\nint answer(void) {{ return {number}; }}\n'
    return Sources("answer", {"answer.c": text, "answer.h": header}, flags)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


# --- the key -------------------------------------------------------------------------------------

HERE = Compiler(("/usr/bin/cc",), "gcc 1.0", "machine", ("-O3",))


def test_key_changes_with_its_parts(monkeypatch):
    key = key_of(answer(), HERE)
    backwards = Sources("answer", dict(reversed(answer().files.items())))
    assert key_of(backwards, replace(HERE)) == key
    parts = {"version": "gcc 1.1", "target": "other", "flags": ("-O2",), "command": ("clang",)}
    others = [
        (answer(43), HERE),
        (answer(flags=("-g",)), HERE),
        (Sources("other", answer().files), HERE),
        (Sources("answer", {**answer().files, "more.h": ""}), HERE),
        *((answer(), replace(HERE, **{name: value})) for name, value in parts.items()),
    ]
    keys = [key, *(key_of(*other) for other in others)]
    for owner, name, value in (
        (build, "processor", lambda: "flags : avx"),
        (build, "processor", lambda: "flags : avx fma"),
        (build.platform, "libc_ver", lambda: ("glibc", "1.0")),
        (ca.CasadiMeta, "version", staticmethod(lambda: "99.0")),
    ):
        monkeypatch.setattr(owner, name, value)
        keys.append(key_of(answer(), HERE))
    monkeypatch.setenv("CPATH", "/somewhere")
    keys.append(key_of(answer(), HERE))
    assert len(set(keys)) == len(keys)


# --- the cache -----------------------------------------------------------------------------------


def test_library_is_built_once(compiler, folder):
    assert load(answer()).answer() == 42
    first = build.library(answer())
    inode = first.stat().st_ino
    assert build.library(answer()).stat().st_ino == inode
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == [first]
    assert load(answer(43)).answer() == 43


def test_damaged_library_is_rebuilt(compiler, folder):
    first = build.library(answer())
    first.write_text("no library")
    assert load(answer()).answer() == 42
    assert list(folder.iterdir()) == []  # the next process builds it there


ME = os.geteuid() if hasattr(os, "geteuid") else 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder, _: folder.chmod(0o777), "0777"),
        (lambda folder, _: folder.parent.chmod(0o777), "everyone may write"),
        (lambda _, patch: patch.setattr(os, "geteuid", lambda: ME + 1), f"to user {ME}"),
    ],
)
def test_unsafe_cache_stays_empty(compiler, folder, monkeypatch, change, why):
    folder.mkdir(mode=0o700)
    change(folder, monkeypatch)
    assert load(answer()).answer() == 42
    first = build.library(answer())
    assert first.is_relative_to(cache.private_folder())
    assert build.library(answer()) == first  # within this process
    assert why in cache.own_folder()[1]
    assert list(folder.iterdir()) == []


def test_sudo_makes_no_folder_at_home(home, monkeypatch):
    """With the HOME of another user the superuser's folder would lock that user out."""
    home.mkdir()
    stat = Path.stat

    def foreign(path, **options):
        mode, inode, device, links, _, *others = stat(path, **options)
        return os.stat_result([mode, inode, device, links, 12345, *others])

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", foreign)
        patch.setattr(os, "geteuid", lambda: 0)
        folder, why = cache.own_folder()
    assert folder is None
    assert "another user" in why
    assert list(home.iterdir()) == []


def test_home_may_refuse_folders(compiler, home):
    home.write_text("")
    assert load(answer()).answer() == 42
    assert "cannot be made" in cache.own_folder()[1]


@pytest.fixture
def refusing(monkeypatch):
    """Make all folders, or those in one folder, impossible with an error of the disk."""

    def refuse(code, folder=None, make=tempfile.mkdtemp):
        def mkdtemp(*_, dir=None, prefix=""):
            if folder in (None, dir):
                raise OSError(code, os.strerror(code))
            return make(dir=dir, prefix=prefix)

        monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)

    return refuse


def test_read_only_cache_still_serves(compiler, folder, refusing):
    build.library(answer())
    refusing(errno.EROFS, folder)
    assert build.library(answer()).is_relative_to(folder)
    assert load(answer(43)).answer() == 43
    assert build.library(answer(43)).is_relative_to(cache.private_folder())


def test_full_disk_is_a_build_error(compiler, folder, refusing):
    folder.write_text("")
    refusing(errno.ENOSPC)
    with pytest.raises(BuildError, match=os.strerror(errno.ENOSPC)):
        build.library(answer())


def test_disk_may_forbid_execution(compiler, folder, monkeypatch):
    real = ctypes.CDLL

    def refuse(path, *args):
        if Path(path).is_relative_to(folder):
            raise OSError("failed to map segment from shared object")
        return real(path, *args)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert load(answer()).answer() == 42
    monkeypatch.setattr(ctypes, "CDLL", lambda path: refuse(folder))
    with pytest.raises(BuildError, match="cannot be loaded"):
        load(answer())


def test_cache_folder_follows_the_environment(home, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "~/elsewhere")
    assert cache.default_folder() == home / "elsewhere"
    monkeypatch.setenv(cache.VARIABLE, "")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
        assert cache.default_folder() == Path("/caches/casadi_hybrid")
        monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
        assert cache.own_folder()[0] != Path("not/absolute/casadi_hybrid")


def test_unused_entries_are_removed(compiler, folder):
    old = build.library(answer())
    for name in (".work-old", ".work-young", old.stem[:-1] + "0", "mine"):  # and of an older layout
        (folder / name).mkdir()
    long_ago = time.time() - 100 * 86400
    for path in folder.iterdir():
        if path.name != ".work-young":
            os.utime(path, (long_ago, long_ago))
    new = build.library(answer(43))
    assert {*folder.iterdir()} == {folder / ".work-young", folder / "mine", new}


PROCESS = """
import sys
from casadi_hybrid.problem.building.build import Sources, library, load
sources = Sources("answer", {"answer.c": "int answer(void) { return 42; }"})
print("ready", flush=True)
sys.stdin.readline()
print(load(sources).answer(), library(sources).parent, flush=True)
"""


@pytest.fixture
def process():
    """Start Python processes that build the same library when they read a line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    def start(**variables):
        command, environment = [sys.executable, "-c", PROCESS], os.environ | variables
        started = subprocess.Popen(command, env=environment, **pipes)
        assert started.stdout.readline() == "ready\n"
        return started

    return start


def test_two_processes_build_at_once(compiler, folder, process):
    started = [process(), process()]
    for each in started:
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.communicate()[0] for each in started] == [f"42 {folder}\n"] * 2
    assert [path.suffix for path in folder.iterdir()] == [suffix()]


def test_killed_build_leaves_no_library(compiler, folder, tmp_path, process):
    """Its compiler has written half of a library by then."""
    slow = script(
        tmp_path / "slow",
        f'case "$*" in *-v) echo "slow version 1";; *) {compiler} "$@"; '
        "for file in answer.*; do case $file in *.c) ;; *) head -c 900 $file > half; "
        f"mv half $file;; esac; done; touch {tmp_path}/half; sleep 60;; esac",
    )
    started = process(CC=slow)
    started.stdin.write("go\n")
    started.stdin.flush()
    while not (tmp_path / "half").exists():
        time.sleep(0.01)
    started.kill()
    started.communicate()
    assert all(path.name.startswith(".") for path in folder.iterdir())
    assert load(answer()).answer() == 42


# --- compilers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exit 1", "does not answer as a C compiler"),
        ("echo no version here", "does not answer as a C compiler"),
        ("", "cannot be run"),
        ('test "$1" = -v && echo odd version 1', "cannot compile answer"),
        ('test "$1" = -v && echo odd version 1 || kill -9 $$', "ended by signal 9"),
        ('test "$1" = -v && echo odd version 1 || touch "$0"', "cannot compile answer"),
    ],
)
def test_failing_cc_gives_way(compiler, tmp_path, monkeypatch, text, why):
    path = tmp_path / "odd"
    monkeypatch.setenv("CC", script(path, text) if text else str(path))
    assert load(answer()).answer() == 42
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match=f"{path}.*{why}"):
        build.library(answer(43))


def test_missing_compiler_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match=r"casadi_hybrid\[compiler\]"):
        build.library(answer())
    monkeypatch.setenv("CC", "'unfinished")
    with pytest.raises(BuildError, match="'unfinished"):
        build.library(answer())


def test_cc_comes_first_with_options(compiler, tmp_path, monkeypatch):
    mine = script(tmp_path / "mine", f'echo "$@" >> {tmp_path}/log; exec {compiler} "$@"')
    monkeypatch.setenv("CC", f"{mine} -DSOMETHING")
    assert load(answer()).answer() == 42
    version, built = ((line.split()) for line in (tmp_path / "log").read_text().splitlines())
    assert version == ["-DSOMETHING", "-v"]
    assert {"-DSOMETHING", "-ffp-contract=off", *compilers.FLAGS} <= {*built}
    assert "-march=native" not in built
    assert ("-mavx" in built) == ("avx" in processor().split())


def test_compiler_of_the_wheel_comes_last(compiler, tmp_path, monkeypatch):
    name = "casadi_hybrid_wheel_of_tests"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "__main__.py").write_text(f"""
import os, sys
assert sys.argv[1] == "cc" and "-mcpu=baseline" in sys.argv
assert os.path.dirname(os.environ["ZIG_GLOBAL_CACHE_DIR"]) == {str(cache.default_folder())!r}
os.environ["PATH"] = {os.environ["PATH"]!r}
words = [word for word in sys.argv[2:] if not word.startswith("-mcpu")]
os.execv({compiler!r}, [{compiler!r}, *words])
""")
    (tmp_path / f"{name}-1.2.dist-info").mkdir()
    (tmp_path / f"{name}-1.2.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2\n")
    monkeypatch.setattr(compilers, "WHEEL", name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert list(compilers.commands())[-1] == (sys.executable, "-m", name, "cc")
    monkeypatch.setenv("PATH", "")
    assert load(answer()).answer() == 42
    assert compiler_of((sys.executable, "-m", name, "cc")).version == f"{name} version 1.2"


def test_microsoft_compiler_gets_its_own_flags(tmp_path):
    version = "Microsoft (R) C/C++ Optimizing Compiler Version 19.39.33523 for x64"
    cl = script(tmp_path / "cl", f'echo "{version}"')
    microsoft = compiler_of((cl,))
    assert microsoft.version == version
    command = microsoft.words(("-O2", "-fno-builtin-sin"), "functions.dll", ["a.c", "b.c"])
    assert command == [cl, *microsoft.flags, "/Fe:functions.dll", "a.c", "b.c"]
    assert {"/LD", "/fp:precise"} <= {*microsoft.flags}
    assert not any(word.startswith("-") for word in command)


def test_slow_compilation_is_ended(tmp_path, folder, monkeypatch):
    """The whole group of its processes ends, not only the first."""
    text = f'test "$1" = -v && echo slow version 1 || (echo $$ > {tmp_path}/pid; /bin/sleep 60)'
    monkeypatch.setenv("CC", script(tmp_path / "slow", text))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match=r"slow did not end within 0\.3 s"):
        build.library(answer(), limit=0.3)
    assert list(folder.iterdir()) == []
    group = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("a process of the compiler lives on")


def test_source_errors_are_one_sentence(compiler, folder):
    wrong = Sources("wrong", {"wrong.c": "int f(void) { return nonsense; }"})
    with pytest.raises(BuildError, match=r"wrong\.c:1.*nonsense") as caught:
        build.library(wrong)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("features", "target", "wide"),
    [
        ("flags : avx avx2", "x86_64-linux-gnu", True),
        ("flags : sse4_2", "x86_64-linux-gnu", False),
        ("flags : avx", "i686-linux-gnu", False),
    ],
)
def test_avx_needs_processor_and_target(tmp_path, monkeypatch, features, target, wide):
    monkeypatch.setattr(compilers, "processor", lambda: features)
    path = script(tmp_path / "odd", f'echo "Target: {target}\nodd version 1.0"')
    odd = compiler_of((path,))
    assert (odd.version, odd.target) == ("odd version 1.0", target)
    assert ("-mavx" in odd.flags) == wide
