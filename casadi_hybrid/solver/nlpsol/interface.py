"""CasADi's calling convention: ``nlpsol(name, "hybrid", {"x", "p", "f", "g"}, options)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca

from casadi_hybrid.core.binding.serving import for_machine_code
from casadi_hybrid.problem.point.limits import METHOD_NAMES
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.runner import Runner
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.utils.errors import InputError, last_line


def nlpsol(
    name: str, solver: str, nlp: Any, options: Mapping[str, Any] | NlpOptions | None = None
) -> NlpSolver:
    """Make a solver for min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx, as ``ca.nlpsol`` does.

    If the barrier iteration stalls, or has no answer after 400 steps, other phases follow: roots of
    the constraints first, other starts, bounds widened by 1e-8 relative. Iterations and times count
    all of them. Success is judged by the unscaled residuals with the bounds as given; rounding
    errors of cancelling terms do not count
    (:func:`casadi_hybrid.problem.rounding.beyond_rounding`).

    Args:
        name: name of the solver, for messages.
        solver: ``"hybrid"`` (or ``"auto"``), the primal–dual barrier method of this package.
        nlp: CasADi's dictionary: ``x``, and optionally ``p``, ``f``, ``g``; SX or MX. As in CasADi
            x and g may be rows and p a matrix, read column by column, and all may be structures of
            ``casadi.tools``. Or one of CasADi's other forms: a ``ca.Function`` (x, p) → (f, g), a
            ``ca.NlpBuilder``, the name of a shared library or ``.c`` file with such a function
            ``nlp``; or an ``.nl`` file, with its bounds and start as defaults. Or a
            :class:`~casadi_hybrid.Problem`, with its defaults; its equations come first in g and
            lam_g, and have no lbg and ubg.
        options: a dictionary with any of these (name, default, effect):

            tol  1e-08  scaled optimality error to reach (as IPOPT's ``tol``)
            residual_tol  1e-06  largest violation, ‖∇ₓL‖_∞ and complementarity of a success,
                unscaled; ``ipopt.tol`` where that is larger
            constr_viol_tol  None  IPOPT's limit of the violation, where it is smaller than
                ``residual_tol``
            dual_inf_tol  None  the same of ‖∇ₓL‖_∞
            compl_inf_tol  None  and of the complementarity
            max_iter  3000  steps
            max_time  inf  wall-clock seconds of a solve, without the making of the solver
            divergence  1e+20  give up beyond this ‖x‖_∞, or below minus this f at a feasible point
                (status UNBOUNDED)
            mu_init  None  first barrier parameter of a run from x0 alone; None: 0.1, or less where
                ∇ₓL is small at x0
            bound_push  0.01  least distance of its start from the bounds, relative to
                max(1, |bound|), and to the distance between them (half of that at most)
            constr_mult_init_max  1000.0  first multipliers that are larger become zero
            max_soc  4  most second-order corrections of a step
            threads  1  2 (or more): the KKT matrix of a large problem is factored by two threads
                where pivots are chosen, to the same bits
            error_on_fail  False  raise SolveError instead of returning a failure
            iteration_callback  None  Python function called with each IterationRecord; return True
                to stop. Or a ``ca.Callback`` (x, f, g, lam_x, lam_g, lam_p) → number, not zero to
                stop, as CasADi takes it
            iteration_callback_step  1  call it every so many iterations
            iteration_callback_ignore_errors  False  turn what it raises into a warning
            log  False  print an iteration log; k prints every k iterations
            print_time  False  print seconds and numbers of evaluations at the end
            warn_initial_bounds  False  warn where x0 lies outside its bounds
            expand  False  turn an MX problem into SX; without it that is done where it pays
            postpone_expand  False  with ``expand``: derive in MX first, which keeps the derivatives
                that a Function of the graph brings along
            compile  False  compile the functions by the system's C compiler: what repeats in them,
                as the stages of a horizon do, once. By ``"background"`` the interpreted ones serve
                until the others are there
            jit  False  CasADi's word for ``compile``
            warm  True  begin with the multipliers lam_x0 and lam_g0 where a call gives them;
                without it, and with ``ipopt.warm_start_init_point`` "no", they are not used
            hessian_approximation  None  ``"exact"``, ``"gauss-newton"`` (f has to be a sum of
                squares) or ``"limited-memory"`` (learned from first derivatives). By default
                ``hess_lag``, else the exact one, else, where second derivatives do not exist or
                would be differences of differences, limited memory; ``stats()`` says it
            hess_lag  None  Function (x, p, lam_f, lam_g) → Hessian, in full or its upper triangle
            jac_g  None  Function (x, p) → g, J_g
            grad_f  None  Function (x, p) → f, ∇f
            residuals  None  Function (x, p) → F with f = ½‖F‖² or ‖F‖², where Gauss–Newton does not
                see it in f
            helper_options  None  options of the ``ca.Function`` (x, p) → f, g of which derivatives
                are taken, as in CasADi's ``common_options``: ``{"enable_fd": True,
                "enable_forward": False, "enable_reverse": False}`` takes finite differences
            constraint_names  None  m names for messages; ``g[i]`` by default
            variable_names  None  n names for messages; ``x[i]`` by default

            Of IPOPT's, written ``"ipopt.max_iter"`` or ``{"ipopt": {…}}``, ``tol``, ``max_iter``,
            ``max_wall_time``, ``max_cpu_time``, ``diverging_iterates_tol``, the three limits and
            four settings above (``mu_init`` not where a script starts warm by it),
            ``hessian_approximation`` and ``print_level`` (5 and more print the log; without it
            nothing is printed) are translated. The other options of CasADi and IPOPT are accepted
            if they have no effect here (``calc_lam_p``, ``verbose``, ``sb``, …), refused with the
            reason if they change the answer, or left out; one
            :class:`~casadi_hybrid.solver.options.foreign.OptionWarning` names those left out.
            ``{"hybrid": {…}}`` is for this solver alone, with its own options or IPOPT's. An option
            given twice with different values is refused.

    Returns:
        A :class:`~casadi_hybrid.solver.nlpsol.solver.NlpSolver`, which is a ``ca.Function``: for
        numbers, and for symbols in a graph, with derivatives. Other parameters, bounds and starts
        need no new one.

    Raises:
        InputError: for another solver's name, an unknown entry or option, or bad symbols.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> nlp = {"x": x, "f": (x[0] - 2) ** 2 + x[1] ** 2, "g": x[0] + x[1]}
        >>> solver = nlpsol("solver", "hybrid", nlp)
        >>> found = solver(x0=0, ubg=1, lbx=0)
        >>> [round(float(v), 6) for v in (found["f"], found["lam_g"])], solver.stats()["success"]
        ([1.0, 2.0], True)
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"name must be a non-empty text, got {name!r}")
    if solver not in METHOD_NAMES:
        raise InputError(f"solver must be 'hybrid', got {solver!r}; for others use ca.nlpsol")
    chosen = NlpOptions.from_dict(options)
    problem = _problem(nlp if chosen.helper_options is None else _behind(nlp, chosen), name, chosen)
    if chosen.expand and not chosen.postpone_expand:
        try:
            problem = problem.expanded()
        except RuntimeError:
            raise InputError(
                "expand is set, but the problem has an operation without an SX form; leave it out"
            ) from None
    # A Problem may ask for it too.
    if problem.compile and not chosen.compile:
        chosen = replace(chosen, compile=True)
    if chosen.compile:
        problem = for_machine_code(problem)
    return NlpSolver(Runner(name, problem, chosen))


