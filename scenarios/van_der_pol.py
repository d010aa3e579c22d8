"""Van der Pol oscillator brought to rest with a bounded input and a bound on its speed.

Left alone, the oscillator with velocity v and position y runs into a limit cycle. The input
|u| ≤ 1 shall bring it to rest, with v ≥ −0.25 at all times; without this bound the least effort
takes v to −0.51. All quantities are dimensionless:

    v' = (1 − y²) v − y + u,   y' = v,   v(0) = 0, y(0) = 1,   min ∫ v² + y² + u² dt, 0 ≤ t ≤ 10

The method is Radau collocation of degree 3 on 60 intervals of constant input. The bound holds at
the collocation points and at four more points of each interval. All unknowns start at zero.

The problem is the example of direct collocation that comes with CasADi (J. Andersson et al.,
"CasADi: a software framework for nonlinear optimization and optimal control", 2019).
"""

import sys

from casadi_hybrid.control import Collocation, Model, OptimalControl
from casadi_hybrid.verify import verify


def problem(intervals: int = 60) -> OptimalControl:
    """Return the optimal control problem."""
    plant = Model("van_der_pol", time_unit="")
    v, y = plant.state("v", lower=-0.25), plant.state("y")
    u = plant.control("u", lower=-1, upper=1)
    plant.rates(v=(1 - y**2) * v - y + u, y=v)
    method = Collocation(3, inner=4)
    ocp = OptimalControl(plant, duration=10, intervals=intervals, method=method)
    ocp.initial(v=0, y=1)
    ocp.guess(v=0, y=0)
    ocp.minimize("cost", integral=v**2 + y**2 + u**2)
    return ocp


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report, end="\n\n")
    print(solution.error(whole=True))  # distance from an accurate integration
    solution.plot(["v", "y", "u"], path="van_der_pol.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
