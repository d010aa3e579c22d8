"""Options of ``ca.nlpsol`` and of IPOPT, so that a script that has them need not change them.

Each is translated, accepted if it has no effect here, left out with a warning that names it, or
refused with the reason if the answer would be another one without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from numbers import Real
from textwrap import shorten
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.point.limits import RESIDUAL_TOL
from casadi_hybrid.utils.errors import InputError, nearest, warn
from casadi_hybrid.utils.inputs import count, positive


class OptionWarning(UserWarning):
    """Options of another solver have no counterpart here and are not used."""


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    """Dictionary from each name to its entry, of a table from entries to blank-separated names."""
    return {name: entry for entry, names in table.items() for name in names.split()}


_KINDS: dict[str, Any] = {
    "True or False": bool | int | np.bool_,
    "a number": Real,
    "a text": str,
    "a dictionary": Mapping,
    "a list": list | tuple | np.ndarray,
    "anything": object,
}
_EFFECTLESS = {
    "True or False": """
        always_inline calc_f calc_g calc_lam_p calc_lam_x calc_multipliers detect_simple_bounds
        enable_fd enable_forward enable_jacobian enable_reverse gather_stats ignore_check_vec
        inputs_check jit_cleanup jit_temp_suffix never_inline no_nlp_grad post_expand
        print_canonical record_time sens_force_equality show_eval_warnings verbose verbose_init""",
    "a number": "ad_weight ad_weight_sp jac_penalty max_io max_num_dir",
    "a text": "compiler fd_method jit_name jit_serialize sens_linsol",
    "a dictionary": """
        codegen_options der_options fd_options forward_options jacobian_options jit_options
        post_expand_options reverse_options sens_linsol_options""",
    "a list": "equality is_diff_in is_diff_out",
    "anything": "user_data",
}
# Options of CasADi that change no answer here, with the kind of their values. They choose how
# CasADi generates, caches and prints functions, or which outputs it omits.
WITHOUT_EFFECT = _by_name(_EFFECTLESS)
# Functions that CasADi takes from its option "cache", by the names they have as options.
CACHED = {"nlp_hess_l": "hess_lag", "nlp_jac_g": "jac_g", "nlp_grad_f": "grad_f"}
_UNUSED = {
    "derivatives are generated; your own functions have their own options": """
        common_options oracle_options specific_options""",
    "the Hessian is corrected by inertia": "convexify_margin convexify_strategy max_iter_eig",
    "nothing is written to files; the solver pickles": """
        dump dump_dir dump_format dump_in dump_out""",
    "functions are not printed as they are called; see log and iteration_callback": "monitor",
    "the graph says it": "nonlinear_variables pass_nonlinear_variables",
    "print arguments and answers where you call the solver": "print_in print_out",
    "IPOPT alone reads it": """
        var_integer_md var_numeric_md var_string_md con_integer_md con_numeric_md con_string_md""",
}
# Options that show a solve, or steer the way to its answer: left out, with a warning if on.
NOT_USED = _by_name(_UNUSED)
_OFF_HERE = {
    "x may lie outside a bound by the tolerance; clip it yourself": "bound_consistency",
    "multipliers are returned as they are, of inactive bounds small, not exactly zero; set such "
    "ones to zero yourself": "clip_inactive_lam inactive_lam_strategy inactive_lam_value min_lam",
    "only real variables are supported; use a mixed-integer solver such as bonmin": "discrete",
    "a trial point where a function is not defined is rejected, and a solve that ends for it says "
    "where; see result.error": "eval_errors_fatal regularity_check",
}
# Options accepted if off (False, zero or empty), which is the behaviour here.
ONLY_OFF = _by_name(_OFF_HERE)
_COUNTERPARTS = {
    "max_time": "max_wall_time max_cpu_time",
    "divergence": "diverging_iterates_tol",
    "warm": "warm_start_init_point",
}
_SAME_NAME = """
    tol max_iter hessian_approximation constr_viol_tol dual_inf_tol compl_inf_tol mu_init bound_push
    constr_mult_init_max max_soc"""
# IPOPT's options with a counterpart here.
IPOPT_NAMES = _by_name(_COUNTERPARTS) | {name: name for name in _SAME_NAME.split()}
# Promises on f and g, printing, and the point of a warm start, which is taken as it is here.
_SILENT = """
    check_derivatives_for_naninf grad_f_constant hessian_constant inf_pr_output jac_c_constant
    jac_d_constant mumps_mem_percent print_advanced_options print_frequency_iter
    print_frequency_time print_info_string print_options_documentation print_options_mode
    print_timing_statistics print_user_options sb suppress_all_output warm_start_bound_frac
    warm_start_bound_push warm_start_mult_bound_push warm_start_slack_bound_frac
    warm_start_slack_bound_push"""
_IPOPT_WITHOUT_EFFECT = frozenset(_SILENT.split())
# Values of IPOPT's options that are the behaviour here.
_IPOPT_AS_HERE: dict[str, tuple[Any, ...]] = {
    "acceptable_iter": (0,),
    "bound_relax_factor": (0,),
    "derivative_test": ("none",),
    "file_print_level": (0,),
    "fixed_variable_treatment": ("make_parameter", "make_parameter_nodual"),
    "honor_original_bounds": ("no",),
    "mu_target": (0,),
    "obj_scaling_factor": (1,),
    "output_file": ("",),
    "replace_bounds": ("no",),
    "skip_finalize_solution_call": ("no",),
}
# Options of IPOPT that ask for the answer of another problem, except values from zero to the
# number; −1: all values.
_IPOPT_REFUSED = {
    "mu_target": (RESIDUAL_TOL, "the answer would be no KKT point; add the barrier term to f"),
    "obj_scaling_factor": (np.inf, "below zero it would maximize f; minimize -f instead"),
    "replace_bounds": (-1.0, "bounds are bounds here; write them as rows of g"),
}


def translate(options: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Return our options, by the names ``known``, that stand for those of a script."""
    own: dict[str, Any] = {}
    ipopt: dict[str, Any] = {}
    labels: dict[str, str] = {}
    unused: list[str] = []
    # "hybrid.tol", {"hybrid": {"tol": …}} and "tol" are the same. Unknown ones of the plugin
    # "hybrid" are read as options of IPOPT, so that a script changes the plugin alone.
    for label, value in _flat(options):
        plugin, _, rest = label.partition(".")
        name = rest if plugin == "hybrid" else label
        if name in known:
            _put(own, name, value, label)
        elif plugin in ("ipopt", "hybrid") and rest:
            _put(ipopt, rest, value, f"ipopt.{rest}")
            labels[rest] = label
        elif label in WITHOUT_EFFECT:
            if not isinstance(value, _KINDS[WITHOUT_EFFECT[label]]):
                raise InputError(f"{label} must be {WITHOUT_EFFECT[label]}, got {value!r}")
        elif label not in NOT_USED and label not in ONLY_OFF:
            _refuse_unknown(label, value, known)
        elif _is_off(value):
            continue
        elif label in ONLY_OFF:
            brief = shorten(repr(value), 80, placeholder=" …")
            raise InputError(f"option {label!r} = {brief} is not supported: {ONLY_OFF[label]}")
        else:
            unused.append(f"{label} ({NOT_USED[label]})")
    of_ipopt = _from_ipopt(ipopt, own)
    # Asked last, since it makes a solver of IPOPT for each name.
    for name in of_ipopt:
        if not _is_ipopts(name):
            meant = nearest(name, known if labels[name] == f"hybrid.{name}" else [*IPOPT_NAMES])
            near = f"; did you mean {meant!r}?" if meant else ""
            raise InputError(f"unknown option {name!r} (IPOPT has none of that name{near})")
    _warn_unused(of_ipopt, unused)
    return own