def _behind(nlp: Any, options: NlpOptions) -> dict[str, Any]:
    """The dictionary, in columns, with f and g behind one Function that has ``helper_options``."""
    if isinstance(nlp, Problem):
        raise InputError("helper_options are for a dictionary; a Problem has its own derivatives")
    graph = Problem.from_nlp(nlp).graph
    x, p = (ca.MX.sym(label, graph.size1_in(i)) for i, label in enumerate("xp"))
    # Inlined, f and g would be differentiated without these options.
    function_options = {**(options.helper_options or {}), "never_inline": True}
    try:
        helper = ca.Function("nlp", [x, p], graph.call([x, p]), function_options)
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(
            f"helper_options are not understood by CasADi: {last_line(error)}"
        ) from None
    f, g = helper.call([x, p])
    return {"x": x, "p": p, "f": f, "g": g}


def _problem(nlp: Mapping[str, Any] | Problem, name: str, options: NlpOptions) -> Problem:
    derivatives = options.derivatives
    names: dict[str, Any] = {
        "constraint_names": options.constraint_names,
        "variable_names": options.variable_names,
    }
    if not isinstance(nlp, Problem):
        return Problem.from_nlp(nlp, name=name, derivatives=derivatives, **names)
    if any(labels is not None for labels in names.values()):
        raise InputError(
            "constraint_names and variable_names are for a dictionary: a Problem has its own"
        )
    return nlp if derivatives.plain else nlp.with_derivatives(derivatives)
