"""What is publicly known about a column: one frozen class per kind.

A column specification is public knowledge. It is written down by a person or read from a
codebook, never measured on private rows, so its contents may stand in error messages.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import date, datetime
from typing import Any, ClassVar

import numpy as np

from ..exceptions import SchemaError

__all__ = [
    "MAX_VALUES",
    "Boolean",
    "Categorical",
    "Column",
    "Datetime",
    "Id",
    "Numeric",
    "Ordinal",
    "Text",
    "column_from_dict",
    "declaration_hint",
]

MAX_VALUES = 10_000
"""Most values that one column may declare; more would need a matrix nobody could hold."""

Value = str | int | float | bool
Missing = bool | tuple[Value, ...]


def _plain(value: Any, what: str) -> Value:
    """Turn a numpy scalar into a Python one; refuse what JSON could not hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | float):
        raise SchemaError(f"{what} must be texts, numbers or booleans, not {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{what} must be finite; a missing value is declared by 'missing'.")
    return value


def _plain_tuple(values: Any, what: str) -> tuple[Value, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise SchemaError(f"{what} must be a list.")
    return tuple(_plain(v, what) for v in values)


def _plain_missing(missing: Any) -> Missing:
    """``True``, ``False`` or the tuple of tokens; no token and ``False`` are the same."""
    if missing is None or isinstance(missing, bool):
        return bool(missing)
    return _plain_tuple(missing, "missing") or False


def _check_distinct(values: tuple[Value, ...]) -> None:
    # Equal numbers (1, 1.0, True) and equal texts (1, "1") would be one value in some dtype.
    if len(set(values)) < len(values) or len({str(v) for v in values}) < len(values):
        raise SchemaError("values must be distinct, also when read as numbers or as text.")


@dataclass(frozen=True, kw_only=True)
class Column:
    """Base class of all column kinds.

    Parameters
    ----------
    metadata : mapping of str to object, optional
        Descriptive entries of the JSON form (``note``, ``description``, ``groups``, ...). They
        are kept and written back, and mean nothing to the encoder.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    kind: ClassVar[str]
    families: ClassVar[frozenset[str]]
    """Families of dtypes (see :class:`~skdpgen.data.dtypes.ColumnDtype`) that can hold it."""

    def __post_init__(self) -> None:
        if not isinstance(self.metadata, Mapping):
            raise SchemaError("metadata must be a mapping.")
        object.__setattr__(self, "metadata", copy.deepcopy(dict(self.metadata)))

    @property
    def undeclared(self) -> str | None:
        """The entry that is needed but left open (``"bounds"``, ``"values"``), or None."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary, without the entries that equal their default.

        Returns
        -------
        dict
            What :func:`column_from_dict` reads.

        Examples
        --------
        >>> Numeric(bounds=(0, 99), dtype="int").to_dict()
        {'kind': 'numeric', 'bounds': [0, 99], 'dtype': 'int'}
        """
        result: dict[str, Any] = {"kind": self.kind}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "metadata" or (value == f.default and f.name != "dtype"):
                continue
            result[f.name] = list(value) if isinstance(value, tuple) else value
        extra = {k: v for k, v in self.metadata.items() if k not in result}
        return {**result, **copy.deepcopy(extra)}


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
    metadata : mapping, optional
        See :class:`Column`.

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

    kind: ClassVar[str] = "numeric"
    families: ClassVar[frozenset[str]] = frozenset({"int", "float", "bool", "text", "object"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype not in ("int", "float"):
            raise SchemaError("dtype must be 'int' or 'float'.")
        if self.scale not in ("linear", "log1p"):
            raise SchemaError("scale must be 'linear' or 'log1p'.")
        object.__setattr__(self, "missing", _plain_missing(self.missing))
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._checked_bounds(self.bounds))

    def _checked_bounds(self, bounds: Any) -> tuple[int | float, int | float]:
        pair = _plain_tuple(bounds, "bounds")
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


@dataclass(frozen=True)
class Categorical(Column):
    """One of a list of values without order.

    Parameters
    ----------
    values : sequence or None
        The values: texts, finite numbers or booleans. None means that the list is not known
        yet: such a column cannot be encoded.
    other : value, optional
        Stands for every value that is not in the list. It may be one of ``values``; else it is
        one more category, after them.
    missing : bool or sequence, default=False
        As for :class:`Numeric`. Missing is a category of its own.
    metadata : mapping, optional
        See :class:`Column`.

    Raises
    ------
    SchemaError
        If the list is empty, if a value is not a text, a finite number or a boolean, if two
        values are equal as numbers or as texts, or if a value is also a token for missing.

    Examples
    --------
    >>> Categorical(["red", "green"], other="another color").categories
    ('red', 'green', 'another color')
    """

    values: tuple[Value, ...] | None
    other: Value | None = None
    missing: Missing = False

    kind: ClassVar[str] = "categorical"
    families: ClassVar[frozenset[str]] = frozenset(
        {"int", "float", "bool", "text", "object", "category"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "missing", _plain_missing(self.missing))
        if self.other is not None:
            object.__setattr__(self, "other", _plain(self.other, "other"))
        if self.values is None:
            return
        object.__setattr__(self, "values", _plain_tuple(self.values, "values"))
        if not self.values:
            raise SchemaError("values must not be empty.")
        _check_distinct(self.categories)
        tokens = self.missing if isinstance(self.missing, tuple) else ()
        if {str(t) for t in tokens} & {str(v) for v in self.categories}:
            raise SchemaError("a value is also declared to mean missing.")

    @property
    def categories(self) -> tuple[Value, ...]:
        """All values that can come out: ``values``, then ``other`` if it is not among them.

        Raises
        ------
        SchemaError
            If ``values`` is None.
        """
        if self.values is None:
            raise SchemaError("values are not declared.")
        if self.other is None or self.other in self.values:
            return self.values
        return (*self.values, self.other)

    @property
    def undeclared(self) -> str | None:  # noqa: D102
        return "values" if self.values is None else None


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of a list of values in order, smallest first.

    The parameters are those of :class:`Categorical`. The order matters where a column is scaled
    by rank (the encoder ``"scale"``); the default encoding is one-hot.

    Examples
    --------
    >>> Ordinal(["low", "high"]).to_dict()
    {'kind': 'ordinal', 'values': ['low', 'high']}
    """

    kind: ClassVar[str] = "ordinal"


@dataclass(frozen=True)
class Boolean(Column):
    """True or false, in a column of booleans, of 0 and 1, or of the texts "True" and "False".

    Parameters
    ----------
    missing : bool or sequence, default=False
        As for :class:`Numeric`.
    metadata : mapping, optional
        See :class:`Column`.

    Examples
    --------
    >>> Boolean().categories
    (False, True)
    """

    missing: Missing = False

    kind: ClassVar[str] = "boolean"
    families: ClassVar[frozenset[str]] = Categorical.families

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "missing", _plain_missing(self.missing))

    @property
    def categories(self) -> tuple[Value, ...]:
        """The two values, ``(False, True)``."""
        return (False, True)

    @property
    def other(self) -> None:
        """No value stands for unknown ones."""
        return None


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
        As for :class:`Numeric`.
    metadata : mapping, optional
        See :class:`Column`.

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
        object.__setattr__(self, "missing", _plain_missing(self.missing))
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


