"""From a user's choice of features, or from a release, to the feature map."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from skdpgen.exceptions import PrivacyParameterError, ReleaseError
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.features.mixed import MixedFeatureMap
from skdpgen.features.settings import GaussianFeatures, InteractionFeatures, ReleaseFacts
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._table import TableCodec

__all__ = ["FeatureMap", "code_features", "draw_feature_map", "feature_map_of", "fits"]

FeatureMap: TypeAlias = MixedFeatureMap | InteractionFeatureMap | SliceFeatureMap

_KINDS: dict[str, type[FeatureMap]] = {
    "gaussian": MixedFeatureMap,
    "interactions": InteractionFeatureMap,
    "slices": SliceFeatureMap,
}


def draw_feature_map(
    features: Any, codec: TableCodec, facts: ReleaseFacts, random_state: np.random.RandomState
) -> FeatureMap:
    """Draw the feature map of a table.

    Parameters
    ----------
    features : "auto", GaussianFeatures or InteractionFeatures
        "auto" is Gaussian for images, interactions for everything else.
    codec : TableCodec
        The encoding of the table.
    facts : ReleaseFacts
        What is public about the release.
    random_state : RandomState
        Public randomness.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range.
    """
    if isinstance(features, str) and features == "auto":
        image = codec.layout.image_shape is not None
        features = GaussianFeatures() if image else InteractionFeatures()
    if isinstance(features, GaussianFeatures):
        return features.draw(codec.layout, random_state)
    if isinstance(features, InteractionFeatures):
        return features.draw(codec.atoms(features.check_bins()), facts, random_state)
    raise PrivacyParameterError(
        f"features must be 'auto', GaussianFeatures(...) or InteractionFeatures(...), "
        f"got {features!r}."
    )


def code_features(features: FeatureMap) -> CodeFourier | None:
    """What the mechanism needs to make features of codes; None where rows bring theirs."""
    return features.fourier if isinstance(features, InteractionFeatureMap) else None


def feature_map_of(release: Release) -> FeatureMap:
    """The feature map that a release was made with.

    Raises
    ------
    ReleaseError
        If the map is damaged, unknown, or contradicts what the release says of its rows.
    """
    # Releases from before there were several kinds name none.
    kind = release.public["feature_map"].get("kind", "gaussian")
    if kind not in _KINDS:
        raise ReleaseError("the release was made with features that this version doesn't know.")
    try:
        features = _KINDS[kind].from_release(release)
        expected = features.spec(release.spec.n_classes, release.spec.count_weight)
    except Exception as error:
        raise ReleaseError(f"the feature map of the release is damaged: {error}") from None
    if expected != release.spec:
        raise ReleaseError("the feature map of the release contradicts its spec.")
    return features


def fits(features: FeatureMap, codec: TableCodec) -> bool:
    """Whether a feature map was drawn for rows that are encoded like this."""
    if isinstance(features, MixedFeatureMap):
        return features.layout == codec.layout
    return features.atoms == codec.atoms(features.n_bins)
