"""Problems and numbers that ``nlpsol`` takes as CasADi does, and arguments refused by name."""

from subprocess import run

import casadi as ca
import numpy as np
import pytest
from casadi.tools import entry, struct_MX, struct_SX, struct_symMX, struct_symSX
from support.cases.nlp import OUTPUTS, PEER, solved
from support.cases.watched import Distance
from support.judges.kkt import numbers
from support.paths import DATA

from casadi_hybrid import InputError, Problem, Solver, nlpsol, verify

X, P = ca.SX.sym("x", 2), ca.SX.sym("p")
GOOD = {"x": X, "f": ca.sumsqr(X), "g": ca.sum1(X)}


BAD_ARGUMENTS = [
    ({"x0": [1, 2, 3]}, "x0 has shape"),
    ({"x0": [1, np.nan]}, r"x0\[1\] is nan"),
    ({"x0": "12"}, "x0 must be real"),
    ({"x0": np.zeros((2, 2, 1))}, "x0"),
    ({"x0": np.zeros(2, dtype=complex)}, "x0 must be real"),
    ({"lbx": [0, 2], "ubx": [1, 1]}, r"lbx\[1\] = 2 exceeds ubx\[1\] = 1.*x\[1\]"),
    ({"lbx": [-np.inf, np.inf]}, r"lbx\[1\] is inf"),
    ({"lbx": []}, "lbx has shape"),
    ({"ubg": -np.inf}, r"ubg\[0\] is -inf"),
    ({"ubg": np.nan}, r"ubg(\[0\])? is nan"),
    ({"lbg": 1 + 1e-13, "ubg": 1}, r"lbg\[0\] = 1\.0000000000001 exceeds ubg\[0\] = 1"),
    ({"lbg": [0, 0]}, "lbg has shape"),
    ({"lbg": [[1], [2, 3]]}, "lbg must be real"),
    ({"lam_g0": [np.nan]}, "lam_g0"),
    ({"lam_x0": [1, 2, 3]}, "lam_x0 has shape"),
    ({"p": [1, 2]}, "p has shape"),
    ({"lbX": 0}, "'lbX'.*'lbx'"),
    ({"lam_g": 0}, "'lam_g'.*'lam_g0'"),
    ({"warm_start": 3}, "warm_start"),
]


@pytest.mark.parametrize(("call", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_before_work(call, message):
    calls = []
    solver = nlpsol("s", "hybrid", GOOD, {"iteration_callback": calls.append})
    with pytest.raises(InputError, match=message):
        solver(**call)
    assert not calls
    with pytest.raises(RuntimeError, match="No stats"):
        solver.stats()
    for _ in range(3):  # the next calls take a shorter way, and are refused alike
        solver()
    calls.clear()
    with pytest.raises(InputError, match=message):
        solver(**call)
    assert not calls


BAD_OPTIONS = [
    ({"max_iters": 5}, "'max_iters'.*'max_iter'"),
    ({"snopt.tol": 1e-5}, "belongs to snopt"),
    ({"ipopt.print_level": "5"}, r"ipopt\.print_level must be"),
    ({"tolerance": 1e-5}, "'tolerance'.*'tol'"),
    ({"print_level": 0}, r"'log' or 'ipopt\.print_level'"),
    ({"linear_solver": "ma27"}, r"'ipopt\.linear_solver'"),
    ({"ipopt.max_itr": 3}, "'max_itr'.*IPOPT.*'max_iter'"),
    ({"hybrid": {"tolerence": 1e-5}}, "'tolerence'.*IPOPT.*'tol'"),
    ({"discrete": [False, True]}, "'discrete'"),
    ({"bound_consistency": True}, "'bound_consistency'"),
    ({"ipopt.linear_solver": ["mumps"]}, "ipopt.linear_solver must be"),
    ({"tol": 1e-7, "ipopt.tol": 1e-3}, "tol is given twice, 1e-07 and 0.001"),
    ({"ipopt": {"max_iter": 5}, "ipopt.max_iter": 6}, "ipopt.max_iter is given twice, 5 and 6"),
    ({"hybrid": {"tol": 1e-7}, "tol": 1e-8}, "tol is given twice"),
    ({"ipopt.max_cpu_time": "1"}, "ipopt.max_cpu_time must be"),
    ({"hess_lag": ca.Function("h", [X], [X])}, "hess_lag must take 4 arguments"),
    ({"iteration_callback": ca.Function("f", [X], [X])}, "'f' has 1 inputs"),
    ({"constraint_names": ["a", "b"]}, "constraint_names has 2"),
    (["tol"], "options must be a dictionary"),
]
WRONG_VALUES = [
    {"tol": 0, "residual_tol": np.nan, "max_iter": 2.5, "max_time": -1, "divergence": 0},
    {"constr_viol_tol": -1, "error_on_fail": 2, "print_time": "no", "log": "yes"},
    {"iteration_callback_step": 0, "iteration_callback": 3, "variable_names": "ab"},
    {"verbose": "no", "jit_options": "-O3", "compiler": 3, "ipopt": "quiet"},
]


def test_bad_options_are_refused():
    wrong = [({name: v}, f"^{name}") for options in WRONG_VALUES for name, v in options.items()]
    for options, message in BAD_OPTIONS + wrong:
        with pytest.raises(InputError, match=message):
            nlpsol("s", "hybrid", GOOD, options)
    for name, plugin, message in (("s", "ipopt", "ca.nlpsol"), ("", "hybrid", "name must be")):
        with pytest.raises(InputError, match=message):
            nlpsol(name, plugin, GOOD)


def test_scalars_and_empty_vectors_as_in_casadi():
    x = ca.SX.sym("x", 3)
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1)})
    for call in ({}, {"lbg": 0, "ubg": 0, "p": 0}, {"lbg": [], "p": ca.DM(0, 1)}, {"x0": ca.DM(3)}):
        np.testing.assert_allclose(numbers(solver(**call)["x"]), 1.0, atol=1e-8)
    for call, x in (({"ubx": ca.DM([0, ca.inf, 5])}, [0, 1, 1]), ({"x0": [5, 6, 7], "ubx": 0}, 0)):
        np.testing.assert_allclose(numbers(solver(**call)["x"]), x, atol=1e-6)


