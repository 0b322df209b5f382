"""Which small subsets of columns features look at: drawn from public facts, by their bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["choose_subsets"]

# Subsets are listed and drawn from up to this many; beyond it they are drawn one by one.
_LISTED = 200_000


def choose_subsets(
    n_codes: Sequence[int], order: int, most: int, rng: np.random.RandomState
) -> tuple[list[tuple[int, ...]], npt.NDArray[np.float64]]:
    """Subsets of an order in lexical order, at most so many, and their weights.

    The weight of a subset is the product of its columns' bits, log2 of their numbers of codes: a
    pair of wide columns has more to tell than a pair of flags. Of too many subsets a weighted
    choice without replacement is made (the largest of log-weights plus Gumbel noise).

    Parameters
    ----------
    n_codes : sequence of int
        Number of codes of each column, at least 2.
    order : int
        Columns of a subset.
    most : int
        Most subsets.
    rng : RandomState
        Public randomness.

    Returns
    -------
    subsets : list of tuple of int
    weights : ndarray of shape (n_subsets,)
    """
    bits = np.log2(np.array(n_codes, dtype=np.float64))
    n_columns = len(n_codes)
    # Drawn one by one, the last of them would be awaited forever: most must be a small part.
    if math.comb(n_columns, order) <= max(_LISTED, 4 * most):
        listed = list(itertools.combinations(range(n_columns), order))
    else:
        share = bits / bits.sum()
        found: set[tuple[int, ...]] = set()
        while len(found) < most:
            found.add(tuple(sorted(rng.choice(n_columns, order, False, share).tolist())))
        listed = sorted(found)
    weights = np.prod(bits[np.array(listed)], axis=1)
    if len(listed) > most:
        keys = np.log(weights) + rng.gumbel(size=len(weights))
        kept = np.sort(np.argsort(-keys, kind="stable")[:most])
        listed, weights = [listed[i] for i in kept], weights[kept]
    return listed, weights
