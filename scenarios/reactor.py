"""Stirred tank reactor taken from a cold steady state to an unstable one, without overheating.

An exothermic reaction A → B of first order in a tank with the feed q (concentration c_f, at T_f)
and a cooling jacket at T_c. Concentration c and temperature T obey

    c'  = q/V (c_f − c) − k(T) c,                                k(T) = k₀ exp(−E/(R T))
    T'  = q/V (T_f − T) + H/(ρ c_p) k(T) c + UA/(V ρ c_p) (T_c − T)
    T_c' = u

in minutes, kelvin and moles a litre. At T = 320 K less than a tenth of the feed reacts. The set
point T = 350 K converts half of it and is unstable: with a constant jacket the reactor cools down
from one kelvin below, and flashes to 424 K from one kelvin above. The temperature must stay below
353 K, that of the jacket within 285 … 310 K, and it changes by at most 20 K a minute.

    min ∫ ((c − c*)/0.1)² + 0.1 (u/20)² dt,  0 ≤ t ≤ 6 min

The method is Radau collocation of degree 3 on 60 intervals of constant rate u. The guess is the set
point at all times, without a change of the jacket.

Data: D. E. Seborg, T. F. Edgar, D. A. Mellichamp, "Process Dynamics and Control", Wiley.
"""

import sys

import casadi as ca

from casadi_hybrid.control import Collocation, Model, OptimalControl, steady
from casadi_hybrid.verify import verify


def stirred_tank() -> Model:
    """Return the plant."""
    tank = Model("reactor", time_unit="min")
    c = tank.state("c", lower=0, upper=1, scale=0.1, unit="mol/l")
    T = tank.state("T", upper=353, scale=10, unit="K")
    jacket = tank.state("Tc", lower=285, upper=310, scale=10, unit="K")
    u = tank.control("u", lower=-20, upper=20, scale=20, unit="K/min")
    reaction = 7.2e10 * ca.exp(-8750.0 / T) * c
    exchanged = 350.0 - T + 5e4 / 23900 * (jacket - T)
    tank.rates(c=1.0 - c - reaction, T=exchanged + 5e4 / 239 * reaction, Tc=u)
    return tank


def problem(intervals: int = 60) -> OptimalControl:
    """Return the optimal control problem."""
    tank = stirred_tank()
    ocp = OptimalControl(tank, duration=6.0, intervals=intervals, method=Collocation(3))
    goal = steady(tank, T=350, u=0)
    ocp.initial(**steady(tank, T=320, u=0).states)
    ocp.guess(**goal.states)
    error = (tank.symbol("c") - goal["c"]) / 0.1
    ocp.minimize("cost", integral=error**2 + 0.1 * (tank.symbol("u") / 20) ** 2)
    return ocp


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report, end="\n\n")
    print(f"highest temperature {solution['T'].max():.3f} K, c at the end {solution['c'][-1]:.4f}")
    # Each interval from the state at its beginning: over the whole horizon the unstable set point
    # would magnify the error of the first interval by many orders.
    print(solution.error(integrator="cvodes"))
    solution.plot(["c", "T", "Tc", "u"], path="reactor.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
