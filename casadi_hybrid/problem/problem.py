"""A problem: min f(x, p) s.t. h(x, p) = 0 and lbg ≤ g(x, p) ≤ ubg, as a CasADi graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.arguments import NUMBERS, Defaults, Numbers, Sizes
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import Shapes, as_columns
from casadi_hybrid.problem.forms import read_form
from casadi_hybrid.problem.graph.derivatives import Derivatives
from casadi_hybrid.problem.graph.expressions import (
    Blocks,
    Stack,
    Symbol,
    check_expression,
    check_names,
    check_symbols,
    entry_names,
    joined,
    make_graph,
    no_free_symbols,
    stack_expressions,
    stack_symbols,
    symbols_of,
)
from casadi_hybrid.problem.graph.external import external_functions, external_parameter_gradient
from casadi_hybrid.problem.graph.functions import Functions
from casadi_hybrid.problem.graph.generate import build_functions
from casadi_hybrid.utils.arrays import changed
from casadi_hybrid.utils.errors import InputError

_SYMBOLS = ("x", "p", "f", "h", "g")
_BUILT = ("functions", "feasibility", "linear", "parameter_gradient")


@dataclass(frozen=True, eq=False)
class Problem:
    """min f(x, p) s.t. h(x, p) = 0, lbg ≤ g(x, p) ≤ ubg and lbx ≤ x ≤ ubx.

    The rows of all constraints are c = (h; g), m of them, and L(x, λ, p) = f + λᵀc. The generated
    functions (:attr:`functions`) are built once, at the first use, and serve every start, every
    parameter value and all bounds after that. It can be pickled, and it is hashed by identity.

    Args:
        x: decision variables, a column of SX or MX symbols (length n), or a mapping from names to
            such columns, which are stacked in its order.
        f: objective, a scalar of the same kind; without one any feasible point is a solution.
        h: equations, a column of expressions, a list of them, or a mapping from names to either,
            which are stacked in its order.
        g: rows with bounds, given as h is. In a mapping a tuple ``(lower, expression, upper)`` has
            the default bounds of its rows, numbers or None for no bound.
        p: parameters, given as x is; leave out when there are none.
        constraint_names: m names of the rows (h; g), used in messages; those of the blocks, or
            ``h[i]`` and ``g[i]``, by default.
        variable_names: n names; those of the blocks or of the symbols by default.
        name: name of the problem, used in tables.
        compile: compile the generated functions with the system's C compiler; without one the
            interpreted functions are used and a
            :class:`~casadi_hybrid.utils.errors.CompilerWarning` says so. Under the default method
            what repeats in them, as the stages of a horizon do, is compiled once.
        lbx, ubx, lbg, ubg: default bounds: a number, n numbers (of x) or as many as g has rows,
            or a mapping from names of blocks to their numbers. Rows of h have none to give.
        x0, p0, lam_x0, lam_g0: default numbers of a solve: n, n_p, n and m of them, a single one,
            or a mapping by block; None for zeros (and for no parameters' values).
        derivatives: what takes the place of derivatives that CasADi generates, and how the Hessian
            is approximated: a :class:`~casadi_hybrid.Derivatives`.

    Raises:
        InputError: for a wrong symbol type, free symbols, a wrong shape, a wrong count of names or
            numbers, a block that does not exist or has bounds twice, a lower bound above its
            upper one, or a NaN.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> circle = Problem(x=x, f=x[0], h={"circle": ca.sumsqr(x) - 2}, g={"half": (0, x[1], 5)})
        >>> circle.n, circle.m, circle.constraint_names
        (2, 2, ('circle', 'half'))
        >>> circle.bounds.ubg.tolist(), circle.numbers(ubg={"half": 7}).bounds.ubg.tolist()
        ([0.0, 5.0], [0.0, 7.0])
    """

    x: Symbol
    f: Symbol = 0
    h: Symbol | Mapping[str, Symbol] | Sequence[Symbol] | None = None
    g: Symbol | Mapping[str, Symbol] | Sequence[Symbol] | None = None
    p: Symbol | None = None
    constraint_names: Sequence[str] | None = None
    variable_names: Sequence[str] | None = None
    name: str = "problem"
    compile: bool = False
    _: KW_ONLY
    lbx: Any = -np.inf
    ubx: Any = np.inf
    lbg: Any = -np.inf
    ubg: Any = np.inf
    x0: Any = None
    p0: Any = None
    lam_x0: Any = None
    lam_g0: Any = None
    derivatives: Derivatives = Derivatives()  # noqa: RUF009  immutable
    blocks: dict[str, Blocks] = field(init=False, repr=False)
    """Entries of the named blocks of ``"x"``, ``"p"``, ``"g"`` and, of all rows (h; g), ``"c"``."""
    shapes: Shapes = field(init=False, repr=False)
    """Shapes of those of x, p and g that :meth:`from_nlp` was given as rows or matrices."""
    oracle: ca.Function | None = field(init=False, repr=False)
    """(x, p) → (f, g) of :meth:`from_nlp` where it is foreign code with derivatives of its own."""
    graph: ca.Function = field(init=False, repr=False)
    """(x, p) → (f, c)."""
    defaults: Defaults = field(init=False, repr=False)
    """The default numbers, checked."""

    def __post_init__(self) -> None:
        x = stack_symbols(self.x, "x")
        kind = type(x.column)
        p = (
            Stack(kind.sym("p", 0))
            if self.p is None
            else stack_symbols(self.p, "p", kind=kind, empty=True)
        )
        h = stack_expressions(self.h, "h", kind)
        g = stack_expressions(self.g, "g", kind, bounded=True)
        f = check_expression(self.f, "f", kind)
        if f.numel() != 1:
            raise InputError(f"f has shape {f.shape}; the objective must be a scalar")
        expressions = {"f": f, "h": h.column, "g": g.column}
        rows = joined(h, g, self.constraint_names)
        graph = make_graph(x.column, p.column, [f, rows.column])
        if graph.get_free():
            for label, expression in expressions.items():
                no_free_symbols(expression, label, x.column, p.column)
        fill = object.__setattr__
        for label, value in {"x": x.column, "p": p.column, **expressions}.items():
            fill(self, label, value)
        fill(self, "graph", graph)
        fill(self, "shapes", {})
        fill(self, "oracle", None)
        fill(self, "constraint_names", tuple(rows.names or ()))
        fill(self, "variable_names", entry_names(self.variable_names, x))
        fill(self, "blocks", {"x": x.blocks, "p": p.blocks, "g": g.blocks, "c": rows.blocks})
        sizes = Sizes(
            self.variable_names or (),
            self.constraint_names or (),
            int(h.column.numel()),
            int(p.column.numel()),
        )
        if not isinstance(self.derivatives, Derivatives):
            raise InputError(
                f"derivatives must be a Derivatives, got {type(self.derivatives).__name__}"
            )
        self.derivatives.check(len(sizes.variables), sizes.n_p, len(sizes.rows))
        given = {label: getattr(self, label) for label in NUMBERS}
        fill(self, "defaults", Defaults.of(sizes, self.blocks, g.limits, given))
        for label, value in self.defaults.given.items():
            fill(self, label, value)

    @classmethod
    def from_nlp(
        cls,
        nlp: Any,
        *,
        name: str = "nlp",
        constraint_names: Sequence[str] | None = None,
        variable_names: Sequence[str] | None = None,
        compile: bool = False,
        **numbers: Any,
    ) -> Problem:
        """Build from CasADi's dictionary with ``x`` and, where there are any, ``f``, ``g``, ``p``.

        As in CasADi x and g may be rows and p a matrix, read column by column
        (:attr:`shapes`), and the entries may be structures of ``casadi.tools``.

        Args:
            nlp: the dictionary, or another form that CasADi takes: a ``ca.Function``
                (x, p) → (f, g), a ``ca.NlpBuilder``, or the name of a file
                (:func:`~casadi_hybrid.problem.forms.read_form`). An ``.nl`` file brings its
                bounds and its start as default numbers.
            name, compile: see the class.
            constraint_names: m names; ``g[i]`` by default.
            variable_names: n names; ``x[i]`` by default.
            **numbers: default numbers (``x0``, ``lbg``, …) and ``derivatives``, see the class.

        Raises:
            InputError: for no such form, an unknown key, a wrong symbol type, free symbols, a
                wrong shape or bad numbers.
        """
        form = read_form(nlp)
        nlp, shapes = as_columns(form.entries)
        x = check_symbols(nlp["x"], "x")
        kind = type(x)
        problem = cls(
            x=x,
            f=Stack(check_expression(nlp.get("f", 0), "f", kind, logic=True)),
            g=Stack(check_expression(nlp.get("g", kind(0, 1)), "g", kind, logic=True)),
            p=check_symbols(nlp["p"], "p", kind=kind, empty=True) if "p" in nlp else None,
            constraint_names=constraint_names,
            variable_names=check_names(variable_names, x.numel(), "variable_names", "x"),
            name=name,
            compile=compile and form.oracle is None,
            **{**form.numbers, **numbers},
        )
        object.__setattr__(problem, "shapes", shapes)
        object.__setattr__(problem, "oracle", form.oracle)
        return problem

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.defaults.sizes.variables)

    @property
    def m(self) -> int:
        """Number of rows of c = (h; g)."""
        return len(self.defaults.sizes.rows)

    @property
    def m_h(self) -> int:
        """Number of rows of h, the first of c."""
        return self.defaults.sizes.m_h

    @property
    def n_p(self) -> int:
        """Number of parameters."""
        return self.defaults.sizes.n_p

    @property
    def bounds(self) -> Bounds:
        """The default bounds, of x and of all m rows (h; g); those of h are [0, 0]."""
        return self.defaults.bounds

    @cached_property
    def functions(self) -> Functions:
        """The exact generated functions of f and c, built at the first use."""
        if self.oracle is not None:
            names = tuple(self.constraint_names or ()), tuple(self.variable_names or ())
            return external_functions(self.oracle, *names)
        return build_functions(
            self.graph,
            constraint_names=tuple(self.constraint_names or ()),
            variable_names=tuple(self.variable_names or ()),
            compiled=self.compile,
            constraint_label="h" if self.m and self.m == self.m_h else "g",
            derivatives=self.derivatives,
        )

    @cached_property
    def feasibility(self) -> bool:
        """Whether f does not depend on x, so that every feasible point is a solution."""
        functions = self.functions
        if functions.assemblies is not None:
            return not functions.assemblies[0].touches(1, self.n)
        return bool(functions.first.jac_sparsity(0, 0).nnz() == 0)

    @cached_property
    def linear(self) -> bool:
        """Whether c is affine in x, so that a least violation is the least of all."""
        return self.functions.affine.made

    @cached_property
    def parameter_gradient(self) -> ca.Function:
        """(x, λ, p) → ∂(f + λᵀc)/∂p, n_p entries, NaN where it has none; built at the first use."""
        if self.oracle is not None and self.n_p:
            return external_parameter_gradient(self.oracle)
        kind = type(self.x)
        x, p, lam = kind.sym("x", self.n), kind.sym("p", self.n_p), kind.sym("lam", self.m)
        f, c = self.graph.call([x, p], True, False)
        try:
            slope = ca.gradient(f + ca.dot(lam, c), p) if self.n_p else kind(0, 1)
        except RuntimeError:
            slope = kind(ca.DM.nan(self.n_p, 1))
        return ca.Function("gradient_p", [x, lam, p], [ca.densify(slope)])

    def with_derivatives(self, derivatives: Derivatives) -> Problem:
        """The same problem with other derivatives.

        Raises:
            InputError: where they do not fit it.
        """
        derivatives.check(self.n, self.n_p, self.m)
        return self._unbuilt(derivatives=derivatives)

    def exact(self) -> Problem:
        """The same problem with CasADi's own derivatives; itself where it has them, or has none."""
        if self.derivatives.plain:
            return self
        own = self.with_derivatives(Derivatives())
        try:
            own.functions  # noqa: B018
        except InputError:
            return self
        return own

    @property
    def differentiable_graph(self) -> ca.Function:
        """(x, p) → (f, c) with the first derivatives by x that are given."""
        return self.derivatives.attached(self.graph)

    def compiled(self) -> Problem:
        """The same problem with functions compiled by the system's C compiler, where it has one."""
        if self.oracle is not None:
            return self
        return changed(self, compile=True, functions=self.functions.compiled())

    def interpreted(self) -> Problem:
        """The same problem without ``compile``, an object of its own."""
        made = changed(self, compile=False)
        if self.compile:
            made.__dict__.pop("functions", None)
        return made

    def expanded(self) -> Problem:
        """The same problem in SX, with functions of its own.

        Raises:
            RuntimeError: where an operation has no scalar form.
        """
        if isinstance(self.x, ca.SX):
            return self
        graph = self.graph.expand()
        return self._unbuilt(graph=graph, **symbols_of(graph, self.m_h))

    def _unbuilt(self, **fields: Any) -> Problem:
        """The same problem with other fields, and nothing generated yet."""
        made = changed(self, **fields)
        for label in _BUILT:
            made.__dict__.pop(label, None)
        return made

    def numbers(
        self,
        x0: Any = None,
        p: Any = None,
        lbx: Any = None,
        ubx: Any = None,
        lbg: Any = None,
        ubg: Any = None,
        lam_x0: Any = None,
        lam_g0: Any = None,
    ) -> Numbers:
        """Read and check the numbers of one solve; what is None is the problem's default.

        A single number stands for all entries. A mapping by block replaces the numbers of the
        blocks it names.

        Args:
            x0: start, n numbers.
            p: parameter values, n_p numbers.
            lbx, ubx: bounds of x, n numbers each.
            lbg, ubg: bounds of g's rows, as many numbers as g has rows; h's are always [0, 0].
            lam_x0, lam_g0: multipliers of the bounds and of all rows (h; g), n and m numbers.

        Raises:
            InputError: for a wrong shape or type, a NaN, an unknown block, lower bounds above
                upper ones, or parameters without values; before any evaluation.
        """
        return self.defaults.numbers(x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0)

    def __getstate__(self) -> dict[str, Any]:
        # Symbols do not pickle, functions do; compiled code is of one process.
        kept = {key: value for key, value in self.__dict__.items() if key not in _SYMBOLS}
        if "functions" in kept and self.functions.backend == "compiled":
            del kept["functions"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept, **symbols_of(kept["graph"], kept["defaults"].sizes.m_h))

    def __repr__(self) -> str:
        kind = type(self.x).__name__
        return f"Problem({self.name!r}, {kind}, n={self.n}, m={self.m}, parameters={self.n_p})"
