"""The command line: ``skdpgen``, or ``python -m skdpgen``.

Its modules import nothing heavy before a command runs: help takes no time.
"""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .app import main as main

__getattr__, __dir__, __all__ = attach(__name__, {"main": "app"})
