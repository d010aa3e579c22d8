"""Sources of a problem's derivatives: CasADi, the user, or an approximated Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca

from casadi_hybrid.problem.graph.directions import jacobian as jacobian_of
from casadi_hybrid.problem.graph.expressions import full
from casadi_hybrid.utils.errors import InputError, last_line, suggest

EXACT, GIVEN, GAUSS_NEWTON, LIMITED_MEMORY = "exact", "given", "gauss-newton", "limited-memory"
MEANING = {
    EXACT: "CasADi's, exact",
    GIVEN: "given by the user",
    GAUSS_NEWTON: "Gauss–Newton, without the curvature of residuals and constraints",
    LIMITED_MEMORY: "quasi-Newton from first derivatives (limited memory)",
}
APPROXIMATIONS = (EXACT, GAUSS_NEWTON, LIMITED_MEMORY)

_DIFFERENCED = (
    "first derivatives are finite differences (hessian_approximation = 'exact' takes differences "
    "of them, as IPOPT does)"
)
# Class names of CasADi's finite differences.
_DIFFERENCES = ("CentralDiff", "ForwardDiff", "BackwardDiff", "Smoothing")
_REMEDY = (
    "give a ca.Callback has_jacobian and get_jacobian, make it with {'enable_fd': True} for finite "
    "differences, or pass grad_f and jac_g"
)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Replacements of the derivatives that CasADi generates.

    The Functions have the signatures of ``ca.nlpsol``. Without parameters p has no entries; g are
    all rows of the constraints, equations first.

    Args:
        hessian: kind of the Hessian.

            - ``"exact"``: second derivatives, of finite differences by differences again.
            - ``"gauss-newton"``: Σ 2w ∇F∇Fᵀ, if f is a sum of squares Σ wF² and of terms at most
              quadratic in x.
            - ``"limited-memory"``: quasi-Newton updates from first derivatives.
            - None: ``hess_lag`` if given, else exact. Limited memory if second derivatives do not
              exist, or if first ones are finite differences.
        hess_lag: (x, p, lam_f, lam_g) → ∇²ₓₓ(lam_f·f + lam_gᵀg), n×n, in full or its upper
            triangle alone.
        jac_g: (x, p) → g, J_g.
        grad_f: (x, p) → f, ∇f, a column.
        residuals: (x, p) → F with f = ½‖F‖² or f = ‖F‖², for a Gauss–Newton Hessian.

    Raises:
        InputError: for an unknown kind, an object that is no Function, or a contradiction.
    """

    hessian: str | None = None
    hess_lag: ca.Function | None = None
    jac_g: ca.Function | None = None
    grad_f: ca.Function | None = None
    residuals: ca.Function | None = None

    def __post_init__(self) -> None:
        if self.hessian is not None and self.hessian not in APPROXIMATIONS:
            hint = suggest(str(self.hessian), APPROXIMATIONS)
            raise InputError(
                f"hessian_approximation must be one of {', '.join(map(repr, APPROXIMATIONS))}, got "
                f"{self.hessian!r}{hint}"
            )
        for name in ("hess_lag", "jac_g", "grad_f", "residuals"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, ca.Function):
                takes = "x, p, lam_f, lam_g" if name == "hess_lag" else "x, p"
                raise InputError(
                    f"{name} must be a CasADi Function, got {type(value).__name__}; make one by "
                    f"ca.Function({name!r}, [{takes}], …)"
                )
        if self.hess_lag is not None and self.hessian in (GAUSS_NEWTON, LIMITED_MEMORY):
            raise InputError(
                f"hess_lag is given and hessian_approximation is {self.hessian!r}: leave one out"
            )
        if self.residuals is not None and self.hessian != GAUSS_NEWTON:
            raise InputError("residuals are for hessian_approximation = 'gauss-newton'; set that")

    @property
    def functions(self) -> list[ca.Function]:
        """The user's Functions."""
        functions = (self.hess_lag, self.jac_g, self.grad_f, self.residuals)
        return [function for function in functions if function is not None]

    @property
    def plain(self) -> bool:
        """True if CasADi generates all derivatives."""
        return self.hessian is None and not self.functions

    def check(self, n: int, n_p: int, m: int) -> None:
        """Check the signatures of the user's Functions against the sizes of a problem.

        Raises:
            InputError: naming the Function and the wrong input or output.
        """
        x, p, lam = ("x", n), ("p", n_p), [("lam_f", 1), ("lam_g", m)]
        for name, inputs, outputs in (
            ("hess_lag", [x, p, *lam], [("hess_lag", (n, n))]),
            ("jac_g", [x, p], [("g", (m, 1)), ("jac_g", (m, n))]),
            ("grad_f", [x, p], [("f", (1, 1)), ("grad_f", (n, 1))]),
            ("residuals", [x, p], []),
        ):
            _signature(name, getattr(self, name), inputs, outputs)
        if self.hess_lag is not None:
            pattern = self.hess_lag.sparsity_out(0)
            if not (pattern.is_symmetric() or pattern.is_triu()):
                raise InputError(
                    "hess_lag is neither symmetric nor upper triangular: its nonzeros lie on both "
                    "sides of the diagonal, but not at mirrored places; return ca.triu(H) or all "
                    "of H"
                )

    def first(self, f: Any, g: Any, x: Any, p: Any, graph: ca.Function) -> tuple[Any, Any]:
        """Return ∇f, a dense column, and J_g as expressions.

        Args:
            graph: (x, p) → (f, g), of which f and g are the outputs.

        Raises:
            InputError: if one of them does not exist.
        """

        def derive(name: str, function: ca.Function | None, generate: Callable[[], Any]) -> Any:
            if function is not None:
                return called(function, x, p)[1]
            try:
                return generate()
            except RuntimeError as error:
                reason = last_line(error)
                raise InputError(f"{name} has no first derivatives: {reason}; {_REMEDY}") from error

        gradient = derive("f", self.grad_f, lambda: ca.gradient(f, x))
        return full(gradient), derive("g", self.jac_g, lambda: jacobian_of(g, x, graph))

    def attached(self, graph: ca.Function) -> ca.Function:
        """(x, p) → (f, g) with the user's derivatives by x; the graph itself without any."""
        if self.grad_f is None and self.jac_g is None:
            return graph
        x, p = (ca.MX.sym(name, graph.size1_in(i)) for i, name in enumerate("xp"))
        f, g = graph.call([x, p], True, False)
        gradient, jacobian = self.first(f, g, x, p, graph)
        # CasADi's signature of a Jacobian: inputs, then the outputs, empty here as they are not
        # used. Derivatives by p are empty too, so the graph is for derivatives by x alone.
        names = ["x", "p", "out_f", "out_g"]
        slots = [x, p, ca.MX(1, 1), ca.MX(g.numel(), 1)]
        blocks = [gradient.T, ca.MX(1, p.numel()), jacobian, ca.MX(g.numel(), p.numel())]
        labels = ["jac_f_x", "jac_f_p", "jac_g_x", "jac_g_p"]
        J = ca.Function("jac_graph", slots, blocks, names, labels)
        # No penalty: any number of directions is the given Jacobian times the seeds. Inlined, f and
        # g would lose it.
        options = {"custom_jacobian": J, "jac_penalty": 0, "never_inline": True}
        return ca.Function("graph", [x, p], [f, g], ["x", "p"], ["f", "g"], options)

    def second(
        self,
        f: Any,
        g: Any,
        x: Any,
        p: Any,
        lam: Any,
        slope: Callable[[], Any],
        *,
        differenced: bool = False,
    ) -> tuple[Any | None, str, str]:
        """Return ∇²ₓₓ(f + λᵀg) or None, its kind, and the reason of an unwanted approximation.

        Args:
            slope: returns ∇ₓ(f + λᵀg), by the user's first derivatives if any.
            differenced: whether first derivatives are finite differences. Differences of them cost
                about n times as many calls, and are taken on request alone.

        Raises:
            InputError: if a requested exact or Gauss–Newton Hessian does not exist.
        """
        if self.hess_lag is not None:
            H = called(self.hess_lag, x, p, 1.0, lam)[0]
            # The upper triangle alone is allowed, as nlp_hess_l of CasADi has it.
            return (H if H.sparsity().is_symmetric() else ca.triu2symm(H)), GIVEN, ""
        if self.hessian == LIMITED_MEMORY:
            return None, LIMITED_MEMORY, ""
        if self.hessian == GAUSS_NEWTON:
            # Imported here: seldom needed.
            from casadi_hybrid.problem.hessian.gauss_newton import gauss_newton  # noqa: PLC0415

            F = None if self.residuals is None else called(self.residuals, x, p)[0]
            return gauss_newton(f, x, p, F), GAUSS_NEWTON, ""
        if differenced and self.hessian is None:
            return None, LIMITED_MEMORY, _DIFFERENCED
        try:
            return ca.hessian(f + ca.dot(lam, g), x)[0], EXACT, ""
        except RuntimeError as error:
            lacking = last_line(error)
        if self.grad_f is not None or self.jac_g is not None:
            try:
                # ∇L by the user, its Jacobian by CasADi; a symmetric coloring needs fewer
                # directions.
                return ca.jacobian(slope(), x, {"symmetric": True}), EXACT, ""
            except RuntimeError as error:
                lacking = last_line(error)
        if self.hessian == EXACT:
            raise InputError(
                f"hessian_approximation is 'exact', but there are no second derivatives: {lacking};"
                " leave it out, or use 'limited-memory'"
            )
        return None, LIMITED_MEMORY, lacking


