"""The functions of a problem in C: in parts that repeat, or as CasADi generates them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from casadi_hybrid.core.export.needs import refuse_foreign, refuse_unwritten, with_own
from casadi_hybrid.core.export.parts import in_parts
from casadi_hybrid.problem.graph.functions import Functions
from casadi_hybrid.utils.errors import InputError, last_line

PARTS, LOOPS, STRAIGHT = "parts", "loops", "straight"
"""Repeated parts once, with tables; CasADi's loops over mapped stages; every operation."""
QUIETED = ("unused-parameter", "unused-variable", "unused-function", "sign-compare")
"""Warnings that CasADi's text may cause, and that a pragma in it disables."""
_TYPES = {"casadi_int": "int", "casadi_real": "double"}
_OMITTED = dict.fromkeys(("with_header", "main", "mex", "verbose"), False)
_FEW = 2000
"""Scalar operations of both functions up to which straight code is small."""
_WRITTEN = 20
"""Characters that CasADi writes for an operation of straight code, approximately."""
_SHORTER = 0.75
"""Largest length of parts relative to straight code, unless loops are asked for. gcc takes minutes
for a hundred thousand lines of straight code, and seconds for half as much text in parts."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The generated text and the sizes of its work arrays.

    Attributes:
        text: of the file, with ``NAME_first`` and ``NAME_second``.
        form: :data:`PARTS`, :data:`LOOPS` or :data:`STRAIGHT`.
        arg, res, iw, w: lengths of the work arrays.
    """

    text: str
    form: str
    arg: int
    res: int
    iw: int
    w: int


def generate(functions: Functions, name: str, loops: bool | None) -> Generated:
    """Write the first function and the Hessian.

    Args:
        functions: of a problem with second derivatives.
        name: prefix of external names.
        loops: True to write repeated parts as loops, None to do so if straight code is long. Parts
            come first: CasADi's loops over mapped stages take more memory, code and time.

    Raises:
        InputError: if CasADi writes no C for the problem, or C that keeps memory or needs more than
            an export has, or if loops are asked for and there are none.
    """
    first, second = functions.first, functions.with_hessian("curvature")
    looped = None
    if functions.instructions > _FEW if loops is None else loops:
        parts = in_parts(functions, name)
        straight = _WRITTEN * functions.instructions
        if parts and len(parts[0]) < straight * (_SHORTER if loops is None else 1):
            return Generated(parts[0], PARTS, arg=3, res=4, iw=1, w=parts[1])
        looped = _looped(functions)
        if loops and looped is None:
            raise InputError(
                "loops was set, but there are none: too little of the problem repeats; leave "
                "loops out"
            )
    if looped is not None:
        first, second = looped
    elif functions.assemblies is not None:
        first, second = first.expand(), second.expand()
    both = named(first, f"{name}_first"), named(second, f"{name}_second")
    text = text_of_functions(both, name)
    sizes = (max(getattr(f, f"sz_{kind}")() for f in both) for kind in ("arg", "res", "iw", "w"))
    form = STRAIGHT if looped is None else LOOPS
    return Generated(text, form, *(max(1, size) for size in sizes))


def text_of_functions(functions: Sequence[ca.Function], name: str) -> str:
    """Write functions by CasADi's code of them.

    Args:
        functions: with their names in C.
        name: prefix of all other names in the text.
    """
    refuse_foreign(functions)
    text = with_own(_text(functions, name), name)
    unwritten = re.search(r"#error (.*)", text)
    if unwritten:
        raise InputError(f"CasADi writes no C for a part of the problem: {unwritten[1]}")
    refuse_unwritten(text, functions)
    for function in functions:
        if not re.search(rf"int {function.name()}_checkout\(void\) {{\s*return 0;", text):
            raise InputError(
                "a function of the problem keeps memory of its own in C (a solver or an "
                "integrator inside it), which an export does not have; write it as a graph"
            )
    pragmas = "".join(f'#pragma GCC diagnostic ignored "-W{word}"\n' for word in QUIETED)
    return f"#ifdef __GNUC__\n{pragmas}#endif\n{text}"


def _looped(functions: Functions) -> tuple[ca.Function, ca.Function] | None:
    """The unexpanded functions, if there are any with the same patterns."""
    first, second = functions.first, functions.with_hessian("curvature")
    if not first.is_a("SXFunction"):
        return first, second
    if functions.unexpanded is None:
        return None
    looped = functions.unexpanded.first, functions.unexpanded.with_hessian("curvature")
    for a, b in zip(looped, (first, second), strict=True):
        if any(a.sparsity_out(i) != b.sparsity_out(i) for i in range(b.n_out())):
            return None
    return looped


def named(function: ca.Function, name: str) -> ca.Function:
    """The function under another name."""
    scalar = function.is_a("SXFunction")
    inputs = function.sx_in() if scalar else function.mx_in()
    outputs = function.call(inputs, True, False)
    return ca.Function(name, inputs, outputs, function.name_in(), function.name_out())


def _text(functions: Iterable[ca.Function], name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            generator = ca.CodeGenerator(
                "functions.c", {**_TYPES, **_OMITTED, "prefix": f"{name}_"}
            )
            for function in functions:
                generator.add(function)
            generator.generate(folder + os.sep)
        except RuntimeError as error:
            raise InputError(
                f"CasADi writes no C for a function of the problem: {last_line(error)}"
            ) from None
        return (Path(folder) / "functions.c").read_text(encoding="utf-8")
