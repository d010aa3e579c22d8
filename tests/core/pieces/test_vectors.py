"""Sums and largest entries of vectors: the same bits whatever the compiler knows."""

import ctypes as ct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.cases.core import NUMBER, POINTER

from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.problem.building.compiler import compiler_of

INFINITE = (np.nan, np.inf, -np.inf)


@pytest.fixture(scope="module")
def libraries(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> list[ct.CDLL]:
    """The vectors with lanes in one register, where there is such a one, and without."""
    folder: Path = tmp_path_factory.mktemp("vectors")
    for name, text in core_sources().items():
        (folder / name).write_text(text)
    made = []
    for define in ("-DHYBRID_LANES", "-DHYBRID_NO_LANES"):
        built = folder / f"{define[2:]}.so"
        flags = compiler_of((compiler,)).flags
        command = [*flags, define, "vectors.c", "-o", str(built), "-lm"]
        subprocess.run([compiler, *command], cwd=folder, check=True)
        library = ct.CDLL(str(built))
        for function in ("norm_inf", "max_entry", "min_entry", "norm1", "max_violation", "sum_log"):
            getattr(library, f"hybrid_{function}").restype = NUMBER
        made.append(library)
    return made


def address(values: np.ndarray) -> ct.c_void_p:
    return POINTER(values.ctypes.data)


@pytest.mark.parametrize("count", [*range(20), 33, 64, 101])
def test_the_bits_do_not_hang_on_the_compiler(libraries, count: int) -> None:
    draws = np.random.default_rng(count)
    for extra in ((), INFINITE[:1], INFINITE[1:], INFINITE):
        v = draws.standard_normal(count) * 10.0 ** draws.integers(-9, 9, count)
        lower, upper = (draws.standard_normal(count) for _ in range(2))
        for value in extra if count else ():
            v[draws.integers(count)] = value
        found = [
            (
                library.hybrid_norm_inf(count, address(v)),
                library.hybrid_max_entry(count, address(v)),
                library.hybrid_min_entry(count, address(v)),
                library.hybrid_sum_log(count, address(np.abs(v))),
                library.hybrid_norm1(count, address(v)),
                library.hybrid_max_violation(count, address(v), address(lower), address(upper)),
            )
            for library in libraries
        ]
        np.testing.assert_array_equal(*found)
        largest, most, least, logs, total, excess = found[0]
        np.testing.assert_equal(largest, np.abs(v).max(initial=0.0))
        np.testing.assert_allclose(total, np.abs(v).sum(), rtol=1e-14)
        assert most == np.fmax.reduce(v, initial=0.0)
        assert least == np.fmin.reduce(v, initial=np.inf)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(logs, np.log(np.abs(v)).sum(), rtol=1e-12, atol=1e-12)
        assert excess == np.fmax.reduce([*(v - upper), *(lower - v)], initial=0.0)


@pytest.mark.parametrize("decades", [5, 17, 40, 300])
def test_logarithms_of_products_that_no_number_holds(libraries, decades: int) -> None:
    draws = np.random.default_rng(decades)
    v = 10.0 ** draws.uniform(-decades, decades, 75)
    for sign in (1, -1):
        for library in libraries:
            found = library.hybrid_sum_log(v.size, address(v**sign))
            np.testing.assert_allclose(found, sign * np.log(v).sum(), rtol=1e-13)
