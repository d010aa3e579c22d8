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

# Repeated parts once, with tables; CasADi's loops over mapped stages; every operation.
PARTS, LOOPS, STRAIGHT = "parts", "loops", "straight"
# Warnings that CasADi's text may cause, and that a pragma in it disables.
QUIETED = ("unused-parameter", "unused-variable", "unused-function", "sign-compare")
_TYPES = {"casadi_int": "int", "casadi_real": "double"}
_OMITTED = dict.fromkeys(("with_header", "main", "mex", "verbose"), False)
# Scalar operations of both functions up to which straight code is small.
_FEW = 2000
# Characters that CasADi writes for an operation of straight code, approximately.
_WRITTEN = 20
# Largest length of parts relative to straight code, unless loops are asked for. gcc takes minutes
# for a hundred thousand lines of straight code, and seconds for half as much text in parts.
_SHORTER = 0.75


@dataclass(frozen=True, slots=True)
class Generated:
    """The generated text with ``NAME_first`` and ``NAME_second``, and sizes of its work arrays."""

    text: str
    form: str  # PARTS, LOOPS or STRAIGHT
    arg: int  # lengths of the work arrays, as in CasADi's C
    res: int
    iw: int
    w: int


def generate(functions: Functions, name: str, loops: bool | None) -> Generated:
    """Write the first function and the Hessian, in parts, in loops or straight."""
    first, second = functions.first, functions.with_hessian("curvature")
    looped = None
    # loops: True for repeated parts as loops, None if straight code would be long.
    if functions.instructions > _FEW if loops is None else loops:
        # Parts come first: CasADi's loops over mapped stages take more memory, code and time.
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
        # Calls in an MX graph become scalar operations: straight code.
        first, second = first.expand(), second.expand()
    both = named(first, f"{name}_first"), named(second, f"{name}_second")
    text = text_of_functions(both, name)
    sizes = (max(getattr(f, f"sz_{kind}")() for f in both) for kind in ("arg", "res", "iw", "w"))
    form = STRAIGHT if looped is None else LOOPS
    return Generated(text, form, *(max(1, size) for size in sizes))


def text_of_functions(functions: Sequence[ca.Function], name: str) -> str:
    """Write functions by CasADi's code of them; ``name`` is the prefix of all other names."""
    refuse_foreign(functions)
    text = with_own(_text(functions, name), name)
    unwritten = re.search(r"#error (.*)", text)
    if unwritten:
        raise InputError(f"CasADi writes no C for a part of the problem: {unwritten[1]}")
    refuse_unwritten(text, functions)
    for function in functions:
        # CasADi writes `return 0` in checkout() for a function without memory.
        if not re.search(rf"int {function.name()}_checkout\(void\) {{\s*return 0;", text):
            raise InputError(
                "a function of the problem keeps memory of its own in C (a solver or an "
                "integrator inside it), which an export does not have; write it as a graph"
            )
    # CasADi's text is not ours to change; an export compiles with all warnings as errors.
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
        # The plan has indices of these patterns: other ones would need another plan.
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
