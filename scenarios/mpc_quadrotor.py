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
from pathlib import Path

import numpy as np
from animation import ROD, film
from closed_loop import WARM_IPOPT, Course, Loop, exact_step, finish_courses, run_all
from drawing import CIRCLES, LIMIT, draw_course, happening, limits, mark
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from quadrotor import ARM, HOVER, INERTIA, MASS, THRUST, TILT, clearance, rotors, scenery, vehicle
from reporting import parser
from solving import FATROP, SQP_CLIPPED

from casadi_hybrid.control import OptimalControl, Soft
from casadi_hybrid.plotting import PALETTE, figure, legend_below, line_style

NAME = "mpc_quadrotor"
SUMMARY = "closed loop: laps of a quadrotor past obstacles, a gust, wrong model and noise"

DT, FREE = 0.05, (-np.inf, np.inf)
DISCS = ((1.2, 2.0, 0.3), (-1.5, 0.8, 0.3))
LAP, CENTRE, AXES = 3.5, np.array([[0.0], [1.0]]), np.array([[2.0], [0.8]])
START = {"x": 2.0, "z": 1.0, "theta": 0.0, "vx": 0.0, "vz": 0.0, "omega": 0.0}
GUST_TIME, GUST = 5.0, np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0])


def lap(times) -> np.ndarray:
    """Return position (m) and velocity (m/s) of the reference, one column a time."""
    phase = 2 * np.pi / LAP * np.atleast_1d(times)
    position = CENTRE + AXES * np.vstack((np.cos(phase), np.sin(phase)))
    velocity = 2 * np.pi / LAP * AXES * np.vstack((-np.sin(phase), np.cos(phase)))
    return np.vstack((position, velocity))


def stage_cost(x, u, target):
    """Return ℓ(x, u), the target being position and velocity of the reference."""
    away = 20 * ((x[0] - target[0]) ** 2 + (x[1] - target[1]) ** 2)
    behind = (x[3] - target[2]) ** 2 + (x[4] - target[3]) ** 2
    push = (u[0] - HOVER) ** 2 + (u[1] - HOVER) ** 2
    return away + behind + 0.1 * (x[2] ** 2 + x[5] ** 2) + 0.02 * push


def experiment(intervals: int, steps: int) -> Loop:
    """Return the closed loop, which begins at rest."""
    model = vehicle(heights=FREE, tilt=np.inf)
    true = vehicle(1.08 * MASS, 1.2 * INERTIA, wind=-1.5, drag=0.2)
    ocp = OptimalControl(model, duration=intervals * DT, intervals=intervals, name=NAME)
    x, u = model.stacked("state"), model.stacked("control")
    target = ocp.reference("target", lap, 4)
    ocp.initial(**START)
    ocp.guess(**START)
    ocp.path("tilt", x[2], lower=-TILT, upper=TILT, soft=Soft(200, 2000), scale=0.1)
    for i, (a, b, radius) in enumerate(DISCS):
        square = ((x[0] - a) ** 2 + (x[1] - b) ** 2) / (radius + ARM) ** 2
        ocp.path(f"obstacle {i}", square, lower=1, soft=Soft(20, 20))
    end = stage_cost(x, [HOVER] * 2, target)
    ocp.minimize("cost", sum=DT * stage_cost(x, u, target), end=end)
    return Loop(
        ocp,
        exact_step(true, DT),
        start=np.array(list(START.values())),
        steps=steps,
        noise=np.array([0.005, 0.005, 0.005, 0.02, 0.02, 0.02]),
        cost=lambda k, x, u: DT * stage_cost(x, u, lap(DT * k)[:, 0]),
        violation=lambda x: max(0.0, -clearance(x[0], x[1], DISCS), abs(x[2]) - TILT),
        parameters=lambda k: {"time": DT * k},
        push={round(GUST_TIME / DT): GUST},
    )


def place(ax) -> None:
    """Draw the obstacles and the reference."""
    scenery(ax, DISCS, ())
    ax.set(xlim=(-3.0, 3.0), ylim=(-0.3, 2.6))
    ax.plot(*lap(np.linspace(0.0, LAP, 101))[:2], "k:", linewidth=1.2, label="reference")


def draw(courses: list[Course]) -> Figure:
    """Plot paths, pitch and our thrusts with their limits, and the distribution of solve times."""
    fig, axes = figure(4, 1, height=2.0, height_ratios=(1.5, 1, 1, 1))
    path, pitch, thrust, spent = axes[:, 0]
    place(path)
    instants = DT * np.arange(len(courses[0].states))
    for i, course in enumerate(courses):
        path.plot(course.states[:, 0], course.states[:, 1], label=course.label, **line_style(i))
        draw_course(pitch, instants, np.degrees(course.states[:, 2]), i)
        spent.ecdf(1e3 * course.seconds, **line_style(i))
    path.plot([], [], label="limit", **LIMIT)
    for row, width in zip(courses[0].inputs.T, (0.9, 1.6), strict=True):
        thrust.stairs(row, instants, baseline=None, color=PALETTE[0], linewidth=width)
    limits(pitch, *np.degrees([-TILT, TILT]))
    limits(thrust, *THRUST)
    mark((pitch, thrust), (GUST_TIME, "gust"), instants)
    pitch.set(xlabel="time (s)", ylabel="pitch $\\theta$ (°)")
    thrust.set(xlabel="time (s)", ylabel="hybrid, thrusts (N)\nthin: $u_1$, thick: $u_2$")
    spent.set(xscale="log", xlabel="time of a solve (ms)", ylabel="share of solves", ylim=(0, 1.02))
    spent.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    spent.xaxis.set_major_formatter("{x:g}")
    spent.xaxis.set_minor_formatter(NullFormatter())
    legend_below(fig, path, columns=6)
    return fig


def animate(course: Course, path: Path) -> Path:
    """Write the flight as a GIF in real time, with the planned path."""
    ax = figure(1, 1, height=3.2, width=5.0)[1][0, 0]
    place(ax)
    states, plans = course.states.T, course.plans
    plan = {"color": PALETTE[2], "linewidth": 1.4, "linestyle": "-."}
    moving = [
        (lambda k: lap(DT * k)[:2], CIRCLES | {"markersize": 6}),
        (lambda k: states[:2, : k + 1], {"color": PALETTE[0], "linewidth": 1.0}),
        (lambda k: (plans[k]["x"], plans[k]["z"]), plan),
        (lambda k: rotors(*states[:3, k]), ROD | {"linewidth": 3.0, "markersize": 4}),
    ]
    event = happening(GUST_TIME, "gust")
    return film(
        path, len(plans), DT, (ax, moving), clock=lambda k: f"{k * DT:4.2f} s{event(k * DT)}"
    )


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    loop = experiment(*((15, 8) if arguments.short else (30, 120)))
    courses = run_all(loop, WARM_IPOPT, FATROP, SQP_CLIPPED, short=arguments.short)
    ours = courses[0]
    behind = ours.states[-1, :2] - lap(DT * loop.steps)[:2, 0]
    return finish_courses(
        arguments,
        courses,
        facts={
            "distance to the reference at the end (m)": float(np.hypot(*behind)),
            "largest thrust (N)": float(ours.inputs.max()),
        },
        figures={"course": draw(courses)},
        films={"motion": lambda path: animate(ours, path)},
    )


if __name__ == "__main__":
    sys.exit(main())
