# %% [markdown]
# # 7. From Python to embedded C
#
# A predictive controller is designed in Python and runs on a machine without Python.
# `solver.export` writes the solver itself as C99, not only the problem's functions: no library
# beside `math.h`, no allocation, no globals but constant tables. This notebook makes a controller,
# exports it, lets a C program close the loop, and compares every step with Python.
# `docs/embedded.md` has the details and what it costs in memory, code and instructions.

# %%
import shutil
import subprocess
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.utils.output.plotting import figure, line_style

# %% [markdown]
# ## The controller
#
# Two tanks in a row: a pump fills the first, each runs out through a hole into the next place. The
# levels are in metres, the pump's flow is in units of its greatest, and the second level has a
# goal.

# %%
N, PERIOD = 15, 2.0  # steps of the horizon, seconds
level, pump = ca.SX.sym("level", 2), ca.SX.sym("pump")
out = 0.05 * ca.sqrt(ca.fmax(level, 1e-4))  # m/s
rate = ca.vertcat(0.08 * pump - out[0], out[0] - out[1])
step = ca.Function("step", [level, pump], [level + PERIOD * rate])

X, U = ca.MX.sym("X", 2, N + 1), ca.MX.sym("U", 1, N)
p = ca.MX.sym("p", 3)  # both levels now, and the goal
gaps = step.map(N)(X[:, :-1], U) - X[:, 1:]
nlp = {
    "x": ca.veccat(X, U),
    "p": p,
    "f": ca.sumsqr(X[1, :] - p[2]) + 0.01 * ca.sumsqr(U[1:] - U[:-1]),
    "g": ca.vertcat(X[:, 0] - p[:2], ca.vec(gaps)),
}
levels = 2 * (N + 1)
limits = {
    "lbx": np.r_[np.zeros(levels + N)],
    "ubx": np.r_[np.full(levels, 1.2), np.ones(N)],
    "lbg": 0,
    "ubg": 0,
}
start = {"p": [0.2, 0.1, 0.6], "x0": np.r_[np.full(levels, 0.3), np.full(N, 0.5)], **limits}
controller = nlpsol("tanks", "hybrid", nlp)
first = controller(**start)
print(f"{controller.stats()['return_status']}: first pump flow {float(first['x'][levels]):.6f}")

# %% [markdown]
# ## The loop in Python
#
# The plant's holes are larger than the model's. Every solve starts from the last solution and its
# multipliers. The goal changes after 40 steps.

# %%
STEPS, CHANGE = 80, 40
PLANT = 0.058


def plant(state, flow):
    """The plant: other holes, five small Euler steps a period, as in the C program below."""
    for _ in range(5):
        out = PLANT * np.sqrt(np.maximum(state, 0.0))
        state = state + PERIOD / 5 * np.array([0.08 * flow - out[0], out[0] - out[1]])
    return state


state, last, python, kernels = np.array([0.2, 0.1]), first, [], []
for k in range(STEPS):
    numbers = {**limits, "p": [*state, 0.6 if k < CHANGE else 0.35]}
    last = controller(x0=last["x"], lam_x0=last["lam_x"], lam_g0=last["lam_g"], **numbers)
    python.append([*state, float(last["x"][levels]), controller.stats()["iter_count"]])
    kernels.append(controller.stats()["kernel"])
    state = plant(state, python[-1][2])
python = np.array(python)
print(f"{STEPS} solves, {int(python[:, 3].max())} steps at most in one")

# %% [markdown]
# ## The export
#
# The numbers of the first solve become the start that is stored beside the code. The problem is
# analysed by the package's own engine in C, so this needs a C compiler; where there is none, it
# says so.

# %%
folder = tempfile.TemporaryDirectory()
try:
    written = controller.export(folder.name, **start)
    files = sorted(file for file in written.files if not file.startswith("core/"))
    print("the problem:", *files)
    print("the core, the same for every problem:", len(written.files) - len(files), "files")
except InputError as error:
    written = None
    print(error)

# %% [markdown]
# This is the whole program of the target: the loop from above, with the plant in place of sensors
# and valves.

# %%
PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include "tanks.h"

