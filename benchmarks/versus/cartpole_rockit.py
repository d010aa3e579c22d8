"""A cart swings a pole up and holds it: rockit."""

import casadi as ca
from rockit import DirectCollocation, Ocp


def controller():
    ocp = Ocp(T=2.0)
    q = ocp.state()
    theta = ocp.state()
    v = ocp.state()
    w = ocp.state()
    F = ocp.control()
    s, c = ca.sin(theta), ca.cos(theta)
    a = (F + 0.3 * s * (0.5 * w**2 + 9.81 * c)) / (1 + 0.3 * s**2)
    ocp.set_der(q, v)
    ocp.set_der(theta, w)
    ocp.set_der(v, a)
    ocp.set_der(w, -(a * c + 9.81 * s) / 0.5)
    x = ca.vertcat(q, theta, v, w)
    x0 = ocp.parameter(4)
    ocp.set_value(x0, ca.DM.zeros(4))
    ocp.subject_to(ocp.at_t0(x) == x0)
    ocp.subject_to(-2 <= (q <= 2), grid="integrator_roots")
    ocp.subject_to(-20 <= (F <= 20), include_last=False)
    distance = 10 * q**2 + 20 * (1 + c) + 0.1 * v**2 + 0.1 * w**2
    ocp.add_objective(ocp.sum(distance + 0.01 * F**2) + 10 * ocp.at_tf(distance))
    quiet = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": False, "expand": True}
    ocp.solver("ipopt", quiet)
    ocp.method(DirectCollocation(N=40, degree=3, scheme="radau"))
    plan = [ocp.sample(x, grid="control")[1], ocp.sample(F, grid="control-")[1]]
    solve = ocp.to_function("solve", [x0, *plan], plan)
    start = [ca.DM.zeros(4, 41), ca.DM.zeros(1, 40)]

    def step(x):
        start[:] = solve(x, *start)
        return start[1][:, 0]

    return step
