"""The core in C: built once a machine, cached, loaded where it can be; see :mod:`.library`."""
