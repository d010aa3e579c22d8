"""Generated functions of a problem, and their fast evaluation.

Derivatives come from CasADi's algorithmic differentiation and are sparse. An iteration needs f, ∇f,
h, J_h and, for a design rule, ∇²ₓₓL at one point. A :class:`Fused` function writes all of them into
one contiguous buffer in one CasADi call, without conversions.
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
    from casadi_hybrid.problem.hessian.quasi_newton import Blocks

# Largest number of scalar operations for an expansion from MX to SX; it takes seconds.
EXPANSION_LIMIT = 8_000_000
_SHOWN = 8  # entries of a point in a message
Made = TypeVar("Made")


class OnDemand(Generic[Made]):
    """Value computed at the first access, such as a function that few methods call."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make

    @cached_property
    def value(self) -> Made:
        """The value."""
        return self._make()

    def __getstate__(self) -> dict[str, Made]:
        # The function that makes the value cannot be pickled.
        return {"value": self.value}


@dataclass(frozen=True)
class Functions:
    """Generated functions of one problem, as CasADi Functions."""

    first: ca.Function  # (x, p) → f, ∇f, h, J_h
    curvature: ca.Function | None  # (x, λ, p) → ∇²ₓₓL with L = f + λᵀh
    of_residual: OnDemand[ca.Function]
    of_second: OnDemand[ca.Function] | None
    affine: OnDemand[bool]  # True if J_h does not depend on x
    constraint_names: tuple[str, ...]
    variable_names: tuple[str, ...]
    backend: str = "interpreted"  # or "compiled", "external"
    constraint_label: str = "h"  # user's name of h for messages
    hessian: str = EXACT  # kind of ∇²ₓₓL, a constant of graph/derivatives.py
    lacking: str = ""  # CasADi's reason for missing second derivatives that are wanted
    differenced: bool = False  # True if some first derivatives are finite differences
    # The functions in MX of which these are the expansion. Their loops keep them small, which a
    # compiler needs.
    unexpanded: Functions | None = None
    assemblies: Assemblies | None = None  # of first and curvature, if elements are mapped in MX

    @property
    def residual(self) -> ca.Function:
        """(x, p) → h."""
        return self.of_residual.value

    @cached_property
    def values(self) -> ca.Function | None:
        """(x, p) → f, h if ``first`` takes finite differences; else None."""
        if not self.differenced or self.backend != "interpreted":
            return None
        kind = ca.SX if self.first.is_a("SXFunction") else ca.MX
        x, p = (kind.sym(name, self.first.size1_in(i)) for i, name in enumerate("xp"))
        f, _, h, _ = self.first.call([x, p], True, False)
        return ca.Function("values", [x, p], [f, h], ["x", "p"], ["f", "h"])

    @property
    def second(self) -> ca.Function | None:
        """(x, λ, p) → f, ∇f, h, J_h, ∇²ₓₓL; None without second derivatives."""
        return None if self.of_second is None else self.of_second.value

    @property
    def jacobian_sparsity(self) -> ca.Sparsity:
        """Structural nonzeros of J_h, m×n."""
        return self.first.sparsity_out("jac_h")

    @property
    def hessian_sparsity(self) -> ca.Sparsity:
        """Structural nonzeros of ∇²ₓₓL, n×n; of its diagonal blocks for a quasi-Newton one."""
        if self.curvature is None:
            return self.blocks.sparsity
        return self.curvature.sparsity_out("hess_lag")

    @property
    def instructions(self) -> int:
        """Number of instructions of ``first`` and ``curvature``, over all elements."""
        return instructions_of(self.first, self.curvature, self.assemblies)

    @property
    def patterns(self) -> tuple[ca.Sparsity, ca.Sparsity | None]:
        """Structural nonzeros of J_h and ∇²ₓₓL; None for the latter before it is computed."""
        known = self.curvature is not None or "blocks" in self.__dict__
        return self._patterns if known else (self.jacobian_sparsity, None)

    @cached_property
    def _patterns(self) -> tuple[ca.Sparsity, ca.Sparsity]:
        return self.jacobian_sparsity, self.hessian_sparsity

    @cached_property
    def entries(self) -> tuple[Pattern, Pattern]:
        """Patterns of J_h and of ∇²ₓₓL."""
        if self.assemblies is not None:
            return self.assemblies[0].pattern, self.assemblies[1].pattern
        return Pattern.of(self.jacobian_sparsity), Pattern.of(self.hessian_sparsity)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Mask of the variables that a row or the objective contains."""
        J, H = self.entries
        used = np.zeros(J.shape[1], dtype=bool)
        used[J.cols] = used[H.cols] = True
        # A variable that enters only f, and linearly, is in no entry of J_h and H.
        if not used.all():
            used[self.first.jac_sparsity(0, 0).T.row()] = True
        return used

    @cached_property
    def blocks(self) -> Blocks:
        """Diagonal blocks of ∇²ₓₓL."""
        # Imported here: needed for quasi-Newton Hessians alone.
        from casadi_hybrid.problem.hessian.quasi_newton import Blocks  # noqa: PLC0415

        return Blocks.of(self.first)

    def with_hessian(self, name: str) -> ca.Function:
        """Return ``second`` or ``curvature``; raises an InputError without second derivatives."""
        function = self.second if name == "second" else self.curvature
        if function is None:
            why = f": {self.lacking}" if self.lacking else ", as hessian_approximation asks for"
            raise InputError(
                f"second derivatives are needed here, and the problem has none{why}; use the "
                "default method, or one without second derivatives"
            )
        return function

    def packing(self, function: ca.Function) -> Packing:
        """Packing of one of these functions, computed once."""
        packings: dict[str, Packing] = self.__dict__.setdefault("_packings", {})
        name = function.name()
        if name not in packings:
            packings[name] = Packing(function)
        return packings[name]

    def compiled(self) -> Functions:
        """Return these functions as machine code; without a compiler warn, and return self."""
        # Imported here: large, and seldom needed.
        from casadi_hybrid.problem.building.build import Sources, library  # noqa: PLC0415

        source = self.unexpanded or self
        generator = ca.CodeGenerator("functions.c")
        names = []
        for function in (source.residual, source.first, source.second, source.curvature):
            if function is not None:
                generator.add(function)
                names.append(function.name())
        try:
            path = str(library(Sources("functions", {"functions.c": generator.dump()})))
            compiled = {name: ca.external(name, path) for name in names}
        except RuntimeError as error:
            text = f"{error}; the interpreted functions are used instead, with the same results"
            warnings.warn(text, CompilerWarning, stacklevel=2)
            return self
        has_second = "second" in compiled
        return replace(
            self,
            first=compiled["first"],
            curvature=compiled.get("curvature"),
            of_residual=OnDemand(lambda: compiled["residual"]),
            of_second=OnDemand(lambda: compiled["second"]) if has_second else None,
            backend="compiled",
            unexpanded=None,
            assemblies=None,
        )

    def expanded(self, size: int) -> Functions:
        """Return these functions, of ``size`` operations, in SX: ten times faster than MX."""
        patterns = [self.jacobian_sparsity]
        if self.curvature is not None:
            patterns.append(self.hessian_sparsity)

        # A derivative has about the operations of f and h for each direction.
        def fits(directions: Callable[[ca.Sparsity], int]) -> bool:
            return size * (max(map(directions, patterns)) + 3) <= EXPANSION_LIMIT

        # The shape bounds the number of directions; a coloring is needed only beyond that bound.
        if not (fits(lambda pattern: min(pattern.shape)) or fits(_directions)):
            return self
        try:
            first = self.first.expand()
            if self.differenced:
                names = [function.name() for function in first.find_functions()]
                # Take each difference once for f and h. CasADi confuses functions of equal names.
                if len(set(names)) == len(names):
                    x, p = (ca.SX.sym(name, first.size1_in(i)) for i, name in enumerate("xp"))
                    first = first_of(x, p, *ca.cse(first.call([x, p], True, False)))
            curvature = None if self.curvature is None else self.curvature.expand()
        except RuntimeError:  # an integrator, a callback, foreign code or an assertion
            return self

        def residual() -> ca.Function:
            return self.residual.expand()

        # Few methods call `second`, so it stays in MX.
        return replace(
            self, first=first, curvature=curvature, of_residual=OnDemand(residual), unexpanded=self
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Functions of a problem at one point, as dense arrays."""

    x: Vector
    f: float
    gradient: Vector
    h: Vector
    B: Matrix
    hessian: Matrix | None
    # The residual as the dual channel sees it: h, except under the paper's noise models (appendix,
    # partial residual-memory noise).
    measured: Vector


