"""What is compiled of a problem is built once and kept safely."""

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
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # nothing stays where tests are killed
    cache.private_folder.cache_clear()
    yield tmp_path / "cache"
    cache.private_folder.cache_clear()


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def answer(number=42, flags=()):
    header = "#pragma once\nint answer(void);\n"
    text = f'#include "answer.h"\nint answer(void) {{ return {number}; }}\n'
    return Sources("answer", {"answer.c": text, "answer.h": header}, flags)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- the cache -----------------------------------------------------------------------------------


def test_a_library_is_built_once(compiler, folder):
    assert load(answer()).answer() == 42
    first = build.library(answer())
    made = first.stat().st_ino
    assert build.library(answer()) == first
    assert first.stat().st_ino == made
    assert folder.stat().st_mode & 0o777 == 0o700
    assert first.is_relative_to(folder)
    assert leftovers(folder) == []
    assert load(answer(43)).answer() == 43


def test_a_damaged_library_is_rebuilt(compiler, folder):
    first = build.library(answer())
    first.write_text("no library")
    assert load(answer()).answer() == 42
    assert not first.exists()  # the next process builds it there
    assert leftovers(folder) == []


ME = os.geteuid() if hasattr(os, "geteuid") else 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder, _: folder.chmod(0o777), "0777"),
        (lambda folder, _: folder.parent.chmod(0o777), "everyone may write"),
        (
            lambda _, patch: patch.setattr(os, "geteuid", lambda: ME + 1),
            f"belongs to user {ME}, not to this one ({ME + 1})",
        ),
    ],
)
def test_a_cache_that_others_may_write_to_stays_empty(compiler, folder, monkeypatch, change, why):
    folder.mkdir(mode=0o700)
    change(folder, monkeypatch)
    assert load(answer()).answer() == 42
    first = build.library(answer())
    assert first.is_relative_to(cache.private_folder())
    assert build.library(answer()) == first  # within this process
    assert why in cache.own_folder()[1]
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
    assert load(answer()).answer() == 42
    assert "cannot be made" in cache.own_folder()[1]


def test_a_full_cache_that_can_only_be_read(compiler, folder, monkeypatch):
    build.library(answer())

    def refuse(*args, dir=None, prefix="", real=cache.tempfile.mkdtemp):
        if dir == folder:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(dir=dir, prefix=prefix)

    monkeypatch.setattr(cache.tempfile, "mkdtemp", refuse)
    assert build.library(answer()).is_relative_to(folder)
    assert load(answer(43)).answer() == 43
    assert build.library(answer(43)).is_relative_to(cache.private_folder())


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
    assert load(answer()).answer() == 42
    monkeypatch.setattr(ctypes, "CDLL", lambda path: refuse(folder))
    with pytest.raises(BuildError, match=r"cannot be loaded .*failed to map segment"):
        load(answer())


def test_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv(cache.VARIABLE, "~/elsewhere")
    assert cache.default_folder() == Path("/home/ann/elsewhere")
    monkeypatch.setenv(cache.VARIABLE, "")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
        assert cache.default_folder() == Path("/caches/casadi_hybrid")
        monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
        assert cache.own_folder()[0] != Path("not/absolute/casadi_hybrid")


def test_what_was_left_behind_and_what_nobody_uses_is_removed(compiler, folder):
    old = build.library(answer())
    for name in (".work-old", ".work-young", old.stem[:-1] + "0", "mine"):  # and of an older layout
        (folder / name).mkdir(exist_ok=True)
    long_ago = time.time() - 100 * 86400
    for path in folder.iterdir():
        if path.name != ".work-young":
            os.utime(path, (long_ago, long_ago))
    kept = build.library(answer(43))
    assert {*folder.iterdir()} == {folder / ".work-young", folder / "mine", kept}


