"""The functions of a problem in parts: what repeats in them is written once, and tables say where.

What finds the parts is what compiles them for the engine, :mod:`casadi_hybrid.engine.blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.engine.blocks.code import ENTRY
from casadi_hybrid.engine.blocks.forms import Form
from casadi_hybrid.engine.blocks.library import Ints, UntranslatedError
from casadi_hybrid.engine.blocks.tables import InParts, Placed
from casadi_hybrid.engine.export.tables import braced, number
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.functions import Functions

_HEAD = """\
/* The functions of {name} in parts.
 *
 * What repeats in them, as the stages of a horizon do, is one C function, and tables say where each
 * of the equal parts reads and writes.
 *
 * In v lie the inputs, constants, and what parts hand to each other; outputs go to out, own is
 * memory of one part. A row of at has the places of a part: in v of what it reads, in out or v of
 * what it makes. Those in v that all of them read are in shared. */
#include <math.h>
#include <string.h>
"""
_ARGUMENTS = "const double **arg, double **res, int *iw, double *w, int mem"
_TITLES = {
    "first": "x, p -> f, grad f, g, J",
    "second": "x, lam_g, p -> the Hessian of L",
}


class PartsText:
    """Both functions as one C file.

    Their outputs have to lie one after the other behind ``res[0]``, as those of an export do.

    Args:
        staged: the first function and the Hessian.
        name: what external names begin with.

    Attributes:
        text: of the file; it has ``NAME_first`` and ``NAME_second``.
        w: numbers that they work in.
    """

    def __init__(self, staged: Sequence[InParts], name: str) -> None:
        texts = sorted(set().union(*(one.texts for one in staged)))
        self._kinds = {text: f"part_{k}" for k, text in enumerate(texts)}
        self._name = name
        self.w = 1
        functions = [
            self._function(word, one.placed) for word, one in zip(_TITLES, staged, strict=True)
        ]
        kinds = [_kind(text, kind) for text, kind in self._kinds.items()]
        self.text = "\n".join([_HEAD.format(name=name), *kinds, *functions])

    def _function(self, word: str, placed: Placed) -> str:
        """Its tables, and the calls of its parts."""
        tables: list[str] = []
        inputs, begin = [], 0
        for i, count in enumerate(placed.sizes):
            if count:
                inputs.append(f"memcpy(v + {begin}, arg[{i}], {count} * sizeof *v);")
            begin += count
        if placed.constants.size:
            numbers = _table(tables, f"{word}_constants", placed.constants)
            inputs.append(f"memcpy(v + {begin}, {numbers}, sizeof {numbers});")
        own = max((run.kind.code[1] for run in placed.runs), default=0)
        self.w = max(self.w, placed.size + own)
        calls = []
        for k, run in enumerate(placed.runs):
            at, shared = (
                _table(tables, f"{word}_{kind}_{k}", array)
                for kind, array in (("at", run.at[: run.count]), ("shared", run.shared))
            )
            kind = self._kinds[run.kind.code[0]]
            calls.append(f"{kind}({run.count}, {at}, {shared}, v, out, own);")
        if placed.to.size:
            to, source = (
                _table(tables, f"{word}_{kind}", array)
                for kind, array in (("to", placed.to), ("from", placed.source))
            )
            calls.append(
                f"for (int i = 0; i < {placed.to.size}; i++) out[{to}[i]] = v[{source}[i]];"
            )
        head = f"int {self._name}_{word}({_ARGUMENTS})"
        lines = [
            f"double *v = w, *own = w + {placed.size}, *out = res[0];",
            "(void)own, (void)out, (void)iw, (void)mem;",
            *inputs,
            *calls,
            "return 0;",
        ]
        body = "".join(f"    {line}\n" for line in lines)
        title = f"/* --- {_TITLES[word]} --- */\n"
        return "\n".join([title, *tables, f"{head};\n{head} {{\n{body}}}\n"])


def in_parts(functions: Functions, name: str) -> PartsText | None:
    """Write them; None where they have no scalar form, or too little repeats to find parts."""
    first, second = functions.first, functions.with_hessian("curvature")
    try:
        return PartsText(Form(first, second, functions.assemblies).staged, name)
    except (UntranslatedError, BuildError, MemoryError):
        return None


def _kind(text: str, name: str) -> str:
    """One kind of part, known in this file alone."""
    lines = text.replace(ENTRY, f"static {ENTRY}").replace("@", name).splitlines()
    return "".join(f"    {one}\n" if one.endswith(";") else f"{one}\n" for one in lines)


def _table(tables: list[str], name: str, array: Ints | NDArray[np.float64]) -> str:
    """Add a table of numbers; its name, ``NULL`` for an empty one."""
    if not array.size:
        return "NULL"
    kind, say = ("int", str) if array.dtype == np.int32 else ("double", number)
    numbers = braced(map(say, array.ravel().tolist()))
    tables.append(f"static const {kind} {name}[{array.size}] = {numbers};\n")
    return name
