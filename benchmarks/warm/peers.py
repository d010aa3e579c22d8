"""The solvers and their settings, several of each, of which the best counts.

All aim at residuals of 1e-6 as they are judged, unscaled, and print nothing. Which settings are
here was decided on the families of ``TUNING``; the comment at each says why, its source where it is
documented. What was tried there and left out: ``convexify_strategy`` "regularize" (runs to its
limit where the exact Hessian is indefinite), daqp (refuses the semidefinite subproblems), qpoases
(dense, up to a minute a step), osqp (does not reach 1e-6), feasiblesqpmethod (needs a feasible
start), blocksqp (no step solved), piqp's ``sparse_multistage`` (not in the wheel).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peers.judge import TOLERANCE
from peers.solvers import OURS, QRQP, Options, Peer
from peers.solvers import QUIET as SILENT

from casadi_hybrid.utils.errors import InputError, suggest
from warm.stages import Program

ALIKE = f"{OURS}/tol-1e-6"
"""Ours at the tolerance that the peers are given, scaled residuals included."""
QUIET: Options = {**SILENT, "calc_lam_p": False}
"""Neither words nor multipliers of p, whose evaluation no controller needs."""


class Setting(Peer):
    """A solver with options for one program, which knows its stages."""

    def make(self, program: Program, compiled: bool = False) -> Any:
        """The solver, called as any of CasADi's; with compiled functions where asked for."""
        return super().make(program.nlp, compiled, program)


# --- IPOPT: https://coin-or.github.io/Ipopt/OPTIONS.html ------------------------------------------
# `tol` is for scaled residuals; the three others are unscaled, and what is judged.
IPOPT: Options = {
    "print_level": 0, "sb": "yes", "tol": TOLERANCE, "constr_viol_tol": TOLERANCE,
    "dual_inf_tol": TOLERANCE, "compl_inf_tol": TOLERANCE,
}  # fmt: skip
# Takes the multipliers, and leaves the guess where it is: by default it is moved from its bounds by
# 1e-3 (JuliaSmoothOptimizers/NLPModelsIpopt.jl, pull request 23).
KEPT: Options = {"warm_start_init_point": "yes"} | {
    f"warm_start_{part}": 1e-8
    for part in (
        "bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push",
    )
}  # fmt: skip


def ipopt(name: str, **options: Any) -> Setting:
    """IPOPT with further options; a warm start needs a small ``mu_init`` (casadi, issue 1936)."""
    return Setting(name, "ipopt", {**QUIET, "ipopt": {**IPOPT, **options}})


# --- fatrop: https://github.com/meco-group/fatrop, the plugin's page in CasADi's documentation ----
def fatrop(name: str, **options: Any) -> Setting:
    """Fatrop told the stages, as CasADi's tests do (test/python/ocp.py); takes no multipliers."""

    def made(program: Program) -> Options:
        inner = {"print_level": 0, "tolerance": TOLERANCE, **options}
        equal = [bool(row) for row in program.lbg == program.ubg]
        structure = {"structure_detection": "manual", "equality": equal, **stages(program)}
        return {**QUIET, **structure, "fatrop": inner}

    return Setting(name, "fatrop", made)


def stages(program: Program) -> Options:
    """The sizes of the stages, for solvers that are told."""
    return {"N": program.N, "nx": program.nx, "nu": program.nu, "ng": program.ng}


# --- sqpmethod: CasADi's documentation of nlpsol --------------------------------------------------
# Exact Hessians as they are first: quadratic convergence near a solution. "eigen-clip" for where
# they are indefinite: negative eigenvalues become zero.
SQP: Options = {
    "print_header": False, "print_iteration": False, "print_status": False, "max_iter": 100,
    "tol_pr": TOLERANCE, "tol_du": TOLERANCE,
}  # fmt: skip
# At its default tolerances (1e-6 and looser) sqpmethod stalls above 1e-6: these are below it, as in
# CasADi's test/python/conic.py.
HPIPM: Options = {"iter_max": 100} | {f"res_{row}_max": 1e-8 for row in "gbdm"}


