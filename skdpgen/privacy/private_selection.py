"""A private selection from its budget to its outcome: charged once, before any run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta, gaussian_epsilon, noise_multiplier
from skdpgen.privacy.entries import Adjacency, LedgerEntry, Unit
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import current_source
from skdpgen.privacy.selection import (
    Repetitions,
    repeat_and_select,
    selection_epsilon,
    selection_noise_multiplier,
)
from skdpgen.privacy.shares import ReservedSpend

__all__ = ["ChargedSelection", "PrivateSelection"]

T = TypeVar("T")

_LEAST_EPSILON = 1e-6


@dataclass(frozen=True)
class PrivateSelection:
    """How one guarantee is divided between a yardstick and the runs that it judges.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of all that comes out: the yardstick, the best run, and which one it was.
    repetitions : Repetitions
        Distribution of the number of runs.
    yardstick_share : float
        The yardstick's share of the squared ``mu`` of a single release with this guarantee, in
        (0, 1).

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or nothing is left for the runs.

    Examples
    --------
    >>> plan = PrivateSelection(1.0, 1e-5, Repetitions.with_mean(5, shape=0.0), 0.1)
    >>> round(plan.yardstick_multiplier, 2), round(plan.run_multiplier, 2)
    (11.8, 7.27)
    """

    epsilon: float
    delta: float
    repetitions: Repetitions
    yardstick_share: float
    yardstick_epsilon: float = field(init=False)
    yardstick_multiplier: float = field(init=False)
    run_multiplier: float = field(init=False)

    def __post_init__(self) -> None:
        epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
        share = self.yardstick_share
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise PrivacyParameterError(
                f"the yardstick's share of the budget must be a number in (0, 1), got {share!r}."
            )
        mu = math.sqrt(share) / noise_multiplier(epsilon, delta)
        yardstick_epsilon = max(_LEAST_EPSILON, gaussian_epsilon(delta, mu))
        # As the mechanism calibrates it, so that the two agree to the last digit.
        multiplier = noise_multiplier(yardstick_epsilon, delta)
        object.__setattr__(self, "yardstick_epsilon", yardstick_epsilon)
        object.__setattr__(self, "yardstick_multiplier", multiplier)
        runs = selection_noise_multiplier(
            epsilon, delta, self.repetitions, gaussian_mu=1 / multiplier
        )
        object.__setattr__(self, "run_multiplier", runs)

    def entries(
        self, adjacency: Adjacency, unit: Unit, rows_per_unit: int
    ) -> tuple[LedgerEntry, LedgerEntry]:
        """What is charged: the selection, then its yardstick, in steps of their sensitivity.

        Parameters
        ----------
        adjacency : {"replace-one", "add-remove"}
            Relation of neighboring tables.
        unit : str
            Whether the unit is a row or several.
        rows_per_unit : int
            Most rows of a unit.

        Returns
        -------
        tuple of two LedgerEntry
            Selection and yardstick.
        """
        secure = current_source().secure
        common: dict[str, Any] = {
            "sensitivity_squared": 1,
            "adjacency": adjacency,
            "unit": unit,
            "rows_per_unit": rows_per_unit,
            "delta": self.delta,
            "private": secure,
        }
        alone = selection_epsilon(self.delta, 1 / self.run_multiplier, self.repetitions)
        selection = LedgerEntry(
            mechanism="private selection",
            noise_stddev=self.run_multiplier,
            epsilon=alone if secure else math.inf,
            repetition_shape=self.repetitions.shape,
            repetition_gamma=self.repetitions.gamma,
            **common,
        )
        yardstick = LedgerEntry(
            mechanism="yardstick",
            noise_stddev=self.yardstick_multiplier,
            epsilon=self.yardstick_epsilon if secure else math.inf,
            **common,
        )
        return selection, yardstick

    def charge(
        self, ledger: PrivacyLedger, entries: tuple[LedgerEntry, LedgerEntry]
    ) -> ChargedSelection:
        """Charge a ledger with both at once, before any row is read.

        Parameters
        ----------
        ledger : PrivacyLedger
            Gets both :meth:`entries`, or refuses both. Nothing is recorded a run: their number is
            secret.
        entries : tuple of two LedgerEntry
            The :meth:`entries`.

        Returns
        -------
        ChargedSelection
            What may be released now, once.

        Raises
        ------
        BudgetExceededError
            If the ledger refuses.
        """
        ledger.charge_all(entries)
        return ChargedSelection(*entries)


class ChargedSelection:
    """What was paid for, and may be used once: one yardstick, and the best of K runs.

    Parameters
    ----------
    selection, yardstick : LedgerEntry
        What was charged.
    """

    def __init__(self, selection: LedgerEntry, yardstick: LedgerEntry) -> None:
        assert selection.repetitions is not None
        self._repetitions = selection.repetitions
        self._run = replace(selection, repetition_shape=0.0, repetition_gamma=0.0)
        self._lock = threading.Lock()
        self._used = False
        #: Stands in for the ledger of the yardstick's release.
        self.yardstick = ReservedSpend(yardstick)

    def best(self, run: Callable[[ReservedSpend], tuple[float, T]]) -> T:
        """Run an algorithm K times and return what the best run returned.

        Parameters
        ----------
        run : callable
            Gets what stands in for the ledger of its one release; see
            :func:`~skdpgen.privacy.selection.repeat_and_select`.

        Raises
        ------
        BudgetExceededError
            If it was called before: the best of twice as many runs costs more.
        """
        with self._lock:
            if self._used:
                raise BudgetExceededError("this selection was made; another one has its own price.")
            self._used = True
        return repeat_and_select(lambda: run(ReservedSpend(self._run)), self._repetitions)

    # A copy would be a second selection for one charge.

    def __copy__(self) -> ChargedSelection:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ChargedSelection:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a selection is made once, where it was charged: it can't be pickled.")
