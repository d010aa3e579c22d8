"""The fastest flying lap of a race car with sliding tyres on a closed circuit.

The way s along the centre line (curvature κ_c) is the independent variable. The car is a single
track with mass m, inertia J and axles at l_f, l_r: offset n and heading χ to the centre line,
speeds v_x, v_y, yaw rate r, steering angle δ. Its inputs are the rate of δ and the force of engine
and brakes F (engine on the rear axle, brakes on both by a fixed share).

    s' = (v_x cos χ − v_y sin χ)/(1 − n κ_c),  n' = v_x sin χ + v_y cos χ,  χ' = r − κ_c s'
    m (v_x' − v_y r) = F − F_f sin δ − c v_x²,  m (v_y' + v_x r) = F_r + F_f cos δ
    J r' = l_f F_f cos δ − l_r F_r,  F_i = μ N_i sin(C arctan(B α_i)) √(1 − (X_i/(μ N_i))²)
    α_f = δ − arctan((v_y + l_f r)/v_x),  α_r = −arctan((v_y − l_r r)/v_x)

all divided by s', so that dt = ds/s'. X_i is the share of F on an axle, N_i its constant load. The
limits are the track's width, the power of the engine, X_i ≤ 0.95 μ N_i and slips |α_i| ≤ 9°. Every
state but the time ends as it began: the lap is a flying one, and where it begins makes no
difference.

Radau collocation of degree 2. The start is naive: 15 m/s along the centre line.

Tyres: H. B. Pacejka, "Tyre and Vehicle Dynamics", Elsevier 2006 (the magic formula, here in its
simplest form). The circuit and the numbers of the car are made up.
"""

import sys
from collections.abc import Sequence

import casadi as ca
import numpy as np
from drawing import CIRCLES, LIMIT, compare
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from reporting import parser
from solving import finish_answers, solve_with_all

from casadi_hybrid.control import Collocation, Model, OptimalControl, Solution
from casadi_hybrid.utils.output.plotting import figure, legend

NAME = "race_car"
SUMMARY = "the fastest flying lap of a race car with sliding tyres on a closed circuit"

TERMS = np.array(
    [[150.0, 0, 0, 75.0], [-21.0, 1.0, 7.0, -13.0], [13.0, 12.0, -7.0, 6.0], [-7.0, 8.0, -5.0, 8.0]]
)
"""Fourier terms of the centre line: a row for each order, cos and sin of x, cos and sin of y."""
HALF_WIDTH = 4.0
"""Of the track in m."""


def centre_line() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arc length, points (east + i north) and curvature at 4001 points, the last the first."""
    a = np.linspace(0.0, 2.0 * np.pi, 4001)
    k = np.arange(1, 5)[:, None]
    even, odd = (TERMS[:, :2] + 1j * TERMS[:, 2:]).T[:, :, None]
    derivatives = []
    for _ in range(3):
        derivatives.append((even * np.cos(k * a) + odd * np.sin(k * a)).sum(axis=0))
        even, odd = k * odd, -k * even
    z, slope, bend = derivatives
    pace = np.abs(slope)
    way = np.append(0.0, np.cumsum((pace[1:] + pace[:-1]) / 2 * np.diff(a)))
    return way, z, (slope.conj() * bend).imag / pace**3


WAY, LINE, CURVATURE = centre_line()
LENGTH = float(WAY[-1])
"""Of the centre line in m."""


def bend(s: float) -> float:
    return float(np.interp(s, WAY, CURVATURE))


def beside(s: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return the points (2 rows) beside the centre line, positive to the left."""
    along = np.interp(s, WAY, np.gradient(LINE, WAY))
    z = np.interp(s, WAY, LINE) + 1j * offset * along / np.abs(along)
    return np.array([z.real, z.imag])


MASS, INERTIA, FRONT, REAR, DRAG = 800.0, 900.0, 1.5, 1.3, 0.9
GRIP, SHAPE, STIFFNESS, POWER, BRAKES, GRAVITY = 1.3, 1.5, 9.0, 1.6e5, 0.6, 9.81
"""kg, kg m², m, m, kg/m; μ, C, B of the tyres, power in W, share of the brakes in front, m/s²."""
LOADS = MASS * GRAVITY / (FRONT + REAR) * np.array([REAR, FRONT])
"""Of the axles, in N."""
USED, SLIP = 0.95, 9.0
"""Share of the grip that engine and brakes may use; largest slip (°): the car is not to drift."""


