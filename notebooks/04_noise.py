# %% [markdown]
# # 4. Noise: which channel hears it
#
# Without noise all splits of M take the same steps ([notebook
# 1](01_one_correction_two_channels.ipynb)). With noise it depends on who hears it. The paper has a
# theorem for each of two cases (appendix "Additive Equivalence Theorems and Proofs"):
#
# - both channels read the same noisy numbers: then the split still does not matter;
# - the memory reads a sensor, the augmented channel knows the residual exactly: then memory on a
#   noisy sensor hears the noise, and memory on clean sensors does not.
#
# The second is a rule for design: put memory where the sensors are quiet. This notebook runs both
# theorems and then shows what the rule costs.

# %%
from dataclasses import replace

import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver
from casadi_hybrid.control.feedback import HybridFeedback, design, measure, predict
from casadi_hybrid.utils.output.plotting import deviation, line_style, plot_curves

# %% [markdown]
# ## The plant
#
# Three pumps feed two lines. Flows are in litres per second, the pumps' speeds u in per cent of
# their rated speed, divided by ten. Both flows have a set point, and the third pump is free to
# save energy. The sensor of the first line is exact, that of the second is noisy.

# %%
B = np.array([[0.9, 0.5, 0.1], [0.1, 0.6, 0.8]])  # L/s for each 10 % of speed
SET = np.array([4.0, 5.0])  # L/s
NOISE = np.array([0.0, 0.2])  # standard deviations, L/s
PRICE = np.diag([1.0, 0.6, 0.8])

u = ca.SX.sym("u", 3)
problem = Problem(
    x=u,
    f=ca.dot(u, PRICE @ u) / 2,
    h={"line 1": ca.dot(B[0], u) - SET[0], "line 2": ca.dot(B[1], u) - SET[1]},
    name="pumps",
)
best = Solver(problem).solve([3.0, 3.0, 3.0])
print("cheapest speeds (10 %):", best.x.round(3), " flows (L/s):", (B @ best.x).round(3))

# %% [markdown]
# ## First theorem: noise that both hear
#
# `disturb` changes what a step sees. Here both channels get the same noisy flows.

# %%
STEPS = 60
M = 1.5 * np.linalg.inv(B @ B.T)
steps = {"eta_x": 0.25, "eta_d": 0.6 * np.linalg.inv(B @ B.T)}
splits = {"no memory": (M, 0 * M), "half and half": (M / 2, M / 2), "all memory": (0 * M, M)}
# The law starts without a memory, so the noise is heard from its second step on.
epsilon = NOISE * np.random.default_rng(4).standard_normal((STEPS, 2))
epsilon[0] = 0.0


def run(split, disturb):
    """Sixty steps of one split from the solution, which nothing stops."""
    C_aug, C_opt = split
    options = {"max_iter": STEPS, "tol": 1e-300, **steps}
    solver = Solver(problem, "constant", C_aug=C_aug, C_opt=C_opt, disturb=disturb, **options)
    return solver.solve(best.x, lam_g0=best.lam_g, history=True).history


def shared(t, at):
    """Both channels read the noisy flows."""
    return replace(at, h=at.h + epsilon[t], measured=at.h + epsilon[t])


def sensed(t, at):
    """The memory and the dual step read the sensors, the augmented channel is exact."""
    return replace(at, measured=at.h + epsilon[t])


both = {label: run(split, shared) for label, split in splits.items()}
reference = both["no memory"].x
for label, found in both.items():
    print(f"{label:18} apart from the first by {deviation(found.x, reference).max():.1e}")

# %% [markdown]
# One noise, one trajectory. Nothing is to be gained from the split there.
#
# ## Second theorem: noise that only the sensors have
#
# Now the augmented channel reads the residual exactly, and a fourth split puts memory on the clean
# sensor alone: the column of $C_{\mathrm{opt}}$ that belongs to line 2 is zero,
# $C_{\mathrm{opt}} P_n = 0$ with the projector $P_n$ on the noisy sensors.

