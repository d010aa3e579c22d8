"""The exact generated functions of a problem, and one fast call that evaluates them.

Derivatives come from CasADi's algorithmic differentiation with their sparsity kept. An iteration
needs f, ∇f, h, J_h and, for a design rule, ∇²ₓₓL at one point: each :class:`Fused` function is one
CasADi call that fills one contiguous buffer with all of them, with no conversion on the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.utils.arrays import all_finite
from casadi_hybrid.utils.errors import (
    CompilerWarning,
    EvaluationError,
    InputError,
    interrupted_inside,
)
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.linear_algebra.sparse import Pattern
from casadi_hybrid.utils.matrices import Buffered

if TYPE_CHECKING:
    from casadi_hybrid.problem.elements.assembly import Assemblies
    from casadi_hybrid.problem.hessian.blocks import Blocks

EXPANSION_LIMIT = 8_000_000
"""Scalar operations of one function up to which MX is turned into SX: seconds to build."""
_SHOWN = 8  # numbers of a point in a sentence
Made = TypeVar("Made")


class OnDemand(Generic[Made]):
    """What is made when it is first asked for: a function that few methods call, a property."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Made:
        """The function, or the value."""
        return self._make()

    def __getstate__(self) -> dict[str, Made]:
        return {"made": self.made}


