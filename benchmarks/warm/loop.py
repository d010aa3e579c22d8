"""The closed loop that says which problems are solved, from which guesses.

One solver steers, IPOPT at a tolerance of 1e-10, and leaves at every instant the measured state and
its last solution, shifted by one interval. All solvers that are measured get exactly these, primal
and dual: none of them profits from where its own last answer happened to lie, and a step that one
of them fails is a step for all others too. The first solve, from a cold guess, is not measured.

An interior-point solution has a small multiplier at every bound, and active-set solvers take each
that is not zero for an active one. So the solution is made sharp: a multiplier that is smaller than
the distance to its bound becomes zero, and where it is larger the unknown is put onto its bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.utils.errors import InputError
from warm.judge import TOLERANCE, Judge
from warm.stages import Program, Vector

NOISE = 0.01
STEERING = {
    "print_time": False,
    "ipopt": {
        "print_level": 0, "sb": "yes", "tol": 1e-10, "bound_relax_factor": 0.0, "max_iter": 3000,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One call: its number, its arguments as a user has them, and the state it was measured at."""

    number: int
    state: Vector
    arguments: dict[str, Any]


class Loop:
    """The closed loops of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._solver = ca.nlpsol("steering", "ipopt", program.nlp, STEERING)
        self._judge = Judge(program)
        names = "lbx", "ubx", "lbg", "ubg"
        self._bounds = {name: ca.DM(getattr(program, name)) for name in names}

    def steps(self, seed: int, count: int) -> list[Step]:
        """The first ``count`` warm steps of the loop with the noise of this seed.

        Raises:
            InputError: where the steering solver finds no KKT point, so that there is no loop.
        """
        program = self._program
        family = program.family
        random = np.random.default_rng([seed, program.N])
        state = np.array(family.start)
        made: list[Step] = []
        guess: dict[str, Vector] = {"x0": program.cold(state)}
        for number in range(count + 1):
            p = np.array([*state, number * family.dt])
            arguments = {key: ca.DM(value) for key, value in guess.items()}
            arguments |= {"p": ca.DM(p), **self._bounds}
            if number:
                made.append(Step(number, state, arguments))
            x, lam_x, lam_g = self._sharp(self._solve(p, arguments, seed, number))
            moved = program.shifted(x, lam_x, lam_g)
            guess = dict(zip(("x0", "lam_x0", "lam_g0"), moved, strict=True))
            state = program.step(state, program.first_input(x)).full().ravel()
            state = state + NOISE * np.array(family.scale) * random.standard_normal(state.size)
        return made

    def _sharp(self, found: dict[str, Vector]) -> tuple[Vector, Vector, Vector]:
        """x, λ_x and λ_g of the solution with zeros for multipliers of what is not active."""
        program = self._program
        x, lam_x = _sharp(found["x"], found["lam_x"], program.lbx, program.ubx)
        return x, lam_x, _sharp(found["g"], found["lam_g"], program.lbg, program.ubg)[1]

    def _solve(
        self, p: Vector, arguments: dict[str, Any], seed: int, number: int
    ) -> dict[str, Vector]:
        """The steering solution, from the guess or else from a cold one."""
        cold = self._program.cold(p[:-1])
        for x0 in (arguments["x0"], ca.DM(cold)):
            found = self._solver(x0=x0, p=arguments["p"], **self._bounds)
            if self._judge(found, arguments["p"])[0] <= TOLERANCE:
                return {key: value.full().ravel() for key, value in found.items()}
        raise InputError(
            f"{self._program.label}, seed {seed}: no KKT point was found for step {number}, so the "
            "loop cannot go on; leave this family, horizon or seed out"
        )


def _sharp(values: Vector, lam: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Active values at the bounds that multipliers point to, and the multipliers of these alone."""
    bound = np.where(lam > 0, high, low)
    on = np.abs(lam) > np.abs(values - bound)  # no bound: infinitely far
    return np.where(on, bound, values), np.where(on, lam, 0.0)
