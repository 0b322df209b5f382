"""The error of a generator on parts of a release that it wasn't trained on.

A part is a family of frequencies (a single one, but for interaction features with harmonics) or a
slice, with all its coordinates and classes. The noise on different coordinates is independent, and
its variance is known, so the squared distance to held-out parts, less that variance, is an unbiased
estimate of the squared distance to what was released before noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from skdpgen.divergences.mmd import embedding_loss
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.features.mixed import MixedFeatureMap
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators.base import Generator
from skdpgen.generators.mixture import ProductMixture
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._feature_maps import feature_map_of

__all__ = ["held_out_error"]

# Rows that a network is known by, over all classes. What is left of their randomness is unbiased,
# and below the noise of releases at common budgets.
_ROWS = 2**15
# Size in elements of the largest arrays.
_CHUNK = 2**24


def held_out_error(
    generator: Generator | ProductMixture,
    release: Release,
    parts: npt.NDArray[np.int64],
    seed: int,
) -> float:
    """Squared error of a generator's embedding on some parts of a release, without its noise.

    Parameters
    ----------
    generator : Generator or ProductMixture
        Trained on other parts of the release. Its classes get the shares that samples get.
    release : Release
        The release.
    parts : ndarray of int
        Which parts, at least one.
    seed : int
        Seed of the rows by which the embedding of a network is estimated; that of a mixture is
        exact.

    Returns
    -------
    float
        An unbiased estimate, which can be negative, of the mean over the parts of

        * ``sum_c |p_c m_c - t_c|^2`` for frequencies, where ``m_c`` is the generator's mean of
          ``a exp(i theta(x))`` in class c, ``p_c`` the released share of the class and ``t_c`` the
          joint mean over the rows of the table; ``a`` is 1, or with harmonics the relative
          amplitude of the wave, of mean square 1 (and the mean is over the waves of all families);
        * ``sum_cb (p_c q_cb - t_cb)^2`` for slices, over the cells b.

        With a private number of rows, means over the table are sums over the released number.
        The noise is what the release says of itself: for one made with insecure noise of another
        scale the result is off by a constant.
    """
    features = feature_map_of(release)
    parts = np.sort(parts)
    if isinstance(features, MixedFeatureMap):
        assert isinstance(generator, Generator)
        return _of_frequencies(features, generator, release, parts, seed)
    if isinstance(features, InteractionFeatureMap):
        assert isinstance(generator, ProductMixture)
        return _of_families(features, generator, release, parts)
    return _of_slices(features, generator, release, parts, seed)


def _of_frequencies(
    features: MixedFeatureMap,
    generator: Generator,
    release: Release,
    parts: npt.NDArray[np.int64],
    seed: int,
) -> float:
    rows, labels = _sampled(generator, seed)
    encoded = torch.as_tensor(rows, dtype=torch.float32)
    one_hot = torch.eye(generator.n_classes, dtype=torch.float64)[torch.as_tensor(labels)]
    shares = torch.as_tensor(release.class_proportions())
    released = release.mean_embedding()
    squares = 0.0
    # A squared distance is a sum over coordinates: as many at once as fit.
    for chunk in np.array_split(parts, -(-2 * len(parts) * len(rows) // _CHUNK)):
        with torch.no_grad():
            waves = features.embedding(chunk)(encoded)[:, : 2 * len(chunk)].double()
        target = torch.as_tensor(released[:, features.coordinates(chunk)])
        squares += float(embedding_loss(target, waves, one_hot, shares, torch.ones_like(shares)))
    noise = 2 * generator.n_classes * release.coordinate_stddev**2
    # The release has waves of amplitude 1 / sqrt(F).
    return features.n_parts * (squares / len(parts) - noise)


def _of_families(
    features: InteractionFeatureMap,
    mixture: ProductMixture,
    release: Release,
    parts: npt.NDArray[np.int64],
) -> float:
    spec = release.spec
    one = 2.0**spec.lattice_bits
    amplitudes = np.array(features.fourier.amplitudes(spec.signed_bound)) / one
    size = float(np.sqrt(np.mean(amplitudes**2)))
    part = features.part(parts)
    expected = []
    for subset, tables in zip(part.subsets, part.waves(), strict=True):
        waves = [np.exp(2j * np.pi / 2**16 * table) for table in tables]
        relative = np.repeat(amplitudes / size, tables[0].shape[1] // len(amplitudes))
        expected.append(relative * mixture.expectation(subset, waves))
    predicted = np.concatenate(expected, axis=1) * _correction(mixture, release)
    released = release.mean_embedding()[:, features.coordinates(parts)] / size
    cosines, sines = np.split(released, 2, axis=1)
    squares = np.square(predicted.real - cosines) + np.square(predicted.imag - sines)
    noise = 2 * len(squares) * (release.coordinate_stddev / size) ** 2
    return float(squares.sum(axis=0).mean() - noise)


def _of_slices(
    features: SliceFeatureMap,
    generator: Generator | ProductMixture,
    release: Release,
    parts: npt.NDArray[np.int64],
    seed: int,
) -> float:
    part = features.part(parts)
    shares = release.class_proportions()[:, None, None]
    if isinstance(generator, ProductMixture):
        predicted = _cells_of_mixture(part, generator) * _correction(generator, release)[..., None]
        excess = 0.0
    else:
        within, per_class = _sampled_cells(part, generator, seed)
        predicted = shares * within
        # What sampled rows add to a squared distance: the variance of a mean of indicators.
        spread = (1 - np.square(within).sum(axis=2)) / (per_class - 1)
        excess = float((np.square(shares[..., 0]) * spread).sum(axis=0).mean())
    squares = np.square(predicted - features.histograms(release)[:, parts])
    noise = len(squares) * part.n_cells * features.stddev(release) ** 2
    return float(squares.sum(axis=(0, 2)).mean() - noise - excess)


def _correction(mixture: ProductMixture, release: Release) -> npt.NDArray[np.float64]:
    """Factor a class, shape (n_classes, 1): samples have the released shares of the classes."""
    ratio: npt.NDArray[np.float64] = release.class_proportions() / mixture.shares.sum(axis=1)
    return ratio[:, None]


def _cells_of_mixture(
    features: SliceFeatureMap, mixture: ProductMixture
) -> npt.NDArray[np.float64]:
    """Exact joint shares of class and cell of wrapped slices, shape (n_classes, m, B).

    Cells are added modulo their number, so the discrete Fourier transform of a slice's histogram
    is a product over its columns.
    """
    harmonics = np.arange(features.n_cells // 2 + 1)
    joint = []
    for subset, tables in zip(features.subsets, features.tables, strict=True):
        waves = [np.exp(-2j * np.pi / 2**16 * np.outer(table, harmonics)) for table in tables]
        joint.append(np.fft.irfft(mixture.expectation(subset, waves), n=features.n_cells, axis=1))
    return np.stack(joint, axis=1)


def _sampled_cells(
    features: SliceFeatureMap, generator: Generator, seed: int
) -> tuple[npt.NDArray[np.float64], int]:
    """Shares of the cells within each class among sampled rows, and how many rows a class has."""
    rows, labels = _sampled(generator, seed)
    cells = features.cells(features.atoms.encode(rows.astype(np.float64)))
    n_classes, n_cells = generator.n_classes, features.n_cells
    per_class = len(rows) // n_classes
    counts = [
        np.bincount(labels * n_cells + column, minlength=n_classes * n_cells) for column in cells.T
    ]
    shares = np.stack(counts).reshape(-1, n_classes, n_cells) / per_class
    return shares.transpose(1, 0, 2), per_class


def _sampled(
    generator: Generator, seed: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Independent rows, as many of each class."""
    per_class = max(2, _ROWS // generator.n_classes)
    labels = np.repeat(np.arange(generator.n_classes), per_class)
    return generator.sample(labels, seed), labels
