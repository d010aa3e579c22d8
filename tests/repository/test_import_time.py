"""Modules that an import and a solve load: nothing heavy, nothing late."""

import importlib
import json
import sys

import pytest
from support.cases.watched import ended

HEAVY = ("scipy", "matplotlib", "pandas", "joblib", "tqdm", "pyarrow", "distributed")
PAPER = "casadi_hybrid.paper."
SELDOM = (
    "casadi_hybrid.cli.",
    "casadi_hybrid.control.",
    "casadi_hybrid.core.export.",
    "casadi_hybrid.paper.experiment.",
    "casadi_hybrid.paper.iterations.",
    "casadi_hybrid.solver.opti.",
    "casadi_hybrid.solver.report.",
    "casadi_hybrid.utils.output.plotting",
    "casadi_hybrid.verify.judging",
)
SOLVE = """
import casadi as ca
x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] * x[1]}
solver = casadi_hybrid.nlpsol("solver.solver", "hybrid", nlp)
solution = solver(x0=1, p=2, ubg=1)
assert abs(float(solution["g"]) - 1) < 1e-6
"""
WAYS = {
    "statistics": 'assert solver.stats()["success"]',
    "a result": "assert solver.result.success",
    "Solver": "assert casadi_hybrid.Solver(nlp).solve([1, 2], p=2, lbg=-9, ubg=1).engine == 'c'",
    "a log": """
logged = casadi_hybrid.nlpsol("logged", "hybrid", nlp, {"print_time": True})
logged(x0=1, p=2, ubg=1)
assert logged.stats()["engine"] == "c"
""",
    "Opti": """
opti = casadi_hybrid.Opti()
y = opti.variable()
opti.minimize((y - 1) ** 2)
opti.solver("hybrid")
assert opti.solve().value(y) > 0.9
""",
    "a graph": "assert abs(float(ca.Function('of_p', [p], [solver(x0=1, p=p)['f']])(2))) < 1e-6",
    "many": "assert solver.batch(x0=1, p=[[1, 2, 3]], ubg=1).success.all()",
}
LATER_SOLVES = """
import sys
solver = casadi_hybrid.nlpsol("timed", "hybrid", nlp, {"max_time": 100})
solver(x0=1, p=2, ubg=1)
before = set(sys.modules)
for arguments in ({"lbg": 1, "ubg": 1, "lbx": 2}, {"p": 3, "lam_g0": 0.3}, {"x0": 1e7, "lbg": -1}):
    solver(**arguments)
solver(x0=[1, 2], p=2, lbg=3, ubg=1e3, lbx=-1, ubx=1)
assert not solver.stats()["success"]
late = set(sys.modules) - before
assert not [name for name in late if name.startswith(("scipy", "casadi_hybrid", "feral"))], late
"""
LEARNED = """
import casadi as ca, sys
class Model(ca.Callback):
    def __init__(self):
        ca.Callback.__init__(self)
        self.construct("model", {"enable_fd": True})
    def eval(self, arguments):
        return [arguments[0] ** 4]
model, x = Model(), ca.MX.sym("x")
nlp = {"x": x, "f": model(x), "g": x}
for solver in (
    casadi_hybrid.nlpsol("solver.solver", "hybrid", nlp, {"max_time": 60}),
    casadi_hybrid.Solver(nlp, max_time=60).solve,
):
    before = set(sys.modules)
    solver(x0=3, lbg=1, ubg=2)
    late = set(sys.modules) - before
    assert not late, late
"""


def loaded_after(script: str) -> set[str]:
    """The modules of a new process."""
    ask = f"import json, sys\nimport casadi_hybrid\n{script}\nprint(json.dumps(list(sys.modules)))"
    done = ended([sys.executable, "-c", ask], timeout=300)
    assert not done.returncode, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def starting_with(prefixes: str | tuple[str, ...], modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith(prefixes)}


def test_import_and_small_solve_load_little():
    imported, solved = loaded_after(""), loaded_after(SOLVE)
    for loaded in (imported, solved):
        assert loaded.isdisjoint(HEAVY)
        assert not starting_with(SELDOM, loaded)
    assert not starting_with("casadi_hybrid", solved - imported)  # a first solve imports nothing


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_solve_loads_neither_scipy_nor_paper(way):
    loaded = loaded_after(SOLVE + way)
    assert loaded.isdisjoint(HEAVY)
    assert not starting_with(PAPER, loaded)


def test_pages_and_figures_open_no_window(tmp_path):
    script = f"""
from casadi_hybrid.utils.output import plotting
solver.result.report({str(tmp_path / "page.html")!r})
plotting.save(plotting.figure()[0], {str(tmp_path / "figure.png")!r})
"""
    assert "matplotlib.pyplot" not in loaded_after(SOLVE + script)
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "figure.png"}


@pytest.mark.parametrize("script", [SOLVE + LATER_SOLVES, LEARNED], ids=["exact", "learned"])
def test_solve_with_deadline_imports_nothing(script):
    loaded_after(script)


def test_controller_loads_all_beforehand():
    loaded = loaded_after("import casadi_hybrid.control")
    assert {"casadi_hybrid.solver.solve", "scipy.linalg", "scipy.sparse"} <= loaded


def test_help_loads_nothing_heavy():
    script = "from casadi_hybrid.cli.parser import make_parser\nmake_parser().format_help()"
    assert loaded_after(script).isdisjoint(HEAVY)


@pytest.mark.parametrize("folder", ["", ".paper.iterations", ".paper.rules", ".verify"])
def test_package_offers_late_names(folder):
    package = f"casadi_hybrid{folder}"
    script = f"""
import importlib
package = importlib.import_module({package!r})
assert set(package.__all__) <= set(dir(package))
namespace = {{}}
exec("from {package} import *", namespace)
for name in package.__all__:
    assert getattr(package, name) is namespace[name], name
    assert getattr(namespace[name], "__name__", name) == name
    assert name in vars(package)  # the next time it is found without a search
"""
    assert package in loaded_after(script)
    with pytest.raises(AttributeError, match="nothing"):
        importlib.import_module(package).nothing  # noqa: B018


def test_verify_is_a_function_after_any_import():
    script = """
import casadi_hybrid.verify.judging, casadi_hybrid.verify.report
from casadi_hybrid.verify import Report, verify
assert casadi_hybrid.verify is verify and casadi_hybrid.Report is Report
"""
    assert "casadi_hybrid.verify.judging" in loaded_after(script)
