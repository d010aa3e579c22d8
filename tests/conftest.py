"""Settings shared by the tests."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before NumPy is loaded: the matrices of the tests are small, and threads of BLAS would only wait
# for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from support.newer_casadi import left_out
from support.paths import TESTS

from casadi_hybrid.core.export.compare import STRICT
from casadi_hybrid.problem.building.compiler import PROGRAMS
from casadi_hybrid.solver.nlpsol.runner import Runner

# The default run is the same on every machine and every day; `--hypothesis-profile=explore` draws
# new examples each time.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("repeatable")


# Folders and files whose subject is not the last bit of a sum: interfaces, files, pictures,
# refusals, and the scenarios. Every other test is "numerical".
NOT_NUMERICAL = {
    "repository",
    "cli",
    "test_building",
    "test_closed_loop",
    "test_elements",
    "test_equilibrium",
    "test_figure_style",
    "test_inputs",
    "test_many_solves",
    "test_mesh_refinement",
    "test_model",
    "test_problem",
    "test_record",
    "test_report",
    "test_result_and_log",
    "test_settling",
    "test_solution",
    "test_study",
}

# Files that run what the pages and the notebooks show: `pytest -m pages` is all of them, and every
# notebook in a kernel.
PAGES = {"test_documentation", "test_notebooks", "test_site"}


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the numerical tests; leave the slow studies out unless their marker is spoken of."""
    for item in items:
        folder, *_ = item.path.relative_to(TESTS).parts
        if not {folder, item.path.stem} & NOT_NUMERICAL:
            item.add_marker("numerical")
        if item.path.stem in PAGES:
            item.add_marker("pages")
        if why := left_out(item.name):
            item.add_marker(pytest.mark.skip(reason=why))
    expression = str(config.getoption("markexpr"))
    if "slow" in expression:
        return
    wanted = {"pages"} if "pages" in expression else set()
    slow = [item for item in items if "slow" in item.keywords and not wanted & {*item.keywords}]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture(scope="session", autouse=True)
def core_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let ``cc`` compile the core of exports once a session, for all workers of pytest-xdist."""
    own, cc = tmp_path_factory.getbasetemp(), shutil.which("cc")
    if cc is None or os.name != "posix":
        yield
        return
    objects = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "core"
    script = Path(__file__).with_name("support") / "core_once.py"
    words = sys.executable, "-SE", str(script), cc, str(objects)
    program = own / "bin" / "cc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(program.parent), os.pathsep)
        yield


@pytest.fixture(scope="session")
def compiler() -> str:
    """The path of a C compiler; the test is skipped where there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no C compiler on this machine")
    return found


@pytest.fixture
def terminal() -> Iterator[None]:
    """Ctrl-C is heard, also in what a test starts: a process in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets longer by one for each solve that a graph leaves to Python."""
    done: list[int] = []
    plain = Runner.evaluate

    def evaluate(self: Runner, arguments: Any) -> Any:
        done.append(threading.get_ident())
        return plain(self, arguments)

    monkeypatch.setattr(Runner, "evaluate", evaluate)
    return done


@pytest.fixture(scope="session")
def sanitized(compiler: str, tmp_path_factory: Any) -> Callable[[Any, Path], Path]:
    """Links a source with an export, under the sanitizers where this compiler has any."""
    folder = tmp_path_factory.mktemp("sanitized")
    words = [compiler, *(flag for flag in STRICT if not flag.startswith(("-O", "-I")))]
    checks = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    probe = [*words, *checks, "probe.c", "-o", "probe"]
    if not subprocess.run(probe, cwd=folder, capture_output=True, check=False).returncode:
        words += checks

    def link(export: Any, source: Path) -> Path:
        program = folder / f"{export.name}_{source.stem}"
        files = *export.folder.glob(f"{export.name}*.c"), *export.folder.glob("core/*.c")
        parts = [f"-I{export.folder}", source, *files, "-lm", "-o", program]
        subprocess.run([*words, *parts], check=True)
        return program

    return link
