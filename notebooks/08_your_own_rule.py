# %% [markdown]
# # 8. Your own rule
#
# A rule decides at every iterate what the correction is. It is one class with one attribute,
# `needs_hessian`, and one method, `decide(at, t)`, which returns a `Correction`: `C_aug`, `C_opt`,
# the primal and the dual step. The loop around it, the law, the stopping tests, history and
# diagnostics are there already. This notebook writes one, tests it as the rules of the package are
# tested, and holds it against them.

# %%
from dataclasses import dataclass

import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.paper.experiment.generator import make_instance
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.iterations.stopping import DistanceTest
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.utils.output.plotting import deviation, plot_curves

# %% [markdown]
# ## The idea
#
# Practice often has one penalty for each constraint: M is diagonal, and a row of B that is ten
# times as large gets a hundredth of the penalty. Let $b_i$ be the rows of B and
# $D = \mathrm{diag}(1 / \|b_i\|^2)$.
# The rule is
#
# - $M = c D$, with the least c of 1, 2, 4, … for which $H + c B^T D B \succeq \delta I$;
# - dual steps in the same metric, $\eta_d = \kappa D$;
# - $\eta_x = \kappa / \|H + B^T M B\|$;
# - a share s of M in the memory, the rest in the augmented channel.
#
# No row is given more than its own scale asks for, and nothing is inverted.


# %%
@dataclass(frozen=True)
class RowByRow:
    """M = c·diag(1/‖b_i‖²), the dual step in the same metric.

    Args:
        share: of M in the optimistic channel, in [0, 1].
        delta: δ, the curvature that H + BᵀMB has at least.
        kappa: κ, how bold the steps are.
    """

    share: float = 0.0
    delta: float = 0.3
    kappa: float = 1.0

    needs_hessian = True

    def decide(self, at, t):
        """Return the correction at H = ``at.hessian`` and B = ``at.B``."""
        H, B = at.hessian, at.B
        D = np.diag(1.0 / np.sum(B**2, axis=1))
        gram = B.T @ D @ B
        c = 1.0
        while np.linalg.eigvalsh(H + c * gram)[0] < self.delta and c < 2.0**20:
            c *= 2.0
        M = c * D
        eta_x = self.kappa / np.linalg.norm(H + c * gram, 2)
        return Correction(
            C_aug=(1 - self.share) * M, C_opt=self.share * M, eta_x=eta_x, eta_d=self.kappa * D
        )


# %% [markdown]
# `Hybrid` runs it, and `Solver` takes that in place of a method's name:

# %%
x = ca.SX.sym("x", 3)
goal = ca.DM([2, 1, 0])
problem = Problem(
    x=x,
    f=ca.sumsqr(x - goal) - x[0] * x[1],
    h={"sphere": ca.sumsqr(x) - 1, "plane": x[0] - x[2]},
    name="sphere and plane",
)
x0 = [1.0, 1.0, 1.0]
found = Solver(problem, Hybrid(RowByRow(), label="row by row")).solve(x0)
print(found)

# %% [markdown]
# ## Three tests
#
# What every rule of the family has to pass. *The split changes nothing*, as M and the steps depend
# on the iterate alone:

# %%
shares = (0.0, 0.3, 1.0)
runs = [Solver(problem, Hybrid(RowByRow(share))).solve(x0, history=True) for share in shares]
for share, run in zip(shares, runs, strict=True):
    apart = deviation(run.history.x, runs[0].history.x).max()
    print(f"share {share:3.1f}: {run.iterations} steps, apart by {apart:.1e}")

# %% [markdown]
# *The recursion is the law's*: written down once more by hand, from what the run recorded.

# %%
h, grad, jac = (
    ca.Function("at", [x], [expression])
    for expression in (problem.h, ca.gradient(problem.f, x), ca.jacobian(problem.h, x))
)


