"""The problems of Moré, Garbow & Hillstrom with more equations than unknowns.

Starts and minima: J. J. Moré, B. S. Garbow, K. E. Hillstrom, "Testing Unconstrained Optimization
Software", ACM Trans. Math. Softw. 7(1), 1981, 17–41; the numbers in the names are theirs. Norms at
the starts and several minimizers: the test results of MINPACK (the same authors, "User Guide for
MINPACK-1", ANL-80-74, Argonne National Laboratory, 1980; netlib minpack/ex). Three data fits
(MGH09, MGH10, MGH17) are in the NIST Statistical Reference Datasets; they carry the 11 certified
digits and both starts given there.
"""

from __future__ import annotations

from functools import partial

from problems import systems_mgh_formulas as mgh
from problems.systems_base import System, define

SOURCE = "Moré, Garbow & Hillstrom, ACM TOMS 7(1), 1981, problem {}"
TRIO = (10, 100)


def mgh_systems() -> tuple[System, ...]:
    """Return the collection, in the order of the paper."""
    return (*_fixed_size(), *_scalable())


def _fixed_size() -> tuple[System, ...]:
    return (
        define(
            "mgh04-brown-badly-scaled",
            3,
            mgh.brown_badly_scaled,
            (1, 1),
            source=SOURCE.format(4),
            consistent=True,
            scales=TRIO,
            minimizer=(1e6, 2e-6),
        ),
        define(
            "mgh05-beale",
            3,
            mgh.beale,
            (1, 1),
            source=SOURCE.format(5),
            consistent=True,
            scales=TRIO,
            minimizer=(3, 0.5),
            note="‖h‖₂² → 0.452009 for x₁ → −∞, x₂ → 1 (computed): where the larger starts lead",
        ),
        define(
            "mgh06-jennrich-sampson",
            10,
            mgh.jennrich_sampson,
            (0.3, 0.4),
            source=SOURCE.format(6),
            consistent=False,
            known_norm2=124.362,
            start_norms=(64.5856498144943,),
            minimizer=(0.257819926636811, 0.257829976764542),
            note="only this start: multiples of it overflow, and MINPACK leaves them out",
        ),
        define(
            "mgh08-bard",
            15,
            mgh.bard,
            (1, 1, 1),
            source=SOURCE.format(8),
            consistent=False,
            known_norm2=8.21487e-3,
            scales=TRIO,
            start_norms=(6.45613629515967, 36.1418531596785, 384.114678637399),
            minimizer=(0.0824105765758334, 1.1330366534715, 2.34369463894115),
            note="17.4286 at x₁ = 0.8406 with x₂, x₃ → −∞: where the larger starts lead",
        ),
        define(
            "mgh09-gaussian",
            15,
            mgh.gaussian,
            (0.4, 1, 0),
            source=SOURCE.format(9),
            consistent=False,
            known_norm2=1.12793e-8,
            scales=TRIO,
        ),
        define(
            "mgh10-meyer",
            16,
            mgh.meyer,
            (0.02, 4000, 250),
            source=SOURCE.format(10) + "; NIST StRD MGH10",
            consistent=False,
            known_norm2=8.7945855171e1,
            starts=((0.2, 40000, 2500), (2, 400000, 25000)),
            start_norms=(41153.4665543031, 4168216.89130846),
            minimizer=(5.6096364710e-3, 6.1813463463e3, 3.4522363462e2),
            digits=11,
            note="the third start is NIST's first, ten times MINPACK's second",
        ),
        define(
            "mgh11-gulf",
            99,
            mgh.gulf,
            (5, 2.5, 0.15),
            source=SOURCE.format(11),
            consistent=True,
            scales=TRIO,
            minimizer=(50, 25, 1.5),
            note="the paper prints yᵢ·m·i·x₂ inside the modulus; the authors' Algorithm 566 has "
            "x₂ − yᵢ, and with that the stated root is one. Ten times the start is this root. "
            "m = 99: for i = 100 the derivative in x₃ is not defined there",
        ),
        define(
            "mgh12-box",
            10,
            mgh.box,
            (0, 10, 20),
            source=SOURCE.format(12),
            consistent=True,
            scales=TRIO,
            start_norms=(32.1115837449572,),
            minimizer=(1, 10, 1),
            note="further roots: (10, 1, −1) and the line x₁ = x₂, x₃ = 0",
        ),
        define(
            "mgh14-wood",
            6,
            mgh.wood,
            (-3, -1, -3, -1),
            source=SOURCE.format(14),
            consistent=True,
            scales=TRIO,
            minimizer=(1, 1, 1, 1),
        ),
        define(
            "mgh15-kowalik-osborne",
            11,
            mgh.kowalik_osborne,
            (0.25, 0.39, 0.415, 0.39),
            source=SOURCE.format(15) + "; NIST StRD MGH09",
            consistent=False,
            known_norm2=3.0750560385e-4,
            scales=TRIO,
            start_norms=(0.0728915102882945, 2.97937007555202, 29.9590617016037),
            minimizer=(1.9280693458e-1, 1.9128232873e-1, 1.2305650693e-1, 1.3606233068e-1),
            digits=11,
            note="1.02734e-3 at (+∞, −14.07, −∞, −∞), where 10 x0 leads MINPACK",
        ),
        define(
            "mgh16-brown-dennis",
            20,
            mgh.brown_dennis,
            (25, 5, -5, -1),
            source=SOURCE.format(16),
            consistent=False,
            known_norm2=85822.2,
            scales=TRIO,
            start_norms=(2815.43839161816, 555073.354173069, 61211252.2338581),
            note="x₄ = +1 in some reprints of the start; only −1 gives MINPACK's norms",
        ),
        define(
            "mgh17-osborne1",
            33,
            mgh.osborne1,
            (0.5, 1.5, -1, 0.01, 0.02),
            source=SOURCE.format(17) + "; NIST StRD MGH17",
            consistent=False,
            known_norm2=5.4648946975e-5,
            starts=((50, 150, -100, 1, 2),),
            start_norms=(0.937564021037838,),
            minimizer=(
                3.7541005211e-1,
                1.9358469127,
                -1.4646871366,
                1.2867534640e-2,
                2.2122699662e-2,
            ),
            digits=11,
        ),
        define(
            "mgh18-biggs-exp6",
            13,
            mgh.biggs_exp6,
            (1, 2, 1, 1, 1, 1),
            source=SOURCE.format(18),
            consistent=True,
            scales=TRIO,
            minimizer=(1, 10, 1, 5, 4, 3),
            note="the paper lists only the local minimum 5.65565e-3, where most methods end from "
            "x0; the data are exact at the minimizer given here",
        ),
        define(
            "mgh19-osborne2",
            65,
            mgh.osborne2,
            (1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5),
            source=SOURCE.format(19),
            consistent=False,
            known_norm2=4.01377e-2,
            scales=TRIO,
            start_norms=(1.44686540984712,),
        ),
    )


