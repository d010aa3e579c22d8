"""Overdetermined systems from textbooks and from CUTEst, outside the two large collections."""

from __future__ import annotations

from functools import partial

from problems import systems_classic_formulas as formulas
from problems.systems_base import System, define

DENNIS = "Dennis & Schnabel, Numerical Methods for Unconstrained Optimization, 1983, {}"
CUTEST = "{}; CUTEst problem {}"
GLASSER = "De Villiers & Glasser, SIAM J. Numer. Anal. 18(6), 1981"
OPTIMA = "OPTIMA user manual 8, Hatfield Polytechnic, 1989"


def classic_systems() -> tuple[System, ...]:
    """Return the systems, by source."""
    return (*_dennis_schnabel(), *_mckeown(), *_cutest(), *_fits())


def _dennis_schnabel() -> tuple[System, ...]:
    # Their table of ½‖h‖² and x at the minimum, by the last datum: the residual grows downwards.
    half = {8: 0.0, 3: 1.6390, -1: 6.9765, -4: 16.435, -8: 41.145}
    place = {8: 0.69315, 3: 0.44005, -1: 0.044744, -4: -0.37193, -8: -0.79148}
    exponentials = (
        define(
            f"ds-exponential-{'m' if last < 0 else ''}{abs(last)}",
            3,
            partial(formulas.dennis_exponential, last),
            (1,),
            source=DENNIS.format("pp. 225–231"),
            consistent=last == 8,
            known_norm2=2 * least,
            minimizer=(place[last],),
            starts=((2,),),
            digits=5,
        )
        for last, least in half.items()
    )
    return (
        *exponentials,
        define(
            "cutest-denschna",
            3,
            formulas.denschna,
            (1, 1),
            source=CUTEST.format(DENNIS.format("p. 206"), "DENSCHNA"),
            consistent=True,
            minimizer=(0, 0),
        ),
        define(
            "cutest-denschnb",
            3,
            formulas.denschnb,
            (1, 1),
            source=CUTEST.format(DENNIS.format("p. 201"), "DENSCHNB"),
            consistent=True,
            minimizer=(2, -1),
        ),
    )


def _mckeown() -> tuple[System, ...]:
    # Built so that Cᵀa = 0 and x = 0 is the minimizer; the data have six digits.
    return tuple(
        define(
            f"mckeown-{number}",
            len(data[1]),
            partial(formulas.mckeown, data),
            (0.1,) * len(data[2]),
            source="McKeown, Math. Program. 9, 1975, 57–68",
            consistent=False,
            minimizer=(0,) * len(data[2]),
            note="the minimum is ‖a‖² by construction; no printed sum of squares was found, and "
            "B and d, which do not enter it, stand on one transcription (the TEST_NLS collection)",
        )
        for number, data in formulas.MCKEOWN.items()
    )


def _cutest() -> tuple[System, ...]:
    return (
        define(
            "cutest-engval2",
            5,
            formulas.engval2,
            (1, 2, 0),
            source=CUTEST.format("Buckley, TR 1989CS-3, problem 15", "ENGVAL2"),
            consistent=True,
            minimizer=(0, 0, 1),
        ),
        define(
            "cutest-himmelbf",
            7,
            formulas.himmelblau,
            (2.7, 90, 1500, 10),
            source=CUTEST.format("Himmelblau, Applied Nonlinear Programming, 1972", "HIMMELBF"),
            consistent=False,
            known_norm2=318.572,
            note="residuals in percent, so that the sum of squares is the one CUTEst prints",
        ),
        define(
            "cutest-growth",
            12,
            formulas.growth,
            (100, 0, 0),
            source=CUTEST.format("Gould 1991", "GROWTHLS"),
            consistent=False,
            note="CUTEst's file prints 0 as the least value; 1.00404 was computed here",
        ),
        define(
            "cutest-hatfldd",
            10,
            partial(formulas.hatfield, formulas.HATFLDD),
            (1, -1, 0),
            source=CUTEST.format(OPTIMA, "HATFLDD"),
            consistent=False,
            known_norm2=6.615114e-8,
            minimizer=(3.19948, -1.01783, -0.75843),
            digits=7,
            note="the minimizer was computed here; a local minimum, 2.54689e-7, attracts x0",
        ),
        define(
            "cutest-hatflde",
            21,
            partial(formulas.hatfield, formulas.HATFLDE),
            (1, -1, 0),
            source=CUTEST.format(OPTIMA, "HATFLDE"),
            consistent=False,
            known_norm2=5.120377e-7,
            minimizer=(3.19754, -1.01129, -0.74343),
            digits=7,
            note="the minimizer was computed here; another local minimum has 2.72874e-6",
        ),
    )


def _fits() -> tuple[System, ...]:
    return (
        define(
            "cutest-devgla1",
            24,
            formulas.glasser1,
            (2, 2, 2, 2),
            source=CUTEST.format(GLASSER, "DEVGLA1"),
            consistent=True,
            minimizer=(60.137, 1.371, 3.112, 1.761),
            starts=((1, 8, 4, 4.412),),
            note="defined for x₂ > 0; the second start is that of the TEST_NLS collection",
        ),
        define(
            "cutest-devgla2",
            16,
            formulas.glasser2,
            (20, 2, 2, 2, 0.2),
            source=CUTEST.format(GLASSER, "DEVGLA2"),
            consistent=True,
            minimizer=(53.81, 1.27, 3.012, 2.13, 0.507),
            starts=((45, 2, 2.5, 1.5, 0.9),),
            note="defined for x₂ > 0; the second start is that of the TEST_NLS collection",
        ),
        define(
            "madsen",
            3,
            formulas.madsen,
            (3, 1),
            source="Madsen 1973; Schittkowski, More Test Examples, 1987, problem 308",
            consistent=False,
            known_norm2=0.773199,
            starts=((3, 0.1),),
            minimizer=(-0.155489, 0.694560),
            note="the second start is Schittkowski's",
        ),
        define(
            "ggs-circle",
            6,
            formulas.circle,
            (5.3794, 7.2532, 3.0370),
            source="Gander, Golub & Strebel, BIT 34, 1994, 558–578, circle fit",
            consistent=False,
            minimizer=(4.7398, 2.9835, 4.7142),
            note="x0 is the algebraic fit of the paper; it prints no sum of squares",
        ),
    )