@dataclass(frozen=True)
class Functions:
    """The generated functions of one problem, as CasADi Functions, for any use.

    Attributes:
        first: (x, p) → f, ∇f, h, J_h.
        curvature: (x, λ, p) → ∇²ₓₓL with L = f + λᵀh, for who knows the rest already; None where
            there are no second derivatives.
        of_residual, of_second: :attr:`residual` and :attr:`second`; None likewise.
        affine: whether J_h does not depend on x.
        backend: ``"interpreted"``, ``"compiled"`` or ``"external"``.
        constraint_label: what the user calls h, for messages.
        hessian: what ∇²ₓₓL is, one of the words of :mod:`casadi_hybrid.problem.graph.derivatives`.
        lacking: why there are no second derivatives, in CasADi's words; empty where there are, or
            where they are not wanted.
        differenced: whether first derivatives are finite differences in part.
        unexpanded: the functions in MX where these are their SX expansions; None otherwise. Loops
            keep them small, which a compiler needs.
        assemblies: of what ``first`` and ``curvature`` are made where that is elements of a few
            kinds, by maps in MX; None otherwise.
    """

    first: ca.Function
    curvature: ca.Function | None
    of_residual: OnDemand[ca.Function]
    of_second: OnDemand[ca.Function] | None
    affine: OnDemand[bool]
    constraint_names: tuple[str, ...]
    variable_names: tuple[str, ...]
    backend: str = "interpreted"
    constraint_label: str = "h"
    hessian: str = EXACT
    lacking: str = ""
    differenced: bool = False
    unexpanded: Functions | None = None
    assemblies: Assemblies | None = None

    @property
    def residual(self) -> ca.Function:
        """(x, p) → h."""
        return self.of_residual.made

    @cached_property
    def values(self) -> ca.Function | None:
        """(x, p) → f, h, where ``first`` takes many times as long; None elsewhere."""
        if not self.differenced or self.backend != "interpreted":
            return None
        kind = ca.SX if self.first.is_a("SXFunction") else ca.MX
        x, p = (kind.sym(name, self.first.size1_in(i)) for i, name in enumerate("xp"))
        f, _, h, _ = self.first.call([x, p], True, False)
        return ca.Function("values", [x, p], [f, h], ["x", "p"], ["f", "h"])

    @property
    def second(self) -> ca.Function | None:
        """(x, λ, p) → f, ∇f, h, J_h, ∇²ₓₓL; None where there are no second derivatives."""
        return None if self.of_second is None else self.of_second.made

    @property
    def jacobian_sparsity(self) -> ca.Sparsity:
        """Structural nonzeros of J_h, m×n."""
        return self.first.sparsity_out("jac_h")

    @property
    def hessian_sparsity(self) -> ca.Sparsity:
        """Structural nonzeros of ∇²ₓₓL, n×n; of its diagonal blocks where it is approximated."""
        if self.curvature is None:
            return self.blocks.sparsity
        return self.curvature.sparsity_out("hess_lag")

    @property
    def instructions(self) -> int:
        """Of ``first`` and ``curvature``, those of all elements where they are made of these."""
        return instructions_of(self.first, self.curvature, self.assemblies)

    @property
    def patterns(self) -> tuple[ca.Sparsity, ca.Sparsity | None]:
        """Structural nonzeros of J_h and ∇²ₓₓL; None for the second where it was never made."""
        known = self.curvature is not None or "blocks" in self.__dict__
        return self._patterns if known else (self.jacobian_sparsity, None)

    @cached_property
    def _patterns(self) -> tuple[ca.Sparsity, ca.Sparsity]:
        return self.jacobian_sparsity, self.hessian_sparsity

    @cached_property
    def entries(self) -> tuple[Pattern, Pattern]:
        """Where the nonzeros of J_h and of ∇²ₓₓL lie."""
        if self.assemblies is not None:
            return self.assemblies[0].pattern, self.assemblies[1].pattern
        return Pattern.of(self.jacobian_sparsity), Pattern.of(self.hessian_sparsity)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which variables stand in a row or in the objective."""
        J, H = self.entries
        used = np.zeros(J.shape[1], dtype=bool)
        used[J.cols] = used[H.cols] = True
        if not used.all():
            used[self.first.jac_sparsity(0, 0).T.row()] = True
        return used

    @cached_property
    def blocks(self) -> Blocks:
        """Which variables the Lagrangian couples by more than a sum."""
        from casadi_hybrid.problem.hessian.blocks import Blocks  # noqa: PLC0415 - to learn it

        return Blocks.of(self.first)

    def with_hessian(self, name: str) -> ca.Function:
        """``second`` or ``curvature``.

        Raises:
            InputError: where there are no second derivatives.
        """
        found = self.second if name == "second" else self.curvature
        if found is None:
            why = f": {self.lacking}" if self.lacking else ", as hessian_approximation asks for"
            raise InputError(
                f"second derivatives are needed here, and the problem has none{why}; use the "
                "default method, or one that does without"
            )
        return found

    def packing(self, function: ca.Function) -> Packing:
        """The packing of one of these functions."""
        known: dict[str, Packing] = self.__dict__.setdefault("_packings", {})
        name = function.name()
        if name not in known:
            known[name] = Packing(function)
        return known[name]

    def compiled(self) -> Functions:
        """The same functions as machine code; with a warning the same object without a compiler."""
        from casadi_hybrid.problem.building.build import Sources, library  # noqa: PLC0415 - large, and rare

        source = self.unexpanded or self
        every = (source.residual, source.first, source.second, source.curvature)
        functions = [one for one in every if one is not None]
        generator = ca.CodeGenerator("functions.c")
        for one in functions:
            generator.add(one)
        try:
            path = str(library(Sources("functions", {"functions.c": generator.dump()})))
            made = {one.name(): ca.external(one.name(), path) for one in functions}
        except RuntimeError as error:
            said = f"{error}; the interpreted functions are used instead, with the same results"
            warnings.warn(said, CompilerWarning, stacklevel=2)
            return self
        of_second = OnDemand(lambda: made["second"]) if "second" in made else None
        return replace(
            self, first=made["first"], curvature=made.get("curvature"),
            of_residual=OnDemand(lambda: made["residual"]), of_second=of_second,
            backend="compiled", unexpanded=None, assemblies=None,
        )  # fmt: skip

    def expanded(self, size: int) -> Functions:
        """The same in scalar operations (SX), which evaluate some ten times faster than MX.

        ``second`` stays as it is. So do all where a derivative may have more operations than
        :data:`EXPANSION_LIMIT`, or where some part has no scalar form (an integrator, a callback,
        foreign code, an assertion). ``size`` is the number of scalar operations of f and h.
        """
        patterns = [self.jacobian_sparsity]
        if self.curvature is not None:
            patterns.append(self.hessian_sparsity)

        def fits(directions: Callable[[ca.Sparsity], int]) -> bool:
            return size * (max(map(directions, patterns)) + 3) <= EXPANSION_LIMIT

        # Directions are counted where the numbers of rows and columns leave it open.
        if not (fits(lambda pattern: min(pattern.shape)) or fits(_directions)):
            return self
        try:
            first = self.first.expand()
            if self.differenced:
                inside = [one.name() for one in first.find_functions()]
                # Each difference once, for f and for h; CasADi takes functions of one name for one.
                if len(set(inside)) == len(inside):
                    x, p = (ca.SX.sym(name, first.size1_in(i)) for i, name in enumerate("xp"))
                    first = first_of(x, p, *ca.cse(first.call([x, p], True, False)))
            curvature = None if self.curvature is None else self.curvature.expand()
        except RuntimeError:
            return self

        def residual() -> ca.Function:
            return self.residual.expand()

        return replace(
            self, first=first, curvature=curvature, of_residual=OnDemand(residual), unexpanded=self
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The problem's functions at one point, as dense arrays.

    ``measured`` is what the dual channel sees of the residual; it differs from ``h`` only under
    the noise models of the paper (appendix, partial residual-memory noise).
    """

    x: Vector
    f: float
    gradient: Vector
    h: Vector
    B: Matrix
    hessian: Matrix | None
    measured: Vector


