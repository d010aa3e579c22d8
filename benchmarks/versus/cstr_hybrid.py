"""do-mpc's stirred tank, the nominal controller: this package."""

import casadi as ca

from casadi_hybrid.control import MPC, Collocation, Model, OptimalControl


def controller():
    model = Model("CSTR")
    C_a = model.state("C_a", lower=0.1, upper=2, guess=0.8)
    C_b = model.state("C_b", lower=0.1, upper=2, guess=0.5)
    T_R = model.state("T_R", lower=50, scale=100, guess=134.14)
    T_K = model.state("T_K", lower=50, upper=140, scale=100, guess=130)
    F = model.control("F", lower=5, upper=100, scale=100, guess=5)
    Q = model.control("Q", lower=-8500, upper=0, scale=2000)
    K_1 = 1.287e12 * ca.exp(-9758.3 / (T_R + 273.15))
    K_3 = 9.043e9 * ca.exp(-8560.0 / (T_R + 273.15))
    heat = 4.2 * K_1 * C_a - 11 * K_1 * C_b - 41.85 * K_3 * C_a**2
    to_coolant = 4032 * 0.215 * (T_R - T_K)
    model.rates(
        C_a=F * (5.1 - C_a) - K_1 * C_a - K_3 * C_a**2,
        C_b=-F * C_b + K_1 * C_a - K_1 * C_b,
        T_R=F * (130 - T_R) - heat / (0.9342 * 3.01) - to_coolant / (0.9342 * 3.01 * 10.01),
        T_K=(Q + to_coolant) / (5 * 2),
    )

    ocp = OptimalControl(model, duration=0.1, intervals=20, method=Collocation(degree=2))
    ocp.initial()
    ocp.minimize("product", sum=(C_b - 0.6) ** 2, end=(C_b - 0.6) ** 2)
    ocp.minimize("change of F", sum=0.1 * ((F - ocp.previous("F")) / 100) ** 2)
    ocp.minimize("change of Q", sum=1e-3 * ((Q - ocp.previous("Q")) / 2000) ** 2)
    ocp.path("reactor", T_R, upper=140, soft=100)
    return MPC(ocp)
