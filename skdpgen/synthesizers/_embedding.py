"""Synthesizers whose release is a noisy mean embedding: how rows become a release."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from skdpgen.data.frames import as_series, as_table, n_rows
from skdpgen.data.learning import OpenColumns
from skdpgen.data.schema import Schema
from skdpgen.exceptions import (
    PrivacyParameterError,
    ReleaseError,
)
from skdpgen.privacy.accounting import check_epsilon_delta
from skdpgen.privacy.batches import CodeBatch, RowBatch
from skdpgen.privacy.domain_batches import DomainBatch
from skdpgen.privacy.domains import DomainMechanism
from skdpgen.privacy.entries import Adjacency, LedgerEntry, check_adjacency
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.noise import current_source
from skdpgen.privacy.release import Release
from skdpgen.privacy.shares import ReservedSpend
from skdpgen.privacy.units import bounded_rows
from skdpgen.synthesizers._callbacks import part_of, running
from skdpgen.synthesizers._domains import domain_batches, find_open_columns, public_default
from skdpgen.synthesizers._feature_maps import FeatureMap, code_features, feature_map_of, fits
from skdpgen.synthesizers._parameters import (
    as_schema,
    given_schema,
    seed_sequence,
    unit_codes,
    unit_column,
)
from skdpgen.synthesizers._table import TableCodec
from skdpgen.synthesizers.base import ReleaseSynthesizer, warn_of_large_delta

__all__ = ["EmbeddingSynthesizer"]

_P = TypeVar("_P")

# Where counts aren't free: they cost two percent more noise, and are known to 5 times its size.
_COUNT_WEIGHT = 0.2


class EmbeddingSynthesizer(ReleaseSynthesizer):
    """Base of synthesizers that release one noisy sum of features, crossed with the label.

    A subclass draws the features from public facts, says which of its parameters describe them, and
    plans the training.
    """

    epsilon: float
    delta: float
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None
    adjacency: Adjacency
    rows_per_unit: int
    count_weight: float | Literal["auto"]
    domain_budget: float | None
    random_state: int | np.random.RandomState | None

    @abstractmethod
    def _draw_features(
        self, codec: TableCodec, n_rows: int | None, random_state: np.random.RandomState
    ) -> FeatureMap:
        """The features of a release, from public facts; raises for bad parameters.

        ``n_rows`` is None where it is private: under add-remove and with units.
        """

    @classmethod
    @abstractmethod
    def _parameters_of(cls, features: FeatureMap) -> dict[str, Any]:
        """The parameters that describe the features of a release."""

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, unit_id: Any = None) -> Self:
        """Make one noisy release of the rows, then train a generator on it.

        Where the schema lacks bounds or values, they are learned first, with ``domain_budget``.
        Everything that can be wrong with the parameters or with the structure of the table is
        reported before the budget is charged and any cell is read.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            The private table: pandas, polars or numpy. It holds the target column if the schema
            names one and ``y`` is not given.
        y : array-like of shape (n,), default=None
            The target, where it isn't a column of ``X``.
        unit_id : array-like of shape (n,), default=None
            Whom each row belongs to. At most ``rows_per_unit`` rows of each, the first ones, then
            contribute, and the guarantee holds for all rows of a unit together.

        Returns
        -------
        self : the synthesizer itself

        Raises
        ------
        ValueError
            (:class:`~skdpgen.exceptions.PrivacyParameterError`, ``SchemaError``, ``InputError``)
            If a parameter is out of range or the table doesn't fit the schema.
        BudgetExceededError
            If ``ledger`` has a cap that this spend would exceed.

        Warns
        -----
        PrivacyWarning
            If ``delta`` exceeds one over the number of rows (replace-one without ``unit_id``
            only: else that number is private).
        SkdpgenWarning
            If training diverged.
        """
        with running(self, "fit", 2):
            with part_of(self, "release"):
                plan = self._make_release(X, y, unit_id, self._plan)
            return self._train(plan)

    def make_release(self, X: Any, y: Any = None, *, unit_id: Any = None) -> Release:
        """Make the release that :meth:`fit` makes, and don't train.

        What comes after it is free, and can be done later and elsewhere: :meth:`retrain` here,
        :meth:`from_release` wherever the release is.

        Parameters
        ----------
        X, y, unit_id
            See :meth:`fit`, as for what is raised and warned of.

        Returns
        -------
        Release
            :attr:`release_`.
        """
        self._make_release(X, y, unit_id, lambda codec, features: None)
        assert isinstance(self.release_, Release)
        return self.release_

    def _make_release(
        self, X: Any, y: Any, unit_id: Any, plan_of: Callable[[TableCodec, FeatureMap], _P]
    ) -> _P:
        """Everything that :meth:`fit` does before it trains.

        ``plan_of`` is called before the budget is charged, to raise for parameters of the training
        that are wrong. What it returns is returned.
        """
        check_epsilon_delta(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        # Converted once: lists would become arrays of objects over and over.
        X = as_table(X)
        y = None if y is None else as_series(y)
        n = n_rows(X)
        units = None if unit_id is None else unit_column(unit_id, n)
        public_n = n if self.adjacency == "replace-one" and units is None else None
        seeds = seed_sequence(self.random_state)
        schema, columns = self._schema_in_use(X, y)
        entries: tuple[LedgerEntry, ...] = ()
        if columns is not None:
            learning = self._domain_mechanism(columns, units)
            entries = learning.entries(current_source())
        # With open columns a dry run, with what any small table ends with: all that can be wrong
        # shows before the charge.
        planned = self._planned(X, y, schema, public_n, units, seeds, plan_of, entries)
        facts = planned[0].public_schema()
        ledger = self._ledger_in_use(stacklevel=4)
        # With units the number of rows is private: another unit may bring more or fewer.
        if public_n is not None:
            warn_of_large_delta(self.delta, n, stacklevel=4)
        charged: PrivacyLedger | ReservedSpend = ledger
        if columns is not None:
            domain = learning.release(
                self._domain_batches(learning, columns, X, y, units, ledger), ledger
            )
            schema = columns.declared(domain.bins, domain.keys)
            planned = self._planned(X, y, schema, public_n, units, seeds, plan_of, domain.entries)
            facts = planned[0].public_schema()
            charged = domain.reserved
        codec, features, mechanism, plan = planned
        feature_map, arrays = features.to_public()
        release = mechanism.release(
            self._batches(mechanism, codec, features, X, y, units, ledger),
            charged,
            public={"feature_map": feature_map, "schema": facts},
            public_arrays=arrays,
        )
        self._adopt(release, codec)
        return plan

    @classmethod
    def from_release(
        cls, release: Release | str | os.PathLike[str], *, template: Any = None, **params: Any
    ) -> Self:
        """Train a synthesizer on a release, without access to rows.

        Parameters
        ----------
        release : Release or path
            What :attr:`release_` was, or the file it was saved to.
        template : DataFrame, default=None
            A frame, possibly without rows, with the names and dtypes that samples shall have. None
            gives pandas frames with the usual dtypes of the schema.
        **params
            Post-processing parameters.

        Returns
        -------
        Synthesizer
            Fitted.

        Raises
        ------
        ReleaseError
            If the release doesn't verify, or carries no schema.
        """
        return cls._untrained(release, template).retrain(**params)

    @classmethod
    def _untrained(cls, release: Release | str | os.PathLike[str], template: Any) -> Self:
        """Everything that :meth:`from_release` does before it trains."""
        if not isinstance(release, Release):
            release = Release.load(release)
        release.verify()
        facts = release.public.get("schema")
        if facts is None or "feature_map" not in release.public:
            raise ReleaseError("the release carries no schema, so samples could not be decoded.")
        schema = Schema.from_dict(facts)
        features = feature_map_of(release)
        synthesizer = cls(
            release.epsilon,
            release.delta,
            schema=schema,
            adjacency=release.adjacency,
            rows_per_unit=release.rows_per_unit,
            **cls._parameters_of(features),
        )
        codec = TableCodec.from_schema(schema, template)
        if codec.n_classes != release.spec.n_classes or not fits(features, codec):
            raise ReleaseError(
                "the template or the schema doesn't fit the release: columns, their order in the "
                "schema, and which dtypes can hold missing values must be those of the fit."
            )
        synthesizer._adopt(release, codec)
        return synthesizer

    # -- internals --------------------------------------------------------------------------------

    def _schema_in_use(self, X: Any, y: Any) -> tuple[Schema, OpenColumns | None]:
        """The schema, and the columns that are to be learned; until then they have defaults."""
        if self.domain_budget is None:
            return as_schema(self.schema, X), None
        columns = find_open_columns(X, y, given_schema(self.schema))
        return public_default(columns), columns if columns.readers else None

    def _domain_mechanism(self, columns: OpenColumns, units: Any) -> DomainMechanism:
        assert self.domain_budget is not None
        return DomainMechanism(
            columns.n_bins,
            columns.n_key_columns,
            self.epsilon,
            self.delta,
            self.domain_budget,
            self.adjacency,
            rows_per_unit=self.rows_per_unit,
            rows_bounded=units is not None,
        )

    def _planned(
        self,
        X: Any,
        y: Any,
        schema: Schema,
        n_rows: int | None,
        units: Any,
        seeds: np.random.SeedSequence,
        plan_of: Callable[[TableCodec, FeatureMap], _P],
        earlier: tuple[LedgerEntry, ...] = (),
    ) -> tuple[TableCodec, FeatureMap, MeanEmbeddingMechanism, _P]:
        """All that is decided from public facts before rows are released; raises for bad ones."""
        codec = TableCodec.build(X, y, schema)
        features = self._draw_features(
            codec, n_rows, np.random.RandomState(seeds.generate_state(4))
        )
        mechanism = MeanEmbeddingMechanism(
            features.spec(codec.n_classes, self._resolved_count_weight(codec, features, units)),
            self.epsilon,
            self.delta,
            self.adjacency,
            rows_per_unit=self.rows_per_unit,
            rows_bounded=units is not None,
            features=code_features(features),
            earlier=earlier,
        )
        return codec, features, mechanism, plan_of(codec, features)

    def _domain_batches(
        self,
        mechanism: DomainMechanism,
        columns: OpenColumns,
        X: Any,
        y: Any,
        units: Any,
        ledger: PrivacyLedger,
    ) -> Iterator[DomainBatch]:
        # Rows are asked for once the charge went through: whatever happens now, it stands.
        self.ledger_ = ledger
        yield from domain_batches(columns, X, y, _kept(units, mechanism))

    def _resolved_count_weight(self, codec: TableCodec, features: FeatureMap, units: Any) -> float:
        if not isinstance(self.count_weight, str):
            return self.count_weight
        if self.count_weight != "auto":
            raise PrivacyParameterError(
                f"count_weight must be 'auto' or a number, got {self.count_weight!r}."
            )
        if self.adjacency == "add-remove":
            return _COUNT_WEIGHT
        # Nobody needs the count of an unlabeled table whose number of rows is public.
        if codec.labels is None and units is None:
            return 0.0
        return max(_COUNT_WEIGHT, features.spec(codec.n_classes, 0.0).free_count_weight)

    def _batches(
        self,
        mechanism: MeanEmbeddingMechanism,
        codec: TableCodec,
        features: FeatureMap,
        X: Any,
        y: Any,
        units: Any,
        ledger: PrivacyLedger,
    ) -> Iterator[RowBatch | CodeBatch]:
        # Rows are asked for once the charge went through: whatever happens now, it stands.
        self.ledger_ = ledger
        keep = _kept(units, mechanism)
        position = 0
        for rows, labels in codec.encode(X, y):
            part = slice(position, position + len(rows))
            yield from features.batches(rows, labels, None if keep is None else keep[part])
            position += len(rows)


def _kept(
    units: Any, mechanism: DomainMechanism | MeanEmbeddingMechanism
) -> npt.NDArray[np.bool_] | None:
    # By the limit that the noise was made for: the parameter may have been set anew meanwhile.
    return None if units is None else bounded_rows(unit_codes(units), mechanism.rows_per_unit)
