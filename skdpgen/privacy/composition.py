"""What the spends of a ledger add up to, and whether they fit under a cap.

Spends come as charges: the entries of one charge were fixed together, before any of them was
released, and charges were made one after the other. That difference decides which sums are valid
when later spends are chosen by looking at earlier releases; the proofs are in ``README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import (
    check_epsilon_delta,
    compose_extra_delta,
    compose_gaussian,
    composed_delta,
    composed_epsilon,
)
from skdpgen.privacy.entries import Adjacency, LedgerEntry
from skdpgen.privacy.renyi import RENYI_ORDERS as _ORDERS
from skdpgen.privacy.renyi import renyi_conversion as _conversion
from skdpgen.privacy.selection import Repetitions, selection_renyi
from skdpgen.privacy.slicing_accounting import slicing_delta, slicing_epsilon, slicing_renyi

__all__ = ["Charge", "add_up", "check_order", "fits", "total_epsilon"]

Charge = tuple[LedgerEntry, ...]

# Half of the slack in delta that calibration keeps; the other half is for what formulas leave out.
# Sums of Gaussians need none: they leave out nothing but rounding.
_SLACK = 5e-9
# Orders that a cap may be certified by, beside its own; they share a tenth of its delta.
_SPARE_ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0, 129.0)
# Largest share of a cap's delta that is kept for extra_delta once the first charge has some.
_EXTRA_SHARE = 0.5
_SMALLEST_DELTA = 1e-200


@dataclass(frozen=True)
class _Total:
    """Sums over entries; ``mu`` is infinite if one isn't protected."""

    mu: float
    extra_delta: float
    slicing: tuple[LedgerEntry, ...]
    selections: tuple[tuple[float, Repetitions], ...] = ()

    @property
    def curved(self) -> bool:
        """Whether there are spends that only add up to others as Renyi curves."""
        return bool(self.slicing or self.selections)

    def renyi(self, order: float) -> float:
        """Divergence of all spends together: the sum, also if they were chosen adaptively."""
        curves = [_slicing_renyi(order, spend) for spend in self.slicing]
        curves += [selection_renyi(order, mu, repetitions) for mu, repetitions in self.selections]
        return math.fsum([order * self.mu * self.mu / 2, *curves])

    def planned_delta(self, epsilon: float) -> float:
        """Delta if all spends are fixed before anything is released."""
        if not self.curved or self.mu == math.inf:
            return composed_delta(epsilon, self.mu, self.extra_delta)
        if len(self.slicing) == 1 and not self.selections:
            spend = self.slicing[0]
            alone = slicing_delta(epsilon, spend.noise_stddev, gaussian_mu=self.mu, **spend.slicing)
            return self.extra_delta + (1 - self.extra_delta) * alone * (1 + _SLACK)
        least = min(_converted(order, self.renyi(order), epsilon) for order in _ORDERS)
        return self.extra_delta + (1 - self.extra_delta) * least


def add_up(charges: Iterable[Charge], relation: Adjacency) -> _Total:
    """Sum up all entries under one neighbouring relation.

    Raises
    ------
    PrivacyParameterError
        If what an entry guarantees doesn't say anything under that relation.
    """
    mus, extras, slicing, selections = [], [], [], []
    for entry in (entry for charge in charges for entry in charge):
        if entry.adjacency == relation:
            factor = 1
        elif relation == "add-remove":
            raise PrivacyParameterError(
                "a replace-one spend can't be added to an add-remove ledger: it says nothing "
                "about adding or removing a row. In a ledger with a cap the first spend fixes the "
                "relation; one made with adjacency='replace-one' takes both kinds."
            )
        elif entry.extra_delta:
            raise PrivacyParameterError(
                "an add-remove spend with an extra_delta (learned categories) can't be added to a "
                "replace-one ledger: what it means for a replacement doesn't follow from it. Use "
                "one adjacency for all fits of a ledger."
            )
        else:
            factor = 2
        extras.append(entry.extra_delta)
        if entry.n_directions and entry.protected:
            slicing.append(entry)
        elif entry.repetitions is not None and entry.protected:
            # Each of its runs is a Gaussian release, so the factor is in place there.
            selections.append((factor * entry.run_mu, entry.repetitions))
        else:
            mus.append(factor * entry.mu)
    return _Total(
        compose_gaussian(mus), compose_extra_delta(extras), tuple(slicing), tuple(selections)
    )


