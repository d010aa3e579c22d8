"""Small launcher with two stages into a low orbit: boost, coast, insertion.

Planar flight over a round planet that does not turn: altitude h, way along the ground φ, radial
and tangential speed v_r and v_t, mass m; thrust T, its angle γ above the horizon, exhaust speed w.

    h' = v_r,   φ' = v_t/(R + h),   m' = −T/w,   D = ½ ρ₀ exp(−h/H) c_D A |v|²
    v_r' = v_t²/(R + h) − μ/(R + h)² + (T sin γ)/m − (D/m) v_r/|v|
    v_t' = −v_r v_t/(R + h) + (T cos γ)/m − (D/m) v_t/|v|

The program begins after a vertical rise of 200 m. The first stage burns all its propellant in a
fixed time and is dropped: the mass jumps. The second stage coasts for a free time, burns for a free
time, and has to reach a circular orbit at 400 km with as much mass left as possible. Dynamic
pressure stays below 30 kPa, and γ changes by at most 1°/s, with a small penalty.

Three phases, each with its own model, form one program (`Phases`). The method is Radau collocation
of degree 3 on 30 intervals a phase. The guess is straight lines between rough states at their ends.
"""

import sys

import casadi as ca
import numpy as np

from casadi_hybrid.control import Collocation, Free, Model, OptimalControl, Phases
from casadi_hybrid.verify import verify

RADIUS, GRAVITY, DENSITY, HEIGHT = 6.371e6, 3.986e14, 1.225, 7.2e3  # m, m³/s², kg/m³, m
ORBIT, PRESSURE, DROPPED = 4.0e5, 3.0e4, 1500.0  # m, Pa, kg of the empty first stage
DURATIONS = (142.0, Free(150.0, 1.0, 900.0), Free(190.0, 50.0, 300.0))  # s
STAGES = {"boost": (4.2e5, 2900.0, 1.0), "coast": (0.0, 1.0, 0.0), "insertion": (6e4, 3150.0, 0.0)}
"""Thrust (N), exhaust speed (m/s) and drag area c_D A (m²)."""
NAMES = ("altitude", "way", "up", "along", "mass", "angle")
ENDS = np.array([[200.0, 0.0, 40.0, 0.0, 2.7e4, np.pi / 2], [6e4, 0.01, 1e3, 2e3, 6e3, 0.4],
                 [1.5e5, 0.06, 5e2, 2e3, 4.5e3, 0.2], [ORBIT, 0.4, 0, 7.8e3, 1e3, 0]])  # fmt: skip
"""Rough states at the ends of the phases."""


def stage(name: str, thrust: float, exhaust: float, area: float) -> Model:
    """Return the flight on one stage."""
    model = Model(name)
    h = model.state("altitude", lower=0.0, scale=1e5, unit="m")
    model.state("way", scale=0.1, unit="rad")
    up = model.state("up", scale=1e3, unit="m/s")
    along = model.state("along", scale=1e3, unit="m/s")
    m = model.state("mass", lower=100.0, scale=1e4, unit="kg")
    angle = model.state("angle", lower=-1.8, upper=1.8, unit="rad")
    degree = np.radians(1)
    turn = model.control("turn", lower=-degree, upper=degree, scale=0.01, unit="rad/s")
    r, push = RADIUS + h, thrust / m
    pressure = 0.5 * DENSITY * ca.exp(-h / HEIGHT) * (up**2 + along**2)
    drag = area * pressure / m / ca.sqrt(up**2 + along**2 + 1.0)
    lift = along**2 / r - GRAVITY / r**2 + push * ca.sin(angle) - drag * up
    forward = -up * along / r + push * ca.cos(angle) - drag * along
    burnt = thrust / exhaust
    model.rates(altitude=up, way=along / r, up=lift, along=forward, mass=-burnt, angle=turn)
    model.output("pressure", pressure, unit="Pa")
    return model


def problem(intervals: int = 30) -> Phases:
    """Return the flight in three phases."""
    phases = {}
    for i, (name, numbers) in enumerate(STAGES.items()):
        phase = OptimalControl(stage(name, *numbers), duration=DURATIONS[i],
                               intervals=intervals, method=Collocation(3, inner=7))  # fmt: skip
        begin, end = (dict(zip(NAMES, ENDS[k], strict=True)) for k in (i, i + 1))
        if name == "coast":
            end["mass"] = begin["mass"] = 4500.0
        phase.guess({key: np.linspace(begin[key], end[key], intervals + 1) for key in NAMES})
        phase.minimize("smooth", integral=1e-5 * (phase.model.symbol("turn") / 0.01) ** 2)
        phases[name] = phase
    boost, _, last = phases.values()
    boost.initial(dict(zip(NAMES, ENDS[0], strict=True)))
    boost.path("pressure", boost.model.symbol("pressure"), upper=PRESSURE, scale=1e4, unit="Pa")
    last.final(altitude=ORBIT, up=0.0)
    speed = ca.sqrt(GRAVITY / (RADIUS + last.model.symbol("altitude")))
    last.at_end("circular", last.model.symbol("along") - speed, equal=0.0, scale=1e3)
    last.minimize("mass", end=-last.model.symbol("mass") / 1e3)
    flight = Phases(phases, name="launcher")
    flight.jump("coast", mass=boost.model.symbol("mass") - DROPPED)
    return flight


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    flight = problem()
    solution = flight.solve()
    print(solution, end="\n\n")
    report = verify(flight, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report, end="\n\n")
    print(f"mass in orbit {solution['insertion']['mass'][-1]:.1f} kg")
    saved = 1e3 * float(solution.links["mass from boost to coast"][0])
    print(f"mass in orbit for a kilogram less of empty first stage: {saved:.3f} kg")
    solution.plot(["altitude", "up", "along", "mass", "angle", "pressure"], path="launcher.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
