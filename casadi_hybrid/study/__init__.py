"""The population study: shape × condition × start radius × seeds × rules, resumable."""

from casadi_hybrid.study.degenerate import KINDS, make_rank_deficient
from casadi_hybrid.study.population import Plan, Population, run_study, write
from casadi_hybrid.study.trial import Settings, Trial, Unit, run_unit

__all__ = [
    "KINDS",
    "Plan",
    "Population",
    "Settings",
    "Trial",
    "Unit",
    "make_rank_deficient",
    "run_study",
    "run_unit",
    "write",
]
