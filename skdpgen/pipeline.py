"""Pipelines that end in a synthesizer, and whose samples come back through the steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline, _name_estimators
from sklearn.utils import Tags, get_tags
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.validation import check_is_fitted

from skdpgen._steps import (
    apply_step,
    check_step,
    fit_step,
    refuse_memory,
    without_rows,
)
from skdpgen.data.columns import Column
from skdpgen.data.frames import FrameTemplate, MappedTable, as_table
from skdpgen.data.preprocessing import TabularPreprocessor
from skdpgen.data.restoring import restored
from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, SchemaError
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.synthesizers._parameters import given_schema
from skdpgen.synthesizers.base import ReleaseSynthesizer

__all__ = ["SynthesisPipeline", "make_synthesis_pipeline"]


class SynthesisPipeline(Pipeline):  # type: ignore[misc]
    """A pipeline that ends in a synthesizer, with samples like the table that it was fitted on.

    ``fit`` leads the private rows through the steps to the synthesizer; ``sample`` leads synthetic
    rows back through ``inverse_transform`` of the steps. A step that learns from rows, as
    ``StandardScaler`` does, publishes what it learned without being charged for it: it is refused
    before anything is read. What may come before a synthesizer is a function of one row and of
    public facts:

    - ``FunctionTransformer`` with an ``inverse_func``;
    - your own class that declares the scikit-learn tag ``requires_fit = False`` and has an
      ``inverse_transform``; it is fitted on a table without rows, whatever it declares;
    - a nested ``Pipeline`` of such steps, ``"passthrough"`` and None;
    - :class:`~skdpgen.TabularPreprocessor`, right before the synthesizer: its schema and its
      choice of encodings then hold for the synthesizer, which must have no other schema.

    Rows are transformed chunk by chunk, after the ledger was charged.

    Parameters
    ----------
    steps : list of (str, step)
        The last step is a synthesizer, or a search over the settings of one.
    memory : None
        Anything else is refused: a cache writes private rows to disk.
    verbose : bool, default=False
        Whether to print how long the fit of the synthesizer took.

    Attributes
    ----------
    named_steps : Bunch
        The steps by name.
    release_ : Release
        All that is left of the rows; that of the synthesizer.
    ledger_ : PrivacyLedger
        What was spent, over all fits.
    classes_ : ndarray
        Values of the target, for labeled tables.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names of the fitted table, if they are all texts.
    n_features_in_ : int
        Number of columns of the fitted table.

    See Also
    --------
    make_synthesis_pipeline : Names the steps by itself.

    Notes
    -----
    What a step does to rows is its own code: it is tried on made-up rows and refused if it mixes
    them, but a step that fails on these can't be judged, and then it is up to you. A part of the
    pipeline, such as ``pipeline[:-1]``, is a scikit-learn ``Pipeline``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> from skdpgen import DPMERFSynthesizer, Schema, SynthesisPipeline
    >>> df = pd.DataFrame({"width": [2.0, 3.0, 4.0] * 100, "height": [1.0, 1.5, 2.0] * 100})
    >>> ratio = FunctionTransformer(
    ...     lambda X: X.assign(height=X["height"] / X["width"]),
    ...     lambda X: X.assign(height=X["height"] * X["width"]),
    ... )
    >>> schema = Schema.from_dict({"columns": {
    ...     "width": {"kind": "numeric", "bounds": [0, 10]},
    ...     "height": {"kind": "numeric", "bounds": [0, 1]}}})
    >>> synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, n_steps=20, random_state=0)
    >>> pipeline = SynthesisPipeline([("ratio", ratio), ("synth", synth)]).fit(df)
    >>> bool((pipeline.sample(50)["height"] <= 10).all())
    True
    >>> SynthesisPipeline([("scale", StandardScaler()), ("synth", synth)]).fit(df)
    Traceback (most recent call last):
        ...
    skdpgen.exceptions.PrivacyLeakError: the step 'scale' (StandardScaler) learns from private rows,
    which no budget would be charged for. Instead, leave it out: the bounds of the schema do the
    scaling.
    """

    def __init__(
        self, steps: list[tuple[str, Any]], *, memory: None = None, verbose: bool = False
    ) -> None:
        super().__init__(steps, memory=memory, verbose=verbose)

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Check the steps, then fit the synthesizer on the transformed rows.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            The private table, as the first step takes it.
        y : array-like of shape (n,), default=None
            The target, where it isn't a column; the steps don't see it.
        **params
            Arguments for ``fit`` of the synthesizer, with its name before two underscores:
            ``synth__unit_id=ids``.

        Returns
        -------
        self : SynthesisPipeline

        Raises
        ------
        PrivacyLeakError
            If a step learns from rows, mixes them or caches them; nothing was read or charged.
        InputError
            If the steps have no way back, fail, or the table doesn't fit.
        SchemaError
            If the preprocessor and the synthesizer have different schemas.
        """
        self._check_steps()
        name, synthesizer = self.steps[-1]
        fit_params = _params_of(name, params)
        table = as_table(X)
        steps = [(n, step) for _, n, step in self._iter(with_final=False)]
        preprocessor = steps.pop()[1] if self._preprocessor is not None else None
        structure = without_rows(table)
        template = FrameTemplate.from_frame(structure)
        for step_name, step in steps:
            structure = fit_step(step, structure, step_name)
        functions: list[Callable[[Any], Any]] = [
            partial(apply_step, step, name=n) for n, step in steps
        ]
        if preprocessor is not None:
            preprocessor.fit_structure(structure)
            schema, select = _as_declared(preprocessor)
            functions.append(select)
            structure = select(structure)
        rows = MappedTable(table, _composed(functions, structure), structure)
        self._template = template
        holder = _holder_of_schema(synthesizer)
        before = holder.schema
        with _print_elapsed_time("Pipeline", self._log_message(len(self.steps) - 1)):
            try:
                if preprocessor is not None:
                    holder.schema = schema
                synthesizer.fit(rows, y, **fit_params)
            finally:
                holder.schema = before
        return self

    def _check_steps(self) -> None:
        if not self.steps:
            raise InputError("the pipeline is empty: it needs a synthesizer as its last step.")
        self._validate_steps()
        holder = _holder_of_schema(self.steps[-1][1])
        refuse_memory(self, "the pipeline")
        for _, name, step in self._iter(with_final=False):
            if step is not self._preprocessor:
                check_step(step, name)
        if self._preprocessor is None or holder.schema is None:
            return
        if given_schema(holder.schema) != self._preprocessor.schema:
            raise SchemaError(
                "the TabularPreprocessor and the synthesizer have different schemas: leave out the "
                "synthesizer's, the preprocessor's holds for both."
            )

    @property
    def _preprocessor(self) -> TabularPreprocessor | None:
        """The preprocessor right before the synthesizer, if there is one."""
        steps = [step for _, _, step in self._iter(with_final=False)]
        return steps[-1] if steps and isinstance(steps[-1], TabularPreprocessor) else None

    # -- after fit --------------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        y: Any = None,
    ) -> Any:
        """Draw synthetic rows and lead them back through the steps; free of cost.

        Parameters
        ----------
        n_samples, random_state, y
            As for :meth:`DPMERFSynthesizer.sample`.

        Returns
        -------
        DataFrame or ndarray, or tuple of two
            What was fitted: same columns, dtypes and frame type, as far as the steps give the
            columns back; ``(X, y)`` after ``fit(X, y)``.
        """
        check_is_fitted(self)
        drawn = self._synthesizer.sample(n_samples, random_state, y=y)
        table, *target = drawn if isinstance(drawn, tuple) else (drawn,)
        for _, _, step in reversed(list(self._iter(with_final=False))):
            if not isinstance(step, TabularPreprocessor):
                table = step.inverse_transform(table)
        if "_template" in self.__dict__:  # else it is a part of a pipeline, cut out after fit
            table = restored(table, self._template)
        return (table, *target) if target else table

    def retrain(self, **post_processing_params: Any) -> Self:
        """Train the synthesizer again on its release, free of cost.

        Parameters
        ----------
        **post_processing_params
            As for :meth:`DPMERFSynthesizer.retrain`.

        Returns
        -------
        self : SynthesisPipeline
        """
        self._synthesizer.retrain(**post_processing_params)
        return self

    def privacy_statement(self) -> str:
        """What the release promises, and what was spent in total, in plain words.

        Returns
        -------
        str
            The statement.
        """
        return str(self._synthesizer.privacy_statement())

    @property
    def _synthesizer(self) -> Any:
        return self.steps[-1][1]

    @property
    def release_(self) -> Any:
        """The release of the synthesizer."""
        return self._synthesizer.release_

    @property
    def ledger_(self) -> PrivacyLedger:
        """The ledger of the synthesizer."""
        ledger: PrivacyLedger = self._synthesizer.ledger_
        return ledger

    # -- scikit-learn -----------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the fitted table."""
        return len(self._fitted_template("n_features_in_").names)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Column names of the fitted table, if they are all texts."""
        template = self._fitted_template("feature_names_in_")
        if template.backend == "numpy" or not all(isinstance(n, str) for n in template.names):
            raise AttributeError("the columns of the fitted table have no names.")
        return np.array(template.names, dtype=object)

    def _fitted_template(self, attribute: str) -> FrameTemplate:
        template: FrameTemplate | None = self.__dict__.get("_template")
        if template is None:
            raise AttributeError(f"{type(self).__name__} has no {attribute} before fit.")
        return template

    def __getitem__(self, ind: Any) -> Any:
        if isinstance(ind, slice) and self.steps[-1:] != self.steps[ind][-1:]:
            return Pipeline(self.steps, memory=self.memory, verbose=self.verbose)[ind]
        return super().__getitem__(ind)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if self.steps and hasattr(self.steps[-1][1], "sample"):
            synthesizer = get_tags(self.steps[-1][1])
            tags.input_tags = synthesizer.input_tags
            tags.target_tags = synthesizer.target_tags
            tags.non_deterministic = synthesizer.non_deterministic
        return tags


def make_synthesis_pipeline(*steps: Any, verbose: bool = False) -> SynthesisPipeline:
    """A :class:`SynthesisPipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : step
        The last one is a synthesizer.
    verbose : bool, default=False
        See :class:`SynthesisPipeline`.

    Returns
    -------
    SynthesisPipeline
        Not fitted yet.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, TabularPreprocessor, make_synthesis_pipeline
    >>> pipeline = make_synthesis_pipeline(TabularPreprocessor(), DPMERFSynthesizer(1.0, 1e-5))
    >>> list(pipeline.named_steps)
    ['tabularpreprocessor', 'dpmerfsynthesizer']
    """
    return SynthesisPipeline(_name_estimators(steps), verbose=verbose)


def _holder_of_schema(step: Any) -> Any:
    """What has the schema parameter of a last step: itself, or the synthesizer of a search."""
    if isinstance(step, ReleaseSynthesizer):
        return step
    inner = getattr(step, "estimator", None)
    if isinstance(inner, ReleaseSynthesizer) and hasattr(step, "sample"):
        return inner
    raise InputError(
        f"the last step must be a synthesizer of skdpgen or a search that samples, "
        f"got an object of type {type(step).__name__}."
    )


def _params_of(name: str, params: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the synthesizer, without its name."""
    prefix = f"{name}__"
    for param in params:
        if not param.startswith(prefix):
            raise InputError(
                f"fit doesn't take {param!r}: it takes what the synthesizer's fit does, as "
                f"{prefix}unit_id=..., and nothing for the other steps, which see no rows."
            )
    return {param.removeprefix(prefix): value for param, value in params.items()}


def _composed(functions: list[Callable[[Any], Any]], structure: Any) -> Callable[[Any], Any]:
    """The functions one after the other; rows get the columns that no rows got."""
    names = FrameTemplate.from_frame(structure).names

    def apply(table: Any) -> Any:
        for function in functions:
            table = function(table)
        if FrameTemplate.from_frame(table).names != names:
            raise InputError("the steps make other columns of the table than of one without rows.")
        return table

    return apply


def _as_declared(preprocessor: TabularPreprocessor) -> tuple[Schema, Callable[[Any], Any]]:
    """The schema that makes a synthesizer encode like a fitted preprocessor, and what it needs.

    Returns
    -------
    schema : Schema
        Of the columns that aren't dropped, each encoded as the preprocessor does.
    select : callable
        Takes the dropped columns out of a table.
    """
    assert preprocessor.schema is not None
    declared, template = preprocessor.schema, preprocessor.template_
    columns: dict[Hashable, Column] = {n: e.column for n, e in preprocessor.encoders_.items()}
    if preprocessor.exclude_target and declared.target is not None:
        columns[declared.target] = declared.columns[declared.target]
    kept = [i for i, name in enumerate(template.names) if name in columns]
    target = declared.target if declared.target in columns else None
    if template.backend == "numpy":
        # Columns of an array are called by their position, which changes.
        places = {template.names[j]: template.names[i] for i, j in enumerate(kept)}
        columns = {places.get(name, name): column for name, column in columns.items()}
        target = places.get(target, target)
    schema = Schema(
        columns,
        target=target,
        notes=declared.notes,
        image_shape=declared.image_shape,
        class_names=declared.class_names if target is not None else None,
        metadata=declared.metadata,
    )
    return schema, partial(_select, kept=kept)


def _select(table: Any, kept: list[int]) -> Any:
    return table.iloc[:, kept] if isinstance(table, pd.DataFrame) else table[:, kept]
