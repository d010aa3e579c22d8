"""A problem: min f(x, p) subject to h(x, p) = 0, as a CasADi symbolic graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.problem.functions import Functions, build_functions

Symbol: TypeAlias = Any  # ca.SX or ca.MX; which of the two is checked where it comes in


@dataclass(frozen=True, eq=False)
class Problem:
    """min f(x, p) subject to h(x, p) = 0, with L(x, λ, p) = f + λᵀh.

    The generated functions (:attr:`functions`) are built once, at the first use, and serve every
    start and every parameter value after that.

    Args:
        x: decision variables, a column of SX or MX symbols (length n).
        f: objective, a scalar of the same kind.
        h: equality constraints (length m), or a mapping from names to expressions, which are
            stacked in the order of the mapping.
        p: parameters, a column of symbols; leave out when there are none.
        constraint_names: m names, used in messages; ``h[i]`` by default.
        variable_names: n names; those of the symbols by default.
        name: name of the problem, used in tables.
        compile: compile the generated functions with the system's C compiler; without one the
            interpreted functions are used and a :class:`CompilerWarning` says so.

    Raises:
        InputError: for a wrong symbol type, free symbols, a wrong shape or a wrong count of names.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> circle = Problem(x=x, f=x[0] + x[1], h={"circle": ca.sumsqr(x) - 2})
        >>> circle.n, circle.m, circle.constraint_names
        (2, 1, ('circle',))
    """

    x: Symbol
    f: Symbol
    h: Symbol | Mapping[str, Symbol]
    p: Symbol | None = None
    constraint_names: Sequence[str] | None = None
    variable_names: Sequence[str] | None = None
    name: str = "problem"
    compile: bool = False

    def __post_init__(self) -> None:
        x = check_symbols(self.x, "x")
        kind = type(x)
        p = (
            kind.sym("p", 0)
            if self.p is None
            else check_symbols(self.p, "p", kind=kind, empty=True)
        )
        names: Sequence[str] | None = self.constraint_names
        h: Any = self.h
        if isinstance(h, Mapping):
            if names is not None:
                raise InputError("constraint_names and a mapping h both name the constraints")
            parts = [
                (key, check_expression(value, f"h[{key!r}]", kind)) for key, value in h.items()
            ]
            h = ca.vertcat(*(part for _, part in parts)) if parts else kind(0, 1)
            names = [label for key, part in parts for label in _labels(str(key), part.numel())]
        h = check_expression(h, "h", kind)
        f = check_expression(self.f, "f", kind)
        if f.numel() != 1:
            raise InputError(f"f has shape {f.shape}; the objective must be a scalar")
        if h.numel() == 0:
            raise InputError(
                "h is empty; this method corrects constraints, so give at least one "
                "(an unconstrained problem is for ca.nlpsol)"
            )
        for label, expression in (("f", f), ("h", h)):
            no_free_symbols(expression, label, x, p)
        fill = object.__setattr__
        fill(self, "x", x)
        fill(self, "p", p)
        fill(self, "f", f)
        fill(self, "h", h)
        fill(self, "constraint_names", check_names(names, h.numel(), "constraint_names", "h"))
        given = self.variable_names if self.variable_names is not None else _symbol_names(x)
        fill(self, "variable_names", check_names(given, x.numel(), "variable_names", "x"))

    @property
    def n(self) -> int:
        """Number of variables."""
        return int(self.x.numel())

    @property
    def m(self) -> int:
        """Number of constraints."""
        assert isinstance(self.h, ca.SX | ca.MX)
        return int(self.h.numel())

    @property
    def n_p(self) -> int:
        """Number of parameters."""
        assert self.p is not None
        return int(self.p.numel())

    @cached_property
    def functions(self) -> Functions:
        """The exact generated functions, built at the first use."""
        assert self.constraint_names is not None
        assert self.variable_names is not None
        return build_functions(
            self.x,
            self.p,
            self.f,
            self.h,
            constraint_names=tuple(self.constraint_names),
            variable_names=tuple(self.variable_names),
            compiled=self.compile,
        )

    def __repr__(self) -> str:
        kind = type(self.x).__name__
        return f"Problem({self.name!r}, {kind}, n={self.n}, m={self.m}, parameters={self.n_p})"


def check_symbols(value: Any, name: str, *, kind: Any = None, empty: bool = False) -> Symbol:
    """Return a dense column of symbols, or refuse it by name."""
    if not isinstance(value, ca.SX | ca.MX):
        join = f"; join them with ca.vertcat(*{name})" if isinstance(value, list | tuple) else ""
        raise InputError(
            f"{name} must be a CasADi SX or MX symbol, got {type(value).__name__}{join}"
        )
    if kind is not None and not isinstance(value, kind):
        raise InputError(f"{name} is {type(value).__name__} but x is {kind.__name__}; use one kind")
    if value.numel() == 0 and not empty:
        raise InputError(f"{name} is empty; at least one symbol is needed")
    if value.numel() and not value.is_valid_input():
        raise InputError(f"{name} must be made of symbols, not of expressions: got {value}")
    if not value.is_column() or not value.is_dense():
        raise InputError(
            f"{name} has shape {value.shape}; a dense column vector is needed. Make a "
            f"column symbol with {value.numel()} entries and give it its shape by ca.reshape"
        )
    return value


def check_expression(value: Any, name: str, kind: Any) -> Symbol:
    """Return a dense column expression of the given kind, or refuse it by name."""
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
            f"{name} has shape {value.shape}; a column vector is needed, such as ca.vec({name})"
        )
    return ca.densify(value)


def no_free_symbols(expression: Symbol, name: str, x: Symbol, p: Symbol) -> None:
    """Refuse an expression that depends on symbols other than x and p."""
    try:
        free = ca.Function("probe", [x, p], [expression], {"allow_free": True}).get_free()
    except RuntimeError:
        raise InputError("x and p share a symbol, or x or p has one twice") from None
    if free:
        raise InputError(
            f"{name} depends on {', '.join(free)}, which is neither in x nor in p; "
            "add it to one of them or replace it by its value"
        )


def _labels(name: str, size: int) -> list[str]:
    return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]


def _symbol_names(x: Symbol) -> list[str]:
    if isinstance(x, ca.SX):
        return [str(entry) for entry in ca.vertsplit(x)]
    return [label for part in ca.symvar(x) for label in _labels(part.name(), part.numel())]


def check_names(
    names: Sequence[str] | None, size: int, argument: str, owner: str
) -> tuple[str, ...]:
    """Return ``size`` names; ``owner[i]`` by default."""
    if names is None:
        return tuple(_labels(owner, size))
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise InputError(f"{argument} must be a list of names, got {type(names).__name__}")
    if len(names) != size:
        raise InputError(f"{argument} has {len(names)} name(s) but {owner} has {size} entries")
    return tuple(str(name) for name in names)
