"""What a ledger records: one spend, its neighbouring relation and its unit of privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from skdpgen.exceptions import PrivacyParameterError

__all__ = [
    "MAXIMUM_ROWS_PER_UNIT",
    "Adjacency",
    "LedgerEntry",
    "Unit",
    "check_adjacency",
    "check_rows_per_unit",
]

#: Largest number of rows that one unit of privacy may contribute.
MAXIMUM_ROWS_PER_UNIT = 2**20

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

    def __post_init__(self) -> None:
        check_adjacency(self.adjacency)
        if not (
            self.unit in ("row", "unit")
            and _is_integer(self.sensitivity_squared, 1, 2**120)
            and _is_integer(self.rows_per_unit, 1, MAXIMUM_ROWS_PER_UNIT)
            and 0 <= self.noise_stddev < math.inf
            and self.epsilon >= 0
            and 0 <= self.delta <= 1
            and isinstance(self.private, bool)
        ):
            raise PrivacyParameterError("a ledger entry has a field that is out of range.")

    @property
    def mu(self) -> float:
        """Sensitivity over noise standard deviation; ``inf`` where nothing protects the rows."""
        if not self.private or self.noise_stddev == 0:
            return math.inf
        return math.sqrt(self.sensitivity_squared) / self.noise_stddev


def _is_integer(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
