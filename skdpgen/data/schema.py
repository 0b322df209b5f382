"""The public description of a table: which columns it has and what is known about them."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..exceptions import SchemaError
from .column_json import named_column
from .columns import Column
from .opaque_columns import Id, Text
from .schema_json import read_json, schema_arguments, schema_to_dict, write_json

if TYPE_CHECKING:
    from .dtypes import ColumnDtype

__all__ = ["Schema"]


class Schema:
    """What is publicly known about a table.

    A schema is written down by a person or read from a codebook; it never comes from private
    rows. What it says may be published.

    Parameters
    ----------
    columns : mapping of name to Column
        In the order of the encoded features. A column may also be given by its JSON form.
    target : hashable, optional
        Name of the column to be predicted; it must be one of ``columns``.
    default : Column, optional
        Describes every column of a frame that is not in ``columns``: the pixels of an image, or
        all columns of an array.
    notes : str, default=""
        For people.
    image_shape : (int, int), optional
        Height and width, if the columns are pixels in row-major order.
    class_names : sequence of str, optional
        Names of the target's values, for plots.
    metadata : mapping, optional
        Further entries of the JSON form, kept and written back.

    Raises
    ------
    SchemaError
        If an entry breaks a rule; the message names the column.

    Examples
    --------
    >>> from skdpgen.data import Categorical, Numeric, Schema
    >>> schema = Schema(
    ...     {"age": Numeric((17, 90), "int"), "income": Categorical(["low", "high"])},
    ...     target="income",
    ... )
    >>> schema
    Schema(2 columns, target='income')
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    def __init__(
        self,
        columns: Mapping[Hashable, Column | Mapping[str, Any]],
        target: Hashable = None,
        default: Column | Mapping[str, Any] | None = None,
        notes: str = "",
        image_shape: Sequence[int] | None = None,
        class_names: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError("columns must be a mapping of names to columns.")
        self._columns = {name: named_column(name, entry) for name, entry in columns.items()}
        self.default = None if default is None else named_column("default", default)
        self.target = target
        self.notes = notes
        self.image_shape = _checked_shape(image_shape)
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self.metadata = copy.deepcopy(dict(metadata or {}))
        if target is not None:
            if target not in self._columns:
                raise SchemaError(f"the target {target!r} is not among the columns.")
            if isinstance(self._columns[target], Id | Text):
                raise SchemaError(f"the target {target!r} cannot be a key or free text.")

    @property
    def columns(self) -> dict[Hashable, Column]:
        """The columns by name, in order (a copy)."""
        return dict(self._columns)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target!r}"
        default = "" if self.default is None else f", default={self.default.kind}"
        return f"Schema({len(self._columns)} columns{target}{default})"

    def _state(self) -> tuple[Any, ...]:
        columns = list(self._columns.items())  # a list: the order counts
        entries = (self.target, self.default, self.notes, self.image_shape, self.class_names)
        return (columns, *entries, self.metadata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]

    # -- JSON ------------------------------------------------------------------------------

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a JSON file.

        Parameters
        ----------
        path : path
            The file; see :meth:`from_dict` for its form.

        Returns
        -------
        Schema
            What it says.

        Raises
        ------
        SchemaError
            If it is no JSON object or breaks a rule.
        """
        return cls.from_dict(read_json(path))

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Schema:
        """Read a schema from its JSON form.

        Parameters
        ----------
        entries : mapping
            ``columns`` maps names to columns, or is a list of columns that each have a ``name``
            (for integer names, which JSON cannot have as keys). A column has a ``kind`` and the
            entries of that kind. A column with ``repeat`` and ``prefix`` stands for so many
            columns, called prefix0, prefix1, ... The one column of the kind ``label`` is the
            target. ``target``, ``default``, ``notes``, ``image_shape`` and ``class_names`` are
            optional; other entries are kept as ``metadata``.

        Returns
        -------
        Schema
            What it says.

        Raises
        ------
        SchemaError
            If a rule is broken; the message names the column.

        Examples
        --------
        >>> pixels = {"kind": "numeric", "bounds": [0, 255], "repeat": 4, "prefix": "p"}
        >>> list(Schema.from_dict({"columns": {"pixels": pixels}}).columns)
        ['p0', 'p1', 'p2', 'p3']
        """
        return cls(**schema_arguments(entries))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form.

        Returns
        -------
        dict
            What :meth:`from_dict` reads, made of JSON types only.

        Raises
        ------
        SchemaError
            If a column name is neither a text nor an integer.
        """
        return schema_to_dict(self)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            The file; it is replaced if it exists.
        """
        write_json(path, self.to_dict())

    # -- changed copies --------------------------------------------------------------------

    def _copy(self, columns: Mapping[Hashable, Any], target: Hashable) -> Schema:
        return Schema(
            columns,
            target,
            self.default,
            self.notes,
            self.image_shape,
            self.class_names,
            self.metadata,
        )

    def with_columns(self, changes: Mapping[Hashable, Column | Mapping[str, Any]]) -> Schema:
        """A copy with columns changed or added.

        Parameters
        ----------
        changes : mapping of name to Column or mapping
            A mapping changes these entries of the column and keeps the others; for a new column
            it must be complete.

        Returns
        -------
        Schema
            The copy; this schema stays as it is.

        Raises
        ------
        SchemaError
            If a rule is broken; the message names the column.

        Examples
        --------
        >>> schema = Schema({"gain": {"kind": "numeric", "bounds": [0, 99999]}})
        >>> schema.with_columns({"gain": {"scale": "log1p"}}).columns["gain"].scale
        'log1p'
        """
        columns: dict[Hashable, Any] = dict(self._columns)
        for name, change in changes.items():
            if isinstance(change, Mapping) and name in columns and "kind" not in change:
                change = {**columns[name].to_dict(), **change}
            columns[name] = change
        return self._copy(columns, self.target)

    def drop(self, names: Iterable[Hashable]) -> Schema:
        """A copy without these columns; without a target if it is one of them.

        Parameters
        ----------
        names : iterable of hashable
            Columns of the schema.

        Returns
        -------
        Schema
            The copy; this schema stays as it is.

        Raises
        ------
        SchemaError
            If there is no such column.
        """
        dropped = [names] if isinstance(names, str) else list(names)
        for name in dropped:
            if name not in self._columns:
                raise SchemaError(f"the schema has no column {name!r}.")
        kept = {n: c for n, c in self._columns.items() if n not in dropped}
        return self._copy(kept, None if self.target in dropped else self.target)

    def without_target(self) -> Schema:
        """A copy without the target column; a copy of the whole where there is no target.

        Returns
        -------
        Schema
            The copy.
        """
        return self.drop([] if self.target is None else [self.target])

    def unlabeled(self) -> Schema:
        """A copy with the same columns, of which none is the target.

        Returns
        -------
        Schema
            The copy.

        Examples
        --------
        >>> schema = Schema({"y": {"kind": "label", "values": ["no", "yes"]}}, target="y")
        >>> list(schema.unlabeled().columns), schema.unlabeled().target
        (['y'], None)
        """
        return self._copy(self._columns, None)

    # -- frames ----------------------------------------------------------------------------

    @classmethod
    def from_dtypes(
        cls,
        frame: Any,
        *,
        trust_categories: bool = False,
        bounds: Mapping[Hashable, Sequence[Any]] | None = None,
        values: Mapping[Hashable, Sequence[Any]] | None = None,
        missing: Sequence[Hashable] | None = None,
        target: Hashable = None,
        leave_open: bool = False,
    ) -> Schema:
        """Make a schema from the dtypes of a frame and from what you declare beside them.

        Booleans and polars Enums are declared by their dtype. Everything else needs ``bounds``
        or ``values``: cells are never looked at.

        Parameters
        ----------
        frame : DataFrame or ndarray
            Only names and dtypes are read.
        trust_categories : bool, default=False
            Whether the category list of a pandas ``category`` column is public.
            ``astype("category")`` reads it off the rows, so it is private unless you have
            declared it.
        bounds : mapping of name to (lower, upper), optional
            For numbers and datetimes.
        values : mapping of name to sequence, optional
            For categories, of any dtype.
        missing : sequence of names, optional
            Columns that may have missing values. By default those of the nullable dtypes of
            pandas (``Int64``, ``boolean``, ...).
        target : hashable, optional
            Name of the column to be predicted.
        leave_open : bool, default=False
            Whether to leave open what isn't declared, for a synthesizer to learn with its
            ``domain_budget``, instead of refusing it.

        Returns
        -------
        Schema
            With one column for each column of the frame.

        Raises
        ------
        SchemaError
            If a column is left without bounds or values; the message shows the lines that are
            missing.
        InputError
            If a dtype is not supported or a name is not in the frame.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [33, 51], "smoker": [True, False]})
        >>> Schema.from_dtypes(frame, bounds={"age": (18, 99)}).columns["smoker"]
        Boolean(metadata={}, missing=False)
        >>> Schema.from_dtypes(frame)
        Traceback (most recent call last):
            ...
        skdpgen.exceptions.SchemaError: from_dtypes needs more public facts:
            bounds={'age': (LOWER, UPPER)}
        """
        from .inference import columns_from_dtypes

        columns = columns_from_dtypes(
            frame, trust_categories, bounds or {}, values or {}, missing, leave_open, target
        )
        return cls(columns, target=target)

    @staticmethod
    def draft(frame: Any, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Start a schema file: names, dtypes and what is left to declare, nothing else.

        Parameters
        ----------
        frame : DataFrame or ndarray
            Only names and dtypes are read.
        path : path, optional
            A JSON file to write it to; it must not exist, for it may have been filled in.

        Returns
        -------
        dict
            The JSON form with "TODO" where a fact is missing; :meth:`from_dict` and
            :meth:`from_json` refuse it until every one is filled in.

        Raises
        ------
        SchemaError
            If there is a ``path`` and a column name is neither a text nor an integer.
        FileExistsError
            If the file is there.

        Examples
        --------
        >>> import pandas as pd
        >>> Schema.draft(pd.DataFrame({"age": [33]}))["columns"]["age"]
        {'kind': 'numeric', 'bounds': 'TODO', 'dtype': 'int', 'note': 'int64 in frame'}
        """
        from .inference import draft_entries, write_draft

        entries = draft_entries(frame)
        if path is not None:
            if os.path.lexists(path):
                raise FileExistsError(f"{os.fspath(path)} exists; a draft doesn't replace it.")
            write_draft(path, entries)
        return entries

    def resolve(self, dtypes: Mapping[Hashable, ColumnDtype]) -> dict[Hashable, Column]:
        """Find the column of every column of a frame, or refuse the frame.

        Parameters
        ----------
        dtypes : mapping of name to ColumnDtype
            The structure of the frame, ``FrameTemplate.from_frame(frame).dtypes``.

        Returns
        -------
        dict of name to Column
            In the order of the encoded features: the columns of the schema, then those that the
            default describes, in the order of the frame.

        Raises
        ------
        InputError
            If the frame lacks a column or has one that the schema does not know, or if a dtype
            cannot hold the kind.
        SchemaError
            If a column has no bounds or values yet.
        """
        from .resolution import resolve_columns

        return resolve_columns(self._columns, self.default, dtypes)


def _checked_shape(shape: Sequence[int] | None) -> tuple[int, int] | None:
    if shape is None:
        return None
    if len(shape) != 2 or any(isinstance(s, bool) or int(s) != s or s < 1 for s in shape):
        raise SchemaError("image_shape must be two positive integers, (height, width).")
    return int(shape[0]), int(shape[1])