def uses_differences(function: ca.Function, *, itself: bool = False) -> bool:
    """True if a Function calls finite differences (``enable_fd``), or, by ``itself``, is one."""
    kinds = {called.class_name() for called in function.find_functions()}
    if itself:
        kinds.add(function.class_name())
    return not kinds.isdisjoint(_DIFFERENCES)


def called(function: ca.Function, *values: Any) -> list[Any]:
    """Call a user's Function with columns, in the shapes of its inputs; unused ones are empty."""
    # CasADi takes no column of zeros for an input that is declared empty.
    sizes = map(function.size_in, range(function.n_in()))
    shaped = [
        ca.reshape(ca.MX(value), size) if math.prod(size) else ca.MX(*size)
        for value, size in zip(values, sizes, strict=True)
    ]
    outputs: list[Any] = function.call(shaped, True, False)
    return outputs


def _signature(
    name: str,
    function: ca.Function | None,
    inputs: list[tuple[str, int]],
    outputs: list[tuple[str, tuple[int, int]]],
) -> None:
    """Refuse other inputs and outputs than these; an unused input may be empty."""
    if function is None:
        return
    if function.n_in() != len(inputs):
        labels = ", ".join(label for label, _ in inputs)
        raise InputError(
            f"{name} must take {len(inputs)} arguments ({labels}), got {function.n_in()}"
        )
    for i, (label, size) in enumerate(inputs):
        if function.numel_in(i) not in (0, size):
            raise InputError(
                f"{name}: its argument {i} is {label} with {size} entries here, got shape "
                f"{function.size_in(i)}"
            )
    if function.n_out() < max(1, len(outputs)):
        labels = " and ".join(label for label, _ in outputs)
        raise InputError(f"{name} must return {labels}, got {function.n_out()} outputs")
    for i, (label, shape) in enumerate(outputs):
        if function.size_out(i) != shape and not (0 in shape and function.numel_out(i) == 0):
            raise InputError(
                f"{name}: its output {i} is {label} of shape {shape}, got {function.size_out(i)}"
            )
