"""The solver as a CasADi Function, with derivatives, for use inside other MX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.call import Call
from casadi_hybrid.casadi_api import sensitivity
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.sensitivity import Sensitivities, Solution
from casadi_hybrid.problem.bounds import Bounds, make_bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.solver import Solver
from casadi_hybrid.stopping import Limits

INPUTS = ("x0", *sensitivity.INPUTS)
OUTPUTS = sensitivity.OUTPUTS


class EmbeddedSolver(ca.Callback):  # type: ignore[misc]
    """min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx as (x0, p, bounds) → x, f, g, λ.

    Made by :func:`as_function`. It is a ``ca.Function`` and takes numbers or MX.

    Attributes:
        problem: the problem.
        result: of the last solve, None before it.
    """

    def __init__(
        self, name: str, problem: Problem, limits: Limits, error_on_fail: bool, weak: float
    ) -> None:
        ca.Callback.__init__(self)
        self.problem = problem
        self.result: Result | None = None
        self._solver, self._limits = Solver(problem), limits
        self._error_on_fail, self._weak = error_on_fail, weak
        n, m = problem.n, problem.m
        self._sizes = {"x0": n, "p": problem.n_p, "lbx": n, "ubx": n, "lbg": m, "ubg": m}
        self._sizes |= {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m}
        given = {label: getattr(problem.bounds, label) for label in sensitivity.INPUTS[1:]}
        given |= {"x0": problem.x0, "p": problem.p0}
        self._defaults = {k: ca.DM(value) for k, value in given.items() if value is not None}
        self._derivatives: list[ca.Callback] = []
        self.construct(name, {})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call with numbers or MX, as any CasADi Function.

        By keyword, what is left out has the problem's default: for a dictionary bounds are
        infinite and p and x0 zero, as CasADi's solvers have it. Bounds of g are those of all rows,
        equations first. (The bare ``call()`` fills everything left out with zeros; CasADi lets no
        callback say otherwise.)
        """
        if not arguments:
            for label, value in self._defaults.items():
                named.setdefault(label, value)
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
        known = self.problem.numbers(x0=x0, p=p)
        numbers = replace(known, bounds=make_bounds(self.problem, *limits))
        result = self._solver.run(Call(numbers, self._limits))
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
        self._sensitivities = Sensitivities(solver.problem, weak=weak)
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
        nlp: CasADi's dictionary or a :class:`~casadi_hybrid.Problem`. The Function takes and
            gives columns; for a matrix P of parameters give it ``ca.vec(P)``.
        options: ``tol``, ``residual_tol``, ``max_iter``, ``max_time`` as for
            :func:`~casadi_hybrid.nlpsol`; ``error_on_fail`` (default True),
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
    known = ["tol", "residual_tol", "max_iter", "max_time"]
    chosen = dict(options or {})
    for word in chosen:
        if word not in (*known, "error_on_fail", "weak"):
            raise InputError(
                f"unknown option {word!r}{suggest(word, [*known, 'error_on_fail', 'weak'])}"
            )
    error_on_fail, weak = chosen.pop("error_on_fail", True), chosen.pop("weak", 1e-4)
    limits = NlpOptions(**chosen).limits  # which checks them
    positive(weak, "weak", allow_zero=True)
    problem = nlp if isinstance(nlp, Problem) else Problem.from_nlp(nlp, name=name)
    return EmbeddedSolver(name, problem, limits, error_on_fail, weak)


def _numbers(value: ca.DM) -> Any:
    return value.full().ravel(order="F")
