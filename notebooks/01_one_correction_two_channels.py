# %% [markdown]
# # 1. One correction, two channels
#
# An equality-constrained problem, min f(x) subject to h(x) = 0, has the Lagrangian
# L(x, λ) = f(x) + λᵀh(x). Descent in x and ascent in λ is the simplest way to its saddle points,
# and it turns in circles. There are two old cures:
#
# - *augmentation*: add ½ h(x)ᵀC h(x) to L, which gives the constraint directions curvature;
# - *optimism*: add Ω(h_t − h_{t−1}) to the dual step, which damps the rotation by memory.
#
# This notebook shows on three variables and two constraints that they are one correction,
# M = C + Ω, that it pays to let M be a matrix, and what a different start does. The source is Zhao,
# *Matrix-Valued Optimism is Matrix-Valued Augmentation*. Every number below is computed by the cell
# above it.

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

# %% [markdown]
# ## A problem one can see
#
# A cylinder and a saddle surface meet in a closed curve: two constraints, three variables, one
# direction left in which f decides. f is a hill that pushes away from the origin. L gets negative
# curvature from it, which only the constraints can hold.

# %%
x = ca.SX.sym("x", 3)


def stated(unit=1.0):
    """The problem; ``unit`` is in how many parts of a metre the second residual is measured."""
    return Problem(
        x=x,
        f=-0.25 * ca.sumsqr(x) - 0.5 * x[0] + 0.3 * x[2],
        h={
            "cylinder": (x[0] ** 2 + x[1] ** 2 - 2) / 2,
            "saddle": unit * (x[2] - x[0] * x[1] / 2),
        },
        name="cylinder and saddle",
    )


problem = stated()
x0 = np.array([0.5, 0.5, 0.5])
solution = Solver(problem).solve(x0)
print(solution)

# %%
f = ca.Function("f", [x], [problem.f])


def on_saddle(a, b):
    """Return f at (a, b, ab/2): the surface seen from above."""
    points = np.vstack((np.ravel(a), np.ravel(b), np.ravel(a) * np.ravel(b) / 2))
    return f.map(points.shape[1])(points).full().reshape(np.shape(a))


def seen_from_above(panels, steps=120):
    """Draw the first iterates of each run over the feasible curve and f on the saddle."""
    fig, axes = figure(1, len(panels), height=3.7, sharex=True, sharey=True)
    a, b = np.meshgrid(np.linspace(-1.6, 2.8, 121), np.linspace(-1.8, 1.6, 121))
    legend, number = {}, 0
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        ax.contour(
            a, b, on_saddle(a, b), levels=12, colors="#BBBBBB", linewidths=0.6, linestyles="-"
        )
        ax.contour(a, b, a**2 + b**2, levels=[2], colors="#000000", linewidths=1.2)
        for i, (label, run) in enumerate(curves.items()):
            path = run.history.x[: steps + 1, :2]
            look = {"marker": "o", "markersize": 6, "fillstyle": "none"} if i else {"marker": "."}
            style = {"color": PALETTE[number], "linestyle": "" if i else "-", "linewidth": 1.0}
            ax.plot(*path.T, label=label, **style, **look)
            number += 1
        ax.plot(*x0[:2], "s", color="#000000", markersize=6, label="start")
        ax.plot(*solution.x[:2], "*", color="#000000", markersize=13, label="solution")
        ax.set(xlim=(-1.6, 2.8), ylim=(-1.8, 1.6), xlabel="$x_1$ (m)", aspect="equal")
        ax.set_title(title, fontsize=10)
        ax.grid(visible=False)
        handles, labels = ax.get_legend_handles_labels()
        legend |= dict(zip(labels, handles, strict=True))
    axes[0, 0].set_ylabel("$x_2$ (m)")
    fig.legend(
        legend.values(), legend, loc="outside lower center", ncols=5, fontsize=9, frameon=False
    )
    return fig


def along_the_curve():
    """Draw f on the feasible curve against the angle on the cylinder."""
    fig, axes = figure(1, 1, height=2.4)
    ax = axes[0, 0]
    phi = np.linspace(-180, 180, 361)
    radians = np.radians(phi)
    curve = on_saddle(np.sqrt(2) * np.cos(radians), np.sqrt(2) * np.sin(radians))
    ax.plot(phi, curve, color=PALETTE[0])
    there = np.degrees(np.arctan2(solution.x[1], solution.x[0]))
    ax.plot(there, solution.f, "*", color="#000000", markersize=13, label="solution")
    ax.set(xlabel="angle on the cylinder (°)", ylabel="$f$ on the feasible curve")
    ax.set_xticks(range(-180, 181, 60))
    ax.legend(fontsize=9)
    return fig


along_the_curve()

# %% [markdown]
# Every point of this line is feasible; f says which one is the answer.
#
# ## The disease: rotation
#
# Plain gradient descent–ascent, with the steps η_x = η_d = 0.1 that all runs of this section use:
#
#     x⁺ = x − η_x(∇f + Jᵀμ),   μ⁺ = μ + η_d h.
#
# It turns around the solution and never settles. Near the solution the step is linear, z⁺ = T z,
# and the largest |eigenvalue| of T says whether errors shrink. The law below takes its dual step
# first and uses μ⁺ = μ + η_d h in the primal step; that alone is a correction, of size η_d.

