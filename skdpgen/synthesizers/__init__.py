"""Synthesizers: fit on private rows once, sample synthetic rows as often as you like."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from ._model_file import is_model as is_model
    from ._model_file import load_model as load_model
    from ._model_file import load_release as load_release
    from ._model_file import save_model as save_model
    from ._model_file import synthesizer_class as synthesizer_class
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
        "is_model": "_model_file",
        "load_model": "_model_file",
        "load_release": "_model_file",
        "save_model": "_model_file",
        "synthesizer_class": "_model_file",
    },
)
