"""Encoding of points in time as one number in [0, 1]."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ..exceptions import InputError
from .arrays import build_ticks, build_values, read_cells, read_ticks, with_none
from .cells import microseconds, moment_of, moment_parser
from .datetime_columns import Datetime
from .dtypes import ColumnDtype
from .scaled import ScaledEncoder
from .scaling import offsets_of_integers, unit_to_offsets

__all__ = ["TimeEncoder", "format_step"]

# Nanoseconds of each unit.
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "D": 86_400 * 10**9,
}
_DIRECTIVES = {"f": "us", **dict.fromkeys("SsTXcr", "s"), **dict.fromkeys("MR", "m"), "H": "h"}
_MOST_STEPS = 2**53


def format_step(format: str) -> str:
    """The finest unit of time that a format writes down.

    Parameters
    ----------
    format : str
        As for :meth:`datetime.datetime.strftime`.

    Returns
    -------
    {"us", "s", "m", "h", "D"}
        A date counts as "D", also where it has no day.

    Examples
    --------
    >>> format_step("%Y-%m-%d"), format_step("%d.%m.%Y %H:%M")
    ('D', 'm')
    """
    units = [_DIRECTIVES.get(d, "h" if d == "I" else "D") for d in re.findall(r"%[-#]?(.)", format)]
    return min(units, key=_UNITS.__getitem__, default="D")


class TimeEncoder(ScaledEncoder):
    """Encoder of points in time, on a grid of steps that starts at the first possible time.

    The step is the unit of the dtype or of the format, whichever is coarser, and coarser still
    where 2**53 steps would not reach the last possible time. Times between the steps are
    rounded, times outside the bounds are clipped. With a time zone, the grid is one of UTC
    seconds or finer, since days and hours of a zone are not evenly spaced.

    Raises
    ------
    InputError
        If a column of texts has no format, if bounds carry a time zone and the column does not,
        or if the dtype can hold no time within the bounds.
    """

    column: Datetime

    def _set_range(self) -> None:
        dtype, format = self.dtype, self.column.format
        if dtype.family == "text" and format is None:
            raise InputError(
                f"column {self.name!r} holds texts; declare their format, such as "
                f"schema.with_columns({{{self.name!r}: {{'format': '%Y-%m-%d'}}}})."
            )
        if format is not None and dtype.family != "datetime":
            self._check_format(format)
        # Nanoseconds, as Python integers. Cells that are Python objects have microseconds.
        self._tick = _UNITS[dtype.unit or "us"]
        first, last = (self._nanoseconds(b) for b in self.column.parsed_bounds)
        self._first = -(-first // self._tick) * self._tick
        self._last = last // self._tick * self._tick
        self._step = max(self._tick, _UNITS[format_step(format)] if format else 1)
        if dtype.zone is not None:
            self._step = min(self._step, max(self._tick, _UNITS["s"]))
        for unit in _UNITS.values():
            if (self._last - self._first) // self._step >= _MOST_STEPS:
                self._step = max(self._step, unit)
        self.span = max((self._last - self._first) // self._step, 0)
        self._set_allowed()
        self.is_constant = self.span == 0
        self.middle = 0.0 if self.is_constant else (self.span // 2) / self.span

    def _set_allowed(self) -> None:
        # 64 bits of nanoseconds end in 1677 and 2262; the least integer is NaT.
        least, most = (-(2**63) + 1) * self._tick, (2**63 - 1) * self._tick
        self.allowed = (
            max(0, -((self._first - least) // self._step)),
            min(self.span, (most - self._first) // self._step),
        )
        if self._first > self._last or self.allowed[0] > self.allowed[1]:
            raise InputError(
                f"column {self.name!r}: no time within the declared bounds fits the dtype "
                f"{self.dtype.label}."
            )

    def _check_format(self, format: str) -> None:
        # Some platforms write the year 1 without the leading zeros that reading asks for.
        for bound in self.column.parsed_bounds:
            if moment_parser(format)(bound.strftime(format)) != bound:
                raise InputError(
                    f"column {self.name!r}: a time written in the format {format!r} is not read "
                    "back as the same time; declare bounds with years from 1000 on."
                )

    def _nanoseconds(self, bound: datetime) -> int:
        zone = self.dtype.zone
        if bound.tzinfo is None and zone is not None:
            bound = bound.replace(tzinfo=zone)
        elif bound.tzinfo is not None and zone is None and self.dtype.family == "datetime":
            raise InputError(
                f"column {self.name!r}: the bounds carry a time zone and the column does not."
            )
        return microseconds(bound) * 1000

    def _read(self, column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
        if dtype.family == "datetime":
            ticks, nulls = read_ticks(column, dtype)
        else:
            moments = self._moments(read_cells(column, dtype))
            nulls = np.fromiter((m is None for m in moments), dtype=bool, count=len(moments))
            ticks = np.array([0 if m is None else m for m in moments], dtype=np.int64)
        steps = self._steps(ticks, _UNITS[dtype.unit or "us"])
        return (np.zeros(len(steps)) if self.is_constant else steps / self.span), nulls

    def _steps(self, ticks: np.ndarray, tick: int) -> np.ndarray:
        """Steps from the first time to times in ticks of this many nanoseconds, in integers."""
        first, last = -(-self._first // tick), self._last // tick
        if first > last:  # days, where the bounds lie within one
            return np.zeros(ticks.shape, dtype=np.uint64)
        # Units divide each other: either a step is some ticks or a tick is some steps.
        ticks_per_step, steps_per_tick = max(self._step // tick, 1), max(tick // self._step, 1)
        whole, rest = np.divmod(offsets_of_integers(ticks, first, last), np.uint64(ticks_per_step))
        nanoseconds = rest * np.uint64(tick) + np.uint64(first * tick - self._first)
        rounded = (np.uint64(2) * nanoseconds + np.uint64(self._step)) // np.uint64(2 * self._step)
        return np.minimum(whole * np.uint64(steps_per_tick) + rounded, np.uint64(self.span))

    def _moments(self, cells: list[Any]) -> list[int | None]:
        parse = moment_parser(self.column.format) if self.column.format else None
        tokens = self.column.missing if isinstance(self.column.missing, tuple) else ()
        texts: dict[str, int | None] = {str(t): None for t in tokens}
        moments = []
        for cell in cells:
            if type(cell) is not str:
                moments.append(moment_of(cell, parse))
                continue
            if cell not in texts:  # parsing is slow, and dates repeat
                texts[cell] = moment_of(cell, parse)
            moments.append(texts[cell])
        return moments

    def _write(self, z: np.ndarray, nulls: np.ndarray | None) -> Any:
        if self.is_constant:
            steps = np.zeros(len(z), dtype=np.uint64)
        else:
            steps = np.clip(unit_to_offsets(z, self.span, log=False), *self.allowed)
        first = np.uint64(self._first // self._tick % 2**64)
        ticks = (first + steps * np.uint64(self._step // self._tick)).view(np.int64)
        if self.dtype.family == "datetime":
            return build_ticks(self.dtype, ticks, nulls)
        zone = self.column.parsed_bounds[0].tzinfo and UTC
        epoch = datetime(1970, 1, 1, tzinfo=zone)
        times = [epoch + timedelta(microseconds=t) for t in ticks.tolist()]
        format = self.column.format
        cells: list[Any] = [t.strftime(format) for t in times] if format else times
        return build_values(self.dtype, with_none(cells, nulls))