F, G = ca.sumsqr(X - P) + X[0] ** 4, X[0] * X[1] - P
NLP = {"x": X, "p": P, "f": F, "g": G}
CALL = {"x0": [1, 2], "p": 2, "lbg": 0}


def agree(nlp, call):
    """Assert that both solvers take a problem, with the same answer in the same shapes."""
    theirs = ca.nlpsol("s", "ipopt", nlp, PEER)(**call)
    ours = nlpsol("s", "hybrid", nlp, PEER)(**call)
    for key in OUTPUTS:
        if theirs[key].numel():
            assert ours[key].shape == theirs[key].shape
            np.testing.assert_allclose(numbers(ours[key]), numbers(theirs[key]), atol=1e-5)


def test_function_is_a_problem():
    graph = ca.Function("nlp", [X, P], [F, G], ["x", "p"], ["f", "g"])
    agree(graph, CALL)
    agree(graph.wrap(), CALL)


def test_nl_file_has_bounds_and_builder_not(tmp_path):
    """min x² + y² s.t. x + y ≥ 3, y ≥ 2, started at (1, 1)."""
    file, text = tmp_path / "problem.nl", (DATA / "sum_of_squares.nl").read_text("utf-8")
    file.write_text(text.format(integers=0))
    builder = ca.NlpBuilder()
    builder.import_nl(str(file), {"verbose": False})
    agree(builder, {"lbx": builder.x_lb, "ubx": builder.x_ub, "lbg": builder.g_lb})
    agree(builder, {})
    for name in (file, str(file)):
        np.testing.assert_allclose(numbers(nlpsol("s", "hybrid", name)()["x"]), [1, 2], atol=1e-6)
    problem = Problem.from_nlp(file)
    assert np.ravel(problem.x0).tolist() == [1, 1]
    assert problem.bounds.lbx.tolist() == [-np.inf, 2]
    # Duals of the file, of a minimum and of a maximum, are a start.
    for objective, dual in (("O0 0\n", 2), ("O0 1\no16\n", -2)):
        changed = text.format(integers=0).replace("O0 0\n", objective)
        file.write_text(changed.replace("\nr\n", f"\nd1\n0 {dual}\nr\n"))
        np.testing.assert_allclose(nlpsol("s", "hybrid", file)()["lam_g"].full(), -2, atol=1e-6)
        np.testing.assert_allclose(Problem.from_nlp(file).numbers().lam_g0, -2)
    file.write_text(text.format(integers=1))
    with pytest.raises(InputError, match=r"integer variables, x\[1\]"):
        nlpsol("s", "hybrid", file)


