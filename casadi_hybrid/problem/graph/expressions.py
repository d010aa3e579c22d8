"""Checks, names and stacking of symbols and expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import casadi as ca

from casadi_hybrid.utils.errors import InputError

Symbol: TypeAlias = Any  # ca.SX or ca.MX
Blocks: TypeAlias = dict[str, slice]
_LOGIC = ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR


@dataclass(frozen=True)
class Stack:
    """A column made of one expression or of named blocks."""

    column: Symbol
    names: list[str] | None = None  # of the entries; None without a mapping
    blocks: Blocks = field(default_factory=dict)
    limits: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # (lower, upper) by block


def check_symbols(value: Any, name: str, *, kind: Any = None, empty: bool = False) -> Symbol:
    """Return a dense column of symbols; refuse any other value by its name."""
    if not isinstance(value, ca.SX | ca.MX):
        join = f"; join them with ca.vertcat(*{name})" if isinstance(value, list | tuple) else ""
        raise InputError(
            f"{name} must be a CasADi SX or MX symbol, got {type(value).__name__}{join}"
        )
    if kind is not None and not isinstance(value, kind):
        raise InputError(f"{name} is {type(value).__name__} but x is {kind.__name__}; use one kind")
    if value.numel() == 0 and not empty and not value.is_column():
        raise InputError(
            f"{name} is empty, of shape {value.shape}; a problem without variables has a column of "
            f"none, {type(value).__name__}.sym({name!r}, 0)"
        )
    if value.numel() and not value.is_valid_input():
        raise InputError(
            f"{name} must be made of symbols, not of expressions: got {value}. Make a symbol of "
            "each part, join them with ca.vertcat, and use its parts in f and g"
        )
    if not value.is_column() or not value.is_dense():
        raise InputError(
            f"{name} has shape {value.shape}; a dense vector is needed, in one column. Make a "
            f"column symbol with {value.numel()} entries and give it its shape by ca.reshape"
        )
    return value


def check_expression(value: Any, name: str, kind: Any, *, logic: bool = False) -> Symbol:
    """Return a dense column of the kind; refuse a comparison, unless ``logic`` allows it."""
    # Checked already: from_nlp() allows comparisons, as CasADi does.
    if isinstance(value, Stack):
        return value.column
    if isinstance(value, int | float | ca.DM):
        value = kind(value)
    if isinstance(value, list | tuple):
        parts = [check_expression(part, f"{name}[{i}]", kind) for i, part in enumerate(value)]
        value = kind(ca.vertcat(*parts))
    if not isinstance(value, kind):
        raise InputError(
            f"{name} must be a {kind.__name__} expression like x, got {type(value).__name__}"
        )
    if value.numel() and not value.is_column():
        raise InputError(
            f"{name} has shape {value.shape}; a dense vector is needed, such as ca.vec({name})"
        )
    return full(value if logic else no_comparison(value, name))


def no_comparison(value: Symbol, name: str) -> Symbol:
    """Return the expression; refuse it if an entry is a comparison or a logical operation."""
    # MX has no list of entries: the operands of a vertcat are searched instead.
    stacked = isinstance(value, ca.MX) and value.is_op(ca.OP_VERTCAT)
    for part in value.nonzeros() if isinstance(value, ca.SX) else [value]:
        for i in range(value.n_dep() if stacked else 0):
            no_comparison(value.dep(i), name)
        if part.op() in _LOGIC:
            raise InputError(
                f"{name} is the comparison {part}, 0 or 1; give a - b for a == b, for a limit one "
                "side and the limit beside it, ca.if_else(…, 1, 0) where 0 or 1 is meant"
            )
    return value


def full(value: Symbol) -> Symbol:
    """Return the expression as a dense one; ``ca.densify`` copies dense expressions too."""
    return value if value.is_dense() else ca.densify(value)


def no_free_symbols(expression: Symbol, name: str, x: Symbol, p: Symbol) -> None:
    """Refuse an expression that depends on symbols other than x and p."""
    free = ", ".join(make_graph(x, p, [expression]).get_free())
    if free:
        raise InputError(
            f"{name} depends on {free}, which is neither in x nor in p ([{free}] are free); add it "
            "to one of them or replace it by its value"
        )


def make_graph(x: Symbol, p: Symbol, expressions: Sequence[Symbol]) -> ca.Function:
    """Return (x, p) → expressions, perhaps with free symbols; refuse a symbol that occurs twice."""
    try:
        return ca.Function("graph", [x, p], list(expressions), {"allow_free": True})
    except RuntimeError:
        raise InputError("x and p share a symbol, or x or p has one twice") from None


def stack_symbols(value: Any, name: str, *, kind: Any = None, empty: bool = False) -> Stack:
    """Stack symbols, or a mapping of names to symbols, to a dense column."""
    if not isinstance(value, Mapping):
        return Stack(check_symbols(value, name, kind=kind, empty=empty))
    parts: dict[str, Symbol] = {}
    for key, part in value.items():
        parts[_key(key, name)] = check_symbols(part, f"{name}[{key!r}]", kind=kind, empty=True)
        kind = kind or type(part)
    if not parts:
        if kind is None or not empty:
            raise InputError(f"{name} is empty; at least one symbol is needed")
        return Stack(kind.sym(name, 0))
    column = check_symbols(ca.vertcat(*parts.values()), name, kind=kind, empty=empty)
    return Stack(column, *_named(parts))


def stack_expressions(value: Any, name: str, kind: Any, *, bounded: bool = False) -> Stack:
    """Stack rows h or g: None, an expression, a sequence, or a mapping from names to either."""
    if value is None:
        return Stack(kind(0, 1))
    if not isinstance(value, Mapping):
        column = check_expression(value, name, kind)
        return Stack(column if column.numel() else kind(0, 1))
    parts: dict[str, Symbol] = {}
    limits: dict[str, tuple[Any, Any]] = {}
    for key, rows in value.items():
        label, expression = f"{name}[{_key(key, name)!r}]", rows
        pair = bounded and isinstance(rows, tuple) and len(rows) == 2
        if pair and not all(isinstance(entry, ca.SX | ca.MX) for entry in rows):
            raise InputError(f"{label} is a pair; write (lower, expression, upper), None for none")
        # Three are (lower, expression, upper) in g. In h three expressions are three rows.
        if isinstance(rows, tuple) and len(rows) == 3:
            numeric_bounds = not any(isinstance(end, ca.SX | ca.MX) for end in rows[::2])
            if bounded and not numeric_bounds:
                raise InputError(
                    f"{label} is a tuple of three, (lower, expression, upper), and its bounds must "
                    "be numbers; give rows as a list, and move a variable bound into the row"
                )
            if bounded:
                lower, expression, upper = rows
                limits[key] = lower, upper
            elif numeric_bounds and isinstance(rows[1], ca.SX | ca.MX):
                raise InputError(f"{label} has bounds, but {name} is for equations; give it in g")
        parts[key] = check_expression(expression, label, kind)
    filled = [part for part in parts.values() if part.numel()]
    column = kind(ca.vertcat(*filled)) if filled else kind(0, 1)
    return Stack(full(column), *_named(parts), limits)


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"{name} has a block by the name {key!r}; a name must be a text")
    return key


def _named(parts: Mapping[str, Symbol]) -> tuple[list[str], Blocks]:
    """Names of the entries, and the slice of each block."""
    names: list[str] = []
    blocks: Blocks = {}
    for key, part in parts.items():
        start = len(names)
        names += labels(key, part.numel())
        blocks[key] = slice(start, len(names))
    return names, blocks


def labels(name: str, size: int) -> list[str]:
    """``name`` for one entry, ``name[i]`` for several."""
    return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]


class Label(str):
    """A name with the unit of its values, printed as ``place (in 10 m from 7)``."""

    # A value v means scale·v + origin in the unit. Messages print that with the bare name.
    bare: str
    scale: float
    unit: str
    origin: float

    def __new__(cls, bare: str, scale: float = 1.0, unit: str = "", origin: float = 0.0) -> Label:
        """Return the label, with its parts as attributes."""
        begin = f"from {origin:g}" if origin else ""
        size = f"{scale:g}" if scale != 1.0 or (begin and not unit) else ""
        suffix = " ".join(filter(None, (size, unit, begin)))
        label = super().__new__(cls, f"{bare} (in {suffix})" if suffix else bare)
        label.bare, label.scale, label.unit, label.origin = bare, scale, unit, origin
        return label


def symbol_names(x: Symbol) -> list[str]:
    """Names of the symbols, entry by entry."""
    if isinstance(x, ca.SX):
        return [str(entry) for entry in ca.vertsplit(x)]
    return [label for part in ca.symvar(x) for label in labels(part.name(), part.numel())]


def check_names(
    names: Sequence[str] | None, size: int, argument: str, owner: str
) -> tuple[str, ...]:
    """Return ``size`` names; ``owner[i]`` by default."""
    if names is None:
        return tuple(labels(owner, size))
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise InputError(f"{argument} must be a list of names, got {type(names).__name__}")
    if len(names) != size:
        raise InputError(f"{argument} has {len(names)} name(s) but {owner} has {size} entries")
    checked = tuple(name if isinstance(name, str) else str(name) for name in names)
    for name, times in Counter(checked).items():
        if times > 1:
            raise InputError(f"{argument} has {name!r} twice; give each entry its own name")
    return checked


def symbols_of(graph: ca.Function, m_h: int) -> dict[str, Symbol]:
    """Fresh symbols x and p, and the f, h and g of (x, p) → (f, c) in them."""
    kind = ca.SX if graph.is_a("SXFunction") else ca.MX
    x, p = kind.sym("x", graph.size1_in(0)), kind.sym("p", graph.size1_in(1))
    f, c = graph.call([x, p], True, False)
    # A slice of all rows would be one more node of the graph.
    if 0 < m_h < c.numel():
        h, g = c[:m_h], c[m_h:]
    else:
        h, g = (c, kind(0, 1)) if m_h else (kind(0, 1), c)
    return {"x": x, "p": p, "f": f, "h": h, "g": g}


def joined(h: Stack, g: Stack, names: Sequence[str] | None) -> Stack:
    """Rows c = (h; g), named by ``names``, by the blocks, or ``h[i]`` and ``g[i]``."""
    m_h, m_g = h.column.numel(), g.column.numel()
    for label, stack in (("h", h), ("g", g)):
        if names is not None and stack.names is not None:
            raise InputError(f"constraint_names and a mapping {label} both name the constraints")
    for key in g.blocks:
        if key in h.blocks:
            raise InputError(f"h and g both have a block {key!r}; give them different names")
    if names is None:
        names = [*(h.names or labels("h", m_h)), *(g.names or labels("g", m_g))]
    owner, column = ("g", g.column) if m_g else ("h", h.column)
    if m_h and m_g:
        owner, column = "(h; g)", ca.vertcat(h.column, g.column)
    rows = check_names(names, m_h + m_g, "constraint_names", owner)
    moved = {key: slice(s.start + m_h, s.stop + m_h) for key, s in g.blocks.items()}
    return Stack(column, list(rows), {**h.blocks, **moved})


def entry_names(names: Sequence[str] | None, x: Stack) -> tuple[str, ...]:
    """Names of the variables: ``names``, or the names of the blocks or of the symbols."""
    if names is not None and x.names is not None:
        raise InputError("variable_names and a mapping x both name the variables")
    if names is None:
        names = x.names or symbol_names(x.column)
    return check_names(names, x.column.numel(), "variable_names", "x")
