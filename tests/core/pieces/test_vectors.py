"""Sums and largest entries of vectors: the same bits whatever the compiler knows."""

import ctypes as ct

import numpy as np
import pytest
from support.cases.core import NUMBER, POINTER

from casadi_hybrid.core.export.core import core_sources
from casadi_hybrid.problem.building.build import Sources, load

INFINITE = (np.nan, np.inf, -np.inf)
FUNCTIONS = "norm_inf", "max_entry", "min_entry", "norm1", "sum_log", "max_violation"


@pytest.fixture(scope="module")
def libraries(compiler: str) -> list[ct.CDLL]:
    """The vectors with lanes in one register, where there is such a one, and without."""
    files = {name: text for name, text in core_sources().items() if name.endswith(".h")}
    files["vectors.c"] = core_sources()["vectors.c"]
    made = [load(Sources("vectors", files, (flag,))) for flag in ("-O3", "-DHYBRID_NO_LANES")]
    for library in made:
        for function in FUNCTIONS:
            getattr(library, f"hybrid_{function}").restype = NUMBER
    return made


def address(values: np.ndarray) -> ct.c_void_p:
    return POINTER(values.ctypes.data)


@pytest.mark.parametrize("count", [*range(20), 33, 64, 101])
def test_sums_match_numpy(libraries: list[ct.CDLL], count: int) -> None:
    draws = np.random.default_rng(count)
    for extra in ((), INFINITE[:1], INFINITE[1:], INFINITE):
        v = draws.standard_normal(count) * 10.0 ** draws.integers(-9, 9, count)
        lower, upper = (draws.standard_normal(count) for _ in range(2))
        for value in extra if count else ():
            v[draws.integers(count)] = value
        arguments = dict.fromkeys(FUNCTIONS, (v,))
        arguments |= {"sum_log": (np.abs(v),), "max_violation": (v, lower, upper)}
        found = [
            [
                getattr(library, f"hybrid_{name}")(count, *map(address, arrays))
                for name, arrays in arguments.items()
            ]
            for library in libraries
        ]
        np.testing.assert_array_equal(*found)
        largest, most, least, total, logs, excess = found[0]
        np.testing.assert_equal(largest, np.abs(v).max(initial=0.0))
        np.testing.assert_allclose(total, np.abs(v).sum(), rtol=1e-14)
        assert most == np.fmax.reduce(v, initial=0.0)
        assert least == np.fmin.reduce(v, initial=np.inf)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(logs, np.log(np.abs(v)).sum(), rtol=1e-12, atol=1e-12)
        assert excess == np.fmax.reduce([*(v - upper), *(lower - v)], initial=0.0)


@pytest.mark.parametrize("decades", [5, 17, 40, 300])
def test_logarithms_of_large_products(libraries: list[ct.CDLL], decades: int) -> None:
    """No number holds the product."""
    draws = np.random.default_rng(decades)
    v = 10.0 ** draws.uniform(-decades, decades, 75)
    for sign in (1, -1):
        for library in libraries:
            logs = library.hybrid_sum_log(v.size, address(v**sign))
            np.testing.assert_allclose(logs, sign * np.log(v).sum(), rtol=1e-13)
