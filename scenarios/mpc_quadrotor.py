"""Predictive control of a planar quadrotor on laps past obstacles, with wind, wrong model, noise.

The vehicle of :mod:`quadrotor` starts at rest and follows laps of 3.5 s on an ellipse that cuts
through the surroundings of two round obstacles; at 5 s a gust adds 2 m/s upwards. The
controller believes in the nominal vehicle without air. The true one is 8 % heavier, its inertia
is 20 % larger, and the air of a wind of −1.5 m/s drags with 0.2 N·s/m. Sensors err by 5 mm,
5 mrad, 2 cm/s and 20 mrad/s (standard deviations).

Every 50 ms the controller looks N = 30 intervals of constant thrust (1.5 s) ahead, with the
position r and the velocity r' of the lap:

    minimize    Σ_k dt·ℓ_k(x_k, u_k) + ℓ_N(x_N, u_hover) + 20 Σ_k (Σ_i (s_ki + s_ki²) + a_k + a_k²)
                ℓ = 20 ‖(x, z) − r‖² + ‖(x', z') − r'‖² + 0.1 (θ² + θ'²) + 0.02 ‖u − u_hover‖²
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  0.5 N ≤ u_k ≤ 8 N,
                |θ_k| ≤ 60° + 0.1 a_k,  |(x, z)_k − c_i|² ≥ (r_i + l)² (1 − s_ki),  s_ki, a_k ≥ 0

with one Runge–Kutta step of order four as F. Tilt and distance are soft: noise and gust may carry
the vehicle across a limit, where hard ones leave no feasible plan. The first solve starts from
hovering at the first place, the later ones from the last solution, shifted by one interval.
"""

import sys

import casadi as ca
import numpy as np
from closed_loop import Solves, finish_courses, run_all
from drawing import SOFT, draw_courses, solver_style
from matplotlib.figure import Figure
from quadrotor import HOVER, TILT, avoid, gaps, scenery, vehicle
from reporting import parser

from casadi_hybrid.control import OptimalControl, Plant, Soft
from casadi_hybrid.utils.output.plotting import figure, legend_below

NAME = "mpc_quadrotor"
SUMMARY = "closed loop: laps of a quadrotor past obstacles, a gust, wrong model and noise"

DT, FREE = 0.05, (-np.inf, np.inf)
DISCS = ((1.2, 2.0, 0.3), (-1.5, 0.8, 0.3))
LAP, CENTRE, AXES = 3.5, np.array([[0.0], [1.0]]), np.array([[2.0], [0.8]])
START = {"x": 2.0, "z": 1.0, "theta": 0.0, "vx": 0.0, "vz": 0.0, "omega": 0.0}
EVENT, GUST = (5.0, "gust"), {"vz": 2.0}


def lap(times) -> np.ndarray:
    """Return position (m) and velocity (m/s) of the reference, one column a time."""
    phase = 2 * np.pi / LAP * np.atleast_1d(times)
    position = CENTRE + AXES * np.vstack((np.cos(phase), np.sin(phase)))
    velocity = 2 * np.pi / LAP * AXES * np.vstack((-np.sin(phase), np.cos(phase)))
    return np.vstack((position, velocity))


def stage_cost(body, u, target):
    """Return ℓ(x, u), the target being position and velocity of the reference."""
    x = body.stacked("state")
    away = 20 * ca.sumsqr(x[:2] - target[:2]) + ca.sumsqr(x[3:5] - target[2:])
    return away + 0.1 * (x[2] ** 2 + x[5] ** 2) + 0.02 * ca.sumsqr(u - HOVER)


def courses(intervals: int, steps: int, *, short: bool) -> list[Solves]:
    model = vehicle(heights=FREE, tilt=np.inf)
    true = vehicle(1.08, 1.2, wind=-1.5, drag=0.2, heights=FREE)
    ocp = OptimalControl(model, duration=intervals * DT, intervals=intervals, name=NAME)
    target, u = ocp.reference("target", lap, 4), model.symbol("u")
    ocp.initial(**START)
    ocp.guess(**START)
    tilt = Soft(200, 2000)
    ocp.path("tilt", model.symbol("theta"), lower=-TILT, upper=TILT, soft=tilt, scale=0.1)
    avoid(ocp, DISCS, soft=Soft(20, 20))
    end = stage_cost(model, HOVER, target)
    ocp.minimize("cost", sum=DT * stage_cost(model, u, target), end=end)
    true.output("clearance", ca.vertcat(*gaps(true.symbol("x"), true.symbol("z"), DISCS)))
    price = stage_cost(true, true.symbol("u"), true.reference("target", lap, 4))
    return run_all(
        ocp,
        Plant(true, DT),
        short=short,
        steps=steps,
        x0=START,
        noise=[0.005, 0.005, 0.005, 0.02, 0.02, 0.02],
        cost=DT * price,
        limits={"clearance": (0, None)},
        push=lambda k, t, x: GUST if k == round(EVENT[0] / DT) else None,
    )


def draw(courses: list[Solves]) -> Figure:
    fig, ((ax,),) = figure(height=3.0)
    scenery(ax, DISCS, (), SOFT)
    ax.set(xlim=(-3.0, 3.0), ylim=(-0.3, 2.6))
    ax.plot(*lap(np.linspace(0.0, LAP, 101))[:2], "k:", linewidth=1.2, label="reference")
    ax.plot([], [], **SOFT, label="soft limit")
    for i, course in enumerate(courses):
        ax.plot(course.run["x"], course.run["z"], label=course.label, **solver_style(i))
    legend_below(fig, ax, columns=4)
    return fig


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    size = (15, 8) if arguments.short else (30, 120)
    found = courses(*size, short=arguments.short)
    run = found[0].run
    behind = run.states[:2, -1] - lap(run.times[-1])[:2, 0]
    return finish_courses(
        arguments,
        found,
        facts={"distance to the reference at the end (m)": float(np.hypot(*behind))},
        figures={
            "path": draw(found),
            "course": draw_courses(found, ("vz", "theta"), EVENT, soft=["theta"]),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
