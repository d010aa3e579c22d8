"""The header of the core's constants, written from those of the Python code.

A constant is stated once, where the Python code uses it. The core takes it from ``c/constants.h``,
which ``python -m casadi_hybrid.engine.constants`` writes: HYBRID_, the name of the module or the
dataclass, the constant's name. A tuple is an initializer of an array, and its length has the same
name with _COUNT behind it.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from casadi_hybrid.barrier import (
    barrier,
    elastic,
    filter,
    hot,
    inertia,
    iterate,
    leap,
    merit,
    newton,
    pace,
    polish,
    rays,
    restoration,
)
from casadi_hybrid.iterations import composite, lookahead, safeguards, trust_region, violation
from casadi_hybrid.kernel import kernel, low_rank
from casadi_hybrid.point import kkt, residuals
from casadi_hybrid.problem.hessian import quasi_newton
from casadi_hybrid.standard_form import form

# By module: names of constants, or of a dataclass and a field of it whose default is meant.
_TABLE: tuple[tuple[ModuleType, tuple[str, ...]], ...] = (
    (hot, ("CONVEX", "_STEPS", "_SETS", "_WALK", "_WAIT", "_SURE", "_EXACT", "_OUTSIDE", "_LEFT")),
    (polish, ("FLAT", "REMEDIES", "_STEPS", "_BETTER", "_ENOUGH")),
    (
        iterate,
        (
            *("_SPREAD", "_S_MAX", "NU_START"),
            *("Settings.nu_least", "Settings.kappa_nu", "Settings.theta_nu"),
            *("Settings.kappa_epsilon", "Settings.saddle", "Settings.tau_least"),
            "Settings.polish_below",
        ),
    ),
    (
        newton,
        (
            *("_MAX_CORRECTIONS", "_TINY_STEPS", "_SHORT", "_MAX_SHORT", "_REST"),
            *("_STIFF", "_STIFFER", "_STIFFEST", "_LEAST_STIFF", "_CORRECTED", "_TINY"),
        ),
    ),
    (
        merit,
        (
            *("_GAMMA_THETA", "_GAMMA_PHI", "_DELTA", "_S_THETA", "_S_PHI", "_ETA", "DAMPING"),
            *("_SHORTEST", "_LEAST", "_NOISE", "_STEEPEST"),
        ),
    ),
    (
        inertia,
        (
            *("_FIRST", "_LEAST", "_LARGEST", "_FAR_LARGEST", "_OFTEN", "_STEEPER", "_IMPLAUSIBLE"),
            *("_FIRST_GROWTH", "_GROWTH", "_DECAY", "_SMALL", "_POWER", "_RANK", "_LEAST_SQUARES"),
        ),
    ),
    (
        pace,
        (
            *("FEASIBLE", "CRAWL", "STALL", "ROUNDS", "_THETA", "_F", "_ERROR", "_BELOW"),
            *("CONVERGING", "BESIDE", "OUTSIDE", "FITS"),
        ),
    ),
    (
        barrier,
        (
            *("_CLEAR", "_LATE", "_FAR_OFF", "_NU_FAR_OFF", "_SHIFT_NEARBY", "_SADDLE"),
            *("_AT_FLOOR", "_LOWER", "_SHARES", "_ROUNDED", "_LEAST_Z", "_LARGEST_Z"),
        ),
    ),
    (filter, ("_MOST", "_LEAST")),
    (elastic, ("PENALTY", "_REDUCTION", "_CURVATURE_OF_F", "_SMALL", "_FLOOR")),
    (
        restoration,
        (
            *("_ROOM", "_WATCH", "_SLOW", "_LEAST_NU", "_FORGET", "_FLAT", "_ROOT", "_ROUGH_ROOT"),
            *("_FAST", "_DAMPING", "_CAUTIOUS", "_LEAST_DAMPING", "_LARGEST_DAMPING"),
            *("_NU_SHARE", "_NU_LOW", "_NU_HIGH", "_LESS_NU", "_PUSHED", "_UNIT", "_STILL"),
            *("_GAINED", "_REFUSED", "_GROWTH", "_FASTER"),
            *("_GOOD", "_LONG", "_BAD", "_LESS", "_MORE"),
        ),
    ),
    (leap, ("_FROM",)),
    (
        trust_region,
        (
            *("_MAX_ITERATIONS", "_ACCURACY", "_EQUAL", "_TURN"),
            *("ACCEPT", "SHRINK_BELOW", "GROW_ABOVE", "_REFUSED", "_POOR", "_GROWTH", "_LONG"),
        ),
    ),
    (composite, ("_NORMAL_SHARE", "_UNLIMITED", "FEW", "_CLEAR", "_NOISE")),
    (safeguards, ("_PATIENCE", "_PROMISING", "_LONG_PATIENCE", "_HARDLY", "_RAISE", "_DEEP")),
    (violation, ("_NEGLIGIBLE", "_FAR", "_FLAT", "_MEDIOCRE", "_BEND")),
    (
        lookahead,
        (
            *("_DARING", "_DARED", "_SHARE"),
            *("_STATIONARY", "_CERTIFIED", "_CURVED", "_MAX_SADDLES"),
            *("_LEAST_RADIUS", "_CORRECTED", "_RAISE", "_LEVEL"),
            *("LookAhead.rank_tolerance", "LookAhead.tol_feasibility"),
        ),
    ),
    (
        form,
        (
            *("SCALE_GOAL", "_EVEN", "_OFF", "EASED", "ROOM", "WIDEST"),
            *("_BEYOND", "_LEAST_SCALE", "_PART", "TINY"),
        ),
    ),
    (kkt, ("_FAR", "_MET", "_CAP", "_TINY", "_HUGE", "_PRODUCTS", "_OTHERS")),
    (rays, ("_LARGE", "_FAR", "_LOST", "SLOPE", "_FURTHER")),
    (
        residuals,
        ("HUGE_MULTIPLIER", "ROUNDING", "HALF_DIGIT", "_NEGLIGIBLE", "_PULL", "_CONSTANT", "_FLAT"),
    ),
    (kernel, ("REFINEMENTS", "EXACT")),
    (low_rank, ("_ROUNDING",)),
    (quasi_newton, ("MEMORY", "_SKIPPED", "_LEAST", "_LEAST_DIFFERENCED")),
)


def constants() -> dict[str, Any]:
    """The values of the constants by their names in C.

    Raises:
        AttributeError: where the Python code no longer has one of them.
    """
    found: dict[str, Any] = {}
    for module, names in _TABLE:
        prefix = module.__name__.rpartition(".")[2]
        for name in names:
            words = [word.strip("_") for word in name.split(".")]
            words = words if len(words) > 1 else [prefix, *words]
            found["_".join(["HYBRID", *words]).upper()] = _value(module, name)
    return found


def header() -> str:
    """The text of ``constants.h``."""
    lines = [
        "/* Written by constants.py from the constants of the Python code; do not edit. */",
        "#ifndef HYBRID_CONSTANTS_H",
        "#define HYBRID_CONSTANTS_H",
    ]
    for name, value in constants().items():
        lines.append(f"#define {name} {in_c(value)}")
        if isinstance(value, tuple):
            lines.append(f"#define {name}_COUNT {len(value)}")
    return "\n".join([*lines, "#endif", ""])


def in_c(value: Any) -> str:
    """A number or a tuple of them as C reads it, to the last bit.

    Raises:
        TypeError: for anything else, NaN and Inf included.
    """
    if isinstance(value, tuple):
        return "{" + ", ".join(map(in_c, value)) + "}"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        text = repr(float(value) if isinstance(value, float) else value)  # NumPy's are floats too
        return f"({text})" if text.startswith("-") else text
    raise TypeError(f"{value!r} cannot be a constant of the core")


def _value(module: ModuleType, name: str) -> Any:
    """What a module has under a name; of a dataclass the default of a field."""
    found: Any = module
    for word in name.split("."):
        found = _default(found, word) if isinstance(found, type) else getattr(found, word)
    return found


def _default(kind: Any, name: str) -> Any:
    """The default of a dataclass's field; with slots the class has another thing of that name."""
    for known in fields(kind):
        if known.name == name and known.default is not MISSING:
            return known.default
    raise AttributeError(f"{kind.__name__} has no field {name!r} with a default")


if __name__ == "__main__":
    Path(__file__).with_name("c").joinpath("constants.h").write_text(header(), encoding="utf-8")
