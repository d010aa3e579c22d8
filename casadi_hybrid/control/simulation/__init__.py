"""Closed loops: a plant, a controller, an estimator, what goes wrong between them, and the record.

:class:`~casadi_hybrid.control.model.plant.Plant` moves, :func:`simulate` closes the loop,
:class:`Run` is what happened and :func:`monte_carlo` repeats it over seeds.
"""

from casadi_hybrid.control.model.plant import Plant
from casadi_hybrid.control.simulation.monte_carlo import Summary, monte_carlo
from casadi_hybrid.control.simulation.run import Run
from casadi_hybrid.control.simulation.simulate import simulate
from casadi_hybrid.control.simulation.table import Table

__all__ = ["Plant", "Run", "Summary", "Table", "monte_carlo", "simulate"]
