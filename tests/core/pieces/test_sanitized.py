"""Random solves and functions on C that was built with the address and behaviour sanitizers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cases.watched import ended
from support.paths import TESTS

from casadi_hybrid.core import evaluation as blocks
from casadi_hybrid.core.evaluation.operations import SAME_BITS
from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.core.header import C

pytestmark = pytest.mark.slow

LIBRARY = "-std=c99", "-O1", "-g", "-fPIC", "-shared", "-ffp-contract=off"
CHECKS = "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"
FLAGS = *LIBRARY, *CHECKS, "-fno-omit-frame-pointer", *SAME_BITS
# A number that was read before it was written stands out; older compilers do not know this.
PATTERN = "-ftrivial-auto-var-init=pattern"
GUARD = """#define hybrid_allocate plain_allocate
#define hybrid_place plain_place
#include "problem.h"
#undef hybrid_allocate
#undef hybrid_place
#include <sanitizer/asan_interface.h>
static inline double *hybrid_allocate(hybrid_arena *arena, long long count) {
    double *at = plain_allocate(arena, count), *guard = plain_allocate(arena, 4);
    if (at) __asan_unpoison_memory_region(at, (size_t)count * sizeof(double));
    if (at) __asan_poison_memory_region(guard, 4 * sizeof(double));
    return at;
}
static inline void hybrid_place(hybrid_arena *arena, long long count, int many, double **at[]) {
    for (int k = 0; k < many; k++) *at[k] = hybrid_allocate(arena, count);
}
"""
"""Memory with numbers behind each piece that nobody may touch, included before all else."""


def sanitized(folder: Path, compiler: str, files: dict[str, str], *more: str) -> Path:
    (folder / "empty.c").write_text("int empty;\n")
    probe = "empty.c", "-o", "empty.so"
    known = [
        flags
        for flags in ((*FLAGS, PATTERN), FLAGS)
        if not ended([compiler, *flags, *probe], cwd=folder).returncode
    ]
    if not known:
        pytest.skip("no sanitizers here")
    for name, text in files.items():
        (folder / name).write_text(text)
    library = folder / "sanitized.so"
    sources = sorted(name for name in files if name.endswith(".c"))
    words = [compiler, *known[0], *more, *sources, "-o", library, "-lm"]
    subprocess.run(words, cwd=folder, check=True)
    return library


def runtime(compiler: str) -> str:
    asked = [compiler, "-print-file-name=libasan.so"]
    path = subprocess.check_output(asked, text=True).strip()
    if not Path(path).is_absolute():
        pytest.skip("no libasan.so to load before Python")
    return path


def run(script: str, library: Path, compiler: str, count: int) -> str:
    """Return the output of a script in which no sanitizer found anything."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(TESTS),
        "LD_PRELOAD": runtime(compiler),
        # Python's own objects are not freed at its end.
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    words = [sys.executable, str(TESTS / "support" / "fuzz" / script), str(library), str(count)]
    done = ended(words, env=environment, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
    return done.stdout


def test_random_solves_keep_to_memory(tmp_path, compiler) -> None:
    files = {**core_sources(), "guard.h": GUARD}
    library = sanitized(tmp_path, compiler, files, "-include", "guard.h", "-D_GNU_SOURCE")
    counts = json.loads(run("solve.py", library, compiler, 4000))
    seen = counts["seen"]
    assert seen["CONVERGED"] >= 1000, seen
    refused = [f"refused {status}" for status in (C.HYBRID_OTHER_PATTERN, C.HYBRID_BAD_NUMBERS)]
    for word in ("LOCALLY_INFEASIBLE", "EVALUATION_ERROR", *refused):
        assert seen.get(word, 0) >= 10, seen
    for method in range(2):  # interior points, active sets
        assert seen[f"method {method}"] >= 100, seen
    assert counts["in batches"] >= 100


def test_random_functions_keep_to_memory(tmp_path, compiler) -> None:
    sources = (Path(blocks.__file__).parent / "c").glob("*.[ch]")
    files = {path.name: path.read_text("utf-8") for path in sources}
    library = sanitized(tmp_path, compiler, files)
    assert run("evaluation.py", library, compiler, 300) == "all have the same bits\n"
