"""The paper's experiment: problem class, methods, tables, verdicts."""

from casadi_hybrid.paper.experiment import printed
from casadi_hybrid.paper.experiment.generator import CONDITIONS, Instance, make_instance

__all__ = ["CONDITIONS", "Instance", "make_instance", "printed"]
