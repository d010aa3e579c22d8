"""Figures of a closed loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.signals import known
from casadi_hybrid.plotting import DASHES, PALETTE, figure

ACROSS = 4
"""With more panels than this they stand in two columns."""


def draw_run(run: Any, names: Sequence[str] | None, title: str) -> Any:
    """Return the figure of a run; see :meth:`Run.plot`."""
    tables = {name: table for table in (run.outputs, run.controls, run.states) for name in table}
    if isinstance(names, str):
        raise InputError(f"names must be a list of names, got the text {names!r}")
    chosen = [*run.states, *run.controls] if names is None else list(names)
    for name in chosen:
        known(name, tables, "trajectory")
    if not chosen:
        raise InputError("names is empty; name at least one trajectory")
    columns = 2 if len(chosen) > ACROSS else 1
    rows = -(-len(chosen) // columns)
    fig, axes = figure(rows, columns, height=1.7, sharex=True)
    for ax, name in zip(axes.T.flat, chosen, strict=False):
        _panel(ax, run, name, tables[name])
    for ax in axes.T.flat[len(chosen) :]:
        ax.set_visible(False)
    for column in axes.T:
        last = [ax for ax in column if ax.get_visible()][-1]
        last.set_xlabel("time (s)")
        last.tick_params(labelbottom=True)
    fig.align_ylabels(axes)
    _legend(fig, axes)
    if title or run.stopped:
        fig.suptitle(title or run.stopped, fontsize=10)
    return fig


def _panel(ax: Any, run: Any, name: str, table: Any) -> None:
    values = table.rows(name)
    several = values.shape[0] > 1
    for i, row in enumerate(values):
        tail = f" [{i}]" if several else ""
        style = {"color": PALETTE[i % len(PALETTE)], "linestyle": DASHES[i % len(DASHES)]}
        if table is run.controls:
            # The last step lasts until the end of the run.
            held = np.append(row, row[-1:])
            ax.step(run.times[: held.size], held, where="post", label=f"applied{tail}", **style)
        else:
            ax.plot(run.times, row, label=f"true{tail}", **style)
        if name in run.measured:
            ax.plot(run.measured.times, run.measured.rows(name)[i], linestyle="none", marker=".",
                    markersize=3.5, color=PALETTE[5], zorder=1.5, label="measured")  # fmt: skip
        if name in run.estimates and table is run.states:
            ax.plot(run.estimates.times, run.estimates.rows(name)[i], color=PALETTE[7],
                    linestyle=":", linewidth=1.3, label="estimate")  # fmt: skip
    limit = run.limits.get(name)
    unit = limit.unit if limit is not None else ""
    ax.set_ylabel(f"{name} ({unit})" if unit else name)
    if limit is not None:
        _limits(ax, limit, values)


def _limits(ax: Any, limit: Any, values: Any) -> None:
    """Draw limits that are near the curve; a far one would make it flat."""
    least, most = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    room = 1.5 * max(most - least, 1e-9 * max(abs(most), abs(least), 1.0))
    for bound in sorted({*limit.lower.tolist(), *limit.upper.tolist()}):
        if least - room <= bound <= most + room:
            ax.axhline(bound, color=PALETTE[6], linestyle="--", linewidth=1.0, label="limit")


def _legend(fig: Any, axes: Any) -> None:
    """One legend for all panels, each label once, and only those of several meanings."""
    found: dict[str, Any] = {}
    for ax in axes.T.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if len(found) > 1:
        fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(5, len(found)),
                   fontsize=9, frameon=False)  # fmt: skip
