"""The solvers of the comparison, each with the best settings its documentation gives.

Tolerances are those that aim at residuals of 1e-6 with room to spare; iteration limits are raised
to 3000 where the default stops earlier. Interior-point solvers move bounds outwards by 1e-8 unless
told not to, which costs |λ|·1e-8 in complementarity: ipopt and bonmin have an option for it, Uno
moves them by its primal tolerance, fatrop has none that CasADi passes on. Their tolerances are for
scaled residuals, while the comparison judges unscaled ones: "ipopt unscaled" and bonmin scale
nothing. Where the documentation leaves a choice, it was made by trial on the Hock–Schittkowski
problems (the convexification of ``sqpmethod``, the memory of alpaqa). blockSQP runs without its
restoration phase, whose linear solver, ma27, is not in the wheel and cannot be replaced from
outside. ``ampl`` and the plugins of commercial solvers load or not, but have no solver in the
wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
from warm.peers import JIT

from casadi_hybrid import nlpsol

Make = Callable[[Mapping[str, Any]], Any]
QUIET = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
QP_QUIET = {"error_on_fail": False, "print_iter": False, "print_header": False, "print_info": False}
IPOPT = {"print_level": 0, "sb": "yes", "tol": 1e-8, "bound_relax_factor": 0.0}
NOT_COUNTED = {"bonmin"}  # its count of iterations is always 0
UNSCALED = {"nlp_scaling_method": "none", "tol": 1e-9}
UNO = {"logger": "SILENT", "max_iterations": 3000}
SQP = {"print_iteration": False, "print_header": False, "print_status": False, "max_iter": 3000}
QPOASES = {"error_on_fail": False, "printLevel": "none"}
CONVEX = {"convexify_strategy": "regularize"}
ALPAQA = {
    "alm.tolerance": 1e-8,
    "alm.dual_tolerance": 1e-8,
    "alm.max_iter": 500,
    "panoc.max_iter": 5000,
    "lbfgs.memory": 20,
}


def plugin(name: str, **options: Any) -> Make:
    """A plugin of the wheel with these options."""

    def make(nlp: Mapping[str, Any]) -> Any:
        return ca.nlpsol("peer", name, dict(nlp), {**QUIET, **options})

    return make


def over_mx(make: Make) -> Make:
    """The same for a plugin that takes MX alone."""

    def made(nlp: Mapping[str, Any]) -> Any:
        functions = ca.Function("nlp", [nlp["x"]], [nlp["f"], nlp["g"]])
        x = ca.MX.sym("x", nlp["x"].numel())
        f, g = functions(x)
        return make({"x": x, "f": f, "g": g})

    return made


def sqpmethod(qpsol: str, qp_options: Mapping[str, Any], **options: Any) -> Make:
    options = {**SQP, "tol_pr": 1e-8, "tol_du": 1e-8, **options}
    return plugin("sqpmethod", qpsol=qpsol, qpsol_options=dict(qp_options), **options)


SOLVERS: dict[str, Make] = {
    "hybrid": lambda nlp: nlpsol("ours", "hybrid", dict(nlp)),
    "ipopt": plugin("ipopt", ipopt=IPOPT),
    "ipopt expand": plugin("ipopt", expand=True, ipopt=IPOPT),
    "hybrid compiled": lambda nlp: nlpsol("ours", "hybrid", dict(nlp), {"compile": True}),
    "ipopt compiled": plugin("ipopt", ipopt=IPOPT, **JIT),
    "ipopt expand compiled": plugin("ipopt", expand=True, ipopt=IPOPT, **JIT),
    "ipopt unscaled expand compiled": plugin(
        "ipopt", expand=True, ipopt={**IPOPT, **UNSCALED}, **JIT
    ),
    "ipopt honor": plugin(
        "ipopt", ipopt={**IPOPT, "bound_relax_factor": 1e-8, "honor_original_bounds": "yes"}
    ),
    "ipopt unscaled": plugin("ipopt", ipopt={**IPOPT, **UNSCALED}),
    "ipopt unscaled expand": plugin("ipopt", expand=True, ipopt={**IPOPT, **UNSCALED}),
    "sleqp": plugin("sleqp", print_level=0, max_iter=3000),
    "uno filtersqp": plugin("uno", uno={**UNO, "preset": "filtersqp"}),
    "uno funnelsqp": plugin("uno", uno={**UNO, "preset": "funnelsqp"}),
    "uno ipopt": plugin("uno", uno={**UNO, "preset": "ipopt", "primal_tolerance": 1e-10}),
    "sqpmethod qrqp": sqpmethod("qrqp", QP_QUIET, **CONVEX),
    "sqpmethod qpoases": sqpmethod("qpoases", QPOASES, **CONVEX),
    "sqpmethod lbfgs": sqpmethod("qpoases", QPOASES, hessian_approximation="limited-memory"),
    "fatrop": plugin("fatrop", structure_detection="none", fatrop={"tol": 1e-8, "print_level": 0}),
    "bonmin": plugin("bonmin", bonmin={"print_level": 0, "bound_relax_factor": 0.0, **UNSCALED}),
    "alpaqa": plugin("alpaqa", alpaqa=ALPAQA),
    "blocksqp": plugin(
        "blocksqp", linsol="ldl", print_iteration=False, print_header=False, max_iter=3000,
        opttol=1e-8, nlinfeastol=1e-8, restore_feas=False,
    ),
    "scpgen": over_mx(
        plugin(
            "scpgen", qpsol="qrqp", qpsol_options=QP_QUIET, hessian_approximation="exact",
            print_header=False, max_iter=3000, tol_pr=1e-8, tol_du=1e-8,
        )
    ),
    "feasiblesqpmethod": plugin(
        "feasiblesqpmethod", qpsol="qrqp", qpsol_options=QP_QUIET, print_iteration=False,
        print_header=False, print_status=False, max_iter=3000, convexify_strategy="regularize",
        optim_tol=1e-8, feas_tol=1e-8,
    ),
    "qrsqp": plugin(
        "qrsqp", qpsol="qrqp", qpsol_options=QP_QUIET, print_iteration=False, print_header=False,
        max_iter=3000, tol_pr=1e-8, tol_du=1e-8,
    ),
}  # fmt: skip


def claim(stats: Mapping[str, Any]) -> str:
    """What a solver says of its point: success, infeasible, unbounded, limit or failed."""
    if stats.get("success"):
        return "success"
    words = f"{stats.get('return_status')} {stats.get('unified_return_status')}".lower()
    for sign, word in (
        ("infeasib", "infeasible"),
        ("unbounded", "unbounded"),
        ("diverging", "unbounded"),
        ("limit", "limit"),
        ("exceeded", "limit"),
    ):
        if sign in words:
            return word
    return "failed"
