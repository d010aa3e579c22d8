"""Problems 61–90 of Hock & Schittkowski (the book has no 82)."""

from __future__ import annotations

from problems.hs_061_075 import *  # noqa: F403
from problems.hs_076_090 import *  # noqa: F403
