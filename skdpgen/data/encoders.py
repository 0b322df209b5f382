"""The encoder of a column: chosen by its kind, its dtype and nothing else."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from ..exceptions import InputError, SchemaError
from .arrays import build_categories, build_numbers, build_values
from .categories import CategoryEncoder
from .columns import Boolean, Categorical, Column, Ordinal, declaration_hint
from .datetime_columns import Datetime
from .dtypes import ColumnDtype, backend_of, describe_dtype
from .encoder_base import ColumnEncoder
from .numeric_columns import Numeric
from .opaque_columns import Id, Text
from .scaled import RankEncoder, RealEncoder, WholeEncoder
from .times import TimeEncoder

__all__ = ["ENCODINGS", "CategoryEncoder", "ColumnEncoder", "make_encoder"]

ENCODINGS: dict[str, tuple[str, ...]] = {
    "numeric": ("scale", "linear", "log1p"),
    "datetime": ("scale", "linear"),
    "ordinal": ("onehot", "scale", "linear"),
    "categorical": ("onehot",),
    "boolean": ("onehot",),
    "id": (),
    "text": (),
}
"""Encodings that a kind of column can have, its default first. Keys and texts have none."""


class SurrogateEncoder(ColumnEncoder):
    """Encoder of a key: no features; keys 0 .. n - 1 (or ``id-0000000``, ...) come out.

    Surrogate keys are unique within a table as long as the dtype can count that far.
    """

    column: Id

    def _encode(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        return np.empty((len(column), 0))

    def decode(self, features: np.ndarray) -> Any:
        positions = np.arange(len(features))
        if self.dtype.family in ("int", "float"):
            most = min(self.dtype.limits[1], 2**63 - 2)
            return build_numbers(self.dtype, positions % (most + 1), None)
        keys = [f"id-{i:07d}" for i in positions]
        if self.dtype.native is None:
            return build_categories(self.dtype, keys, positions)
        return build_values(self.dtype, keys)


class ConstantEncoder(ColumnEncoder):
    """Encoder of free text: no features; the declared constant comes out."""

    column: Text

    def _encode(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        return np.empty((len(column), 0))

    def decode(self, features: np.ndarray) -> Any:
        codes = np.zeros(len(features), dtype=np.int64)
        return build_categories(self.dtype, (self.column.constant,), codes)


def make_encoder(
    column: Column, dtype: Any, name: Hashable = "column", encoding: str = "auto"
) -> ColumnEncoder:
    """Make the encoder of a column.

    Parameters
    ----------
    column : Column
        What is publicly known; bounds or values must be declared.
    dtype : ColumnDtype, or a native column
        The dtype that decoded columns shall have; of a native column only the dtype is read.
    name : hashable, default="column"
        Name of the column, for messages.
    encoding : {"auto", "scale", "linear", "log1p", "onehot"}, default="auto"
        - "scale": one number in [0, 1], on the scale that the schema declares; an ordinal
          column by rank.
        - "linear", "log1p": one number, on this scale whatever the schema declares.
        - "onehot": one feature for each value.
        - "auto": "scale" for numbers and times, what the schema declares for ordinal columns,
          "onehot" for the rest.

    Returns
    -------
    ColumnEncoder
        With ``encode(column)``, ``decode(features)``, ``width``, ``numeric``, ``groups``. A
        one-hot encoder also has ``codes(column)``, ``decode_codes(codes)`` and ``n_codes``.

    Raises
    ------
    SchemaError
        If the column lacks bounds or values, or cannot be encoded like this.
    InputError
        If the dtype cannot hold the column.

    Examples
    --------
    >>> import pandas as pd
    >>> answers = pd.Series(["no", "yes", None, "maybe"], dtype="string")
    >>> encoder = make_encoder(Categorical(["no", "yes"], missing=True), answers)
    >>> encoder.codes(answers)
    array([0, 1, 2, 2])
    >>> encoder.decode(encoder.encode(answers)).tolist()
    ['no', 'yes', <NA>, <NA>]
    """
    if not isinstance(dtype, ColumnDtype):
        dtype = describe_dtype(dtype.dtype, backend_of(dtype), name)
    if column.undeclared is not None:
        raise SchemaError(
            f"column {name!r} has no {column.undeclared}. Declare them: "
            f"{declaration_hint(name, column.undeclared)}"
        )
    known = ENCODINGS[column.kind]
    if encoding == "auto":
        encoding = getattr(column, "encoding", known[0] if known else "none")
    elif encoding not in known:
        raise SchemaError(
            f"column {name!r} of kind {column.kind} has no encoding {encoding!r}; it has: "
            f"{', '.join(known) or 'none, its cells are never read'}."
        )
    if isinstance(column, Numeric):
        if encoding != "scale":
            column = _rescaled(column, encoding, name)
        whole = column.dtype == "int" or dtype.family in ("int", "bool")
        return (WholeEncoder if whole else RealEncoder)(column, dtype, name)
    if isinstance(column, Datetime):
        return TimeEncoder(column, dtype, name)
    if isinstance(column, Ordinal):
        # The encoder's column says how it is encoded, as that of a number on another scale does.
        column = replace(column, encoding="onehot" if encoding == "onehot" else "scale")
        if encoding != "onehot":
            return RankEncoder(column, dtype, name)
    if isinstance(column, Categorical | Boolean):
        return CategoryEncoder(column, dtype, name)
    if dtype.declared_levels is not None:
        raise InputError(f"column {name!r}: an Enum cannot hold new texts; drop the column.")
    if isinstance(column, Id):
        return SurrogateEncoder(column, dtype, name)
    assert isinstance(column, Text)
    return ConstantEncoder(column, dtype, name)


def _rescaled(column: Numeric, scale: str, name: Hashable) -> Numeric:
    try:
        return replace(column, scale=scale)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
