"""What ``nlpsol`` takes as CasADi does, of problems and of numbers, and what it refuses by name."""

from pathlib import Path
from subprocess import run
from typing import Any

import casadi as ca
import numpy as np
import pytest
from casadi.tools import entry, struct_MX, struct_SX, struct_symMX, struct_symSX
from support.cases.nlp import OUTPUTS, PEER
from support.cases.watched import Distance
from support.judges.kkt import numbers
from support.paths import DATA

from casadi_hybrid import InputError, Problem, Solver, nlpsol, verify
from casadi_hybrid.solver.record.record import IterationRecord

X, P = ca.SX.sym("x", 2), ca.SX.sym("p")
GOOD = {"x": X, "f": ca.sumsqr(X), "g": ca.sum1(X)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"x0": [1, 2, 3]}, "x0 has shape"),
        ({"x0": [1, np.nan]}, r"x0\[1\] is nan"),
        ({"x0": "12"}, "x0 must be real numbers"),
        ({"lbx": [0, np.nan]}, r"lbx\[1\] is nan"),
        ({"lbx": [0, 2], "ubx": [1, 1]}, r"lbx\[1\] = 2 exceeds ubx\[1\] = 1.*x\[1\]"),
        ({"lbx": [-np.inf, np.inf]}, r"lbx\[1\] is inf"),
        ({"ubg": -np.inf}, r"ubg\[0\] is -inf.*no value of g "),
        ({"lbg": 1, "ubg": 0}, r"lbg\[0\] = 1 exceeds ubg\[0\] = 0"),
        ({"lbg": 1 + 1e-13, "ubg": 1}, r"lbg\[0\] = 1\.0000000000001 exceeds ubg\[0\] = 1\.0\."),
        ({"lbg": [0, 0]}, "lbg has shape"),
        ({"lbx": []}, "lbx has shape"),
        ({"lbx": "0"}, "lbx must be real numbers"),
        ({"lam_g0": [np.nan]}, "lam_g0"),
        ({"lam_x0": [1, 2, 3]}, "lam_x0 has shape"),
        ({"p": [1, 2]}, "p has shape"),
        ({"lbX": 0}, "unknown argument 'lbX'; did you mean 'lbx'"),
        ({"lam_g": 0}, "unknown argument 'lam_g'; did you mean 'lam_g0'"),
        ({"lbg": [[1], [2, 3]]}, "lbg must be real numbers"),
        ({"x0": np.nan}, r"x0(\[0\])? is nan"),
        ({"ubg": np.nan}, r"ubg(\[0\])? is nan"),
        ({"lbx": np.inf}, r"lbx\[0\] is inf"),
        ({"x0": np.zeros((2, 2, 1))}, "x0"),
        ({"x0": np.zeros(2, dtype=complex)}, "x0 must be real"),
        ({"warm_start": 3}, "warm_start must be the result of a solve"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(call: dict[str, Any], message: str):
    called: list[IterationRecord] = []
    solver = nlpsol("s", "hybrid", GOOD, {"iteration_callback": called.append})
    with pytest.raises(InputError, match=message):
        solver(**call)
    assert not called
    with pytest.raises(RuntimeError, match=r"No stats available.*has not been called"):
        solver.stats()
    for _ in range(3):  # the next calls take a shorter way, and are refused alike
        solver()
    called.clear()
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            solver(**call)
    assert not called


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_iters": 5}, "unknown option 'max_iters'; did you mean 'max_iter'"),
        ({"snopt.tol": 1e-5}, "belongs to snopt, another solver; use ca.nlpsol"),
        ({"ipopt.tol": 0}, "tol must be a positive number"),
        ({"ipopt.print_level": "5"}, r"ipopt\.print_level must be a whole number"),
        ({"error_on_fial": True}, "did you mean 'error_on_fail'"),
        ({"tolerance": 1e-5}, "unknown option 'tolerance'; did you mean 'tol'"),
        ({"print_level": 0}, r"did you mean 'log' or 'ipopt\.print_level'"),
        ({"linear_solver": "ma27"}, r"did you mean 'ipopt\.linear_solver'"),
        ({"ipopt.max_itr": 3}, "IPOPT has none of that name; did you mean 'max_iter'"),
        ({"hybrid": {"tolerence": 1e-5}}, "IPOPT has none of that name; did you mean 'tol'"),
        ({"discrete": [False, True]}, "'discrete' = .* is not supported: only real variables"),
        ({"bound_consistency": True}, "clip it yourself"),
        ({"verbose": "no"}, "verbose must be True or False, got 'no'"),
        ({"jit_options": "-O3"}, "jit_options must be a dictionary"),
        ({"compiler": 3}, "compiler must be a text"),
        ({"ipopt": "quiet"}, "ipopt must be a dictionary, got str"),
        ({"ipopt.linear_solver": ["mumps"]}, "ipopt.linear_solver must be a number or a text"),
        ({"tol": 1e-7, "ipopt.tol": 1e-3}, "tol is given twice, 1e-07 and 0.001 among IPOPT's"),
        ({"ipopt": {"max_iter": 5}, "ipopt.max_iter": 6}, "ipopt.max_iter is given twice, 5 and 6"),
        ({"hybrid": {"tol": 1e-7}, "tol": 1e-8}, "tol is given twice"),
        ({"ipopt.max_cpu_time": "1"}, "ipopt.max_cpu_time must be a positive number"),
        ({"ipopt.mu_target": 1e-3}, "no KKT point"),
        ({"ipopt.obj_scaling_factor": -1}, "minimize -f instead"),
        ({"constr_viol_tol": -1}, "constr_viol_tol must be a positive number"),
        ({"hess_lag": ca.Function("h", [X], [X])}, "hess_lag must take 4 arguments"),
        ({"residual_tol": np.nan}, "residual_tol must be"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"max_time": -1}, "max_time must be"),
        ({"divergence": 0}, "divergence must be"),
        ({"error_on_fail": 2}, "error_on_fail must be True or False"),
        ({"print_time": "no"}, "print_time must be True or False"),
        ({"iteration_callback_step": 0}, "iteration_callback_step must be a whole number"),
        ({"log": "yes"}, "log must be a whole number"),
        ({"iteration_callback": 3}, "iteration_callback must be a Python function"),
        ({"iteration_callback": ca.Function("f", [X], [X])}, "'f' has 1 inputs and 1 outputs"),
        ({"constraint_names": ["a", "b"]}, r"constraint_names has 2 name\(s\)"),
        ({"variable_names": "ab"}, "variable_names"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", GOOD, change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("s", "ipopt", GOOD), "use ca.nlpsol"),
        (("", "hybrid", GOOD), "name must be"),
        (("s", "hybrid", [X]), "nlp must be a dictionary"),
        (("s", "hybrid", GOOD, ["tol"]), "options must be a dictionary"),
        (("s", "hybrid", {"f": X[0]}), "has no 'x'"),
        (("s", "hybrid", {**GOOD, "h": X}), "unknown entry 'h'"),
        (("s", "hybrid", {**GOOD, "x": 2 * X}), "must be made of symbols"),
        (("s", "hybrid", {**GOOD, "f": X}), "must be a scalar"),
        (("s", "hybrid", {**GOOD, "f": ca.SX.sym("t")}), "f depends on t"),
        (("s", "hybrid", {**GOOD, "p": X}), "share a symbol"),
        (("s", "hybrid", {**GOOD, "p": ca.MX.sym("p")}), "use one kind"),
        (("s", "hybrid", {**GOOD, "g": X @ X.T}), r"a dense vector is needed, such as ca.vec\(g\)"),
        (("s", "hybrid", {**GOOD, "x": ca.SX.sym("x", 2, 2)}), "give it its shape by ca.reshape"),
        (("s", "hybrid", {"x": ca.SX.sym("x", 1, 2), "f": X[0]}), "f depends on"),
        (("s", "hybrid", {"x": [X[0], X[1]]}), r"join them with ca.vertcat"),
        (("s", "hybrid", {**GOOD, "g": None}), "g must be a SX expression"),
        (("s", "hybrid", {**GOOD, "g": {"a": X}}), "g must be a SX expression"),
        (("s", "hybrid", {**GOOD, "p": "p"}), "p must be a CasADi"),
        (("s", "hybrid", {**GOOD, "x": np.zeros(2)}), "must be a CasADi SX or MX symbol"),
    ],
)
def test_bad_problems_are_refused(arguments: tuple[Any, ...], message: str):
    with pytest.raises(InputError, match=message):
        nlpsol(*arguments)