def by_hand(history):
    """The iterates of the law with the recorded corrections."""
    now, mu, memory = np.array(x0), np.zeros(2), np.zeros(2)
    iterates = [now]
    for correction in history.corrections:
        r, g, B = (np.array(function(now)) for function in (h, grad, jac))
        r, g = r.ravel(), g.ravel()
        mu = mu + correction.eta_d @ r + correction.C_opt @ r - memory
        memory = correction.C_opt @ r
        now = now - correction.eta_x * (g + B.T @ (mu + correction.C_aug @ r))
        iterates.append(now)
    return np.array(iterates)


for share, run in zip(shares, runs, strict=True):
    apart = deviation(by_hand(run.history), run.history.x).max()
    print(f"share {share:3.1f}: by hand and by the loop apart by {apart:.1e}")

# %% [markdown]
# *The answer is an answer*, by a judge that knows nothing of rules:

# %%
print(verify(problem, found, x0=x0))

# %% [markdown]
# ## A part of a rule
#
# Often a part is enough. The paper's rule is made of cancellation, metric, strength, split and
# steps, and each is an object with one method. Here is the same idea as a metric R:


# %%
class RowMetric:
    """R = diag(1/‖b_i‖²)."""

    def matrix(self, model):
        """Return R, m×m."""
        return np.diag(1.0 / np.sum(model.B**2, axis=1))


# %% [markdown]
# ## What is it good for?
#
# Units. In a problem of the paper's class with three variables and three constraints the first row
# is measured in other units, so that its residual and its row of B are s times as large. What is
# built row by row should not notice; the closed form with R = I should.

# %%
instance = make_instance(2, 0, n=3, m=3)
SCALES = (0.2, 0.5, 1.0, 2.0, 5.0)
MOST = 700
methods = {
    "row by row": (Hybrid(RowByRow()), {}),
    "closed form, R = I": ("closed-form", {}),
    "closed form, R by rows": ("closed-form", {"metric": RowMetric()}),
    "whitened": ("whitened", {}),
}


def counted(method, options, scale):
    """Steps to an error of 1e-6 in x, NaN where it was not reached."""
    units = np.array([scale, 1.0, 1.0])
    stated = Problem(
        x=instance.problem.x, f=instance.problem.f, h=ca.DM(units) * instance.problem.h
    )
    solver = Solver(stated, method, tol=1e-300, max_iter=MOST, **options,
                    stopping=[DistanceTest(instance.x_star, 1e-6)])  # fmt: skip
    run = solver.solve(instance.x0, lam_g0=instance.multipliers0 / units)
    return run.iterations if run.stop.name == "TARGET_REACHED" else np.nan


steps = {
    label: [counted(method, options, scale) for scale in SCALES]
    for label, (method, options) in methods.items()
}
print(f"{'s':22}", *(f"{s:>6}" for s in SCALES))
for label, counts in steps.items():
    print(f"{label:22}", *(f"{n:6.0f}" if np.isfinite(n) else "     –" for n in counts))

# %%
plot_curves(
    {"": {label: (SCALES, counts) for label, counts in steps.items()}},
    xlabel="scale $s$ of the first row",
    ylabel="steps to $10^{-6}$ in $x$",
    xscale="log",
    yscale="log",
    ylim=(15, MOST),
    ticks={"x": SCALES, "y": (20, 50, 100, 200, 500)},
    columns=2,
)

# %% [markdown]
# Row by row does not notice the units; where all rows are alike anyway, the closed form is ahead
# of it. The metric alone helps it little, as its dual step is still one number for all rows. The
# whitened rule of the package knows the angles between the rows as well, and is ahead of all.
#
# ## A name for it
#
# To be known by a name, as `"closed-form"` is, a rule gets one line in `ITERATIONS`
# (`casadi_hybrid/paper/iterations/methods.py`): the options that it knows, and what makes the
# iteration from them.
#
# ```python
# "row-by-row": ({"share", "delta", "kappa"}, lambda **options: Hybrid(RowByRow(**options))),
# ```
#
# The rules of the package have the three tests of above in `tests/test_rules.py` and
# `tests/test_recursions.py`. `docs/maintainers.md` says where other things go: an iteration that is
# not of this family, a kernel, a scenario.
