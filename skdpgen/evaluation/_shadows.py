"""Shadow fits: releases of a detached copy of a synthesizer, which are never published.

An attack or an audit fits a synthesizer hundreds of times. None of that is training, which is
post-processing: what is attacked is the release. The copies spend from a ledger of their own, in
memory, so the budget of the synthesizer stays as it is.
"""

from __future__ import annotations

import warnings
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from ..data.frames import as_table, n_rows
from ..data.schema import Schema
from ..exceptions import InputError, PrivacyWarning, SkdpgenWarning
from ..features.settings import GaussianFeatures, InteractionFeatures
from ..privacy.ledger import PrivacyLedger
from ..privacy.noise import insecure_noise
from ..privacy.release import Release
from ..privacy.slicing_release import SlicingRelease
from ..synthesizers._embedding import EmbeddingSynthesizer
from ..synthesizers._parameters import given_schema, seed_sequence
from ..synthesizers._table import TableCodec
from ..synthesizers.sliced_rows import SlicedRowsSynthesizer
from ..training.progress import unwatched
from ._columns import features

__all__ = ["NEVER_PUBLISH", "Shadows", "rows_at"]

NEVER_PUBLISH = "not a release: never publish shadow fits"
# What a release gets along with in an audit: every value costs 10 to 28 microseconds of noise.
_FEW = 8
_FEW_BINS = 4
_FEW_DIRECTIONS = 4