def car() -> Model:
    model = Model(NAME, time_unit="m")
    n = model.state("offset", lower=-HALF_WIDTH, upper=HALF_WIDTH, unit="m")
    chi = model.state("heading", lower=-1.0, upper=1.0, scale=0.3, unit="rad")
    vx = model.state("speed", lower=5.0, scale=10.0, guess=15.0, unit="m/s")
    vy = model.state("sideways", lower=-8.0, upper=8.0, unit="m/s")
    r = model.state("yaw", lower=-3.0, upper=3.0, unit="rad/s")
    delta = model.state("steering", lower=-0.5, upper=0.5, scale=0.1, unit="rad")
    model.state("time of lap", scale=10.0, unit="s", guess=lambda f: f * LENGTH / 15.0)
    rate = model.control("steering rate", lower=-1.5, upper=1.5, unit="rad/s")
    drive = model.control("engine", lower=0.0, upper=8e3, scale=5e3, unit="N")
    brake = model.control("brakes", lower=0.0, upper=1.5e4, scale=5e3, unit="N")
    curvature = model.reference("bend", bend, unit="1/m")

    shares = (-BRAKES * brake, drive - (1.0 - BRAKES) * brake)
    slips = (delta - ca.atan((vy + FRONT * r) / vx), -ca.atan((vy - REAR * r) / vx))
    used = [share / (GRIP * load) for share, load in zip(shares, LOADS, strict=True)]
    ff, fr = (
        GRIP * load * ca.sin(SHAPE * ca.atan(STIFFNESS * slip)) * ca.sqrt(1.0 - part**2)
        for load, slip, part in zip(LOADS, slips, used, strict=True)
    )
    pace = (vx * ca.cos(chi) - vy * ca.sin(chi)) / (1.0 - n * curvature)
    push = sum(shares) - ff * ca.sin(delta) - DRAG * vx**2
    rates = {
        "offset": vx * ca.sin(chi) + vy * ca.cos(chi),
        "heading": r - curvature * pace,
        "speed": push / MASS + vy * r,
        "sideways": (fr + ff * ca.cos(delta)) / MASS - vx * r,
        "yaw": (FRONT * ff * ca.cos(delta) - REAR * fr) / INERTIA,
        "steering": rate,
        "time of lap": 1.0,
    }
    model.rates({name: in_time / pace for name, in_time in rates.items()})
    model.output("grip in front", used[0])
    model.output("grip at the rear", used[1])
    model.output("slip in front", np.degrees(1) * slips[0], unit="°")
    model.output("slip at the rear", np.degrees(1) * slips[1], unit="°")
    return model


def lap(intervals: int) -> OptimalControl:
    model = car()
    ocp = OptimalControl(model, duration=LENGTH, intervals=intervals, method=Collocation(2))
    ocp.periodic(*(name for name in model.signals["state"] if name != "time of lap"))
    ocp.initial({"time of lap": 0.0})
    t, v, drive = (model.symbol(name) for name in ("time of lap", "speed", "engine"))
    brake, rate = model.symbol("brakes"), model.symbol("steering rate")
    ocp.minimize("time", end=t)
    # Where no limit is reached, hands and feet are kept still.
    ocp.minimize("calm", integral=1e-5 * (rate**2 + (drive * brake / 1e7) ** 2))
    for place in ("grip in front", "grip at the rear"):
        ocp.path(place, model.symbol(place), lower=-USED, upper=USED, at="ends")
    slide = {"lower": -SLIP, "upper": SLIP, "scale": np.degrees(0.1), "unit": "°"}
    for place in ("slip in front", "slip at the rear"):
        ocp.path(place, model.symbol(place), **slide, at="ends")
    ocp.path("power", drive * v, upper=POWER, scale=POWER, unit="W", at="ends")
    return ocp


SHOWN = "speed", "slip in front", "slip at the rear", "engine", "brakes", "power"


def draw(ours: Solution, ipopt: Solution) -> Figure:
    """Plot the line on the circuit, coloured by speed."""
    fig, ((ax,),) = figure(height=4.2)
    for side in (-HALF_WIDTH, HALF_WIDTH):
        ax.plot(*beside(np.linspace(0, LENGTH, 801), np.full(801, side)),
                **LIMIT | {"linestyle": "-", "label": "edge" if side > 0 else None})  # fmt: skip
    ends, speeds = beside(ours.times, ours["offset"]).T, 3.6 * ours["speed"]
    pieces = LineCollection(np.stack((ends[:-1], ends[1:]), axis=1), linewidths=3.0)
    pieces.set(array=(speeds[:-1] + speeds[1:]) / 2, cmap="cividis")
    ax.add_collection(pieces)
    fig.colorbar(pieces, ax=ax, label="speed (km/h)")
    ax.set(aspect="equal", xlabel="east (m)", ylabel="north (m)")
    ax.plot(*beside(ipopt.times, ipopt["offset"])[:, ::3],
            **CIRCLES | {"markersize": 3, "label": "IPOPT"})  # fmt: skip
    legend(ax, loc="center")  # inside the circuit
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = lap(40 if arguments.short else 120)
    answers = solve_with_all(ocp)
    ours, ipopt = (answer.solution for answer in answers)
    return finish_answers(
        arguments,
        answers,
        facts={
            "time of the lap (s)": float(ours["time of lap"][-1]),
            "length of the circuit (m)": LENGTH,
            "fastest, slowest (km/h)": f"{3.6 * ours['speed'].max():.0f}, "
            f"{3.6 * ours['speed'].min():.0f}",
            "largest slip at the rear (°)": np.abs(ours["slip at the rear"]).max(),
        },
        figures={
            "lap": draw(ours, ipopt),
            "trajectory": compare(ours, ipopt, SHOWN, label="way along the centre line (m)"),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
