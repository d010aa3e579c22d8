"""The entry of the verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import positive

if TYPE_CHECKING:
    from casadi_hybrid.verify.report import Report


def verify(
    problem: Problem | Mapping[str, Any] | Any,
    answer: Any,
    *,
    p: Any = None,
    lbx: Any = None,
    ubx: Any = None,
    lbg: Any = None,
    ubg: Any = None,
    multipliers: Any = None,
    x0: Any = None,
    tol: float = 1e-6,
    scaled: bool = False,
    ipopt: bool = True,
    constraint_names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
) -> Report:
    """Judge a point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx by any solver.

    The point is accepted under three conditions. Feasibility, stationarity, complementarity and the
    signs of fitted multipliers hold within ``tol``; the second-order condition does not refute a
    minimum; IPOPT started at the point stays there. Multipliers that come with the point must
    satisfy the conditions too (L = f + lam_gᵀg + lam_xᵀx). At an infeasible point the report tells
    if the violation is stationary, which confirms or refutes local infeasibility. In optimal
    control no limit may be exceeded between the grid points by more than 1e-4 of its scale.

    An argument of None is taken from the answer if it is a result, else from the problem: g has no
    bounds in CasADi's dictionary, and the equations of a Problem are zero.

    Args:
        problem: a :class:`~casadi_hybrid.Problem`, or CasADi's dictionary with ``x``, ``f`` and
            optional ``g`` and ``p``; or an ``OptimalControl``, ``Phases`` or ``Scenarios`` of
            :mod:`casadi_hybrid.control`.
        answer: a :class:`~casadi_hybrid.Result`, a solution of an optimal control problem, the
            answer of a CasADi solver (a mapping or an object with ``x`` and optional ``lam_x`` and
            ``lam_g``), or the n numbers of a point.
        p, lbx, ubx, lbg, ubg: the instance, as ``nlpsol`` takes it.
        multipliers: m numbers lam_g to judge in place of the answer's.
        x0: start of the solve, for a run of IPOPT. Its result is reported and not judged: another
            local solution is no mistake.
        tol: tolerance on the residuals in the infinity norm. IPOPT may move the point by
            √tol·max(1, ‖x‖_∞).
        scaled: compare the scaled residuals with ``tol`` instead of the unscaled ones.
        ipopt: run IPOPT.
        constraint_names, variable_names: names in the report; by default the problem's.

    Returns:
        A :class:`Report`, also for a point with NaN or an undefined function.

    Raises:
        InputError: for a wrong shape or type, naming the argument.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> circle = Problem(x=x, f=x[0] + x[1], h={"circle": ca.sumsqr(x) - 2})
        >>> verify(circle, [-1, -1]).accepted
        True
        >>> [reason.name for reason in verify(circle, [1, 1]).categories]
        ['NOT_A_MINIMIZER']
        >>> nlp = {"x": x, "f": ca.sumsqr(x - 1), "g": x[0] + x[1]}
        >>> report = verify(nlp, [0.5, 0.5], ubg=1)
        >>> report.accepted, float(report.lam_g[0])
        (True, 1.0)
        >>> [reason.name for reason in verify(nlp, [0.5, 0.5], lbg=1).categories]
        ['WRONG_SIGN', 'IPOPT_MOVED']
    """
    positive(tol, "tol")
    if isinstance(answer, Problem) or hasattr(answer, "to_verify"):
        raise InputError("answer is a problem; the problem comes first: verify(problem, answer)")
    # Late, because these import SciPy's optimizers.
    from casadi_hybrid.problem.evaluator import Evaluator  # noqa: PLC0415
    from casadi_hybrid.verify.first_order.face import Instance  # noqa: PLC0415
    from casadi_hybrid.verify.judging import judge  # noqa: PLC0415
    from casadi_hybrid.verify.point import read_candidate, read_problem  # noqa: PLC0415

    arguments = {"x0": x0, "p": p, "lbx": lbx, "ubx": ubx, "lbg": lbg, "ubg": ubg}
    stated = problem.to_verify(answer) if hasattr(problem, "to_verify") else None
    if stated is not None:
        problem = stated.problem
        given = {name: value for name, value in arguments.items() if value is not None}
        # A given argument replaces the statement's own.
        arguments = {**stated.numbers, **given}
    problem = read_problem(problem, constraint_names, variable_names)
    candidate = read_candidate(problem, answer, arguments, multipliers)
    evaluator = Evaluator(problem, candidate.p)
    instance = Instance(problem, evaluator, candidate.bounds, tol, scaled)
    report = judge(instance, candidate, ipopt=ipopt)
    if stated is None:
        return report
    return report.exceeded(stated.exceeded(candidate.x, candidate.p))
