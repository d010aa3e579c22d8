"""A nonlinear program: stated in CasADi, solved, explained and checked by IPOPT.

Change the four lines that state the problem; the rest may stay.
"""

import casadi as ca

import casadi_hybrid as ch

# 1. The problem: min f(x, p) subject to lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx.
x = ca.SX.sym("x", 2)
p = ca.SX.sym("p")  # a number that may change without building anything anew
f = (1 - x[0]) ** 2 + p * (x[1] - x[0] ** 2) ** 2
g = ca.vertcat(ca.sumsqr(x), x[0] - x[1])
names = ["inside the circle", "below the line"]

# 2. A solver, called as CasADi's: every argument may be left out.
nlp = {"x": x, "p": p, "f": f, "g": g}
options = {"constraint_names": names, "variable_names": ["x", "y"]}
solver = ch.nlpsol("solver", "hybrid", nlp, options)
limits = {"lbx": -2, "ubx": 2, "lbg": [-ca.inf, -ca.inf], "ubg": [1, 0.5]}
numbers = {"x0": [-1.0, 0.5], "p": 100.0, **limits}

if __name__ == "__main__":
    answer = solver(**numbers)

    print(f"x = {answer['x']}, f = {float(answer['f']):.6g}")
    print(f"multipliers of g: {answer['lam_g']} (positive where an upper limit holds x back)")
    print(f"{solver.stats()['return_status']} after {solver.stats()['iter_count']} iterations")
    if not solver.stats()["success"]:
        print(solver.explain())  # what is wrong, by the names given above

    # 3. A second opinion: first and second order from the problem's own functions, and IPOPT, from
    #    this answer and from x0.
    report = ch.verify(nlp, answer, **numbers, constraint_names=names)
    print(report)
