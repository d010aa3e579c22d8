"""Problems for the tests of the verifier, each with what is known of its solution by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
from nlp_problems import read, value_of

from casadi_hybrid import Problem
from casadi_hybrid.paper import make_instance
from casadi_hybrid.verify import Curvature


@dataclass(frozen=True)
class Case:
    """A problem with a start, its minimizer where it is known, and the expected verdict there.

    ``close`` is how well a point with tiny residuals is determined.
    """

    problem: Problem
    x0: Sequence[float]
    verdict: Curvature
    solution: Sequence[float] | None = None
    p: Sequence[float] = ()
    close: float = 1e-6

    def __str__(self) -> str:
        return self.problem.name


def of_entry(name: str, n: int, f: str, h: Any, verdict: str, **known: Any) -> Case:
    """A line of ``data/equations.json``."""
    kind = getattr(ca, known.pop("kind", "SX"))
    x = ca.vertcat(*(kind.sym("x", size) for size in known.pop("parts", [n])))
    p = kind.sym("p", len(known.get("p", ())))
    known.pop("note", None)
    named = h if isinstance(h, dict) else dict(enumerate(h))
    rows = {key: value_of(row, x=x, p=p) for key, row in named.items()}
    problem = Problem(
        x=x, f=value_of(f, x=x, p=p), h=rows if named is h else ca.vertcat(*rows.values()),
        name=name, **({"p": p} if p.numel() else {}),
    )  # fmt: skip
    if "solution" in known:
        known["solution"] = value_of(known["solution"])
    return Case(problem, verdict=Curvature[verdict], **known)


def of_paper(verdict: Curvature, *arguments: int, **sizes: Any) -> Case:
    made = make_instance(*arguments, **sizes)
    return Case(made.problem, list(made.x0), verdict, list(made.x_star))


def cases() -> list[Case]:
    """More, as many and fewer equations than variables, and equations that depend on each other."""
    return [
        *(of_entry(**entry) for entry in read("equations")),
        of_paper(Curvature.STRICT_MINIMIZER, 3, 0, n=5, m=3, radius=0.1),
        of_paper(Curvature.ISOLATED_POINT, 5, 2, n=3, m=3, radius=0.1),
        *(of_paper(Curvature.ISOLATED_POINT, condition, 0) for condition in (1, 8, 13)),
    ]
