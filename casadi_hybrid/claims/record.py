"""What a checked claim is: numbers that were measured, the bound they are held against, a verdict.

A claim holds when no deviation exceeds its bound. A counter-example drops one hypothesis of a
claim; it holds when every deviation exceeds its bound, that is, when the hypothesis is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

EQUAL = 1e-12
DIFFERENT = 1e-6


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, or one counter-example, with what was measured.

    Attributes:
        name: what is claimed.
        case: on what: shape, steps, splits.
        deviations: pairs (what was compared, deviation). Those of trajectories are
            max_t ‖a_t − b_t‖_∞ / max(1, max_t ‖a_t‖_∞, max_t ‖b_t‖_∞); each function that makes a
            claim says what its other numbers are. NaN where a trajectory was not completed.
        bound: what the deviations are held against.
        counterexample: whether the deviations must exceed the bound instead.
        detail: what went wrong, or empty.
    """

    name: str
    case: str
    deviations: tuple[tuple[str, float], ...]
    bound: float
    counterexample: bool = False
    detail: str = ""

    @property
    def worst(self) -> float:
        """The deviation that decides: the largest, or for a counter-example the smallest."""
        values = [value for _, value in self.deviations]
        return float(np.min(values) if self.counterexample else np.max(values))

    @property
    def held(self) -> bool:
        """Whether the claim, or the counter-example, came out as stated (never with a NaN)."""
        return self.worst > self.bound if self.counterexample else self.worst <= self.bound

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text, ready for JSON; None for a number that is not finite."""
        return {
            "name": self.name,
            "case": self.case,
            "counterexample": self.counterexample,
            "deviations": {
                what: value if np.isfinite(value) else None for what, value in self.deviations
            },
            "bound": self.bound,
            "held": self.held,
            "detail": self.detail,
        }

    def __str__(self) -> str:
        verdict = "holds" if self.held else "FAILS"
        sign = "> " if self.counterexample else "<="
        measured = "  ".join(f"{what} {value:.1e}" for what, value in self.deviations)
        line = f"{verdict}  {self.name:<38} {self.case:<32} {sign} {self.bound:<6.2g} {measured}"
        return f"{line}  ({self.detail})" if self.detail else line


def attempted(claim: Callable[..., Claim], *given: Any, **options: Any) -> Claim:
    """Return the claim, or one that fails with the sentence of what its computation raised.

    Args:
        claim: a function that makes one claim.
        given, options: its arguments.
    """
    try:
        return claim(*given, **options)
    except Exception as error:  # noqa: BLE001 (whatever it is, the other claims still run)
        name = claim.__name__.replace("_", " ")
        against = (claim.__doc__ or "").startswith("Counter-example")
        detail = f"{type(error).__name__}: {error}"
        return Claim(name, "not computed", (("failed", np.nan),), 0.0, against, detail)


def table(claims: Iterable[Claim]) -> str:
    """Return the claims, then the counter-examples, one aligned line each, and the count."""
    known = tuple(claims)
    parts = (
        ("Claims: no deviation may exceed the bound", False),
        ("Counter-examples, one hypothesis dropped: every deviation must exceed the bound", True),
    )
    lines: list[str] = []
    for title, kind in parts:
        chosen = [claim for claim in known if claim.counterexample is kind]
        if chosen:
            lines += [title, *(str(claim) for claim in chosen), ""]
    held = sum(claim.held for claim in known)
    return "\n".join([*lines, f"{held} of {len(known)} hold"])
