"""The slicing mechanism: noisy histograms of slices, then a generator trained to match them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, ReleaseError
from skdpgen.features.slices import Directions, SliceFeatureMap
from skdpgen.generators.mixture import MixtureGenerator
from skdpgen.privacy.ledger import Adjacency, PrivacyLedger
from skdpgen.synthesizers._callbacks import check_verbose
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap
from skdpgen.synthesizers._parameters import seed_sequence
from skdpgen.synthesizers._table import TableCodec

if TYPE_CHECKING:
    from skdpgen.generators.base import GeneratorSpec
    from skdpgen.synthesizers.base import Plan
    from skdpgen.training.sliced_objective import Distance

__all__ = ["SlicedFDivSynthesizer"]

# Bins of a number before it is projected: fine beside the cells of a slice.
_N_BINS = 128
_NETWORK_STEPS = 3000


class SlicedFDivSynthesizer(EmbeddingSynthesizer):
    """Differentially private synthetic tables from noisy histograms of slices.

    ``fit`` reads the private rows once: along each of many random slices it counts, for every
    class, how many rows lie in each cell, adds Gaussian noise to the counts, and stores them as
    :attr:`release_`. A generator is then trained so that its rows, projected on the same
    slices, have the same distribution. Training, retraining and sampling only see the release,
    so they cost no privacy.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, in [1e-6, 500]. Privacy parameter.
    delta : float
        Privacy parameter, in (0, 1); well below one over the number of rows.
    schema : Schema, mapping or path, default=None
        Public facts about the columns, see :class:`~skdpgen.DPMERFSynthesizer`. Privacy parameter.
    divergence : str, default="hellinger"
        What compares slices when a network is trained: the smoothed-sliced f-divergences
        "hellinger", "kl", "reverse_kl", "js", "pearson" and "tv", or "sliced_wasserstein" or
        "mmd". A mixture minimizes the squared distance of histograms whatever this is.
        Post-processing.
    n_slices : int, default=400
        Number of slices m; the noise on each grows like its root. Privacy parameter.
    n_cells : int, default=32
        Cells of each slice, a power of two in 4 .. 1024. Privacy parameter.
    directions : {"wrapped", "sparse", "dense", "frame"}, default="wrapped"
        Which slices, see :meth:`SliceFeatureMap.draw`. "wrapped" ones look at two or three columns
        and are matched by a mixture of products, exactly and fast; the others are projections of
        the encoded row, which train a network: "sparse" on two or three columns, "dense" and
        "frame" (orthogonal directions) on all of them. Privacy parameter.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        The neighboring relation. Under replace-one the number of rows is public; under add-remove
        it is private and nothing depends on it. Privacy parameter.
    rows_per_unit : int, default=1
        Rows that one unit of privacy (a patient, say) contributes at most; the noise grows by
        this factor. With ``unit_id`` in ``fit`` the limit is enforced, without it is your promise.
        Privacy parameter.
    count_weight : float or "auto", default="auto"
        Weight of the class counts in the joint release; "auto" is 0.2, or 0 where nobody needs
        them. Privacy parameter.
    domain_budget : float or None, default=0.1
        Share of the budget (of the squared privacy parameter of Gaussian noise, and of ``delta``)
        that learns what the schema lacks: bounds of numbers and times, values of categories. It is
        spent only if something is lacking. None refuses such columns by name. Privacy parameter.
    ledger : PrivacyLedger, default=None
        Where spends are recorded. None keeps a ledger of this estimator, over all its fits.
        Privacy parameter.
    class_weight : {"balanced", None}, default="balanced"
        "balanced" gives rare classes more weight in training, None their share. The synthetic
        classes keep their proportions in both cases. Post-processing.
    generator : {"auto", "mixture", "mlp"}, MixtureGenerator, Module or callable
        What makes rows, "auto" by default: a mixture of products for wrapped slices (see
        :class:`~skdpgen.MixtureGenerator`), a multilayer perceptron for the others (modules and
        callables as in :class:`~skdpgen.DPMERFSynthesizer`). Post-processing.
    n_steps : int, default=None
        Most gradient steps; None is 2000 for a mixture (1300 where noise is small), 3000 for a
        network. Post-processing.
    batch_size : int, default=None
        Harmonics a step of a mixture (None is 250), generated rows a step of a network (None is
        256). Post-processing.
    learning_rate : float, default=None
        Largest learning rate of Adam; None is that of
        :class:`~skdpgen.DPMERFSynthesizer` for a mixture, and for a network 1e-3
        with an f-divergence, else 2e-3. Post-processing.
    device : str, default="auto"
        Where to train. Post-processing.
    verbose : int, default=0
        1 prints about ten lines a training, 2 prints one a step. Post-processing.
    random_state : int, RandomState instance or None, default=None
        Seeds what is public: slices, initial weights, training, sampling. Privacy noise always
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
        Distance to the release, per step; for a mixture less its expected noise.
    noise_floor_ : float
        What was subtracted for the noise; 0 for a network, whose distances have no simple one.
    classes_ : ndarray
        Values of the target, for labeled tables.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names, with the target for ``fit(df)``.
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    skdpgen.DPMERFSynthesizer : Random features instead of slices; the first choice for tables.

    References
    ----------
    The smoothed-sliced f-divergence, and a mechanism that releases noisy projections of every row:
    arXiv 2410.19941. The histograms are central, ours, and useful at common budgets.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Schema, SlicedFDivSynthesizer
    >>> df = pd.DataFrame({"age": [34, 51, 29] * 100, "smoker": ["no", "yes", "no"] * 100})
    >>> schema = Schema.from_dict({"target": "smoker", "columns": {
    ...     "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
    ...     "smoker": {"kind": "label", "values": ["no", "yes"]}}})
    >>> synth = SlicedFDivSynthesizer(1.0, 1e-5, schema=schema, n_slices=20, n_steps=20,
    ...                               random_state=0).fit(df)
    >>> synth.sample(5).dtypes.equals(df.dtypes)
    True
    """

    post_processing_parameters = (
        "divergence",
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
        divergence: Distance = "hellinger",
        n_slices: int = 400,
        n_cells: int = 32,
        directions: Directions = "wrapped",
        adjacency: Adjacency = "replace-one",
        rows_per_unit: int = 1,
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
        self.divergence = divergence
        self.n_slices = n_slices
        self.n_cells = n_cells
        self.directions = directions
        self.adjacency = adjacency
        self.rows_per_unit = rows_per_unit
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
        return SliceFeatureMap.draw(
            codec.atoms(_N_BINS),
            n_bins=_N_BINS,
            directions=self.directions,
            n_slices=self.n_slices,
            n_cells=self.n_cells,
            random_state=random_state,
        )

    @classmethod
    def _parameters_of(cls, features: FeatureMap) -> dict[str, Any]:
        if not isinstance(features, SliceFeatureMap):
            raise ReleaseError("the release has no slices: it was made by another synthesizer.")
        return {
            "n_slices": features.n_slices,
            "n_cells": features.n_cells,
            "directions": features.directions,
        }

    def _plan(self, codec: TableCodec, features: FeatureMap) -> Plan:
        from skdpgen.training.sliced_objective import check_distance

        check_verbose(self.verbose)
        if self.class_weight not in (None, "balanced"):
            raise InputError(f"class_weight must be None or 'balanced', got {self.class_weight!r}.")
        assert isinstance(features, SliceFeatureMap)
        check_distance(self.divergence)
        balanced = self.class_weight is not None
        common: dict[str, Any] = {"device": self.device, "seeds": seed_sequence(self.random_state)}
        if features.wrapped:
            from skdpgen.synthesizers._mixture import plan_mixture

            return plan_mixture(
                self.generator,
                what="wrapped slices",
                otherwise="directions='sparse'",
                balanced=balanced,
                n_steps=self.n_steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                **common,
            )
        from skdpgen.synthesizers._sliced import plan_sliced

        return plan_sliced(
            self.divergence,
            balanced,
            layout=codec.layout,
            n_classes=codec.n_classes,
            generator=self.generator,
            n_steps=_NETWORK_STEPS if self.n_steps is None else self.n_steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            **common,
        )