def sqp(name: str, qpsol: str, qp: Options, clip: bool = False, staged: bool = False) -> Setting:
    """CasADi's SQP method with one of its solvers of quadratic programs."""

    def made(program: Program) -> Options:
        inner = {"error_on_fail": False, **qp, **(stages(program) if staged else {})}
        convex = {"convexify_strategy": "eigen-clip"} if clip else {}
        return {**QUIET, **SQP, "qpsol": qpsol, "qpsol_options": inner, **convex}

    return Setting(name, "sqpmethod", made)


# --- Uno: https://github.com/cvanaret/Uno ---------------------------------------------------------
def uno(name: str, preset: str, **options: Any) -> Setting:
    """A preset of Uno; it takes no guess of the multipliers of bounds (cvanaret/Uno, issue 674)."""
    inner = {"logger": "SILENT", "preset": preset, **options}
    return Setting(name, "uno", {**QUIET, "uno": inner})


# --- alpaqa: https://kul-optec.github.io/alpaqa ---------------------------------------------------
ALPAQA: Options = {
    "alm.tolerance": TOLERANCE, "alm.dual_tolerance": TOLERANCE, "alm.max_iter": 100,
    "panoc.max_iter": 2000, "lbfgs.memory": 20,
}  # fmt: skip

SETTINGS: Sequence[Setting] = (
    Setting(OURS, OURS, {}),  # its defaults: KKT 1e-6 unscaled and 1e-8 scaled
    Setting(ALIKE, OURS, {"tol": TOLERANCE}),
    ipopt("ipopt/cold"),
    ipopt("ipopt/mu-1e-2", **KEPT, mu_init=1e-2),
    ipopt("ipopt/mu-1e-4", **KEPT, mu_init=1e-4),
    ipopt("ipopt/mu-1e-5", **KEPT, mu_init=1e-5),
    ipopt("ipopt/adaptive", **KEPT, mu_init=1e-4, mu_strategy="adaptive"),
    fatrop("fatrop/cold"),
    fatrop("fatrop/mu-1e-2", mu_init=1e-2),
    fatrop("fatrop/mu-1e-4", mu_init=1e-4),
    fatrop("fatrop/mu-1e-4-near", mu_init=1e-4, bound_push=1e-6, bound_frac=1e-6),
    sqp("sqpmethod/qrqp", "qrqp", QRQP),
    sqp("sqpmethod/qrqp-clip", "qrqp", QRQP, clip=True),
    sqp("sqpmethod/piqp", "piqp", {}),
    sqp("sqpmethod/piqp-clip", "piqp", {}, clip=True),
    sqp("sqpmethod/hpipm", "hpipm", {"hpipm": HPIPM}, staged=True),
    sqp("sqpmethod/hpipm-clip", "hpipm", {"hpipm": HPIPM}, clip=True, staged=True),
    uno("uno/filtersqp", "filtersqp"),
    uno("uno/ipopt", "ipopt"),
    uno("uno/ipopt-mu-1e-4", "ipopt", barrier_initial_parameter=1e-4),
    Setting("alpaqa", "alpaqa", {**QUIET, "alpaqa": ALPAQA}),
)
NAMES: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
PEERS = tuple(dict.fromkeys(setting.peer for setting in SETTINGS))
QUICK = ("ipopt/mu-1e-5", "fatrop/mu-1e-4", "sqpmethod/qrqp", "sqpmethod/piqp")
"""One or two settings of the fastest peers, for a short run and for the study of horizons."""


def chosen(words: Sequence[str]) -> list[Setting]:
    """The settings that names of settings or of whole peers speak of, ours first.

    Raises:
        InputError: for a word that is neither, with the nearest one.
    """
    found = [NAMES[OURS]]
    for word in words:
        of_peer = [setting for setting in SETTINGS if setting.peer == word]
        if not of_peer and word not in NAMES:
            raise InputError(f"no solver {word!r}{suggest(word, (*PEERS, *NAMES))}")
        found += of_peer or [NAMES[word]]
    return list({setting.name: setting for setting in found}.values())


def loads(setting: Peer) -> bool:
    """Whether this installation of CasADi has the plugin."""
    return setting.loads()
