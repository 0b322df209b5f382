"""The command line: ``skdpgen``, or ``python -m skdpgen``.

Its modules import nothing heavy before a command runs: help takes no time.
"""

from .main import main

__all__ = ["main"]
