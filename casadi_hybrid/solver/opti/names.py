"""Names of the entries of a baked ``ca.Opti``, with their source lines, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid.problem.graph.expressions import labels
from casadi_hybrid.utils.errors import InputError


def refuse_sparse(node: Any) -> None:
    """Refuse variables with structural zeros before the bake, which may crash on them."""
    for symbol in node.symvar():
        if not symbol.is_dense():
            meta = node.get_meta(symbol)
            if meta.type == ca.OPTI_VAR:
                raise InputError(
                    f"variable {symbol.name()}{_source_line(meta)} is sparse; Opti solves for "
                    "dense variables: make a column x of its nonzeros and write ca.MX(sparsity, x)"
                )


def variable_names(node: Any) -> tuple[str, ...]:
    """Return a name for each entry of ``opti.x`` of a baked node: symbol, entry, source line.

    Raises:
        InputError: for a variable with a discrete domain.
    """
    names: list[str] = []
    # active_symvar() has the order of opti.x; a look-up by entry would be quadratic.
    for symbol in node.active_symvar(ca.OPTI_VAR):
        meta = node.get_meta(symbol)
        line, name = _source_line(meta), symbol.name()
        if meta.domain == ca.OPTI_DOMAIN_INTEGER:
            raise InputError(
                f"variable {name}{line} is discrete; only real variables are supported here, "
                "use a mixed-integer solver"
            )
        rows, columns = symbol.shape
        if columns == 1:  # also the lower triangle that Opti keeps of a symmetric variable
            entries = labels(name, rows)
        else:
            entries = [f"{name}[{i}, {j}]" for j in range(columns) for i in range(rows)]
        names += [entry + line for entry in entries]
    return tuple(names)


def constraint_names(node: Any) -> tuple[str, ...]:
    """Return a name for each entry of ``opti.g`` of a baked node, with the source line.

    Raises:
        InputError: for a semidefinite constraint.
    """
    names: list[str] = []
    for constraint in node.constraints():
        meta = node.get_meta_con(constraint)
        line = _source_line(meta)
        if meta.type == ca.OPTI_PSD:
            raise InputError(
                f"the constraint {str(constraint)[:80]}{line} is semidefinite (Opti reads an "
                "inequality between square matrices so); for entrywise bounds write "
                "ca.vec(X) >= 0"
            )
        names += [f"g[{i}]{line}" for i in range(meta.start, meta.stop)]
    return tuple(names)


def _source_line(meta: Any) -> str:
    """File and line that Opti recorded; empty without a record."""
    trace = meta.extra.get("stacktrace") or []
    return f" ({Path(trace[0]['file']).name}:{trace[0]['line']})" if trace else ""
