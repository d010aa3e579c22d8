"""Every NLP solver of the CasADi wheel on the problems of the benchmarks, judged in one way."""