def test_library_and_c_code_are_problems(compiler, tmp_path, monkeypatch):
    """nlp.c and nlp.so as CasADi's example nlp_codegen makes them."""
    monkeypatch.chdir(tmp_path)
    ca.nlpsol("s", "ipopt", NLP, PEER).generate_dependencies("nlp.c")
    run([compiler, "-shared", "-fPIC", "nlp.c", "-o", "nlp.so"], check=True)
    library = tmp_path / "nlp.so"
    for nlp in (str(library), ca.external("nlp", str(library)), ca.Importer("nlp.c", "shell")):
        agree(nlp, CALL)
    problem = Problem.from_nlp(library)
    assert problem.functions.backend == "external"
    assert problem.functions.hessian_sparsity.nnz() == 4
    result = Solver(problem).solve([1, 2], 2, lbg=0, ubg=5)
    assert verify(problem, result, p=2, ipopt=False).accepted
    answer, expected = (nlpsol("s", "hybrid", nlp)(**CALL) for nlp in ("nlp.c", NLP))
    np.testing.assert_allclose(numbers(answer["x"]), numbers(expected["x"]), atol=1e-8)


BAD_PROBLEMS = [
    ([X], "nlp must be a dictionary"),
    (None, "nlp must be a dictionary"),
    ({"f": X[0]}, "'x'"),
    ({**GOOD, "h": X}, "'h'"),
    ({**GOOD, "x": 2 * X}, "x must be made of symbols"),
    ({**GOOD, "f": X}, "f .*must be a scalar"),
    ({**GOOD, "f": ca.SX.sym("t")}, "f depends on t"),
    ({**GOOD, "p": X}, "share a symbol"),
    ({**GOOD, "p": ca.MX.sym("p")}, "one kind"),
    ({**GOOD, "g": X @ X.T}, r"ca.vec\(g\)"),
    ({**GOOD, "x": ca.SX.sym("x", 2, 2)}, "ca.reshape"),
    ({"x": ca.SX.sym("x", 1, 2), "f": X[0]}, "f depends on"),
    ({"x": [X[0], X[1]]}, "ca.vertcat"),
    ({**GOOD, "g": None}, "g must be a SX"),
    ({**GOOD, "g": {"a": X}}, "g must be a SX"),
    ({**GOOD, "g": np.array([None])}, "g must be a SX"),
    ({**GOOD, "p": "p"}, "p must be a CasADi"),
    ({**GOOD, "x": np.zeros(2)}, "must be a CasADi SX or MX symbol"),
    ({**NLP, "x": ca.MX.sym("X", 4)[:2], "p": []}, "ca.vertcat"),
    (ca.Function("q", [X, P], [F, G]), "'q' has inputs i0, i1"),
    ("nowhere.so", "'nowhere.so'"),
    (__file__, "no function 'nlp'"),
    (Distance({}), "'distance'.*'nlp_grad_f'.*enable_fd"),
]


@pytest.mark.parametrize(("nlp", "message"), BAD_PROBLEMS)
def test_bad_problems_are_refused(nlp, message):
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", nlp)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_structures_state_problems_and_numbers(kind):
    symbols, rows = (struct_symSX, struct_SX) if kind is ca.SX else (struct_symMX, struct_MX)
    x, p = symbols([entry("a", shape=2), entry("b")]), symbols([entry("p")])
    g = rows([entry("r", expr=x["a"][0] * x["a"][1] - p["p"])])
    f = ca.sumsqr(x.cat - p["p"]) + x["a"][0] ** 4
    start, lower = x(0), x(-np.inf)
    start["a"], lower["b"] = [1, 2], 0.5
    agree({"x": x, "p": p, "f": f, "g": g}, {"x0": start, "lbx": lower, "p": p(2), "lbg": g(0)})


def test_arrays_lists_and_sparse_parameters_are_taken():
    agree({**NLP, "g": np.array([X[0], X[1]], dtype=object)}, {"p": 2, "ubg": [0.5, 3]})
    agree({**NLP, "g": []}, {"p": 2})
    agree({**NLP, "f": []}, {"p": 2, "x0": [1, 2]})
    p = ca.SX.sym("P", ca.Sparsity.upper(2))
    nlp = {"x": X, "p": p, "f": ca.sumsqr(X - p[0, 0]) + ca.sumsqr(p) * X[0]}
    agree(nlp, {"p": ca.DM([[1, 2], [0, 3]])})


