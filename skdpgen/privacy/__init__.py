"""The privacy core: mechanisms, noise, accounting, ledger, release.

Read ``README.md`` in this folder first: threat model, adjacency, and a proof sketch per mechanism.
Nothing here imports torch, pandas or the rest of the package.
"""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .accounting import compose_gaussian as compose_gaussian
    from .accounting import composed_delta as composed_delta
    from .accounting import composed_epsilon as composed_epsilon
    from .accounting import gaussian_delta as gaussian_delta
    from .accounting import gaussian_epsilon as gaussian_epsilon
    from .accounting import noise_multiplier as noise_multiplier
    from .batches import CodeBatch as CodeBatch
    from .batches import RowBatch as RowBatch
    from .codes import CodeFourier as CodeFourier
    from .domain_batches import DomainBatch as DomainBatch
    from .domain_batches import KeyColumn as KeyColumn
    from .domains import DomainMechanism as DomainMechanism
    from .entries import LedgerEntry as LedgerEntry
    from .ledger import PrivacyLedger as PrivacyLedger
    from .mechanisms import MeanEmbeddingMechanism as MeanEmbeddingMechanism
    from .noise import insecure_noise as insecure_noise
    from .private_selection import PrivateSelection as PrivateSelection
    from .release import Release as Release
    from .selection import Repetitions as Repetitions
    from .slicing import SlicingBatch as SlicingBatch
    from .slicing import SlicingMechanism as SlicingMechanism
    from .slicing_release import SlicingRelease as SlicingRelease
    from .spec import EmbeddingSpec as EmbeddingSpec

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "CodeBatch": "batches",
        "CodeFourier": "codes",
        "DomainBatch": "domain_batches",
        "DomainMechanism": "domains",
        "EmbeddingSpec": "spec",
        "KeyColumn": "domain_batches",
        "LedgerEntry": "entries",
        "MeanEmbeddingMechanism": "mechanisms",
        "PrivacyLedger": "ledger",
        "PrivateSelection": "private_selection",
        "Release": "release",
        "Repetitions": "selection",
        "RowBatch": "batches",
        "SlicingBatch": "slicing",
        "SlicingMechanism": "slicing",
        "SlicingRelease": "slicing_release",
        "compose_gaussian": "accounting",
        "composed_delta": "accounting",
        "composed_epsilon": "accounting",
        "gaussian_delta": "accounting",
        "gaussian_epsilon": "accounting",
        "insecure_noise": "noise",
        "noise_multiplier": "accounting",
    },
)
