"""Six-joint arm to a pose that is seen by more sensors than it has joints.

The arm has the link lengths of a Universal Robots UR5 (published Denavit–Hartenberg parameters).
Four markers on its tool are to be at given places: 12 equations h(q) = 0 (in m) for 6 joint
angles. Among the postures that do it, the one nearest to rest is wanted: min ½‖q − q_rest‖². As
m > n, IPOPT refuses the problem as it is written ("too few degrees of freedom"); the check
`verify` runs it on an equivalent elastic form.

Three targets, all from the rest posture:

- a regular pose; J_h has full column rank there;
- a pose with a stretched wrist (q_5 = 0), where J_h loses rank;
- a regular pose whose markers are measured with 2 mm of noise: no posture meets all equations. The
  solver returns a least-squares posture and reports an infeasible stationary point.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid import PointStatus, Problem, Solver, verify

A = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)  # m
D = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)  # m
TWIST = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)
REST = np.array([0.0, -1.2, 1.4, -1.7, -1.4, 0.0])
MARKERS = np.array([[0.06, 0.0, 0.02], [-0.05, 0.05, 0.02], [-0.05, -0.05, 0.02], [0, 0, 0.08]])
POSTURE = np.array([0.8, -0.9, 1.6, -2.0, -1.0, 0.5])
STRETCHED = np.array([0.8, -0.9, 1.6, -2.0, 0.0, 0.5])


def frames(q: ca.SX | ca.DM) -> list[ca.SX | ca.DM]:
    """Return the frames of base and joints as 4×4 matrices."""
    chain = [ca.DM.eye(4)]
    for i, (a, d, twist) in enumerate(zip(A, D, TWIST, strict=True)):
        c, s, ct, st = ca.cos(q[i]), ca.sin(q[i]), float(np.cos(twist)), float(np.sin(twist))
        rows = (c, -s * ct, s * st, a * c), (s, c * ct, -c * st, a * s), (0, st, ct, d)
        link = ca.vertcat(*(ca.horzcat(*row) for row in (*rows, (0, 0, 0, 1))))
        chain.append(chain[-1] @ link)
    return chain


def markers(q: ca.SX | ca.DM) -> ca.SX | ca.DM:
    """Return the places of the markers in m, one below the other."""
    places = frames(q)[-1] @ ca.horzcat(ca.DM(MARKERS), ca.DM.ones(len(MARKERS))).T
    return ca.vec(places[:3, :])


def problem() -> Problem:
    """Return the problem; its parameters are the measured places of the markers."""
    q, p = ca.SX.sym("q", 6), ca.SX.sym("measured", 12)
    parts = ca.vertsplit(markers(q) - p, 3)
    rows = {f"marker {i + 1}": part for i, part in enumerate(parts)}
    return Problem(x=q, p=p, f=0.5 * ca.sumsqr(q - ca.DM(REST)), h=rows, name="robot_arm")


def draw(q: np.ndarray, path: str) -> None:
    """Draw the arm at rest and at the target, from the side and from above."""
    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax, row, title in zip(axes, (2, 1), ("from the side", "from above"), strict=True):
        for posture, label in ((REST, "rest"), (q, "solution")):
            joints = ca.horzcat(*(frame[:3, 3] for frame in frames(ca.DM(posture)))).full()
            ax.plot(joints[0], joints[row], "o-", label=label)
            places = ca.reshape(markers(ca.DM(posture)), 3, 4).full()
            ax.plot(places[0], places[row], "k.", markersize=4, label="markers")
        ax.set(aspect="equal", title=title, xlabel="$x$ (m)", ylabel=f"${'xyz'[row]}$ (m)")
    axes[0].legend(*(part[:3] for part in axes[0].get_legend_handles_labels()))
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Solve, check and draw; return True if two poses are met and the third is judged right."""
    arm, right = problem(), True
    # Where J_h loses rank, an error ε in h leaves √ε in q: hence the tight tolerance.
    solver = Solver(arm, tol=1e-10)
    noise = 2e-3 * np.random.default_rng(0).standard_normal(12)
    regular, stretched = (markers(ca.DM(q)).full().ravel() for q in (POSTURE, STRETCHED))
    targets = {"regular": regular, "stretched wrist": stretched, "noisy": regular + noise}
    for name, target in targets.items():
        result = solver.solve(REST, target)
        report = verify(arm, result, p=target, x0=REST)
        print(f"{name}: {result.stop.name}, {result.point.name}, {result.iterations} iterations")
        print(report, end="\n\n")
        if name == "noisy":
            right &= result.point is PointStatus.INFEASIBLE_STATIONARY
        else:
            right &= report.accepted
        if name == "regular":
            draw(result.x, "robot_arm.png")
    return right


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
