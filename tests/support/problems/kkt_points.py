"""KKT points of small programs with their multipliers, computed by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
from support.problems.verdicts import read, value_of

from casadi_hybrid import Problem, Report, verify
from casadi_hybrid.verify import Curvature


@dataclass(frozen=True)
class Known:
    """A KKT point of a program in x and p with f, g and finite ``bounds``.

    ``inertia`` is that of the Hessian of L on the kernel of the binding rows; strong and weak name
    the active inequalities. Multipliers that are not unique are None.
    """

    name: str
    f: Callable[..., Any]
    g: Callable[..., Sequence[Any]]
    x: Sequence[float]
    lam_x: Sequence[float] | None
    lam_g: Sequence[float] | None
    verdict: Curvature
    inertia: tuple[int, int, int]
    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    bounds: dict[str, Any] = field(default_factory=dict)
    p: Sequence[float] = ()

    def nlp(self, kind: Any = ca.SX) -> dict[str, Any]:
        """The problem in ``ca.SX`` or ``ca.MX`` symbols."""
        x, p = kind.sym("x", len(self.x)), kind.sym("p", len(self.p))
        arguments = (x, p) if self.p else (x,)
        g = self.g(*arguments)
        return {"x": x, "p": p, "f": self.f(*arguments), "g": ca.vertcat(*g) if g else kind(0, 1)}

    @property
    def instance(self) -> dict[str, Any]:
        """Parameters and bounds, as ``nlpsol`` and the verifier take them."""
        return {**self.bounds, "p": list(self.p)}

    @property
    def minimizer(self) -> bool:
        """The verifier should accept the point."""
        return self.verdict is not Curvature.NEGATIVE_CURVATURE

    def __str__(self) -> str:
        return self.name


def of_entry(f: str, g: list[str], verdict: str, bounds: Any = None, **known: Any) -> Known:
    """A line of ``data/points.json``."""
    given = {
        key: None if value is None else tuple(value if key in WORDS else value_of(value))
        for key, value in known.items()
        if key != "name"
    }
    return Known(
        known["name"],
        lambda x, p=None: value_of(f, x=x, p=p),
        lambda x, p=None: value_of(g, x=x, p=p),
        verdict=Curvature[verdict],
        bounds={side: value_of(bound) for side, bound in (bounds or {}).items()},
        **given,
    )


WORDS = ("strong", "weak")
KNOWN = tuple(of_entry(**entry) for entry in read("points"))


def plane(f: Callable[[Any], Any], h: Callable[[Any], Any], n: int = 2) -> Problem:
    """A problem in n SX variables from two functions of them."""
    x = ca.SX.sym("x", n)
    return Problem(x=x, f=f(x), h=h(x))


def circle() -> Problem:
    """min x + y on the circle of radius √2: minimizer (−1, −1), λ = ½; maximizer (1, 1), λ = −½."""
    return plane(lambda x: x[0] + x[1], lambda x: ca.sumsqr(x) - 2)


def judge(known: Known, answer: Any = None, kind: Any = ca.SX, **more: Any) -> Report:
    """The report on a known point, or on another answer, by default without IPOPT."""
    arguments = {"ipopt": False} | known.instance | more
    return verify(known.nlp(kind), known.x if answer is None else answer, **arguments)
