"""CasADi's conventions on the solver: nlpsol, Function, Opti, options, derivatives."""
