# %% [markdown]
# # 2. Designing M
#
# [Notebook 1](01_one_correction_two_channels.ipynb) took M as given. The paper's rule
# ("Closed-Form Hybrid Correction Design") chooses it at every step from two matrices, the Hessian
# $H = \nabla^2_{xx} L$ and the Jacobian B of h, in four decisions:
#
# 1. *cancellation*: $C_{\mathrm{can}}$ takes away the curvature that B can see;
# 2. *strength*: $\alpha R$ gives back as much as is wanted, δ;
# 3. *split*: $C_{\mathrm{aug}} = C_{\mathrm{can}} + \theta \alpha R$ and
#    $C_{\mathrm{opt}} = (1 - \theta) \alpha R$;
# 4. *steps*: $\eta_x$ and $\eta_d$, as long as S1–S3 permit.
#
# Each is a small object that can be exchanged. One picture for each.

# %%
import numpy as np

from casadi_hybrid import Solver
from casadi_hybrid.paper.claims.spectra import local_gap
from casadi_hybrid.paper.experiment.generator import make_instance
from casadi_hybrid.paper.rules import (
    ClosedFormSplit,
    DesignRule,
    FloorCancellation,
    FullCancellation,
    GivenSplit,
    GramMetric,
    IdentityMetric,
    LeastNormCancellation,
    LocalModel,
    NegativeCancellation,
    PartialCancellation,
    PureAugmented,
    PureOptimistic,
    StepRule,
    TargetCurvature,
)
from casadi_hybrid.utils.output.plotting import (
    PALETTE,
    figure,
    legend_below,
    line_style,
    plot_curves,
)

# %% [markdown]
# Two variables, two constraints: H has one negative eigenvalue, and the singular values of B are 1
# and 1/κ.

# %%
H = np.array([[-0.6, 0.7], [0.7, 0.5]])
DELTA = 0.35


def model(condition, weak=1):
    """The local model with cond B = condition; ``weak`` says which row is the weak one."""
    rows = np.array([[0.8, -0.6], [0.6, 0.8]])
    rows[weak] /= condition
    return LocalModel(H, rows)


three = model(3.0)
print("eigenvalues of H:", np.linalg.eigvalsh(H).round(3))
print("singular values of B:", np.linalg.svd(three.B)[1].round(3))

# %% [markdown]
# ## 1. Cancellation
#
# In the direction $d = (\cos \varphi, \sin \varphi)$ the corrected model has the curvature
# $d^T (H + B^T M B) d$. Full cancellation, the paper's $C_{\mathrm{can}} = -B^{+T} H B^{+}$, makes
# it zero in all directions before $\alpha R$ is added. Others take away less: negative curvature
# only, a part of all, or just what is missing to δ.

# %%
cancellations = {
    "full (paper)": FullCancellation(),
    "negative only": NegativeCancellation(),
    "half of all": PartialCancellation(0.5),
    "floor": FloorCancellation(),
    "least norm": LeastNormCancellation(),
}


def designed(local, **parts):
    """The design without a norm budget."""
    return DesignRule(M_max=1e9, **parts).design(local)


phi = np.linspace(0, 180, 181)
d = np.vstack((np.cos(np.radians(phi)), np.sin(np.radians(phi))))
curved = {"H alone": (phi, np.sum(d * (H @ d), axis=0), {"color": "#000000", "marker": ""})}
for label, cancellation in cancellations.items():
    A = three.curvature(designed(three, cancellation=cancellation).M)
    curved[label] = (phi, np.sum(d * (A @ d), axis=0))
plot_curves(
    {"cond B = 3": curved},
    levels={"target δ": DELTA},
    xlabel="direction φ (°)",
    ylabel="curvature $d^T(H + B^TMB)d$",
    ticks={"x": range(0, 181, 45)},
)

