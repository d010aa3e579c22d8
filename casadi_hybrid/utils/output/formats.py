"""The formats that figures are written in."""

from __future__ import annotations

import argparse

FIGURES = ("png", "svg", "pdf")


def add_figures(parser: argparse.ArgumentParser) -> None:
    """Add ``--figures`` to the options of a command that writes figures."""
    parser.add_argument(
        "--figures",
        choices=FIGURES,
        default=FIGURES[0],
        help="format of the figures (default: png; svg and pdf for print and for editing)",
    )