def _warn_unused(of_ipopt: list[str], of_casadi: list[str]) -> None:
    parts = []
    for kind, names in (("steer IPOPT and are", of_ipopt), ("of CasADi are", of_casadi)):
        if names:
            parts.append(f"these options {kind} not used here: {', '.join(sorted(names))}")
    if parts:
        parts.append("docs/from_ipopt.md lists the options that are used")
        warn("; ".join(parts), OptionWarning)  # at the line that makes the solver


def _flat(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values, those for a plugin as ``"plugin.name"``; as in CasADi without None."""
    flat: list[tuple[str, Any]] = []
    for label, value in options.items():
        name = str(label).replace("__", ".", 1)  # as in dict(ipopt__tol=1e-6)
        if name in ("cache", "ipopt", "hybrid"):
            if not isinstance(value, Mapping | None):
                raise InputError(f"{name} must be a dictionary, got {type(value).__name__}")
            given = value or {}
            # CasADi looks into its cache for a function before it derives one.
            names = CACHED if name == "cache" else {key: f"{name}.{key}" for key in given}
            flat += [(names[key], entry) for key, entry in given.items() if key in names]
        elif isinstance(value, Mapping) and (name, *value) == ("common_options", "helper_options"):
            flat += value.items()  # how CasADi derives
        else:
            flat.append((name, value))
    return [(name, value) for name, value in flat if value is not None]


def _put(into: dict[str, Any], name: str, value: Any, label: str, where: str = "") -> None:
    """Set an option; refuse a second value that differs."""
    same = name not in into or into[name] is value
    with suppress(TypeError, ValueError, RuntimeError):  # of values without a comparison
        same = same or bool(into[name] == value)
    if not same:
        raise InputError(
            f"{label} is given twice, {into[name]!r} and {value!r}{where}; give it once"
        )
    into[name] = value


def _is_off(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("", "NONE")
    return not any(value) if hasattr(value, "__iter__") else not value


def _refuse_unknown(name: str, value: Any, known: list[str]) -> None:
    plugin = name.partition(".")[0]
    if plugin != name or isinstance(value, Mapping):
        raise InputError(
            f"option {name!r} belongs to {plugin}, another solver; use ca.nlpsol for it, or the "
            f"options known here: {', '.join(sorted(known))}"
        )
    meant = [IPOPT_NAMES.get(name, "log" if name == "print_level" else nearest(name, known))]
    if _is_ipopts(name):
        meant.append(f"ipopt.{name}")
    elif not meant[0]:
        meant = [nearest(name, [*ONLY_OFF, *NOT_USED, *WITHOUT_EFFECT])]
    guesses = " or ".join(repr(guess) for guess in meant if guess)
    hint = f"did you mean {guesses}?" if guesses else f"known: {', '.join(sorted(known))}"
    raise InputError(f"unknown option {name!r}; {hint}")


@cache
def _is_ipopts(name: str) -> bool:
    """Return True if CasADi's IPOPT has an option, also if CasADi comes without IPOPT."""
    x = ca.SX.sym("x")
    try:
        # IPOPT takes and prints no such value; ca.nlpsol may be this package's (in_place).
        ca.casadi.nlpsol("options", "ipopt", {"x": x, "f": x}, {"ipopt": {name: {}}})
    except RuntimeError as error:
        return "No such IPOPT option" not in str(error)
    return True


def _from_ipopt(options: Mapping[str, Any], own: dict[str, Any]) -> list[str]:
    """Put the counterparts of IPOPT's options among our own; return the names without one."""
    translated: dict[str, Any] = {}
    unused = []
    for name, value in options.items():
        if not isinstance(value, Real | str | np.bool_):
            raise InputError(f"ipopt.{name} must be a number or a text, got {value!r}")
        number = np.nan if isinstance(value, str) else float(value)
        # With IPOPT's warm start mu_init is for given multipliers, which take another path here.
        apart = name == "mu_init" and options.get("warm_start_init_point") == "yes"
        if name in IPOPT_NAMES and not apart:
            _translate(translated, name, value)
        elif name == "print_level":
            whole: Any = int(value) if isinstance(value, float) else value
            level = count(whole, "ipopt.print_level")
            # IPOPT prints its table of iterations from level 5 on.
            translated["log"] = int(options.get("print_frequency_iter", 1)) if level >= 5 else False
        elif name in _IPOPT_AS_HERE and value in _IPOPT_AS_HERE[name]:
            continue
        elif name in _IPOPT_REFUSED and not 0.0 <= number <= _IPOPT_REFUSED[name][0]:
            why = _IPOPT_REFUSED[name][1]
            raise InputError(f"ipopt.{name} = {value!r} is not supported: {why}")
        elif name not in _IPOPT_WITHOUT_EFFECT:
            unused.append(name)
    if isinstance(translated.get("tol"), Real) and "residual_tol" not in own:
        # A larger tol of IPOPT asks for fewer steps; its unscaled limits are loose then.
        translated["residual_tol"] = max(RESIDUAL_TOL, float(translated["tol"]))
    for name, value in translated.items():
        # Printing is no contradiction: scripts silence IPOPT, and have a log here.
        if name != "log" or name not in own:
            _put(own, name, value, name, " among IPOPT's options")
    return unused


def _translate(translated: dict[str, Any], name: str, value: Any) -> None:
    if name in ("max_iter", "max_soc") and isinstance(value, float) and value.is_integer():
        value = int(value)  # CasADi takes an integer that is written as a float
    target = IPOPT_NAMES[name]
    if target == "warm":
        if value not in ("yes", "no"):
            raise InputError(f"ipopt.{name} must be 'yes' or 'no', got {value!r}")
        value = value == "yes"
    if target == "max_time":  # the smaller of two limits
        value = min(positive(value, f"ipopt.{name}"), translated.get(target, np.inf))
    translated[target] = value
