"""What is publicly known about a column of numbers: its bounds and its scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..exceptions import SchemaError
from .columns import Column, Missing, plain_missing, plain_tuple

__all__ = ["Numeric", "check_whole"]


@dataclass(frozen=True)
class Numeric(Column):
    """A number within public bounds.

    Parameters
    ----------
    bounds : (number, number) or None
        Smallest and largest value, both possible. Equal bounds make a constant column. None
        means that the bounds are not known yet: such a column cannot be encoded.
    dtype : {"float", "int"}, default="float"
        Whether values are whole numbers. In a frame of integer dtype they always are.
    scale : {"linear", "log1p"}, default="linear"
        How the bounds are mapped to [0, 1]: by ``x - lower`` or by ``log(1 + x - lower)``. A
        long tail wants the second.
    missing : bool or sequence, default=False
        Whether values may be missing; a sequence lists the cells (``"?"``, ``-9``) that mean
        missing besides the nulls of the dtype.
    decimals : int or None, default=None
        Decimals, 0 to 15, to which synthetic values are rounded: 2 for amounts of money. None
        leaves all digits. They stay within the bounds: of 0.124 .. 9.876 the ends are 0.13 and
        9.87, and where no rounded number lies between the bounds these come out themselves.
        Values that come in aren't rounded.
    metadata : mapping, optional
        See :class:`~skdpgen.data.Column`.

    Raises
    ------
    SchemaError
        If a bound is not a finite number, if they are out of order, if whole numbers span 2**53
        or more (or 2**45 or more on a log scale), or if an entry has an unknown value.

    Examples
    --------
    >>> Numeric(bounds=(0, 99999), dtype="int", scale="log1p").scale
    'log1p'
    >>> Numeric(bounds=(5, 1))
    Traceback (most recent call last):
        ...
    skdpgen.exceptions.SchemaError: bounds must be in order: lower <= upper.
    """

    bounds: tuple[int | float, int | float] | None
    dtype: str = "float"
    scale: str = "linear"
    missing: Missing = False
    decimals: int | None = None

    kind: ClassVar[str] = "numeric"
    families: ClassVar[frozenset[str]] = frozenset({"int", "float", "bool", "text", "object"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in ("int", "float"):
            raise SchemaError("dtype must be 'int' or 'float'.")
        if self.scale not in ("linear", "log1p"):
            raise SchemaError("scale must be 'linear' or 'log1p'.")
        object.__setattr__(self, "missing", plain_missing(self.missing))
        # The type, for True is 1.
        if self.decimals is not None and not (
            type(self.decimals) is int and 0 <= self.decimals <= 15
        ):
            raise SchemaError("decimals must be a whole number, 0 to 15, or left out.")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._checked_bounds(self.bounds))

    def _checked_bounds(self, bounds: Any) -> tuple[int | float, int | float]:
        pair = plain_tuple(bounds, "bounds")
        if len(pair) != 2 or any(isinstance(b, bool | str) for b in pair):
            raise SchemaError("bounds must be two finite numbers, (lower, upper).")
        lower, upper = pair
        assert not isinstance(lower, str)
        assert not isinstance(upper, str)
        if self.dtype == "int":
            if lower != int(lower) or upper != int(upper):
                raise SchemaError("the bounds of whole numbers must be whole.")
            lower, upper = int(lower), int(upper)
        if lower > upper:
            raise SchemaError("bounds must be in order: lower <= upper.")
        if self.dtype == "int":
            check_whole(int(lower), int(upper), self.scale)
        else:
            try:
                finite = math.isfinite(float(upper) - float(lower))
            except OverflowError:
                finite = False
            if not finite:
                raise SchemaError("the difference of the bounds must fit a 64-bit float.")
        return lower, upper

    @property
    def undeclared(self) -> str | None:  # noqa: D102
        return "bounds" if self.bounds is None else None


def check_whole(lower: int, upper: int, scale: str) -> None:
    """Refuse a range of whole numbers that 64-bit arithmetic cannot hold exactly.

    Parameters
    ----------
    lower, upper : int
        The bounds.
    scale : {"linear", "log1p"}
        A log scale squeezes the upper end together, so its limit is lower.

    Raises
    ------
    SchemaError
        If a bound is outside -2**63 .. 2**64 - 1, or if the range reaches 2**53 (linear) or
        2**45 (log1p).
    """
    if lower < -(2**63) or upper >= 2**64:
        raise SchemaError("the bounds of whole numbers must fit 64 bits.")
    exponent = 53 if scale == "linear" else 45
    if upper - lower >= 2**exponent:
        raise SchemaError(
            f"whole numbers that span 2**{exponent} or more lose digits on a {scale} scale; "
            "declare narrower bounds, or dtype='float' for a column of floats."
        )
