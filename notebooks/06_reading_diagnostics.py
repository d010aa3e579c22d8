# %% [markdown]
# # 6. Reading diagnostics
#
# A solve that fails should say what is wrong with the problem, in the problem's own names. Every
# result has two statuses: why the solver stopped (`result.stop`) and what the point is
# (`result.point`). `result.explain()` says the rest in sentences. This notebook breaks problems on
# purpose, reads what is said, and mends them.

# %%
import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below, line_style


def told(result):
    """Print both statuses by name, and the explanation."""
    print(f"{result.stop.name}, {result.point.name}")
    print(result.explain())


# %% [markdown]
# ## Infeasible: which constraints contradict each other?
#
# A heating plant has two boilers. The demand, the connection and the emission permit do not go
# together; the budget has nothing to do with it.

# %%
heat = ca.SX.sym("heat", 2)  # MW
names = {
    "demand": (10.0, heat[0] + heat[1], np.inf),
    "connection": (-np.inf, heat[0], 4.0),
    "emissions": (-np.inf, 0.2 * heat[0] + 0.5 * heat[1], 3.0),
    "budget": (-np.inf, 30 * heat[0] + 20 * heat[1], 500.0),
}


def plant(rows):
    """The cheapest heat that keeps the rows."""
    cost = 30 * heat[0] + 20 * heat[1] + ca.sumsqr(heat)
    return Problem(x={"heat": heat}, f=cost, g=rows, lbx=0, name="heating plant")


impossible = Solver(plant(names)).solve([1.0, 1.0])
told(impossible)


# %%
def contradiction():
    """Draw the rows in the plane of both boilers."""
    fig, axes = figure(1, 1, height=3.6)
    ax = axes[0, 0]
    first = np.linspace(0, 10, 201)
    lines = {"demand: above": 10 - first, "emissions: below": (3 - 0.2 * first) / 0.5}
    for i, (label, line) in enumerate(lines.items()):
        ax.plot(first, line, label=label, **line_style(i))
    ax.axvline(4.0, label="connection: left", **line_style(2))
    ax.fill_between(first, lines["demand: above"], 12, color=PALETTE[0], alpha=0.15)
    below = np.maximum(lines["emissions: below"], 0)
    ax.fill_between(first, 0, below, where=first <= 4, color=PALETTE[1], alpha=0.25)
    ax.plot(*impossible.x, "*", color="#000000", markersize=13, label="least violation")
    ax.set(xlim=(0, 10), ylim=(0, 12), xlabel="heat of boiler 1 (MW)")
    ax.set_ylabel("heat of boiler 2 (MW)")
    legend_below(fig, ax, columns=4)
    return fig


contradiction()

# %% [markdown]
# The two shaded sets do not meet. The named rows are enough for the contradiction, and the budget
# is not among them: relaxing it would not help. Relaxing one of the named does:

# %%
larger = names | {"connection": (-np.inf, heat[0], 8.0)}
mended = Solver(plant(larger)).solve([1.0, 1.0])
told(mended)
print("heat (MW):", mended.x.round(3), "held by:", mended.working_set)

# %% [markdown]
# ## Unbounded: along which ray does f fall?
#
# A sign is wrong: the effort is rewarded. A position and a force are linked by a spring.

# %%
position, force = ca.SX.sym("position"), ca.SX.sym("force")
spring = {"x": {"position": position, "force": force}, "h": {"spring": force - 3 * position}}
wrong = Solver(Problem(f=position - force**2, name="spring", **spring)).solve([0.1, 0.1])
told(wrong)

# %%
right = Solver(Problem(f=position + force**2, name="spring", **spring)).solve([0.1, 0.1])
told(right)
print("position and force:", right.x.round(4))

# %% [markdown]
# ## Dependent: which constraint says the same twice?
#
# A closed pipe network: what flows in flows out. The balance of the last node follows from the
# others, which is no error but a fact about the multipliers.

# %%
flow = ca.SX.sym("flow", 3)
network = Problem(
    x={"flow": flow},
    f=ca.sumsqr(flow),
    h={
        "node A": flow[0] + flow[1] - 2,
        "node B": flow[2] - flow[0] + 1,
        "node C": -flow[1] - flow[2] + 1,
    },
    name="pipe network",
)
twice = Solver(network).solve([0.0, 0.0, 0.0])
told(twice)
print("flows:", twice.x.round(4), "multipliers:", twice.lam_g.round(4))
print("rank of the active gradients:", verify(network, twice).rank, "of", twice.lam_g.size)

# %% [markdown]
# The flows are unique, the multipliers are not: any multiple of (1, 1, 1) may be added. Do not read
# prices from them before a row is left out. If the numbers of the last row did not fit the others,
# the same rows would contradict each other:

