# %% [markdown]
# # 1. One correction, two channels
#
# An equality-constrained problem, min f(x) subject to h(x) = 0, has the Lagrangian
# $L(x, \lambda) = f(x) + \lambda^T h(x)$. Descent in x and ascent in λ is the simplest way to its
# saddle points, and it turns in circles. There are two old cures:
#
# - *augmentation*: add $\tfrac12 h(x)^T C_{\mathrm{aug}} h(x)$ to L, which gives the constraint
#   directions curvature;
# - *optimism*: add $C_{\mathrm{opt}} (h_t - h_{t-1})$ to the dual step, which damps the rotation by
#   memory.
#
# This notebook shows on three variables and two constraints that they are one correction,
# $M = C_{\mathrm{aug}} + C_{\mathrm{opt}}$ (the paper's C + Ω), that it pays to let M be a matrix,
# and what a different start does. The source is Zhao,
# *Matrix-Valued Optimism is Matrix-Valued Augmentation*. Every number below is computed by the cell
# above it.

# %%
import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.output.plotting import (
    PALETTE,
    deviation,
    figure,
    legend_below,
    plot_convergence,
    plot_curves,
)

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
        h={"cylinder": (x[0] ** 2 + x[1] ** 2 - 2) / 2, "saddle": unit * (x[2] - x[0] * x[1] / 2)},
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


angle = np.linspace(-180, 180, 361)
around = np.sqrt(2) * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
there = np.degrees(np.arctan2(solution.x[1], solution.x[0]))
star = {"marker": "*", "linestyle": "", "color": "#000000", "markersize": 13}
plot_curves(
    {
        "": {
            "on the feasible curve": (angle, on_saddle(*around), {"marker": ""}),
            "solution": ([there], [solution.f], star),
        }
    },
    xlabel="angle on the cylinder (°)",
    ylabel="$f$",
    ticks={"x": range(-180, 181, 60)},
    height=2.6,
)

# %% [markdown]
# Every point of this line is feasible; f says which one is the answer.
#
# ## The disease: rotation
#
# Plain gradient descent–ascent, with the steps $\eta_x = \eta_d = 0.1$ that all runs of this
# section use:
#
# $$ x_{t+1} = x_t - \eta_x (\nabla f + J^T \mu_t), \qquad \mu_{t+1} = \mu_t + \eta_d h_t. $$
#
# It turns around the solution and never settles. Near the solution the step is linear,
# $z_{t+1} = T z_t$, and the largest |eigenvalue| of T says whether errors shrink. The law below
# takes its dual step first and uses $\mu_{t+1}$ in the primal step; that alone is a correction, of
# size $\eta_d$.

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
# much is slower again, because the primal step has to share $\eta_x$ with more curvature.
#
# ## Two cures
#
# The law with both channels, ALG(C, Ω) in the paper's "Equivalence and Additivity of
# Matrix-Valued correction":
#
# $$ \begin{align*} \mu_{t+1} &= \mu_t + \eta_d h_t + C_{\mathrm{opt}} (h_t - h_{t-1}) \\
# x_{t+1} &= x_t - \eta_x \left[ \nabla f + J^T (\mu_{t+1} + C_{\mathrm{aug}} h_t) \right]
# \end{align*} $$
#
# Cure 1 is $C_{\mathrm{aug}} = I$, $C_{\mathrm{opt}} = 0$, cure 2 the other way round. Same steps,
# same start.

# %%
one = np.eye(2)
cures = {
    "descent–ascent": plain,
    "augmented": Solver(problem, "constant", C_aug=one, **steps).solve(x0, history=True),
    "optimistic": Solver(problem, "constant", C_opt=one, **steps).solve(x0, history=True),
}
for label, run in cures.items():
    print(f"{label:14} {run.stop.name:16} {run.iterations:4d} steps, x = {run.x.round(6)}")

# %% [markdown]
# Of a run that does not converge the best iterate is returned. Of descent–ascent that is the start,
# (0.5, 0.5, 0.5): no later iterate came closer to a KKT point.


# %%
def seen_from_above(panels, steps=120):
    """Draw the first iterates of each run over the feasible curve and f on the saddle."""
    fig, axes = figure(1, len(panels), height=3.7, sharex=True, sharey=True)
    a, b = np.meshgrid(np.linspace(-1.6, 2.8, 121), np.linspace(-1.8, 1.6, 121))
    number = 0
    for ax, (title, runs) in zip(axes[0], panels.items(), strict=True):
        ax.contour(a, b, on_saddle(a, b), levels=12, colors="#BBBBBB", linewidths=0.6)
        ax.contour(a, b, a**2 + b**2, levels=[2], colors="#000000", linewidths=1.2)
        for label, run in runs.items():
            look = {"linestyle": "", "marker": "o", "fillstyle": "none"} if number > 1 else {}
            path = run.history.x[: steps + 1, :2].T
            ax.plot(*path, label=label, color=PALETTE[number], **{"marker": "."} | look)
            number += 1
        ax.plot(*x0[:2], "s", color="#000000", markersize=6, label="start")
        ax.plot(*solution.x[:2], label="solution", **star)
        ax.set(xlim=(-1.6, 2.8), ylim=(-1.8, 1.6), xlabel="$x_1$ (m)", aspect="equal")
        ax.set_title(title, fontsize=10)
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("$x_2$ (m)")
    legend_below(fig, *axes[0], columns=5)
    return fig


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
# $\pi_t = \mu_t - C_{\mathrm{opt}} h_{t-1}$. Then
#
# $$ \pi_{t+1} = \pi_t + \eta_d h_t, \qquad
# x_{t+1} = x_t - \eta_x \left[ \nabla f + J^T (\pi_{t+1} + M h_t) \right]: $$
#
# only $M = C_{\mathrm{aug}} + C_{\mathrm{opt}}$ is left. So any split of the same M gives the same
# trajectory, also an odd one.