class Series:
    """A column as pandas' tables show it to NumPy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


LISTS = [1, 2], (1, 2), range(1, 3), [ca.DM(1), ca.DM(2)], Series([1.0, 2.0])
MATRICES = ca.DM([1, 2]), ca.DM([1, 2]).T, ca.sparsify(ca.DM([0, 2]))
ARRAYS = [np.array([1, 2], dtype=kind) for kind in (bool, np.float32, object, ">f8")]
ARRAYS += [np.array([[1, 2]]), np.array([[1], [2]]), np.array([1, 1, 2, 2.0])[::2]]
ARRAYS += [np.ma.array([1.0, 2.0], mask=False), np.frombuffer(np.array([1, 2.0]).tobytes())]


@pytest.mark.parametrize("start", [*LISTS, *MATRICES, *ARRAYS])
def test_numbers_of_many_kinds_are_numbers(start):
    solver = nlpsol("s", "hybrid", NLP)
    for _ in range(3):  # a first solve, and by shorter ways
        for call in ({"x0": start, "p": 2}, {"x0": start, "p": 2, "lam_x0": start, "lam_g0": 0}):
            answer = solver(**call, ubx=Series([0.5, 9]))
            np.testing.assert_allclose(numbers(answer["x"]), [0.5, 2], atol=1e-6)


NO_NUMBERS = [
    (np.ma.array([1.0, 2.0], mask=[False, True]), r"x0\[1\] is masked"),
    (np.array([1, None]), r"x0\[1\] is missing"),
    (Series([1, None]), r"x0\[1\] is missing"),
    (np.array([1, "2"], dtype=object), r"x0\[1\] is '2', a str"),
    (np.array([1, 1j]), "x0 must be real"),
    ([ca.SX.sym("s"), 1], r"x0\[0\] is the CasADi symbol s"),
]


@pytest.mark.parametrize(("value", "message"), NO_NUMBERS)
def test_missing_numbers_are_named(value, message):
    with pytest.raises(InputError, match=message):
        nlpsol("s", "hybrid", NLP)(x0=value, p=2)


def test_columns_of_pandas_are_numbers():
    pandas = pytest.importorskip("pandas")
    solver, table = nlpsol("s", "hybrid", NLP), pandas.DataFrame({"x": [1, 2], "upper": [0.5, 9.0]})
    answer = solver(x0=table[["x"]], ubx=table["upper"], p=2)
    np.testing.assert_allclose(numbers(answer["x"]), [0.5, 2], atol=1e-6)
    with pytest.raises(InputError, match=r"x0\[1\] is"):
        solver(x0=pandas.Series([1, pandas.NA]), p=2)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_problem_without_variables_is_judged(kind):
    p = kind.sym("p")
    solver = nlpsol("s", "hybrid", {"x": kind.sym("x", 0), "p": p, "f": p**2, "g": p})
    answer = solver(p=3)
    assert solver.stats()["success"]
    assert [float(answer[key]) for key in ("f", "g", "lam_p")] == [9, 3, -6]
    assert answer["x"].shape == (0, 1)
    solver(p=3, lbg=4)
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_INFEASIBLE"


def test_fixed_problem_has_multipliers():
    rows = ca.vertcat(X[0] * X[1], X[0])
    nlp = {"x": X, "p": P, "f": ca.sumsqr(X) * P, "g": rows}
    agree(nlp, {"lbx": 3, "ubx": 3, "p": 2, "x0": 7})
    agree(nlp, {"lbx": 3, "ubx": 3, "p": 2, "lbg": [8, -1], "ubg": [10, 5]})
    assert not solved(nlp, lbx=3, ubx=3, p=2, ubg=8).stats()["success"]


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_matrices_keep_casadis_shapes(kind):
    x, p = kind.sym("x", 1, 3), kind.sym("p", 2, 3)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p[0, :]), "g": x + p[1, :]}
    values = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    call = {"x0": 0, "p": values, "ubg": np.array([[1.0, 5.0, 1.5]])}
    answer = nlpsol("s", "hybrid", nlp)(**call)
    agree(nlp, call)
    flat = nlpsol("s", "hybrid", nlp)(**{**call, "p": values.ravel(order="F")})
    assert (flat["x"].full() == answer["x"].full()).all()
    bounds = {"ubg": [1.0, 5.0, 1.5], "x0": 0}
    assert verify(nlp, answer, p=values, **bounds).accepted
    moved = {**answer, "x": answer["x"] + 1e-3}
    assert not verify(nlp, moved, p=values, **bounds).accepted


@pytest.mark.parametrize("none", [[], ca.vertcat(), ca.SX()], ids=["list", "vertcat", "SX"])
def test_absent_parameters_and_rows_are_taken(none):
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "p": none, "f": ca.sumsqr(x - 1), "g": none}
    answer = nlpsol("s", "hybrid", nlp)(x0=0, p=none if isinstance(none, list) else [])
    assert float(answer["f"]) == pytest.approx(0.0, abs=1e-12)
    assert answer["g"].shape == answer["lam_p"].shape == (0, 1)
