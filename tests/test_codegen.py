"""Every generated function of a program can be compiled: plain C without CasADi's runtime."""

from __future__ import annotations

import ctypes
from pathlib import Path
from subprocess import PIPE, STDOUT, run
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid.problem.functions import Functions, Fused
from casadi_hybrid.problem.problem import Problem


def sx() -> dict[str, Any]:
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p")
    g = ca.vertcat(ca.sin(x[0]) * x[1], ca.if_else(x[2] > 0, x[2] ** 2, ca.exp(x[2])))
    return {"x": x, "p": p, "f": p * ca.sumsqr(x) + ca.atan2(x[0], x[1]), "g": g}


def mx() -> dict[str, Any]:
    """With a map, a matrix product, an interpolation and a nested function."""
    a, b, p = ca.MX.sym("a"), ca.MX.sym("b", 2), ca.MX.sym("p")
    z = ca.SX.sym("z")
    inner = ca.Function("inner", [z], [z**3 + ca.cos(z)]).map(2)
    table = ca.interpolant("table", "bspline", [[0, 1, 2, 3, 4]], [0, 1, 4, 9, 16])
    g = ca.vertcat(inner(b.T).T, ca.mtimes(ca.DM([[1, 2]]), b), table(a))
    return {"x": ca.vertcat(a, b), "p": p, "f": (a - p) ** 2 + ca.sumsqr(b), "g": g}


@pytest.mark.parametrize("make", [sx, mx])
def test_every_generated_function_compiles_as_plain_c(
    make: Any, compiler: str, tmp_path: Path
) -> None:
    """Compiled with warnings as errors against libc and libm alone; the numbers are the same."""
    functions: Functions = Problem.from_nlp(make()).functions
    generator = ca.CodeGenerator("program.c", {"with_header": True})
    for name in ("residual", "first", "second"):
        generator.add(getattr(functions, name))
    generator.generate(f"{tmp_path}/")
    library = tmp_path / "program.so"
    command = [compiler, "-std=c99", "-Wall", "-Werror", "-Wno-unused", "-shared", "-fPIC", "-O1"]
    done = run(
        [*command, "-o", str(library), str(tmp_path / "program.c"), "-lm"],
        stdout=PIPE, stderr=STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert hasattr(ctypes.CDLL(str(library)), "second")  # nothing left to link
    x, p, lam = np.array([0.7, 1.2, 0.9]), np.array([0.4]), np.arange(1.0, 5.0)
    for name in ("residual", "first", "second"):
        interpreted = getattr(functions, name)
        compiled = ca.external(name, str(library))
        m = functions.residual.numel_out(0)
        values = (x, lam[:m], p) if name == "second" else (x, p)
        ours, theirs = (Fused(one, functions)(*values) for one in (interpreted, compiled))
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-13)
