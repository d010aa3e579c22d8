"""Options of the solver, CasADi's and IPOPT's names of them, and CasADi's conventions."""
