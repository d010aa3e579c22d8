"""The solver: one call, its options and its result; the interfaces of CasADi and of Opti."""