class Packing:
    """Layout of the outputs of a function, shared by all solves."""

    def __init__(self, function: ca.Function) -> None:
        self.sparsity = [function.sparsity_out(i) for i in range(function.n_out())]
        self.shapes = [s.shape for s in self.sparsity]
        self.labels = function.name_out()
        # Places of the nonzeros in the full matrix (column-major); None for a dense output.
        self.scatter: list[NDArray[np.intp] | None] = [
            None if s.is_dense() else np.asarray(s.find(), dtype=np.intp) for s in self.sparsity
        ]


class Fused:
    """One function behind a buffer of all its outputs; not shareable between threads."""

    def __init__(self, function: ca.Function, names: Functions) -> None:
        packing = names.packing(function)
        self._buffered = buffered = Buffered(function)
        self._evaluate, self._work, self._slices = buffered.evaluate, buffered.out, buffered.parts
        self._filled = [(i, array) for i, array in enumerate(buffered.inputs) if array.size]
        self._shapes = packing.shapes
        self._scatter = packing.scatter
        self._function, self._packing, self._names = function, packing, names
        self._busy = False

    def __call__(self, *values: Vector) -> NDArray[np.float64]:
        """Evaluate, and return the nonzeros of all outputs in one fresh array.

        Raises:
            EvaluationError: for NaN or Inf, or if a callback raises, with its exception as cause.
            InterruptedInside: if the callback raised a KeyboardInterrupt.
        """
        if self._busy:
            # A callback of the problem solves the problem: its call must not write our buffer.
            return Fused(self._function, self._names)(*values)
        for i, target in self._filled:
            target[:] = values[i]
        self._busy = True
        try:
            self._evaluate()
        except RuntimeError as error:  # CasADi passes the user's exception on as text
            if str(error).strip() == "KeyboardInterrupt":
                raise interrupted_inside("a function of the problem", error) from error
            # CasADi puts its C++ file and line before the user's message.
            text = str(error).splitlines()[-1].rsplit(".cxx", maxsplit=1)[-1].lstrip(":0123456789 ")
            place = self._place(values[0])
            raise EvaluationError(
                "a function of the problem", "", np.nan, place, values[0].copy(), text
            ) from error
        finally:
            self._busy = False
        # The next call writes the buffer again.
        data = self._work.copy()
        if not all_finite(data):
            self._locate(data, values[0])
        return data

    def dense(self, data: NDArray[np.float64], i: int) -> Matrix:
        """Output ``i`` as a dense matrix; a view if its pattern is dense."""
        shape = self._shapes[i]
        index = self._scatter[i]
        part = data[self._slices[i]]
        if index is None:
            return part.reshape(shape, order="F")
        full = np.zeros(shape[0] * shape[1])
        full[index] = part
        return full.reshape(shape, order="F")

    def part(self, data: NDArray[np.float64], i: int) -> Vector:
        """Nonzeros of output ``i`` (column-major), as a view."""
        return data[self._slices[i]]

    def vector(self, data: NDArray[np.float64], i: int) -> Vector:
        """Output ``i`` as a vector; a view if its pattern is dense."""
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
                # With f and h defined it is a kink, as that of sqrt at 0: the message says so.
                if label in ("grad_f", "jac_h") and all_finite(data[self._slices[2]]):
                    error.objective = float(data[0])
                raise error

    def _place(self, x: Vector, label: str = "", row: int = 0) -> str:
        """Some entries of x as ``a = 1, b = 2``, first the variables of the faulty row."""
        names, shown = self._names.variable_names, list(range(min(_SHOWN, x.size)))
        if label in ("h", "jac_h") and x.size > _SHOWN and "jac_h" in self._packing.labels:
            pattern = self._packing.sparsity[self._packing.labels.index("jac_h")]
            rows, columns = pattern.get_triplet()
            of_row = [column for i, column in zip(rows, columns, strict=True) if i == row]
            shown = list(dict.fromkeys([*of_row, *shown]))[:_SHOWN]
        text = ", ".join(f"{names[i]} = {x[i]:.6g}" for i in shown)
        left = len(names) - len(shown)
        return f"{text} and {left} more" if left > 0 else text

    def _describe(self, label: str, row: int, column: int) -> tuple[str, str]:
        """Function and entry of an output, for a message."""
        names = self._names
        h, x, symbol = names.constraint_names, names.variable_names, names.constraint_label
        if label == "f":
            return "the objective f", ""
        if label == "grad_f":
            return "the gradient of f", f"d/d{x[row]}"
        if label == "h":
            return f"the constraint function {symbol}", h[row]
        if label == "jac_h":
            return f"the Jacobian of {symbol}", f"d {h[row]} / d {x[column]}"
        return "the Hessian of the Lagrangian", f"d²/d{x[row]} d{x[column]}"


