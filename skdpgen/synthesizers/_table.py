"""How a table enters a synthesizer and how a synthetic one leaves: features and target, both ways.

A codec knows names, dtypes and the schema; it holds no rows.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from skdpgen.atoms import AtomLayout
from skdpgen.data.atoms import atom_layout
from skdpgen.data.columns import Column
from skdpgen.data.datetime_columns import Datetime
from skdpgen.data.encoders import CategoryEncoder, ColumnEncoder, make_encoder
from skdpgen.data.frames import (
    FrameTemplate,
    SeriesTemplate,
    as_series,
    as_table,
    column_at,
    iter_chunks,
    n_rows,
)
from skdpgen.data.numeric_columns import Numeric
from skdpgen.data.opaque_columns import Id, Text
from skdpgen.data.preprocessing import TabularPreprocessor, template_of
from skdpgen.data.scaled import WholeEncoder
from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, SchemaError
from skdpgen.layout import EncodedLayout
from skdpgen.privacy.release import Release
from skdpgen.privacy.slicing_release import SlicingRelease

__all__ = ["TableCodec", "rows_of", "target_of"]

_CHUNK_CELLS = 2**23
# Standard deviations of the noise.
_STANDS_OUT = 4


@dataclass(frozen=True)
class TableCodec:
    """Encoders of a table's features and of its target.

    A target with listed values becomes class indices; another target is encoded like a feature.

    Parameters
    ----------
    schema : Schema
        Every column of the table and of ``y``, resolved.
    preprocessor : TabularPreprocessor
        Fitted on the table; leaves a labeled target alone.
    labels : CategoryEncoder or None
        Encoder of a labeled target.
    number : ColumnEncoder or None
        Encoder of a target without listed values that was given as ``y``.
    y_template : SeriesTemplate or None
        Of ``y``; None for tables that hold their target.
    """

    schema: Schema
    preprocessor: TabularPreprocessor
    labels: CategoryEncoder | None
    number: ColumnEncoder | None
    y_template: SeriesTemplate | None

    @classmethod
    def build(cls, X: Any, y: Any, schema: Schema) -> TableCodec:
        """Check the structure of a table against the schema; no cell is read.

        Parameters
        ----------
        X : DataFrame or ndarray
            The table.
        y : array-like or None
            The target, where it isn't a column of ``X``.
        schema : Schema
            Public facts.

        Raises
        ------
        InputError, SchemaError
            If names, dtypes or lengths don't fit.
        """
        if n_rows(as_table(X)) == 0:
            raise InputError("found 0 sample(s): the table must have a row, a minimum of 1.")
        template = template_of(X, schema)
        if not template.names:
            # Without the number of rows, which scikit-learn's message has before the comma.
            raise InputError("found 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        # A release carries its schema in the order of the encoded features, and from_release makes
        # frames in the order of that schema: encoding in frame order makes all three the same.
        schema = _reordered(schema, template)
        if y is None:
            return cls._of_frame(X, template, schema)
        y = as_series(y)
        series = SeriesTemplate.from_series(y)
        if len(y) != n_rows(as_table(X)):
            raise InputError(
                "X and y have different lengths: found input variables with "
                "inconsistent numbers of samples."
            )
        target = target_of(schema, series, template)
        schema, column = _declared(schema, target)
        features = schema.without_target()
        preprocessor = TabularPreprocessor.from_schema(features).fit(X)
        encoder = make_encoder(column, series.dtype, target)
        return cls(
            schema=_resolved(schema, preprocessor, {target: encoder}),
            preprocessor=preprocessor,
            labels=encoder if isinstance(encoder, CategoryEncoder) else None,
            number=None if isinstance(encoder, CategoryEncoder) else encoder,
            y_template=series,
        )

    @classmethod
    def _of_frame(cls, X: Any, template: FrameTemplate, schema: Schema) -> TableCodec:
        target = schema.target
        labels = None
        if target is not None:
            if target not in template.dtypes:
                raise InputError(
                    f"the target {target!r} is neither a column of X nor given as y: pass the "
                    f"table with it, or y, or use schema.drop([{target!r}])."
                )
            encoder = make_encoder(schema.columns[target], template.dtypes[target], target)
            labels = encoder if isinstance(encoder, CategoryEncoder) else None
        preprocessor = TabularPreprocessor.from_schema(
            schema, exclude_target=labels is not None
        ).fit(X)
        known = {} if labels is None else {target: labels}
        return cls(_resolved(schema, preprocessor, known), preprocessor, labels, None, None)

    @classmethod
    def from_schema(cls, schema: Schema, template: Any = None) -> TableCodec:
        """A codec without a table: for frames like ``template``, or with the usual dtypes."""
        frame = empty_frame(schema) if template is None else template
        return cls._of_frame(frame, template_of(frame, schema), schema)

    def public_schema(self) -> dict[str, Any] | None:
        """The schema as JSON; None where column names can't be written to JSON.

        Raises
        ------
        SchemaError
            If its metadata can't be written to JSON.
        """
        try:
            facts = self.schema.to_dict()
        except SchemaError:
            return None
        try:
            json.dumps(facts, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SchemaError(
                f"the metadata of the schema can't be written to JSON, where a release keeps it: "
                f"{error}. Remove it."
            ) from None
        return facts

    @property
    def layout(self) -> EncodedLayout:
        """Layout of encoded rows."""
        layout = self.preprocessor.layout_
        if self.number is None:
            return layout
        width = layout.width
        return EncodedLayout(
            width=width + self.number.width,
            numeric=(*layout.numeric, *(width + i for i in self.number.numeric)),
            groups=(*layout.groups, *((width + a, width + b) for a, b in self.number.groups)),
        )

    def atoms(self, n_bins: int) -> AtomLayout:
        """The codes of encoded rows, with at most so many bins a number."""
        encoders = list(self.preprocessor.encoders_.values())
        return atom_layout([*encoders, self.number] if self.number else encoders, n_bins)

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for unlabeled tables."""
        return 1 if self.labels is None else self.labels.n_codes

    @property
    def classes(self) -> list[Any]:
        """Values of a labeled target as its dtype writes them; None is a missing label.

        In the order of their indices.
        """
        if self.labels is None:
            return []
        values = list(self.labels.values)
        return [*values, None] if self.labels.nullable else values

    def proportions(self, release: Release | SlicingRelease) -> npt.NDArray[np.float64]:
        """Class proportions of a release, shape (n_classes,), summing to 1.

        A learned target has a class for all labels that were too rare to be released, which often
        nobody has: it counts only where it stands out of the noise.
        """
        shares = release.class_proportions()
        unlisted = self._unlisted_class
        if unlisted is None or isinstance(release, SlicingRelease) or len(shares) == 1:
            return shares
        counts = release.noisy_counts
        if not len(counts) or counts[unlisted] < _STANDS_OUT * release.noise_stddev:
            shares[unlisted] = 0.0
        return np.asarray(shares / shares.sum())

    @property
    def _unlisted_class(self) -> int | None:
        """Class index of labels that a learned target doesn't list; None without such a class."""
        if self.labels is None or "learned" not in self.labels.column.metadata:
            return None
        column = self.labels.column
        if column.other is not None:
            return column.categories.index(column.other)
        return self.n_classes - 1 if self.labels.nullable else None

    # -- rows in ----------------------------------------------------------------------------------

    def encode(
        self, X: Any, y: Any
    ) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]:
        """Encode a table chunk by chunk.

        Yields
        ------
        rows : ndarray of shape (n, layout.width)
        labels : ndarray of int64, shape (n,)
            All 0 for unlabeled tables.
        """
        table = as_table(X)
        target = None if y is None else as_series(y)
        size = max(1, _CHUNK_CELLS // max(1, self.layout.width))
        start = 0
        for chunk in iter_chunks(table, size):
            stop = start + n_rows(chunk)
            rows = self.preprocessor.transform(chunk)
            labels = np.zeros(len(rows), dtype=np.int64)
            part = None if target is None else rows_of(target, start, stop)
            if self.labels is not None:
                labels = self.labels.codes(self._target_in(chunk) if part is None else part)
            if self.number is not None:
                rows = np.hstack([rows, self.number.encode(part)])
            yield rows, labels
            start = stop

    def _target_in(self, chunk: Any) -> Any:
        names = list(self.preprocessor.template_.names)
        return column_at(chunk, names.index(self.schema.target))

    def encode_labels(self, labels: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Class indices of labels that a user asks for; unlike private cells they are checked."""
        indices = {value: code for code, value in enumerate(self.classes)}
        codes = []
        for label in labels:
            scalar = pd.api.types.is_scalar(label)
            known = None if scalar and pd.isna(label) else label
            if not scalar or known not in indices:
                raise InputError(f"{label!r} is not one of the classes {self.classes!r}.")
            codes.append(indices[known])
        return np.array(codes, dtype=np.int64)

    # -- rows out ---------------------------------------------------------------------------------

    def decode(self, rows: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> Any:
        """Turn encoded rows and class indices into what was fitted: a table, or a table and y."""
        width = self.preprocessor.layout_.width
        columns = self.preprocessor.decode_columns(rows[:, :width])
        template = self.preprocessor.template_
        decoded = None
        if self.labels is not None:
            decoded = self.labels.decode_codes(labels)
        elif self.number is not None:
            decoded = self.number.decode(rows[:, width:])
        if self.y_template is not None:
            return template.build(columns, n=len(rows)), self.y_template.build(decoded)
        if self.labels is not None:
            columns[self.schema.target] = decoded
        return template.build(columns, n=len(rows))


def empty_frame(schema: Schema) -> pd.DataFrame:
    """An empty pandas frame with the dtypes that a schema suggests."""
    return pd.DataFrame(
        {name: pd.Series([], dtype=_usual_dtype(column)) for name, column in schema.columns.items()}
    )


def _usual_dtype(column: Column) -> str:
    missing = bool(getattr(column, "missing", False))
    if isinstance(column, Numeric):
        if column.dtype == "float":
            return "float64"
        integer = "int64" if column.bounds is None or column.bounds[1] < 2**63 else "uint64"
        return integer.replace("i", "I").replace("u", "U") if missing else integer
    if isinstance(column, Datetime):
        has_zone = column.bounds is not None and column.parsed_bounds[0].tzinfo is not None
        return "datetime64[us, UTC]" if has_zone else "datetime64[us]"
    if isinstance(column, Id):
        return "int64"
    if isinstance(column, Text):
        return "object"
    values = getattr(column, "categories", ())
    if all(isinstance(value, bool) for value in values):
        return "boolean" if missing else "bool"
    if all(isinstance(value, int) for value in values):
        return "Int64" if missing else "int64"
    return "object"


def target_of(schema: Schema, y: SeriesTemplate, X: FrameTemplate) -> Hashable:
    """What a target that is given apart is called; it must not be a column of the table too."""
    target = schema.target
    if target is None:
        target = "y" if y.name is None else y.name
    if target in X.dtypes:
        raise InputError(
            f"the target {target!r} is a column of X and given as y as well: pass it once."
        )
    return target


def _declared(schema: Schema, target: Hashable) -> tuple[Schema, Column]:
    """The schema with its target named, and the target's column."""
    column = schema.columns.get(target, schema.default)
    if column is None:
        raise SchemaError(
            f"y is given, but the schema declares no column {target!r}: declare it and name it as "
            f"the target, Schema(..., target={target!r})."
        )
    columns = {**schema.columns, target: column}
    return _with_columns(schema, columns, target, schema.default), column


def _with_columns(
    schema: Schema, columns: dict[Hashable, Column], target: Hashable, default: Column | None = None
) -> Schema:
    return Schema(
        columns,
        target=target,
        default=default,
        notes=schema.notes,
        image_shape=schema.image_shape,
        class_names=schema.class_names,
        metadata=schema.metadata,
    )


def _reordered(schema: Schema, template: FrameTemplate) -> Schema:
    """The schema with the columns of a frame first, in the order of the frame."""
    columns = schema.columns
    ordered = {name: columns[name] for name in template.names if name in columns}
    return _with_columns(schema, ordered | columns, schema.target, schema.default)


def rows_of(series: Any, start: int, stop: int) -> Any:
    """Rows by position: a pandas Series would slice a float index by label."""
    return (series.iloc if isinstance(series, pd.Series) else series)[start:stop]


def _effective(encoder: ColumnEncoder) -> Column:
    """A column as it was encoded in its dtype, which may hold less than the schema allows."""
    column: Any = encoder.column
    if getattr(column, "missing", False) and not encoder.nullable:
        column = replace(column, missing=False)
    if isinstance(encoder, WholeEncoder):
        column = replace(column, dtype="int", bounds=(encoder.lower, encoder.upper))
    return column


def _resolved(
    schema: Schema, preprocessor: TabularPreprocessor, target: Mapping[Hashable, ColumnEncoder]
) -> Schema:
    """The schema as encoded: every column written out, no default, what dtypes rule out gone.

    A frame of its usual dtypes is encoded alike, which is what ``from_release`` relies on.
    """
    columns = {n: _effective(e) for n, e in {**preprocessor.encoders_, **target}.items()}
    ordered = {n: columns[n] for n in preprocessor.template_.names if n in columns}
    return _with_columns(schema, ordered | columns, schema.target)
