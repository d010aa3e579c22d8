"""do-mpc's stirred tank, the nominal controller: rockit."""

import casadi as ca
from rockit import DirectCollocation, Ocp


def controller():
    ocp = Ocp(T=0.1)
    C_a = ocp.state()
    C_b = ocp.state()
    T_R = ocp.state()
    T_K = ocp.state()
    F = ocp.control()
    Q = ocp.control()
    over = ocp.variable(grid="control")
    K_1 = 1.287e12 * ca.exp(-9758.3 / (T_R + 273.15))
    K_3 = 9.043e9 * ca.exp(-8560.0 / (T_R + 273.15))
    heat = 4.2 * K_1 * C_a - 11 * K_1 * C_b - 41.85 * K_3 * C_a**2
    to_coolant = 4032 * 0.215 * (T_R - T_K)
    cooling = heat / (0.9342 * 3.01) + to_coolant / (0.9342 * 3.01 * 10.01)
    ocp.set_der(C_a, F * (5.1 - C_a) - K_1 * C_a - K_3 * C_a**2)
    ocp.set_der(C_b, -F * C_b + K_1 * C_a - K_1 * C_b)
    ocp.set_der(T_R, F * (130 - T_R) - cooling)
    ocp.set_der(T_K, (Q + to_coolant) / (5 * 2))
    x = ca.vertcat(C_a, C_b, T_R, T_K)
    u = ca.vertcat(F, Q)
    x0 = ocp.parameter(4)
    u0 = ocp.parameter(2)
    ocp.set_value(x0, [0.8, 0.5, 134.14, 130])
    ocp.set_value(u0, [5, 0])
    ocp.subject_to(ocp.at_t0(x) == x0)
    ocp.subject_to(0.1 <= (C_a <= 2), grid="integrator_roots")
    ocp.subject_to(0.1 <= (C_b <= 2), grid="integrator_roots")
    ocp.subject_to(50 <= (T_R <= ca.inf), grid="integrator_roots")
    ocp.subject_to(50 <= (T_K <= 140), grid="integrator_roots")
    ocp.subject_to(T_R <= 140 + over, grid="integrator_roots")
    ocp.subject_to(over >= 0)
    ocp.subject_to(5 <= (F <= 100), include_last=False)
    ocp.subject_to(-8500 <= (Q <= 0), include_last=False)
    change = ocp.sum(0.1 * ((ocp.next(F) - F) / 100) ** 2 + 1e-3 * ((ocp.next(Q) - Q) / 2000) ** 2)
    first = ocp.at_t0(0.1 * ((F - u0[0]) / 100) ** 2 + 1e-3 * ((Q - u0[1]) / 2000) ** 2)
    product = (C_b - 0.6) ** 2
    ocp.add_objective(ocp.sum(product + 100 * over) + ocp.at_tf(product) + change + first)
    quiet = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": False, "expand": True}
    ocp.solver("ipopt", quiet)
    ocp.method(DirectCollocation(N=20, degree=2, scheme="radau"))
    plan = [ocp.sample(x, grid="control")[1], ocp.sample(u, grid="control-")[1]]
    solve = ocp.to_function("solve", [x0, u0, *plan], plan)
    start = [ca.repmat(ca.DM([0.8, 0.5, 134.14, 130]), 1, 21), ca.repmat(ca.DM([5, 0]), 1, 20)]

    def step(x):
        start[:] = solve(x, start[1][:, 0], *start)
        return start[1][:, 0]

    return step
