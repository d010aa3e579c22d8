"""Problems of the benchmarks: families, statements of COPS, grids; others stand with the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
