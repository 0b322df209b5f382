"""One guarantee divided between releases: what an earlier one leaves for the next."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import (
    MINIMUM_DELTA,
    check_epsilon_delta,
    compose_extra_delta,
    compose_gaussian,
    noise_multiplier,
)
from skdpgen.privacy.composition import total_epsilon
from skdpgen.privacy.entries import Adjacency, LedgerEntry, Unit

__all__ = [
    "ReservedSpend",
    "earlier_spend",
    "multiplier_beside",
    "nominal_mu",
    "selection_beside",
]

# What rounding may add to a quotient of a handful of float operations, many times over.
_ROUNDING = 1e-12
# Below this share of the squared mu a difference of two squares is mostly rounding.
_LEAST_REST = 1e-3


def nominal_mu(entry: LedgerEntry) -> float:
    """Sensitivity over noise standard deviation of a Gaussian spend, insecure noise included."""
    return math.sqrt(entry.sensitivity_squared) / entry.noise_stddev


def multiplier_beside(epsilon: float, delta: float, mu: float, extra_delta: float) -> float:
    """Noise multiplier of a Gaussian release that completes earlier ones to (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of all of them together.
    mu : float
        Parameter of the earlier Gaussian releases together.
    extra_delta : float
        Probability that thresholds of theirs fail, below ``delta``.

    Returns
    -------
    float
        On the safe side: the total stays within (epsilon, delta).

    Raises
    ------
    PrivacyParameterError
        If the target is out of range or the earlier releases leave nothing of it.

    Examples
    --------
    >>> round(multiplier_beside(1.0, 1e-5, 0.0, 0.0), 4)
    3.7306
    """
    epsilon, delta = check_epsilon_delta(epsilon, delta)
    if extra_delta < delta:
        # delta = extra_delta + (1 - extra_delta) * delta_G(epsilon; mu), solved for mu.
        rest_delta = (delta - extra_delta) / (1 - extra_delta)
        if rest_delta >= MINIMUM_DELTA:
            total = noise_multiplier(epsilon, rest_delta)
            if mu == 0:
                return total
            rest = 1 / total**2 - mu**2
            if rest > _LEAST_REST / total**2:
                return (1 + _ROUNDING) / math.sqrt(rest)
    raise PrivacyParameterError("earlier releases leave nothing of this epsilon and delta.")


def earlier_spend(
    earlier: Sequence[LedgerEntry], adjacency: Adjacency, unit: Unit
) -> tuple[float, float]:
    """What earlier releases spent of a joint guarantee.

    Parameters
    ----------
    earlier : sequence of LedgerEntry
        Spends of Gaussian releases.
    adjacency, unit : str
        Of the joint guarantee.

    Returns
    -------
    mu : float
        Of all of them together, nominal.
    extra_delta : float
        Of all of them together.

    Raises
    ------
    PrivacyParameterError
        If one of them isn't a Gaussian spend with noise under the same adjacency and unit.
    """
    for entry in earlier:
        if (
            type(entry) is not LedgerEntry
            or entry.n_directions
            or entry.repetitions is not None
            or not entry.noise_stddev > 0
            or (entry.adjacency, entry.unit) != (adjacency, unit)
        ):
            raise PrivacyParameterError(
                "an earlier release must be a Gaussian one under the same adjacency and unit, and "
                "at most one of them a private selection."
            )
    mu = compose_gaussian([nominal_mu(entry) for entry in earlier])
    return mu, compose_extra_delta([entry.extra_delta for entry in earlier])


def selection_beside(
    earlier: Sequence[LedgerEntry], adjacency: Adjacency, unit: Unit, delta: float
) -> tuple[float, float] | None:
    """What is spent where a release is the published run of a private selection.

    Parameters
    ----------
    earlier : sequence of LedgerEntry
        Spends that the release needs.
    adjacency, unit : str
        Of the joint guarantee.
    delta : float
        At which epsilon is asked for.

    Returns
    -------
    mu : float
        Of each run of the selection: the release is one of them and has no larger one.
    epsilon : float
        Of the selection and the other spends together, nominal. What the release itself spends is
        in there.
    None
        If there is no selection among the spends.

    Raises
    ------
    PrivacyParameterError
        If there are several, or one of the spends doesn't fit, as in :func:`earlier_spend`.
    """
    runs = [entry for entry in earlier if type(entry) is LedgerEntry and entry.repetitions]
    if not runs:
        return None
    single = replace(runs[0], repetition_shape=0.0, repetition_gamma=0.0)
    earlier_spend([single, *(e for e in earlier if e is not runs[0])], adjacency, unit)
    nominal = tuple(replace(entry, private=True) for entry in earlier)
    return nominal_mu(single), total_epsilon([nominal], adjacency, delta)


class ReservedSpend:
    """A spend that was charged ahead: it stands in for the ledger of one release.

    Parameters
    ----------
    entry : LedgerEntry
        What was charged, for a Gaussian release whose lattice wasn't known yet.

    Examples
    --------
    >>> reserved = ReservedSpend(LedgerEntry("demo", 1, 4.0, "replace-one", "row", 1, 1.0, 1e-5))
    >>> reserved.charge(LedgerEntry("demo", 4, 8.0, "replace-one", "row", 1, 1.0, 1e-5))
    """

    def __init__(self, entry: LedgerEntry) -> None:
        self.entry = entry
        self._lock = threading.Lock()
        self._used = False

    def charge(self, entry: LedgerEntry) -> None:
        """Accept one spend that is covered by what was charged.

        Raises
        ------
        BudgetExceededError
            If the reserve was used before, or the spend is another or larger one.
        """
        reserved = self.entry
        covered = (
            not entry.n_directions
            and entry.repetitions is None
            and entry.extra_delta == 0
            and entry.noise_stddev > 0
            and nominal_mu(entry) <= nominal_mu(reserved)
            and (entry.adjacency, entry.unit, entry.rows_per_unit, entry.private)
            == (reserved.adjacency, reserved.unit, reserved.rows_per_unit, reserved.private)
        )
        with self._lock:
            if self._used or not covered:
                raise BudgetExceededError(
                    "this spend isn't the one that was charged ahead: the charge stands, and this "
                    "release was not made."
                )
            self._used = True

    # A copy would be a second reserve for one charge.

    def __copy__(self) -> ReservedSpend:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ReservedSpend:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a reserve is used once, where it was charged: it can't be pickled.")
