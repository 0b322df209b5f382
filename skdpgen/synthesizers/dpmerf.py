"""DP-MERF: one noisy mean embedding of the rows, then a generator trained to match it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from skdpgen.data.frames import as_series, as_table, n_rows
from skdpgen.data.schema import Schema
from skdpgen.exceptions import (
    InputError,
    PrivacyParameterError,
    PrivacyWarning,
    ReleaseError,
    SkdpgenWarning,
)
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.features.settings import GaussianFeatures, InteractionFeatures, ReleaseFacts
from skdpgen.generators.mixture import MixtureGenerator
from skdpgen.privacy.accounting import check_epsilon_delta, noise_multiplier
from skdpgen.privacy.batches import CodeBatch, RowBatch
from skdpgen.privacy.entries import check_rows_per_unit
from skdpgen.privacy.ledger import Adjacency, PrivacyLedger, check_adjacency
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.release import Release
from skdpgen.privacy.units import bounded_rows
from skdpgen.synthesizers._feature_maps import (
    FeatureMap,
    code_features,
    draw_feature_map,
    feature_map_of,
    fits,
)
from skdpgen.synthesizers._parameters import (
    as_schema,
    seed_sequence,
    unit_codes,
    unit_column,
)
from skdpgen.synthesizers._table import TableCodec
from skdpgen.synthesizers.base import ReleaseSynthesizer

if TYPE_CHECKING:
    from skdpgen.generators.base import GeneratorSpec
    from skdpgen.synthesizers._mixture import MixturePlan
    from skdpgen.synthesizers._training import TrainingPlan

__all__ = ["DPMERFSynthesizer"]

# What defaults take for the number of rows where it is private and no hint is given.
_USUAL_N_ROWS = 30_000


class DPMERFSynthesizer(ReleaseSynthesizer):
    """Differentially private synthetic tables from one noisy mean embedding (DP-MERF).

    ``fit`` reads the private rows once: it sums random features of the rows, crossed with the
    label, adds Gaussian noise, and stores the result as :attr:`release_`. A generator is then
    trained to produce rows with the same mean embedding. Training, retraining and sampling only
    see the release, so they cost no privacy.

    Tables get features of small subsets of columns and a mixture of products as generator; images,
    or any table with ``features=GaussianFeatures()``, the features and networks of the paper. Which
    variant of the paper then runs follows from the table and the parameters: *labeled* where the
    schema names a target with listed values, else *unlabeled*; *heterogeneous* (sum of a Gaussian
    kernel on numbers and a linear kernel on one-hot categories) where there are categories;
    *imbalanced* with ``class_weight="balanced"``, the default; *images* (convolutional generator)
    where the schema has an ``image_shape``.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, in [1e-6, 500]. Privacy parameter.
    delta : float
        Privacy parameter, in (0, 1); well below one over the number of rows.
    schema : Schema, mapping or path, default=None
        Public facts about the columns: a :class:`~skdpgen.Schema`, its dictionary form, or the
        path of its JSON file. None uses what dtypes declare by themselves and refuses the other
        columns by name. Privacy parameter.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        The neighboring relation. Under replace-one the number of rows is public; under add-remove
        it is private and nothing depends on it. Privacy parameter.
    rows_per_unit : int, default=1
        Rows that one unit of privacy (a patient, say) contributes at most; the noise grows by
        this factor. With ``unit_id`` in ``fit`` the limit is enforced, without it is your promise.
        Privacy parameter.
    features : {"auto"}, InteractionFeatures or GaussianFeatures, default="auto"
        Which features of the rows are released. "auto" is
        :class:`~skdpgen.InteractionFeatures` for tables and :class:`~skdpgen.GaussianFeatures`,
        the kernel of the paper, for images. Privacy parameter.
    n_rows_hint : int, default=None
        About how many rows the table has. Only defaults that are "auto" follow it, and only where
        the number itself is private: under add-remove and with ``unit_id``. It is published: give
        what is known anyway, not the count. None stands for 30,000. Privacy parameter.
    count_weight : float or "auto", default="auto"
        Weight of the class counts in the joint release. "auto" is as large as is
        free under replace-one (1 in the paper's features), and 0.2 under add-remove. Privacy
        parameter.
    ledger : PrivacyLedger, default=None
        Where spends are recorded. None keeps a ledger of this estimator, over all its fits.
        Privacy parameter.
    class_weight : {"balanced", None}, default="balanced"
        "balanced" gives rare classes more weight in training: equal weight for a network, where
        they stand out of the noise (the paper's imbalanced variant), and weights of one over the
        root of their share for a mixture. None weights classes by their squared share. The
        synthetic classes keep their proportions in all cases. Post-processing.
    generator : {"auto", "mixture", "mlp", "conv"}, MixtureGenerator, Module or callable
        What makes rows, "auto" by default. Interaction features take a mixture of products:
        "mixture" or a :class:`~skdpgen.MixtureGenerator`. Gaussian features take a network:
        "auto" is convolutional for images, else a multilayer perceptron; a module is copied and
        gets ``(noise, one_hot_labels)``; a callable gets ``(layout, n_classes)`` and returns a
        module. Post-processing.
    n_steps : int, default=None
        Most gradient steps; None is 2000, or 1600 for a mixture on a release with little noise.
        Post-processing.
    batch_size : int, default=None
        Frequencies a step of a mixture (None is 250), generated rows a step of a network (None is
        256). Post-processing.
    learning_rate : float, default=None
        Largest learning rate of Adam; None is 0.03 for a mixture and 3e-3 for a network.
        Post-processing.
    device : str, default="auto"
        Where to train. Post-processing.
    random_state : int, RandomState instance or None, default=None
        Seeds what is public: frequencies, initial weights, training, sampling. Privacy noise always
        comes from the operating system and is different in every fit.

    Attributes
    ----------
    release_ : Release
        All that is left of the rows. Can be saved, published, and trained on elsewhere.
    ledger_ : PrivacyLedger
        What was spent, over all fits.
    generator_ : ProductMixture or Generator
        The trained generator, on the CPU.
    loss_curve_ : ndarray of shape (n_steps,)
        Squared distance to the release less its expected noise, per step.
    noise_floor_ : float
        What the noise contributes to the raw loss in expectation; already subtracted above.
    classes_ : ndarray
        Values of the target, for labeled tables.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names, with the target for ``fit(df)``.
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    skdpgen.TabularPreprocessor : The encoding of tables.
    skdpgen.mmd_error_bound : Helps to choose ``n_features``.

    References
    ----------
    F. Harder, K. Adamczewski, M. Park, "DP-MERF: Differentially Private Mean Embeddings with Random
    Features for Practical Privacy-Preserving Data Generation", AISTATS 2021, arXiv 2002.11603.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import DPMERFSynthesizer, Schema
    >>> df = pd.DataFrame({"age": [34, 51, 29] * 100, "smoker": ["no", "yes", "no"] * 100})
    >>> schema = Schema.from_dict({"target": "smoker", "columns": {
    ...     "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
    ...     "smoker": {"kind": "label", "values": ["no", "yes"]}}})
    >>> synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, n_steps=20, random_state=0).fit(df)
    >>> synth.sample(5).dtypes.equals(df.dtypes)
    True
    >>> synth.release_.statement()
    '(1, 1e-05)-differentially private for replacing one row (replace-one adjacency).'
    """

    post_processing_parameters = (
        "class_weight",
        "generator",
        "n_steps",
        "batch_size",
        "learning_rate",
        "device",
        "random_state",
    )

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        adjacency: Adjacency = "replace-one",
        rows_per_unit: int = 1,
        features: GaussianFeatures | InteractionFeatures | Literal["auto"] = "auto",
        n_rows_hint: int | None = None,
        count_weight: float | Literal["auto"] = "auto",
        ledger: PrivacyLedger | None = None,
        class_weight: Literal["balanced"] | None = "balanced",
        generator: GeneratorSpec | MixtureGenerator = "auto",
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.adjacency = adjacency
        self.rows_per_unit = rows_per_unit
        self.features = features
        self.n_rows_hint = n_rows_hint
        self.count_weight = count_weight
        self.ledger = ledger
        self.class_weight = class_weight
        self.generator = generator
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, unit_id: Any = None) -> Self:
        """Release a noisy mean embedding of the rows, then train a generator on it.

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
        self : DPMERFSynthesizer

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
        check_epsilon_delta(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        # Converted once: lists would become arrays of objects over and over.
        X = as_table(X)
        y = None if y is None else as_series(y)
        codec = TableCodec.build(X, y, as_schema(self.schema, X))
        n = n_rows(X)
        units = None if unit_id is None else unit_column(unit_id, n)
        features = draw_feature_map(
            self.features,
            codec,
            self._release_facts(n if units is None else None),
            np.random.RandomState(seed_sequence(self.random_state).generate_state(4)),
        )
        mechanism = MeanEmbeddingMechanism(
            features.spec(codec.n_classes, self._resolved_count_weight(codec, features, units)),
            self.epsilon,
            self.delta,
            self.adjacency,
            rows_per_unit=self.rows_per_unit,
            rows_bounded=units is not None,
            features=code_features(features),
        )
        plan = self._plan(codec, features)
        ledger = self._ledger_in_use()
        # With units the number of rows is private: another unit may bring more or fewer.
        if self.adjacency == "replace-one" and units is None and self.delta > 1 / n:
            warnings.warn(
                "delta is larger than one over the number of rows: such a guarantee allows "
                "publishing a row as it is. Choose delta well below 1 / n.",
                PrivacyWarning,
                stacklevel=2,
            )
        facts, arrays = features.to_public()
        release = mechanism.release(
            self._batches(codec, features, X, y, units, ledger),
            ledger,
            public={"feature_map": facts, "schema": codec.public_schema()},
            public_arrays=arrays,
        )
        self._adopt(release, codec)
        return self._train(plan)

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
        DPMERFSynthesizer
            Fitted.

        Raises
        ------
        ReleaseError
            If the release doesn't verify, or carries no schema.
        """
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
            features=_settings_of(features),
        )
        codec = TableCodec.from_schema(schema, template)
        if codec.n_classes != release.spec.n_classes or not fits(features, codec):
            raise ReleaseError(
                "the template or the schema doesn't fit the release: columns, their order in the "
                "schema, and which dtypes can hold missing values must be those of the fit."
            )
        synthesizer._adopt(release, codec)
        return synthesizer.retrain(**params)

    # -- internals --------------------------------------------------------------------------------

    def _release_facts(self, n_rows: int | None) -> ReleaseFacts:
        """What features may know; under add-remove and with units the number of rows is private."""
        hint = _USUAL_N_ROWS if self.n_rows_hint is None else self.n_rows_hint
        if isinstance(hint, bool) or not isinstance(hint, Integral) or hint < 1:
            raise PrivacyParameterError(
                f"n_rows_hint must be an integer, at least 1, got {hint!r}."
            )
        if n_rows is None or self.adjacency == "add-remove":
            n_rows = hint
        noise = noise_multiplier(self.epsilon, self.delta) * check_rows_per_unit(self.rows_per_unit)
        return ReleaseFacts(self.adjacency, noise, max(1, n_rows))

    def _resolved_count_weight(self, codec: TableCodec, features: FeatureMap, units: Any) -> float:
        if not isinstance(self.count_weight, str):
            return self.count_weight
        if self.count_weight != "auto":
            raise PrivacyParameterError(
                f"count_weight must be 'auto' or a number, got {self.count_weight!r}."
            )
        if self.adjacency == "add-remove":
            return 0.2
        # Nobody needs the count of an unlabeled table whose number of rows is public.
        if codec.labels is None and units is None:
            return 0.0
        return features.spec(codec.n_classes, 0.0).free_count_weight

    def _batches(
        self,
        codec: TableCodec,
        features: FeatureMap,
        X: Any,
        y: Any,
        units: Any,
        ledger: PrivacyLedger,
    ) -> Iterator[RowBatch | CodeBatch]:
        # Rows are asked for once the charge went through: whatever happens now, it stands.
        self.ledger_ = ledger
        keep = None if units is None else bounded_rows(unit_codes(units), self.rows_per_unit)
        position = 0
        for rows, labels in codec.encode(X, y):
            part = slice(position, position + len(rows))
            yield from features.batches(rows, labels, None if keep is None else keep[part])
            position += len(rows)

    def _plan(self, codec: TableCodec, features: FeatureMap) -> TrainingPlan | MixturePlan:
        if self.class_weight not in (None, "balanced"):
            raise InputError(f"class_weight must be None or 'balanced', got {self.class_weight!r}.")
        common: dict[str, Any] = {
            "n_steps": self.n_steps,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "device": self.device,
            "seeds": seed_sequence(self.random_state),
        }
        generator = self.generator
        if isinstance(features, InteractionFeatureMap):
            from skdpgen.synthesizers._mixture import plan_mixture

            if isinstance(generator, str) and generator in ("auto", "mixture"):
                generator = MixtureGenerator()
            if not isinstance(generator, MixtureGenerator):
                raise InputError(
                    "interaction features train a mixture: leave generator at 'auto' or give a "
                    "MixtureGenerator, or release features=GaussianFeatures() for a network."
                )
            return plan_mixture(generator, balanced=self.class_weight is not None, **common)
        from skdpgen.synthesizers._training import plan_training

        if isinstance(generator, MixtureGenerator) or generator == "mixture":
            raise InputError("a mixture needs a release of InteractionFeatures.")
        return plan_training(
            codec.layout,
            codec.n_classes,
            generator=generator,
            objective="joint" if self.class_weight is None else "reweighted",
            **common,
        )

    def _train(self, plan: TrainingPlan | MixturePlan) -> Self:
        result = plan.train(self.release_)
        self.generator_ = result.generator
        self.loss_curve_ = result.debiased_loss_curve
        self.noise_floor_ = result.noise_floor
        if result.status == "diverged":
            warnings.warn(
                f"training diverged after {len(result.loss_curve)} steps and was stopped there: "
                f"call retrain with a smaller learning_rate, which is free.",
                SkdpgenWarning,
                stacklevel=3,
            )
        self._sampling_rng = np.random.default_rng(plan.sampling_seed)
        return self


def _settings_of(features: FeatureMap) -> GaussianFeatures | InteractionFeatures:
    """The parameter that describes the features of a release."""
    if isinstance(features, InteractionFeatureMap):
        return InteractionFeatures(
            features.n_frequencies,
            orders=tuple(sorted({len(subset) for subset in features.subsets})),
            n_bins=features.n_bins,
            block_share=features.block_share,
            max_subsets=len(features.subsets),
            n_harmonics=features.n_harmonics,
        )
    return GaussianFeatures(max(2, 2 * len(features.frequencies)))
