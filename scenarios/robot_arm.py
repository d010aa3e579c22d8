"""A six-joint arm to a pose that is seen by more sensors than it has joints.

The arm has the link lengths of a Universal Robots UR5 (published Denavit–Hartenberg parameters).
Four markers on its tool are to be at given places: 12 equations h(q) = 0 (in m) for 6 joint
angles. Among the postures that do it, the one nearest to rest is wanted: min ½‖q − q_rest‖². As
m > n, IPOPT refuses the problem as it is written ("too few degrees of freedom").

Three targets, all from the rest posture as a cold start:

- a regular pose; J_h has full column rank there;
- a pose with a stretched wrist (q_5 = 0), where J_h loses rank;
- a regular pose whose markers are measured with 2 mm of noise: no posture meets all equations, and
  what is wanted then is the least-squares posture, reported as an infeasible stationary point.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from animation import save_animation
from common import AUTO, Method, Run, solve, solve_with_peer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import TOL, Check, finish, parser, word
from scipy.optimize import least_squares
from solving import IPOPT, SLEQP

from casadi_hybrid import Problem
from casadi_hybrid.plotting import PALETTE, figure, line_style
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.verify import run_ipopt, verify

NAME = "robot_arm"
SUMMARY = "a robot arm to a pose seen by redundant sensors: 12 equations for 6 joints"

A = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)
D = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)
TWIST = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)
"""Denavit–Hartenberg parameters a (m), d (m) and α (rad) of the UR5."""
REST = np.array([0.0, -1.2, 1.4, -1.7, -1.4, 0.0])
MARKERS = np.array([[0.06, 0.0, 0.02], [-0.05, 0.05, 0.02], [-0.05, -0.05, 0.02], [0, 0, 0.08]])
"""Places of the markers in the frame of the tool, in m."""


def joints(q: Any) -> list[Any]:
    """Return the frames of base and joints as 4×4 matrices, for symbols or numbers."""
    frames = [ca.DM.eye(4)]
    for i in range(6):
        c, s = ca.cos(q[i]), ca.sin(q[i])
        ct, st = float(np.cos(TWIST[i])), float(np.sin(TWIST[i]))
        rows = (
            (c, -s * ct, s * st, A[i] * c),
            (s, c * ct, -c * st, A[i] * s),
            (0, st, ct, D[i]),
            (0, 0, 0, 1),
        )
        link = ca.vertcat(*(ca.horzcat(*row) for row in rows))
        frames.append(frames[-1] @ link)
    return frames


def markers(q: Any) -> Any:
    """Return the places of the markers, one row each, in m."""
    tool = joints(q)[-1]
    places = ca.horzcat(ca.DM(MARKERS), ca.DM.ones(len(MARKERS))) @ tool.T
    return places[:, :3]


def task() -> Problem:
    """Return the problem; its parameters are the measured places of the markers."""
    q, p = ca.SX.sym("q", 6), ca.SX.sym("measured", 12)
    error = ca.vec(markers(q).T) - p
    rows = {f"marker {i + 1}": error[3 * i : 3 * i + 3] for i in range(len(MARKERS))}
    return Problem(x=q, p=p, f=0.5 * ca.sumsqr(q - ca.DM(REST)), h=rows, name=NAME)


def measured(q: np.ndarray, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Return what the sensors see of the markers at the posture q."""
    places = np.array(markers(ca.DM(q)).full()).ravel()
    return places + noise * np.random.default_rng(seed).standard_normal(12)


POSTURE = np.array([0.8, -0.9, 1.6, -2.0, -1.0, 0.5])
STRETCHED = np.array([0.8, -0.9, 1.6, -2.0, 0.0, 0.5])
NOISE = 2e-3
LIMITS = {"lbx": -np.pi, "ubx": np.pi}
"""Bounds on the joint angles, which only the default method takes."""
TIGHT = 1e-10
"""Where J_h loses rank, an error of ε in h leaves one of √ε in q, so h is solved to more than
:data:`reporting.TOL`: with 1e-6 the stretched wrist ends 0.03 rad off and the verifier says so."""


def methods(case: str) -> list[Method]:
    """Return the rows of a case; what is required of them is a KKT point."""
    required = case != "noisy"
    names = {
        "auto": AUTO,
        "look-ahead": "hybrid look-ahead",
        "matrix-lookahead": "hybrid matrix steps",
        "whitened": "hybrid whitened",
    }
    return [
        Method(f"{case}: {label}", name, required=required and name in ("auto", "look-ahead"))
        for name, label in names.items()
    ]


def judged(
    problem: Problem, p: np.ndarray, label: str, x: Any, lam: Any, **cost: Any
) -> dict[str, Any]:
    """Return the row of another solver."""
    report = verify(problem, np.array(x).ravel(), p=p, multipliers=np.array(lam).ravel(), tol=TOL)
    return {
        "method": label,
        "objective": report.f,
        "feasibility": report.feasibility.value if report.feasibility else np.inf,
        "stationarity": report.given.residuals.stationarity.value if report.given else np.inf,
        "accepted": report.accepted,
        "verdict": word(report),
        **cost,
    }


def rows_of(
    problem: Problem, p: np.ndarray, case: str, runs: Sequence[Run]
) -> list[dict[str, Any]]:
    """Return all rows of a case."""
    elastic = run_ipopt(problem, REST, p)
    plain, sleqp = (solve_with_peer(problem, REST, p, peer).row for peer in (IPOPT, SLEQP))
    return [
        *(run.row() for run in runs),
        {**plain, "method": f"{case}: IPOPT"},
        judged(
            problem, p, f"{case}: IPOPT, elastic form", elastic.x, elastic.multipliers,
            stopped=elastic.status, iterations=elastic.iterations, seconds=elastic.elapsed,
        ),
        {**sleqp, "method": f"{case}: SLEQP"},
    ]  # fmt: skip


