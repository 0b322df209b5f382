"""What a private search tries: releases with one noise, judged by one noisy yardstick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from skdpgen.exceptions import InputError, SchemaError
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.generators.base import Generator
from skdpgen.generators.mixture import ProductMixture
from skdpgen.model_selection._held_out import held_out_error
from skdpgen.privacy.batches import CodeBatch, code_sums
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.release import Release
from skdpgen.privacy.shares import ReservedSpend
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap, feature_map_of
from skdpgen.synthesizers._labels import stratified_labels
from skdpgen.synthesizers._parameters import as_schema
from skdpgen.synthesizers._table import TableCodec

if TYPE_CHECKING:
    from skdpgen.synthesizers.base import Plan

__all__ = ["PrivateTable", "Trial", "check_names", "distance"]

# Belong to the search as a whole: to what is protected, how much, and where it is charged.
_FIXED = frozenset(
    {
        "adjacency",
        "delta",
        "domain_budget",
        "epsilon",
        "ledger",
        "n_rows_hint",
        "random_state",
        "rows_per_unit",
        "schema",
    }
)
# Rows by which a generator without exact expectations is known.
_ROWS = 2**15


@dataclass(frozen=True)
class PrivateTable:
    """The rows of a search, and what is public about them.

    Parameters
    ----------
    X, y, units : table, and native columns or None
        As in ``fit`` of a synthesizer.
    n_rows : int or None
        Their number where it is public.
    """

    X: Any
    y: Any
    units: Any
    n_rows: int | None


@dataclass(frozen=True)
class Trial:
    """One candidate, decided from public facts: nothing about it can fail once rows are read.

    Parameters
    ----------
    settings : mapping
        What sets it apart.
    synthesizer : EmbeddingSynthesizer
        With these settings; it is never fitted but for the one that is published.
    codec : TableCodec
        The encoding of the table.
    features : FeatureMap
        The features of its releases, drawn once: runs differ in their noise only.
    mechanism : MeanEmbeddingMechanism
        Makes its releases.
    plan : plan of the training
        Made once, before rows are read. A plan a run would call a user's callable that often, which
        could count, and what it made for the published run would be another generator than won.
    public : mapping
        What they say about themselves beside arrays.
    """

    settings: Mapping[str, Any]
    synthesizer: EmbeddingSynthesizer
    codec: TableCodec
    features: FeatureMap
    mechanism: MeanEmbeddingMechanism
    plan: Plan
    public: Mapping[str, Any]

    @classmethod
    def prepare(
        cls,
        estimator: EmbeddingSynthesizer,
        settings: Mapping[str, Any],
        table: PrivateTable,
        earlier: tuple[LedgerEntry, ...] = (),
    ) -> Trial:
        """Check and plan a candidate.

        Parameters
        ----------
        estimator : EmbeddingSynthesizer
            With the guarantee, the schema and the seed of the trial.
        settings : mapping
            Parameters to change, nested ones included.
        table : PrivateTable
            No cell of it is read.
        earlier : tuple of LedgerEntry
            What the search charges, for the candidates among which it selects.

        Raises
        ------
        ValueError
            If the candidate can't be released or trained, with the reason.
        """
        synthesizer = clone(estimator)
        synthesizer._set_copies(
            {name: clone(value, safe=False) for name, value in settings.items()}
        )
        try:
            schema = as_schema(synthesizer.schema, table.X)
            codec, features, mechanism, plan = synthesizer._planned(
                table.X,
                table.y,
                schema,
                table.n_rows,
                table.units,
                np.random.SeedSequence(synthesizer.random_state),
                synthesizer._plan,
                earlier,
            )
            public = {"feature_map": features.to_public()[0], "schema": codec.public_schema()}
        except SchemaError as error:
            raise SchemaError(
                f"{error}\nPrivateSearchCV needs a complete schema and learns none: declare it, or "
                f"take the schema_ of a synthesizer that learned it, for a price of its own that "
                f"adds up with that of the search."
            ) from None
        return cls(settings, synthesizer, codec, features, mechanism, plan, public)

    def release(self, table: PrivateTable, spend: ReservedSpend, ledger: PrivacyLedger) -> Release:
        """Read the rows and make a release; ``spend`` covers it, ``ledger`` was charged for it."""
        return self.mechanism.release(
            self.synthesizer._batches(
                self.mechanism, self.codec, self.features, table.X, table.y, table.units, ledger
            ),
            spend,
            public=self.public,
            public_arrays=self.features.to_public()[1],
        )

    def trained(self, release: Release) -> Generator | ProductMixture:
        """A generator trained on a release, always in the same way."""
        # A plan is for the kind of release that its mechanism makes.
        generator: Generator | ProductMixture = self.plan.train(release).generator  # type: ignore[arg-type]
        return generator

    def published(self, release: Release, ledger: PrivacyLedger) -> EmbeddingSynthesizer:
        """The synthesizer with the release, trained; from here on everything is as after a fit."""
        synthesizer = self.synthesizer.set_params(ledger=ledger)
        synthesizer._adopt(release, self.codec)
        synthesizer.ledger_ = ledger
        return synthesizer._train(self.plan)


def check_names(estimator: EmbeddingSynthesizer, candidates: list[dict[str, Any]]) -> None:
    """Refuse settings that belong to the search as a whole, or to nothing.

    Raises
    ------
    InputError
        With the name.
    """
    known = estimator.get_params(deep=False)
    for name in sorted({str(name) for settings in candidates for name in settings}):
        owner = name.partition("__")[0]
        if owner in _FIXED:
            raise InputError(
                f"{name!r} can't be searched: it is the same for all candidates. Set epsilon, "
                f"delta and random_state of the search, and the other ones of its estimator."
            )
        if owner not in known:
            free = ", ".join(sorted(known.keys() - _FIXED))
            raise InputError(
                f"{name!r} isn't a parameter of {type(estimator).__name__}. Possible: {free}."
            )


def distance(generator: Generator | ProductMixture, yardstick: Release, seed: int) -> float:
    """Squared distance of a generator's expected embedding to a noisy yardstick.

    Parameters
    ----------
    generator : Generator or ProductMixture
        Its classes get the shares that the yardstick says.
    yardstick : Release
        Of interaction features.
    seed : int
        Seed of the rows by which the expectation is estimated where it isn't known exactly: it is
        for mixtures over the yardstick's codes.

    Returns
    -------
    float
        Per wave of mean square amplitude 1, less the noise of the yardstick and, in expectation,
        what sampled rows add: it can be negative.
    """
    features = feature_map_of(yardstick)
    assert isinstance(features, InteractionFeatureMap)
    if isinstance(generator, ProductMixture) and generator.atoms == features.atoms:
        return held_out_error(generator, yardstick, np.arange(features.n_parts), seed)
    spec = yardstick.spec
    shares = yardstick.class_proportions()
    labels = stratified_labels(shares, _ROWS, np.random.default_rng(seed))
    rows: npt.NDArray[Any] = generator.sample(labels, seed)
    codes = features.atoms.encode(rows.astype(np.float64))
    sums, _ = code_sums(CodeBatch(codes, labels), spec, features.fourier)
    one, n_signed = 2.0**spec.lattice_bits, spec.n_signed
    sampled = sums[:, :n_signed] / (one * _ROWS)
    released = yardstick.mean_embedding()[:, :n_signed]
    power = spec.signed_bound / one**2 / features.n_frequencies
    noise = 2 * len(shares) * yardstick.coordinate_stddev**2
    # The variance of a mean of vectors of this length within classes of these sizes.
    excess = (
        power - np.square(sampled).sum(axis=1) @ (1 / shares) / features.n_frequencies
    ) / _ROWS
    squares = np.square(sampled - released).sum() / features.n_frequencies
    return float((squares - noise - excess) / power)
