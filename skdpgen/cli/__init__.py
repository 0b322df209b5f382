"""The command line: ``skdpgen``."""

from .main import main

__all__ = ["main"]
