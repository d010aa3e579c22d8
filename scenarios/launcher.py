"""A small launcher with two stages into a low orbit: boost, coast, insertion.

Planar flight over a round planet that does not turn: altitude h, way along the ground φ, radial
and tangential speed v_r and v_t, mass m; thrust T, its angle γ above the horizon, exhaust speed w.

    h' = v_r,   φ' = v_t/(R + h),   m' = −T/w,   D = ½ ρ₀ exp(−h/H) c_D A |v|²
    v_r' = v_t²/(R + h) − μ/(R + h)² + (T sin γ)/m − (D/m) v_r/|v|
    v_t' = −v_r v_t/(R + h) + (T cos γ)/m − (D/m) v_t/|v|

The first stage rises 200 m straight up before this program begins, burns all its propellant (a
fixed time at full thrust) and is dropped: the mass jumps. The second stage coasts for a time that
is free, burns for a time that is free, and has to reach a circular orbit at 400 km with as much
mass left as possible; a small price on turning keeps the angle defined where no thrust asks for
one. Dynamic pressure stays below 30 kPa and the angle of thrust changes by at
most 1°/s.

Three phases in one program, each with its own model; states of the same name go on, but the mass.
Radau collocation of degree 3. The start is naive: straight lines between rough guesses of the
state at the ends of the phases.
"""

import sys
from collections.abc import Sequence

import casadi as ca
import numpy as np
from reporting import parser
from solving import finish_answers, solve_with_all

from casadi_hybrid.control import Collocation, Free, Model, OptimalControl, Phases

NAME = "launcher"
SUMMARY = "a launcher with two stages into a low orbit, in three phases"

RADIUS, GRAVITY, DENSITY, HEIGHT = 6.371e6, 3.986e14, 1.225, 7.2e3
"""Radius (m) and gravity (m³/s²) of the planet, density at the ground (kg/m³), its scale (m)."""
ORBIT, PRESSURE = 4.0e5, 3.0e4
"""Altitude of the orbit in m, largest dynamic pressure in Pa."""
DROPPED = 1500.0
"""Mass of the empty first stage in kg."""


def stage(name: str, thrust: float, exhaust: float, area: float) -> Model:
    """Return the flight on a stage; ``area`` is c_D A."""
    model = Model(name)
    h = model.state("altitude", lower=0.0, scale=1e5, unit="m")
    model.state("way", scale=0.1, unit="rad")
    up = model.state("up", scale=1e3, unit="m/s")
    along = model.state("along", scale=1e3, unit="m/s")
    m = model.state("mass", lower=100.0, scale=1e4, unit="kg")
    angle = model.state("angle", lower=-1.8, upper=1.8, unit="rad")
    turn = model.control("turn", lower=-np.radians(1), upper=np.radians(1), scale=0.01,
                         unit="rad/s")  # fmt: skip
    r = RADIUS + h
    pressure = 0.5 * DENSITY * ca.exp(-h / HEIGHT) * (up**2 + along**2)
    push = thrust / m
    drag = area * pressure / m / ca.sqrt(up**2 + along**2 + 1.0)
    model.rates(
        altitude=up,
        way=along / r,
        up=along**2 / r - GRAVITY / r**2 + push * ca.sin(angle) - drag * up,
        along=-up * along / r + push * ca.cos(angle) - drag * along,
        mass=-thrust / exhaust,
        angle=turn,
    )
    model.output("pressure", pressure, unit="Pa")
    return model


STAGES = {"boost": (4.2e5, 2900.0, 1.0), "coast": (0.0, 1.0, 0.0), "insertion": (6e4, 3150.0, 0.0)}
"""Thrust (N), exhaust speed (m/s) and drag area c_D A (m²)."""
CORNERS = (
    {"altitude": 200.0, "way": 0.0, "up": 40.0, "along": 0.0, "mass": 2.7e4, "angle": np.pi / 2},
    {"altitude": 6e4, "way": 0.01, "up": 1e3, "along": 2e3, "mass": 6e3, "angle": 0.4},
    {"altitude": 1.5e5, "way": 0.06, "up": 5e2, "along": 2e3, "mass": 4.5e3, "angle": 0.2},
    {"altitude": ORBIT, "way": 0.4, "up": 0.0, "along": 7.8e3, "mass": 1e3, "angle": 0.0},
)
"""Rough guesses of the state at the ends of the phases."""


def launch(intervals: int) -> Phases:
    durations = (142.0, Free(150.0, 1.0, 900.0), Free(190.0, 50.0, 300.0))
    parts = {}
    for i, (name, numbers) in enumerate(STAGES.items()):
        part = OptimalControl(stage(name, *numbers), duration=durations[i], intervals=intervals,
                              method=Collocation(3))  # fmt: skip
        ends = {key: (CORNERS[i][key], CORNERS[i + 1][key]) for key in CORNERS[i]}
        if name == "coast":
            ends["mass"] = (CORNERS[2]["mass"], CORNERS[2]["mass"])
        part.guess({key: np.linspace(a, b, intervals + 1) for key, (a, b) in ends.items()})
        part.minimize("smooth", integral=1e-5 * (part.model.symbol("turn") / 0.01) ** 2)
        parts[name] = part
    boost, _, last = parts.values()
    boost.initial(CORNERS[0])
    boost.path("pressure", boost.model.symbol("pressure"), upper=PRESSURE, scale=1e4, unit="Pa")
    h, m = last.model.symbol("altitude"), last.model.symbol("mass")
    last.final(altitude=ORBIT, up=0.0)
    speed = last.model.symbol("along") - ca.sqrt(GRAVITY / (RADIUS + h))
    last.at_end("circular", speed, equal=0.0, scale=1e3)
    last.minimize("mass", end=-m / 1e3)
    flight = Phases(parts, name=NAME)
    flight.jump("coast", mass=boost.model.symbol("mass") - DROPPED)
    return flight


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    # SQP and Uno do not end within minutes here.
    answers = solve_with_all(launch(10 if arguments.short else 30))
    ours = answers[0].solution
    last = ours["insertion"]
    return finish_answers(
        arguments,
        answers,
        facts={
            "mass in orbit (kg)": float(last["mass"][-1]),
            "coast (s)": ours["coast"].duration,
            "insertion (s)": last.duration,
            "largest dynamic pressure (kPa)": float(ours["boost"]["pressure"].max()) / 1e3,
            "mass in orbit for a kilogram less of empty first stage (kg)": 1e3
            * float(ours.links["mass from boost to coast"][0]),
        },
        figures={"flight": ours.plot(["altitude", "up", "along", "mass", "angle", "pressure"])},
    )


if __name__ == "__main__":
    sys.exit(main())
