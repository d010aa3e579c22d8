"""The population study (shape × condition × start radius × seeds × rules) and sweeps, resumable."""

from casadi_hybrid.basics.record.collect import Unfinished as Unfinished
from casadi_hybrid.study.population import Plan as Plan
from casadi_hybrid.study.population import Population as Population
from casadi_hybrid.study.population import run_study as run_study
from casadi_hybrid.study.population import write as write
from casadi_hybrid.study.sweep import Sweep as Sweep
from casadi_hybrid.study.sweep import sweep as sweep
from casadi_hybrid.study.trial import Settings as Settings
from casadi_hybrid.study.trial import Trial as Trial
from casadi_hybrid.study.trial import Unit as Unit
from casadi_hybrid.study.trial import run_unit as run_unit
