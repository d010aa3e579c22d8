"""The command line: ``casadi-hybrid run <scenario>``, ``study``, ``verify``, ``doctor``, …"""

from casadi_hybrid.cli.main import main

__all__ = ["main"]
