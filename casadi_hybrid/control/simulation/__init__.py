"""Closed loops of a plant, a controller and an estimator: :func:`simulate` and its :class:`Run`.

:func:`monte_carlo` repeats a loop over seeds.
"""

from casadi_hybrid.control.model.plant import Plant
from casadi_hybrid.control.simulation.monte_carlo import Summary, monte_carlo
from casadi_hybrid.control.simulation.run import Run
from casadi_hybrid.control.simulation.simulate import simulate
from casadi_hybrid.control.simulation.table import Table

__all__ = ["Plant", "Run", "Summary", "Table", "monte_carlo", "simulate"]
