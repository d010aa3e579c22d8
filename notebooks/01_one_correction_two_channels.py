# %% [markdown]
# # One correction, two channels
#
# An equality-constrained problem, min f(x) subject to h(x) = 0, has the Lagrangian
# L(x, λ) = f(x) + λᵀh(x). Descent in x and ascent in λ is the simplest way to its saddle points,
# and it turns in circles. There are two old cures:
#
# - *augmentation*: add ½ h(x)ᵀC h(x) to L, which gives the constraint directions curvature;
# - *optimism*: add Ω(h_t − h_{t−1}) to the dual step, which damps the rotation by memory.
#
# This notebook shows on two variables that they are one correction, M = C + Ω, and what is left to
# choose once M is chosen. The source is Zhao, *Matrix-Valued Optimism is Matrix-Valued
# Augmentation*. Every number below is computed by the cell above it.

# %%
import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.plotting import (
    PALETTE,
    deviation,
    figure,
    legend_below,
    line_style,
    plot_convergence,
)
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.rules import ClosedFormSplit, DesignRule, GivenSplit

# %% [markdown]
# ## A problem one can see
#
# A circle and a parabola meet in two points, and f decides nothing but which of them is lower. It
# is a hill that pushes away from the origin: L gets negative curvature from it, which only the
# constraints can hold.

# %%
x = ca.SX.sym("x", 2)
problem = Problem(
    x=x,
    f=-0.25 * ca.sumsqr(x) - 0.2 * x[0],
    h={"circle": (ca.sumsqr(x) - 2) / 2, "parabola": x[1] - x[0] ** 2},
    name="circle and parabola",
)
x0 = np.array([0.5, 0.5])
solution = Solver(problem).solve(x0)
print(solution)


# %%
def portrait(panels, steps=80):
    """Draw the first iterates of each run over the level lines of f and the two constraints."""
    fig, axes = figure(1, len(panels), height=3.9, sharex=True, sharey=True)
    a, b = np.meshgrid(np.linspace(-0.2, 2.6, 161), np.linspace(-0.2, 2.6, 161))
    f = ca.Function("f", [problem.x], [problem.f]).map(a.size)
    level = f(np.vstack((a.ravel(), b.ravel()))).full().reshape(a.shape)
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        ax.contour(a, b, level, levels=10, colors="#BBBBBB", linewidths=0.6, linestyles="-")
        ax.contour(a, b, (a**2 + b**2 - 2) / 2, levels=[0], colors="#000000", linewidths=1.0)
        ax.contour(a, b, b - a**2, levels=[0], colors="#000000", linewidths=1.0, linestyles="--")
        for i, (label, run) in enumerate(curves.items()):
            path = run.history.x[: steps + 1]
            look = {"marker": "o", "markersize": 6, "fillstyle": "none"} if i else {"marker": "."}
            style = {"color": PALETTE[i], "linestyle": "" if i else "-", "linewidth": 1.0}
            ax.plot(*path.T, label=label, **style, **look)
        ax.plot(*x0, "s", color="#000000", markersize=6, label="start")
        ax.plot(*solution.x, "*", color="#000000", markersize=12, label="solution")
        ax.set(xlim=(-0.2, 2.6), ylim=(-0.2, 2.6), aspect="equal", xlabel="$x_1$")
        ax.set_title(title, fontsize=10)
        ax.legend(fontsize=8, loc="upper right", framealpha=0.9)
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("$x_2$")
    return fig


# %% [markdown]
# ## The disease: rotation
#
# Plain gradient descent–ascent, with the steps η_x = η_d = 0.1 that all runs of this section use:
#
#     x⁺ = x − η_x(∇f + Jᵀμ),   μ⁺ = μ + η_d h.
#
# It circles the solution and never settles. Near the solution the step is linear, z⁺ = T z, and
# the largest |eigenvalue| of T says whether errors shrink. The law below takes its dual step first
# and uses μ⁺ = μ + η_d h in the primal step; that alone is a correction, of size η_d.

