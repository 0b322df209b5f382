"""What is publicly known about a column of times: its bounds and its format."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

import numpy as np

from ..exceptions import SchemaError
from .columns import Column, Missing, plain_missing

__all__ = ["Datetime"]


@dataclass(frozen=True)
class Datetime(Column):
    """A point in time within public bounds.

    Parameters
    ----------
    bounds : (text or datetime, text or datetime) or None
        First and last possible time, as texts in ``format`` (ISO 8601 if there is none). In a
        column with a time zone, bounds without one are wall-clock times of that zone. None
        means not known yet.
    format : str, optional
        As for :meth:`datetime.datetime.strptime`. Needed for a column of texts, where it is
        also the format of the output. It sets the resolution: a format without a time of day
        makes whole days, one without ``%f`` whole seconds, and so on.
    missing : bool or sequence, default=False
        As for :class:`~skdpgen.data.Numeric`.
    metadata : mapping, optional
        See :class:`~skdpgen.data.Column`.

    Raises
    ------
    SchemaError
        If a bound does not follow the format, or if they are out of order.

    Examples
    --------
    >>> column = Datetime(("2019-02-01", "2019-04-30"), format="%Y-%m-%d")
    >>> column.parsed_bounds[1]
    datetime.datetime(2019, 4, 30, 0, 0)
    """

    bounds: tuple[str, str] | None
    format: str | None = None
    missing: Missing = False

    kind: ClassVar[str] = "datetime"
    families: ClassVar[frozenset[str]] = frozenset({"datetime", "text", "object"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format is not None and not isinstance(self.format, str):
            raise SchemaError("format must be a text such as '%Y-%m-%d'.")
        object.__setattr__(self, "missing", plain_missing(self.missing))
        if self.bounds is None:
            return
        if isinstance(self.bounds, str) or len(tuple(self.bounds)) != 2:
            raise SchemaError("bounds must be two times, (first, last).")
        first, last = self.bounds
        object.__setattr__(self, "bounds", (self._as_text(first), self._as_text(last)))
        low, high = self.parsed_bounds
        if (low.tzinfo is None) != (high.tzinfo is None):
            raise SchemaError("either both bounds carry a time zone or none.")
        if low > high:
            raise SchemaError("bounds must be in order: first <= last.")

    def _as_text(self, bound: Any) -> str:
        if isinstance(bound, np.datetime64):
            bound = bound.astype("datetime64[us]").item()
        if isinstance(bound, datetime | date):
            return bound.strftime(self.format) if self.format else bound.isoformat()
        if not isinstance(bound, str):
            raise SchemaError("bounds must be texts or datetimes.")
        return bound

    def _parse(self, text: str) -> datetime:
        try:
            if self.format is None:
                return datetime.fromisoformat(text)
            return datetime.strptime(text, self.format)
        except ValueError:
            expected = self.format or "ISO 8601"
            raise SchemaError(f"the bound {text!r} does not follow {expected}.") from None

    @property
    def parsed_bounds(self) -> tuple[datetime, datetime]:
        """The bounds as datetimes.

        Raises
        ------
        SchemaError
            If ``bounds`` is None.
        """
        if self.bounds is None:
            raise SchemaError("bounds are not declared.")
        return self._parse(self.bounds[0]), self._parse(self.bounds[1])

    @property
    def undeclared(self) -> str | None:  # noqa: D102
        return "bounds" if self.bounds is None else None