# %%
ETA = 0.1
steps = {"eta_x": ETA, "eta_d": ETA}
plain = Solver(problem, "gda", max_iter=160, **steps).solve(x0, history=True)
print(plain.stop.value, "| distance to the solution after 0, 40, 80, 160 steps, in m:")
distance = np.linalg.norm(plain.history.x - solution.x, axis=1)
print(distance[[0, 40, 80, 160]].round(3))

# %%
at = Oracle(problem.functions, np.zeros(0)).second(solution.x, solution.lam_g)


def local_map(M, drive_first=True):
    """T of one step at the solution, for (x, π): π⁺ = π + η_d B x, x⁺ = x − η_x[…]."""
    H, B = at.hessian, at.B
    added = M + ETA * np.eye(2) if drive_first else M
    kept = np.eye(3) - ETA * (H + B.T @ added @ B)
    return np.block([[kept, -ETA * B.T], [ETA * B, np.eye(2)]])


def radius(T):
    """Largest |eigenvalue|."""
    return np.abs(np.linalg.eigvals(T)).max(axis=-1)


print(f"descent-ascent:        {radius(local_map(np.zeros((2, 2)), drive_first=False)):.4f}")
for c in (0.0, 0.5, 1.0, 2.0, 4.0):
    print(f"with M = {c:3.1f} I:        {radius(local_map(c * np.eye(2))):.4f}")

# %% [markdown]
# Above one errors grow, below one they shrink. Too little correction does not hold the hill. Too
# much is slower again, because the primal step has to share η_x with more curvature.
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
seen_from_above(
    {
        "the disease, 120 steps": {names[0]: cures[names[0]]},
        "the cures, 120 steps": {name: cures[name] for name in names[1:]},
    }
)

# %% [markdown]
# Seen from above: the black line is the feasible curve, grey are the level lines of f on the saddle
# surface. The cures first find the curve and then go along it to where f is least.

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
    fig, axes = figure(1, 2, height=3.0)
    for i, (label, run) in enumerate(runs.items()):
        style = line_style(i, 60) | {"fillstyle": "none", "linewidth": 1.8 - 0.3 * i}
        axes[0, 0].plot(run.history.x[:60, 0], label=label, **style)
        axes[0, 1].plot(run.history.mu[:60, 0], **style)
    for ax, text in zip(axes[0], ("$x_1$: one curve", "$\\mu_1$: one for each split"), strict=True):
        ax.set_xlabel("iteration $t$")
        ax.set_title(text, fontsize=10)
    axes[0, 0].set_ylabel("$x_1$ (m)")
    axes[0, 1].set_ylabel("$\\mu_1$ (units of $f/h_1$)")
    legend_below(fig, axes[0, 0], columns=2)
    return fig


overlay()

# %% [markdown]
# The primal trajectories agree to rounding. The dual variable μ differs from split to split,
# because each stores another part of the correction in it; π does not.
#
# ## Why a matrix
#
# M = cI treats all residuals alike. Now let the second residual be measured in other units: in
# decimetres it is ten times as large. The problem is the same, its Jacobian is not. For each unit
# the best correction and the best steps are searched on a grid, by the radius of the local map, in
# three families:
#
# - M = cI with numbers as steps;
# - M = k(JJᵀ)⁻¹ with numbers as steps;
# - M = k(JJᵀ)⁻¹, and the dual step in the same metric, η_d (JJᵀ)⁻¹.


# %%
def best(H, B, metric, dual):
    """Return (radius, M, η_x, dual step) of the best of a grid for M = c·metric, D = η_d·dual."""
    x_steps = np.geomspace(0.02, 2.0, 20)[:, None, None, None]
    d_steps = np.geomspace(1e-3, 2.0, 24)[None, :, None, None]
    found = (np.inf,)
    for c in np.geomspace(0.02, 2.0, 9):
        kept = np.eye(3) - x_steps * (H + c * B.T @ metric @ B)
        drive = d_steps * (dual @ B)
        T = np.empty((20, 24, 5, 5))
        T[..., :3, :3], T[..., :3, 3:] = kept, -x_steps * B.T
        T[..., 3:, :3], T[..., 3:, 3:] = drive @ kept, np.eye(2) - x_steps * drive @ B.T
        radii = radius(T)
        i, j = np.unravel_index(radii.argmin(), radii.shape)
        if radii[i, j] < found[0]:
            found = (radii[i, j], c * metric, float(x_steps.flat[i]), float(d_steps.flat[j]) * dual)
    return found


