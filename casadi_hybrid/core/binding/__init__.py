"""The binding of the core: its libraries, plans of problems, memory of solves, their calls."""
