"""The structures that are read from the headers, as a compiler lays them out."""

import ctypes as ct
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from engine_cases import core

from casadi_hybrid.engine import library
from casadi_hybrid.engine.header import C, Headers

FOLDER = Path(library.__file__).parent
OF_CORE = (
    "arena", "point", "trial", "bound_multipliers", "low_rank", "form", "spectrum", "kkt",
    "filter_pair", "state",
)  # fmt: skip


def layouts(headers: Headers, names: Iterable[str]) -> list[str]:
    """C that compiles where every field has the place and the size that ctypes gives it."""
    checks = []
    for name in names:
        kind = getattr(headers, name)
        checks.append(f"sizeof({name}) == {ct.sizeof(kind)}")
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            checks.append(f"offsetof({name}, {field}) == {place.offset}")
            checks.append(f"sizeof((({name} *)0)->{field}) == {place.size}")
    return [f'_Static_assert({check}, "{check}");' for check in checks]


@pytest.mark.parametrize("of", ["core", "adapter"])
def test_structures_are_those_of_the_compiler(of: str, compiler: str, tmp_path: Path) -> None:
    known = [f"hybrid_{name}" for name in OF_CORE] if of == "core" else list(C._structures)
    checks = layouts(core if of == "core" else C, known)
    folder = FOLDER / ("c" if of == "core" else "adapter")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*.h"))
    lines = ["#include <stddef.h>", *(f'#include "{name}"' for name in names), *checks]
    file = tmp_path / "layouts.c"
    file.write_text("\n".join(lines))
    flags = "-std=c11", "-fsyntax-only", f"-I{folder}", f"-I{FOLDER / 'c'}"
    subprocess.run([compiler, *flags, str(file)], check=True)
    assert len(lines) > 100
