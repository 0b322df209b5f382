"""The rules of the verdict: which number is good, fair or poor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["LEAST_GAIN", "LOST", "RULES", "WORDS", "WORST", "Level", "Rule"]

Level = Literal["good", "fair", "poor", "unknown"]

_WORDS = {"good": "Good", "fair": "Fair", "poor": "Poor", "unknown": "Can't tell"}
_PRIVACY_WORDS = {"good": "Strong", "fair": "Reasonable", "poor": "Weak", "unknown": "Can't tell"}

#: Words of the levels: of the measured questions, and of the promise.
WORDS = (_WORDS, _PRIVACY_WORDS)


@dataclass(frozen=True)
class Rule:
    """What a number has to be for a level.

    Parameters
    ----------
    good, fair : float
        Limits of the two levels, themselves included.
    more_is_better : bool
        Whether the number has to be at least, or at most, the limit.
    what : str
        What the number is.
    why : str
        Where the limits come from.
    """

    good: float
    fair: float
    more_is_better: bool
    what: str
    why: str

    def level(self, number: float) -> Level:
        """The level of a number; "unknown" for NaN.

        Examples
        --------
        >>> RULES["links"].level(0.5), RULES["columns"].level(0.5)
        ('fair', 'poor')
        """
        if math.isnan(number):
            return "unknown"
        sign = 1 if self.more_is_better else -1
        if sign * number >= sign * self.good:
            return "good"
        return "fair" if sign * number >= sign * self.fair else "poor"

    def limit(self, number: float) -> str:
        """A limit in words.

        Examples
        --------
        >>> RULES["links"].limit(0.8), RULES["columns"].limit(0.05)
        ('from 0.8', 'up to 0.05')
        """
        return f"{'from' if self.more_is_better else 'up to'} {number:g}"


#: A mean over many columns hides one that is lost: beyond this the headline names it.
WORST = 0.25

#: The rules, by question.
RULES = {
    "columns": Rule(
        0.05,
        0.15,
        False,
        "mean total variation distance of the single columns: the share of rows that would have to "
        "change for a column to have the real shares",
        "Of eleven real tables one half is 0.01 to 0.08 from the other half by chance alone: below "
        "some 1,500 rows even a perfect table may be called fair. A table with a column whose own "
        f"distance is above {WORST:g} is never good.",
    ),
    "links": Rule(
        0.8,
        0.4,
        True,
        "share of the dependence between pairs of columns that survives; 0 for columns that were "
        "shuffled one by one",
        "Of eleven real tables one half keeps 96% or more of the dependence in the other half, and "
        "a table with shuffled columns 14% at most.",
    ),
    "learning": Rule(
        0.9,
        0.6,
        True,
        "share of the gain over guessing that models keep when they learn from synthetic rows "
        "instead of real ones, on average over the models",
        "Of ten real tables models that learned from one half keep 99% or more of what the other "
        "half teaches; shuffled columns keep 38% at most.",
    ),
    "privacy": Rule(
        1.0,
        10.0,
        False,
        "total epsilon, at the delta of the promise",
        "The limits are the tiers of Ponomareva et al., How to DP-fy ML (arXiv:2303.00654, 2023): "
        "up to 1 a strong formal guarantee, up to 10 a reasonable one, beyond that weak to none. "
        "What isn't private, doesn't verify or has a delta above one over the number of rows is "
        "never better than weak.",
    ),
}

#: Real rows have to teach at least this much over guessing, or there is nothing to keep.
LEAST_GAIN = 0.05
#: With less of the dependence, links are lost.
LOST = 0.2
