"""Which steps may come before a synthesizer: those that are a function of one row.

A scaler that is fitted on private rows publishes their mean, and no ledger knows of it. So steps
are judged before anything is read, from their class and their scikit-learn tags; they are fitted
on a table without rows; and a step that mixes rows is found out on made-up ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdpgen.data.columns import Boolean, Categorical, Column
from skdpgen.data.datetime_columns import Datetime
from skdpgen.data.dtypes import ColumnDtype
from skdpgen.data.encoders import make_encoder
from skdpgen.data.frames import FrameTemplate, as_table, n_rows
from skdpgen.data.numeric_columns import Numeric
from skdpgen.data.preprocessing import TabularPreprocessor
from skdpgen.exceptions import InputError, PrivacyLeakError

__all__ = ["apply_step", "check_step", "fit_step", "refuse_memory", "without_rows"]

_SCALER = "leave it out: the bounds of the schema do the scaling"
_ENCODER = (
    "leave it out: the synthesizer encodes categories by itself, or use a TabularPreprocessor"
)
_IMPUTER = (
    "leave it out: declare missing=True in the schema, and missing cells are synthesized as such"
)
_PROJECTION = "leave it out: the synthesizer takes the columns as they are"
_SELECTION = "choose the columns by what is publicly known, and drop the others"
_BINS = "leave it out: the synthesizer bins numbers between the bounds of the schema"
_GENERIC = (
    "use a FunctionTransformer with functions of public facts, or a TabularPreprocessor; your own "
    "class may declare that it learns nothing by the scikit-learn tag requires_fit = False"
)
_INSTEAD = {
    **dict.fromkeys(
        [
            "StandardScaler",
            "MinMaxScaler",
            "MaxAbsScaler",
            "RobustScaler",
            "PowerTransformer",
            "QuantileTransformer",
        ],
        _SCALER,
    ),
    **dict.fromkeys(
        ["OneHotEncoder", "OrdinalEncoder", "LabelEncoder", "LabelBinarizer", "TargetEncoder"],
        _ENCODER,
    ),
    **dict.fromkeys(["SimpleImputer", "KNNImputer", "IterativeImputer"], _IMPUTER),
    **dict.fromkeys(
        ["PCA", "IncrementalPCA", "KernelPCA", "SparsePCA", "TruncatedSVD", "FastICA", "NMF"],
        _PROJECTION,
    ),
    "KBinsDiscretizer": _BINS,
    "SelectorMixin": _SELECTION,
}

# Rows of a probe, few enough to try each alone.
_PROBE_ROWS = 9


def _is_passthrough(step: object) -> bool:
    """Whether a step stands for no step at all."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def refuse_memory(pipeline: Pipeline, name: str) -> None:
    """Refuse a pipeline that caches what it makes of rows."""
    if pipeline.memory is not None:
        raise PrivacyLeakError(
            f"{name} has a memory, which would write private rows to disk: set memory=None."
        )


# -- judged by class and tags ----------------------------------------------------------------------


def check_step(step: Any, path: str) -> None:
    """Refuse a step that learns from rows, or that samples can't be led back through.

    Parameters
    ----------
    step : transformer
        Not fitted, or fitted: only its class, its parameters and its tags are looked at.
    path : str
        Its name in the pipeline, and those of its parts after dots.

    Raises
    ------
    PrivacyLeakError
        If it, or a part of it, learns from rows.
    InputError
        If it has no way back.
    """
    for name, part in _leaves(step, path):
        _refuse_learning(part, name)
    if not hasattr(step, "inverse_transform"):
        raise InputError(
            f"sample needs inverse_transform: the step {path!r} ({type(step).__name__}) has none. "
            f"Apply it to the table before, if samples may look like what it makes."
        )
    for name, part in _leaves(step, path):
        if isinstance(part, TabularPreprocessor):
            raise InputError(
                f"the step {name!r} makes blocks of features that belong together, and only the "
                f"synthesizer knows them: a TabularPreprocessor must be the step right before it."
            )
        functions = isinstance(part, FunctionTransformer)
        if functions and part.func is not None and part.inverse_func is None:
            raise InputError(
                f"sample needs inverse_transform: the step {name!r} has a func and no "
                f"inverse_func. Give it one, or apply func to the table before."
            )