# %%
clean = np.diag([1.0, 0.0])
splits["memory on the clean sensor"] = (M - M @ clean, M @ clean)
heard = {label: run(split, sensed) for label, split in splits.items()}
reference = heard["no memory"].x
for label, found in heard.items():
    apart, flow = deviation(found.x, reference).max(), found.x @ B[1] - SET[1]
    print(f"{label:27} apart by {apart:.1e}; flow of line 2 off by {flow.std():.3f} L/s (std)")

# %%
circles = {"linestyle": "", "fillstyle": "none", "color": "#000000"}
plot_curves(
    {
        "": {
            label: (range(STEPS + 1), run.x @ B[1], circles if "clean" in label else {})
            for label, run in heard.items()
        }
    },
    levels={"set point": SET[1]},
    xlabel="step $t$",
    ylabel="flow of line 2 (L/s)",
    height=3.4,
)

# %% [markdown]
# Memory on the clean sensor is, to rounding, full augmentation. Memory on the noisy one feeds the
# noise back at every step.
#
# ## What the rule costs
#
# Why have memory at all, then? Because on a plant "the residual, exactly" is a model's word. The
# law as a controller (`casadi_hybrid.control.feedback`) lets the augmented channel read the model,
# which does not know of disturbances that come later; the memory reads the sensors and does. So
# there is a balance between noise and drift. `design` makes M and the steps for a rate, `predict`
# solves a Lyapunov equation for the variance in the long run, and `measure` runs the loop with
# random numbers.

# %%
RATE = 0.8
made = design(B, PRICE, NOISE**2, RATE)
print("C_opt P_n =", np.abs(made.projected).max(), " M =", made.M.round(3).tolist())


def shared_out(share):
    """The law with this share of M on the noisy sensor in the memory; the clean one has it all."""
    memory = made.M @ np.diag([1.0, share])
    correction = replace(made.correction, C_aug=made.M - memory, C_opt=memory)
    return HybridFeedback(replace(made, correction=correction))


shares = np.linspace(0.0, 1.0, 11)
DRIFTS = {"noise alone": 0.0, "noise and a slow drift": 0.03, "noise and a fast drift": 0.1}  # L/s
predicted = {
    label: [
        np.sqrt(predict(shared_out(share), NOISE**2, drift=[0, walk**2]).errors[1, 1])
        for share in shares
    ]
    for label, walk in DRIFTS.items()
}
measured = {
    label: [
        np.sqrt(
            measure(
                shared_out(share), lambda u: B @ u - SET[:, None], best.x, NOISE**2,
                drift=[0, walk**2], steps=250, settle=50, runs=60,
            ).errors[1, 1]
        )
        for share in shares[::5]
    ]
    for label, walk in DRIFTS.items()
}  # fmt: skip
for label, values in predicted.items():
    least = shares[int(np.argmin(values))]
    print(f"{label:24} {values[0]:.4f} L/s without memory on the noisy sensor, ", end="")
    print(f"{values[-1]:.4f} with all of it; least at a share of {least:.1f}")
    errors = [abs(m / p - 1) for m, p in zip(measured[label], values[::5], strict=True)]
    print(f"{'':24} measured within {100 * max(errors):.1f} % of the prediction")

# %%
curves = {}
for i, (label, values) in enumerate(predicted.items()):
    style = line_style(i, 1)
    marks = {"linestyle": "", "marker": style["marker"], "color": style["color"], "markevery": 1}
    curves[label] = (shares, values, style | {"marker": ""})
    curves[f"measured: {label}"] = (shares[::5], measured[label], marks)
plot_curves(
    {"": curves},
    levels={"the sensor's noise": NOISE[1]},
    xlabel="share of M on the noisy sensor that is in the memory",
    ylabel="std of the flow of line 2 (L/s)",
    ylim=(0, None),
    height=3.4,
    columns=2,
)

# %% [markdown]
# With a quiet plant and a noisy sensor memory only does harm; with a plant that drifts it helps. A
# designer who knows both variances reads the share from such a curve. What no split changes is the
# noise that enters through $\eta_d$: the controller has to hear its sensors to hold the set point.