def total_epsilon(charges: Sequence[Charge], relation: Adjacency, delta: float) -> float:
    """Smallest epsilon for which all spends together are (epsilon, delta)-DP, as if planned.

    Parameters
    ----------
    charges : sequence of tuple of LedgerEntry
        Oldest first.
    relation : {"replace-one", "add-remove"}
        The neighbouring relation of the total.
    delta : float
        See :func:`~skdpgen.privacy.accounting.check_epsilon_delta`.

    Returns
    -------
    float
        ``inf`` if a spend isn't protected, or ``delta`` is used up by ``extra_delta``.
    """
    total = add_up(charges, relation)
    if not total.curved or total.mu == math.inf:
        return composed_epsilon(delta, total.mu, total.extra_delta)
    _, delta = check_epsilon_delta(1.0, delta)
    room = _room(delta, total.extra_delta)
    if room < _SMALLEST_DELTA:
        return math.inf
    if len(total.slicing) == 1 and not total.selections and (total.mu == 0 or len(charges) == 1):
        spend = total.slicing[0]
        return slicing_epsilon(room, spend.noise_stddev, gaussian_mu=total.mu, **spend.slicing)
    return max(0.0, min(total.renyi(order) + _conversion(order, room) for order in _ORDERS))


def check_order(charges: Sequence[Charge]) -> None:
    """Refuse what a cap only allows from the first charge on.

    Which accounting holds must be known before anything is, and not be chosen by looking at
    releases.

    Raises
    ------
    BudgetExceededError
        If a later charge is the first with a slicing release or a selection, or with an
        ``extra_delta``.
    """
    for kind, present in (
        # Renyi curves once the first charge has one: its exact profile, or best order, is for the
        # history that ends there.
        ("a slicing release or a private selection", _is_curved),
        ("a spend with an extra_delta (learned categories)", lambda entry: entry.extra_delta > 0),
    ):
        first, *later = [any(map(present, charge)) for charge in charges]
        if any(later) and not first:
            raise BudgetExceededError(
                f"in a ledger with a cap, {kind} has to come before all others or in one charge "
                f"with the first: which accounting holds must not be decided by looking at earlier "
                f"releases. Nothing was read or released; start a ledger with it, or one for it "
                f"alone."
            )


def fits(charges: Sequence[Charge], relation: Adjacency, epsilon: float, delta: float) -> bool:
    """Whether a cap holds, also if later charges were chosen by looking at earlier releases.

    Parameters
    ----------
    charges, relation
        As in :func:`total_epsilon`; the charges have passed :func:`check_order`.
    epsilon, delta : float
        The cap.
    """
    total, first = add_up(charges, relation), add_up(charges[:1], relation)
    if len(charges) == 1:
        return first.planned_delta(epsilon) <= delta
    reserved = _reserved(first, epsilon, delta)
    if total.extra_delta > reserved:
        return False
    if not total.curved or total.mu == math.inf:
        return composed_delta(epsilon, total.mu, reserved) <= delta
    # The order that certifies a total may depend on earlier releases if later spends were chosen
    # by them, and then no theorem allows the best one. But each order certifies the histories for
    # which it is the first that holds, with its own share of delta, and the shares add up to delta.
    # Most goes to the order at which a Gaussian that uses up the cap is certified best.
    room = _room(delta, reserved)
    if room < _SMALLEST_DELTA:
        return False
    spare = 0.1 * room / len(_SPARE_ORDERS)
    shares = [(_own_order(epsilon, room), 0.9 * room), *((order, spare) for order in _SPARE_ORDERS)]
    return any(total.renyi(order) + _conversion(order, share) <= epsilon for order, share in shares)


def _is_curved(entry: LedgerEntry) -> bool:
    return entry.n_directions > 0 or entry.repetitions is not None


def _reserved(first: _Total, epsilon: float, delta: float) -> float:
    """The part of a cap's delta for extra_delta, fixed by the first charge for good.

    With a boundary where more of the one buys less of the other, whoever sees a release could take
    the one that helps. A box is safe. It holds at least the first charge.
    """
    if not first.extra_delta:
        return 0.0
    gaussian = replace(first, extra_delta=0.0).planned_delta(epsilon)
    left = _room(delta, gaussian) * (1 - _SLACK) if gaussian < delta else 0.0
    return max(first.extra_delta, min(left, _EXTRA_SHARE * delta))


@lru_cache(maxsize=2**15)
def _slicing_renyi(order: float, spend: LedgerEntry) -> float:
    return slicing_renyi(order, spend.noise_stddev, **spend.slicing)


@lru_cache(maxsize=64)
def _own_order(epsilon: float, room: float) -> float:
    """The order that certifies best what would use up the cap as one Gaussian."""
    best: float = max(_ORDERS, key=lambda o: (epsilon - _conversion(o, 0.9 * room)) / o)
    return best


def _room(delta: float, extra_delta: float) -> float:
    """What is left of delta for the rest: delta = extra_delta + (1 - extra_delta) * room."""
    return (delta - extra_delta) / (1 - extra_delta)


def _converted(order: float, divergence: float, epsilon: float) -> float:
    """The same, solved for delta."""
    exponent = (order - 1) * (divergence - epsilon + math.log1p(-1 / order)) - math.log(order)
    return math.exp(min(exponent, 0.0)) * (1 + 2 * _SLACK)
