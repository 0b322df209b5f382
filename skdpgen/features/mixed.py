"""The feature map of DP-MERF: random Fourier features of numbers plus one-hot categories.

One object, drawn from public facts, serves both sides of the trust boundary with the same
frequencies: integers for the mechanism (numpy) and a differentiable embedding for training (torch).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import InputError, PrivacyParameterError
from skdpgen.layout import EncodedLayout
from skdpgen.privacy.batches import RowBatch
from skdpgen.privacy.lattice import IntegerFourier, quantize_frequencies, to_grid
from skdpgen.privacy.spec import EmbeddingSpec

if TYPE_CHECKING:
    from skdpgen.features.embedding import MixedEmbedding
    from skdpgen.privacy.release import Release

__all__ = ["MixedFeatureMap", "default_bandwidth"]

# Size in elements of the largest arrays of the data pass: 64 MiB of integer features.
_CHUNK_ELEMENTS = 2**23


@dataclass(frozen=True, eq=False)
class MixedFeatureMap:
    r"""Sum of a Gaussian kernel on the numbers and a linear kernel on the one-hot groups.

    .. math:: h(x) = [\phi(x_{num}) ; x_{cat} / \sqrt d]

    with :math:`\phi` the cosine-sine pairs of F random frequencies, of norm exactly 1, and d the
    number of one-hot columns (DP-MERF, arXiv 2002.11603, sec. 3 and 4.3). Either part may be
    missing.

    Parameters
    ----------
    layout : EncodedLayout
        Layout of encoded rows.
    frequencies : ndarray of int64, shape (F, p)
        Frequencies in ``2**-frequency_bits`` cycles per unit, one column a numeric position.
    frequency_bits : int
        Resolution of the frequencies.

    Examples
    --------
    >>> layout = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))
    >>> features = MixedFeatureMap.draw(layout, n_features=100, bandwidth=0.2, random_state=0)
    >>> features.width
    102
    >>> signed, codes = features.integers(np.array([[0.25, 0.0, 1.0]]))
    >>> signed.shape, codes.tolist()
    ((1, 100), [[1]])
    """

    layout: EncodedLayout
    frequencies: npt.NDArray[np.int64]
    frequency_bits: int
    _fourier: IntegerFourier = field(init=False, repr=False)

    def __post_init__(self) -> None:
        bits = self.spec(n_classes=1, count_weight=0.0).lattice_bits
        fourier = IntegerFourier(self.frequencies, self.frequency_bits, bits)
        object.__setattr__(self, "_fourier", fourier)

    @classmethod
    def draw(
        cls,
        layout: EncodedLayout,
        *,
        n_features: int,
        bandwidth: float | Sequence[float],
        random_state: int | np.random.RandomState | None = None,
    ) -> MixedFeatureMap:
        """Draw frequencies from the spectral measure of a Gaussian kernel.

        Parameters
        ----------
        layout : EncodedLayout
            Layout of encoded rows.
        n_features : int
            Number of real random features D, even: D / 2 frequencies with a cosine and a sine
            each. Without numeric positions none are drawn.
        bandwidth : float or sequence of float
            Length scale l of the kernel ``exp(-|x - x'|^2 / (2 l^2))`` on numbers scaled to
            [0, 1]. Several are mixed evenly: the kernel is then the mean of their kernels.
        random_state : int, RandomState or None
            Public randomness: frequencies need not be secret.

        Raises
        ------
        PrivacyParameterError
            If ``n_features`` isn't a positive even integer or a bandwidth isn't positive and
            finite, or so small that phases would no longer be exact.
        """
        from sklearn.utils import check_random_state

        if not isinstance(n_features, (int, np.integer)) or n_features < 2 or n_features % 2:
            raise PrivacyParameterError(
                f"n_features must be a positive even integer (cosine-sine pairs), "
                f"got {n_features!r}."
            )
        scales = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64)).ravel()
        if not scales.size or not np.all(np.isfinite(scales) & (scales > 0)):
            raise PrivacyParameterError(
                f"bandwidth must be a positive number or several, got {bandwidth!r}."
            )
        n_frequencies = n_features // 2 if layout.numeric else 0
        rng = check_random_state(random_state)
        normal = rng.normal(size=(n_frequencies, len(layout.numeric)))
        # Frequency f gets bandwidth f modulo their number, so that any prefix is mixed evenly.
        cycles = normal / (2 * math.pi * np.resize(scales, n_frequencies)[:, None])
        try:
            frequencies, bits = quantize_frequencies(cycles)
        except ValueError as error:
            raise PrivacyParameterError(f"bandwidth is too small: {error}") from None
        return cls(layout, frequencies, bits)

    @property
    def width(self) -> int:
        """Number of real coordinates: random features, then one per one-hot column."""
        return 2 * len(self.frequencies) + len(self.layout.categorical)

    @property
    def n_parts(self) -> int:
        """Parts of a release that can be left out of training: frequencies."""
        return len(self.frequencies)

    def coordinates(self, parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Coordinates of the release that belong to some frequencies: cosines, then sines.

        Parameters
        ----------
        parts : ndarray of int64
            Which frequencies.

        Returns
        -------
        ndarray of int64, shape (2 * number of their frequencies,)
            Places among the signed coordinates.
        """
        return np.concatenate([parts, self.n_parts + parts])

    def spec(self, n_classes: int, count_weight: float) -> EmbeddingSpec:
        """What one row contributes, for the mechanism.

        Parameters
        ----------
        n_classes : int
            Number of classes, 1 without a label.
        count_weight : float
            Weight of the class counts.

        Returns
        -------
        EmbeddingSpec
            Sizes, shares and weights.
        """
        return EmbeddingSpec(
            n_signed=2 * len(self.frequencies),
            group_widths=self.layout.group_widths,
            n_classes=n_classes,
            count_weight=count_weight,
        )

    def integers(
        self, encoded: npt.NDArray[np.floating]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Integer features of encoded rows: an exact function of each row alone.

        Parameters
        ----------
        encoded : ndarray of float, shape (n, layout.width)
            Total on all floats: numbers are clipped to [0, 1], groups read by their largest entry.

        Returns
        -------
        signed : ndarray of int64, shape (n, 2 F)
            Random features in lattice steps.
        codes : ndarray of int64, shape (n, n_groups)
            Category index in each one-hot group.
        """
        if encoded.ndim != 2 or encoded.shape[1] != self.layout.width:
            raise InputError(f"encoded rows must have {self.layout.width} columns.")
        signed = self._fourier(to_grid(encoded[:, list(self.layout.numeric)]))
        codes = np.empty((len(encoded), len(self.layout.groups)), dtype=np.int64)
        for group, (start, stop) in enumerate(self.layout.groups):
            codes[:, group] = encoded[:, start:stop].argmax(axis=1)
        return signed, codes

    def batches(
        self,
        encoded: npt.NDArray[np.floating],
        labels: npt.NDArray[np.int64],
        keep: npt.NDArray[np.bool_] | None,
    ) -> Iterator[RowBatch]:
        """Encoded rows as the mechanism takes them, in chunks of bounded memory.

        Parameters
        ----------
        encoded : ndarray of shape (n, width)
            Encoded rows.
        labels : ndarray of int64, shape (n,)
            Class indices.
        keep : ndarray of bool, shape (n,), or None
            Rows that count; None keeps all.

        Yields
        ------
        RowBatch
            What the mechanism adds up.
        """
        size = max(1, _CHUNK_ELEMENTS // self.width)
        for start in range(0, len(encoded), size):
            part = slice(start, start + size)
            signed, codes = self.integers(encoded[part])
            yield RowBatch(signed, codes, labels[part], None if keep is None else keep[part])

    def embedding(self, parts: npt.NDArray[np.int64] | None = None) -> MixedEmbedding:
        """The same map as a torch module, for generated rows.

        Parameters
        ----------
        parts : ndarray of int, default=None
            Frequencies to keep, at the amplitude that they have among all; None keeps all.

        Returns
        -------
        MixedEmbedding
            The module.
        """
        from skdpgen.features.embedding import MixedEmbedding

        kept = self.frequencies if parts is None else self.frequencies[parts]
        return MixedEmbedding(
            self.layout,
            kept,
            self.frequency_bits,
            fourier_scale=1 / math.sqrt(max(1, self.n_parts)),
        )

    # -- travelling with a release ----------------------------------------------------------------

    def to_public(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """JSON-ready facts and arrays from which :meth:`from_release` makes the map again.

        Returns
        -------
        facts : dict
            Plain values.
        arrays : dict of str to ndarray
            What JSON is too large for.
        """
        facts = {
            "kind": "gaussian",
            "layout": self.layout.to_dict(),
            "frequency_bits": self.frequency_bits,
        }
        return facts, {"frequencies": self.frequencies}

    @classmethod
    def from_release(cls, release: Release) -> MixedFeatureMap:
        """The feature map that a release was made with.

        Parameters
        ----------
        release : Release
            A release of a table, with its public facts.

        Returns
        -------
        MixedFeatureMap
            The map.
        """
        facts = release.public["feature_map"]
        return cls(
            layout=EncodedLayout.from_dict(facts["layout"]),
            frequencies=release.public_arrays["frequencies"],
            frequency_bits=int(facts["frequency_bits"]),
        )


def default_bandwidth(n_numeric: int) -> tuple[float, ...]:
    """Bandwidths that suit most tables, from the number of numeric columns alone.

    Distances between rows grow like the square root of the number of columns, and so do these
    length scales. The long one gives training a direction from anywhere; the short ones see
    detail. Chosen on bank_marketing, telco_churn and compas, at epsilon = 1.

    Parameters
    ----------
    n_numeric : int
        Number of columns scaled to [0, 1].

    Returns
    -------
    tuple of float
        Length scales to be mixed.
    """
    root = math.sqrt(max(1, n_numeric))
    return (0.03 * root, 0.1 * root, 0.3 * root, 1.0 * root)
