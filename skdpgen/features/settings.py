"""Which random features a synthesizer releases: parameters that a user sets, without data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator

from skdpgen.exceptions import PrivacyParameterError

if TYPE_CHECKING:
    from skdpgen.atoms import AtomLayout
    from skdpgen.features.interactions import InteractionFeatureMap
    from skdpgen.features.mixed import MixedFeatureMap
    from skdpgen.layout import EncodedLayout
    from skdpgen.privacy.entries import Adjacency

__all__ = ["GaussianFeatures", "InteractionFeatures", "ReleaseFacts"]

# Above this noise triples of columns drown, and pairs alone have twice the signal. Fine waves of
# numbers drown as well, while coarse ones are what tells how much lies in a tail.
_LARGE_NOISE = 3e-4
# Below this noise triples are seen so well that pairs, which they contain, only take their place.
_SMALL_NOISE = 1.2e-5
_MAX_CYCLES, _MAX_CYCLES_IN_LARGE_NOISE = 32.0, 16.0
# Waves of a family under replace-one: the sensitivity falls from 1.90 to 1.55, more gives little.
_HARMONICS = 4


@dataclass(frozen=True)
class ReleaseFacts:
    """Public facts about a release to come, from which features choose what is "auto".

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}
        The neighboring relation.
    noise_multiplier : float
        Noise standard deviation for a sensitivity of one row.
    n_rows : float
        The number of rows where it is public, else a guess.
    """

    adjacency: Adjacency = "add-remove"
    noise_multiplier: float = 0.0
    n_rows: float = 1.0

    @property
    def noise(self) -> float:
        """Least noise of a mean over the rows of something that has norm one in each of them."""
        # Replacing a row takes one away and adds another: at best they are orthogonal.
        rows = math.sqrt(2) if self.adjacency == "replace-one" else 1.0
        return rows * self.noise_multiplier / self.n_rows


class GaussianFeatures(BaseEstimator):
    """The features of the DP-MERF paper: a Gaussian kernel on numbers, linear on categories.

    Every random feature looks at all numeric columns at once; categories are released as class-wise
    shares. Right for images, and for the paper's variants.

    Parameters
    ----------
    n_features : int, default=2000
        Number of random features of the numeric columns, even. See
        :func:`~skdpgen.mmd_error_bound`.
    bandwidth : float, sequence of float or "auto", default="auto"
        Length scale of the Gaussian kernel on numbers scaled to [0, 1]; several are mixed. "auto"
        follows from the number of numeric columns, see
        :func:`~skdpgen.features.mixed.default_bandwidth`. Never computed from rows.

    References
    ----------
    F. Harder, K. Adamczewski, M. Park, "DP-MERF", AISTATS 2021, arXiv 2002.11603, sec. 3 and 4.3.

    Examples
    --------
    >>> GaussianFeatures(n_features=500)
    GaussianFeatures(n_features=500)
    """

    def __init__(
        self,
        n_features: int = 2000,
        *,
        bandwidth: float | Sequence[float] | Literal["auto"] = "auto",
    ) -> None:
        self.n_features = n_features
        self.bandwidth = bandwidth

    def draw(self, layout: EncodedLayout, random_state: np.random.RandomState) -> MixedFeatureMap:
        """Draw the feature map of rows with this layout; raises for bad parameters.

        Parameters
        ----------
        layout : EncodedLayout
            Layout of an encoded row.
        random_state : RandomState
            Source of the public randomness.

        Returns
        -------
        MixedFeatureMap
            The map, with frequencies drawn.
        """
        from skdpgen.features.mixed import MixedFeatureMap, default_bandwidth

        bandwidth = self.bandwidth
        if isinstance(bandwidth, str):
            if bandwidth != "auto":
                raise PrivacyParameterError(
                    f"bandwidth must be 'auto', a number or several, got {bandwidth!r}."
                )
            bandwidth = default_bandwidth(len(layout.numeric))
        try:
            np.asarray(bandwidth, dtype=np.float64)
        except (TypeError, ValueError):
            raise PrivacyParameterError(
                f"bandwidth must be 'auto', a number or several, got {bandwidth!r}."
            ) from None
        return MixedFeatureMap.draw(
            layout, n_features=self.n_features, bandwidth=bandwidth, random_state=random_state
        )


class InteractionFeatures(BaseEstimator):
    """Features that look at a few columns each; the default for tables.

    Every column becomes integer codes: categories, or bins of a number's public range. A random
    frequency looks at a small subset of columns, and one-way tables of all columns stand beside
    them in the same release, everything crossed with the label. What is matched are the joint
    distributions of as many columns as a frequency looks at, and the label; higher orders are not.

    Parameters
    ----------
    n_frequencies : int, default=10_000
        Number of frequencies, a cosine and a sine each.
    orders : sequence of int or "auto", default="auto"
        How many columns a frequency looks at, 1 to 4; every order gets as many frequencies. "auto"
        is two and three; two alone where the noise would drown triples, in a table of fewer than
        some 12,000 rows at epsilon = 1, delta = 1e-5 (18,000 under replace-one); three alone where
        there is next to no noise, from some 310,000 rows on (440,000).
    n_bins : int, default=128
        Most bins of a number, 4 to 4096. Whole numbers with fewer values have one each.
    max_cycles : float or "auto", default="auto"
        Largest scale of a number's frequencies, in cycles over its bins. "auto" is 32, and 16
        where the noise would drown triples of columns.
    block_share : float, default=0.2
        Share of a row's squared norm that the one-way tables get, in [0, 1). They keep spikes,
        which random frequencies hardly see, and calm the label's main effects.
    max_subsets : int, default=400
        Subsets of columns an order, of which the frequencies are drawn.
    n_harmonics : int or "auto", default="auto"
        Frequencies come in families of so many multiples of one frequency, with falling weights:
        by the Fejer kernel no two rows are opposite then, and the replace-one sensitivity is
        lower, 1.55 instead of 1.90 with four. "auto" is four under replace-one; under add-remove,
        where nothing would be gained, one.

    Notes
    -----
    The kernel is the mean over subsets of products of one-column kernels: Gaussian, with
    log-uniform length scales, for numbers, and the indicator of equality for categories; with
    harmonics, of its values at 1, 2, ... times the distance.

    Examples
    --------
    >>> InteractionFeatures(orders=(2,), n_bins=32)
    InteractionFeatures(n_bins=32, orders=(2,))
    """

    def __init__(
        self,
        n_frequencies: int = 10_000,
        *,
        orders: Sequence[int] | Literal["auto"] = "auto",
        n_bins: int = 128,
        max_cycles: float | Literal["auto"] = "auto",
        block_share: float = 0.2,
        max_subsets: int = 400,
        n_harmonics: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_frequencies = n_frequencies
        self.orders = orders
        self.n_bins = n_bins
        self.max_cycles = max_cycles
        self.block_share = block_share
        self.max_subsets = max_subsets
        self.n_harmonics = n_harmonics

    def check_bins(self) -> int:
        """The number of bins; raises if it is out of range.

        Returns
        -------
        int
            Number of bins.
        """
        n_bins = self.n_bins
        if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)):
            raise PrivacyParameterError(f"n_bins must be an integer, got {n_bins!r}.")
        if not 4 <= n_bins <= 4096:
            raise PrivacyParameterError(f"n_bins must be in 4 .. 4096, got {n_bins!r}.")
        return int(n_bins)

    def draw(
        self, atoms: AtomLayout, facts: ReleaseFacts, random_state: np.random.RandomState
    ) -> InteractionFeatureMap:
        """Draw the feature map of rows with these atoms; raises for bad parameters.

        Parameters
        ----------
        atoms : AtomLayout
            Atoms of the columns.
        facts : ReleaseFacts
            What is public about the release: noise, relation, classes.
        random_state : RandomState
            Source of the public randomness.

        Returns
        -------
        InteractionFeatureMap
            The map, with subsets and phases drawn.
        """
        from skdpgen.features.interactions import InteractionFeatureMap

        orders, max_cycles, n_harmonics = self.orders, self.max_cycles, self.n_harmonics
        if isinstance(orders, str) and orders == "auto":
            orders = (2, 3)
            if facts.noise > _LARGE_NOISE:
                orders = (2,)
            elif facts.noise < _SMALL_NOISE:
                orders = (3,)
        if isinstance(max_cycles, str) and max_cycles == "auto":
            large = facts.noise > _LARGE_NOISE
            max_cycles = _MAX_CYCLES_IN_LARGE_NOISE if large else _MAX_CYCLES
        if isinstance(n_harmonics, str) and n_harmonics == "auto":
            n_harmonics = _HARMONICS if facts.adjacency == "replace-one" else 1
        return InteractionFeatureMap.draw(
            atoms,
            n_bins=self.check_bins(),
            orders=orders,
            n_frequencies=self.n_frequencies,
            max_cycles=max_cycles,
            block_share=self.block_share,
            max_subsets=self.max_subsets,
            n_harmonics=n_harmonics,
            random_state=random_state,
        )
