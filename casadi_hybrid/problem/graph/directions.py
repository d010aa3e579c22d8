"""Derivatives through an integrator of a DAE, in the ways in which CasADi's are right.

Two ways lead to wrong numbers where an integrator has algebraic states z (CasADi 3.8.2, every
plugin; its issue 3371 is one case):

- Asked for the adjoint in many directions CasADi takes its Jacobian instead, and that is wrong. So
  Hessians are generated in batches of few directions.
- Several adjoint directions at once are wrong where the last z is used. So J_g is then generated
  by forward directions.

Before CasADi 3.8 second derivatives of what uses the last z are wrong in every way that was tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import casadi as ca

from casadi_hybrid.utils.errors import InputError

# Inputs by which an integrator, or a map of it, is known.
_INPUTS = ["x0", "z0", "p", "u", "adj_xf"]
BEFORE_3_8 = tuple(map(int, ca.CasadiMeta.version().split(".")[:2])) < (3, 8)


@contextmanager
def few_directions(graph: ca.Function) -> Iterator[None]:
    """Within it, derivatives of the graph are generated in batches for which they are right.

    The number of directions is an option of all of CasADi: it is put back at the end.
    """
    limits = [_most(one) for one in graph.find_functions() if _solves_dae(one)]
    if not limits:
        yield
        return
    before = ca.GlobalOptions.getMaxNumDir()
    ca.GlobalOptions.setMaxNumDir(min(before, *limits))
    try:
        yield
    finally:
        ca.GlobalOptions.setMaxNumDir(before)


def jacobian(g: Any, x: Any, graph: ca.Function) -> Any:
    """J_g as an expression, g being one that the graph makes of x.

    Raises:
        InputError: where this release of CasADi gets derivatives wrong.
    """
    called = graph.find_functions()
    forward = bool(called) and any(map(_uses_algebraic_states, (graph, *called)))
    if forward and BEFORE_3_8:
        raise InputError(
            "f or g uses the algebraic states zf at the end of an integrator, and CasADi "
            f"{ca.CasadiMeta.version()} differentiates that wrongly: update CasADi to 3.8, or use "
            "the states xf alone"
        )
    options = {"helper_options": {"ad_weight": 0.0}} if forward else {}
    return ca.jacobian(g, x, options)


def _solves_dae(function: ca.Function) -> bool:
    names: list[str] = function.name_in()
    return names[: len(_INPUTS)] == _INPUTS and bool(function.numel_in("z0"))


def _most(function: ca.Function) -> int:
    """The most directions for which CasADi does not take the Jacobian of the adjoint.

    It does so for more than twice as many as the adjoint has inputs, or four times as many as it
    has outputs. Those are at least the states with their adjoints and p, or the states and p.
    """
    states, parameters = int(function.nnz_in("x0")), int(function.nnz_in("p"))
    return max(1, min(2 * (2 * states + parameters), 4 * (states + parameters)))


def _uses_algebraic_states(function: ca.Function) -> bool:
    """Whether a graph uses the output zf of an integrator that it calls."""
    if not function.is_a("MXFunction"):
        return False
    for k in range(function.n_instructions()):
        if function.instruction_id(k) == ca.OP_CALL:
            called = function.instruction_MX(k).which_function()
            if _solves_dae(called) and function.instruction_output(k)[1] >= 0:
                return True
    return False