class Packing:
    """What the outputs of a function are: made once, shared by all solves.

    ``scatter`` says where an output's nonzeros go in the full matrix, column by column; None for
    full ones.
    """

    def __init__(self, function: ca.Function) -> None:
        self.sparsity = [function.sparsity_out(i) for i in range(function.n_out())]
        self.shapes = [s.shape for s in self.sparsity]
        self.labels = function.name_out()
        self.scatter: list[NDArray[np.intp] | None] = [
            None if s.is_dense() else np.asarray(s.find(), dtype=np.intp) for s in self.sparsity
        ]


class Fused:
    """One generated function behind a buffer: numbers in, one array with every output.

    Not shareable between threads. A call within a call, by a callback of the problem that solves
    it, has buffers of its own.
    """

    def __init__(self, function: ca.Function, names: Functions) -> None:
        packing = names.packing(function)
        self._behind = behind = Buffered(function)
        self._evaluate, self._work, self._slices = behind.evaluate, behind.out, behind.parts
        self._filled = [(i, array) for i, array in enumerate(behind.inputs) if array.size]
        self._shapes = packing.shapes
        self._scatter = packing.scatter
        self._function, self._packing, self._names = function, packing, names
        self._busy = False

    def __call__(self, *values: Vector) -> NDArray[np.float64]:
        """Evaluate and return all outputs' nonzeros in one fresh array.

        Raises:
            EvaluationError: when an output is NaN or Inf, naming the function, the entry and x,
                or when a ``ca.Callback`` inside the problem raises; CasADi's exception is its
                cause.
            InterruptedInside: where that was a KeyboardInterrupt.
        """
        if self._busy:
            return Fused(self._function, self._names)(*values)
        for i, target in self._filled:
            target[:] = values[i]
        self._busy = True
        try:
            self._evaluate()
        except RuntimeError as error:  # CasADi's own, which carries the user's as text
            if str(error).strip() == "KeyboardInterrupt":
                raise interrupted_inside("a function of the problem", error) from error
            text = str(error).splitlines()[-1].rsplit(".cxx", maxsplit=1)[-1].lstrip(":0123456789 ")
            place = self._place(values[0])
            raise EvaluationError(
                "a function of the problem", "", np.nan, place, values[0].copy(), text
            ) from error
        finally:
            self._busy = False
        data = self._work.copy()
        if not all_finite(data):
            self._locate(data, values[0])
        return data

    @property
    def size(self) -> int:
        """Length of the array that a call returns."""
        return self._work.size

    def dense(self, data: NDArray[np.float64], i: int) -> Matrix:
        """Output ``i`` as a dense matrix (a view where its pattern is full)."""
        shape = self._shapes[i]
        index = self._scatter[i]
        part = data[self._slices[i]]
        if index is None:
            return part.reshape(shape, order="F")
        full = np.zeros(shape[0] * shape[1])
        full[index] = part
        return full.reshape(shape, order="F")

    def part(self, data: NDArray[np.float64], i: int) -> Vector:
        """The nonzeros of output ``i``, column by column (a view)."""
        return data[self._slices[i]]

    def vector(self, data: NDArray[np.float64], i: int) -> Vector:
        """Output ``i`` as a vector (a view where its pattern is full)."""
        if self._scatter[i] is None:
            return data[self._slices[i]]
        return self.dense(data, i).ravel()

    def _locate(self, data: NDArray[np.float64], x: Vector) -> None:
        for i, label in enumerate(self._packing.labels):
            part = data[self._slices[i]]
            bad = np.flatnonzero(~np.isfinite(part))
            if bad.size:
                row, column = (int(ind[bad[0]]) for ind in self._packing.sparsity[i].get_triplet())
                function, entry = self._describe(label, row, column)
                value, place = float(part[bad[0]]), self._place(x, label, row)
                error = EvaluationError(function, entry, value, place, x.copy())
                if label in ("grad_f", "jac_h") and all_finite(data[self._slices[2]]):
                    error.objective = float(data[0])
                raise error

    def _place(self, x: Vector, label: str = "", row: int = 0) -> str:
        """``a = 1, b = 2`` for some entries, the row's own first, and how many there are more."""
        names, shown = self._names.variable_names, list(range(min(_SHOWN, x.size)))
        if label in ("h", "jac_h") and x.size > _SHOWN and "jac_h" in self._packing.labels:
            pattern = self._packing.sparsity[self._packing.labels.index("jac_h")]
            rows, columns = pattern.get_triplet()
            own = [column for of, column in zip(rows, columns, strict=True) if of == row]
            shown = list(dict.fromkeys([*own, *shown]))[:_SHOWN]
        text = ", ".join(f"{names[i]} = {x[i]:.6g}" for i in shown)
        left = len(names) - len(shown)
        return f"{text} and {left} more" if left > 0 else text

    def _describe(self, label: str, row: int, column: int) -> tuple[str, str]:
        names = self._names
        h, x, called = names.constraint_names, names.variable_names, names.constraint_label
        if label == "f":
            return "the objective f", ""
        if label == "grad_f":
            return "the gradient of f", f"d/d{x[row]}"
        if label == "h":
            return f"the constraint function {called}", h[row]
        if label == "jac_h":
            return f"the Jacobian of {called}", f"d {h[row]} / d {x[column]}"
        return "the Hessian of the Lagrangian", f"d²/d{x[row]} d{x[column]}"