def test_scalars_and_empty_vectors_as_in_casadi():
    x = ca.SX.sym("x", 3)
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1)})
    for call in ({}, {"lbg": 0, "ubg": 0, "p": 0}, {"lbg": [], "p": ca.DM(0, 1)}, {"x0": ca.DM(3)}):
        np.testing.assert_allclose(numbers(solver(**call)["x"]), 1.0, atol=1e-8)
    mixed = {"ubx": ca.DM([0, ca.inf, 5])}
    np.testing.assert_allclose(numbers(solver(**mixed)["x"]), [0, 1, 1], atol=1e-6)
    np.testing.assert_allclose(numbers(solver(x0=[5, 6, 7], ubx=0)["x"]), 0.0, atol=1e-6)


F, G = ca.sumsqr(X - P) + X[0] ** 4, X[0] * X[1] - P
NLP = {"x": X, "p": P, "f": F, "g": G}
CALL = {"x0": [1, 2], "p": 2, "lbg": 0}


def agree(nlp: Any, call: dict[str, Any]) -> None:
    """Both solvers take it, with the same answer in the same shapes."""
    theirs = ca.nlpsol("s", "ipopt", nlp, PEER)(**call)
    ours = nlpsol("s", "hybrid", nlp, PEER)(**call)
    for key in OUTPUTS:
        if theirs[key].numel():
            assert ours[key].shape == theirs[key].shape
            np.testing.assert_allclose(numbers(ours[key]), numbers(theirs[key]), atol=1e-5)


