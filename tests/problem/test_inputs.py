"""Numbers, methods and options that a solver refuses, each with the argument's name."""

from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casadi_hybrid import METHODS, InputError, Problem, Solver, nlpsol
from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.paper.rules import FixedMetric, TargetCurvature
from casadi_hybrid.utils.inputs import as_matrix, as_vector

x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
PLAIN = Problem(x=x, f=ca.sumsqr(x), h=ca.vertcat(x - 1, x[0] + x[1] - 2))
WITH_P = Problem(x=x, f=ca.sumsqr(x), h=x - p, p=p)
nan, inf = np.nan, np.inf


def test_one_number_is_repeated_and_input_is_copied() -> None:
    assert as_vector(2, 3, "x0").tolist() == [2, 2, 2]
    assert as_vector(ca.DM(2), 3, "x0").tolist() == [2, 2, 2]
    given_array = np.zeros(2)
    as_vector(given_array, 2, "x0")[:] = 7
    assert not given_array.any()
    assert as_vector(ca.DM(2, 1), 2, "x0").tolist() == [0, 0]  # structural zeros


BAD_VECTORS: dict[str, Any] = {
    "long": [1, 2, 3],
    "empty": [],
    "matrix": np.eye(2),
    "ragged": [[1], [2, 3]],
    "nan": [1, nan],
    "inf": [inf, 1],
    "-inf": -inf,
    "text": "1",
    "texts": ["1", "2"],
    "bytes": b"12",
    "complex": [1j, 0],
    "complex with no imaginary part": np.array([1 + 0j, 2]),
    "None": None,
    "symbol": x,
    "symbol in a list": [x[0], 1],
    "mapping": {"a": 1},
    "set": {1.0, 2.0},
    "objects": [object(), object()],
    "function": len,
}


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        (argument, what)
        for argument in ("x0", "p", "lam_g0", "x_prev")
        for what in BAD_VECTORS
        if what != "None"  # that is how each of them is left out
    ],
)
def test_bad_vectors_are_refused_by_name(argument: str, what: str) -> None:
    values: dict[str, Any] = {"x0": [1, 2], "p": [1, 2], "lam_g0": [0, 0], "x_prev": [1, 2]}
    values[argument] = BAD_VECTORS[what]
    with pytest.raises(InputError, match=rf"^{argument}\b"):
        Solver(WITH_P, "gda").solve(**values)


@given(st.lists(st.floats(width=32), max_size=4))
def test_any_list_of_numbers_is_taken_or_refused(values: list[float]) -> None:
    fits = len(values) == 2 and np.isfinite(values).all()
    if fits:
        assert as_vector(values, 2, "x0").tolist() == values
    else:
        with pytest.raises(InputError, match=r"^x0"):
            as_vector(values, 2, "x0")


def test_parameters_are_asked_for_and_only_where_there_are_some() -> None:
    with pytest.raises(InputError, match="p is missing; the problem has 2"):
        Solver(WITH_P, "gda").solve([0, 0])
    for stray in (5, [5.0], [1, 2]):
        with pytest.raises(InputError, match=r"^p has shape"):
            Solver(PLAIN, "gda").solve([0, 0], p=stray)
    for nothing in (None, [], np.zeros(0), ca.DM(0, 1)):
        Solver(PLAIN, "gda", max_iter=0).solve([0, 0], p=nothing)


def test_matrices() -> None:
    assert as_matrix(2, (2, 2), "C").tolist() == [[2, 0], [0, 2]]
    for bad in ([1, 2], np.eye(3), "I", nan, [[1, 2], [3, inf]], [[1j, 0], [0, 1]], x, None):
        with pytest.raises(InputError, match=r"^C"):
            as_matrix(bad, (2, 2), "C")
    with pytest.raises(InputError, match=r"^C"):
        as_matrix(1.0, (2, 3), "C")


def test_unknown_methods_and_options_come_with_a_suggestion() -> None:
    iteration = Solver(PLAIN, "gda").method.iteration
    for method, options, said in (
        ("closed_form", {}, "unknown method 'closed_form'; did you mean 'closed-fo"),
        ("zzz", {}, "unknown method 'zzz'; known: .*'?closed-form"),
        ("closed-form", {"kapa_x": 1}, "unknown option 'kapa_x' .* did you mean 'kappa_x'"),
        ("hybrid", {"tolerance": 1e-5}, "unknown option 'tolerance' .* did you mean 'tol'"),
        ("hybrid", {"print_level": 0}, r"nothing is printed but by solve\(log=True\)"),
        ("gda", {"mu_init": 0.1}, "unknown option 'mu_init' for 'gda'"),
        ("closed-form", {"theta": 0.5}, "unknown option 'theta' for 'closed-form'"),
        (iteration, {"delta": 1}, "option 'delta' goes with a method's name"),
        ("given-theta", {}, "needs theta"),
        ("closed-form", {"delta": 1, "strength": TargetCurvature(1)}, "delta and strength"),
    ):
        with pytest.raises(InputError, match=said):
            Solver(PLAIN, method, **options)
    with pytest.raises(InputError, match="problem must be a Problem, got str"):
        Solver("problem", "gda")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_takes_its_options_and_no_other(method: str) -> None:
    needed = {"theta": 0.5} if method == "given-theta" else {}
    assert Solver(PLAIN, method, **needed).method.label
    assert Solver(PLAIN, method, label="mine", **needed).method.label == "mine"
    with pytest.raises(InputError, match="unknown option 'nonsense'"):
        Solver(PLAIN, method, nonsense=1, **needed)


