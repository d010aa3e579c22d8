"""The population study (shape × condition × start radius × seeds × rules) and sweeps, resumable."""

from casadi_hybrid.basics.record.collect import Unfinished
from casadi_hybrid.study.degenerate import KINDS, make_rank_deficient
from casadi_hybrid.study.population import Plan, Population, run_study, write
from casadi_hybrid.study.sweep import Sweep, sweep
from casadi_hybrid.study.trial import Settings, Trial, Unit, run_unit

__all__ = [
    "KINDS",
    "Plan",
    "Population",
    "Settings",
    "Sweep",
    "Trial",
    "Unfinished",
    "Unit",
    "make_rank_deficient",
    "run_study",
    "run_unit",
    "sweep",
    "write",
]
