"""An Opti problem with its solver as one CasADi Function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.optistack.program import Program

_KINDS = ca.OPTI_VAR, ca.OPTI_PAR, ca.OPTI_DUAL_G


def make_function(name: str, node: Any, program: Program, arguments: Sequence[Any]) -> ca.Function:
    """What ``opti.to_function(name, *arguments)`` returns.

    Args:
        name: a valid CasADi name.
        node: a baked ``ca.OptiAdvanced``; its values stand for what is no input.
        program: that of the node.
        arguments: inputs, results, and where given the names of both and options of
            ``ca.Function``; or a dictionary and the names.

    Raises:
        RuntimeError: from CasADi, where an input is no symbol of the problem.
        InputError: for arguments that do not fit.
    """
    inputs, results, names, options = _read(arguments)
    symbols = {kind: node.active_symvar(kind) for kind in _KINDS}
    given = _given(node, inputs)
    x0, p, lam_g0 = (
        ca.MX(ca.veccat(*map(lambda s, v: given.get(s.__hash__(), v), symbols[kind], values)))
        for kind, values in ((kind, node.active_values(kind)) for kind in _KINDS)
    )
    bounds = ca.Function("bounds", [node.p], [node.lbg, node.ubg])
    lbg, ubg = bounds.call([p], True, False)
    solver = program.function()
    best = solver(p=p, **program.scales.start(x0, lbg, ubg, lam_g0))
    x, lam_g = program.scales.point(best["x"], best["lam_g"])
    stacked = [ca.veccat(*symbols[kind]) for kind in _KINDS]
    helper = ca.Function("helper", stacked, results, options.pop("helper_options", {}))
    values = helper.call([x, p, lam_g])
    return ca.Function(name, inputs, values, *names, options)


def _read(arguments: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """Inputs, results, the lists of their names if there are any, and options."""
    rest = list(arguments)
    options = dict(rest.pop()) if len(rest) > 2 and isinstance(rest[-1], Mapping) else {}
    if len(rest) == 3 and isinstance(rest[0], Mapping):
        parts, name_in, name_out = rest
        for label in (*name_in, *name_out):
            if label not in parts:
                raise InputError(f"to_function has no expression for the name {label!r}")
        inputs, results = ([parts[k] for k in labels] for labels in (name_in, name_out))
        return inputs, results, [list(name_in), list(name_out)], options
    if len(rest) not in (2, 4):
        raise InputError(
            "to_function takes a name, inputs, results and the names of both, or a name, a "
            "dictionary and the names of inputs and results; options may follow"
        )
    return list(rest[0]), list(rest[1]), [list(names) for names in rest[2:]], options


def _given(node: Any, inputs: Sequence[Any]) -> dict[int, Any]:
    """The symbols of the inputs, by what they stand for."""
    given = {}
    for i, argument in enumerate(inputs):
        if not isinstance(argument, ca.MX) or not argument.is_valid_input():
            raise InputError(f"Argument {i} is not purely symbolic.")
        for symbol in argument.primitives():
            node.get_meta(symbol)  # raises where it is none of this Opti
            given[symbol.__hash__()] = symbol
    return given
