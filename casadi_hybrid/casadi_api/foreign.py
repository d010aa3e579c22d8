"""Options of ``ca.nlpsol`` and of IPOPT, so that a script that has them need not change them.

Each is translated, accepted because there is nothing to switch here, or refused with the reason.
What only steers IPOPT's way to the answer is left out, and a warning names it.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from typing import Any

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import count


class OptionWarning(UserWarning):
    """Options of another solver have no counterpart here and are not used."""


# How CasADi generates, caches and prints functions, or which outputs it may leave out: nothing of
# it changes an answer, and every output is always given.
WITHOUT_EFFECT = frozenset((
    "ad_weight", "ad_weight_sp", "always_inline", "cache", "calc_f", "calc_g", "calc_lam_p",
    "calc_lam_x", "calc_multipliers", "codegen_options", "common_options", "compiler",
    "der_options", "detect_simple_bounds", "enable_fd", "enable_forward", "enable_jacobian",
    "enable_reverse", "equality", "fd_method", "fd_options", "forward_options", "gather_stats",
    "ignore_check_vec", "inputs_check", "is_diff_in", "is_diff_out", "jac_penalty",
    "jacobian_options", "jit_cleanup", "jit_name", "jit_options", "jit_serialize",
    "jit_temp_suffix", "max_io", "max_num_dir", "never_inline", "no_nlp_grad", "oracle_options",
    "post_expand", "post_expand_options", "postpone_expand", "print_canonical", "record_time",
    "reverse_options", "sens_force_equality", "sens_linsol", "sens_linsol_options",
    "show_eval_warnings", "specific_options", "user_data", "verbose", "verbose_init",
))  # fmt: skip
# Accepted while off (False, zero or empty), since that is what happens here.
ONLY_OFF = {
    "bound_consistency": "x may lie outside a bound by the tolerance; clip it yourself",
    "min_lam": "multipliers are returned as they are; set small ones to zero yourself",
    "eval_errors_fatal": "a trial point where a function is not defined is always rejected",
    "regularity_check": "NaN and Inf are always looked for; see result.error",
    "discrete": "only real variables are supported; use a mixed-integer solver such as bonmin",
    "monitor": "functions are not printed as they are called; see log and iteration_callback",
    "print_in": "print the arguments where you call the solver",
    "print_out": "print the answer where you call the solver",
    "dump": "functions are not written to files; the solver pickles",
    "dump_in": "arguments are not written to files",
    "dump_out": "answers are not written to files",
    "convexify_strategy": "the Hessian is always corrected by inertia",
    "clip_inactive_lam": "multipliers of inactive bounds are small, not exactly zero",
}
# IPOPT's names for what has a counterpart.
_IPOPT = {
    "tol": "tol",
    "max_iter": "max_iter",
    "max_wall_time": "max_time",
    "max_cpu_time": "max_time",
    "diverging_iterates_tol": "divergence",
    "hessian_approximation": "hessian_approximation",
}
# Printing and names of files of IPOPT, and defaults of it that are the only way here.
_IPOPT_WITHOUT_EFFECT = frozenset((
    "sb", "print_timing_statistics", "print_user_options", "print_options_documentation",
    "warm_start_init_point", "mumps_mem_percent",
))  # fmt: skip


def translate(options: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Return the options of this package that stand for those of a script.

    Args:
        options: CasADi's dictionary; ``"ipopt.tol"`` and ``{"ipopt": {"tol": …}}`` are the same.
        known: names of the package's own options, which come first where both are given.

    Raises:
        InputError: for an unknown option, with the nearest known one, or one that asks for what
            is not done here.
    """
    own: dict[str, Any] = {}
    ipopt: dict[str, Any] = {}
    for name, value in options.items():
        plugin, _, rest = str(name).partition(".")
        if name in known:
            own[name] = value
        elif plugin == "ipopt" and rest:
            ipopt[rest] = value
        elif name == "ipopt" and isinstance(value, Mapping):
            ipopt |= value
        elif name in ONLY_OFF:
            _refuse_unless_off(name, value)
        elif name not in WITHOUT_EFFECT:
            _refuse_unknown(str(name), value, known)
    return {**_from_ipopt(ipopt), **own}


def _refuse_unless_off(name: str, value: Any) -> None:
    off = value is None or (not any(value) if hasattr(value, "__iter__") else not value)
    if isinstance(value, str):
        off = value in ("", "NONE")
    if not off:
        raise InputError(f"option {name!r} = {value!r} is not supported: {ONLY_OFF[name]}")


def _refuse_unknown(name: str, value: Any, known: list[str]) -> None:
    plugin = name.partition(".")[0]
    if plugin != name or isinstance(value, Mapping):
        raise InputError(
            f"option {name!r} belongs to {plugin}, another solver; use ca.nlpsol for it, or the "
            f"options known here: {', '.join(sorted(known))}"
        )
    raise InputError(f"unknown option {name!r}{suggest(name, [*known, *ONLY_OFF])}")


def _meant(name: str) -> str:
    """The translated option that a misspelt one is nearest to, in brackets."""
    close = difflib.get_close_matches(name, [*_IPOPT, "print_level"], n=1, cutoff=0.85)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _from_ipopt(options: Mapping[str, Any]) -> dict[str, Any]:
    translated: dict[str, Any] = {}
    unused = []
    for name, value in options.items():
        if name in _IPOPT:
            # CasADi takes a whole number that is written as a float.
            whole = name == "max_iter" and isinstance(value, float) and value.is_integer()
            translated[_IPOPT[name]] = int(value) if whole else value
        elif name == "print_level":
            count(int(value) if isinstance(value, float) else value, "ipopt.print_level")
            # IPOPT prints its table of iterations from level 5 on.
            translated["log"] = int(options.get("print_frequency_iter", 1)) if value >= 5 else False
        elif name not in (*_IPOPT_WITHOUT_EFFECT, "print_frequency_iter"):
            unused.append(name + _meant(name))
    if unused:
        warnings.warn(
            f"these options steer IPOPT and are not used here: {', '.join(sorted(unused))}; "
            "see the docstring of nlpsol for what there is instead",
            OptionWarning,
            stacklevel=5,
        )
    return translated