class Shadows:
    """Makes releases as ``fit`` of a synthesizer does, and stops there.

    Parameters
    ----------
    synthesizer : EmbeddingSynthesizer or SlicedRowsSynthesizer
        Fitted or not; it is left as it is, and so is its ledger. If it has learned its schema,
        the copies take it for declared.
    few : bool
        Whether to shrink what is released to a few features or slices.

    Attributes
    ----------
    ledger : PrivacyLedger
        What the copies spent.
    changed : dict of str to object
        Parameters that were changed to shrink the release.

    Raises
    ------
    InputError
        If it is no such synthesizer.
    SchemaError
        If there is no schema, or it lacks bounds or values.
    """

    def __init__(self, synthesizer: Any, *, few: bool) -> None:
        if not isinstance(synthesizer, EmbeddingSynthesizer | SlicedRowsSynthesizer):
            raise InputError(
                f"shadow fits need DPMERFSynthesizer, SlicedFDivSynthesizer or "
                f"SlicedRowsSynthesizer, got {type(synthesizer).__name__}: give the synthesizer of "
                f"a pipeline or a search."
            )
        self.schema = _schema_of(synthesizer)
        labeled = isinstance(synthesizer, EmbeddingSynthesizer)
        # Refuses open columns by name: shadow fits don't learn domains.
        features(self.schema)
        self.codec = TableCodec.from_schema(self.schema if labeled else self.schema.unlabeled())
        self._copy = clone(synthesizer)
        # Its own ledger is shared with the original; nothing here may ever reach it.
        del self._copy._own_ledger
        # Callbacks come along with a copy: they would be given releases that nobody paid for.
        self._copy.__dict__.pop("_skl_callbacks", None)
        self.ledger = PrivacyLedger()
        # One seed: all fits have the same features, as those who read a release know them.
        seed = int(seed_sequence(self._copy.random_state).generate_state(1)[0])
        self._copy.set_params(ledger=self.ledger, schema=self.schema, random_state=seed, verbose=0)
        if isinstance(self._copy, EmbeddingSynthesizer):
            self._copy.set_params(domain_budget=None)
        self.changed = _fewer(self._copy, self.codec) if few else {}
        self._copy.set_params(**self.changed)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the copy."""
        params: dict[str, Any] = self._copy.get_params(deep=False)
        return params

    def release(self, table: Any) -> Any:
        """What ``fit`` would release of a table: a Release, or a SlicingRelease of noisy rows."""
        with warnings.catch_warnings():
            # Of a large delta, and of noise that hides everything: nobody publishes this.
            warnings.simplefilter("ignore", PrivacyWarning)
            warnings.simplefilter("ignore", SkdpgenWarning)
            if isinstance(self._copy, EmbeddingSynthesizer):
                self._copy._make_release(table, None, None, lambda codec, features: None)
            else:
                self._copy._make_release(table, None, lambda codec: None)
        return self._copy.release_

    def synthetic(self, table: Any) -> Any:
        """What a whole fit on a table samples: as many rows, training included."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            warnings.simplefilter("ignore", SkdpgenWarning)
            with unwatched():
                return self._copy.fit(table).sample(n_rows(table))

    def without_noise(self, table: Any) -> Any:
        """The same without noise: what the attacker computes of rows that he knows."""
        self._copy.set_params(ledger=PrivacyLedger())
        try:
            with insecure_noise(seed=0, scale=0):
                return self.release(table)
        finally:
            self._copy.set_params(ledger=self.ledger)

    def public_rows(self, n: int, rng: np.random.Generator) -> Any:
        """Made-up rows of the schema: random categories, numbers random or at their bounds.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : Generator

        Returns
        -------
        DataFrame
            With the usual dtypes of the schema.
        """
        layout = self.codec.layout
        rows = np.zeros((n, layout.width))
        numbers = rng.uniform(size=(n, len(layout.numeric)))
        ends = rng.uniform(size=numbers.shape) < 0.5
        rows[:, list(layout.numeric)] = np.where(ends, np.rint(numbers), numbers)
        for start, stop in layout.groups:
            rows[np.arange(n), rng.integers(start, stop, n)] = 1.0
        return self.codec.decode(rows, rng.integers(self.codec.n_classes, size=n))

    def opposite_rows(self) -> tuple[Any, Any]:
        """Two made-up rows of one row each that differ in every column as far as they can."""
        layout = self.codec.layout
        rows = np.zeros((2, layout.width))
        rows[1, list(layout.numeric)] = 1.0
        for start, stop in layout.groups:
            rows[0, start] = rows[1, stop - 1] = 1.0
        both = self.codec.decode(rows, np.array([0, self.codec.n_classes - 1]))
        return rows_at(both, [0]), rows_at(both, [1])

    def projected_row(self, row: Any) -> npt.NDArray[np.float64]:
        """A row as the mechanism of noisy rows sees it, shape (dimension,).

        Solved for by its projections without noise, onto enough directions.
        """
        few = {"n_slices": self.params["n_slices"]}
        if self.params["directions"] != "frame":
            width = _width(self.codec)
            self._copy.set_params(n_slices=-(-(width + _FEW) // self.params["slice_dim"]))
        try:
            release: SlicingRelease = self.without_noise(row)
        finally:
            self._copy.set_params(**few)
        values = release.projections().ravel()
        return np.asarray(np.linalg.lstsq(release.direction_matrix().T, values, rcond=None)[0])

    def spent(self) -> dict[str, Any]:
        """What the shadow fits would have cost, had they been published."""
        delta = self.params["delta"]
        return {
            "fits": len(self.ledger.entries),
            "epsilon": self.ledger.spent(delta),
            "delta": delta,
            "warning": NEVER_PUBLISH,
        }


def vector(release: Release) -> npt.NDArray[np.float64]:
    """All that a release of sums says about rows, as one vector in lattice steps."""
    return np.concatenate([release.noisy_sums.ravel(), release.noisy_counts]).astype(np.float64)


def rows_at(table: Any, positions: npt.NDArray[np.integer] | list[int]) -> Any:
    """Rows of a pandas or polars frame or of an array, by position."""
    table = as_table(table)
    return table.iloc[positions] if isinstance(table, pd.DataFrame) else table[positions]


def joined(first: Any, second: Any) -> Any:
    """The rows of two tables of the same kind, one after the other."""
    if isinstance(first, pd.DataFrame):
        return pd.concat([first, second], ignore_index=True)
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return first.vstack(second)


def _schema_of(synthesizer: Any) -> Schema:
    fitted: Schema | None = getattr(synthesizer, "schema_", None)
    schema = given_schema(synthesizer.schema)
    if fitted is not None:
        return fitted
    if schema is None:
        raise InputError(
            "shadow fits need the public facts: give the synthesizer a schema, or fit it first."
        )
    return schema


def _fewer(synthesizer: Any, codec: TableCodec) -> dict[str, Any]:
    """The parameters that make a release small: the same mechanism, with fewer features."""
    params = synthesizer.get_params(deep=False)
    if isinstance(synthesizer, SlicedRowsSynthesizer):
        return {"n_slices": min(params["n_slices"], _slices_of_rows(params, codec))}
    changed: dict[str, Any] = {}
    if "n_slices" in params:
        changed["n_slices"] = min(params["n_slices"], _FEW)
    if "features" in params:
        chosen = params["features"]
        if isinstance(chosen, str):
            image = codec.layout.image_shape is not None
            chosen = GaussianFeatures() if image else InteractionFeatures()
        few: dict[str, Any] = {}
        if isinstance(chosen, InteractionFeatures):
            few = {"n_frequencies": min(chosen.n_frequencies, _FEW)}
            few["n_bins"] = min(chosen.n_bins, _FEW_BINS)
        elif isinstance(chosen, GaussianFeatures):
            few = {"n_features": min(chosen.n_features, _FEW)}
        changed["features"] = clone(chosen).set_params(**few)
    return changed


def _slices_of_rows(params: dict[str, Any], codec: TableCodec) -> int:
    """A few slices; of a frame one orthogonal matrix, or as few as make up whole slices."""
    if params["directions"] != "frame":
        return max(1, _FEW_DIRECTIONS // int(params["slice_dim"]))
    return _width(codec) // gcd(_width(codec), int(params["slice_dim"]))


def _width(codec: TableCodec) -> int:
    """Coordinates of a row for the mechanism that projects rows."""
    layout = codec.layout
    return len(layout.numeric) + sum(stop - start for start, stop in layout.groups)
