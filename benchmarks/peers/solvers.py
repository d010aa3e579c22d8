"""The solvers of the comparison, each with the best settings its documentation gives.

Tolerances are those that aim at residuals of 1e-6 with room to spare; iteration limits are raised
to 3000 where the default stops earlier. Chosen by trial on the Hock–Schittkowski problems where
the documentation leaves a choice (the QP solver and the convexification of ``sqpmethod``, the
memory of alpaqa, the linear solver of blockSQP).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca

from casadi_hybrid import nlpsol

Make = Callable[[Mapping[str, Any]], Any]
QUIET = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
QP_QUIET = {"error_on_fail": False, "print_iter": False, "print_header": False, "print_info": False}
IPOPT = {"print_level": 0, "sb": "yes", "tol": 1e-8, "bound_relax_factor": 0.0}
NOT_COUNTED = {"bonmin"}  # its count of iterations is always 0
UNO = {"logger": "SILENT", "max_iterations": 3000}
SQP = {"print_iteration": False, "print_header": False, "print_status": False, "max_iter": 3000}
EXACT = {"tol_pr": 1e-8, "tol_du": 1e-8, "convexify_strategy": "regularize"}
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


def sqpmethod(qpsol: str, **qp_options: Any) -> Make:
    options = {"error_on_fail": False, **qp_options}
    return plugin("sqpmethod", qpsol=qpsol, qpsol_options=options, **SQP, **EXACT)


SOLVERS: dict[str, Make] = {
    "hybrid": lambda nlp: nlpsol("ours", "hybrid", dict(nlp)),
    "ipopt": plugin("ipopt", ipopt=IPOPT),
    "ipopt honor": plugin("ipopt", ipopt={**IPOPT, "honor_original_bounds": "yes"}),
    "sleqp": plugin("sleqp", print_level=0, max_iter=3000),
    "uno filtersqp": plugin("uno", uno={**UNO, "preset": "filtersqp"}),
    "uno funnelsqp": plugin("uno", uno={**UNO, "preset": "funnelsqp"}),
    "uno ipopt": plugin("uno", uno={**UNO, "preset": "ipopt"}),
    "sqpmethod qrqp": sqpmethod("qrqp", **QP_QUIET),
    "sqpmethod qpoases": sqpmethod("qpoases", printLevel="none"),
    "fatrop": plugin("fatrop", structure_detection="none", fatrop={"tol": 1e-8, "print_level": 0}),
    "bonmin": plugin("bonmin", bonmin={"print_level": 0, "tol": 1e-8}),
    "alpaqa": plugin("alpaqa", alpaqa=ALPAQA),
    "blocksqp": plugin(
        "blocksqp", linsol="ldl", print_iteration=False, print_header=False, max_iter=3000,
        opttol=1e-8, nlinfeastol=1e-8,
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
