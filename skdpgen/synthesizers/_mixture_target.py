"""What a release says, in the terms of a mixture of products: waves, tables and their noise."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.privacy.release import Release
from skdpgen.training.mixture_objective import frequency_groups
from skdpgen.training.mixture_trainer import MixtureSettings, MixtureTarget
from skdpgen.training.trainer import resolve_device

__all__ = ["mixture_target"]

# Classes rarer than this get no more weight: their released features are mostly noise.
_RAREST = 0.01


def mixture_target(
    features: InteractionFeatureMap | SliceFeatureMap,
    release: Release,
    settings: MixtureSettings,
    balanced: bool,
    parts: npt.NDArray[np.int64] | None = None,
) -> MixtureTarget:
    """What a release says about waves of mean squared amplitude 1, and about shares of codes.

    Parameters
    ----------
    features : InteractionFeatureMap or SliceFeatureMap
        The features of the release; slices must be wrapped.
    release : Release
        The release.
    settings : MixtureSettings
        Batch size, seed and device decide how the waves are grouped.
    balanced : bool
        Whether rare classes get more weight than their share.
    parts : ndarray of int, default=None
        Families of frequencies, or slices, that the target is about; the one-way tables always
        are. None is all of them.
    """
    if parts is None:
        parts = np.arange(features.n_parts)
    if isinstance(features, SliceFeatureMap):
        return _of_slices(features, release, settings, balanced, parts)
    spec = release.spec
    one = 2.0**spec.lattice_bits
    harmonics = np.array(features.fourier.amplitudes(spec.signed_bound)) / one
    amplitude = float(np.sqrt(np.mean(harmonics**2)))
    category = spec.category_steps / one
    embedding = release.mean_embedding()
    n_signed = spec.n_signed
    part = features.part(parts)
    waves = part.waves()
    sizes = [tables[0].shape[1] // len(harmonics) for tables in waves]
    groups = frequency_groups(
        part.subsets,
        waves,
        embedding[:, features.coordinates(parts)] / amplitude,
        np.concatenate([np.repeat(harmonics, size) for size in sizes]) / amplitude,
        settings.batch_size,
        np.random.default_rng(settings.seed),
        resolve_device(settings.device),
    )
    proportions = release.class_proportions()
    return MixtureTarget(
        groups=groups,
        n_codes=features.atoms.n_codes,
        n_ordered=features.atoms.n_ordered,
        one_way=embedding[:, n_signed:] / category if category else None,
        proportions=proportions,
        feature_stddev=release.coordinate_stddev / amplitude,
        one_way_stddev=release.coordinate_stddev / category if category else 0.0,
        class_weights=_class_weights(proportions, balanced),
        # Released coordinates all have the same noise, so squared errors count alike on that scale.
        one_way_weight=(category / amplitude) ** 2 / part.n_frequencies,
    )


def _of_slices(
    features: SliceFeatureMap,
    release: Release,
    settings: MixtureSettings,
    balanced: bool,
    parts: npt.NDArray[np.int64],
) -> MixtureTarget:
    """Histograms of wrapped slices as waves, by the discrete Fourier transform.

    It keeps squared distances (Parseval), so the loss is that of the histograms. Harmonic 0 is the
    class count, which the release has with less noise; those above B / 2 are the complex conjugates
    of those below; the one at B / 2 is real and stands for itself alone, hence half the weight.
    """
    n_cells = features.n_cells
    harmonics = np.arange(1, n_cells // 2 + 1)
    part = features.part(parts)
    histograms = features.histograms(release)[:, np.sort(parts)]
    spectrum = np.fft.fft(histograms, axis=2).conj()[:, :, harmonics]
    relative = np.where(harmonics == n_cells // 2, math.sqrt(0.5), 1.0)
    spectrum = (spectrum * relative).reshape(len(spectrum), -1)
    multiples = harmonics.astype(np.uint16)
    groups = frequency_groups(
        part.subsets,
        [[table[:, None] * multiples for table in slice_] for slice_ in part.tables],
        np.concatenate([spectrum.real, spectrum.imag], axis=1),
        np.tile(relative, part.n_slices),
        settings.batch_size,
        np.random.default_rng(settings.seed),
        resolve_device(settings.device),
    )
    proportions = release.class_proportions()
    # White noise stays white: B / 2 times the variance on cosine and sine of each harmonic, and
    # the last one, with half the weight, has no sine.
    mean_noise = n_cells / 2 * (1 - 1 / n_cells)
    return MixtureTarget(
        groups=groups,
        n_codes=features.atoms.n_codes,
        n_ordered=features.atoms.n_ordered,
        one_way=None,
        proportions=proportions,
        feature_stddev=features.stddev(release) * math.sqrt(mean_noise),
        one_way_stddev=0.0,
        class_weights=_class_weights(proportions, balanced),
        one_way_weight=0.0,
    )


def _class_weights(proportions: npt.NDArray[np.float64], balanced: bool) -> npt.NDArray[np.float64]:
    """Weights with mean 1.

    Balanced ones lie between the joint objective, in which a rare class counts by its squared
    share, and one in which all count the same and the rarest, mostly noise, count most.
    """
    if not balanced:
        return np.ones(len(proportions))
    weights = 1 / np.sqrt(np.maximum(proportions, _RAREST))
    return np.asarray(weights / weights.mean())
