"""The functions of a problem in parts: code once for equal parts, and tables of their indices."""

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
 * Repeated parts, such as the stages of a horizon, share one C function; tables have the indices
 * that each part reads and writes.
 *
 * v: inputs, constants, and values that parts pass on; out: outputs; own: memory of one part.
 * A row of at: the indices of one part, in v of its inputs, in out or v of its results.
 * shared: indices in v that all parts read. */
#include <math.h>
#include <string.h>
"""
_ARGUMENTS = "const double **arg, double **res, int *iw, double *w, int mem"
_TITLES = {"first": "x, p -> f, grad f, g, J", "second": "x, lam_g, p -> the Hessian of L"}


def parts_text(staged: Sequence[InParts], name: str) -> tuple[str, int]:
    """Return both functions as one C file, and the length of their work array."""
    # Equal parts have equal text, whichever function they are of. Sorted: the same file each time.
    texts = sorted(set().union(*(function.texts for function in staged)))
    kinds = {text: f"part_{k}" for k, text in enumerate(texts)}
    parts = [_HEAD.format(name=name), *(_kind(text, kind) for text, kind in kinds.items())]
    room = 1
    for title, function in zip(_TITLES, staged, strict=True):
        text, size = _function(name, title, function, kinds)
        parts.append(text)
        # The two functions are never evaluated at once: one work array serves both.
        room = max(room, size)
    return "\n".join(parts), room


def _function(name: str, word: str, parts: InParts, kinds: Mapping[str, str]) -> tuple[str, int]:
    """The tables of a function and the calls of its parts, and the length of its work array."""
    tables: list[str] = []
    lines = [
        f"double *v = w, *own = w + {parts.size}, *out = res[0];",
        "(void)own, (void)out, (void)iw, (void)mem;",
    ]
    begin = 0
    for i, count in enumerate(parts.sizes):
        if count:
            # v begins with the inputs, then the constants; the results of parts follow.
            lines.append(f"memcpy(v + {begin}, arg[{i}], {count} * sizeof *v);")
        begin += count
    if parts.constants.size:
        constants = _table(tables, f"{word}_constants", parts.constants)
        lines.append(f"memcpy(v + {begin}, {constants}, sizeof {constants});")
    for k, run in enumerate(parts.runs):
        at = _table(tables, f"{word}_at_{k}", run.at[: run.count])
        shared = _table(tables, f"{word}_shared_{k}", run.shared)
        lines.append(f"{kinds[run.kind.code[0]]}({run.count}, {at}, {shared}, v, out, own);")
    if parts.target.size:
        target = _table(tables, f"{word}_to", parts.target)
        source = _table(tables, f"{word}_from", parts.source)
        copy = f"out[{target}[i]] = v[{source}[i]];"
        lines.append(f"for (int i = 0; i < {parts.target.size}; i++) {copy}")
    body = "".join(f"    {line}\n" for line in [*lines, "return 0;"])
    head = f"int {name}_{word}({_ARGUMENTS})"
    title = f"/* --- {_TITLES[word]} --- */\n"
    own = max((run.kind.code[1] for run in parts.runs), default=0)
    return "\n".join([title, *tables, f"{head};\n{head} {{\n{body}}}\n"]), parts.size + own


def in_parts(functions: Functions, name: str) -> tuple[str, int] | None:
    """Write functions in parts; None if they have no scalar form, or too little repeats."""
    first, second = functions.first, functions.with_hessian("curvature")
    try:
        return parts_text(Form(first, second, functions.assemblies).staged, name)
    except (UntranslatedError, BuildError, MemoryError):
        return None


def _kind(text: str, name: str) -> str:
    """One kind of part as a static function."""
    lines = text.replace(ENTRY, f"static {ENTRY}").replace("@", name).splitlines()
    return "".join(f"    {line}\n" if line.endswith(";") else f"{line}\n" for line in lines)


def _table(tables: list[str], name: str, array: Ints | NDArray[np.float64]) -> str:
    """Add a table of numbers; return its name, ``NULL`` for an empty one."""
    if not array.size:
        return "NULL"
    kind, written = ("int", str) if array.dtype == np.int32 else ("double", number)
    numbers = braced(map(written, array.ravel().tolist()))
    tables.append(f"static const {kind} {name}[{array.size}] = {numbers};\n")
    return name
