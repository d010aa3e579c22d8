"""Problems of the benchmarks: families, statements of COPS, grids; the tests have published ones."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