# %%
conditions = np.geomspace(1, 30, 20)
plot_curves(
    {
        "": {
            label: (conditions, [designed(model(c), cancellation=kind).norm_M for c in conditions])
            for label, kind in cancellations.items()
        }
    },
    levels={"the paper's budget": 300},
    xlabel="cond $B$",
    ylabel="$\\|M\\|_2$",
    xscale="log",
    yscale="log",
    ticks={"x": (1, 3, 10, 30)},
)

# %%
print("the weak row sees positive curvature of H, as drawn; then negative:")
for label, cancellation in cancellations.items():
    smallest = designed(three, cancellation=cancellation).min_eig_A
    norms = [designed(model(30.0, weak), cancellation=cancellation).norm_M for weak in (1, 0)]
    print(f"{label:14} λ_min(A_M) = {smallest:.3f} at cond 3; ", end="")
    print(f"at cond 30 ‖M‖ = {norms[0]:6.1f}, then {norms[1]:6.1f}")

# %% [markdown]
# All of them reach δ in every direction. Full cancellation takes away good curvature with the bad
# and gives δ back; in the weak direction of B both have to be multiplied up twice, and the price
# grows as cond(B)². With the paper's budget of 300 no design is left beyond some condition number.
# "Least norm" adds only what is missing. Where the weak row sees enough curvature of H, that is
# nothing; where it sees negative curvature, no choice escapes the growth.
#
# ## 2. Strength
#
# α is the least that reaches δ: $\alpha = \delta / \lambda_{\min}(B^T R B)$ under full
# cancellation. R says in which metric. $R = I$ is the paper's; $R = (B B^T)^{-1}$ does not feel how
# B is scaled.

# %%
metrics = {"R = I": IdentityMetric(), "R = (BBᵀ)⁻¹": GramMetric()}
panels = {}
C = FullCancellation().cancel(three, DELTA).C
for title, metric in metrics.items():
    R = metric.matrix(three)
    chosen = TargetCurvature(DELTA).alpha(three, R, DELTA)
    share = np.linspace(0, 2, 21)
    eigenvalues = np.array([np.linalg.eigvalsh(three.curvature(C + s * chosen * R)) for s in share])
    panels[f"{title}: chosen α = {chosen:.2f}"] = {
        "smallest eigenvalue of $A_M$": (share, eigenvalues[:, 0]),
        "largest": (share, eigenvalues[:, 1]),
    }
for title, metric in metrics.items():
    found = designed(three, metric=metric)
    spread = np.linalg.cond(three.curvature(found.M))
    print(f"{title:12} α = {found.alpha:.3f}, cond A_M = {spread:.2f}, ‖M‖ = {found.norm_M:.2f}")
plot_curves(
    panels,
    levels={"target δ": DELTA},
    at={"chosen": 1.0},
    xlabel="strength, parts of the chosen α",
    ylabel="curvature",
    columns=4,
)

# %% [markdown]
# With $R = I$ the weak direction decides α, and the strong one gets cond(B)² times as much
# curvature. The largest eigenvalue is what limits the primal step next.
#
# ## 3. Steps: S1, S2, S3
#
# The three restrictions of the paper ("Step-Size-Limited correction Design") bound a region of
# $(\eta_x, \eta_d)$:
#
# - S1: $\eta_x \le \kappa_x / \|H + B^T C_{\mathrm{aug}} B\|$, a wall on the right;
# - S2: $\eta_x \eta_d \le \kappa_p / \|B\|^2$, a diagonal;
# - S3: $\eta_d \ge \|C_{\mathrm{opt}}\| / \kappa_\omega$, a floor.
#
# More θ moves correction from the floor to the wall.


# %%
def limits(local, found):
    """Return η_x of S1, the product of S2, and η_d of S3."""
    kappa = StepRule()
    aug, opt = np.linalg.norm(local.curvature(found.C_aug), 2), np.linalg.norm(found.C_opt, 2)
    wall = kappa.kappa_x / aug if found.C_aug.any() else np.inf
    return wall, kappa.kappa_p / local.norm_B**2, opt / kappa.kappa_omega


