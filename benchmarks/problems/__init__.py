"""Problems of the benchmarks, each with its source."""