# %%
leaky = Problem(
    x={"flow": flow},
    f=ca.sumsqr(flow),
    h={
        "node A": flow[0] + flow[1] - 2,
        "node B": flow[2] - flow[0] + 1,
        "node C": -flow[1] - flow[2] + 1.2,
    },
    name="leaky network",
)
told(Solver(leaky).solve([0.0, 0.0, 0.0]))

# %% [markdown]
# ## Badly scaled: pascals and cubic metres
#
# A tank's pressure is of the size 1e5, its valve opening of 1e-6. The numbers are right and the
# units are not made for a computer. Stopped early, the result says what makes the solve hard:

# %%
pressure, opening = ca.SX.sym("pressure"), ca.SX.sym("opening")
tank = {
    "x": {"pressure": pressure, "opening": opening},
    "h": {"outflow": opening * ca.sqrt(pressure) - 3e-4},
    "lbx": [1e3, 0],
}
cost = 1e-12 * (pressure - 2e5) ** 2 + 1e10 * (opening - 8e-7) ** 2
hard = Solver(Problem(f=cost, name="tank", **tank), max_iter=3).solve([1e3, 1e-4])
told(hard)

# %% [markdown]
# The cure is to state it in bars and square millimetres, so that all numbers are near one. The
# problem is the same, and so are f and the start.

# %%
bar, area = ca.SX.sym("bar"), ca.SX.sym("area")
kind = Problem(
    x={"bar": bar, "area": area},
    f=1e-2 * (bar - 2) ** 2 + 1e-2 * (area - 0.8) ** 2,
    h={"outflow": area * ca.sqrt(bar) - 3e-4 * 10**3.5},
    lbx=[0.01, 0],
    name="tank in bars",
)
easy = Solver(kind).solve([0.01, 100.0])
told(easy)
long = Solver(Problem(f=cost, name="tank", **tank)).solve([1e3, 1e-4])
print(f"in pascals {long.stop.name} after {long.iterations} steps, in bars {easy.iterations}")
print(f"pressure {long.x[0] / 1e5:.7f} and {easy.x[0]:.7f} bar")
print(f"opening  {long.x[1] * 1e6:.7f} and {easy.x[1]:.7f} mm²")

# %% [markdown]
# Given time the first is solved too, but a tolerance is a number in the units of its row and of its
# variable: in pascals it leaves digits open that it fixes in bars.

# %% [markdown]
# ## Undefined: where does a function stop to exist?
#
# A logarithm of what may become negative. On the way the solver refuses points where it is
# undefined and goes on. At the start it can not, and says which function it was, and where:

# %%
y = ca.SX.sym("y", 2)
logs = Problem(x={"y": y}, f=-ca.log(y[0] - 1) + y[1] ** 2, h={"sum": y[0] + y[1] - 1})
told(Solver(logs).solve([0.5, 0.5]))

# %%
inside = Solver(logs).solve([5.0, 0.0])
print(f"from (5, 0): {inside.stop.name} at {inside.x.round(4)}")

# %% [markdown]
# ## Reading a run
#
# With `history=True` the residuals of every iterate are kept, whatever the end. (Zero is drawn as
# 1e−16.)


# %%
def courses():
    """Draw the residuals of a feasible and an infeasible solve."""
    fig, axes = figure(1, 2, height=3.0, sharey=True)
    cases = {"mended": larger, "infeasible": names}
    for ax, (title, rows) in zip(axes[0], cases.items(), strict=True):
        history = Solver(plant(rows)).solve([1.0, 1.0], history=True).history
        shown = {"feasibility": history.feasibility, "stationarity": history.stationarity}
        for i, (label, values) in enumerate(shown.items()):
            drawn = np.maximum(values, 1e-16)
            ax.plot(history.t, drawn, label=label, **line_style(i, values.size))
        ax.axhline(1e-6, color="#000000", linewidth=0.9, linestyle=":", label="tolerance")
        ax.set(yscale="log", xlabel="iteration $t$")
        ax.set_title(title, fontsize=10)
    axes[0, 0].set_ylabel("residual (units of the rows, of $f/x$)")
    legend_below(fig, axes[0, 0])
    return fig


courses()

# %% [markdown]
# The violation of an infeasible problem does not go to zero; the solver stops when it has shown
# that no small step reduces it further, which is a certificate for this neighbourhood.
#
# | what you see | what to do |
# |---|---|
# | `LOCALLY_INFEASIBLE`, rows that contradict each other | relax a named row, or start elsewhere |
# | `UNBOUNDED`, a ray | bound the variables named, check the sign of f |
# | rows that depend on others | harmless; leave one out before reading multipliers |
# | badly scaled | change units, or give `scale` in a control model |
# | `ITERATION_LIMIT`, `TIME_LIMIT` | look at `result.history`; the best point is returned |
# | `EVALUATION_ERROR` | start where all functions exist, or bound the variables |
