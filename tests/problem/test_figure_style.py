"""The figure style: curves that can be told apart, labels with units, no windows."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_rgb

from casadi_hybrid import InputError, Problem, Solver
from casadi_hybrid.utils.output import plotting


@pytest.fixture(scope="module")
def runs():
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=x[0] + x[1], h=ca.vertcat(x[0] - 1, x[1] - x[0]))
    options = {"max_iter": 30, "tol": 1e-10}
    return {
        name: Solver(problem, name, **options).solve([0.0, 3.0], history=True).history
        for name in ("closed-form", "gda", "pdhg")
    }


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines() if len(line.get_xdata()) > 2}


def test_eight_line_styles_differ():
    styles = [plotting.line_style(i, 100) for i in range(8)]
    for key in ("color", "marker"):  # also in print without colours
        assert len({style[key] for style in styles}) == 8
    assert plotting.line_style(9)["color"] == styles[1]["color"]
    for colour in plotting.PALETTE:  # none vanishes on white
        assert np.dot([0.2126, 0.7152, 0.0722], to_rgb(colour)) < 0.75


def test_convergence_draws_both_residuals(runs):
    fig = plotting.plot_convergence(runs, tol=1e-10, title="three methods")
    for ax, name in zip(fig.axes, ("feasibility", "stationarity"), strict=True):
        drawn = curves(ax)
        assert set(drawn) == set(runs)
        for label, run in runs.items():
            values = getattr(run, name)
            logarithmic = np.where(values > 0, values, np.nan)
            np.testing.assert_array_equal(drawn[label].get_ydata(), logarithmic)
        assert ax.get_yscale() == "log"


def test_convergence_has_other_axes(runs):
    timed = curves(plotting.plot_convergence(runs, against="seconds").axes[0])["gda"]
    np.testing.assert_array_equal(timed.get_xdata(), runs["gda"].elapsed)
    axes = plotting.plot_convergence(runs, log_across=True).axes[1]
    assert axes.get_xscale() == "log"
    assert curves(axes)["gda"].get_xdata()[0] == 1


def test_panels_share_axes_and_labels():
    circles = {"linestyle": "", "marker": "o", "color": "#000000"}
    panels = {
        "left": {"ours": [1.0, 10.0, 2.0], "theirs": ([0, 2], [3.0, 4.0])},
        "right": {"ours": [5.0, 6.0, 7.0], "end": ([2], [7.0], circles)},
    }
    lines = {"levels": {"limit": 8.0}, "at": {"push": 1.0}, "ticks": {"x": (0, 1, 2)}}
    axes = {"xlabel": "time (s)", "ylabel": "level (m)", "yscale": "log"}
    fig = plotting.plot_curves(panels, **lines, **axes)
    left, right = fig.axes
    assert [ax.get_title() for ax in fig.axes] == ["left", "right"]
    ours, theirs, limit, push = left.get_lines()
    np.testing.assert_array_equal(ours.get_xydata(), [[0, 1], [1, 10], [2, 2]])
    np.testing.assert_array_equal(theirs.get_xydata(), [[0, 3], [2, 4]])
    assert (limit.get_ydata()[0], push.get_xdata()[0]) == (8.0, 1.0)
    assert right.get_lines()[1].get_color() == "#000000"
    assert left.get_yscale() == "log"
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_ylabel(), right.get_ylabel()) == ("level (m)", "")
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["0", "1", "2"]
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert labels == ["ours", "theirs", "limit", "push", "end"]


@pytest.mark.parametrize(
    ("runs", "options", "name"),
    [
        ({}, {}, "runs"),
        ({"a": None}, {}, "'a'"),
        ({"a": SimpleNamespace()}, {"against": "hours"}, "hours"),
        ({"a": SimpleNamespace()}, {"tol": 0.0}, "tol"),
    ],
)
def test_wrong_input_is_named(runs, options, name):
    with pytest.raises(InputError, match=name):
        plotting.plot_convergence(runs, **options)


def test_notebooks_show_figures_without_backend():
    image = DisplayFormatter().format(plotting.figure()[0])[0]["image/png"]
    assert image.startswith(b"\x89PNG")


def test_files_are_reproducible(tmp_path):
    for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        files = []
        for k in range(2):
            fig, ((ax,), _) = plotting.figure(2, 1)
            ax.plot([1, 2], **plotting.line_style(0, 2), label="a line", clip_on=True)
            plotting.legend(ax)
            files.append(plotting.save(fig, tmp_path / "new" / f"{k}.{form}").read_bytes())
        assert files[0].startswith(start)
        assert files[0] == files[1]


def test_unknown_formats_are_refused(tmp_path):
    fig, _ = plotting.figure()
    for name in ("new/figure.doc", "new/figure"):
        with pytest.raises(InputError, match=r"use one of png, svg, pdf"):
            plotting.save(fig, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
