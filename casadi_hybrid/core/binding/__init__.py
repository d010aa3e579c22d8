"""The method in C: built once a machine and cached, with the problem's functions behind it."""
