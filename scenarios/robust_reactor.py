"""Robust predictive control of a stirred tank reactor whose reaction is known to 5 %.

An exothermic reaction A → B in a cooled tank, with concentration c, temperature T and the
temperature T_c of the jacket, in minutes, kelvin and moles a litre,

    c'  = q/V (c_f − c) − k(T) c,                                k(T) = κ k₀ exp(−E/(R T))
    T'  = q/V (T_f − T) + η H/(ρ c_p) k(T) c + UA/(V ρ c_p) (T_c − T)
    T_c' = u,   |u| ≤ 20 K/min,   285 K ≤ T_c ≤ 320 K

The heat of reaction η and the frequency factor κ lie in 0.95 … 1.05. From a cold steady state at
320 K the reactor is to convert half of its feed, near an unstable steady state at 350 K, and must
stay below 353 K. Every 0.1 min a controller looks 2 min ahead:

    min ∫ ((c − c*)/0.1)² + 0.1 (u/20)² dt + 30 Σ_k s_k,   T_k ≤ 353 K + s_k,  s_k ≥ 0

The nominal controller believes in η = κ = 1. The robust one has that scenario and the four corners
side by side, and one first control for all of them (`Scenarios`): whatever the reaction turns out
to be, the limit can still be held afterwards. Both meet the five scenarios and four reactions from
between. Where the true reaction is stronger than the nominal controller believes, the reactor
flashes; it then finds no solution within 60 iterations, and its last predicted trajectory goes on.
"""

import sys
from itertools import product

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl, Plant, Scenarios, simulate, steady
from casadi_hybrid.verify import verify

PERIOD, HOTTEST = 0.1, 353.0  # min, K
NAMES = ("heat", "frequency")
CORNERS = [dict(zip(NAMES, pair, strict=True)) for pair in product((0.95, 1.05), repeat=2)]
BETWEEN = np.random.default_rng(0).uniform(0.95, 1.05, (4, 2))


def stirred_tank() -> Model:
    """Return the plant."""
    tank = Model("reactor", time_unit="min")
    c = tank.state("c", lower=0, upper=1, scale=0.1, unit="mol/l")
    T = tank.state("T", upper=HOTTEST, scale=10, unit="K")
    jacket = tank.state("Tc", lower=285, upper=320, scale=10, unit="K")
    u = tank.control("u", lower=-20, upper=20, scale=20, unit="K/min")
    heat, frequency = (tank.parameter(name, 1.0) for name in NAMES)
    reaction = frequency * 7.2e10 * ca.exp(-8750.0 / T) * c
    exchanged = 350.0 - T + 5e4 / 23900 * (jacket - T)
    tank.rates(c=1.0 - c - reaction, T=exchanged + heat * 5e4 / 239 * reaction, Tc=u)
    return tank


def nominal(intervals: int = 20) -> OptimalControl:
    """Return the problem of the nominal controller."""
    tank = stirred_tank()
    ocp = OptimalControl(tank, duration=PERIOD * intervals, intervals=intervals,
                         solver={"max_iter": 60})  # fmt: skip
    ocp.initial(**steady(tank, T=320, u=0).states)
    error = (tank.symbol("c") - steady(tank, T=350, u=0)["c"]) / 0.1
    ocp.minimize("cost", integral=error**2 + 0.1 * (tank.symbol("u") / 20) ** 2)
    ocp.soften("T", 30.0)
    return ocp


def problem() -> Scenarios:
    """Return the problem of the robust controller."""
    corners = {f"corner {i}": corner for i, corner in enumerate(CORNERS)}
    return Scenarios(nominal(), {"nominal": {}, **corners}, name="robust_reactor")


def main() -> bool:
    """Simulate, check and draw; return True if the robust controller alone keeps the limit."""
    robust = problem()
    report = verify(robust, robust.solve())
    print(report, end="\n\n")
    reactions = [{}, *CORNERS, *(dict(zip(NAMES, pair, strict=True)) for pair in BETWEEN)]
    fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    hottest, failed = {}, {}
    for ax, ocp, label in zip(axes, (nominal(), robust), ("nominal", "robust"), strict=True):
        mpc, x0 = MPC(ocp, soften=None), steady(ocp.model, T=320, u=0).states
        runs = [simulate(Plant(ocp.model, PERIOD, parameters=reaction), mpc, steps=40, x0=x0)
                for reaction in reactions]  # fmt: skip
        hottest[label] = max(run["T"].max() for run in runs)
        failed[label] = sum(run.failed for run in runs)
        hot = sum(run["T"].max() > HOTTEST + 1e-3 for run in runs)
        print(f"{label}: {hot} of {len(runs)} plants too hot, up to {hottest[label]:.3f} K; "
              f"{failed[label]} of {40 * len(runs)} steps not solved")  # fmt: skip
        for run in runs:
            ax.plot(run.times, run["T"], "C0-" if run["T"].max() < HOTTEST + 1e-3 else "C3:")
        ax.axhline(HOTTEST, color="k", linestyle="--")
        ax.set(title=f"{label}: {hot} of {len(runs)} plants above the limit", ylim=(318, 362))
        ax.set_xlabel("time (min)")
    axes[0].set_ylabel("temperature (K)")
    fig.savefig("robust_reactor.png", dpi=150)
    kept = hottest["robust"] < HOTTEST + 1e-3 < hottest["nominal"] and failed["robust"] == 0
    return report.accepted and kept


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
