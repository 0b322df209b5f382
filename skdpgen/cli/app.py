"""The command ``skdpgen``: all its commands in the order of use."""

from __future__ import annotations

import click

from skdpgen import __version__

from . import evaluating, fitting, inspecting, schemas, training

__all__ = ["main"]

_EPILOG = """
A first run takes five commands:

\b
  skdpgen schema draft data.csv -o schema.json
  skdpgen schema check schema.json data.csv     (after you filled it in)
  skdpgen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 --hold-out 0.2 -o data.release
  skdpgen sample data.release -n 10000 -o synthetic.csv
  skdpgen report synthetic.csv --release data.release --real data.csv -o report.html

Exit status: 0 success, 1 error, 2 wrong usage, 3 refused by the budget of a ledger, 4 failed after
budget was spent, 130 interrupted.
"""


class _InOrder(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="skdpgen")
def main() -> None:
    """Make differentially private synthetic tables.

    `fit` reads private rows under a guarantee and pays for it from a budget; what is made of its
    release afterwards costs nothing. `split`, `evaluate` and `report` read private rows without
    any protection: what they write is as private as these, but for `report --publishable`.
    """


for command in (
    schemas.schema,
    fitting.split,
    fitting.fit,
    fitting.ledger,
    training.sample,
    training.retrain,
    training.search,
    inspecting.inspect,
    evaluating.evaluate,
    evaluating.report,
    evaluating.demo,
):
    main.add_command(command)