def function(kind: Any) -> ca.Function:
    graph = ca.Function("nlp", [X, P], [F, G], ["x", "p"], ["f", "g"])
    return graph if kind is ca.SX else graph.wrap()


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_a_function_is_a_problem(kind: Any):
    agree(function(kind), CALL)


NL_FILE = (DATA / "sum_of_squares.nl").read_text("utf-8")


def nl_file(folder: Path, integers: int = 0) -> Path:
    """min x² + y² s.t. x + y ≥ 3, y ≥ 2, started at (1, 1), in AMPL's words."""
    file = folder / "problem.nl"
    file.write_text(NL_FILE.format(integers=integers))
    return file


def test_nl_file_has_bounds_and_builder_not(tmp_path: Path):
    file = nl_file(tmp_path)
    builder = ca.NlpBuilder()
    builder.import_nl(str(file), {"verbose": False})
    agree(builder, {"lbx": builder.x_lb, "ubx": builder.x_ub, "lbg": builder.g_lb})
    agree(builder, {})
    for name in (file, str(file)):
        found = nlpsol("s", "hybrid", name)()
        np.testing.assert_allclose(numbers(found["x"]), [1, 2], atol=1e-6)
    problem = Problem.from_nlp(file)
    assert problem.x0 is not None
    assert problem.x0.tolist() == [1, 1]
    assert problem.bounds.lbx.tolist() == [-np.inf, 2]


def test_an_nl_file_with_integers_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"integer variables, x\[1\] the first.*bonmin"):
        nlpsol("s", "hybrid", nl_file(tmp_path, integers=1))


@pytest.fixture(scope="module")
def library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nlp.so in a folder with nlp.c, as CasADi's example nlp_codegen makes them."""
    folder = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ca.nlpsol("s", "ipopt", NLP, PEER).generate_dependencies("nlp.c")
    run([compiler, "-shared", "-fPIC", "nlp.c", "-o", "nlp.so"], cwd=folder, check=True)
    return folder / "nlp.so"


def test_a_library_is_a_problem_with_derivatives_of_its_own(library: Path):
    agree(str(library), CALL)
    agree(ca.external("nlp", str(library)), CALL)
    problem = Problem.from_nlp(library)
    assert problem.functions.backend == "external"
    assert problem.functions.hessian_sparsity.nnz() == 4
    result = Solver(problem).solve([1, 2], 2, lbg=0, ubg=5)
    assert verify(problem, result, p=2, ipopt=False).accepted


def test_c_code_is_compiled(library: Path):
    agree(ca.Importer(str(library.with_suffix(".c")), "shell"), CALL)
    found = nlpsol("s", "hybrid", str(library.with_suffix(".c")))(**CALL)
    expected = nlpsol("s", "hybrid", NLP)(**CALL)
    np.testing.assert_allclose(numbers(found["x"]), numbers(expected["x"]), atol=1e-8)


def test_foreign_code_with_differences_is_a_problem():
    graph = Distance({"enable_fd": True})
    found = nlpsol("s", "hybrid", graph, {"tol": 1e-4, "residual_tol": 1e-4})(p=[1, 2], ubg=0.5)
    np.testing.assert_allclose(numbers(found["x"]), [0.5, 2], atol=1e-3)


@pytest.mark.parametrize(
    ("nlp", "message"),
    [
        (ca.Function("q", [X, P], [F, G]), "'q' has inputs i0, i1 .*inputs x, p and outputs f, g"),
        ("nowhere.so", "'nowhere.so', which is no file"),
        (__file__, "gives no function 'nlp'"),
        (None, "nlp must be a dictionary .*; got NoneType"),
        ({**NLP, "x": ca.MX.sym("X", 4)[:2], "p": []}, r"not of expressions.*ca\.vertcat"),
        ({**NLP, "g": np.array([None])}, "g must be a SX expression like x, got ndarray"),
        (Distance({}), r"'distance' has no derivative 'nlp_grad_f'.*enable_fd"),
    ],
)
def test_other_forms_are_refused(nlp: Any, message: str):
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", nlp)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_structures_are_symbols_expressions_and_numbers(kind: Any):
    symbols, rows = (struct_symSX, struct_SX) if kind is ca.SX else (struct_symMX, struct_MX)
    x, p = symbols([entry("a", shape=2), entry("b")]), symbols([entry("p")])
    g = rows([entry("r", expr=x["a"][0] * x["a"][1] - p["p"])])
    f = ca.sumsqr(x.cat - p["p"]) + x["a"][0] ** 4
    start, lower = x(0), x(-np.inf)
    start["a"], lower["b"] = [1, 2], 0.5
    agree({"x": x, "p": p, "f": f, "g": g}, {"x0": start, "lbx": lower, "p": p(2), "lbg": g(0)})


