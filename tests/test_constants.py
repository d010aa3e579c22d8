"""The numbers of Python's method in the C core: the header that is committed."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from casadi_hybrid.barrier import newton
from casadi_hybrid.building.build import Sources, load
from casadi_hybrid.engine import constants, library


def test_every_constant_arrives_to_the_last_bit(compiler):
    scalars = {k: v for k, v in constants.constants().items() if not isinstance(v, tuple)}
    assert len(scalars) > 50
    listed = ", ".join(f"(double){name}" for name in scalars)
    text = '#include "constants.h"\nconst double remedies[][2] = HYBRID_POLISH_REMEDIES;\n'
    text += "const int count = HYBRID_POLISH_REMEDIES_COUNT;\n"
    text += f"const double listed[] = {{{listed}}};\n"
    loaded = load(Sources("listed", {"listed.c": text, "constants.h": constants.header()}))
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
