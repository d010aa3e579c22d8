"""Numbers, methods and options that a solver refuses, each with the argument's name."""

from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casadi_hybrid import METHODS, InputError, Problem, Solver, nlpsol
from casadi_hybrid.control import Model
from casadi_hybrid.paper.rules import FixedMetric, TargetCurvature
from casadi_hybrid.utils.inputs import as_matrix, as_vector

x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
PLAIN = Problem(x=x, f=ca.sumsqr(x), h=ca.vertcat(x - 1, x[0] + x[1] - 2))
WITH_P = Problem(x=x, f=ca.sumsqr(x), h=x - p, p=p)
nan, inf = np.nan, np.inf


def test_vectors_are_copied_or_refused() -> None:
    assert as_vector(2, 3, "x0").tolist() == [2, 2, 2]
    assert as_vector(ca.DM(2), 3, "x0").tolist() == [2, 2, 2]
    assert as_vector(ca.DM(2, 1), 2, "x0").tolist() == [0, 0]  # structural zeros
    array = np.zeros(2)
    as_vector(array, 2, "x0")[:] = 7
    assert not array.any()


@given(st.lists(st.floats(width=32), max_size=4))
def test_any_list_of_numbers(values: list[float]) -> None:
    if len(values) == 2 and np.isfinite(values).all():
        assert as_vector(values, 2, "x0").tolist() == values
    else:
        with pytest.raises(InputError, match=r"^x0"):
            as_vector(values, 2, "x0")


BAD_NUMBERS = [1, 2, 3], [], np.eye(2), [[1], [2, 3]], [1, nan], [inf, 1], -inf, [1j, 0]
BAD_KINDS = "1", ["1", "2"], b"12", x, [x[0], 1], {"a": 1}, {1.0, 2.0}, [object(), object()], len


@pytest.mark.parametrize("argument", ["x0", "p", "lam_g0", "x_prev"])
def test_bad_vectors_are_refused(argument: str) -> None:
    solver = Solver(WITH_P, "gda")
    values: dict[str, Any] = {"x0": [1, 2], "p": [1, 2], "lam_g0": [0, 0], "x_prev": [1, 2]}
    for bad in (*BAD_NUMBERS, *BAD_KINDS):
        with pytest.raises(InputError, match=rf"^{argument}\b"):
            solver.solve(**values | {argument: bad})


def test_parameters_must_match_the_problem() -> None:
    for stray in (5, [5.0], [1, 2]):
        with pytest.raises(InputError, match=r"^p has shape"):
            Solver(PLAIN, "gda").solve([0, 0], p=stray)
    for nothing in (None, [], np.zeros(0), ca.DM(0, 1)):
        Solver(PLAIN, "gda", max_iter=0).solve([0, 0], p=nothing)


def test_bad_matrices_are_refused() -> None:
    assert as_matrix(2, (2, 2), "C").tolist() == [[2, 0], [0, 2]]
    for bad in ([1, 2], np.eye(3), "I", nan, [[1, 2], [3, inf]], [[1j, 0], [0, 1]], x, None):
        with pytest.raises(InputError, match=r"^C"):
            as_matrix(bad, (2, 2), "C")
    with pytest.raises(InputError, match=r"^C"):
        as_matrix(1.0, (2, 3), "C")


def test_misspelt_names_get_suggestions() -> None:
    for method, options, words in (
        ("closed_form", {}, "'closed_form'; did you mean 'closed-fo"),
        ("zzz", {}, "'zzz'; known: .*'?closed-form"),
        ("closed-form", {"kapa_x": 1}, "'kapa_x' .* did you mean 'kappa_x'"),
        ("hybrid", {"tolerance": 1e-5}, "'tolerance' .* did you mean 'tol'"),
        ("hybrid", {"print_level": 0}, r"solve\(log=True\)"),
        ("closed-form", {"theta": 0.5}, "'theta' for 'closed-form'"),
        (Solver(PLAIN, "gda").method.iteration, {"delta": 1}, "'delta'"),
        ("given-theta", {}, "needs theta"),
        ("closed-form", {"delta": 1, "strength": TargetCurvature(1)}, "delta and strength"),
    ):
        with pytest.raises(InputError, match=words):
            Solver(PLAIN, method, **options)
    with pytest.raises(InputError, match="problem must be"):
        Solver("problem", "gda")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_methods_refuse_unknown_options(method: str) -> None:
    needed = {"theta": 0.5} if method == "given-theta" else {}
    assert Solver(PLAIN, method, **needed).method.label
    assert Solver(PLAIN, method, label="mine", **needed).method.label == "mine"
    with pytest.raises(InputError, match="unknown option 'nonsense'"):
        Solver(PLAIN, method, nonsense=1, **needed)