units = (1.0, 3.0, 10.0)
needed = {"M = cI": [], "M a matrix": [], "M and dual step matrices": []}
for unit in units:
    there = stated(unit)
    lam = solution.lam_g / [1, unit]
    local = Oracle(there.functions, np.zeros(0)).second(solution.x, lam)
    gram = np.linalg.inv(local.B @ local.B.T)
    for label, metric, dual in zip(needed, (one, gram, gram), (one, one, gram), strict=True):
        rho, M, eta_x, eta_d = best(local.hessian, local.B, metric, dual)
        run = Solver(there, "constant", C=M, eta_x=eta_x, eta_d=eta_d, max_iter=5000).solve(
            solution.x + 0.05, lam_g0=lam
        )
        needed[label].append(run.iterations)
        print(
            f"unit 1/{unit:<2g} m  {label:25} radius {rho:.4f}, {run.iterations:4d} steps, ", end=""
        )
        print(run.stop.name)


# %%
def against_units():
    """Draw the steps needed by each family against the units of the second residual."""
    fig, axes = figure(1, 1, height=3.0)
    ax = axes[0, 0]
    for i, (label, counts) in enumerate(needed.items()):
        ax.plot(units, counts, label=label, **line_style(i, len(units)))
    ax.set(xscale="log", yscale="log", ylabel="steps to $10^{-8}$")
    ax.set_xlabel("parts of a metre in which the second residual is measured")
    ax.set_xticks(units, [f"{unit:g}" for unit in units])
    ax.minorticks_off()
    ax.set_yticks((20, 50, 100, 200, 500, 1000), ("20", "50", "100", "200", "500", "1000"))
    legend_below(fig, ax)
    return fig


against_units()

# %% [markdown]
# No number c serves both residuals when their units differ; a matrix does. With the dual step in
# the same metric the iterates do not depend on the units at all: a step more or less comes from the
# tolerance, which is in units of the residual. The matrices here were taken at the solution, to
# compare the best of each family; the rules of [notebook 2](02_designing_M.ipynb) compute them at
# every step from H and J.
#
# ## When the start is not matched
#
# "Any split gives the same trajectory" needs one thing: the same memory-free multiplier π_0. A
# split with Ω ≠ 0 has a memory Ωh_{−1}. Handing the same number μ_0 to every split, with a memory
# already filled by h_{−1} = h_0, starts each of them at another π_0 = μ_0 − Ωh_{−1}.

# %%
started = {}
for start in ("multipliers", "effective", "memory_free"):
    found = started[start] = [
        Solver(problem, "constant", C=C, Omega=one - C, dual_start=start, **steps).solve(
            x0, history=True
        )
        for C in (one, 0 * one, one / 2)
    ]
    worst = max(deviation(run.history.x, found[0].history.x).max() for run in found[1:])
    ends = max(np.abs(run.x - solution.x).max() for run in found)
    print(f"{start:12} apart by {worst:.1e}; all end within {ends:.0e} of x*")


# %%
def starts():
    """Draw the distance to the solution of three splits, from a start that is matched or not."""
    fig, axes = figure(1, 2, height=3.0, sharey=True)
    names = ("C = M, Ω = 0", "C = 0, Ω = M", "C = Ω = M/2")
    for ax, start in zip(axes[0], ("multipliers", "memory_free"), strict=True):
        for i, (name, run) in enumerate(zip(names, started[start], strict=True)):
            away = np.linalg.norm(run.history.x[:80] - solution.x, axis=1)
            ax.plot(away, label=name, **line_style(i, 80) | {"fillstyle": "none"})
        ax.set(yscale="log", xlabel="iteration $t$")
    axes[0, 0].set_title("the same μ: three trajectories", fontsize=10)
    axes[0, 1].set_title("the same π: one", fontsize=10)
    axes[0, 0].set_ylabel("distance to the solution (m)")
    legend_below(fig, axes[0, 0])
    return fig


starts()

# %% [markdown]
# Unmatched starts are different trajectories; they still end in the same solution here, because
# it attracts all of them. The paper's Algorithm 1 leaves its first step open: it needs h_{−1} and
# C_{opt,−1}. `dual_start="multipliers"` is the start of the left picture, by which the paper's
# tables are reproduced; the solver's methods start as in the right one.
#
# ## Is it a solution?
#
# No solver should be the judge of its own answer. The verifier evaluates the problem's functions,
# fits its own multipliers and asks IPOPT.

# %%
report = verify(problem, runs["C = Ω = M/2"], x0=x0)
print(report)

# %% [markdown]
# For a problem of your own leave the method out: `Solver(problem).solve(x0)`, as in the second
# cell, takes inequalities and bounds as well and needs no steps to be chosen. What follows in
# these notebooks:
#
# 2. [designing M](02_designing_M.ipynb): cancellation, strength, step limits, weights;
# 3. [the paper's tables](03_the_papers_tables.ipynb): crossing and settling;
# 4. [noise](04_noise.ipynb): which channel hears it;
# 5. [optimal control](05_optimal_control.ipynb): from a model to a verified closed loop;
# 6. [reading diagnostics](06_reading_diagnostics.ipynb): when there is no solution;
# 7. [embedded C](07_embedded_c.ipynb): the solver without Python;
# 8. [your own rule](08_your_own_rule.ipynb): one class.
