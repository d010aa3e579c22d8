"""The functions of a problem in parts: what repeats in them is written once, and tables say where.

What finds the parts is what compiles them for the engine, :mod:`casadi_hybrid.core.evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.code import ENTRY
from casadi_hybrid.core.evaluation.forms import Form
from casadi_hybrid.core.evaluation.library import Ints, UntranslatedError
from casadi_hybrid.core.evaluation.tables import InParts
from casadi_hybrid.core.export.tables import braced, number
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.graph.functions import Functions

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
_TITLES = {"first": "x, p -> f, grad f, g, J", "second": "x, lam_g, p -> the Hessian of L"}


def parts_text(staged: Sequence[InParts], name: str) -> tuple[str, int]:
    """Both functions as one C file, and how many numbers they work in.

    The file has ``NAME_first`` and ``NAME_second``. Their outputs have to lie one after the other
    behind ``res[0]``, as those of an export do.

    Args:
        staged: the first function and the Hessian.
        name: what external names begin with.
    """
    texts = sorted(set().union(*(one.texts for one in staged)))
    kinds = {text: f"part_{k}" for k, text in enumerate(texts)}
    parts = [_HEAD.format(name=name), *(_kind(text, kind) for text, kind in kinds.items())]
    most = 1
    for word, one in zip(_TITLES, staged, strict=True):
        text, size = _function(name, word, one, kinds)
        parts.append(text)
        most = max(most, size)
    return "\n".join(parts), most


def _function(name: str, word: str, one: InParts, kinds: Mapping[str, str]) -> tuple[str, int]:
    """The tables of a function and the calls of its parts, and the numbers it works in."""
    tables: list[str] = []
    lines, begin = [], 0
    for i, count in enumerate(one.sizes):
        if count:
            lines.append(f"memcpy(v + {begin}, arg[{i}], {count} * sizeof *v);")
        begin += count
    if one.constants.size:
        numbers = _table(tables, f"{word}_constants", one.constants)
        lines.append(f"memcpy(v + {begin}, {numbers}, sizeof {numbers});")
    for k, run in enumerate(one.runs):
        at = _table(tables, f"{word}_at_{k}", run.at[: run.count])
        shared = _table(tables, f"{word}_shared_{k}", run.shared)
        lines.append(f"{kinds[run.kind.code[0]]}({run.count}, {at}, {shared}, v, out, own);")
    if one.target.size:
        to = _table(tables, f"{word}_to", one.target)
        source = _table(tables, f"{word}_from", one.source)
        copy = f"out[{to}[i]] = v[{source}[i]];"
        lines.append(f"for (int i = 0; i < {one.target.size}; i++) {copy}")
    head = f"int {name}_{word}({_ARGUMENTS})"
    memory = f"double *v = w, *own = w + {one.size}, *out = res[0];"
    lines = [memory, "(void)own, (void)out, (void)iw, (void)mem;", *lines, "return 0;"]
    body = "".join(f"    {line}\n" for line in lines)
    title = f"/* --- {_TITLES[word]} --- */\n"
    own = max((run.kind.code[1] for run in one.runs), default=0)
    return "\n".join([title, *tables, f"{head};\n{head} {{\n{body}}}\n"]), one.size + own


def in_parts(functions: Functions, name: str) -> tuple[str, int] | None:
    """Write them; None where they have no scalar form, or too little repeats to find parts."""
    first, second = functions.first, functions.with_hessian("curvature")
    try:
        return parts_text(Form(first, second, functions.assemblies).staged, name)
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
