"""Problems of the benchmarks: families of all sizes; the published ones are data of the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
