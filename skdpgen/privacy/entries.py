"""What a ledger records: one spend, its neighbouring relation and its unit of privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.selection import Repetitions

__all__ = [
    "MAXIMUM_TEXT_LENGTH",
    "MAXIMUM_ROWS_PER_UNIT",
    "Adjacency",
    "LedgerEntry",
    "SlicingFacts",
    "Unit",
    "check_adjacency",
    "check_rows_per_unit",
]

#: Largest number of rows that one unit of privacy may contribute.
MAXIMUM_ROWS_PER_UNIT = 2**20
#: Largest number of characters of a name or a reason.
MAXIMUM_TEXT_LENGTH = 200

Adjacency = Literal["replace-one", "add-remove"]
Unit = Literal["row", "unit"]


def check_adjacency(adjacency: object) -> Adjacency:
    """Return ``adjacency`` if it is one of the two neighbouring relations.

    Raises
    ------
    PrivacyParameterError
        Otherwise.
    """
    if adjacency == "replace-one":
        return "replace-one"
    if adjacency == "add-remove":
        return "add-remove"
    raise PrivacyParameterError(
        f"adjacency must be 'replace-one' or 'add-remove', got {adjacency!r}."
    )


def check_rows_per_unit(rows_per_unit: object) -> int:
    """Return ``rows_per_unit`` if it is an integer in [1, 2^20].

    Raises
    ------
    PrivacyParameterError
        Otherwise.
    """
    if type(rows_per_unit) is int and 1 <= rows_per_unit <= MAXIMUM_ROWS_PER_UNIT:
        return rows_per_unit
    raise PrivacyParameterError("rows_per_unit must be an integer in [1, 2^20].")


@dataclass(frozen=True)
class LedgerEntry:
    """One spend: integers and plain numbers only, nothing from the rows.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism.
    sensitivity_squared : int
        Squared L2 sensitivity in lattice steps, for the unit of privacy.
    noise_stddev : float
        Standard deviation of the ideal Gaussian noise in lattice steps; 0 for none.
    adjacency : {"replace-one", "add-remove"}
        The neighbouring relation under which the sensitivity holds.
    unit : {"row", "unit"}
        What the guarantee protects: one row, or all rows of one unit (a patient, say).
    rows_per_unit : int
        How many rows one unit of privacy contributes at most.
    epsilon, delta : float
        The guarantee of this spend on its own.
    private : bool
        False for a release made with insecure noise.
    n_directions, dimension : int
        Of a slicing release with Gaussian directions, whose ``sensitivity_squared`` is the squared
        diameter of the rows; both 0 for a Gaussian release.
    value_step : float
        Of a slicing release: what rounding adds, in lattice steps (see
        :mod:`~skdpgen.privacy.slicing_accounting`).
    extra_delta : float
        In [0, 1): the probability with which the release isn't the one that the other fields
        describe (see :func:`~skdpgen.privacy.accounting.composed_delta`); not 0 where learned
        categories have to pass a threshold.
    repetition_shape, repetition_gamma : float
        Of a private selection: how often its Gaussian release is repeated, see
        :class:`~skdpgen.privacy.selection.Repetitions`; sensitivity and noise are those of one
        run. Both 0 for what isn't repeated.
    reason : str
        Why rows were read without protection; only in an entry that is not private and without
        noise (:meth:`PrivacyLedger.record_unprotected`).

    Raises
    ------
    PrivacyParameterError
        If a value is of the wrong kind or out of range. A NaN, say, would compare as "within the
        cap" for ever after.
    """

    mechanism: str
    sensitivity_squared: int
    noise_stddev: float
    adjacency: Adjacency
    unit: Unit
    rows_per_unit: int
    epsilon: float
    delta: float
    private: bool = True
    n_directions: int = 0
    dimension: int = 0
    value_step: float = 0.0
    extra_delta: float = 0.0
    repetition_shape: float = 0.0
    repetition_gamma: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        check_adjacency(self.adjacency)
        if not (
            self.unit in ("row", "unit")
            and _is_integer(self.sensitivity_squared, 1, 2**120)
            and _is_integer(self.rows_per_unit, 1, MAXIMUM_ROWS_PER_UNIT)
            and (self.unit == "unit" or self.rows_per_unit == 1)
            and _is_text(self.mechanism)
            and _is_number(self.noise_stddev, 0, 1e100)
            and _is_number(self.epsilon, 0, math.inf)
            and _is_number(self.delta, 0, 1)
            and isinstance(self.private, bool)
            and _is_integer(self.n_directions, 0, 2**20)
            and _is_integer(self.dimension, 0, 2**20)
            and (self.n_directions == 0) == (self.dimension == 0)
            and _is_number(self.value_step, 0, 1e100)
            and _is_number(self.extra_delta, 0, 1)
            and self.extra_delta < 1
            and _is_text(self.reason)
            and (not self.reason or self._is_plainly_unprotected)
        ):
            raise PrivacyParameterError("a ledger entry has a field that is out of range.")
        # A row against no row isn't a change by at most the diameter, nor are several rows.
        if self.n_directions and (self.adjacency, self.unit, self.rows_per_unit) != (
            "replace-one",
            "row",
            1,
        ):
            raise PrivacyParameterError("a slicing release protects one row, under replace-one.")
        if self.repetitions is not None and self.n_directions:
            raise PrivacyParameterError("a selection is among Gaussian releases.")

    @property
    def _is_plainly_unprotected(self) -> bool:
        return not (self.private or self.noise_stddev or self.n_directions or self.extra_delta)

    @property
    def protected(self) -> bool:
        """Whether there is noise, and it is secure."""
        return self.private and self.noise_stddev > 0

    @property
    def mu(self) -> float:
        """Sensitivity over noise standard deviation of a Gaussian release.

        ``inf`` where nothing protects the rows, and for a slicing release and a selection: no
        ``mu`` describes those.
        """
        if self.n_directions or self.repetitions is not None:
            return math.inf
        return self.run_mu

    @property
    def run_mu(self) -> float:
        """The same for a single run of a selection."""
        if not self.protected:
            return math.inf
        return math.sqrt(self.sensitivity_squared) / self.noise_stddev

    @property
    def repetitions(self) -> Repetitions | None:
        """How often the Gaussian release of a selection is repeated; None for other spends."""
        if not (self.repetition_shape or self.repetition_gamma):
            return None
        return Repetitions(self.repetition_shape, self.repetition_gamma)

    @property
    def slicing(self) -> SlicingFacts:
        """Arguments of :mod:`~skdpgen.privacy.slicing_accounting` for a slicing release."""
        return {
            "n_directions": self.n_directions,
            "dimension": self.dimension,
            "diameter": math.sqrt(self.sensitivity_squared),
            "value_step": self.value_step,
        }


class SlicingFacts(TypedDict):
    """What a slicing release is, but for its noise; lengths in lattice steps."""

    n_directions: int
    dimension: int
    diameter: float
    value_step: float


def _is_integer(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAXIMUM_TEXT_LENGTH and value.isprintable()
