"""From the graph of a problem to its functions: derivatives are generated, or what is given."""

from __future__ import annotations

import casadi as ca

from casadi_hybrid.problem.derivatives import Derivatives, uses_differences
from casadi_hybrid.problem.directions import few_directions
from casadi_hybrid.problem.functions import Functions


def build_functions(
    graph: ca.Function,
    *,
    constraint_names: tuple[str, ...],
    variable_names: tuple[str, ...],
    compiled: bool,
    constraint_label: str = "h",
    derivatives: Derivatives | None = None,
) -> Functions:
    """Differentiate (x, p) → (f, h) and return the functions (see :class:`Functions`).

    Raises:
        InputError: where a derivative that is needed does not exist.
    """
    source = derivatives or Derivatives()
    # On fresh symbols: a problem's x may be a vertcat of MX symbols, which has no derivative of
    # its own, and the graph is shared by every output. What is given may have no SX form.
    kind = ca.SX if graph.is_a("SXFunction") and not source.functions else ca.MX
    x, p = kind.sym("x", graph.size1_in(0)), kind.sym("p", graph.size1_in(1))
    f, h = graph.call([x, p], True, False)
    lam = kind.sym("lam", h.numel())
    gradient, jacobian = source.first(f, h, x, p, graph)
    first = [f, gradient, h, jacobian]
    labels = ["f", "grad_f", "h", "jac_h"]
    first_function = ca.Function("first", [x, p], first, ["x", "p"], labels)
    differenced = uses_differences(first_function)
    with few_directions(graph):
        hessian, origin, lacking = source.second(
            f, h, x, p, lam, lambda: gradient + jacobian.T @ lam, differenced=differenced
        )
    inputs = [x, lam, p], ["x", "lam", "p"]
    second = curvature = None
    if hessian is not None:
        second = ca.Function(
            "second", inputs[0], [*first, hessian], inputs[1], [*labels, "hess_lag"]
        )
        curvature = ca.Function("curvature", inputs[0], [hessian], inputs[1], ["hess_lag"])
    functions = Functions(
        ca.Function("residual", [x, p], [h], ["x", "p"], ["h"]),
        first_function,
        second,
        curvature,
        constraint_names,
        variable_names,
        "interpreted",
        constraint_label,
        origin,
        lacking,
        differenced,
    )
    if compiled:
        return functions.compiled()
    size = _scalar_operations(graph) if kind is ca.MX else None
    return functions if size is None else functions.expanded(size)


def _scalar_operations(graph: ca.Function) -> int | None:
    """How many scalar operations a graph has; None where it has no scalar form.

    An assertion has none: CasADi leaves it out without a word.
    """
    if any(map(_asserts, (graph, *graph.find_functions()))):
        return None
    try:
        return int(graph.expand().n_instructions())
    except RuntimeError:
        return None


def _asserts(function: ca.Function) -> bool:
    if not function.is_a("MXFunction"):
        return False
    ids = map(function.instruction_id, range(function.n_instructions()))
    return any(operation == ca.OP_ASSERTION for operation in ids)
