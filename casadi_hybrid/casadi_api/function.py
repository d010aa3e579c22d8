"""The solver as a CasADi Function, with derivatives, for use inside other MX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import casadi as ca

from casadi_hybrid.attempts.solve import SolveOptions, solve_program
from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.casadi_api import sensitivity
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.sensitivity import Sensitivities, Solution
from casadi_hybrid.nlp_result import NlpResult
from casadi_hybrid.problem.bounds import Bounds, make_bounds
from casadi_hybrid.problem.problem import Problem

INPUTS = ("x0", *sensitivity.INPUTS)
OUTPUTS = sensitivity.OUTPUTS


class EmbeddedSolver(ca.Callback):  # type: ignore[misc]
    """min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx as (x0, p, bounds) → x, f, g, λ.

    Made by :func:`as_function`. It is a ``ca.Function`` and takes numbers or MX.

    Attributes:
        program: the problem.
        result: of the last solve, None before it.
    """

    def __init__(
        self, name: str, program: Problem, options: SolveOptions, error_on_fail: bool, weak: float
    ) -> None:
        ca.Callback.__init__(self)
        self.program = program
        self.result: NlpResult | None = None
        self._options, self._error_on_fail, self._weak = options, error_on_fail, weak
        n, m = program.n, program.m
        self._sizes = {"x0": n, "p": program.n_p, "lbx": n, "ubx": n, "lbg": m, "ubg": m}
        self._sizes |= {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m}
        self._derivatives: list[ca.Callback] = []
        self.construct(name, {})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call with numbers or MX, as any CasADi Function.

        By keyword, bounds left out are the problem's (for a dictionary infinite) and p and x0
        zero: CasADi's defaults for solvers.
        (The bare ``call()`` fills everything left out with zeros; CasADi lets no callback say
        otherwise.)
        """
        if not arguments:
            for label in sensitivity.INPUTS[1:]:
                named.setdefault(label, ca.DM(getattr(self.program.bounds, label)))
        return super().__call__(*arguments, **named)

    def get_n_in(self) -> int:
        """Number of inputs."""
        return len(INPUTS)

    def get_n_out(self) -> int:
        """Number of outputs."""
        return len(OUTPUTS)

    def get_name_in(self, i: int) -> str:
        """Name of input i."""
        return INPUTS[i]

    def get_name_out(self, i: int) -> str:
        """Name of output i."""
        return OUTPUTS[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Shape of input i: a dense column."""
        return ca.Sparsity.dense(self._sizes[INPUTS[i]], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """Shape of output i: a dense column."""
        return ca.Sparsity.dense(self._sizes[OUTPUTS[i]], 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        """Solve at numbers.

        Raises:
            RuntimeError: where the solve fails and ``error_on_fail`` is set.
        """
        x0, p, *limits = (_numbers(argument) for argument in arguments)
        bounds = make_bounds(self.program, *limits)
        result = solve_program(self.program, x0, p, bounds, self._options)
        self.result = result
        if self._error_on_fail and not result.success:
            raise RuntimeError(f"{self.name()} failed. {result.explain()}")
        return [ca.DM(getattr(result, name)) for name in OUTPUTS]

    def has_jacobian(self) -> bool:
        """There is one, by the KKT system."""
        return True

    def get_jacobian(
        self, name: str, inames: Sequence[str], onames: Sequence[str], _options: Any
    ) -> ca.Function:
        """The Function of all derivative blocks, which CasADi asks for."""
        made = _Jacobian(name, self, inames, onames, self._weak)
        self._derivatives.append(made)
        return made


class _Jacobian(ca.Callback):  # type: ignore[misc]
    """(inputs, outputs of the solve) → d(output)/d(input), all blocks; no second solve."""

    def __init__(
        self,
        name: str,
        solver: EmbeddedSolver,
        inames: Sequence[str],
        onames: Sequence[str],
        weak: float,
    ) -> None:
        ca.Callback.__init__(self)
        self._inames, self._onames = list(inames), list(onames)
        self._sizes = solver._sizes
        self._sensitivities = Sensitivities(solver.program, weak=weak)
        self._blocks = [(output, wrt) for output in OUTPUTS for wrt in INPUTS]
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inames)

    def get_n_out(self) -> int:
        return len(self._onames)

    def get_name_in(self, i: int) -> str:
        return self._inames[i]

    def get_name_out(self, i: int) -> str:
        return self._onames[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self._sizes[(*INPUTS, *OUTPUTS)[i]], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        output, wrt = self._blocks[i]
        shape = (self._sizes[output], self._sizes[wrt])
        # A solution does not depend on the start while that leads to it.
        return ca.Sparsity(*shape) if wrt == "x0" else ca.Sparsity.dense(*shape)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        _, p, lbx, ubx, lbg, ubg, x, _, _, lam_x, lam_g = map(_numbers, arguments)
        blocks = self._sensitivities(Solution(x, lam_x, lam_g), p, Bounds(lbx, ubx, lbg, ubg))
        return [
            ca.DM(self.sparsity_out(i)) if wrt == "x0" else ca.DM(blocks[f"jac_{output}_{wrt}"])
            for i, (output, wrt) in enumerate(self._blocks)
        ]


def as_function(
    name: str, nlp: Problem | Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> EmbeddedSolver:
    """The solver as a CasADi Function ``(x0, p, lbx, ubx, lbg, ubg) → (x, f, g, lam_x, lam_g)``.

    First derivatives of every output with respect to p and the bounds come from the KKT system at
    the solution, so ``ca.jacobian(F(p=p)["x"], p)`` works; the derivative with respect to x0 is
    zero. Second derivatives, code generation and serialization are not available. Each derivative
    call computes the blocks of p and of all active bounds, dense: meant for moderate sizes.

    **Keep the object** for as long as anything uses it: CasADi holds no reference to a Python
    callback, and a graph built with a collected one raises "Callback object has been deleted".

    Args:
        name: a valid CasADi name.
        nlp: CasADi's dictionary or a :class:`~casadi_hybrid.problem.problem.Problem`. The Function
            takes and gives columns; for a matrix P of parameters give it ``ca.vec(P)``.
        options: ``tol``, ``residual_tol``, ``max_iter``, ``max_time`` of
            :class:`~casadi_hybrid.attempts.solve.SolveOptions`; ``error_on_fail`` (default True),
            without which a failed solve returns its best point; ``weak`` (default 1e-4), see
            :class:`~casadi_hybrid.casadi_api.sensitivity.Sensitivities`.

    Raises:
        InputError: for an unknown option, a bad value or a bad problem.

    Example:
        >>> import casadi as ca
        >>> x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
        >>> solver = as_function("solver", {"x": x, "p": p, "f": ca.sumsqr(x), "g": ca.sum1(x) - p})
        >>> q = ca.MX.sym("q")
        >>> best = solver(p=q, lbg=0)
        >>> slopes = [ca.jacobian(best["x"], q), ca.gradient(best["f"], q)]
        >>> slope = ca.Function("slope", [q], slopes)
        >>> [round(float(v), 6) for part in slope(3) for v in part.full().ravel()]
        [0.5, 0.5, 3.0]
    """
    known = [entry.name for entry in fields(SolveOptions)]
    chosen = dict(options or {})
    for word in chosen:
        if word not in (*known, "error_on_fail", "weak"):
            raise InputError(
                f"unknown option {word!r}{suggest(word, [*known, 'error_on_fail', 'weak'])}"
            )
    error_on_fail, weak = chosen.pop("error_on_fail", True), chosen.pop("weak", 1e-4)
    limits = NlpOptions(**chosen).limits  # which checks them
    positive(weak, "weak", allow_zero=True)
    program = nlp if isinstance(nlp, Problem) else Problem.from_nlp(nlp, name=name)
    return EmbeddedSolver(name, program, limits, error_on_fail, weak)


def _numbers(value: ca.DM) -> Any:
    return value.full().ravel(order="F")
