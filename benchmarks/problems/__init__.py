"""Problems of the benchmarks: families, statements of COPS, grids; published ones are tests' data."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
