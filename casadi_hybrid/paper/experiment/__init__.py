"""The paper's experiment: its problem class, its eight methods, its tables."""

from casadi_hybrid.paper.experiment import printed
from casadi_hybrid.paper.experiment.generator import CONDITIONS, Instance, make_instance

__all__ = ["CONDITIONS", "Instance", "make_instance", "printed"]
