"""The commands."""

from __future__ import annotations

import click


@click.group()
def main() -> None:
    """Make differentially private synthetic tables."""
