"""do-mpc's stirred tank, the nominal controller: do-mpc."""

import casadi as ca
import do_mpc
import numpy as np


def controller():
    model = do_mpc.model.Model("continuous")
    C_a = model.set_variable("_x", "C_a")
    C_b = model.set_variable("_x", "C_b")
    T_R = model.set_variable("_x", "T_R")
    T_K = model.set_variable("_x", "T_K")
    F = model.set_variable("_u", "F")
    Q = model.set_variable("_u", "Q")
    K_1 = 1.287e12 * ca.exp(-9758.3 / (T_R + 273.15))
    K_3 = 9.043e9 * ca.exp(-8560.0 / (T_R + 273.15))
    heat = 4.2 * K_1 * C_a - 11 * K_1 * C_b - 41.85 * K_3 * C_a**2
    to_coolant = 4032 * 0.215 * (T_R - T_K)
    cooling = heat / (0.9342 * 3.01) + to_coolant / (0.9342 * 3.01 * 10.01)
    model.set_rhs("C_a", F * (5.1 - C_a) - K_1 * C_a - K_3 * C_a**2)
    model.set_rhs("C_b", -F * C_b + K_1 * C_a - K_1 * C_b)
    model.set_rhs("T_R", F * (130 - T_R) - cooling)
    model.set_rhs("T_K", (Q + to_coolant) / (5 * 2))
    model.setup()

    mpc = do_mpc.controller.MPC(model)
    mpc.settings.n_horizon = 20
    mpc.settings.t_step = 0.005
    mpc.settings.collocation_deg = 2
    mpc.settings.nl_cons_check_colloc_points = True
    mpc.settings.supress_ipopt_output()
    mpc.scaling["_x", "T_R"] = 100
    mpc.scaling["_x", "T_K"] = 100
    mpc.scaling["_u", "F"] = 100
    mpc.scaling["_u", "Q"] = 2000
    product = (model.x["C_b"] - 0.6) ** 2
    mpc.set_objective(mterm=product, lterm=product)
    mpc.set_rterm(F=0.1, Q=1e-3)
    mpc.bounds["lower", "_x", "C_a"] = 0.1
    mpc.bounds["upper", "_x", "C_a"] = 2
    mpc.bounds["lower", "_x", "C_b"] = 0.1
    mpc.bounds["upper", "_x", "C_b"] = 2
    mpc.bounds["lower", "_x", "T_R"] = 50
    mpc.bounds["lower", "_x", "T_K"] = 50
    mpc.bounds["upper", "_x", "T_K"] = 140
    mpc.bounds["lower", "_u", "F"] = 5
    mpc.bounds["upper", "_u", "F"] = 100
    mpc.bounds["lower", "_u", "Q"] = -8500
    mpc.bounds["upper", "_u", "Q"] = 0
    mpc.set_nl_cons("reactor", model.x["T_R"], 140, soft_constraint=True, penalty_term_cons=100)
    mpc.setup()
    mpc.x0 = np.array([0.8, 0.5, 134.14, 130])
    mpc.u0 = np.array([5, 0])
    mpc.set_initial_guess()
    return mpc
