"""The pictures of the README and the site, from runs: python docs/building/pictures.py [NAME ...].

``solve`` and ``loop`` take seconds. ``benchmark`` runs ``benchmarks/warm_peers.py`` for minutes, or
reads the folder that such a run has written (``--from FOLDER``).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.patches import Rectangle

from casadi_hybrid.control import MPC, Collocation, Model, OptimalControl, Plant, Solution, simulate
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below, save

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
LIMIT = {"color": PALETTE[1], "linestyle": "--", "linewidth": 1.2}


def cart_pole() -> tuple[Model, dict[str, ca.SX]]:
    """A pole on a cart with a short track and a limited force, as in docs/control.md."""
    cart = Model("cart-pole")
    place = cart.state("place", lower=-0.5, upper=0.5, unit="m")
    angle = cart.state("angle", scale=np.pi, unit="rad")
    speed = cart.state("speed", scale=2.0, unit="m/s")
    rate = cart.state("rate", scale=6.0, unit="rad/s")
    force = cart.control("force", lower=-8, upper=8, scale=10.0, unit="N")
    pole = cart.parameter("pole", 0.3, unit="kg")
    sin, cos = ca.sin(angle), ca.cos(angle)
    push = (force + pole * sin * (0.5 * rate**2 + 9.81 * cos)) / (1.0 + pole * sin**2)
    cart.rates(place=speed, angle=rate, speed=push, rate=-(push * cos + 9.81 * sin) / 0.5)
    return cart, {"place": place, "angle": angle, "speed": speed, "rate": rate, "force": force}


def swing_up() -> Solution:
    """The swing-up in the least effort."""
    cart, s = cart_pole()
    swing = OptimalControl(cart, duration=2.5, intervals=50, method=Collocation(3))
    swing.initial(place=0, angle=0, speed=0, rate=0)
    swing.final(place=0, angle=np.pi, speed=0, rate=0)
    swing.minimize("effort", integral=(s["force"] / 10) ** 2)
    found = swing.solve()
    assert found.success, found.explanation
    return found


def draw_solve() -> None:
    """The motion as a row of moments, and place, angle and force over time."""
    found = swing_up()
    fig, axes = figure(4, 1, height=1.15, height_ratios=(1.2, 1, 1, 1))
    moments, *courses = axes[:, 0]
    times = np.linspace(0, found.times[-1], 11)
    seen = found.at(times)
    for i, time in enumerate(times):
        x, angle = float(seen["place"][i]), float(seen["angle"][i])
        middle = 1.25 * i + x
        moments.plot([1.25 * i - 0.5, 1.25 * i + 0.5], [-0.06, -0.06], color="#999999", lw=1.0)
        moments.add_patch(Rectangle((middle - 0.12, -0.06), 0.24, 0.12, color=PALETTE[0]))
        tip = middle + 0.5 * np.sin(angle), -0.5 * np.cos(angle)
        moments.plot([middle, tip[0]], [0, tip[1]], color="#222222", lw=2.0)
        moments.plot(*tip, "o", color=PALETTE[1], markersize=6)
        moments.text(1.25 * i, -0.86, f"{time:.2f} s", ha="center", fontsize=8)
    moments.set_aspect("equal")
    moments.set_ylim(-0.9, 0.6)
    moments.set_xlim(-0.6, 1.25 * (times.size - 1) + 0.6)
    moments.axis("off")
    fine = found.sample(400)
    angle, place, force = courses
    angle.plot(fine.times, np.degrees(fine["angle"]), color=PALETTE[0])
    place.plot(fine.times, fine["place"], color=PALETTE[2])
    held = np.append(found["force"], found["force"][..., -1])
    force.step(found.times, held, where="post", color="#222222", lw=1.2)
    for ax, label in zip(courses, ("angle (°)", "place (m)", "force (N)"), strict=True):
        ax.set(ylabel=label, xlim=(0, found.times[-1]))
        ax.tick_params(labelbottom=ax is force)
    angle.set_yticks((-90, 0, 90, 180))
    for ax, limit in ((place, 0.5), (force, 8)):
        for level in (-limit, limit):
            ax.axhline(level, **LIMIT, label="limit" if level > 0 else "")
    force.set_xlabel("time (s)")
    fig.align_ylabels(courses)
    legend_below(fig, place)
    save(fig, PICTURES / "solve.png")


def draw_loop() -> None:
    """The pole held upright by predictive control, with a wrong model, noise and a push."""
    cart, s = cart_pole()
    hold = OptimalControl(cart, duration=1.0, intervals=25)
    hold.initial()
    error = ca.vertcat(s["place"], s["angle"] - np.pi, s["speed"], s["rate"])
    weights = ca.DM([100, 100, 1, 1])
    hold.minimize("error", integral=ca.dot(weights, error**2), end=100 * ca.sumsqr(error))
    hold.minimize("effort", integral=0.01 * s["force"] ** 2)
    hold.moves("force", price=0.1)
    mpc = MPC(hold, soften=1e4)
    plant = Plant(cart, period=0.04, parameters={"pole": 0.36})
    run = simulate(
        plant,
        mpc,
        steps=150,
        x0=[0.1, np.pi - 0.15, 0, 0],
        noise=[2e-3, 2e-3, 0.02, 0.02],
        dropout=0.05,
        push={75: [0, 0, 0.3, 1.0]},
        seed=3,
    )
    fig, axes = figure(3, 1, height=1.35, sharex=True)
    rows = ("angle", "angle (°)"), ("place", "place (m)"), ("force", "force (N)")
    for ax, (name, label) in zip(axes[:, 0], rows, strict=True):
        values = np.asarray(run[name]).ravel()
        if name == "angle":
            values = np.degrees(values - np.pi)
        if name == "force":
            values = np.append(values, values[-1])[: run.times.size]
            ax.step(run.times, values, where="post", color="#222222", lw=1.2)
        else:
            ax.plot(run.times, values, color=PALETTE[0 if name == "angle" else 2])
        limit = {"place": 0.5, "force": 8.0}.get(name)
        for level in () if limit is None else (-limit, limit):
            ax.axhline(level, **LIMIT)
        ax.axvline(3.0, color="#999999", lw=1.0)
        ax.set_ylabel(label)
    axes[0, 0].text(3.04, 0.97, "push", va="top", transform=axes[0, 0].get_xaxis_transform())
    axes[2, 0].set_xlabel("time (s)")
    fig.align_ylabels()
    axes[1, 0].plot([], [], label="limit", **LIMIT)
    legend_below(fig, axes[1, 0])
    save(fig, PICTURES / "loop.png")
    words = [step.status for step in run.steps if step is not None]
    said = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    print(f"loop: {len(words)} steps, {said}")


SETTINGS = (
    "ipopt/mu-1e-5", "ipopt/mu-1e-4", "fatrop/mu-1e-4", "fatrop/mu-1e-4-near", "sqpmethod/qrqp",
    "sqpmethod/piqp",
)  # fmt: skip
"""Those that are mostly fastest."""


def draw_benchmark(folder: Path | None) -> None:
    """The profile of the benchmark, as ``benchmarks/warm_peers.py`` draws it."""
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            folder = Path(made)
            script = Path(__file__).parents[2] / "benchmarks" / "warm_peers.py"
            words = ["--clock", "processor", "--out", made, "--solvers", *SETTINGS]
            subprocess.run([sys.executable, str(script), *words], check=True)
        shutil.copy(folder / "profile.png", PICTURES / "benchmark.png")


def main(argv: list[str] | None = None) -> int:
    """Draw what is named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=["solve", "loop", "benchmark", []])
    parser.add_argument("--from", dest="folder", type=Path, help="of a benchmark that was run")
    arguments = parser.parse_args(argv)
    names = arguments.names or ["solve", "loop", "benchmark"]
    for name in names:
        if name == "benchmark":
            draw_benchmark(arguments.folder)
        else:
            {"solve": draw_solve, "loop": draw_loop}[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
