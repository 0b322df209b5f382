"""What a ledger accepts: its terms, the relation of its total, and what may come next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta
from skdpgen.privacy.composition import Charge, add_up, check_order, fits
from skdpgen.privacy.entries import Adjacency, check_adjacency
from skdpgen.privacy.ledger_report import flat, refusal

__all__ = ["Cap", "Terms", "check_history", "relation_of", "terms_after"]

Cap = tuple[float, float]


@dataclass(frozen=True)
class Terms:
    """Cap and neighbouring relation; None where there is none."""

    epsilon: float | None = None
    delta: float | None = None
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise PrivacyParameterError(
                "a cap needs both epsilon and delta (and a file is given as path=...)."
            )
        if self.epsilon is not None and self.delta is not None:
            epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
            object.__setattr__(self, "epsilon", epsilon)
            object.__setattr__(self, "delta", delta)
        if self.adjacency is not None:
            check_adjacency(self.adjacency)

    @property
    def caps(self) -> set[Cap]:
        """The cap, or nothing."""
        if self.epsilon is None or self.delta is None:
            return set()
        return {(self.epsilon, self.delta)}

    def completed(self, other: Terms) -> Terms:
        """These terms, and the other's where these say nothing."""
        joint = self
        if self.epsilon is None:
            joint = replace(joint, epsilon=other.epsilon, delta=other.delta)
        return replace(joint, adjacency=self.adjacency or other.adjacency)

    def check_within(self, other: Terms) -> None:
        """Refuse a cap that is looser than the other, and another relation.

        Raises
        ------
        PrivacyParameterError
            Naming both.
        """
        for name in ("epsilon", "delta"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None and mine > theirs:
                raise PrivacyParameterError(
                    f"the ledger file has a cap of {name} = {theirs!r}, and {mine!r} would be "
                    f"looser. Leave out epsilon and delta to take the cap of the file, or give a "
                    f"tighter one."
                )
        if None not in (self.adjacency, other.adjacency) and self.adjacency != other.adjacency:
            raise PrivacyParameterError(
                f"the ledger file is for {other.adjacency} adjacency, not {self.adjacency}."
            )


def relation_of(charges: Sequence[Charge], terms: Terms) -> Adjacency:
    """The neighbouring relation of the total: that of the terms, or the stricter of the entries."""
    if terms.adjacency is not None:
        return terms.adjacency
    if any(entry.adjacency == "replace-one" for entry in flat(charges)):
        return "replace-one"
    return "add-remove"


def check_history(charges: Sequence[Charge], terms: Terms) -> None:
    """Refuse terms that what was spent already doesn't keep.

    Raises
    ------
    PrivacyParameterError
        Saying which. A cap that is chosen after releases is no promise about them.
    """
    relation = relation_of(charges, terms)
    add_up(charges, relation)
    for epsilon, delta in terms.caps if charges else ():
        try:
            check_order(charges)
            kept = fits(charges, relation, epsilon, delta)
        except BudgetExceededError:
            kept = False
        if not kept:
            raise PrivacyParameterError(
                f"what was spent in this ledger already is beyond a cap of ({epsilon:g}, "
                f"{delta:g}), or in an order that no cap allows. Leave out epsilon and delta, or "
                f"start a new ledger for another table."
            )


def terms_after(
    before: Sequence[Charge], charge: Charge, terms: Terms, caps: Iterable[Cap]
) -> Terms:
    """Check a charge, and say what the terms are once it is made.

    Under a cap the first charge fixes the relation. A relation that a later charge decides would be
    chosen by looking at releases, and the cap hold under neither.

    Parameters
    ----------
    before : sequence of tuple of LedgerEntry
        The history, oldest first.
    charge : tuple of LedgerEntry
        The next one.
    terms : Terms
        Those that say the relation.
    caps : iterable of (float, float)
        All of them have to hold: what fits under a tighter one may not fit under another, for each
        certifies by its own Renyi orders.

    Raises
    ------
    PrivacyParameterError
        If unit or adjacency can't be added to the others.
    BudgetExceededError
        If a cap doesn't allow it.
    """
    charges, caps = [*before, charge], set(caps)
    # What is infinite anyway may stand beside any unit.
    if len({entry.unit for entry in flat(charges) if not entry.reason}) > 1:
        raise PrivacyParameterError(
            "all entries of a ledger must protect the same unit: a guarantee for rows can't be "
            "added to one for units of several rows. Start a new PrivacyLedger."
        )
    if caps:
        terms = replace(terms, adjacency=relation_of(before or charges, terms))
    relation = relation_of(charges, terms)
    add_up(charges, relation)  # or refuse: not every spend means something under it
    for cap in caps:
        check_order(charges)
        if not fits(charges, relation, *cap):
            raise BudgetExceededError(refusal(charges, relation, *cap))
    return terms