POSITIVE = {
    "closed-form": ("kappa_x", "kappa_p", "kappa_omega", "delta", "M_max"),
    "constant": ("eta_x", "eta_d"),
    "gda": (
        *("eta_x", "eta_d", "tol", "tol_feasibility", "tol_stationarity"),
        *("max_time", "divergence"),
    ),
    "ogda": ("eta",),
    "extragradient": ("eta",),
    "pdhg": ("tau", "sigma"),
    "linearized-al": ("eta",),
}


@pytest.mark.parametrize("method", POSITIVE)
def test_positive_numbers_are_required(method: str) -> None:
    for option in POSITIVE[method]:
        for bad in (0, -1, nan, -inf, "1", b"1", 1j, True, np.True_, object()):
            with pytest.raises(InputError, match=rf"^{option} must be a positive number"):
                Solver(PLAIN, method, **{option: bad})
        for good in (1, 0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2)):
            Solver(PLAIN, method, **{option: good})
    with pytest.raises(InputError, match=r"^eta_x must be a positive number"):
        Solver(PLAIN, "gda", eta_x=None)


WRONG_VALUES: dict[str, dict[str, Any]] = {
    "gda": {"max_iter": (-1, 1.5, True, "10", nan, 3.0), "stopping": ([3],)},
    "given-theta": {"theta": (-0.1, 1.1, nan, "0.5", None)},
    "linearized-al": {"penalty": (-1,), "dual_step": (0, -1, nan, "c")},
    "closed-form": {
        **dict.fromkeys(("margin", "hessian_at", "dual_start", "memory"), ("nonsense", 1, None)),
        "cancellation": ("full",),
        "metric": (np.eye(3),),
        "strength": (1.0,),
        "disturb": (3,),
    },
    "constant": {"C_aug": (np.eye(2),), "C_opt": ("I",), "eta_x": (np.eye(3),), "eta_d": ([1, 2],)},
}


@pytest.mark.parametrize("method", WRONG_VALUES)
def test_wrong_option_values_are_named(method: str) -> None:
    for option, values in WRONG_VALUES[method].items():
        for bad in values:
            with pytest.raises(InputError, match=option):
                Solver(PLAIN, method, **{option: bad}).solve([0, 0])
    Solver(PLAIN, "linearized-al", penalty=0, max_iter=np.int64(3))


def test_metrics_must_be_positive_definite() -> None:
    for bad in (-np.eye(3), np.triu(np.ones((3, 3))), np.eye(2), np.zeros((3, 3))):
        with pytest.raises(InputError, match=r"^R "):
            Solver(PLAIN, "closed-form", metric=FixedMetric(bad)).solve([0, 0])


def test_wrong_kinds_are_named() -> None:
    with pytest.raises(InputError, match="method"):
        Solver(PLAIN, 3)
    for argument, bad in (("callback", 3), ("log", 0.5), ("log", "yes"), ("log", -1)):
        with pytest.raises(InputError, match=argument):
            Solver(PLAIN, "gda", max_iter=1).solve([0, 0], **{argument: bad})


def test_lists_are_not_repeated() -> None:
    """A list of one number is repeated by CasADi's call alone."""
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p)}
    with pytest.raises(InputError, match=r"^p has shape \(1,\)"):
        Solver(Problem.from_nlp(nlp)).solve([0, 0], p=[1])
    assert Solver(Problem.from_nlp(nlp)).solve([0, 0], p=1).x.tolist() == pytest.approx([1, 1])
    for one in (1, [1], (1.0,), np.ones(1)):
        assert nlpsol("s", "hybrid", nlp)(p=one)["x"].full().ravel() == pytest.approx([1, 1])
    with pytest.raises(InputError, match="'z' is a list of 1"):
        Model("m").state("z", 2, lower=[1.0])


def test_warnings_name_lines_outside_the_package() -> None:
    """Those of a module too whose name only begins as the package's does."""
    text = "from casadi_hybrid.utils.errors import warn\nwarn('of mine')\n"
    with pytest.warns(UserWarning, match="of mine") as caught:
        exec(compile(text, "mine.py", "exec"), {"__name__": "casadi_hybrid_mine"})
    assert (caught[0].filename, caught[0].lineno) == ("mine.py", 2)
