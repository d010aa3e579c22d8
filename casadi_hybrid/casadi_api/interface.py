"""CasADi's calling convention: ``nlpsol(name, "hybrid", {"x", "p", "f", "g"}, options)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.problem.columns import as_columns
from casadi_hybrid.problem.program import Program


def nlpsol(
    name: str, solver: str, nlp: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> NlpSolver:
    """Make a solver for min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx, as ``ca.nlpsol`` does.

    Where the barrier iteration stalls, or has no answer after 200 steps, other attempts follow:
    roots of the constraints first, other starts, bounds widened by 1e-8 relative. Iterations and
    times count all of them. Success is judged by the unscaled residuals with the bounds as given;
    what rounding leaves where large terms cancel does not count
    (:func:`casadi_hybrid.point.residuals.beyond_rounding`).

    Args:
        name: name of the solver, for messages.
        solver: ``"hybrid"``, the primal–dual barrier method of this package.
        nlp: CasADi's dictionary: ``x``, and where there are any ``p``, ``f``, ``g``; SX or MX.
            As in CasADi x and g may be rows and p a matrix, read column by column.
        options: a dictionary with any of

            ================================  =======  =============================================
            option                            default  effect
            ================================  =======  =============================================
            tol                               1e-08    scaled optimality error to reach (as IPOPT's
                                                       ``tol``)
            residual_tol                      1e-06    largest violation, ‖∇ₓL‖_∞ and
                                                       complementarity of a success, unscaled
            max_iter                          3000     steps
            max_time                          inf      wall-clock seconds
            divergence                        1e+20    give up beyond this ‖x‖_∞, or below minus
                                                       this f at a feasible point (status UNBOUNDED)
            error_on_fail                     False    raise SolveError instead of returning a
                                                       failure
            iteration_callback                None     Python function called with each
                                                       IterationRecord; return True to stop. Or a
                                                       ``ca.Callback`` (x, f, g, lam_x, lam_g,
                                                       lam_p) → number, not zero to stop, as CasADi
                                                       takes it
            iteration_callback_step           1        call it every so many iterations
            iteration_callback_ignore_errors  False    turn what it raises into a warning
            log                               False    print an iteration log; k prints every k
                                                       iterations
            print_time                        False    print seconds and numbers of evaluations at
                                                       the end
            warn_initial_bounds               False    warn where x0 lies outside its bounds
            expand                            False    turn an MX problem into SX; without it
                                                       that is done where it pays
            jit                               False    compile the functions by the system's C
                                                       compiler
            constraint_names                  None     m names for messages; ``g[i]`` by default
            variable_names                    None     n names for messages; ``x[i]`` by default
            ================================  =======  =============================================

            The other options of ``ca.nlpsol`` are accepted where there is nothing to switch
            (``calc_lam_p``, ``verbose``, …) and refused with the reason where they ask for what
            is not done here. Of IPOPT's, written ``"ipopt.max_iter"`` or ``{"ipopt": {…}}``,
            ``tol``, ``max_iter``, ``max_wall_time``, ``max_cpu_time``, ``diverging_iterates_tol``
            and ``print_level`` (5 and more print the log) are translated; an
            :class:`~casadi_hybrid.casadi_api.foreign.OptionWarning` names those that are not used.

    Returns:
        A :class:`~casadi_hybrid.NlpSolver`. Other parameters, bounds and starts need no new one.

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
    if solver != "hybrid":
        raise InputError(f"solver must be 'hybrid', got {solver!r}; for others use ca.nlpsol")
    if not isinstance(nlp, Mapping):
        raise InputError(
            f"nlp must be a dictionary with 'x', 'p', 'f', 'g', got {type(nlp).__name__}"
        )
    chosen = NlpOptions.from_dict(options)
    nlp, shapes = as_columns(nlp)
    # Checked before `expand` and the parameter gradient, which trust what they are given.
    program = _program(nlp, name, chosen)
    if chosen.expand and isinstance(nlp["x"], ca.MX):
        nlp = _expanded(nlp)
        program = _program(nlp, name, chosen)
    return NlpSolver(name, program, _parameter_gradient(nlp), chosen, shapes)


def _program(nlp: Mapping[str, Any], name: str, options: NlpOptions) -> Program:
    return Program.from_dict(
        nlp,
        name=name,
        constraint_names=options.constraint_names,
        variable_names=options.variable_names,
    )


def _graph(nlp: Mapping[str, Any]) -> tuple[Any, ca.Function, int, int]:
    """The kind of symbols, (x, p) → (f, g), and the sizes of x and p."""
    x = nlp["x"]
    kind = type(x)
    p = nlp.get("p", kind(0, 1))
    p = p if p.numel() else kind.sym("p", 0)
    f, g = (ca.vertcat(kind(0, 1), *_parts(nlp.get(key))) for key in ("f", "g"))
    f = f if f.numel() else kind(0)
    graph = ca.Function("graph", [x, p], [f, ca.densify(g)])
    return kind, graph, x.numel(), p.numel()


def _parts(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _expanded(nlp: Mapping[str, Any]) -> dict[str, Any]:
    _, graph, n, n_p = _graph(nlp)
    try:
        graph = graph.expand()
    except RuntimeError:
        raise InputError(
            "expand is set, but the problem has an operation without an SX form; leave it out"
        ) from None
    x, p = ca.SX.sym("x", n), ca.SX.sym("p", n_p)
    f, g = graph(x, p)
    return {"x": x, "p": p, "f": f, "g": g}


def _parameter_gradient(nlp: Mapping[str, Any]) -> ca.Function:
    """(x, λ_g, p) → ∂(f + λ_gᵀg)/∂p."""
    kind, graph, n, n_p = _graph(nlp)
    x, p = kind.sym("x", n), kind.sym("p", n_p)
    f, g = graph.call([x, p], True, False)
    lam = kind.sym("lam", g.numel())
    slope = ca.gradient(f + ca.dot(lam, g), p) if n_p else kind(0, 1)
    return ca.Function("gradient_p", [x, lam, p], [ca.densify(slope)])
