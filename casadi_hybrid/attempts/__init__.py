"""The default engine: the barrier iteration run from one attempt to the next."""
