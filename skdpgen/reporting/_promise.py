"""What a release and a ledger promise, as facts for a page: no row is read here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from scipy.optimize import minimize_scalar

from ..exceptions import PrivacyParameterError, ReleaseError
from ..privacy.composition import Charge, add_up, total_epsilon
from ..privacy.entries import Adjacency, LedgerEntry
from ..privacy.shares import nominal_mu
from ..privacy.statements import learned_before

if TYPE_CHECKING:
    from ..privacy.ledger import PrivacyLedger
    from ..privacy.release import Release
    from ..privacy.slicing_release import SlicingRelease

    AnyRelease = Release | SlicingRelease

__all__ = ["Odds", "Promise", "odds", "promise_of"]

Profile = Callable[[float], float]

#: Of the people who aren't in the table, the share that an attacker may accuse by mistake.
FALSE_ALARMS = 0.01
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True)
class Odds:
    """What the best attack can do against a promise, for one unit of privacy.

    Parameters
    ----------
    guess : float
        Largest probability of telling which of two equally likely neighboring tables was used; 0.5
        is blind guessing.
    caught : float
        Largest probability of recognizing one of the two if the other may be mistaken for it with
        probability :data:`FALSE_ALARMS`.
    """

    guess: float
    caught: float


@dataclass(frozen=True)
class Promise:
    """What was promised, and what the release says when it is asked to prove it.

    Parameters
    ----------
    statement : str or None
        The guarantee of the release; None without one.
    spent : str or None
        The total of the ledger in words; None without one.
    private : bool
        Whether everything was read through secure noise.
    epsilon, delta : float
        The guarantee that counts: the total of the ledger, or else that of the release. ``epsilon``
        is infinite where something isn't private.
    adjacency, unit : str
        Of that guarantee.
    rows_per_unit : int
        Rows that one unit of privacy contributes at most.
    n_rows : int or None
        Number of rows of the private table, only where the release publishes it.
    verified : float or None
        Epsilon as :meth:`Release.verify` recomputes it; None if it refused, or without a release.
    refusal : str
        Why it refused.
    incomplete : bool
        Whether the release says that its schema cost something which isn't included.
    foreign : bool
        Whether the ledger doesn't hold what the release spent: it is another table's, or the total
        isn't known.
    odds : Odds or None
        Of the guarantee; None where nothing is promised.
    entries : list of dict
        The ledger, entry by entry.
    cap : tuple of float or None
        Of the ledger.
    remaining : float or None
        Epsilon of one more release under the cap.
    """

    statement: str | None
    spent: str | None
    private: bool
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str
    rows_per_unit: int
    n_rows: int | None
    verified: float | None
    refusal: str
    incomplete: bool
    foreign: bool
    odds: Odds | None
    entries: list[dict[str, Any]]
    cap: tuple[float, float] | None
    remaining: float | None


def odds(profile: Profile, false_alarms: float = FALSE_ALARMS) -> Odds:
    r"""Success of the best attack against a privacy profile.

    Parameters
    ----------
    profile : callable
        ``delta(epsilon)`` for ``epsilon >= 0``: a valid pair of a guarantee at every point. The
        smallest there is makes the answer exact, any other an upper bound.
    false_alarms : float, default=FALSE_ALARMS
        In (0, 1).

    Returns
    -------
    Odds

    Notes
    -----
    With two equally likely tables the best guess is right with probability
    :math:`(1 + \delta(0)) / 2`: the hockey-stick divergence at 0 is the total variation distance.
    The power of the best test of level :math:`\alpha` is the least, over :math:`\epsilon`, of
    :math:`e^\epsilon \alpha + \delta(\epsilon)` and of
    :math:`1 - e^{-\epsilon} (1 - \delta(\epsilon) - \alpha)` (Dong, Roth, Su, arXiv 1905.02383,
    Prop. 2.12: a trade-off function is the envelope of its privacy profile). Both have one minimum,
    which one search finds; any other point errs upwards.

    Examples
    --------
    >>> from functools import partial
    >>> from skdpgen.privacy.accounting import gaussian_delta
    >>> odds(partial(gaussian_delta, mu=1 / 3.7306))
    Odds(guess=0.5533..., caught=0.0197...)
    """

    def power(epsilon: float) -> float:
        return math.exp(epsilon) * false_alarms + profile(epsilon)

    def mirrored(epsilon: float) -> float:
        return 1 - math.exp(-epsilon) * (1 - profile(epsilon) - false_alarms)

    searches = [
        # Beyond the end of the first even a profile of 0 leaves a bound above 1.
        minimize_scalar(power, bounds=(0.0, -math.log(false_alarms)), method="bounded"),
        minimize_scalar(mirrored, bounds=(0.0, _LARGEST_EPSILON), method="bounded"),
    ]
    caught = min(1.0, *(float(search.fun) for search in searches))
    return Odds(guess=(1 + profile(0.0)) / 2, caught=caught)


def promise_of(release: AnyRelease | None, ledger: PrivacyLedger | None) -> Promise | None:
    """Facts of a release and of the ledger it was charged to; None if there is neither."""
    if release is None and ledger is None:
        return None
    charges = _charges_of_ledger(ledger) if ledger is not None else []
    if ledger is None and release is not None:
        charges = [release.spends]
    entries = [entry for charge in charges for entry in charge]
    relation = _relation(entries, ledger)
    delta = _delta(entries, release, ledger)
    private = all(e.protected for e in entries) and (release is None or release.private)
    if ledger is not None and entries:
        epsilon = total_epsilon(charges, relation, delta)
    elif release is not None:
        epsilon = release.epsilon if private else math.inf
    else:
        epsilon = 0.0
    if not private:
        epsilon = math.inf
    foreign = ledger is not None and release is not None and not _holds(entries, release)
    verified, refusal = _verified(release)
    statement = None if release is None else release.statement()
    return Promise(
        statement=statement,
        spent=None if ledger is None else ledger.statement(delta),
        private=private,
        epsilon=epsilon,
        delta=delta,
        adjacency=relation,
        unit=entries[0].unit if entries else "row",
        rows_per_unit=min((e.rows_per_unit for e in entries), default=1),
        n_rows=None if release is None else release.n_rows,
        verified=verified,
        refusal=refusal,
        incomplete=release is not None
        and learned_before(release.public, getattr(release, "earlier", ())),
        foreign=foreign,
        odds=None
        if foreign or not math.isfinite(epsilon)
        else odds(_profile(charges, relation, epsilon, delta)),
        entries=[] if ledger is None else ledger.to_records(),
        cap=_cap(ledger),
        remaining=None if _cap(ledger) is None or ledger is None else ledger.remaining(),
    )


def _holds(entries: Sequence[LedgerEntry], release: AnyRelease) -> bool:
    """Whether there is an entry for everything that the release spent.

    By noise relative to sensitivity: where a domain is learned before, lattices aren't known yet
    when the ledger is charged.
    """

    def facts(entry: LedgerEntry) -> tuple[object, ...]:
        return entry.adjacency, entry.unit, entry.n_directions, entry.repetitions

    return all(
        any(
            facts(entry) == facts(spend)
            and math.isclose(nominal_mu(entry), nominal_mu(spend), rel_tol=1e-9)
            for entry in entries
            if entry.noise_stddev > 0
        )
        for spend in release.spends
    )


def _charges_of_ledger(ledger: PrivacyLedger) -> list[Charge]:
    numbers = [record["charge"] for record in ledger.to_records()]
    pairs = zip(numbers, ledger.entries, strict=True)
    return [tuple(e for _, e in group) for _, group in groupby(pairs, key=lambda pair: pair[0])]


def _relation(entries: Sequence[LedgerEntry], ledger: PrivacyLedger | None) -> Adjacency:
    if ledger is not None and ledger.adjacency is not None:
        return ledger.adjacency
    # The stricter one, as the ledger itself takes it.
    add_remove = entries and all(entry.adjacency == "add-remove" for entry in entries)
    return "add-remove" if add_remove else "replace-one"


def _delta(
    entries: Sequence[LedgerEntry], release: AnyRelease | None, ledger: PrivacyLedger | None
) -> float:
    if ledger is not None and ledger.delta is not None:
        return ledger.delta
    if release is not None:
        return release.delta
    return max((e.delta for e in entries if 0 < e.delta < 1), default=1e-5)


def _verified(release: AnyRelease | None) -> tuple[float | None, str]:
    if release is None:
        return None, ""
    try:
        return release.verify(), ""
    except ReleaseError as error:
        return None, str(error)


def _profile(
    charges: Sequence[Charge], relation: Adjacency, epsilon: float, delta: float
) -> Profile:
    """The privacy profile of everything that was spent."""
    try:
        total = add_up(charges, relation)
    except PrivacyParameterError:  # pragma: no cover - the ledger refuses such entries
        return lambda other: _profile_of_pair(other, epsilon, delta)
    if total.curved and len(charges) > 1:
        # Spends that may have been chosen one after the other: no exact profile is known, but the
        # pair (epsilon, delta) holds, and it bounds every other pair.
        return lambda other: _profile_of_pair(other, epsilon, delta)
    return total.planned_delta


def _profile_of_pair(other: float, epsilon: float, delta: float) -> float:
    """Delta at another epsilon, of a mechanism of which one pair is known.

    Kairouz, Oh, Viswanath, arXiv 1311.0776, Thm 3.1: the pair's own privacy region.
    """
    if other >= epsilon:
        return delta
    between = (math.exp(epsilon) - math.exp(other)) / (1 + math.exp(epsilon))
    return delta + (1 - delta) * between


def _cap(ledger: PrivacyLedger | None) -> tuple[float, float] | None:
    if ledger is None or ledger.epsilon is None or ledger.delta is None:
        return None
    return ledger.epsilon, ledger.delta
