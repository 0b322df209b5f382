"""DP-MERF: one noisy mean embedding of the rows, then a generator trained to match it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, ReleaseError
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.features.mixed import MixedFeatureMap
from skdpgen.features.settings import GaussianFeatures, InteractionFeatures, ReleaseFacts
from skdpgen.generators.mixture import MixtureGenerator
from skdpgen.privacy.accounting import noise_multiplier
from skdpgen.privacy.entries import check_rows_per_unit
from skdpgen.privacy.ledger import Adjacency, PrivacyLedger
from skdpgen.synthesizers._callbacks import check_verbose
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap, draw_feature_map
from skdpgen.synthesizers._parameters import n_rows_hint, seed_sequence
from skdpgen.synthesizers._table import TableCodec

if TYPE_CHECKING:
    from skdpgen.generators.base import GeneratorSpec
    from skdpgen.synthesizers.base import Plan

__all__ = ["DPMERFSynthesizer"]


class DPMERFSynthesizer(EmbeddingSynthesizer):
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
        path of its JSON file. What it lacks is learned with ``domain_budget``; None lacks
        everything that dtypes don't declare by themselves. Privacy parameter.
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
    domain_budget : float or None, default=0.1
        Share of the budget (of the squared privacy parameter of Gaussian noise, and of ``delta``)
        that learns what the schema lacks: bounds of numbers and times, values of categories. It is
        spent only if something is lacking. None refuses such columns by name. Privacy parameter.
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
        Most gradient steps; None is 1500, or 1300 for a mixture on a release with little noise.
        Post-processing.
    batch_size : int, default=None
        Frequencies a step of a mixture (None is 250), generated rows a step of a network (None is
        256). Post-processing.
    learning_rate : float, default=None
        Largest learning rate of Adam; None is 0.05 for a mixture (0.03 where
        noise is large, 0.1 where it is small) and 3e-3 for a network.
        Post-processing.
    device : str, default="auto"
        Where to train. Post-processing.
    verbose : int, default=0
        1 prints about ten lines a training, 2 prints one a step. Post-processing.
    random_state : int, RandomState instance or None, default=None
        Seeds what is public: frequencies, initial weights, training, sampling. Privacy noise always
        comes from the operating system and is different in every fit.

    Attributes
    ----------
    release_ : Release
        All that is left of the rows. Can be saved, published, and trained on elsewhere.
    ledger_ : PrivacyLedger
        What was spent, over all fits.
    schema_ : Schema
        Every column as it was encoded, what was learned included: as public as the release.
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
        "verbose",
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
        domain_budget: float | None = 0.1,
        ledger: PrivacyLedger | None = None,
        class_weight: Literal["balanced"] | None = "balanced",
        generator: GeneratorSpec | MixtureGenerator = "auto",
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        device: str = "auto",
        verbose: int = 0,
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
        self.domain_budget = domain_budget
        self.ledger = ledger
        self.class_weight = class_weight
        self.generator = generator
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    # -- hooks ------------------------------------------------------------------------------------

    def _draw_features(
        self, codec: TableCodec, n_rows: int | None, random_state: np.random.RandomState
    ) -> FeatureMap:
        hint = n_rows_hint(self.n_rows_hint)
        noise = noise_multiplier(self.epsilon, self.delta) * check_rows_per_unit(self.rows_per_unit)
        facts = ReleaseFacts(self.adjacency, noise, hint if n_rows is None else max(1, n_rows))
        return draw_feature_map(self.features, codec, facts, random_state)

    @classmethod
    def _parameters_of(cls, features: FeatureMap) -> dict[str, Any]:
        if isinstance(features, InteractionFeatureMap):
            return {
                "features": InteractionFeatures(
                    features.n_frequencies,
                    orders=tuple(sorted({len(subset) for subset in features.subsets})),
                    n_bins=features.n_bins,
                    block_share=features.block_share,
                    max_subsets=len(features.subsets),
                    n_harmonics=features.n_harmonics,
                )
            }
        if isinstance(features, MixedFeatureMap):
            return {"features": GaussianFeatures(max(2, 2 * len(features.frequencies)))}
        raise ReleaseError("the release wasn't made by DPMERFSynthesizer: it holds slices.")

    def _plan(self, codec: TableCodec, features: FeatureMap) -> Plan:
        check_verbose(self.verbose)
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

            return plan_mixture(
                generator,
                what="interaction features",
                otherwise="features=GaussianFeatures()",
                balanced=self.class_weight is not None,
                **common,
            )
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