def _scalable() -> tuple[System, ...]:
    watson = (
        (6, 2.28767e-3, (5.47722557505166, 6433.12578950026, 674256.040605213)),
        (9, 1.39976e-6, (5.47722557505166, 12088.127069307, 1269109.29043834)),
        (12, 4.72238e-10, (5.47722557505166, 19220.7589790951, 2018918.04462367)),
    )
    rows = (
        *(("watson", 20, n, 31, mgh.watson, (0,) * n, least, norms) for n, least, norms in watson),
        ("penalty1", 23, 4, 5, mgh.penalty1, range(1, 5), 2.24997e-5, ()),
        ("penalty1", 23, 10, 11, mgh.penalty1, range(1, 11), 7.08765e-5, ()),
        ("penalty2", 24, 4, 8, mgh.penalty2, (0.5,) * 4, 9.37629e-6, ()),
        ("penalty2", 24, 10, 20, mgh.penalty2, (0.5,) * 10, 2.93660e-4, ()),
    )
    m = 10
    return (
        *(
            define(
                f"mgh{number}-{name}-{n}",
                equations,
                residuals,
                x0,
                source=SOURCE.format(number),
                consistent=False,
                known_norm2=least,
                scales=TRIO,
                start_norms=norms,
            )
            for name, number, n, equations, residuals, x0, least, norms in rows
        ),
        define(
            "mgh25-variably-dimensioned-10",
            12,
            mgh.variably_dimensioned,
            [1 - j / 10 for j in range(1, 11)],
            source=SOURCE.format(25),
            consistent=True,
            scales=TRIO,
            minimizer=(1,) * 10,
        ),
        define(
            "mgh32-linear-full-rank",
            m,
            partial(mgh.linear_full_rank, m),
            (1,) * 5,
            source=SOURCE.format(32),
            consistent=False,
            known_norm2=m - 5,
            start_norms=(5.0,),
            minimizer=(-1,) * 5,
            digits=15,
        ),
        define(
            "mgh33-linear-rank-one",
            m,
            partial(mgh.linear_rank_one, m),
            (1,) * 5,
            source=SOURCE.format(33),
            consistent=False,
            known_norm2=m * (m - 1) / (2 * (2 * m + 1)),
            start_norms=(291.521868819476,),
            digits=15,
            note="every point of a hyperplane is a minimizer",
        ),
        define(
            "mgh34-linear-rank-one-zeros",
            m,
            partial(mgh.linear_rank_one_zeros, m),
            (1,) * 5,
            source=SOURCE.format(34),
            consistent=False,
            known_norm2=(m * m + 3 * m - 6) / (2 * (2 * m - 3)),
            digits=15,
            note="two zero columns and two zero rows in the Jacobian",
        ),
        define(
            "mgh35-chebyquad-1",
            8,
            partial(mgh.chebyquad, 8),
            (0.5,),
            source="Fletcher, Comput. J. 8, 1965; n = 1, m = 8 of the MINPACK tests",
            consistent=False,
            known_norm2=1.88424820499347**2,
            scales=TRIO,
            start_norms=(1.88623796907732, 5383344372.34005, 0.118088726698392e19),
            minimizer=(0.9817314852934,),
            digits=10,
            note="x0 is a stationary point with ‖h‖₂² = 3.55789 that is not the minimum",
        ),
    )
