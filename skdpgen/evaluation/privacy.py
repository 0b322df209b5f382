"""What can be measured about privacy: copying, the claimed epsilon, and an attack, at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .audit import EpsilonAudit, empirical_epsilon
from .copies import CopyResult, copy_check
from .membership import MembershipResult, membership_inference

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = ["PrivacyCheck", "privacy_check"]

_NO_PROOF = (
    "What was promised holds by the proof of the mechanism; checks can only find faults, and none "
    "of them can show that a table is private."
)


@dataclass(frozen=True)
class PrivacyCheck:
    """Checks that look for faults. **Not private**. Made by :func:`privacy_check`.

    Attributes
    ----------
    promise : str
        What the synthesizer promises, in a sentence; empty without one.
    copies : CopyResult
        Whether rows were copied.
    audit : EpsilonAudit or None
        Whether the claimed epsilon can be refuted; None without a synthesizer.
    membership : MembershipResult or None
        Whether a record's presence shows in the release; None without a synthesizer.
    reads : str
        Which private rows the checks read.
    """

    promise: str
    copies: CopyResult
    audit: EpsilonAudit | None = None
    membership: MembershipResult | None = None
    reads: str = field(repr=False, default="")

    @property
    def alarms(self) -> tuple[str, ...]:
        """Names of the checks that found a fault: "copies", "audit", "membership"."""
        found = {
            "copies": bool(self.copies.copying),
            "audit": self.audit is not None and self.audit.violated,
            "membership": self.membership is not None and self.membership.violated,
        }
        return tuple(name for name, alarm in found.items() if alarm)

    def summary(self) -> str:
        """What was found, in plain sentences, one paragraph a check."""
        parts = [f"Promise: {self.promise}"] if self.promise else []
        parts.append(f"Copies: {self.copies.summary()}")
        if self.audit is not None:
            parts.append(f"Audit: {self.audit.summary()}")
        if self.membership is not None:
            parts.append(f"Membership: {self.membership.summary()}")
        found = (
            f"FAULTS FOUND: {', '.join(self.alarms)}. Don't publish the table."
            if self.alarms
            else "No fault was found for certain, but many rows equal real ones."
            if self.copies.repeating
            else "No fault was found."
        )
        return "\n".join([*parts, f"{found} {_NO_PROOF}"])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types; a check that was not made is None."""
        made = {name: getattr(self, name) for name in ("copies", "audit", "membership")}
        return {
            "promise": self.promise,
            **{name: None if check is None else check.to_dict() for name, check in made.items()},
            "alarms": list(self.alarms),
            "reads": self.reads,
            "summary": self.summary(),
        }

    def __str__(self) -> str:
        return f"{self.summary()}\n{self.reads}"


def privacy_check(
    synthetic: Any,
    train: Any,
    holdout: Any = None,
    *,
    synthesizer: Any = None,
    schema: Schema | None = None,
    n_runs: int = 300,
    n_shadows: int = 100,
    random_state: int | None = 0,
) -> PrivacyCheck:
    """Look for faults in a synthetic table and in the synthesizer that made it. **Not private**.

    Three checks, each with a stated rate of false alarms: were rows copied
    (:func:`copy_check`), can the claimed epsilon be refuted (:func:`empirical_epsilon`), and does
    the presence of the most exposed records show in the release (:func:`membership_inference`).

    Parameters
    ----------
    synthetic : DataFrame
        pandas or polars table.
    train : DataFrame
        The rows that the synthesizer was fitted on, the target column included.
    holdout : DataFrame, default=None
        Rows of the same origin that it never saw. Without them copying can't be judged.
    synthesizer : synthesizer, default=None
        What made the table, for the other two checks: see :func:`empirical_epsilon`. Its budget is
        left alone. None checks for copies only.
    schema : Schema, default=None
        Column facts; that of the synthesizer if None. Without either, they are read off the real
        rows.
    n_runs : int, default=300
        Releases of each table of the audit.
    n_shadows : int, default=100
        Shadow fits with each of three targets, and as many without.
    random_state : int or None, default=0
        Seed of the choice of rows. The noise is never seeded.

    Returns
    -------
    PrivacyCheck

    Raises
    ------
    InputError, SchemaError
        See the three checks.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import privacy_check
    >>> real, schema = make_gaussian_grid(400, random_state=0)
    >>> fresh, _ = make_gaussian_grid(200, random_state=1)
    >>> check = privacy_check(fresh, real[:200], real[200:], schema=schema)
    >>> check.alarms
    ()
    >>> privacy_check(real[:200], real[:200], real[200:], schema=schema).alarms
    ('copies',)
    """
    if schema is None and synthesizer is not None:
        schema = getattr(synthesizer, "schema_", None)
    copies = copy_check(synthetic, train, holdout, schema=schema, random_state=random_state)
    if synthesizer is None:
        return PrivacyCheck("", copies, reads=copies.reads)
    audit = empirical_epsilon(synthesizer, n_runs=n_runs, random_state=random_state)
    membership = membership_inference(
        synthesizer, train, n_shadows=n_shadows, random_state=random_state
    )
    return PrivacyCheck(
        promise=(
            synthesizer.privacy_statement()
            if hasattr(synthesizer, "release_")
            else f"epsilon = {audit.epsilon:g} at delta = {audit.delta:g} under {audit.adjacency} "
            f"adjacency, once it is fitted."
        ),
        copies=copies,
        audit=audit,
        membership=membership,
        reads=f"{copies.reads} {membership.reads}",
    )
