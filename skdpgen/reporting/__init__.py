"""One page that says what a synthetic table is worth and what was promised."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._report import Report as Report
    from ._report import report as report
    from ._verdict import Finding as Finding
    from ._verdict import Verdict as Verdict

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"Finding": "_verdict", "Report": "_report", "Verdict": "_verdict", "report": "_report"},
)
