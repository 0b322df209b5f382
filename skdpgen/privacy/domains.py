"""The domain mechanism: learns bounds and categories that nobody has declared.

Built blind, like every mechanism. One row adds one to at most one bin of each binned column, and
one to at most one key of each key column: everything is counted, in integers, and nothing else.
All counts get noise at once. What comes out is which bins and which keys have noisy counts above
public thresholds; the counts themselves stay inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta, composed_epsilon, gaussian_epsilon
from skdpgen.privacy.domain_batches import DomainBatch, Key, count_rows, key_order
from skdpgen.privacy.entries import (
    Adjacency,
    LedgerEntry,
    Unit,
    check_adjacency,
    check_rows_per_unit,
)
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import (
    MINIMUM_STDDEV,
    NoiseSource,
    add_gaussian_noise,
    check_stddev,
    current_source,
)
from skdpgen.privacy.shares import ReservedSpend, earlier_spend, multiplier_beside

__all__ = ["MAXIMUM_KEYS", "Domain", "DomainMechanism"]

#: Most keys that one column releases: those with the largest noisy counts.
MAXIMUM_KEYS = 1000
_MOST_BINS = 2**16
# With at most this probability any empty bin looks occupied. Not a privacy parameter.
_FALSE_ALARM = 1e-6

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Domain:
    """What was learned: released, and as public as everything that is.

    Parameters
    ----------
    bins : tuple of tuple of int
        For each binned column its occupied bins, in order.
    keys : tuple of tuple of Key
        For each key column its frequent keys: numbers in order, then texts in order, then None.
    entries : tuple of LedgerEntry
        What it cost: the bounds, the categories.
    reserved : ReservedSpend
        What is left of (epsilon, delta), charged along, for one release.
    """

    bins: tuple[tuple[int, ...], ...]
    keys: tuple[tuple[Key, ...], ...]
    entries: tuple[LedgerEntry, ...]
    reserved: ReservedSpend = field(repr=False)


@dataclass(frozen=True)
class DomainMechanism:
    """Learns occupied bins and frequent keys with a share of a budget.

    Parameters
    ----------
    n_bins : tuple of int
        Number of bins of each binned column.
    n_key_columns : int
        Number of key columns.
    epsilon, delta : float
        The guarantee of this and the release that follows, together, for one unit of privacy.
    budget : float
        Share of the squared ``mu``, and of ``delta``, that learning takes, in [0.001, 0.9].
    adjacency : {"replace-one", "add-remove"}
    rows_per_unit, rows_bounded
        As for :class:`~skdpgen.privacy.mechanisms.MeanEmbeddingMechanism`.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or there is no column.

    Notes
    -----
    Proof sketch: section 9 of ``README.md`` in this folder.
    """

    n_bins: tuple[int, ...]
    n_key_columns: int
    epsilon: float
    delta: float
    budget: float = 0.1
    adjacency: Adjacency = "replace-one"
    rows_per_unit: int = 1
    rows_bounded: bool = False
    _mu: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        check_adjacency(self.adjacency)
        check_rows_per_unit(self.rows_per_unit)
        if not isinstance(self.rows_bounded, bool):
            raise PrivacyParameterError("rows_bounded must be True or False.")
        if isinstance(self.budget, bool) or not isinstance(self.budget, int | float):
            raise PrivacyParameterError("domain_budget must be a number or None.")
        if not 1e-3 <= self.budget <= 0.9:
            raise PrivacyParameterError(
                f"domain_budget must be in [0.001, 0.9], got {self.budget!r}."
            )
        sizes_fit = type(self.n_bins) is tuple and all(
            type(n) is int and 1 <= n <= _MOST_BINS for n in self.n_bins
        )
        if not sizes_fit or type(self.n_key_columns) is not int or self.n_key_columns < 0:
            raise PrivacyParameterError("the numbers of bins and of columns are out of range.")
        if self.n_columns == 0:
            raise PrivacyParameterError("there is no column to learn anything about.")
        total = 1 / multiplier_beside(epsilon, delta, 0.0, self.extra_delta)
        object.__setattr__(self, "_mu", math.sqrt(self.budget) * total)
        check_stddev(self.noise_stddev)

    # -- calibration ------------------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Number of columns that are learned: a row adds one to as many counts at most."""
        return len(self.n_bins) + self.n_key_columns

    @property
    def extra_delta(self) -> float:
        """Probability that a key passes which only the changed row, or unit, has."""
        return self.budget * self.delta if self.n_key_columns else 0.0

    @property
    def _counts_stddev(self) -> float:
        return math.sqrt(self._row_squared * self.n_columns) * self.rows_per_unit / self._mu

    @property
    def _row_squared(self) -> int:
        """Squared distance that a changed row moves the counts of one column."""
        return 2 if self.adjacency == "replace-one" else 1

    @property
    def lattice_bits(self) -> int:
        """One count is ``2**lattice_bits`` lattice steps: enough to make noise wide in steps."""
        return max(0, math.ceil(math.log2(MINIMUM_STDDEV / self._counts_stddev)))

    @property
    def sensitivity_squared(self) -> int:
        """Squared L2 sensitivity of all counts in lattice steps, exactly."""
        return self._sensitivity_squared(self.n_columns)

    def _sensitivity_squared(self, n_columns: int) -> int:
        rows = self.rows_per_unit << self.lattice_bits
        return self._row_squared * n_columns * rows**2

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the ideal Gaussian noise in lattice steps, rounded up."""
        sensitivity = math.nextafter(math.sqrt(self.sensitivity_squared), math.inf)
        return math.nextafter(sensitivity / self._mu, math.inf)

    @property
    def bin_threshold(self) -> int:
        """A bin is occupied if its noisy count, in lattice steps, is larger.

        An empty bin seems so with probability 1e-6, over all bins together.
        """
        bins = max(1, sum(self.n_bins))
        return self._quantile(-math.expm1(math.log1p(-_FALSE_ALARM) / bins))

    @property
    def key_threshold(self) -> int:
        """A key is frequent if its noisy count, in lattice steps, is larger.

        Keys that only one unit has pass with probability :attr:`extra_delta`, over all columns:
        there are at most ``rows_per_unit`` of them in a column, with counts of at most as much.
        """
        keys = max(1, self.n_key_columns) * self.rows_per_unit
        tail = -math.expm1(math.log1p(-self.budget * self.delta) / keys)
        return (self.rows_per_unit << self.lattice_bits) + self._quantile(tail)

    def _quantile(self, tail: float) -> int:
        """An integer t with P[noise > t] <= tail, for the discrete noise that is drawn.

        With variance v = s^2 + 4, the sum over x > t of exp(-x^2 / 2 v) is at most its integral
        from t, and the normalizer at least sqrt(2 pi v), by Poisson summation: a normal tail.
        """
        stddev = math.sqrt(self.noise_stddev**2 + 4) * (1 + 1e-12)
        return math.ceil(-float(ndtri(tail)) * stddev * (1 + 1e-12))

    @property
    def unit(self) -> Unit:
        """What the guarantee protects: one row, or all rows of one unit."""
        return "row" if self.rows_per_unit == 1 and not self.rows_bounded else "unit"

    def entries(self, source: NoiseSource) -> tuple[LedgerEntry, ...]:
        """What learning costs: an entry for the bins, one for the keys, as far as there are any.

        Parameters
        ----------
        source : NoiseSource
            Where the noise comes from; what isn't secure isn't private.

        Returns
        -------
        tuple of LedgerEntry
            None, one or two of them.
        """
        entries = []
        if self.n_bins:
            entries.append(self._entry("private bounds", len(self.n_bins), 0.0, source))
        if self.n_key_columns:
            extra = self.extra_delta
            entries.append(self._entry("private categories", self.n_key_columns, extra, source))
        return tuple(entries)

    def _entry(
        self, mechanism: str, n_columns: int, extra_delta: float, source: NoiseSource
    ) -> LedgerEntry:
        sensitivity_squared = self._sensitivity_squared(n_columns)
        mu = math.sqrt(sensitivity_squared) / self.noise_stddev
        epsilon = composed_epsilon(self.delta, mu, extra_delta)
        return LedgerEntry(
            mechanism=mechanism,
            sensitivity_squared=sensitivity_squared,
            noise_stddev=self.noise_stddev,
            adjacency=self.adjacency,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            epsilon=epsilon if source.secure else math.inf,
            delta=self.delta,
            private=source.secure,
            extra_delta=extra_delta,
        )

    def _reserve(self, entries: tuple[LedgerEntry, ...], source: NoiseSource) -> LedgerEntry:
        """The entry of the release that follows; its lattice depends on what will be learned."""
        mu, extra_delta = earlier_spend(entries, self.adjacency, self.unit)
        multiplier = multiplier_beside(self.epsilon, self.delta, mu, extra_delta)
        return LedgerEntry(
            mechanism="mean embedding",
            sensitivity_squared=1,
            # The release rounds its noise up, by a few units in the last place.
            noise_stddev=multiplier * (1 - 1e-12),
            adjacency=self.adjacency,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            epsilon=gaussian_epsilon(self.delta, 1 / multiplier) if source.secure else math.inf,
            delta=self.delta,
            private=source.secure,
        )

    # -- the release ------------------------------------------------------------------------------

    def release(self, batches: Iterable[DomainBatch], ledger: PrivacyLedger) -> Domain:
        """Charge the ledger, count, add noise once, and compare with the thresholds.

        Parameters
        ----------
        batches : iterable of DomainBatch
            The private rows, in any order and any chunking. Consumed only after the charge.
        ledger : PrivacyLedger
            Charged for learning and for the release that follows, all or nothing, before the first
            batch is asked for.

        Returns
        -------
        Domain

        Raises
        ------
        BudgetExceededError
            If the ledger refuses; no row was read then.
        PrivacyParameterError
            If a batch hasn't the form, shapes and dtypes of the columns. The charge stands.
        """
        source = current_source()
        entries = self.entries(source)
        reserved = self._reserve(entries, source)
        ledger.charge_all([*entries, reserved])
        bins, found = count_rows(batches, self.n_bins, self.n_key_columns, self.rows_bounded)
        # In an order that says nothing about the order of the rows.
        keys = [sorted(column, key=key_order) for column in found]
        flat = [c[key] for c, ordered in zip(found, keys, strict=True) for key in ordered]
        exact = np.concatenate([*bins, np.array(flat, dtype=np.int64)]) << self.lattice_bits
        noisy = add_gaussian_noise(exact, self.noise_stddev, self.sensitivity_squared, source)
        occupied, start = [], 0
        for n in self.n_bins:
            above = noisy[start : start + n] > self.bin_threshold
            occupied.append(tuple(np.flatnonzero(above).tolist()))
            start += n
        frequent = []
        for column in keys:
            stop = start + len(column)
            frequent.append(self._frequent(column, noisy[start:stop]))
            start = stop
        return Domain(tuple(occupied), tuple(frequent), entries, ReservedSpend(reserved))

    def _frequent(self, keys: list[Key], noisy: _Integers) -> tuple[Key, ...]:
        above = np.flatnonzero(noisy > self.key_threshold)
        largest = above[np.argsort(-noisy[above], kind="stable")[:MAXIMUM_KEYS]]
        return tuple(sorted((keys[i] for i in largest), key=key_order))