# %%
ETA = 0.1
steps = {"eta_x": ETA, "eta_d": ETA}
plain = Solver(problem, "gda", max_iter=400, **steps).solve(x0, history=True)
print(plain.stop.value, "| distance to the solution after 0, 100, 200, 400 steps:")
distance = np.linalg.norm(plain.history.x - solution.x, axis=1)
print(distance[[0, 100, 200, 400]].round(3))

# %%
at = Oracle(problem.functions, np.zeros(0)).second(solution.x, solution.lam_g)


def local_map(M, drive_first=True):
    """T of one step at the solution, for (x, π): π⁺ = π + η_d B x, x⁺ = x − η_x[…]."""
    H, B = at.hessian, at.B
    one = np.eye(2)
    added = M + ETA * one if drive_first else M
    return np.block([[one - ETA * (H + B.T @ added @ B), -ETA * B.T], [ETA * B, one]])


def radius(T):
    """Largest |eigenvalue|."""
    return np.abs(np.linalg.eigvals(T)).max()


print(f"descent-ascent:        {radius(local_map(np.zeros((2, 2)), drive_first=False)):.4f}")
for c in (0.0, 0.5, 1.0, 2.0):
    print(f"with M = {c:3.1f} I:        {radius(local_map(c * np.eye(2))):.4f}")

# %% [markdown]
# Above one errors grow, below one they shrink. Too much correction is slower again, because the
# primal step has to share η_x with more curvature.
#
# ## Two cures
#
# The law with both channels, ALG(C, Ω) in the paper's "Equivalence and Additivity of
# Matrix-Valued correction":
#
#     μ⁺ = μ + η_d h_t + Ω(h_t − h_{t−1})
#     x⁺ = x − η_x[∇f + Jᵀ(μ⁺ + C h_t)].
#
# Cure 1 is C = I, Ω = 0. Cure 2 is C = 0, Ω = I. Same steps, same start.

# %%
one = np.eye(2)
cures = {
    "descent–ascent": plain,
    "augmented, C = I": Solver(problem, "constant", C=one, **steps).solve(x0, history=True),
    "optimistic, Ω = I": Solver(problem, "constant", Omega=one, **steps).solve(x0, history=True),
}
for label, run in cures.items():
    print(f"{label:18} {run.stop.name:16} {run.iterations:4d} steps, x = {run.x.round(6)}")
names = list(cures)
portrait(
    {
        "the disease, 80 steps": {names[0]: cures[names[0]]},
        "the cures, 80 steps": {name: cures[name] for name in names[1:]},
    }
)

# %% [markdown]
# Solid black: the circle. Dashed: the parabola. Grey: level lines of f.

# %%
plot_convergence({label: run.history for label, run in cures.items()}, tol=1e-8)

# %% [markdown]
# ## They are one
#
# The two cures took the same number of steps. They took the same *steps*: put
# π_t = μ_t − Ω h_{t−1}. Then π_{t+1} = π_t + η_d h_t and
# x_{t+1} = x_t − η_x[∇f + Jᵀ(π_{t+1} + (C + Ω) h_t)]: only M = C + Ω is left. So any split of the
# same M gives the same trajectory, also an odd one.

# %%
odd = np.array([[0.7, -2.0], [5.0, -3.0]])
splits = {
    "C = M, Ω = 0": one,
    "C = 0, Ω = M": 0 * one,
    "C = Ω = M/2": one / 2,
    "C = an odd matrix, Ω = M − C": odd,
}
runs = {
    label: Solver(problem, "constant", C=C, Omega=one - C, **steps).solve(x0, history=True)
    for label, C in splits.items()
}
base = next(iter(runs.values())).history
for label, run in runs.items():
    apart = deviation(run.history.x, base.x).max()
    print(f"{label:30} {run.iterations} steps, largest deviation in x {apart:.1e}")


