"""``result.report`` and ``solution.report``: one page of a solve, whatever the names in it."""

import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved

from casadi_hybrid import InputError, Opti, Problem, Solver
from casadi_hybrid.control import Model, OptimalControl, Phases
from casadi_hybrid.solver.report.figures import active_bounds
from casadi_hybrid.solver.report.page import SHOWN

X = ca.SX.sym("x", 3)
GOAL = ca.DM([2, 1, 0])
NLP = {"x": X, "f": ca.sumsqr(X - GOAL), "g": ca.sumsqr(X)}
# Methods of every kind of history and of steps, with the options that they need.
METHODS: dict[str, dict[str, Any]] = {
    "hybrid": {},
    "closed-form": {},
    "constant": {"C_aug": 1.0, "C_opt": 1.0, "eta_x": 0.1, "eta_d": 0.1},
    "gda": {},
    "matrix-memory": {},
}


class Page(HTMLParser):
    """A page as a browser reads it: tags closed in order, nothing loaded, text by its tag."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.texts = {"body": "", "pre": "", "h1": ""}
        self.feed(self.source)
        self.close()
        assert not self.open
        self.text = " ".join(self.texts["body"].split())
        targets = re.findall(r"""(?:url\(|href=|src=)["']?([^"')]*)""", self.source)
        assert all(target.startswith(("#", "data:image/png")) for target in targets)
        assert not re.search("@import|<script|<img|onclick", self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & {*self.open}:
            self.cells[-1] += data
        for tag in {*self.texts} & {*self.open}:
            self.texts[tag] += data


def read(result: Any, folder: Path) -> Page:
    """Write the page and read it; the explanation of the result is on it."""
    path = folder / "page.html"
    assert result.report(path) == path
    page = Page(path)
    assert page.texts["pre"] == (result.explain() if hasattr(result, "explain") else str(result))
    return page


BALL = Problem(x=X, f=NLP["f"], g={"ball": (None, ca.sumsqr(X), 1)}, lbx=0.1, name="ball")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page(method: str, tmp_path: Path) -> None:
    problem = Problem(x=X, f=NLP["f"], h={"sphere": ca.sumsqr(X) - 1}, name="sphere")
    solver = Solver(problem, method, **METHODS[method])
    for history in (True, False):
        result = solver.solve([1, 1, 1], history=history)
        page = read(result, tmp_path)
        assert page.texts["h1"] == "sphere"
        assert "sphere" in page.cells
        assert all(status.name in page.text for status in (result.stop, result.point))
        recorded, designed = history or method == "hybrid", history and result.history.further()
        assert page.tags.count("svg") == 1 + recorded + bool(designed) + (method == "hybrid")
        options = " ".join(part for pair in result.options.items() for part in pair)
        assert options in " ".join(page.cells)


def test_active_bounds_follow_the_iterates(tmp_path: Path) -> None:
    result = Solver(BALL).solve([1, 1, 1], history=True)
    names, sides = active_bounds(result, result.history)
    assert set(names) <= {"ball", "x_0", "x_1", "x_2"}
    at_end = {name: side for name, side in zip(names, sides[:, -1], strict=True) if side}
    assert at_end == {"ball": 1, "x_2": -1}
    assert {*at_end} <= {*read(result, tmp_path).cells}
    pages = [result.report(tmp_path / f"{k}.html").read_bytes() for k in range(2)]
    assert pages[0] == pages[1]


def test_names_are_escaped(tmp_path: Path) -> None:
    y = ca.SX.sym("y", 3)
    names = ["<script>alert(1)</script>", "a&b\"'\x00\n\u202e", "ü" * 500, "]]>--><b>", "&lt;"]
    rows = {name: (0, y[k % 3] + k, 9) for k, name in enumerate(names)}
    problem = Problem(x=y, f=ca.sumsqr(y - 1), g=rows, name="</title><h1>x & y")
    page = read(Solver(problem).solve(0.5, history=True), tmp_path)
    assert page.texts["h1"] == "</title><h1>x & y"
    assert page.tags.count("h1") == 1
    for name in (names[0], names[3], names[4], "a&b\"'\\x00\\n\\u202e"):
        assert name in page.cells
    assert any(set(cell) == {"ü", "…"} and len(cell) <= 120 for cell in page.cells)


def test_failures_are_told(tmp_path: Path) -> None:
    never = {"low": (None, ca.sumsqr(X), 1), "high": (4, ca.sum1(X), None)}
    cases = {
        "LOCALLY_INFEASIBLE": Problem(x=X, f=X[0], g=never),
        "UNBOUNDED": Problem(x=X, f=-X[0] + X[1] ** 2, g={"g": (0, X[0] - X[2], None)}),
        "EVALUATION_ERROR": Problem(x=X, f=ca.log(X[0] - 5), g={"g": (0, X[1], 1)}),
    }
    for stop, problem in cases.items():
        assert stop in read(Solver(problem).solve(0, history=True), tmp_path).text


def test_odd_problems_have_a_page(tmp_path: Path) -> None:
    """No variables; zero, infinity, and numbers near overflow, which have no logarithm to draw."""
    page = read(solved({"x": ca.SX.sym("none", 0), "f": ca.SX(1)}).result, tmp_path)
    assert "CONVERGED" in page.text
    x = ca.SX.sym("x")
    problem = Problem(x=x, f=1e305 * x, g={"g": (0, 1e305 * x, None)}, name="extreme")
    assert "extreme" in read(Solver(problem, max_iter=3).solve(1, history=True), tmp_path).text


def test_large_problem_has_a_small_page(tmp_path: Path) -> None:
    n = 10_000
    x = ca.SX.sym("x", n)
    f = ca.sumsqr(x - 2) + ca.sumsqr(x[1:] - x[:-1])
    problem = Problem(x=x, f=f, lbx=0, ubx=np.linspace(0.5, 3, n))
    result = Solver(problem, max_iter=5).solve(1, history=True)
    page = read(result, tmp_path)
    assert len(page.source) < 80_000
    shown = sorted(int(cell[2:]) for cell in page.cells if cell.startswith("x_"))
    assert shown == sorted(np.argsort(-np.abs(result.lam_x), kind="stable")[:SHOWN])


def test_bad_path_or_missing_jinja2_is_refused(tmp_path, monkeypatch):
    result = Solver(BALL).solve([1, 1, 1])
    (tmp_path / "folder.html").mkdir()
    paths = ["page.pdf", "page", "folder.html", "none/page.html"]
    for path in (3, b"page.html", *(tmp_path / name for name in paths)):
        with pytest.raises(InputError, match=r"path|folder|none"):
            result.report(path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"casadi-hybrid\[report\]"):
        result.report(tmp_path / "page.html")


def test_nlpsol_opti_and_pickle_have_pages(tmp_path: Path) -> None:
    result = solved(NLP, x0=1, ubg=1).result
    page = read(result, tmp_path)
    assert read(pickle.loads(pickle.dumps(result)), tmp_path).source == page.source
    opti = Opti()
    a = opti.variable(2)
    opti.minimize(ca.sumsqr(a - 3))
    opti.subject_to(a[0] + a[1] <= 2)
    opti.set_linear_scale(a, 10)
    opti.solver("hybrid")
    solution = opti.solve()
    assert solution.constraint_names[0] in read(solution, tmp_path).cells


def test_solution_page_has_trajectories(tmp_path: Path) -> None:
    model = Model("cart")
    model.state("place", unit="m")
    speed = model.state("speed", upper=0.6)
    force = model.control("force", lower=-1, upper=1)
    model.rates(place=speed, speed=force)
    ocp = OptimalControl(model, duration=2.5, intervals=8)
    ocp.initial(place=0, speed=0)
    ocp.final(place=1, speed=0)
    ocp.minimize("effort", integral=force**2)
    solution = ocp.solve()
    alone = read(solution, tmp_path)
    assert alone.tags.count("svg") == 1
    assert all(label in alone.text for label in ("place (m)", "speed", "force", "time (s)"))
    solution.report(tmp_path / "whole.html", ocp.solver.result)
    whole = Page(tmp_path / "whole.html")
    assert whole.tags.count("svg") > 2
    assert {*ocp.solver.result.constraint_names[:SHOWN]} <= {*whole.cells}
    ocp.solve([0.5, 0])
    with pytest.raises(InputError):  # the result of another solve
        solution.report(tmp_path / "page.html", ocp.solver.result)
    assert "out" in read(Phases({"out": ocp}).solve(), tmp_path).text