POSITIVE = {
    "closed-form": ["kappa_x", "kappa_p", "kappa_omega", "delta", "M_max"],
    "constant": ["eta_x", "eta_d"],
    "gda": ["eta_x", "eta_d"],
    "ogda": ["eta"],
    "extragradient": ["eta"],
    "pdhg": ["tau", "sigma"],
    "linearized-al": ["eta"],
}
SOLVER_NUMBERS = ["tol", "tol_feasibility", "tol_stationarity", "max_time", "divergence"]


@pytest.mark.parametrize(
    ("method", "option"),
    [(method, option) for method, options in POSITIVE.items() for option in options]
    + [("gda", option) for option in SOLVER_NUMBERS],
)
def test_positive_numbers(method: str, option: str) -> None:
    for bad in (0, -1, nan, -inf, "1", b"1", 1j, None, True, object()):
        if bad is None and option in SOLVER_NUMBERS:
            continue  # left out
        with pytest.raises(InputError, match=rf"^{option} must be a positive number, got"):
            Solver(PLAIN, method, **{option: bad})
    for good in (1, 0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2)):
        Solver(PLAIN, method, **{option: good})


def test_numbers_with_other_ranges() -> None:
    for bad in (-1, 1.5, True, "10", nan, 3.0):
        with pytest.raises(InputError, match=r"^max_iter must be a whole number"):
            Solver(PLAIN, "gda", max_iter=bad)
    for bad in (-0.1, 1.1, nan, "0.5", None):
        with pytest.raises(InputError, match=r"^theta"):
            Solver(PLAIN, "given-theta", theta=bad)
    with pytest.raises(InputError, match=r"^penalty must be zero or a positive number"):
        Solver(PLAIN, "linearized-al", penalty=-1)
    for bad in (0, -1, nan, "c"):
        with pytest.raises(InputError, match=r"^dual_step must be a positive number"):
            Solver(PLAIN, "linearized-al", dual_step=bad)
    Solver(PLAIN, "linearized-al", penalty=0, max_iter=np.int64(3))


def test_words() -> None:
    for option in ("margin", "hessian_at", "dual_start", "memory"):
        for bad in ("nonsense", 1, None):
            with pytest.raises(InputError, match=rf"^{option} must be one of '"):
                Solver(PLAIN, "closed-form", **{option: bad})


def test_matrix_options_are_checked_against_the_problem() -> None:
    wrong = {"C_aug": np.eye(2), "C_opt": "I", "eta_x": np.eye(3), "eta_d": [1, 2]}
    for option, bad in wrong.items():
        with pytest.raises(InputError, match=f"^{option}"):
            Solver(PLAIN, "constant", **{option: bad}).solve([0, 0])
    for bad_metric in (-np.eye(3), np.triu(np.ones((3, 3))), np.eye(2), np.zeros((3, 3))):
        with pytest.raises(InputError, match=r"^R "):
            Solver(PLAIN, "closed-form", metric=FixedMetric(bad_metric)).solve([0, 0])


WRONG_KIND = {
    "method None": lambda: Solver(PLAIN, None),
    "method 3": lambda: Solver(PLAIN, 3),
    "cancellation": lambda: Solver(PLAIN, "closed-form", cancellation="full").solve([0, 0]),
    "metric": lambda: Solver(PLAIN, "closed-form", metric=np.eye(3)).solve([0, 0]),
    "strength": lambda: Solver(PLAIN, "closed-form", strength=1.0).solve([0, 0]),
    "disturb": lambda: Solver(PLAIN, "closed-form", disturb=3).solve([0, 0]),
    "stopping": lambda: Solver(PLAIN, "gda", stopping=[3]).solve([0, 0]),
    "callback": lambda: Solver(PLAIN, "gda").solve([0, 0], callback=3),
    "log half": lambda: Solver(PLAIN, "gda").solve([0, 0], log=0.5),
    "log text": lambda: Solver(PLAIN, "gda").solve([0, 0], log="yes"),
    "log negative": lambda: Solver(PLAIN, "gda", max_iter=1).solve([0, 0], log=-1),
}


@pytest.mark.parametrize("what", WRONG_KIND)
def test_objects_of_the_wrong_kind_are_refused_by_name(what: str) -> None:
    with pytest.raises(InputError, match=what.split(maxsplit=1)[0]):
        WRONG_KIND[what]()


def test_one_number_in_a_list_is_not_repeated() -> None:
    """Where CasADi is called, it is, as there."""
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p)}
    with pytest.raises(InputError, match=r"^p has shape \(1,\) but 2 number"):
        Solver(Problem.from_nlp(nlp)).solve([0, 0], p=[1])
    assert Solver(Problem.from_nlp(nlp)).solve([0, 0], p=1).x.tolist() == pytest.approx([1, 1])
    for one in (1, [1], (1.0,), np.ones(1)):
        assert nlpsol("s", "hybrid", nlp)(p=one)["x"].full().ravel() == pytest.approx([1, 1])
    model = Model("m")
    model.rates(y=model.state("y") + ca.sum1(model.parameter("both", [1.0, 2.0])))
    ocp = OptimalControl(model, duration=1.0, intervals=2)
    with pytest.raises(InputError, match="'both' is a list of 1 number; give 2"):
        ocp.solve(both=[1.0])
    with pytest.raises(InputError, match="'z' is a list of 1 number"):
        model.state("z", 2, lower=[1.0])


def test_names_are_texts_and_no_two_alike() -> None:
    with pytest.raises(InputError, match="h has a block by the name 1; a name must be a text"):
        Problem(x=x, h={1: x[0], "1": x[1]})
    with pytest.raises(InputError, match="x has a block by the name 0"):
        Problem(x={0: x})
    with pytest.raises(InputError, match="variable_names has 'a' twice"):
        Problem(x=x, variable_names=["a", "a"])