# %%
odd = np.array([[0.7, -2.0], [5.0, -3.0]])
splits = {
    "all augmented": one,
    "all optimistic": 0 * one,
    "half and half": one / 2,
    "C_aug an odd matrix": odd,
}
runs = {
    label: Solver(problem, "constant", C_aug=C, C_opt=one - C, **steps).solve(x0, history=True)
    for label, C in splits.items()
}
base = next(iter(runs.values())).history
for label, run in runs.items():
    apart = deviation(run.history.x, base.x).max()
    print(f"{label:19} {run.iterations} steps, largest deviation in x {apart:.1e}")
plot_curves(
    {
        "$x_1$ (m): one curve": {label: run.history.x[:60, 0] for label, run in runs.items()},
        "$\\mu_1$ (units of $f/h_1$): one for each split": {
            label: run.history.mu[:60, 0] for label, run in runs.items()
        },
    },
    xlabel="iteration $t$",
    ylabel="$x_1$ and $\\mu_1$",
    columns=4,
)

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
# - $M = c I$ with numbers as steps;
# - $M = k (J J^T)^{-1}$ with numbers as steps;
# - $M = k (J J^T)^{-1}$, and the dual step in the same metric, $\eta_d (J J^T)^{-1}$.


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
        run = Solver(there, "constant", C_aug=M, eta_x=eta_x, eta_d=eta_d, max_iter=5000).solve(
            solution.x + 0.05, lam_g0=lam
        )
        needed[label].append(run.iterations)
        print(
            f"unit 1/{unit:<2g} m  {label:25} radius {rho:.4f}, {run.iterations:4d} steps, ", end=""
        )
        print(run.stop.name)
plot_curves(
    {"": {label: (units, counts) for label, counts in needed.items()}},
    xlabel="parts of a metre in which the second residual is measured",
    ylabel="steps to $10^{-8}$",
    xscale="log",
    yscale="log",
    ticks={"x": units, "y": (20, 50, 100, 200, 500, 1000)},
)

# %% [markdown]
# No number c serves both residuals when their units differ; a matrix does. With the dual step in
# the same metric the iterates do not depend on the units at all: a step more or less comes from the
# tolerance, which is in units of the residual. The matrices here were taken at the solution, to
# compare the best of each family; the rules of [notebook 2](02_designing_M.ipynb) compute them at
# every step from H and J.
#
# ## When the start is not matched
#
# "Any split gives the same trajectory" needs one thing: the same memory-free multiplier $\pi_0$. A
# split with $C_{\mathrm{opt}} \ne 0$ has a memory $C_{\mathrm{opt}} h_{-1}$. Handing the same
# number $\mu_0$ to every split, with a memory already filled by $h_{-1} = h_0$, starts each of them
# at another $\pi_0 = \mu_0 - C_{\mathrm{opt}} h_{-1}$.

# %%
started = {}
for start in ("multipliers", "effective", "memory_free"):
    found = started[start] = [
        Solver(problem, "constant", C_aug=C, C_opt=one - C, dual_start=start, **steps).solve(
            x0, history=True
        )
        for C in (one, 0 * one, one / 2)
    ]
    worst = max(deviation(run.history.x, found[0].history.x).max() for run in found[1:])
    ends = max(np.abs(run.x - solution.x).max() for run in found)
    print(f"{start:12} apart by {worst:.1e}; all end within {ends:.0e} of x*")
names = ("all augmented", "all optimistic", "half and half")
plot_curves(
    {
        title: {
            name: np.linalg.norm(run.history.x[:80] - solution.x, axis=1)
            for name, run in zip(names, started[start], strict=True)
        }
        for title, start in {
            "the same μ: three trajectories": "multipliers",
            "the same π: one": "memory_free",
        }.items()
    },
    xlabel="iteration $t$",
    ylabel="distance to the solution (m)",
    yscale="log",
)

# %% [markdown]
# Unmatched starts are different trajectories; they still end in the same solution here, because it
# attracts all of them. The paper's Algorithm 1 leaves its first step open: it needs $h_{-1}$ and
# $C_{\mathrm{opt},-1}$. `dual_start="multipliers"` is the start of the left picture, by which the
# paper's tables are reproduced; the solver's methods start as in the right one.
#
# ## Is it a solution?
#
# No solver should be the judge of its own answer. The verifier evaluates the problem's functions,
# fits its own multipliers and asks IPOPT.

# %%
report = verify(problem, runs["half and half"], x0=x0)
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
