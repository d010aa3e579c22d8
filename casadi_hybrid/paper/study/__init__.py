"""Resumable studies: the population of the paper's class, and sweeps over arguments."""

from casadi_hybrid.paper.study.population import Plan as Plan
from casadi_hybrid.paper.study.population import Population as Population
from casadi_hybrid.paper.study.population import run_study as run_study
from casadi_hybrid.paper.study.population import write as write
from casadi_hybrid.paper.study.sweep import Sweep as Sweep
from casadi_hybrid.paper.study.sweep import sweep as sweep
from casadi_hybrid.paper.study.trial import Settings as Settings
from casadi_hybrid.paper.study.trial import Trial as Trial
from casadi_hybrid.paper.study.trial import Unit as Unit
from casadi_hybrid.paper.study.trial import run_unit as run_unit
from casadi_hybrid.utils.record.collect import Unfinished as Unfinished
