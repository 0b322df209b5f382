"""Synthesizers: fit on private rows once, sample synthetic rows as often as you like."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .base import ReleaseSynthesizer as ReleaseSynthesizer
    from .dpmerf import DPMERFSynthesizer as DPMERFSynthesizer
    from .sliced import SlicedFDivSynthesizer as SlicedFDivSynthesizer
    from .sliced_rows import SlicedRowsSynthesizer as SlicedRowsSynthesizer

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "DPMERFSynthesizer": "dpmerf",
        "ReleaseSynthesizer": "base",
        "SlicedFDivSynthesizer": "sliced",
        "SlicedRowsSynthesizer": "sliced_rows",
    },
)
