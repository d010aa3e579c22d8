"""The engine in C: the method of the barrier room, compiled once for a machine."""