def test_arrays_of_expressions_are_rows():
    agree({**NLP, "g": np.array([X[0], X[1]], dtype=object)}, {"p": 2, "ubg": [0.5, 3]})
    agree({**NLP, "g": []}, {"p": 2})
    agree({**NLP, "f": []}, {"p": 2, "x0": [1, 2]})


def test_a_sparse_matrix_of_parameters_is_taken():
    p = ca.SX.sym("P", ca.Sparsity.upper(2))
    nlp = {"x": X, "p": p, "f": ca.sumsqr(X - p[0, 0]) + ca.sumsqr(p) * X[0]}
    agree(nlp, {"p": ca.DM([[1, 2], [0, 3]])})


class Series:
    """As a column of pandas' tables shows itself to NumPy."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)


@pytest.mark.parametrize(
    "start",
    [
        [1, 2], (1, 2), range(1, 3), ca.DM([1, 2]), ca.DM([1, 2]).T, np.array([True, True]),
        np.array([1, 2], dtype=np.float32), np.array([[1, 2]]), np.array([[1], [2]]),
        np.array([1, 2.0], dtype=object), Series([1.0, 2.0]),
        np.ma.array([1.0, 2.0], mask=[False, False]), ca.sparsify(ca.DM([0, 2])),
        [ca.DM(1), ca.DM(2)], np.array([1, 1, 2, 2.0])[::2], np.array([1, 2], dtype=">f8"),
        np.frombuffer(np.array([1, 2.0]).tobytes()),
    ],
)  # fmt: skip
def test_numbers_of_many_kinds_are_numbers(start: Any):
    solver = nlpsol("s", "hybrid", NLP)
    for _ in range(3):  # a first solve, and by shorter ways
        for call in ({"x0": start, "p": 2}, {"x0": start, "p": 2, "lam_x0": start, "lam_g0": 0}):
            found = solver(**call, ubx=Series([0.5, 9]))
            np.testing.assert_allclose(numbers(found["x"]), [0.5, 2], atol=1e-6)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), r"x0\[1\] is masked.*filled"),
        (np.array([1, None]), r"x0\[1\] is missing"),
        (Series([1, None]), r"x0\[1\] is missing"),
        (np.array([1, "2"], dtype=object), r"x0\[1\] is '2', a str"),
        (np.array([1, 1j]), "x0 must be real numbers"),
        ([ca.SX.sym("s"), 1], r"x0\[0\] is the CasADi symbol s; .*vertcat"),
    ],
)
def test_what_is_no_number_is_named(value: Any, message: str):
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", NLP)(x0=value, p=2)


def test_columns_and_tables_of_pandas_are_numbers():
    pandas = pytest.importorskip("pandas")
    solver = nlpsol("s", "hybrid", NLP)
    table = pandas.DataFrame({"start": [1, 2], "upper": [0.5, 9.0]}, index=["a", "b"])
    found = solver(x0=table[["start"]], ubx=table["upper"], p=2)
    np.testing.assert_allclose(numbers(found["x"]), [0.5, 2], atol=1e-6)
    with pytest.raises(InputError, match=r"x0\[1\] is"):
        solver(x0=pandas.Series([1, pandas.NA]), p=2)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_a_problem_without_variables_is_judged(kind: Any):
    p = kind.sym("p")
    nlp = {"x": kind.sym("x", 0), "p": p, "f": p**2, "g": p}
    solver = nlpsol("s", "hybrid", nlp)
    found = solver(p=3)
    assert solver.stats()["success"]
    assert [float(found[key]) for key in ("f", "g", "lam_p")] == [9, 3, -6]
    assert found["x"].shape == (0, 1)
    solver(p=3, lbg=4)
    assert not solver.stats()["success"]
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_INFEASIBLE"


def test_fixed_problem_has_multipliers():
    rows = ca.vertcat(X[0] * X[1], X[0])
    nlp = {"x": X, "p": P, "f": ca.sumsqr(X) * P, "g": rows}
    agree(nlp, {"lbx": 3, "ubx": 3, "p": 2, "x0": 7})
    agree(nlp, {"lbx": 3, "ubx": 3, "p": 2, "lbg": [8, -1], "ubg": [10, 5]})
