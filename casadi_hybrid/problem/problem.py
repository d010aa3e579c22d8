"""The problem min f(x, p) s.t. h(x, p) = 0 and lbg ≤ g(x, p) ≤ ubg, as a CasADi graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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

# Fields with symbols, which cannot be pickled; properties that a change of the graph undoes.
_SYMBOLS = ("x", "p", "f", "h", "g")
_BUILT = ("functions", "feasibility", "linear", "parameter_gradient")


@dataclass(frozen=True, eq=False)
class Problem:
    """min f(x, p) s.t. h(x, p) = 0, lbg ≤ g(x, p) ≤ ubg and lbx ≤ x ≤ ubx.

    The m rows of all constraints are c = (h; g), and L(x, λ, p) = f + λᵀc. The generated
    functions (:attr:`functions`) are built once, at the first use, for all starts, parameters and
    bounds. A problem can be pickled, and it is hashed by identity.

    Args:
        x: decision variables: a column of n SX or MX symbols, or a mapping from names to such
            columns, which are stacked in its order.
        f: objective, a scalar of the same kind; without one any feasible point is a solution.
        h: equations: a column of expressions, a list of them, or a mapping from names to either.
        g: rows with bounds, in the forms of h. In a mapping a tuple ``(lower, expression, upper)``
            states the default bounds of its rows: numbers, or None for no bound.
        p: parameters, in the forms of x; omit without parameters.
        constraint_names: m names of the rows (h; g) for messages; by default the names of the
            blocks, or ``h[i]`` and ``g[i]``.
        variable_names: n names; by default the names of the blocks or of the symbols.
        name: name of the problem in tables.
        compile: compile the generated functions with the system's C compiler. Without one the
            interpreted functions are used, with a
            :class:`~casadi_hybrid.utils.errors.CompilerWarning`. The default method compiles
            repeated parts, such as the stages of a horizon, once.
        lbx, ubx, lbg, ubg: default bounds: a number, one number per entry of x or row of g, or a
            mapping by block. The rows of h have no bounds to set.
        x0, p0, lam_x0, lam_g0: default arguments of a solve: n, n_p, n and m numbers, a single
            one, or a mapping by block. None means zeros; parameters then must be given in a solve.
        derivatives: derivatives and Hessian approximation that replace those of CasADi: a
            :class:`~casadi_hybrid.Derivatives`.

    Raises:
        InputError: for a wrong symbol type, free symbols, a wrong shape, a wrong count of names or
            numbers, an unknown block, a block with bounds twice, a lower bound above its upper
            one, or a NaN.

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
    """Slices of the named blocks of ``"x"``, ``"p"``, ``"g"`` and ``"c"`` = (h; g)."""
    shapes: Shapes = field(init=False, repr=False)
    """Shapes of x, p and g where :meth:`from_nlp` received a row or a matrix."""
    oracle: ca.Function | None = field(init=False, repr=False)
    """(x, p) → (f, g) if it is foreign code with derivatives of its own; else None."""
    graph: ca.Function = field(init=False, repr=False)
    """(x, p) → (f, c)."""
    defaults: Defaults = field(init=False, repr=False)
    """Checked default arguments."""

    def __post_init__(self) -> None:
        x = stack_symbols(self.x, "x")
        kind = type(x.column)
        p = Stack(kind.sym("p", 0))
        if self.p is not None:
            p = stack_symbols(self.p, "p", kind=kind, empty=True)
        h = stack_expressions(self.h, "h", kind)
        g = stack_expressions(self.g, "g", kind, bounded=True)
        f = check_expression(self.f, "f", kind)
        if f.numel() != 1:
            raise InputError(f"f has shape {f.shape}; the objective must be a scalar")
        expressions = {"f": f, "h": h.column, "g": g.column}
        rows = joined(h, g, self.constraint_names)
        graph = make_graph(x.column, p.column, [f, rows.column])
        if graph.get_free():  # name the expression with the free symbol
            for label, expression in expressions.items():
                no_free_symbols(expression, label, x.column, p.column)
        variable_names = entry_names(self.variable_names, x)
        constraint_names = tuple(rows.names or ())
        sizes = Sizes(variable_names, constraint_names, h.column.numel(), p.column.numel())
        if not isinstance(self.derivatives, Derivatives):
            raise InputError(
                f"derivatives must be a Derivatives, got {type(self.derivatives).__name__}"
            )
        self.derivatives.check(len(variable_names), sizes.n_p, len(constraint_names))
        blocks = {"x": x.blocks, "p": p.blocks, "g": g.blocks, "c": rows.blocks}
        arguments = {label: getattr(self, label) for label in NUMBERS}
        defaults = Defaults.of(sizes, blocks, g.limits, arguments)
        # The dataclass is frozen; its fields are normalized here, once.
        self.__dict__.update(
            expressions,
            **defaults.given,
            x=x.column,
            p=p.column,
            variable_names=variable_names,
            constraint_names=constraint_names,
            graph=graph,
            blocks=blocks,
            defaults=defaults,
            shapes={},
            oracle=None,
        )

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
        """Build a problem from CasADi's dictionary with ``x`` and optional ``f``, ``g``, ``p``.

        As in CasADi, x and g may be rows and p a matrix, read column by column (:attr:`shapes`);
        the entries may be structures of ``casadi.tools``.

        Args:
            nlp: the dictionary, or another form that CasADi accepts: a ``ca.Function``
                (x, p) → (f, g), a ``ca.NlpBuilder``, or a file name, see
                :func:`~casadi_hybrid.problem.forms.read_form`. The bounds and the start of an
                ``.nl`` file become defaults.
            name, compile: see the class.
            constraint_names: m names; ``g[i]`` by default.
            variable_names: n names; ``x[i]`` by default.
            **numbers: default arguments (``x0``, ``lbg``, …) and ``derivatives``, see the class.

        Raises:
            InputError: for another form, an unknown key, a wrong symbol type, free symbols, a
                wrong shape or bad numbers.
        """
        form = read_form(nlp)
        nlp, shapes = as_columns(form.entries)
        x = check_symbols(nlp["x"], "x")
        kind = type(x)
        problem = cls(
            x=x,
            # Comparisons are allowed as in CasADi, here alone.
            f=Stack(check_expression(nlp.get("f", 0), "f", kind, logic=True)),
            g=Stack(check_expression(nlp.get("g", kind(0, 1)), "g", kind, logic=True)),
            p=check_symbols(nlp["p"], "p", kind=kind, empty=True) if "p" in nlp else None,
            constraint_names=constraint_names,
            variable_names=check_names(variable_names, x.numel(), "variable_names", "x"),
            name=name,
            compile=compile and form.oracle is None,
            **{**form.numbers, **numbers},
        )
        problem.__dict__.update(shapes=shapes, oracle=form.oracle)
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
        """Number of rows of h, the first rows of c."""
        return self.defaults.sizes.m_h

    @property
    def n_p(self) -> int:
        """Number of parameters."""
        return self.defaults.sizes.n_p

    @property
    def bounds(self) -> Bounds:
        """Default bounds of x and of all m rows (h; g); h has the bounds [0, 0]."""
        return self.defaults.bounds

    @cached_property
    def functions(self) -> Functions:
        """Generated functions of f and c, built at the first use."""
        variable_names, constraint_names = map(tuple, self.defaults.sizes[:2])
        names = {"constraint_names": constraint_names, "variable_names": variable_names}
        if self.oracle is not None:
            return external_functions(self.oracle, self.derivatives, **names)
        return build_functions(
            self.graph,
            compiled=self.compile,
            constraint_label="h" if self.m and self.m == self.m_h else "g",
            derivatives=self.derivatives,
            **names,
        )

    @cached_property
    def feasibility(self) -> bool:
        """True if f does not depend on x: every feasible point is a solution."""
        functions = self.functions
        if functions.assemblies is not None:
            # Sum 0 is f; the n sums of ∇f follow.
            return not functions.assemblies[0].touches(1, self.n)
        return bool(functions.first.jac_sparsity(0, 0).nnz() == 0)

    @cached_property
    def linear(self) -> bool:
        """True if c is affine in x: a local minimum of the violation is global."""
        return self.functions.affine.value

    @cached_property
    def parameter_gradient(self) -> ca.Function:
        """(x, λ, p) → ∂(f + λᵀc)/∂p with n_p entries, NaN if it does not exist."""
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
        """Copy of the problem with other derivatives.

        Raises:
            InputError: if the derivatives do not fit the problem.
        """
        derivatives.check(self.n, self.n_p, self.m)
        return self._unbuilt(derivatives=derivatives)

    def renamed(
        self,
        constraint_names: Sequence[str] | None = None,
        variable_names: Sequence[str] | None = None,
    ) -> Problem:
        """Copy of the problem with other names; itself without any.

        Raises:
            InputError: for a wrong count of names, or a name twice.
        """
        names = {"constraint_names": constraint_names, "variable_names": variable_names}
        changes: dict[str, Any] = {key: value for key, value in names.items() if value is not None}
        if not changes:
            return self
        copy = replace(self, **changes)
        # A new problem has the foreign functions, blocks and shapes of its columns alone.
        defaults = replace(copy.defaults, blocks=self.blocks)
        copy.__dict__.update(
            shapes=self.shapes, oracle=self.oracle, blocks=self.blocks, defaults=defaults
        )
        return copy

    def exact(self) -> Problem:
        """Copy of the problem with CasADi's derivatives; itself if it has them or none exist."""
        if self.derivatives.plain:
            return self
        exact = self.with_derivatives(Derivatives())
        try:
            _ = exact.functions
        except InputError:
            return self
        return exact

    @property
    def differentiable_graph(self) -> ca.Function:
        """(x, p) → (f, c) with the user's first derivatives by x, if any."""
        return self.derivatives.attached(self.graph)

    def compiled(self) -> Problem:
        """Copy of the problem with functions compiled by the system's C compiler, if it has one."""
        if self.oracle is not None:
            return self
        return changed(self, compile=True, functions=self.functions.compiled())

    def interpreted(self) -> Problem:
        """Copy of the problem without ``compile``."""
        copy = changed(self, compile=False)
        if self.compile:
            copy.__dict__.pop("functions", None)
        return copy

    def expanded(self) -> Problem:
        """Copy of the problem in SX, with functions of its own.

        Raises:
            RuntimeError: if an operation has no scalar form.
        """
        if isinstance(self.x, ca.SX):
            return self
        graph = self.graph.expand()
        return self._unbuilt(graph=graph, **symbols_of(graph, self.m_h))

    def _unbuilt(self, **fields: Any) -> Problem:
        """Copy of the problem with other fields, without generated functions."""
        copy = changed(self, **fields)
        for label in _BUILT:
            copy.__dict__.pop(label, None)
        return copy

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
        """Check the arguments of one solve; None stands for the default of the problem.

        A single number is repeated for all entries. A mapping replaces the named blocks.

        Args:
            x0: initial point, n numbers.
            p: parameter values, n_p numbers.
            lbx, ubx: bounds of x, n numbers each.
            lbg, ubg: bounds of g, one number per row; h always has the bounds [0, 0].
            lam_x0, lam_g0: multipliers of the bounds and of all rows (h; g), n and m numbers.

        Raises:
            InputError: for a wrong shape or type, a NaN, an unknown block, lower bounds above
                upper ones, or missing parameter values; before any evaluation.
        """
        return self.defaults.numbers(x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0)

    def __getstate__(self) -> dict[str, Any]:
        # Symbols cannot be pickled, functions can; compiled code belongs to one process.
        state = {key: value for key, value in self.__dict__.items() if key not in _SYMBOLS}
        if "functions" in state and self.functions.backend == "compiled":
            del state["functions"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, **symbols_of(state["graph"], state["defaults"].sizes.m_h))

    def __repr__(self) -> str:
        kind = type(self.x).__name__
        return f"Problem({self.name!r}, {kind}, n={self.n}, m={self.m}, parameters={self.n_p})"
