"""Which label each synthetic row gets: drawn from the noisy proportions, or as the user says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import InputError

__all__ = ["choose_labels", "label_array", "stratified_labels"]


def choose_labels(
    y: Any,
    n_samples: int,
    proportions: npt.NDArray[np.float64],
    encode: Callable[[Any], npt.NDArray[np.int64]],
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Class indices of the rows to sample.

    Parameters
    ----------
    y : None, "balanced", mapping or array-like
        None draws from ``proportions``; ``"balanced"`` from equal shares; a mapping of labels to
        shares (not necessarily summing to 1) from those; an array-like gives the label of each
        row.
    n_samples : int
        Number of rows.
    proportions : ndarray of shape (n_classes,)
        The noisy class proportions; 0 for a class that is drawn only if it is asked for by name.
    encode : callable
        Maps labels to class indices and raises for an unknown label.
    rng : numpy Generator
        Randomness of the draw.

    Returns
    -------
    ndarray of int64, shape (n_samples,)

    Raises
    ------
    InputError
        If shares are negative, not finite or all zero, if an array has another length than
        ``n_samples``, or if a label isn't one of the classes.
    """
    if y is None:
        return stratified_labels(proportions, n_samples, rng)
    if isinstance(y, str):
        if y != "balanced":
            raise InputError(
                f"y must be 'balanced', shares per label or one label a row, got {y!r}."
            )
        present = proportions > 0
        return stratified_labels(present / present.sum(), n_samples, rng)
    if isinstance(y, Mapping):
        return stratified_labels(_shares(y, len(proportions), encode), n_samples, rng)
    if not isinstance(y, Iterable):
        raise InputError("y must be 'balanced', shares per label or one label a row.")
    labels = list(y)
    if len(labels) != n_samples:
        raise InputError(f"y has {len(labels)} labels for n_samples = {n_samples} rows.")
    return encode(labels)


def stratified_labels(
    shares: npt.NDArray[np.float64], n_samples: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw labels by systematic sampling, in random order.

    Every row has exactly the distribution ``shares``, and the count of each class differs from
    ``n_samples * share`` by less than one: sampling noise doesn't add to privacy noise.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        Nonnegative, summing to 1.
    n_samples : int
        Number of labels.
    rng : numpy Generator

    Returns
    -------
    ndarray of int64, shape (n_samples,)

    Examples
    --------
    >>> labels = stratified_labels(np.array([0.25, 0.75]), 8, np.random.default_rng(0))
    >>> np.bincount(labels).tolist()
    [2, 6]
    """
    points = (np.arange(n_samples) + rng.random()) / max(1, n_samples)
    labels = np.searchsorted(np.cumsum(shares), points, side="right")
    # The cumulative sum may end a rounding error below 1.
    last = int(np.flatnonzero(shares)[-1])
    return rng.permutation(np.minimum(labels, last)).astype(np.int64)


def label_array(labels: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels as an array; of objects where numpy would turn some into texts or floats.

    Examples
    --------
    >>> label_array([0, 1]).dtype.kind, label_array([1, "one"]).tolist()
    ('i', [1, 'one'])
    """
    if len({type(label) for label in labels}) == 1:
        return np.array(labels)
    array: npt.NDArray[Any] = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _shares(
    y: Mapping[Any, float], n_classes: int, encode: Callable[[Sequence[Any]], Any]
) -> npt.NDArray[np.float64]:
    shares = np.zeros(n_classes)
    codes = encode(list(y))
    try:
        shares[codes] = list(y.values())
    except (TypeError, ValueError):
        raise InputError("the shares of the labels must be numbers.") from None
    if not np.all(np.isfinite(shares)) or shares.min() < 0 or not shares.sum() > 0:
        raise InputError("the shares of the labels must be nonnegative numbers, not all zero.")
    return np.asarray(shares / shares.sum())
