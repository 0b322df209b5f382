"""What is publicly known about a column: the base class and the kinds that list values.

A column specification is public knowledge. It is written down by a person or read from a
codebook, never measured on private rows, so its contents may stand in error messages.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..exceptions import SchemaError

__all__ = [
    "MAX_VALUES",
    "Boolean",
    "Categorical",
    "Column",
    "Missing",
    "Ordinal",
    "Value",
    "declaration_hint",
    "plain_missing",
    "plain_tuple",
    "plain_value",
]

MAX_VALUES = 10_000
"""Most values that one column may declare; more would need a matrix nobody could hold."""

Value = str | int | float | bool
Missing = bool | tuple[Value, ...]


def plain_value(value: Any, what: str) -> Value:
    """Turn a numpy scalar into a Python one; refuse what JSON could not hold.

    Parameters
    ----------
    value : object
        A text, a finite number or a boolean, of Python or of numpy.
    what : str
        How the error calls it.

    Raises
    ------
    SchemaError
        If it is anything else.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | float):
        raise SchemaError(f"{what} must be texts, numbers or booleans, not {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{what} must be finite; a missing value is declared by 'missing'.")
    return value


def plain_tuple(values: Any, what: str) -> tuple[Value, ...]:
    """A sequence as a tuple of plain values; see :func:`plain_value`.

    Raises
    ------
    SchemaError
        If it is no sequence (a text is none), or if one of its values is refused.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise SchemaError(f"{what} must be a list.")
    return tuple(plain_value(v, what) for v in values)


def plain_missing(missing: Any) -> Missing:
    """``True``, ``False`` or the tuple of tokens; no token and ``False`` are the same.

    Raises
    ------
    SchemaError
        If it is neither None, a boolean nor a sequence of plain values.
    """
    if missing is None or isinstance(missing, bool):
        return bool(missing)
    return plain_tuple(missing, "missing") or False


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
            What :func:`~skdpgen.data.column_json.column_from_dict` reads.

        Examples
        --------
        >>> from skdpgen.data import Numeric
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
        As for :class:`~skdpgen.data.Numeric`. Missing is a category of its own.
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
        object.__setattr__(self, "missing", plain_missing(self.missing))
        if self.other is not None:
            object.__setattr__(self, "other", plain_value(self.other, "other"))
        if self.values is None:
            return
        object.__setattr__(self, "values", plain_tuple(self.values, "values"))
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

    Parameters
    ----------
    values, other, missing
        As for :class:`Categorical`.
    encoding : {"onehot", "scale"}, default="onehot"
        Whether a value is one feature of its own, or all are one number by rank, which is where
        their order matters.
    metadata : mapping, optional
        As for :class:`Categorical`.

    Examples
    --------
    >>> Ordinal(["low", "high"]).to_dict()
    {'kind': 'ordinal', 'values': ['low', 'high']}
    """

    encoding: str = "onehot"

    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoding not in ("onehot", "scale"):
            raise SchemaError("encoding must be 'onehot' or 'scale'.")


@dataclass(frozen=True)
class Boolean(Column):
    """True or false, in a column of booleans, of 0 and 1, or of the texts "True" and "False".

    Parameters
    ----------
    missing : bool or sequence, default=False
        As for :class:`~skdpgen.data.Numeric`.
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
        object.__setattr__(self, "missing", plain_missing(self.missing))

    @property
    def categories(self) -> tuple[Value, ...]:
        """The two values, ``(False, True)``."""
        return (False, True)

    @property
    def other(self) -> None:
        """No value stands for unknown ones."""
        return None


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
