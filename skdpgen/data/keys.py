"""What categories are counted by: a key for each cell, a function of that cell alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import read_cells, read_levels, read_numbers
from .categories import is_null
from .cells import canonical_number, number_of
from .columns import Categorical, Ordinal, Value
from .dtypes import ColumnDtype

__all__ = ["KeyReader"]

# A key that is no text, no number and not None: the mechanism counts no such thing.
_NO_KEY: Any = ()
_SPARE = "other", ""


@dataclass(frozen=True)
class KeyReader:
    """Keys of cells, and the categories that released keys stand for.

    Parameters
    ----------
    column : Categorical
        Whose values are to be found.
    dtype : ColumnDtype
        Of the cells.
    count_missing : bool
        Whether missing cells have the key None, for a column of which nobody said whether cells may
        be missing. Else they have none.

    Examples
    --------
    >>> from skdpgen.data.dtypes import describe_dtype
    >>> cells = np.array(["red", "blue", "red", None], dtype=object)
    >>> reader = KeyReader(Categorical(None), describe_dtype(cells.dtype, "numpy"), True)
    >>> reader.keys(cells)
    (array([0, 1, 0, 2]), ('red', 'blue', None))
    >>> reader.declared(["blue", "red"]).categories
    ('blue', 'red', 'other')
    """

    column: Categorical
    dtype: ColumnDtype
    count_missing: bool

    def keys(self, column: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
        """The key of each cell.

        Parameters
        ----------
        column : native column of n cells

        Returns
        -------
        codes : ndarray of int64, shape (n,)
            Position of each cell's key; -1 for a cell without one.
        keys : tuple
            Texts, numbers, None for missing cells, and anything else for what can't be a category.
        """
        dtype = self.dtype
        if dtype.family in ("int", "float", "bool"):
            values, nulls = read_numbers(column, dtype)
            if values.dtype.kind == "b":
                values = values.astype(np.uint8)
            found, codes = np.unique(np.where(nulls, 0, values), return_inverse=True)
            keys = [self._key_of(number) for number in found.tolist()]
            codes = np.where(nulls, len(keys), codes.reshape(-1))
            return codes.astype(np.int64), (*keys, self._missing)
        if dtype.native is None:
            positions, levels = read_levels(column)
            keys = [self._key_of(level) for level in levels]
            return np.where(positions < 0, len(keys), positions), (*keys, self._missing)
        seen: dict[Any, int] = {}
        cells = read_cells(column, dtype)
        found_codes = [seen.setdefault(self._key_of(cell), len(seen)) for cell in cells]
        return np.array(found_codes, dtype=np.int64), tuple(seen)

    @property
    def _missing(self) -> Any:
        return None if self.count_missing else _NO_KEY

    @property
    def _tokens(self) -> tuple[Value, ...]:
        return self.column.missing if isinstance(self.column.missing, tuple) else ()

    def _key_of(self, cell: Any) -> Any:
        """A text, a number, None or no key; of each class by its own methods only."""
        kind = type(cell)
        if issubclass(kind, str):
            text = str.__str__(cell)
            return _NO_KEY if text in self._token_texts else text
        number = number_of(cell)
        if number is None:
            return self._missing if is_null(cell) else _NO_KEY
        return _NO_KEY if number in self._token_numbers else number

    @property
    def _token_texts(self) -> set[str]:
        return {str(token) for token in self._tokens}

    @property
    def _token_numbers(self) -> set[int | float]:
        numbers = [canonical_number(t) if isinstance(t, str) else t for t in self._tokens]
        return {number for number in numbers if number is not None}

    def declared(self, keys: Sequence[Value | None], is_target: bool = False) -> Categorical:
        """The column with the categories that keys stand for.

        Parameters
        ----------
        keys : sequence
            Released keys, in order, without None.
        is_target : bool, default=False
            A target may have a single class, while a feature gets two categories at least: a table
            without any feature can't be encoded.

        Returns
        -------
        Categorical
            With ``values``; what isn't among them is "other" in a column of texts, else missing
            where the dtype can hold that, else the first value.
        """
        values = self._distinct([key for key in keys if key is not None])
        numeric = self.dtype.family in ("int", "float", "bool")
        all_texts = not numeric and all(isinstance(value, str) for value in values)
        other, missing = self.column.other, self.column.missing or None in keys
        if other is None and all_texts and not isinstance(self.column, Ordinal):
            other = self._spare_text(())
        elif other is None and self.dtype.nullable:
            missing = missing or True
        if not values:
            values = [other if other is not None else 0 if numeric else self._spare_text(())]
        found = replace(self.column, values=tuple(values), other=other, missing=missing)
        if is_target or len(found.categories) > 1 or found.missing:
            return found
        if self.dtype.nullable:
            return replace(found, missing=True)
        spare = int(0 in values) if numeric else self._spare_text(found.categories)
        return replace(found, values=(*values, spare))

    def _distinct(self, keys: list[Value]) -> list[Value]:
        """Keys that differ as texts too: of the number 1 and the text "1" the text stays."""
        taken = {key for key in keys if isinstance(key, str)}
        other = self.column.other
        kept = [key for key in keys if isinstance(key, str) or str(key) not in taken]
        return [key for key in kept if other is None or key == other or str(key) != str(other)]

    def _spare_text(self, taken: Sequence[Value]) -> str:
        """A public text that means nothing else."""
        used = {str(text) for text in (*self._tokens, *taken)}
        texts = itertools.chain(_SPARE, map("{} others".format, itertools.count(2)))
        return next(text for text in texts if text not in used)
