"""A mixture of product distributions over the atoms of a table: what it is and how to sample it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from skdpgen.atoms import AtomLayout

__all__ = ["MixtureGenerator", "ProductMixture"]

# Rows made at once: bounds the memory of sampling; has no effect on the distribution.
_SAMPLE_CHUNK = 2**17


class MixtureGenerator(BaseEstimator):
    """A mixture of products as the generator of a synthesizer; the default for tables.

    Several mixtures are fitted side by side and averaged: each invents some structure beyond what
    was released, and no two of them the same.

    Parameters
    ----------
    n_components : int, default=None
        Components in all, shared evenly by the mixtures. None is 400, or 1000 for a release in
        which noise is small (see Notes).
    n_mixtures : int, default=None
        Mixtures that are averaged. None is 4, or 1 where noise is small.
    spread : float, default=0.2
        Standard deviation of the initial logits around those of the one-way tables. Small: the
        components start alike, and differ only where the release asks for it.
    floor_ratio : float, default=None
        Training stops when the loss is below this multiple of what noise alone leaves in
        expectation; 0 never stops early. None is 0.97, or 1 where noise is large.

    Notes
    -----
    Noise is small where its standard deviation is below 0.004 on a feature of amplitude 1: at
    epsilon = 1 and 10,000 frequencies that takes about 100,000 rows under add-remove, and twice as
    many under replace-one. There the fit is limited by what a mixture can express, not by noise
    that averaging would calm. Noise is large above 0.03. The learning rate and the number of steps
    follow it too, unless they are given.

    Examples
    --------
    >>> MixtureGenerator(n_components=1000)
    MixtureGenerator(n_components=1000)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_mixtures: int | None = None,
        spread: float = 0.2,
        floor_ratio: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_mixtures = n_mixtures
        self.spread = spread
        self.floor_ratio = floor_ratio