# %%
def overlay():
    """Draw x_1 and the dual variable μ_1 of all splits."""
    fig, axes = figure(1, 2, height=3.4)
    for i, (label, run) in enumerate(runs.items()):
        style = line_style(i, 60) | {"fillstyle": "none", "linewidth": 1.8 - 0.3 * i}
        axes[0, 0].plot(run.history.x[:60, 0], label=label, **style)
        axes[0, 1].plot(run.history.mu[:60, 0], **style)
    for ax, text in zip(axes[0], ("$x_1$: one curve", "$\\mu_1$: one for each split"), strict=True):
        ax.set_xlabel("iteration $t$")
        ax.set_title(text, fontsize=10)
    axes[0, 0].set_ylabel("$x_1$")
    axes[0, 1].set_ylabel("$\\mu_1$")
    legend_below(fig, axes[0, 0], columns=2)
    return fig


overlay()

# %% [markdown]
# The primal trajectories agree to rounding. The dual variable μ differs from split to split,
# because each stores another part of the correction in it; π does not.
#
# ## What is left to choose: the split and the steps
#
# If the split changes nothing, why choose it? Because a step rule may be careful about each channel
# in its own way. The paper's rule ("Step-Size-Limited correction Design") asks for
#
# - S1: η_x ≤ κ_x / ‖H + JᵀC_aug J‖, augmentation adds primal curvature;
# - S2: η_x η_d ‖J‖² ≤ κ_p;
# - S3: ‖C_opt‖ ≤ κ_ω η_d, the memory must not outgrow the dual step.
#
# With M = C_can + αI, C_can = −J†ᵀHJ† and C_aug = C_can + θαI, more θ tightens S1 and relaxes S3.
# The closed form ("Closed-Form Hybrid Correction Design") puts θ where the two meet. To see them
# bind, the parabola's equation is divided by five: the same feasible point, a worse Jacobian.

# %%
scaled = Problem(
    x=x,
    f=problem.f,
    h={"circle": (ca.sumsqr(x) - 2) / 2, "parabola / 5": (x[1] - x[0] ** 2) / 5},
    name="circle and parabola / 5",
)
near = np.array([0.8, 1.3])
there = Oracle(scaled.functions, np.zeros(0)).second(near, np.zeros(2))
closed = DesignRule(split=ClosedFormSplit()).decide(there, 0)
pure = {
    name: DesignRule(split=GivenSplit(theta)).decide(there, 0)
    for name, theta in (("θ = 0", 0.0), ("θ = 1", 1.0))
}
print(f"cond J_h = {np.linalg.cond(there.B):.2f}, norm of M = {closed.norm_M:.2f}")
print(f"closed form: θ = {closed.theta:.4f}, η_x = {closed.eta_x:.4f}, bound by {closed.active}")
for name, design in pure.items():
    ratio = closed.eta_x / design.eta_x
    print(f"{name}: η_x = {design.eta_x:.4f}, the closed form's step is {ratio:.2f} times as long")

# %%
thetas = np.concatenate(([0.002, 0.01, 0.02], [closed.theta], [0.08, 0.1, 0.2, 0.3]))
by_theta = [
    Solver(scaled, "given-theta", theta=theta, max_iter=2000).solve(near) for theta in thetas
]
for theta, run in zip(thetas, by_theta, strict=True):
    print(f"θ = {theta:.3f}: {run.iterations:5d} steps, {run.stop.name}")


