"""Problems 91–119 of Hock & Schittkowski (the book has no 94 and no 115)."""

from __future__ import annotations

from problems.hs_091_106 import *  # noqa: F403
from problems.hs_107_119 import *  # noqa: F403
