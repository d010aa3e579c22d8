"""What a baked ``ca.Opti`` knows of its entries: their names and places, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError


def variable_names(node: Any) -> tuple[str, ...]:
    """One name per entry of ``opti.x``: symbol, entry and source line.

    Args:
        node: a baked ``ca.OptiAdvanced``.

    Raises:
        InputError: for a variable with a discrete domain.
    """
    names: list[str] = []
    # active_symvar() has the order of opti.x: one walk, where a look-up by entry is quadratic.
    for symbol in node.active_symvar(ca.OPTI_VAR):
        meta = node.get_meta(symbol)
        where, name = _place(meta), symbol.name()
        if meta.domain != ca.OPTI_DOMAIN_REAL:
            raise InputError(
                f"variable {name}{where} is discrete; only real variables are supported here, "
                "use a mixed-integer solver"
            )
        rows, columns = symbol.shape
        if symbol.numel() == 1:
            names.append(f"{name}{where}")
        elif columns == 1 or meta.attribute != "full" or not symbol.is_dense():
            # The entries of a symmetric, diagonal or sparse variable have no row and column here.
            names += [f"{name}[{i}]{where}" for i in range(symbol.nnz())]
        else:
            entries = ((i, j) for j in range(columns) for i in range(rows))
            names += [f"{name}[{i}, {j}]{where}" for i, j in entries]
    return tuple(names)


def constraint_names(node: Any) -> tuple[str, ...]:
    """One name per entry of ``opti.g``, with the source line of ``subject_to``.

    Args:
        node: a baked ``ca.OptiAdvanced``.

    Raises:
        InputError: for a semidefinite constraint.
    """
    names: list[str] = []
    for constraint in node.constraints():
        meta = node.get_meta_con(constraint)
        where = _place(meta)
        if meta.type == ca.OPTI_PSD:
            raise InputError(
                f"the constraint {str(constraint)[:80]}{where} is semidefinite (Opti reads an "
                "inequality between square matrices so); for entrywise bounds write "
                "ca.vec(X) >= 0"
            )
        names += [f"g[{i}]{where}" for i in range(meta.start, meta.stop)]
    return tuple(names)


def _place(meta: Any) -> str:
    """The file and line Opti remembers, where it does."""
    trace = meta.extra.get("stacktrace") or []
    return f" ({Path(trace[0]['file']).name}:{trace[0]['line']})" if trace else ""