# %%
def admissible():
    """Draw what S1 and S3 allow, the step that the rule takes, and the iterations that follow."""
    fig, axes = figure(1, 2, height=3.4)
    fine = np.geomspace(0.002, 1.0, 200)
    rule = DesignRule().steps
    size = closed.alpha * np.linalg.norm(there.B, 2) ** 2
    s1 = rule.kappa_x / (fine * size)
    s3 = rule.kappa_p * rule.kappa_omega / ((1 - fine[:-1]) * size)
    taken = [DesignRule(split=GivenSplit(theta)).decide(there, 0).eta_x for theta in fine]
    step, count = axes[0]
    step.plot(fine, taken, color="#BBBBBB", linewidth=5, label="step taken")
    step.plot(fine, s1, **line_style(0), label="S1 (augmented)")
    step.plot(fine[:-1], s3, **line_style(1), label="S3 (optimistic)")
    step.set(xscale="log", yscale="log", ylim=(0.01, 2), ylabel="primal step $\\eta_x$")
    count.plot(thetas, [run.iterations for run in by_theta], **line_style(2, len(thetas)))
    count.set(xscale="log", ylim=(0, None), ylabel="iterations to $10^{-8}$")
    for ax in axes[0]:
        ax.axvline(closed.theta, color="#000000", linewidth=0.9, linestyle=":", label="closed form")
        ax.set_xlabel("share $\\theta$ of the augmented channel")
    legend_below(fig, step, columns=4)
    return fig


admissible()

# %% [markdown]
# The hybrid's gain is the longer step that S1–S3 permit, nothing else: with equal steps all splits
# are the same. The gain over θ = 1 is large. The gain over θ = 0 is small, because with R = I the
# closed form is θ = κ_x/(κ_x + κ_p κ_ω) whatever J_h is:

# %%
rule = DesignRule().steps
share = rule.kappa_x / (rule.kappa_x + rule.kappa_p * rule.kappa_omega)
print(f"κ_x/(κ_x + κ_p κ_ω) = {share:.4f}, the rule's θ = {closed.theta:.4f}")

# %% [markdown]
# ## When the start is not matched
#
# "Any split gives the same trajectory" needs one thing: the same memory-free multiplier π_0. A
# split with Ω ≠ 0 has a memory Ωh_{−1}. Handing the same number μ_0 to every split, with a memory
# already filled by h_{−1} = h_0, starts each of them at another π_0 = μ_0 − Ωh_{−1}.

# %%
deviations = {}
for start in ("multipliers", "effective", "memory_free"):
    found = [
        Solver(problem, "constant", C=C, Omega=one - C, dual_start=start, **steps).solve(
            x0, history=True
        )
        for C in (one, 0 * one, one / 2)
    ]
    deviations[start] = [deviation(run.history.x, found[0].history.x) for run in found[1:]]
    worst = max(values.max() for values in deviations[start])
    counts = [run.iterations for run in found]
    ends = max(np.abs(run.x - solution.x).max() for run in found)
    print(f"{start:12} apart by {worst:.1e}; {counts} steps; all end within {ends:.0e} of x*")


# %%
def matched_or_not():
    """Draw how far C = 0 and C = M/2 are from C = M, for the three readings of the start."""
    fig, axes = figure(1, 1, height=3.0)
    ax = axes[0, 0]
    names = {
        "multipliers": "not matched: the same $\\mu_0$",
        "effective": "matched: the same $\\nu_0 = \\mu_0 + C h_{-1}$",
        "memory_free": "matched: the same $\\pi_0$",
    }
    for i, (start, name) in enumerate(names.items()):
        values = np.maximum(np.max([d[:170] for d in deviations[start]], axis=0), 1e-17)
        ax.plot(values, label=name, **line_style(i, values.size))
    ax.set(yscale="log", xlabel="iteration $t$", ylabel="$\\|x_t - x_t^{ref}\\|_\\infty$")
    legend_below(fig, ax)
    return fig


matched_or_not()

# %% [markdown]
# Unmatched starts are different trajectories; they still end in the same solution here, because
# it attracts all of them. Exactly zero is drawn as 1e−17.
#
# ## Is it a solution?
#
# No solver should be the judge of its own answer. The verifier evaluates the problem's functions,
# fits its own multipliers and asks IPOPT.

# %%
report = verify(problem, runs["C = Ω = M/2"], x0=x0)
print(report)
