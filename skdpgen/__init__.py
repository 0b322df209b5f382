"""Differentially private synthetic tables, the scikit-learn way.

``fit`` reads private rows once and releases one noisy vector; everything after that release is
post-processing and costs no privacy.

The names below are imported on first use: ``import skdpgen`` loads neither torch nor the
accounting libraries.
"""

from typing import TYPE_CHECKING

from ._lazy import attach

if TYPE_CHECKING:
    from .data.preprocessing import TabularPreprocessor as TabularPreprocessor
    from .data.schema import Schema as Schema
    from .divergences.bounds import mmd_error_bound as mmd_error_bound
    from .features.settings import GaussianFeatures as GaussianFeatures
    from .features.settings import InteractionFeatures as InteractionFeatures
    from .generators.mixture import MixtureGenerator as MixtureGenerator
    from .pipeline import SynthesisPipeline as SynthesisPipeline
    from .pipeline import make_synthesis_pipeline as make_synthesis_pipeline
    from .privacy.ledger import PrivacyLedger as PrivacyLedger
    from .privacy.noise import insecure_noise as insecure_noise
    from .privacy.release import Release as Release
    from .synthesizers._model_file import load_model as load_model
    from .synthesizers._model_file import load_release as load_release
    from .synthesizers._model_file import save_model as save_model
    from .synthesizers.dpmerf import DPMERFSynthesizer as DPMERFSynthesizer
    from .synthesizers.sliced import SlicedFDivSynthesizer as SlicedFDivSynthesizer
    from .synthesizers.sliced_rows import SlicedRowsSynthesizer as SlicedRowsSynthesizer

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "DPMERFSynthesizer": "synthesizers.dpmerf",
        "GaussianFeatures": "features.settings",
        "InteractionFeatures": "features.settings",
        "MixtureGenerator": "generators.mixture",
        "PrivacyLedger": "privacy.ledger",
        "Release": "privacy.release",
        "Schema": "data.schema",
        "SlicedFDivSynthesizer": "synthesizers.sliced",
        "SlicedRowsSynthesizer": "synthesizers.sliced_rows",
        "SynthesisPipeline": "pipeline",
        "TabularPreprocessor": "data.preprocessing",
        "insecure_noise": "privacy.noise",
        "load_model": "synthesizers._model_file",
        "load_release": "synthesizers._model_file",
        "make_synthesis_pipeline": "pipeline",
        "mmd_error_bound": "divergences.bounds",
        "save_model": "synthesizers._model_file",
    },
)