@dataclass(frozen=True)
class Id(Column):
    """A key without meaning (a name, a number of a record); surrogate keys come out.

    No encoder and no mechanism ever sees its cells.

    Examples
    --------
    >>> Id().to_dict()
    {'kind': 'id'}
    """

    kind: ClassVar[str] = "id"
    families: ClassVar[frozenset[str]] = frozenset({"int", "float", "text", "object", "category"})


@dataclass(frozen=True)
class Text(Column):
    """Free text; a public constant comes out.

    No encoder and no mechanism ever sees its cells.

    Parameters
    ----------
    constant : str, default=""
        What stands in every synthetic row.
    metadata : mapping, optional
        See :class:`Column`.

    Examples
    --------
    >>> Text(constant="(removed)").to_dict()
    {'kind': 'text', 'constant': '(removed)'}
    """

    constant: str = ""

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"text", "object", "category"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.constant, str):
            raise SchemaError("constant must be a text.")


_KINDS: dict[str, type[Column]] = {
    "numeric": Numeric,
    "ordinal": Ordinal,
    "categorical": Categorical,
    "label": Categorical,
    "boolean": Boolean,
    "datetime": Datetime,
    "id": Id,
    "text": Text,
}


def column_from_dict(entry: Mapping[str, Any]) -> Column:
    """Read one column from its JSON form.

    Parameters
    ----------
    entry : mapping
        ``kind`` ("numeric", "ordinal", "categorical", "label", "boolean", "datetime", "id" or
        "text") and the parameters of that kind; other entries become ``metadata``. A label is a
        categorical column that is the target, which is for :class:`~skdpgen.data.schema.Schema`
        to know.

    Returns
    -------
    Column
        The specification.

    Raises
    ------
    SchemaError
        If the kind is unknown or a rule of the kind is broken.

    Examples
    --------
    >>> column_from_dict({"kind": "ordinal", "values": [1, 2], "note": "a grade"})
    Ordinal(metadata={'note': 'a grade'}, values=(1, 2), other=None, missing=False)
    """
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        raise SchemaError("a column needs an entry 'kind'.")
    kind = _KINDS.get(entry["kind"])
    if kind is None:
        raise SchemaError(f"unknown kind {entry['kind']!r}; there are {', '.join(sorted(_KINDS))}.")
    known = {f.name for f in fields(kind)} - {"metadata"}
    # Bounds and values may be left open in a file; in Python they have to be named.
    arguments: dict[str, Any] = {f.name: None for f in fields(kind) if _is_required(f)}
    arguments.update((k, v) for k, v in entry.items() if k in known)
    extra = {k: v for k, v in entry.items() if k not in known and k != "kind"}
    return kind(**arguments, metadata=extra)


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def declaration_hint(name: Hashable, entry: str) -> str:
    """The line that would declare a missing entry of a column.

    Parameters
    ----------
    name : hashable
        Name of the column.
    entry : {"bounds", "values"}
        What is not declared.

    Examples
    --------
    >>> declaration_hint("age", "bounds")
    "schema.with_columns({'age': {'bounds': (LOWER, UPPER)}})"
    """
    example = "(LOWER, UPPER)" if entry == "bounds" else "[VALUE, ...]"
    return f"schema.with_columns({{{name!r}: {{{entry!r}: {example}}}}})"