def skeleton(q: np.ndarray) -> np.ndarray:
    """Return the origins of base, joints and tool, one row each, in m."""
    return np.array([frame[:3, 3].full().ravel() for frame in joints(ca.DM(q))])


def draw_arm(ax: Axes, q: np.ndarray, *, label: str, **style: Any) -> None:
    """Draw the arm as a line through its joints."""
    ax.plot(*skeleton(q).T, marker="o", label=label, **{"linewidth": 2.2, "markersize": 4, **style})


def empty_stage(p: np.ndarray) -> tuple[Figure, Any]:
    """Return a figure with the markers' target places in three dimensions."""
    fig, axes = figure(1, 1, height=4.0, width=5.0)
    axes[0, 0].remove()
    ax: Any = fig.add_subplot(projection="3d")
    ax.scatter(*p.reshape(-1, 3).T, color=PALETTE[1], marker="*", s=40, label="target of a marker")
    ax.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
    ax.set(xlim=(-0.8, 0.4), ylim=(-0.8, 0.4), zlim=(0.0, 0.8))
    ax.set(xticks=(-0.8, -0.4, 0.0, 0.4), yticks=(-0.8, -0.4, 0.0, 0.4), zticks=(0.0, 0.4, 0.8))
    # The label of the z axis would else be cut off at the right edge.
    ax.set_box_aspect((1.2, 1.2, 0.8), zoom=0.85)
    ax.view_init(elev=22, azim=-50)
    return fig, ax


def draw_postures(p: np.ndarray, q: np.ndarray) -> Figure:
    """Plot the arm at rest and at the target."""
    fig, ax = empty_stage(p)
    draw_arm(ax, REST, label="rest", color="#7F7F7F", linestyle="--")
    draw_arm(ax, q, label="solution", color=PALETTE[0])
    ax.legend(fontsize=8, loc="upper left")
    return fig


def draw_courses(runs: Mapping[str, Sequence[Run]]) -> Figure:
    """Plot the violation over the iterations."""
    fig, axes = figure(1, 1, height=3.0, width=5.0)
    ax = axes[0, 0]
    for i, (case, ran) in enumerate(runs.items()):
        course = np.maximum(ran[0].trace.feasibility, 1e-16)
        ax.semilogy(course, label=case, marker="os^"[i], markersize=4, **line_style(i))
    ax.set(xlabel=f"iteration of {AUTO}", ylabel="largest marker error (m)")
    ax.axhline(TOL, color="#7F7F7F", linewidth=0.9, linestyle=":")
    ax.legend(fontsize=9)
    return fig


def animate(p: np.ndarray, q: np.ndarray, path: Path) -> Path:
    """Write a motion from rest to the solution, at constant joint speed, as a GIF."""
    fig, ax = empty_stage(p)
    (arm,) = ax.plot([], [], [], "o-", color=PALETTE[0], linewidth=2.5, markersize=4)

    def frame(k: int) -> None:
        s = min(k / 30.0, 1.0)
        arm.set_data_3d(*skeleton(REST + s * (q - REST)).T)

    return save_animation(fig, frame, 40, path, interval=0.05)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when two targets are met and the noisy one is judged right, else 1."""
    arguments = parser(NAME, SUMMARY, budget=True).parse_args(argv)
    problem = task()
    targets = {
        "regular": measured(POSTURE),
        "stretched wrist": measured(STRETCHED),
        "noisy": measured(POSTURE, NOISE),
    }
    runs: dict[str, list[Run]] = {}
    rows: list[dict[str, Any]] = []
    budget = arguments.max_iter or (100 if arguments.short else 1000)
    for case, p in targets.items():
        runs[case] = [solve(problem, m, REST, p, max_iter=budget, tol=TIGHT) for m in methods(case)]
        limited = Method(f"{case}: {AUTO}, |q| ≤ π", "auto", required=case != "noisy")
        runs[case].append(solve(problem, limited, REST, p, max_iter=budget, tol=TIGHT, **LIMITS))
        rows += rows_of(problem, p, case, runs[case])
    noisy = runs["noisy"][0].result
    fit = least_squares(
        lambda q: measured(q) - targets["noisy"], POSTURE, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    solved = runs["regular"][0].result.x
    bent = runs["stretched wrist"][0].result.x
    wrist = Oracle(problem.functions, targets["stretched wrist"]).first(bent).B
    elastic = {
        case: next(r for r in rows if r["method"] == f"{case}: IPOPT, elastic form")
        for case in ("regular", "stretched wrist")
    }
    excess = max(runs[case][0].result.f - row["objective"] for case, row in elastic.items())
    required = [run for ran in runs.values() for run in ran if run.method.required]
    stuck = noisy.point.name == "INFEASIBLE_STATIONARY"
    films = []
    if not arguments.short:
        films.append(animate(targets["regular"], solved, arguments.output / "motion.gif"))
    return finish(
        arguments,
        (problem.n, problem.m),
        rows,
        {run.method.label: run.report for run in required},
        checks=[
            Check("objective above that of IPOPT's elastic form", excess, 1e-6),
            Check("noisy target not named an infeasible stationary point", float(not stuck), 0.0),
            Check("distance to SciPy's least-squares posture (rad)",
                  float(np.abs(fit.x - noisy.x).max()), 1e-6),
        ],
        facts={
            "smallest singular value of J, stretched wrist":
                float(np.linalg.svd(wrist, compute_uv=False)[-1]),
            "largest marker error of the noisy target (m)": noisy.residuals.feasibility,
        },
        figures={
            "posture": draw_postures(targets["regular"], solved),
            "convergence": draw_courses(runs),
        },
        files=films,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
