"""The peers of cold solves, each with the best options its documentation gives.

Tolerances aim at residuals of 1e-6 with room to spare; iteration limits are raised to 3000 where
the default stops earlier. Interior-point solvers move bounds outwards by 1e-8 unless told not to,
which costs |λ|·1e-8 in complementarity: ipopt and bonmin have an option for it, Uno moves them by
its primal tolerance, fatrop has none that CasADi passes on. Their tolerances are for scaled
residuals, while the comparison judges unscaled ones: "ipopt strict" has its three tolerances of
unscaled residuals at what is judged, in place of 1e-4 and 1, "ipopt unscaled" and bonmin scale
nothing. Choices that the documentation leaves open were made by trial on the Hock–Schittkowski
problems: the convexification of ``sqpmethod``, the memory of alpaqa, the tolerances of SLEQP (1e-8
solves one problem less) and Uno (1e-9 too). blockSQP runs without its restoration phase, whose
linear solver, ma27, is not in the wheel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from casadi_hybrid import nlpsol
from casadi_hybrid.utils.errors import CompilerWarning
from peers.forms import Elastic, LeastSquares

Options = dict[str, Any]
OURS = "hybrid"
JIT: Options = {
    "jit": True, "compiler": "shell", "jit_options": {"compiler": "cc", "flags": ["-O2"]},
}  # fmt: skip
"""Compiled functions of CasADi's plugins, by the compiler and flags that this package uses."""


@dataclass(frozen=True)
class Peer:
    """A solver with options, called as any of CasADi's.

    Attributes:
        name: "PEER" or, with several settings of one peer, "PEER/WORD" or "PEER WORD".
        plugin: CasADi's name of the solver; ``OURS`` is this package.
        options: the plugin's options, or a function that makes them for a program with stages.
        of_mx: whether the plugin takes MX alone.
        counts: whether the plugin tells its iterations.
    """

    name: str
    plugin: str
    options: Options | Callable[[Any], Options]
    of_mx: bool = False
    counts: bool = True

    @property
    def peer(self) -> str:
        """The solver of which this is a setting."""
        return self.name.replace(" ", "/").split("/")[0]

    def make(self, nlp: Mapping[str, Any], compiled: bool = False, program: Any = None) -> Any:
        """The solver of this problem, with compiled functions where that is asked for.

        Raises:
            CompilerWarning: where this package cannot compile and would fall back.
        """
        options = self.options(program) if callable(self.options) else dict(self.options)
        nlp = _as_mx(nlp) if self.of_mx else dict(nlp)
        if self.plugin != OURS:
            return ca.nlpsol("solver", self.plugin, nlp, options | (JIT if compiled else {}))
        with warnings.catch_warnings():
            warnings.simplefilter("error", CompilerWarning)
            return nlpsol("solver", OURS, nlp, options | ({"compile": True} if compiled else {}))

    def loads(self) -> bool:
        """Whether this installation of CasADi has the plugin."""
        return self.plugin == OURS or bool(ca.has_nlpsol(self.plugin))


def _as_mx(nlp: Mapping[str, Any]) -> Options:
    functions = ca.Function("nlp", [nlp["x"]], [nlp["f"], nlp["g"]])
    x = ca.MX.sym("x", nlp["x"].numel())
    f, g = functions(x)
    return {"x": x, "f": f, "g": g}


@dataclass(frozen=True)
class Reformulated(Peer):
    """A peer that solves another form of the problem: ``form`` makes it from nlp and options."""

    form: Callable[[Mapping[str, Any], Options], Any] = Elastic

    def make(self, nlp: Mapping[str, Any], compiled: bool = False, program: Any = None) -> Any:
        """The solver of this problem, by its other form."""
        del compiled, program
        return self.form(nlp, dict(self.options) if not callable(self.options) else {})

    def loads(self) -> bool:
        """SciPy is always there."""
        return True


