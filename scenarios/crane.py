"""A crane that knows neither its load nor the wind: estimator and controller in one loop.

A trolley on rails carries a load on a rope: position x, angle θ, force F of the drive, a load of
mass m, on which the wind pushes with w.

    x'' = (F − c x' + w sin²θ + m sin θ (g cos θ + L θ'²)) / (M + m sin²θ)
    L θ'' = (w/m − x'') cos θ − g sin θ

Only position and angle are measured, with noise, and a tenth of the measurements is lost. No speed
is measured, the mass is believed to be 500 kg and is 1200 kg, a gust comes and goes, the rope is
longer and the friction larger than the model says. The load has to be at one place, then at
another, which the controller knows a horizon ahead, and should not swing by more than 4°.

One cost and one predictive controller, four ways to know the state and the parameters m, w:

- told: the true state, mass and wind;
- MHE: moving-horizon estimation of states, mass and wind;
- EKF: an extended Kalman filter of the same, with the same covariances;
- told the true states alone: the mass as believed, no wind.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np
from closed_loop import KeptMHE, Solves, rms, work
from drawing import draw_courses, panels, relabelled
from matplotlib.figure import Figure
from reporting import TOL, Check, parser, progress, table
from solving import finish_answers, solve_with_all

from casadi_hybrid.control import EKF, MPC, Model, OptimalControl, Plant, Soft, simulate
from casadi_hybrid.utils.output.plotting import PALETTE

NAME = "crane"
SUMMARY = "a crane with an unknown load in the wind: estimator and controller in one loop"

TROLLEY, GRAVITY = 400.0, 9.81
"""Mass of the trolley in kg, gravity in m/s²."""
SWAY = float(np.radians(4.0))
"""By how much the load may swing."""
FASTEST = 1.5
"""Speed of the trolley in m/s."""
PERIOD = 0.25
"""Of the samples, in s."""
BELIEVED, TRUE = 500.0, 1200.0
"""Mass of the load in kg."""
NOISE = {"position": 0.01, "angle": float(np.radians(0.1))}
"""Standard deviations of what is measured, m and rad."""
PROCESS = {"position": 1e-3, "speed": 1e-2, "angle": 1e-4, "turn": 2e-3}
"""The same of the disturbance in a period that the estimators expect."""
PRIOR = {"position": 0.02, "speed": 0.05, "angle": 0.01, "turn": 0.01}
UNKNOWN = {
    "mass": {"std": 500.0, "lower": 100.0, "upper": 3000.0, "scale": 1e3, "drift": 1.0},
    "wind": {"std": 50.0, "lower": -1e3, "upper": 1e3, "scale": 1e2, "drift": 40.0},
}
"""What the estimators are told of the unknown parameters."""
MISMATCH = {"rope": 6.2, "friction": 70.0}


def gust(time: float) -> float:
    """Return the force of the wind in N."""
    return 300.0 if 10.0 <= time < 40.0 else 0.0


def crane() -> Model:
    """Return the crane as the controller knows it."""
    model = Model(NAME)
    model.state("position", unit="m")
    v = model.state("speed", lower=-FASTEST, upper=FASTEST, unit="m/s")
    angle = model.state("angle", lower=-SWAY, upper=SWAY, scale=0.1, unit="rad")
    turn = model.state("turn", scale=0.1, unit="rad/s")
    force = model.control("force", lower=-1200.0, upper=1200.0, scale=500.0, unit="N")
    mass = model.parameter("mass", BELIEVED, unit="kg", scale=1e3)
    wind = model.parameter("wind", 0.0, unit="N", scale=1e2)
    rope = model.parameter("rope", 6.0, unit="m")
    friction = model.parameter("friction", 50.0, unit="N s/m")
    sine, cosine = ca.sin(angle), ca.cos(angle)
    push = mass * sine * (GRAVITY * cosine + rope * turn**2) + wind * sine**2
    a = (force - friction * v + push) / (TROLLEY + mass * sine**2)
    swing = ((wind / mass - a) * cosine - GRAVITY * sine) / rope
    model.rates(position=v, speed=a, angle=turn, turn=swing)
    model.output("load", model.symbol("position") + rope * sine, unit="m")
    return model


def target(time: Any) -> Any:
    """Return where the load has to be, in m."""
    return 10.0 * (time >= 2.0) - 6.0 * (time >= 30.0)


def stage(model: Model) -> dict[str, Any]:
    """Return what every period costs, in the plan and in the loop."""
    return {
        "place": ((model.symbol("load") - target(model.time)) / 10.0) ** 2,
        "swing": 0.04 * (model.symbol("turn") / 0.1) ** 2,
        "effort": 1e-3 * (model.symbol("force") / 1e3) ** 2,
    }


def problem(intervals: int) -> OptimalControl:
    """Return what the controller solves; the limits of speed and sway are soft."""
    model = crane()
    ocp = OptimalControl(model, duration=intervals * PERIOD, intervals=intervals, name=NAME)
    ocp.initial(position=0.0, speed=0.0, angle=0.0, turn=0.0)
    for name, cost in stage(model).items():
        ocp.minimize(name, sum=cost)
    ocp.minimize("end", end=10.0 * stage(model)["place"] + 0.1 * model.symbol("speed") ** 2)
    ocp.soften("angle", Soft(linear=3.0 / SWAY))
    ocp.soften("speed", Soft(linear=3.0))
    return ocp


def closed(
    label: str, mpc: MPC, steps: int, known: Callable[[float], Any], estimator: Any = None
) -> Solves:
    """Return the closed loop with a way to know; all have the same disturbances.

    ``known`` says at a time what the parameters of the controller's model are.
    """
    progress(f"{NAME}: {steps} steps, {label} ...")
    model, seen = crane(), {} if estimator is None else {"noise": NOISE, "dropout": 0.1}
    plant = Plant(model, PERIOD, outputs=list(NOISE) if seen else None,
                  parameters={"mass": TRUE, "wind": gust, **MISMATCH})  # fmt: skip
    run = simulate(plant, mpc, estimator, steps=steps, x0=np.zeros(4), **seen,
                   process_noise={"speed": 3e-3, "turn": 5e-4}, cost=stage(model),
                   parameters=known)  # fmt: skip
    return Solves.of(label, run)


def row(way: Solves, estimator: Any) -> dict[str, Any]:
    """Return the row of a way to know state and parameters; None is told them."""
    run, row = way.run, way.row()
    row["sway"] = np.degrees(np.nanmax(run.violations["angle"]))
    row["over"] = 1e3 * np.nanmax(run.violations["speed"])
    if estimator is not None:
        error = run.estimation_error()
        row |= {"speed": 1e3 * rms(error["speed"]), "angle": np.degrees(rms(error["angle"]))}
        row |= {"wind": rms(error["wind"]), "mass": error["mass"][-1]}
        row |= {f"of {key}": value for key, value in work(estimator.records).items()}
    return row


COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("method", "state and parameters", str),
    ("cost", "cost", "{:.3f}".format),
    ("sway", "sway over (°)", "{:.2f}".format),
    ("over", "speed over (mm/s)", "{:.1f}".format),
    ("speed", "speed rmse (mm/s)", "{:.1f}".format),
    ("angle", "angle (°)", "{:.3f}".format),
    ("wind", "wind (N)", "{:.1f}".format),
    ("mass", "mass at end (kg)", "{:+.1f}".format),
    ("mean_iterations", "MPC iter", "{:.1f}".format),
    ("median_ms", "(ms)", "{:.1f}".format),
    ("of mean_iterations", "estimator iter", "{:.1f}".format),
    ("of median_ms", "(ms)", "{:.1f}".format),
)


def draw(told: Solves, mhe: Solves, ekf: Solves, believed: Solves) -> dict[str, Figure]:
    """Plot the loop with the MHE beside two others; mass and wind: truth and both estimates."""
    colours = PALETTE[0], PALETTE[2], PALETTE[3]  # black is that of the estimate
    loop = draw_courses([mhe, told, believed], ("load", "angle", "speed", "force"),
                        soft=["angle", "speed"], colours=colours)  # fmt: skip
    loop.suptitle(f"MHE: {mhe.run.worst}", fontsize=10)
    at, load = mhe.run.control_times, panels(loop)["load"]
    load.step(at, [target(time) for time in at], where="post", color=PALETTE[6], label="target")
    relabelled(loop)
    fig = mhe.run.plot(["mass", "wind"])
    for name, ax in panels(fig).items():
        ax.plot(at, ekf.run[name], color=PALETTE[5], label=ekf.label)
    return {"loop": loop, "parameters": relabelled(fig)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when all is solved and estimation pays, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    intervals, window, steps = (16, 6, 52) if arguments.short else (32, 10, 200)
    ocp = problem(intervals)
    # SQP and the others are compared in other scenarios.
    answers = solve_with_all(ocp)
    # The limits that the controller keeps are not believed in.
    model = crane().unlimited(("speed", "angle"))
    expected = {"outputs": list(NOISE), "noise": NOISE, "process": PROCESS, "prior": PRIOR}
    mhe = KeptMHE(model, PERIOD, window, free=UNKNOWN, **expected)
    ekf = EKF(model, PERIOD, free=UNKNOWN, **expected)
    mpc = MPC(ocp)
    ways = (
        ("told all", lambda t: {"mass": TRUE, "wind": gust(t)}, None),
        ("MHE", lambda t: mhe.parameters, mhe),
        ("EKF", lambda t: ekf.parameters, ekf),
        ("told the states, mass as believed", lambda t: {}, None),
    )
    loops = [closed(label, mpc, steps, *way) for label, *way in ways]
    told, moving, filtered, believed = (loop.run.cost for loop in loops)
    rows = [row(loop, estimator) for loop, (*_, estimator) in zip(loops, ways, strict=True)]
    plans = max(loop.residuals.max() for loop in loops)
    windows = Solves("", mhe.windows, ()).residuals.max()
    return finish_answers(
        arguments,
        answers,
        checks=[
            Check("largest KKT residual of the plans", plans, TOL),
            Check("largest KKT residual of the windows", windows, TOL),
            Check("cost with MHE over cost when told", moving / told, 1.1),
            Check("cost with MHE over cost with states alone", moving / believed, 1.0),
        ],
        facts={
            "lost measurements of the MHE": int(np.isnan(loops[1].run.measured["angle"]).sum()),
            "cost with MHE over cost with EKF": moving / filtered,
        },
        tables={"closed loop": table(rows, COLUMNS)},
        figures=draw(*loops),
    )


if __name__ == "__main__":
    sys.exit(main())