def region():
    """Draw what S1–S3 allow and what the rule takes, for three splits of one M."""
    fig, axes = figure(1, 3, height=3.3, sharex=True, sharey=True)
    eta_x = np.geomspace(3e-3, 3, 300)
    shown = {"θ = 0": GivenSplit(0.0), "closed form": ClosedFormSplit(), "θ = 1": GivenSplit(1.0)}
    for ax, (title, split) in zip(axes[0], shown.items(), strict=True):
        found = designed(three, split=split)
        wall, product, floor = limits(three, found)
        top = product / eta_x
        inside = (eta_x <= wall) & (top >= floor)
        ax.fill_between(eta_x, max(floor, 1e-3), top, where=inside, color="#56B4E9", alpha=0.35)
        ax.plot(eta_x, top, **line_style(0), label="S2")
        if wall < eta_x[-1]:
            ax.axvline(wall, **line_style(1), label="S1")
        if floor > 0:
            ax.axhline(floor, **line_style(2), label="S3")
        ax.plot(found.eta_x, found.eta_d, "*", color="#000000", markersize=13, label="taken")
        ax.set(xscale="log", yscale="log", ylim=(0.03, 30), xlabel="primal step $\\eta_x$")
        ax.set_title(f"{title}: $\\eta_x$ = {found.eta_x:.3f}", fontsize=10)
    axes[0, 0].set_ylabel("dual step $\\eta_d$")
    legend_below(fig, axes[0, 1], columns=4)
    return fig


region()

# %% [markdown]
# Splits of one M have one trajectory when their steps are equal. What a split gains is only the
# longer step: the closed form puts θ where S1 and S3 let the same $\eta_x$ pass.

# %%
closed = designed(three)


def bound(found):
    """What limits η_x; the closed form makes S1 and S3 equal, so which of them is rounding."""
    return "S2 alone" if found.active == "balance" else "S1 = S3"


splits = {"θ = 0": GivenSplit(0.0), "θ = 1": GivenSplit(1.0)}
splits |= {"pure optimistic": PureOptimistic(), "pure augmented": PureAugmented()}
print(f"closed form: θ = {closed.theta:.4f}, η_x = {closed.eta_x:.4f}, bound by {bound(closed)}")
for label, split in splits.items():
    found = designed(three, split=split)
    print(f"{label:16} η_x = {found.eta_x:.4f}, the closed form's is ", end="")
    print(f"{closed.eta_x / found.eta_x:.2f} times as long")
kappa = StepRule()
constant = kappa.kappa_x / (kappa.kappa_x + kappa.kappa_p * kappa.kappa_omega)
print(f"κ_x/(κ_x + κ_p κ_ω) = {constant:.4f}")

# %%
thetas = np.geomspace(0.002, 0.998, 120)
found = [designed(three, split=GivenSplit(theta)) for theta in thetas]
bounds = [limits(three, one) for one in found]
plain = {"marker": ""}
plot_curves(
    {
        "": {
            "S1 (augmented)": (thetas, [wall for wall, _, _ in bounds], plain),
            "S3 (optimistic)": (thetas, [product / floor for _, product, floor in bounds], plain),
            "step taken": (thetas, [one.eta_x for one in found], {"markevery": 8}),
        }
    },
    at={"closed form": closed.theta},
    xlabel="share θ of the augmented channel",
    ylabel="primal step $\\eta_x$",
    xscale="log",
    yscale="log",
    ylim=(0.01, 3),
    columns=4,
)

# %% [markdown]
# With $R = I$ the closed form's θ is a number of the safety constants alone, whatever B is: the
# gain over θ = 1 is large, that over θ = 0 is small. With another R it moves.
#
# ## 4. Weights
#
# On the diagonal S2 a longer $\eta_x$ costs dual step. Which is worth more? The rule maximizes
# $\min(a_x \eta_x, a_d \eta_d)$, in the weighted variant with
#
# $$ a_x = \tfrac12 \lambda_{\min}(A_M), \qquad a_d = \lambda^{+}_{\min}(B A_M^{-1} B^T), $$
#
# in the unit variant with $a_x = a_d = 1$. The true judge is the gap $1 - \rho$ of the linearized
# step.