def _leaves(step: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parts of a step that do something, with their names."""
    if isinstance(step, Pipeline):
        refuse_memory(step, f"the step {path!r}")
        parts = [(name, part) for name, part, *_ in step.steps]
    elif isinstance(step, FeatureUnion):
        parts = [(name, part) for name, part, *_ in step.transformer_list]
    elif isinstance(step, ColumnTransformer):
        parts = [(name, part) for name, part, *_ in step.transformers]
        parts.append(("remainder", step.remainder))
    else:
        yield path, step
        return
    for name, part in parts:
        if not _is_passthrough(part) and not (isinstance(part, str) and part == "drop"):
            yield from _leaves(part, f"{path}.{name}")


def _refuse_learning(step: Any, name: str) -> None:
    if isinstance(step, TabularPreprocessor):
        return
    if isinstance(step, FunctionTransformer):
        if step.validate:
            raise PrivacyLeakError(
                f"the step {name!r} has validate=True, which fails for some rows and so tells "
                f"that they are there: set validate=False."
            )
        return
    try:
        learns = bool(get_tags(step).requires_fit)
    except Exception:
        learns = True
    if learns:
        kinds = [cls.__name__ for cls in type(step).__mro__ if cls.__module__.startswith("sklearn")]
        instead = next((_INSTEAD[kind] for kind in kinds if kind in _INSTEAD), _GENERIC)
        raise PrivacyLeakError(
            f"the step {name!r} ({type(step).__name__}) learns from private rows, which no budget "
            f"would be charged for. Instead, {instead}."
        )


# -- fitted on no rows, tried on made-up ones ------------------------------------------------------


def without_rows(table: Any) -> Any:
    """The names and dtypes of a table, as a table without rows.

    The category lists, index and attributes of pandas stay behind: they are private.
    """
    if not isinstance(table, pd.DataFrame):
        return table[:0]
    structure = table.iloc[:0].reset_index(drop=True)
    structure.attrs = {}
    for i, dtype in enumerate(structure.dtypes):
        if isinstance(dtype, pd.CategoricalDtype):
            plain = pd.Categorical([], categories=[], ordered=dtype.ordered)
            structure.isetitem(i, plain)
    return structure


def fit_step(step: Any, structure: Any, name: str) -> Any:
    """Fit a step on a table without rows, and see on made-up rows that it doesn't mix them.

    Parameters
    ----------
    step : transformer
        That passed :func:`check_step`; it is fitted in place.
    structure : DataFrame or ndarray of shape (0, k)
        The names and dtypes of its input.
    name : str
        Its name in the pipeline.

    Returns
    -------
    DataFrame or ndarray of shape (0, m)
        The names and dtypes of its output.

    Raises
    ------
    InputError
        If it fails without rows.
    PrivacyLeakError
        If it mixes rows.
    """
    # scikit-learn's check of an inverse_func compares rows, and refuses columns of text.
    functions = [p for _, p in _leaves(step, name) if isinstance(p, FunctionTransformer)]
    before = [part.check_inverse for part in functions]
    try:
        for part in functions:
            part.check_inverse = False
        step.fit(structure)
        result = as_table(step.transform(structure))
    except Exception as error:
        raise InputError(
            f"the step {name!r} fails on a table without rows ({type(error).__name__}: {error}). "
            f"It has to be fitted on one: its fit must not need rows."
        ) from error
    finally:
        for part, check_inverse in zip(functions, before, strict=True):
            part.check_inverse = check_inverse
    if n_rows(result) != 0:
        raise InputError(f"the step {name!r} makes rows out of no rows.")
    _check_row_wise(step, structure, name)
    return result


def _check_row_wise(step: Any, structure: Any, name: str) -> None:
    try:
        probe = _made_up_rows(FrameTemplate.from_frame(structure))
        together = _cells(_silent(step.transform, probe))
        alone = [_cells(_silent(step.transform, _row(probe, i))) for i in range(_PROBE_ROWS)]
        mixed = not _equal(together, alone)
    except Exception:
        # The step isn't made for such cells: what it does to others can't be said.
        return
    if mixed:
        raise PrivacyLeakError(
            f"the step {name!r} mixes rows: on made-up rows, what it makes of one depends on the "
            f"others, or on chance. One person would change many rows, and the noise is for one. "
            f"Use a function of one row and of public facts."
        )


_MADE_UP: dict[str, Column] = {
    "int": Numeric((0, 100)),
    "float": Numeric((-10, 100), missing=True),
    "bool": Boolean(),
    "datetime": Datetime(("2000-01-01", "2030-12-31"), missing=True),
}
_WORDS = ("a", "b", "c")


def _made_up_rows(template: FrameTemplate) -> Any:
    rng = np.random.default_rng(0)
    columns: dict[Hashable, Any] = {}
    for name, dtype in template.dtypes.items():
        encoder = make_encoder(_made_up_column(dtype), dtype, name)
        columns[name] = encoder.decode(rng.random((_PROBE_ROWS, encoder.width)))
    return template.build(columns, n=_PROBE_ROWS)


def _made_up_column(dtype: ColumnDtype) -> Column:
    if dtype.family in _MADE_UP:
        return _MADE_UP[dtype.family]
    return Categorical(dtype.declared_levels or _WORDS, missing=True)


def _row(table: Any, i: int) -> Any:
    return table.iloc[i : i + 1] if isinstance(table, pd.DataFrame) else table[i : i + 1]


def _cells(table: Any) -> np.ndarray:
    return np.asarray(as_table(table), dtype=object)


def _equal(together: np.ndarray, alone: list[np.ndarray]) -> bool:
    if any(row.shape != (1, *together.shape[1:]) for row in alone):
        return False
    apart = np.concatenate(alone)
    return together.shape == apart.shape and all(map(_same, together.ravel(), apart.ravel()))


def _same(a: Any, b: Any) -> bool:
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    if isinstance(a, float | int | np.number) and isinstance(b, float | int | np.number):
        # The last bits of a float may depend on the length of the array.
        return bool(np.isclose(float(a), float(b), rtol=1e-9, atol=1e-12))
    return bool(a == b)


# -- applied to private rows -----------------------------------------------------------------------


def apply_step(step: Any, table: Any, name: str) -> Any:
    """What a fitted step makes of rows; no warning, and no error that quotes a cell.

    Parameters
    ----------
    step : transformer
        Fitted by :func:`fit_step`.
    table : DataFrame or ndarray of shape (n, k)
        Rows, possibly private.
    name : str
        Its name in the pipeline.

    Returns
    -------
    DataFrame or ndarray of shape (n, m)

    Raises
    ------
    InputError
        If it fails, or doesn't keep the number of rows.
    """
    try:
        result = as_table(_silent(step.transform, table))
    except Exception as error:
        # The text of the error, and what caused it, may quote cells.
        raise InputError(
            f"the step {name!r} raised {type(error).__name__} on the table. A step has to take "
            f"every cell that its dtype can hold; to see why it fails, try it on made-up rows."
        ) from None
    if n_rows(result) != n_rows(table):
        raise InputError(f"the step {name!r} doesn't make one row out of each row.")
    return result


def _silent(function: Any, table: Any) -> Any:
    # Whether a cell was odd enough for a warning is private.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(table)
