"""A solver in graphs: a Function of CasADi, with its derivatives."""