def first_of(x: Any, p: Any, f: Any, gradient: Any, h: Any, jacobian: Any) -> ca.Function:
    """(x, p) → f, ∇f, h, J_h."""
    outputs, labels = [f, gradient, h, jacobian], ["f", "grad_f", "h", "jac_h"]
    return ca.Function("first", [x, p], outputs, ["x", "p"], labels)


def functions_of(
    first: ca.Function, symbols: tuple[Any, ...], outputs: tuple[Any, ...], hessian_lag: Any,
    rows: Any, **about: Any,
) -> Functions:  # fmt: skip
    """The functions of expressions; ``about`` are the other fields of :class:`Functions`.

    Args:
        first, outputs: the function, and what it returns of the ``symbols`` x and p.
        hessian_lag: ∇²ₓₓL of the symbols x, λ and p, None where there is none.
        rows: h, for whoever asks for it alone.
    """
    (x, _, p), J = symbols, outputs[3]
    names, last = ["x", "lam", "p"], ["hess_lag"]
    curvature = of_second = None
    if hessian_lag is not None:
        every, labels = [*outputs, hessian_lag], [*first.name_out(), *last]
        of_second = OnDemand(lambda: ca.Function("second", [*symbols], every, names, labels))
        curvature = ca.Function("curvature", [*symbols], [hessian_lag], names, last)
    of_residual = OnDemand(lambda: ca.Function("residual", [x, p], [rows], ["x", "p"], ["h"]))
    affine = OnDemand(lambda: J.is_constant() or not ca.depends_on(J, x))
    return Functions(first, curvature, of_residual, of_second, affine, **about)


def instructions_of(
    first: ca.Function, curvature: ca.Function | None, assemblies: Assemblies | None
) -> int:
    """How many CasADi's interpreter goes through in both, of all elements in scalar operations."""
    if assemblies is not None:
        return sum(assembly.operations[1] for assembly in assemblies)
    return int(first.n_instructions() + (0 if curvature is None else curvature.n_instructions()))


def _directions(sparsity: ca.Sparsity) -> int:
    """How many directional derivatives give a matrix of this pattern."""
    if not sparsity.nnz():
        return 0
    return min(int(s.uni_coloring().size2()) for s in (sparsity, sparsity.T))
