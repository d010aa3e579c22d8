"""Circles in a graph of what needs what."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter


def circle(edges: Iterable[tuple[str, str]]) -> str:
    """One circle of the graph as a sentence; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for one, other in edges:
        graph.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " needs ".join(error.args[1])
    return ""