@dataclass(frozen=True, eq=False)
class ProductMixture:
    """Mixture of K components; given its component and label, a row's columns are independent.

    Any expectation of a product over few columns is a finite sum, which is why it can be fitted
    to a release without drawing a row.

    Parameters
    ----------
    atoms : AtomLayout
        The codes of each column and how they become encoded rows.
    probabilities : tuple of ndarray of float32, shape (K, n_codes)
        Per column, the distribution of its code in each component.
    shares : ndarray of float64, shape (n_classes, K)
        Joint probability of class and component, with sum 1.
    """

    atoms: AtomLayout
    probabilities: tuple[npt.NDArray[np.float32], ...]
    shares: npt.NDArray[np.float64]

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return len(self.shares)

    @property
    def n_components(self) -> int:
        """Number of components K."""
        return int(self.shares.shape[1])

    @classmethod
    def average(
        cls,
        atoms: AtomLayout,
        probabilities: tuple[npt.NDArray[np.float32], ...],
        shares: npt.NDArray[np.float64],
    ) -> ProductMixture:
        """One mixture of E with K components each: ``shares`` has shape (E, n_classes, K).

        Parameters
        ----------
        atoms : AtomLayout
            Atoms of the columns.
        probabilities : tuple of ndarray
            For each column, the distributions of all components of all mixtures, of shape
            (E * K, n_codes).
        shares : ndarray of shape (E, n_classes, K)
            Joint shares of class and component in each mixture.

        Returns
        -------
        ProductMixture
            The average of the E mixtures.
        """
        return cls(atoms, probabilities, np.concatenate(list(shares / len(shares)), axis=1))

    def marginal(self, column: int) -> npt.NDArray[np.float64]:
        """Joint distribution of the label and one column's code, shape (n_classes, n_codes).

        Parameters
        ----------
        column : int
            Which column.

        Returns
        -------
        ndarray of shape (n_classes, n_codes)
            Joint shares, summing to 1.
        """
        joint: npt.NDArray[np.float64] = self.shares @ self.probabilities[column]
        return joint

    def expectation(
        self, columns: Sequence[int], tables: Sequence[npt.NDArray[np.complexfloating]]
    ) -> npt.NDArray[np.complex128]:
        """Exact expectation of products over columns, jointly with the label.

        Parameters
        ----------
        columns : sequence of int
            Different columns.
        tables : sequence of ndarray of shape (n_codes, m)
            What each code of these columns contributes to m products.

        Returns
        -------
        ndarray of complex, shape (n_classes, m)
            ``E [y = c] prod_j tables_j[x_j]``.
        """
        product: npt.NDArray[np.complex128] = np.ones((self.n_components, 1), dtype=np.complex128)
        for column, table in zip(columns, tables, strict=True):
            product = product * (self.probabilities[column].astype(np.float64) @ table)
        joint: npt.NDArray[np.complex128] = self.shares @ product
        return joint

    def sample_codes(
        self, labels: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Draw the codes of rows with given labels, by stratified sampling.

        The rows of a class are shared out over its components by systematic sampling, and within
        a component each column's codes are drawn with one stratified uniform number a row, in
        random order. So each row has exactly the distribution of its class, while one-way counts
        differ from their expectation by far less than independent draws would.

        Parameters
        ----------
        labels : ndarray of int64, shape (n,)
            Class indices.
        rng : numpy Generator
            Source of the draws.

        Returns
        -------
        ndarray of int64, shape (n, n_columns)
        """
        component = np.empty(len(labels), dtype=np.int64)
        for label in range(self.n_classes):
            rows = np.flatnonzero(labels == label)
            component[rows] = _systematic(self.shares[label], len(rows), rng)
        # Rows of one component and class stand together, and each column shuffles them anew.
        stratum = labels * self.n_components + component
        counts = np.bincount(stratum, minlength=self.shares.size)
        starts = np.cumsum(counts) - counts
        by_stratum = np.argsort(stratum, kind="stable")
        sorted_stratum = stratum[by_stratum]
        rank = np.arange(len(labels)) - starts[sorted_stratum]
        size, sorted_component = counts[sorted_stratum], component[by_stratum]
        place = np.empty_like(by_stratum)
        place[by_stratum] = np.arange(len(labels))
        codes = np.empty((len(labels), len(self.probabilities)), dtype=np.int64)
        for column, probabilities in enumerate(self.probabilities):
            # Below 1 even when rounded: a row never leaves its stratum.
            shuffled = np.argsort(sorted_stratum + (1 - 2**-20) * rng.random(len(labels)))
            uniforms = np.empty(len(labels))
            uniforms[shuffled] = (rank + rng.random(len(labels))) / size
            codes[:, column] = _inverse_cdf(probabilities, sorted_component, uniforms)[place]
        return codes

    def sample(self, labels: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
        """Draw one encoded row per label.

        Parameters
        ----------
        labels : ndarray of int, shape (n,)
            Class indices in ``0 .. n_classes - 1``.
        seed : int
            Seed of the draws: the same seed and labels give the same rows.

        Returns
        -------
        ndarray of float64, shape (n, atoms.width)
            Numbers in [0, 1], exact one-hot groups.
        """
        rng = np.random.default_rng(seed)
        codes = self.sample_codes(np.asarray(labels, dtype=np.int64), rng)
        rows = np.empty((len(codes), self.atoms.width))
        for start in range(0, len(codes), _SAMPLE_CHUNK):
            part = slice(start, start + _SAMPLE_CHUNK)
            rows[part] = self.atoms.decode(codes[part], rng.random(codes[part].shape))
        return rows


def _systematic(
    shares: npt.NDArray[np.float64], n_rows: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """``n_rows`` indices with the distribution ``shares``, spread evenly, in random order."""
    order = rng.permutation(len(shares))
    cumulative = np.cumsum(shares[order])
    points = (np.arange(n_rows) + rng.random()) / max(1, n_rows) * cumulative[-1]
    # Rounding may put the last point at the very end.
    found = np.minimum(np.searchsorted(cumulative, points, side="right"), len(shares) - 1)
    return rng.permutation(order[found]).astype(np.int64)


def _inverse_cdf(
    probabilities: npt.NDArray[np.float32],
    component: npt.NDArray[np.int64],
    uniforms: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """The code at each quantile of the component's distribution, all components in one search."""
    cumulative = np.cumsum(probabilities, axis=1, dtype=np.float64)
    cumulative /= cumulative[:, -1:]
    ladder = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    found = np.searchsorted(ladder, component + uniforms, side="right")
    n_codes = probabilities.shape[1]
    codes: npt.NDArray[np.int64] = np.clip(found - component * n_codes, 0, n_codes - 1)
    return codes
