"""A cart swings a pole up and holds it: do-mpc."""

import casadi as ca
import do_mpc


def controller():
    model = do_mpc.model.Model("continuous")
    q = model.set_variable("_x", "q")
    theta = model.set_variable("_x", "theta")
    v = model.set_variable("_x", "v")
    w = model.set_variable("_x", "w")
    F = model.set_variable("_u", "F")
    s, c = ca.sin(theta), ca.cos(theta)
    a = (F + 0.3 * s * (0.5 * w**2 + 9.81 * c)) / (1 + 0.3 * s**2)
    model.set_rhs("q", v)
    model.set_rhs("theta", w)
    model.set_rhs("v", a)
    model.set_rhs("w", -(a * c + 9.81 * s) / 0.5)
    model.set_expression("distance", 10 * q**2 + 20 * (1 + c) + 0.1 * v**2 + 0.1 * w**2)
    model.setup()

    mpc = do_mpc.controller.MPC(model)
    mpc.settings.n_horizon = 40
    mpc.settings.t_step = 0.05
    mpc.settings.collocation_deg = 3
    mpc.settings.supress_ipopt_output()
    distance = model.aux["distance"]
    mpc.set_objective(mterm=10 * distance, lterm=distance + 0.01 * model.u["F"] ** 2)
    mpc.set_rterm(F=0)
    mpc.bounds["lower", "_x", "q"] = -2
    mpc.bounds["upper", "_x", "q"] = 2
    mpc.bounds["lower", "_u", "F"] = -20
    mpc.bounds["upper", "_u", "F"] = 20
    mpc.setup()
    mpc.set_initial_guess()
    return mpc
