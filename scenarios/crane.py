"""Crane with an unknown load in the wind: estimator and controller in one loop.

A trolley on rails carries a load on a rope: position x, angle θ, force F of the drive, a load of
mass m, on which the wind pushes with w.

    x'' = (F − c x' + w sin²θ + m sin θ (g cos θ + L θ'²)) / (M + m sin²θ)
    L θ'' = (w/m − x'') cos θ − g sin θ

Only position and angle are measured, with noise, and a tenth of the measurements is lost. The
controller believes in 500 kg of load; the true mass is 1200 kg, a gust comes and goes, the rope is
longer and the friction larger than in the model. The load has to be at 10 m, later at 4 m, and
should not swing by more than 4°. One controller has four ways to know the state and m, w:
told all, moving-horizon estimation (`MHE`) or an extended Kalman filter (`EKF`) of states, mass and
wind, or told the true states alone.
"""

import sys

import casadi as ca
import numpy as np

from casadi_hybrid.control import EKF, MHE, MPC, Model, OptimalControl, Plant, Soft, simulate
from casadi_hybrid.verify import verify

SWAY, PERIOD, MASS = np.radians(4.0), 0.25, 1200.0  # rad, s, kg
NOISE = {"position": 0.01, "angle": np.radians(0.1)}  # m, rad
PROCESS = {"position": 1e-3, "speed": 1e-2, "angle": 1e-4, "turn": 2e-3}
PRIOR = {"position": 0.02, "speed": 0.05, "angle": 0.01, "turn": 0.01}
UNKNOWN = {"mass": {"std": 500, "lower": 100, "upper": 3000, "scale": 1e3, "drift": 1},
           "wind": {"std": 50, "lower": -1e3, "upper": 1e3, "scale": 100, "drift": 40}}  # fmt: skip
EXPECTED = {"noise": NOISE, "process": PROCESS, "prior": PRIOR, "free": UNKNOWN}
EXPERIMENT = {"steps": 200, "x0": np.zeros(4), "process_noise": {"speed": 3e-3, "turn": 5e-4}}
TRUTH = {"mass": MASS, "wind": lambda time: 300.0 * (10 <= time < 40),
         "rope": 6.2, "friction": 70.0}  # fmt: skip


def crane() -> Model:
    model = Model("crane")
    x = model.state("position", unit="m")
    v = model.state("speed", lower=-1.5, upper=1.5, unit="m/s")
    angle = model.state("angle", lower=-SWAY, upper=SWAY, scale=0.1, unit="rad")
    turn = model.state("turn", scale=0.1, unit="rad/s")
    force = model.control("force", lower=-1200.0, upper=1200.0, scale=500.0, unit="N")
    mass, rope = model.parameter("mass", 500, unit="kg", scale=1e3), model.parameter("rope", 6)
    wind, friction = model.parameter("wind", 0, scale=1e2), model.parameter("friction", 50)
    sine, cosine = ca.sin(angle), ca.cos(angle)
    pull = mass * sine * (9.81 * cosine + rope * turn**2) + wind * sine**2
    a = (force - friction * v + pull) / (400.0 + mass * sine**2)
    swing = ((wind / mass - a) * cosine - 9.81 * sine) / rope
    model.rates(position=v, speed=a, angle=turn, turn=swing)
    model.output("load", x + rope * sine, unit="m")
    return model


def costs(model: Model) -> tuple[ca.SX, ca.SX]:
    """Return the costs of a period: distance to 10 m, later to 4 m, and motion."""
    load, turn, force = (model.symbol(name) for name in ("load", "turn", "force"))
    error = load - 10.0 * (model.time >= 2.0) + 6.0 * (model.time >= 30.0)
    return (error / 10) ** 2, 4 * turn**2 + 1e-9 * force**2


def problem(intervals: int = 32) -> OptimalControl:
    model = crane()
    ocp = OptimalControl(model, duration=intervals * PERIOD, intervals=intervals)
    ocp.initial(position=0.0, speed=0.0, angle=0.0, turn=0.0)
    place, motion = costs(model)
    ocp.minimize("cost", sum=place + motion, end=10 * place + 0.1 * model.symbol("speed") ** 2)
    ocp.soften("angle", Soft(linear=3.0 / SWAY))
    ocp.soften("speed", Soft(linear=3.0))
    return ocp


def main() -> bool:
    """Simulate, check and draw; return True if all is solved and estimation pays."""
    ocp, model = problem(), crane().unlimited(("speed", "angle"))
    report = verify(ocp, ocp.solve())
    print(report, end="\n\n")
    mhe = MHE(model, PERIOD, 10, outputs=[*NOISE], **EXPECTED)
    ekf = EKF(model, PERIOD, outputs=[*NOISE], **EXPECTED)
    ways = {"told all": (None, lambda time: {"mass": MASS, "wind": TRUTH["wind"](time)}),
            "MHE": (mhe, lambda time: mhe.parameters), "EKF": (ekf, lambda time: ekf.parameters),
            "told states alone": (None, lambda time: {})}  # fmt: skip
    runs, true, mpc = {}, crane(), MPC(ocp)
    for label, (estimator, parameters) in ways.items():
        sensors = {"noise": NOISE, "dropout": 0.1} if estimator else {}
        plant = Plant(true, PERIOD, outputs=[*NOISE] if estimator else None, parameters=TRUTH)
        runs[label] = run = simulate(plant, mpc, estimator, cost=sum(costs(true)),
                                     parameters=parameters, **sensors, **EXPERIMENT)  # fmt: skip
        print(f"{label}: cost {run.cost:.3f}, {run.failed} steps not solved, {run.worst}")
    print(runs["MHE"].estimation_error())
    runs["MHE"].plot(["load", "angle", "force", "mass", "wind"], path="crane.png")
    told, moving, _, blind = (run.cost if run.failed == 0 else np.inf for run in runs.values())
    return report.accepted and moving < min(1.1 * told, blind)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