int main(void) {
    static tanks_in in;
    static tanks_out out;
    double a = 0.2, b = 0.1;
    int k, i;
    in = tanks_stored;
    for (k = 0; k < STEPS; k++) {
        in.p[0] = a;
        in.p[1] = b;
        in.p[2] = k < CHANGE ? 0.6 : 0.35;
        if (tanks_solve(&in, &out) != TANKS_SOLVED) {
            printf("%s\n", tanks_word(out.status)); /* a controller falls back here */
            return 1;
        }
        printf("%.17g %.17g %.17g %d\n", a, b, out.x[PUMP], out.steps);
        for (i = 0; i < 5; i++) {
            double from_a = PLANT * sqrt(fmax(a, 0.0)), from_b = PLANT * sqrt(fmax(b, 0.0));
            a += PERIOD / 5 * (0.08 * out.x[PUMP] - from_a);
            b += PERIOD / 5 * (from_a - from_b);
        }
        tanks_next(&in, &out);
    }
    return 0;
}
"""
numbers = {"STEPS": STEPS, "CHANGE": CHANGE, "PLANT": PLANT, "PERIOD": PERIOD, "PUMP": levels}
defines = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
loop_c = Path(folder.name, "loop.c")
loop_c.write_text(defines + PROGRAM, encoding="utf-8")
print(defines)

# %% [markdown]
# ## Compile and run
#
# Without optimization, because that is quick here; `-O2` is for the target. `-ffp-contract=off`
# keeps a compiler from fusing products and sums, so that the numbers are those of Python.

# %%
compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
in_c = None
if written is None:
    print("Nothing was exported, so nothing is run.")
elif compiler is None:
    print("There is no C compiler here (cc, gcc or clang), so the program is not run.")
else:
    spared = ("main.c", "replay.c")  # an example and a program for measuring, each with a main
    sources = [file for file in written.files if file.endswith(".c") and file not in spared]
    flags = ["-std=c99", "-O0", "-ffp-contract=off", "-Wall", "-Werror", "-I.", "-Icore"]
    command = [compiler, *flags, *sources, "loop.c", "-lm", "-o", "loop"]
    subprocess.run(command, cwd=folder.name, check=True)
    said = subprocess.run(
        [f"{folder.name}/loop"], capture_output=True, text=True, check=True
    ).stdout
    in_c = np.array([line.split() for line in said.splitlines()], dtype=float)
    apart = np.abs(in_c[:, :3] - python[:, :3]).max(axis=0)
    print(f"{len(in_c)} solves in C, {int(in_c[:, 3].max())} steps at most in one")
    print("largest difference from Python: levels {:.0e} and {:.0e} m, pump {:.0e}".format(*apart))
    for k in np.flatnonzero(in_c[:, 3] != python[:, 3]):
        print(f"solve {k}: {python[k, 3]:.0f} steps in Python (kernel {kernels[k]}),", end=" ")
        print(f"{in_c[k, 3]:.0f} in C")
folder.cleanup()


# %%
def loops():
    """Draw the loop in Python and, where it was run, in C."""
    fig, axes = figure(2, 1, height=2.1, sharex=True)
    time = PERIOD * np.arange(STEPS)
    for i, name in enumerate(("upper tank", "lower tank")):
        axes[0, 0].plot(time, python[:, i], label=f"{name}, Python", **line_style(i))
        if in_c is not None:
            dots = {"linestyle": "", "marker": "os"[i], "fillstyle": "none", "color": "#000000"}
            axes[0, 0].plot(time[::4], in_c[::4, i], label=f"{name}, C", **dots, markersize=4.5)
    goal = np.where(np.arange(STEPS) < CHANGE, 0.6, 0.35)
    axes[0, 0].step(time, goal, where="post", color="#7F7F7F", linestyle=":", label="goal")
    axes[1, 0].step(time, python[:, 2], where="post", **line_style(0))
    if in_c is not None:
        axes[1, 0].plot(
            time[::4], in_c[::4, 2], "o", color="#000000", fillstyle="none", markersize=4.5
        )
    axes[0, 0].set(ylabel="level (m)")
    axes[1, 0].set(ylabel="pump (of its greatest)", xlabel="time (s)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    fig.align_ylabels(axes)
    return fig


loops()

# %% [markdown]
# The circles lie on the lines: it is the same solver, the engine in C, here and there, and what is
# left is within the tolerance of a solve. The counts differ in the first solve alone, which starts
# at the solution itself in Python, and at the stored start in C.
#
# `casadi-hybrid export FILE.py:FUNCTION` does the export by a command and measures memory, code,
# stack and instructions.