def first_of(x: Any, p: Any, f: Any, gradient: Any, h: Any, jacobian: Any) -> ca.Function:
    """(x, p) → f, ∇f, h, J_h."""
    outputs, labels = [f, gradient, h, jacobian], ["f", "grad_f", "h", "jac_h"]
    return ca.Function("first", [x, p], outputs, ["x", "p"], labels)


def functions_of(
    first: ca.Function,
    symbols: tuple[Any, ...],
    outputs: tuple[Any, ...],
    hessian_lag: Any,
    rows: Any,
    **fields: Any,
) -> Functions:
    """Make the functions from expressions in x, λ and p; ``rows`` are h alone."""
    (x, _, p), J = symbols, outputs[3]
    names, label = ["x", "lam", "p"], "hess_lag"
    curvature = of_second = None
    if hessian_lag is not None:
        values, labels = [*outputs, hessian_lag], [*first.name_out(), label]
        of_second = OnDemand(lambda: ca.Function("second", [*symbols], values, names, labels))
        curvature = ca.Function("curvature", [*symbols], [hessian_lag], names, [label])
    # h alone, not by f and J: far fewer operations.
    of_residual = OnDemand(lambda: ca.Function("residual", [x, p], [rows], ["x", "p"], ["h"]))
    affine = OnDemand(lambda: J.is_constant() or not ca.depends_on(J, x))
    return Functions(first, curvature, of_residual, of_second, affine, **fields)


def instructions_of(
    first: ca.Function, curvature: ca.Function | None, assemblies: Assemblies | None
) -> int:
    """Number of instructions of both functions for CasADi's interpreter, over all elements."""
    if assemblies is not None:
        return sum(assembly.operations[1] for assembly in assemblies)
    return int(first.n_instructions() + (0 if curvature is None else curvature.n_instructions()))


def _directions(sparsity: ca.Sparsity) -> int:
    """Number of directional derivatives that determine a matrix of this pattern."""
    if not sparsity.nnz():
        return 0
    # Columns without a common row share a direction (Curtis, Powell and Reid, 1974); the colors of
    # the transpose count adjoint directions.
    return min(int(s.uni_coloring().size2()) for s in (sparsity, sparsity.T))
