"""Between frames and encoded rows: the preprocessor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InputError, SchemaError
from ..layout import EncodedLayout
from .columns import Column
from .dtypes import ColumnDtype
from .encoders import ColumnEncoder, make_encoder
from .frames import FrameTemplate, as_table, column_at, n_rows
from .opaque_columns import Id, Text
from .scaled import NumberEncoder
from .schema import Schema

__all__ = ["TabularPreprocessor", "template_of"]

# Cells of a block that is encoded at once: its temporary arrays stay in the processor's cache.
_BLOCK_CELLS = 2**17


def template_of(table: Any, schema: Schema) -> FrameTemplate:
    """Read the structure of a table; an array gets integer names where the schema has some.

    Parameters
    ----------
    table : DataFrame or ndarray of shape (n, k)
        Only names and dtypes are looked at.
    schema : Schema
        Whose names count.

    Returns
    -------
    FrameTemplate
        Its structure.

    Examples
    --------
    >>> schema = Schema({0: {"kind": "numeric", "bounds": [0, 1]}})
    >>> template_of(np.zeros((2, 1)), schema).names
    (0,)
    """
    template = FrameTemplate.from_frame(table)
    if template.backend == "numpy" and any(isinstance(n, int) for n in schema.columns):
        return FrameTemplate("numpy", dict(enumerate(template.dtypes.values())))
    return template


@dataclass(frozen=True)
class _Run:
    """Consecutive columns of one specification and dtype, encoded together where possible."""

    names: tuple[Hashable, ...]
    encoder: ColumnEncoder
    start: int  # the first of its features

    @property
    def is_block(self) -> bool:
        encoder = self.encoder
        single = encoder.width == 1 and not encoder.nullable
        return single and isinstance(encoder, NumberEncoder) and encoder.dtype.is_plain


class TabularPreprocessor(TransformerMixin, BaseEstimator):
    """Encode tables as rows of numbers in [0, 1], and decode such rows.

    Numbers and times are scaled by public bounds, categories are one-hot, keys and free text
    are not encoded. What the preprocessor does to a cell depends on that cell and on public
    facts only: ``fit`` reads names and dtypes and no cell, so encoding costs no privacy.
    Every cell maps into the domain without an error or a warning, since whether that was
    needed is private: numbers are clipped, what cannot be read counts as missing where that is
    declared and as the middle of the bounds where not, unknown categories become ``other``,
    else missing, else the first declared value.

    Parameters
    ----------
    transformers : "auto" or list of (name, encoding, columns), default="auto"
        How columns are encoded, and in which order, in the manner of scikit-learn's
        ``ColumnTransformer``. ``encoding`` is one of

        - "scale": one number in [0, 1] on the scale that the schema declares; ordinal columns
          by rank;
        - "linear", "log1p": one number in [0, 1] on this scale;
        - "onehot": one feature for each value;
        - "drop": not encoded, and absent from what :meth:`inverse_transform` gives.

        Keys and free text need not be listed; all other columns must be. "auto" scales numbers
        and times, encodes ordinal columns as the schema declares and makes everything else
        one-hot, in the order of the schema.
    schema : Schema
        What is publicly known about the columns. It has no usable default: see
        ``Schema.from_json`` and ``Schema.from_dtypes``.
    exclude_target : bool, default=False
        Whether to leave the schema's target alone. It may then be absent from a table; if it is
        there, it is neither encoded nor decoded.

    Attributes
    ----------
    layout_ : EncodedLayout
        Where numbers and one-hot groups stand in an encoded row. It has the schema's
        ``image_shape`` if all encoded columns are its pixels.
    encoders_ : dict of name to ColumnEncoder
        In the order of the encoded features.
    template_ : FrameTemplate
        Names, dtypes and backend of the fitted table.
    n_features_in_ : int
        Number of columns of the fitted table.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Their names; only if they are all texts.

    See Also
    --------
    skdpgen.Schema : The public description of a table.

    Notes
    -----
    Decoding gives back ints, booleans, texts, categories and times exactly, and floats of up to
    about 13 significant digits. A matrix that no table encodes to, such as a generator's output,
    is decoded as well: numbers are clipped, of each one-hot group the largest entry counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.data import Categorical, Numeric, Schema, TabularPreprocessor
    >>> schema = Schema(
    ...     {"age": Numeric((0, 100), "int"), "color": Categorical(["red", "blue"], missing=True)}
    ... )
    >>> frame = pd.DataFrame({"age": [25, 130], "color": ["blue", None]})
    >>> preprocessor = TabularPreprocessor.from_schema(schema).fit(frame)
    >>> rows = preprocessor.transform(frame)
    >>> rows
    array([[0.25, 0.  , 1.  , 0.  ],
           [1.  , 0.  , 0.  , 1.  ]])
    >>> preprocessor.get_feature_names_out().tolist()
    ['age', 'color_red', 'color_blue', 'color_<missing>']
    >>> preprocessor.inverse_transform(rows)
       age color
    0   25  blue
    1  100   NaN
    """

    layout_: EncodedLayout
    encoders_: dict[Hashable, ColumnEncoder]
    template_: FrameTemplate
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        transformers: str | Sequence[tuple[str, str, Any]] = "auto",
        *,
        schema: Schema | None = None,
        exclude_target: bool = False,
    ) -> None:
        self.transformers = transformers
        self.schema = schema
        self.exclude_target = exclude_target

    @classmethod
    def from_schema(cls, schema: Schema, *, exclude_target: bool = False) -> TabularPreprocessor:
        """Make a preprocessor that encodes every column by its kind.

        Parameters
        ----------
        schema : Schema
            What is publicly known about the columns.
        exclude_target : bool, default=False
            Whether to leave the schema's target alone.

        Returns
        -------
        TabularPreprocessor
            Not fitted yet.
        """
        return cls("auto", schema=schema, exclude_target=exclude_target)

    # -- fitting: names and dtypes only ------------------------------------------------------

    def fit(self, X: Any, y: object = None) -> TabularPreprocessor:
        """Read the names and dtypes of a table; no cell.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            A table of the schema's columns, with a row. Columns of an array are called
            ``x0``, ``x1``, ... or, where the schema has integer names, 0, 1, ...
        y : object
            Ignored.

        Returns
        -------
        TabularPreprocessor
            This preprocessor.

        Raises
        ------
        SchemaError
            If there is no schema, if it lacks bounds or values, or if ``transformers`` does not
            fit it.
        InputError
            If the table has no row, or its names or dtypes do not fit the schema.
        """
        table = as_table(X)
        if n_rows(table) == 0:
            raise InputError("found 0 sample(s): the table must have a row, a minimum of 1.")
        return self.fit_structure(table)

    def fit_structure(self, X: Any) -> TabularPreprocessor:
        """What :meth:`fit` does, for a table that may have no rows.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            As for :meth:`fit`.

        Returns
        -------
        TabularPreprocessor
            This preprocessor.
        """
        if not isinstance(self.schema, Schema):
            raise SchemaError(
                "TabularPreprocessor needs a schema: TabularPreprocessor.from_schema("
                "Schema.from_json(path)), or Schema.from_dtypes(frame, bounds=..., values=...)."
            )
        table = as_table(X)
        template = template_of(table, self.schema)
        kept = self._without_target(template)
        schema = self.schema.without_target() if self.exclude_target else self.schema
        columns = schema.resolve(kept.dtypes)
        if not columns:
            raise InputError(
                "found 0 feature(s) (shape=(, 0)) while a minimum of 1 is required: the table has "
                "no columns."
            )
        encoders = {
            name: make_encoder(columns[name], kept.dtypes[name], name, encoding)
            for name, encoding in self._encodings(columns).items()
        }
        self.template_ = template
        self.encoders_ = encoders
        self._runs = _find_runs(encoders, kept.names)
        self.layout_ = _layout(encoders, schema.image_shape)
        self.n_features_in_ = len(template.names)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if template.backend != "numpy" and all(isinstance(n, str) for n in template.names):
            self.feature_names_in_ = np.array(template.names, dtype=object)
        return self

    def _without_target(self, template: FrameTemplate) -> FrameTemplate:
        assert self.schema is not None
        if not self.exclude_target:
            return template
        return template.select([n for n in template.names if n != self.schema.target])

    def _encodings(self, columns: Mapping[Hashable, Column]) -> dict[Hashable, str]:
        """Encoding of each column that is not dropped, in the order of the encoded features."""
        if isinstance(self.transformers, str):
            if self.transformers != "auto":
                raise SchemaError("transformers must be 'auto' or a list of triples.")
            return dict.fromkeys(columns, "auto")
        encodings: dict[Hashable, str] = {}
        for step in self.transformers:
            if not isinstance(step, Sequence) or isinstance(step, str) or len(step) != 3:
                raise SchemaError("transformers must be triples (name, encoding, columns).")
            _, encoding, names = step
            for name in names if isinstance(names, list | tuple | np.ndarray) else [names]:
                if name not in columns:
                    raise InputError(f"transformers name a column {name!r} that is not there.")
                if name in encodings:
                    raise SchemaError(f"transformers name the column {name!r} twice.")
                encodings[name] = encoding
        for name, column in columns.items():
            if name in encodings:
                continue
            if not isinstance(column, Id | Text):
                raise SchemaError(
                    f"transformers do not name the column {name!r}; add it, for instance "
                    f"('dropped', 'drop', [{name!r}])."
                )
            encodings[name] = "auto"
        return {name: encoding for name, encoding in encodings.items() if encoding != "drop"}

    # -- encoding ------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            With the names of the fitted table, in its order. Dtypes may differ as long as they
            can hold the declared kinds.

        Returns
        -------
        ndarray of float64, shape (n, layout_.width)
            In [0, 1]; a frame after ``set_output``. A row is a function of the same row of
            ``X`` and of public facts, to the last bit.

        Raises
        ------
        InputError
            If names or dtypes do not fit.
        """
        check_is_fitted(self, "layout_")
        table = as_table(X)
        assert self.schema is not None
        template = template_of(table, self.schema)
        self._check_names(template)
        rows = np.empty((n_rows(table), self.layout_.width))
        positions = {name: i for i, name in enumerate(template.names)}
        for run in self._runs:
            at = positions[run.names[0]]
            if run.is_block and _is_plain_block(template, run.names):
                _encode_block(run, table, at, rows)
                continue
            for name, start in zip(run.names, _starts(run), strict=True):
                encoder = self.encoders_[name]
                column = column_at(table, positions[name])
                rows[:, start : start + encoder.width] = encoder.encode(column)
        return rows

    def _check_names(self, template: FrameTemplate) -> None:
        expected = self._without_target(self.template_).names
        found = self._without_target(template).names
        if found == expected:
            return
        if len(found) != len(expected):
            raise InputError(
                f"X has {len(found)} features, but {type(self).__name__} is expecting "
                f"{len(expected)} features as input."
            )
        raise InputError(
            "The feature names should match those that were passed during fit, in the same "
            "order: pass X[feature_names_in_]."
        )

    # -- decoding ------------------------------------------------------------------------------

    def decode_columns(self, rows: Any) -> dict[Hashable, Any]:
        """Decode rows to native columns, without putting them together to a frame.

        Parameters
        ----------
        rows : array-like of shape (n, layout_.width)
            Any real numbers, NaN and infinities included.

        Returns
        -------
        dict of name to native column
            Of n cells and the dtypes of the fitted table, inside the schema.

        Raises
        ------
        InputError
            If the width is not that of the layout, or the rows are not real numbers.
        """
        check_is_fitted(self, "layout_")
        rows = self._checked_rows(rows)
        columns: dict[Hashable, Any] = {}
        for run in self._runs:
            if run.is_block:
                columns.update(zip(run.names, _decode_block(run, rows).T, strict=True))
                continue
            for name, start in zip(run.names, _starts(run), strict=True):
                encoder = self.encoders_[name]
                columns[name] = encoder.decode(rows[:, start : start + encoder.width])
        return columns

    def _checked_rows(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows)
        if rows.ndim != 2 or rows.shape[1] != self.layout_.width:
            raise InputError(f"encoded rows must have {self.layout_.width} columns.")
        if rows.dtype.kind not in "biuf":
            raise InputError("encoded rows must be real numbers.")
        return rows.astype(np.float64, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Decode rows to a table.

        Parameters
        ----------
        X : array-like of shape (n, layout_.width)
            Any real numbers, NaN and infinities included.

        Returns
        -------
        DataFrame or ndarray of shape (n, k)
            Of the type and dtypes of the fitted table, with its columns but the dropped ones,
            in its order.

        Raises
        ------
        InputError
            If the width is not that of the layout, or the rows are not real numbers.
        """
        columns = self.decode_columns(X)
        template = self.template_.select(list(columns))
        return template.build(columns, n=len(np.asarray(X)))

    # -- scikit-learn --------------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names of the fitted table if given.

        Returns
        -------
        ndarray of object, shape (layout_.width,)
            ``age`` for a number, ``color_red`` for a value of a category, ``age_<missing>``.
            Should two be equal, the later one gets ``#2``.

        Raises
        ------
        InputError
            If ``input_features`` are not the fitted names.
        """
        check_is_fitted(self, "layout_")
        if input_features is not None:
            given = [str(n) for n in input_features]
            if given != [str(n) for n in self.template_.names]:
                raise InputError("input_features is not equal to feature_names_in_.")
        names = [f"{name}{s}" for name, e in self.encoders_.items() for s in e.suffixes]
        seen: Counter[str] = Counter()
        for i, name in enumerate(names):
            seen[name] += 1
            names[i] = name if seen[name] == 1 else f"{name}#{seen[name]}"
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _find_runs(
    encoders: Mapping[Hashable, ColumnEncoder], frame_order: Sequence[Hashable]
) -> list[_Run]:
    """Group columns that follow each other, encoded and in the frame, and are described alike."""
    positions = {name: i for i, name in enumerate(frame_order)}
    runs: list[_Run] = []
    start = 0
    for name, encoder in encoders.items():
        last = runs[-1] if runs else None
        if (
            last is not None
            and type(encoder) is type(last.encoder)
            and (encoder.column, encoder.dtype) == (last.encoder.column, last.encoder.dtype)
            and positions[name] == positions[last.names[-1]] + 1
        ):
            runs[-1] = _Run((*last.names, name), last.encoder, last.start)
        else:
            runs.append(_Run((name,), encoder, start))
        start += encoder.width
    return runs


def _starts(run: _Run) -> list[int]:
    return [run.start + i * run.encoder.width for i in range(len(run.names))]


def _is_plain_block(template: FrameTemplate, names: Sequence[Hashable]) -> bool:
    dtypes: set[ColumnDtype] = {template.dtypes[name] for name in names}
    return len(dtypes) == 1 and next(iter(dtypes)).is_plain


def _parts(run: _Run, n: int) -> Iterator[slice]:
    size = max(_BLOCK_CELLS // len(run.names), 1)
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _encode_block(run: _Run, table: Any, at: int, rows: np.ndarray) -> None:
    assert isinstance(run.encoder, NumberEncoder)
    k = len(run.names)
    for part in _parts(run, len(rows)):
        if isinstance(table, pd.DataFrame):
            values = table.iloc[part, at : at + k].to_numpy()
        else:
            values = table[part, at : at + k]
        rows[part, run.start : run.start + k] = run.encoder.encode_block(values)


def _decode_block(run: _Run, rows: np.ndarray) -> np.ndarray:
    assert isinstance(run.encoder, NumberEncoder)
    # Columns are contiguous, since they are taken out one by one.
    values = np.empty((len(rows), len(run.names)), run.encoder.dtype.native, order="F")
    for part in _parts(run, len(rows)):
        features = rows[part, run.start : run.start + len(run.names)]
        values[part] = run.encoder.decode_block(features)
    return values


def _layout(
    encoders: Mapping[Hashable, ColumnEncoder], image_shape: tuple[int, int] | None
) -> EncodedLayout:
    numeric: list[int] = []
    groups: list[tuple[int, int]] = []
    width = 0
    for encoder in encoders.values():
        numeric += [width + i for i in encoder.numeric]
        groups += [(width + a, width + b) for a, b in encoder.groups]
        width += encoder.width
    pixels = image_shape is not None and image_shape[0] * image_shape[1] == len(numeric)
    shape = image_shape if pixels and not groups else None
    return EncodedLayout(width, tuple(numeric), tuple(groups), shape)
