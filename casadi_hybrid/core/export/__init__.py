"""A solver as C99 without dependencies, for machines that have nothing but a compiler."""