QUIET: Options = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
QRQP: Options = {
    "error_on_fail": False, "print_iter": False, "print_header": False, "print_info": False,
}  # fmt: skip
QPOASES: Options = {"error_on_fail": False, "printLevel": "none"}
IPOPT: Options = {"print_level": 0, "sb": "yes", "tol": 1e-8, "bound_relax_factor": 0.0}
UNSCALED: Options = {"nlp_scaling_method": "none", "tol": 1e-9}
STRICT: Options = {"constr_viol_tol": 1e-6, "dual_inf_tol": 1e-6, "compl_inf_tol": 1e-6}
LIMITED: Options = {"hessian_approximation": "limited-memory"}
UNO: Options = {"logger": "SILENT", "max_iterations": 3000}
ALPAQA: Options = {
    "alm.tolerance": 1e-8, "alm.dual_tolerance": 1e-8, "alm.max_iter": 500,
    "panoc.max_iter": 5000, "lbfgs.memory": 20,
}  # fmt: skip
SQP: Options = {"print_iteration": False, "print_header": False, "max_iter": 3000}
SQP_TOLERANCES: Options = {"tol_pr": 1e-8, "tol_du": 1e-8}
CONVEX: Options = {"convexify_strategy": "regularize"}


def ipopt(word: str, expand: bool = False, **options: Any) -> Peer:
    """IPOPT with further options of its own."""
    return peer(f"ipopt {word}".strip(), expand=expand, ipopt={**IPOPT, **options})


def peer(name: str, of_mx: bool = False, counts: bool = True, **options: Any) -> Peer:
    """A silent peer; its name begins with that of the plugin."""
    return Peer(name, name.split(maxsplit=1)[0], {**QUIET, **options}, of_mx, counts)


def sqp(name: str, qpsol: str, qpsol_options: Options, **options: Any) -> Peer:
    """An SQP method of CasADi with one of its solvers of quadratic programs."""
    return peer(name, **SQP, qpsol=qpsol, qpsol_options=qpsol_options, **options)


PEERS: Mapping[str, Peer] = {
    setting.name: setting
    for setting in (
        Peer(OURS, OURS, {}),
        Peer(f"{OURS} threads", OURS, {"threads": 2}),
        ipopt(""),
        ipopt("expand", expand=True),
        ipopt("strict", **STRICT),
        ipopt("strict expand", expand=True, **STRICT),
        ipopt("unscaled", **UNSCALED),
        ipopt("unscaled expand", expand=True, **UNSCALED),
        Peer(f"{OURS} limited", OURS, LIMITED),
        ipopt("limited", **LIMITED),
        ipopt("honor", bound_relax_factor=1e-8, honor_original_bounds="yes"),
        peer("sleqp", print_level=0, max_iter=3000),
        peer("uno filtersqp", uno={**UNO, "preset": "filtersqp"}),
        peer("uno funnelsqp", uno={**UNO, "preset": "funnelsqp"}),
        peer("uno ipopt", uno={**UNO, "preset": "ipopt", "primal_tolerance": 1e-10}),
        sqp("sqpmethod qrqp", "qrqp", QRQP, print_status=False, **SQP_TOLERANCES, **CONVEX),
        sqp("sqpmethod qpoases", "qpoases", QPOASES, print_status=False, **SQP_TOLERANCES,
            **CONVEX),
        sqp("sqpmethod lbfgs", "qpoases", QPOASES, print_status=False, **SQP_TOLERANCES,
            hessian_approximation="limited-memory"),
        peer("fatrop", structure_detection="none", fatrop={"tol": 1e-8, "print_level": 0}),
        peer("bonmin", counts=False,
             bonmin={"print_level": 0, "bound_relax_factor": 0.0, **UNSCALED}),
        peer("alpaqa", alpaqa=ALPAQA),
        peer("blocksqp", linsol="ldl", print_iteration=False, print_header=False, max_iter=3000,
             opttol=1e-8, nlinfeastol=1e-8, restore_feas=False),
        peer("scpgen", of_mx=True, qpsol="qrqp", qpsol_options=QRQP, print_header=False,
             max_iter=3000, hessian_approximation="exact", **SQP_TOLERANCES),
        sqp("feasiblesqpmethod", "qrqp", QRQP, print_status=False, optim_tol=1e-8, feas_tol=1e-8,
            **CONVEX),
        sqp("qrsqp", "qrqp", QRQP, **SQP_TOLERANCES),
        Reformulated("ipopt elastic", "ipopt", {**QUIET, "ipopt": IPOPT}, form=Elastic),
        Reformulated("scipy", "scipy", {}, form=LeastSquares),
    )
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
