"""Feeder whose voltages are measured, not computed, held by the paper's law with noisy sensors.

Six inverters with the reactive powers u (Mvar) hold the voltages of three buses,
h(u) = v₀ + B u − 100 % (% of nominal), at the least ½ Σ cᵢuᵢ². The loads, and with them v₀, are not
known to the controller, and two of the three voltmeters are noisy.

Once the feeder has settled the controller measures ĥ_t = h(u_t) + ε_t and steps the law. `design`
gives M, its split and both steps for the least variance of the inputs at the rate ρ = 0.9. Three
splits of that M are compared: all augmentation, all memory (which is integral feedback), and the
designed one, C_opt P_n = 0, which has memory for the good voltmeter alone. Lyapunov's equation
of the closed loop predicts every variance, and a simulation measures it.

- Without noise the three splits are one trajectory, as the paper's theorem says. They end at the
  optimum, which the default solver finds from the true constraints.
- With noise their variances differ by a factor of two: augmentation filters by the model.
- A drift of the loads is seen at once by the memory: at the noisy bus all memory is better where
  the loads drift fast.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.control.feedback import HybridFeedback, design, measure, predict

RATE, SPLITS = 0.9, ("augmentation", "memory", "designed")
# A 12.66 kV feeder with eight buses in a row. The linear power flow: a reactive power at bus j
# raises the voltage of bus i by the reactance that the paths to both share, over the voltage.
REACTANCE = np.array([0.45, 0.38, 0.50, 0.42, 0.55, 0.47, 0.52, 0.60])  # Ω, section by section
INVERTERS, PILOTS = np.array([2, 3, 4, 6, 7, 8]) - 1, np.array([3, 5, 8]) - 1
SHARED = np.cumsum(REACTANCE)[np.minimum.outer(np.arange(8), np.arange(8))] * 100 / 12.66**2
LOADS = np.array([0.10, 0.25, 0.15, 0.30, 0.20, 0.35, 0.25, 0.40])  # Mvar
B = SHARED[np.ix_(PILOTS, INVERTERS)]  # % per Mvar
COST = np.diag([1.0, 1.4, 0.9, 1.2, 1.1, 1.6])  # 1/Mvar²
NOISE = np.array([0.2, 0.0, 0.2]) ** 2  # %²; the bus in the middle has a good voltmeter


def voltages(u: np.ndarray) -> np.ndarray:
    """Return the voltage errors in %, a column a run."""
    return ((B @ u).T - SHARED[PILOTS] @ LOADS).T


def problem() -> Problem:
    """Return the cheapest inputs by the true constraints, which the controller does not know."""
    u = ca.SX.sym("u", 6)
    f = 0.5 * ca.bilin(ca.DM(COST), u, u)
    return Problem(x=u, f=f, h=B @ u - SHARED[PILOTS] @ LOADS, name="feeder")


def main() -> bool:
    """Simulate, check and draw; return True if optimum, predictions and theorems hold."""
    optimum = Solver(problem()).solve()
    report = verify(problem(), optimum)
    print(report, end="\n\n")
    made = design(B, COST, NOISE, RATE)
    laws = {split: HybridFeedback(made.with_split(split)) for split in SPLITS}
    quiet, spread, right = {}, {}, report.accepted
    fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    drifts = np.geomspace(1e-3, 1e-1, 25)
    for (split, law), line in zip(laws.items(), ("C0-", "C1--", "k:"), strict=True):
        alone = measure(law, voltages, np.zeros(6), 0 * NOISE, steps=501, runs=1)
        quiet[split] = alone.first
        seen = measure(law, voltages, alone.first[-1], NOISE, steps=1600, runs=300)
        foreseen = predict(law, NOISE)
        spread[split] = seen.errors[2, 2]
        error = seen.errors[2, 2] / foreseen.errors[2, 2] - 1
        print(f"{split:12} std of the noisy voltage {spread[split] ** 0.5:.5f} %, variance "
              f"{error:+.1%} from the predicted; from the optimum without noise "
              f"{np.abs(alone.first[-1] - optimum.x).max():.0e} Mvar")  # fmt: skip
        right &= bool(abs(error) < 0.05 and np.allclose(alone.first[-1], optimum.x, atol=1e-5))
        axes[0].plot(seen.first[200:320, 3], line, label=split)
        drifting = [predict(law, NOISE, drift=d**2).errors[2, 2] for d in drifts]
        axes[1].loglog(drifts, np.sqrt(drifting), line)
    apart = max(np.abs(quiet[split] - quiet["designed"]).max() for split in SPLITS)
    ratio = spread["designed"] / spread["memory"]
    print(f"splits apart without noise {apart:.0e} Mvar; variance of the designed one {ratio:.2f} "
          "of all memory")  # fmt: skip
    axes[0].set(xlabel="step", ylabel="fourth reactive power (Mvar)", title="settled, with noise")
    axes[1].set(xlabel="drift (% of nominal a step)", ylabel="std of the voltage error (%)",
                title="bus with a noisy voltmeter")  # fmt: skip
    fig.legend(loc="outside lower center", ncols=3)
    fig.savefig("feedback_controller.png", dpi=150)
    return right and apart < 1e-9 and ratio < 0.6


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