# %%
near_one = model(1.2)
wide = StepRule(kappa_x=10.0, kappa_omega=100.0)  # S1 and S3 out of the way: only S2 binds
weighted = designed(near_one, steps=wide)
unit = designed(near_one, steps=StepRule(kappa_x=10.0, kappa_omega=100.0, margin="unit"))


def gap(found, eta_x):
    """1 − ρ with η_d on the diagonal S2."""
    eta_d = wide.kappa_p / (near_one.norm_B**2 * eta_x)
    return local_gap(near_one.H, near_one.B, found.M, eta_x, eta_d)


for label, found in (("weighted", weighted), ("unit", unit)):
    print(f"{label:9} η_x = {found.eta_x:.3f}, η_d = {found.eta_d:.3f}, ", end="")
    print(f"gap {gap(found, found.eta_x):.4f}, bound by {bound(found)}")

# %%
eta_x = np.geomspace(0.05, 2.5, 200)
eta_d = wide.kappa_p / (near_one.norm_B**2 * eta_x)
curves = {"gap $1 - \\rho$": (eta_x, [gap(weighted, e) for e in eta_x], {"marker": ""})}
for i, (label, found) in enumerate({"weighted": weighted, "unit": unit}.items()):
    margin = np.minimum(found.a_x * eta_x, found.a_d * eta_d)
    curves[f"{label} margin"] = (eta_x, margin, line_style(i + 1))
    star = {"marker": "*", "markersize": 14, "linestyle": "", "color": PALETTE[i + 1]}
    curves[f"{label} choice"] = ([found.eta_x], [gap(found, found.eta_x)], star)
plot_curves(
    {"": curves},
    xlabel="primal step $\\eta_x$, with $\\eta_d$ on S2",
    ylabel="contraction of a step",
    xscale="log",
    ylim=(0, 0.5),
    ticks={"x": (0.05, 0.1, 0.2, 0.5, 1, 2)},
)

# %% [markdown]
# The stars are what each margin chooses, on the curve of the gap. The weights matter where S2 alone
# binds. With the paper's constants S1 and S3 bind first where B is ill-conditioned, and there both
# variants are one method:

# %%
for condition in (1.0, 1.5, 2.0, 3.0, 5.0):
    pair = [
        designed(model(condition), steps=StepRule(margin=margin)) for margin in ("weighted", "unit")
    ]
    steps = " and ".join(f"{found.eta_x:.4f} ({bound(found)})" for found in pair)
    print(f"cond B = {condition:3.1f}: η_x weighted and unit {steps}")

# %% [markdown]
# ## All of it in a solve
#
# The names of the methods are compositions of these parts, and the parts are options. One problem
# of the paper's class with cond B = 3, started near its known solution:

# %%
instance = make_instance(3, 0)
choices = {
    "closed form": ("closed-form", {}),
    "  R = (BBᵀ)⁺": ("closed-form", {"metric": GramMetric()}),
    "  least norm": ("closed-form", {"cancellation": LeastNormCancellation()}),
    "pure augmented": ("pure-augmented", {}),
    "pure optimistic": ("pure-optimistic", {}),
    "whitened": ("whitened", {}),
}
for label, (method, options) in choices.items():
    solver = Solver(instance.problem, method, tol=1e-6, max_iter=500, **options)
    run = solver.solve(instance.x0, lam_g0=instance.multipliers0, history=True)
    largest = f", ‖M‖ up to {run.history.design('norm_M').max():7.2f}" if run.iterations else ""
    print(f"{label:16} {run.iterations:5d} steps, {run.stop.name}{largest}")

# %% [markdown]
# A smaller M is not a faster one: what counts are the steps that it permits. A part of your own is
# one class with one method: [notebook 8](08_your_own_rule.ipynb).