# The whole package would take a second to import.
PROCESS = """
import sys, time, types
from pathlib import Path
sys.modules["casadi_hybrid"] = package = types.ModuleType("casadi_hybrid")
folder, start, *package.__path__ = map(Path, sys.argv[1:])
package.__path__ = [str(path) for path in package.__path__]
from casadi_hybrid.problem.building.build import Sources, library, load
print("ready", flush=True)
while not start.exists():
    time.sleep(0.001)
sources = Sources("answer", {"answer.c": "int answer(void) { return 42; }"})
print(load(sources).answer(), library(sources).is_relative_to(folder), flush=True)
"""


def processes(number, folder, start, **variables):
    """Python processes that have imported what builds and wait for ``start`` to be there."""
    command = [sys.executable, "-c", PROCESS, str(folder), str(start)]
    command.append(str(Path(build.__file__).parents[2]))
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
    assert [process.communicate()[0] for process in started] == ["42 True\n"] * 2
    assert [path.suffix for path in folder.iterdir()] == [suffix()]


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
    assert load(answer()).answer() == 42


# --- compilers -----------------------------------------------------------------------------------


def test_without_a_compiler_the_sentence_says_what_to_do(no_compiler):
    with pytest.raises(BuildError, match=r"no C compiler was found.*casadi_hybrid\[compiler\]"):
        build.library(answer())


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
    assert load(answer()).answer() == 42
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match=f"{path}.*{why}"):
        build.library(answer(43))


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
    assert load(answer()).answer() == 42
    asked, built = (tmp_path / "log").read_text().splitlines()
    assert asked == "-DSOMETHING -v"
    assert {"-DSOMETHING", "-std=c99", "-ffp-contract=off"} <= set(built.split())
    assert set(compilers.FLAGS) <= set(built.split())
    assert "-march=native" not in built
    assert ("-mavx" in built.split()) == ("avx" in processor().split())


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
    assert load(answer()).answer() == 42
    assert compiler_of((sys.executable, "-m", name, "cc")).version == f"{name} version 1.2"


def test_the_compiler_of_microsoft(tmp_path, monkeypatch):
    """As it is called; nobody has run it."""
    words = 'echo "Microsoft (R) C/C++ Optimizing Compiler Version 19.39.33523 for x64"'
    cl = script(tmp_path / "cl", words)
    found = compiler_of((cl,))
    assert found.version.endswith("Version 19.39.33523 for x64")
    asked = found.words(("-O2", "-fno-builtin-sin"), "functions.dll", ["a.c", "b.c"])
    assert asked == [cl, *compilers._FLAGS_OF_MICROSOFT, "/Fe:functions.dll", "a.c", "b.c"]


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


@pytest.mark.parametrize(
    ("features", "target", "wide"),
    [
        ("flags : avx avx2", "x86_64-linux-gnu", True),
        ("flags : sse4_2", "x86_64-linux-gnu", False),
        ("", "x86_64-linux-gnu", False),
        ("flags : avx", "i686-linux-gnu", False),
        ("Features : asimd", "aarch64-linux-gnu", False),
    ],
)
def test_instructions_of_the_processor(tmp_path, monkeypatch, features, target, wide):
    monkeypatch.setattr(compilers, "processor", lambda: features)
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
    for features in ("flags : avx", "flags : avx fma"):
        monkeypatch.setattr(build, "processor", lambda f=features: f)
        keys.append(key_of(answer(), HERE))
    monkeypatch.setattr(build.platform, "libc_ver", lambda: ("glibc", "1.0"))
    keys.append(key_of(answer(), HERE))
    monkeypatch.setattr(ca.CasadiMeta, "version", staticmethod(lambda: "99.0"))
    keys.append(key_of(answer(), HERE))
    monkeypatch.setenv("CPATH", "/somewhere")
    keys.append(key_of(answer(), HERE))
    assert len(set(keys)) == len(keys)


def test_the_compiler_of_this_machine(compiler):
    found = compiler_of((compiler,))
    assert "version" in found.version
    assert found.version.lower().startswith(("gcc", "clang", "apple", "debian", "ubuntu"))
    assert found.target
