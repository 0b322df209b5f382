"""Trained synthesizers in files without pickle, and which synthesizer a release belongs to.

A model file is an archive like that of a release (:mod:`skdpgen.privacy.archive`). It holds the
release, the post-processing parameters and the weights of the generator: nothing beside the release
comes from rows, and the release is all that the rest was made of.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import InputError, ReleaseError
from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.generators.mixture import MixtureGenerator, ProductMixture
from skdpgen.privacy.archive import read_archive, write_archive
from skdpgen.privacy.release import Release
from skdpgen.privacy.slicing_release import SlicingRelease
from skdpgen.synthesizers._feature_maps import feature_map_of
from skdpgen.synthesizers.base import ReleaseSynthesizer
from skdpgen.synthesizers.dpmerf import DPMERFSynthesizer
from skdpgen.synthesizers.sliced import SlicedFDivSynthesizer
from skdpgen.synthesizers.sliced_rows import SlicedRowsSynthesizer

if TYPE_CHECKING:
    from skdpgen.atoms import AtomLayout
    from skdpgen.generators.base import Generator

__all__ = ["is_model", "load_model", "load_release", "save_model", "synthesizer_class"]

_FORMAT, _VERSION = "skdpgen-model", 1
_RELEASE, _WEIGHTS = "release/", "weights/"
_LOSS, _FLOOR = "training/loss_curve", "training/noise_floor"
# How far the probabilities in a file may be from summing to one: they are of 32 bits.
_TOLERANCE = 1e-3


def synthesizer_class(release: Release | SlicingRelease) -> type[Any]:
    """The class of synthesizer that makes such releases and trains on them.

    Parameters
    ----------
    release : Release or SlicingRelease
        Any.

    Returns
    -------
    type
        ``DPMERFSynthesizer``, ``SlicedFDivSynthesizer`` or ``SlicedRowsSynthesizer``.
    """
    if isinstance(release, SlicingRelease):
        return SlicedRowsSynthesizer
    kind = release.public.get("feature_map", {}).get("kind")
    return SlicedFDivSynthesizer if kind == "slices" else DPMERFSynthesizer


def load_release(path: str | os.PathLike[str]) -> Release | SlicingRelease:
    """Read a release of any kind, and verify it.

    Parameters
    ----------
    path : path-like
        A file that ``release.save`` or :func:`save_model` wrote.

    Returns
    -------
    Release or SlicingRelease

    Raises
    ------
    OSError
        If the file can't be opened.
    ReleaseError
        If it is none of the two, is damaged, or doesn't verify.
    """
    header, arrays = read_archive(path)
    if header.get("format") == _FORMAT:
        return _release_of(header, arrays)
    return _release_from(header, arrays)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a model, and not a release alone.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    bool
        False for a release.

    Raises
    ------
    OSError
        If the file can't be opened.
    ReleaseError
        If it is neither.
    """
    return read_archive(path)[0].get("format") == _FORMAT


def save_model(synthesizer: ReleaseSynthesizer, path: str | os.PathLike[str]) -> None:
    """Write a trained synthesizer to a file, which appears whole or not at all.

    Parameters
    ----------
    synthesizer : DPMERFSynthesizer, SlicedFDivSynthesizer or SlicedRowsSynthesizer
        Fitted, with a generator that was made from settings: a mixture, or one of the networks by
        name.
    path : path-like
        The file; it is replaced if it exists. It says no more of the rows than the release does.

    Raises
    ------
    InputError
        If it isn't trained, or its generator is a module or callable of your own: keep the weights
        of that yourself, and the release beside them.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> from skdpgen import DPMERFSynthesizer, load_model, save_model
    >>> df = pd.DataFrame({"smoker": ["no", "yes", "no"] * 100, "ill": [True, False, False] * 100})
    >>> schema = {"columns": {"smoker": {"kind": "categorical", "values": ["no", "yes"]},
    ...                       "ill": {"kind": "boolean"}}}
    >>> synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, n_steps=20).fit(df)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "smokers.model")
    >>> save_model(synth, path)
    >>> loaded = load_model(path, template=df)
    >>> loaded.sample(5, random_state=0).equals(synth.sample(5, random_state=0))
    True
    >>> folder.cleanup()
    """
    kinds = (DPMERFSynthesizer, SlicedFDivSynthesizer, SlicedRowsSynthesizer)
    if type(synthesizer) not in kinds or not hasattr(synthesizer, "generator_"):
        raise InputError(
            f"save_model takes a trained synthesizer of skdpgen, got {type(synthesizer).__name__}."
        )
    release_header, release_arrays = synthesizer.release_.to_archive()
    names = synthesizer.post_processing_parameters
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "synthesizer": type(synthesizer).__name__,
        "parameters": {name: _plain(name, getattr(synthesizer, name)) for name in names},
        "release": release_header,
    }
    arrays = {
        **{f"{_RELEASE}{name}": array for name, array in release_arrays.items()},
        **{f"{_WEIGHTS}{name}": array for name, array in _weights(synthesizer.generator_).items()},
        _LOSS: np.asarray(synthesizer.loss_curve_, dtype=np.float64),
        _FLOOR: np.asarray(synthesizer.noise_floor_, dtype=np.float64),
    }
    write_archive(path, header, arrays)


def load_model(path: str | os.PathLike[str], *, template: Any = None) -> Any:
    """Read a synthesizer that :func:`save_model` wrote, ready to sample.

    Parameters
    ----------
    path : path-like
        The file. It may come from anybody: nothing in it is executed. But whether its weights
        were trained on its release can't be told, so the guarantee of the release covers samples
        of a model only where you trust whoever trained it.
    template : DataFrame, default=None
        A frame, possibly without rows, with the names and dtypes that samples shall have. None
        gives pandas frames with the usual dtypes of the schema.

    Returns
    -------
    DPMERFSynthesizer, SlicedFDivSynthesizer or SlicedRowsSynthesizer
        With equal ``random_state`` its samples are those of the saved one.

    Raises
    ------
    OSError
        If the file can't be opened.
    ReleaseError
        If it isn't a model, is damaged, or its parts don't fit each other.
    """
    header, arrays = read_archive(path)
    if header.get("format") != _FORMAT or header.get("version") != _VERSION:
        raise ReleaseError(
            f"not a model of version {_VERSION}: written by another version of skdpgen, or by "
            f"another program."
        )
    release = _release_of(header, arrays)
    kind = synthesizer_class(release)
    if header.get("synthesizer") != kind.__name__:
        raise ReleaseError("the model and its release are of different synthesizers.")
    synthesizer = kind._untrained(release, template)
    rest = {name: array for name, array in arrays.items() if not name.startswith(_RELEASE)}
    try:
        synthesizer.set_params(**_parameters(header["parameters"], kind))
        loss, floor = rest.pop(_LOSS), rest.pop(_FLOOR)
        if loss.ndim != 1 or floor.shape != () or {loss.dtype, floor.dtype} != {np.dtype(float)}:
            raise ReleaseError("the loss curve of the model isn't one.")
        weights = {name.removeprefix(_WEIGHTS): array for name, array in rest.items()}
        if rest.keys() != {f"{_WEIGHTS}{name}" for name in weights}:
            raise ReleaseError("the file holds arrays that no model has.")
        synthesizer.generator_ = _generator(synthesizer, weights)
    except ReleaseError:
        raise
    except Exception as error:
        raise ReleaseError(f"the file is damaged or not a model: {error}") from None
    synthesizer.loss_curve_, synthesizer.noise_floor_ = loss, float(floor)
    # A stream of its own: without random_state, samples are new ones.
    synthesizer._sampling_rng = np.random.default_rng()
    return synthesizer


def _release_of(
    header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Release | SlicingRelease:
    if not isinstance(header.get("release"), dict):
        raise ReleaseError("the model has no release.")
    parts = {
        name.removeprefix(_RELEASE): array
        for name, array in arrays.items()
        if name.startswith(_RELEASE)
    }
    return _release_from(header["release"], parts)


def _release_from(
    header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Release | SlicingRelease:
    kind = SlicingRelease if header.get("format") == "skdpgen-slicing-release" else Release
    return kind.from_archive(header, arrays)


# -- parameters -----------------------------------------------------------------------------------


def _plain(name: str, value: Any) -> Any:
    """A post-processing parameter as JSON."""
    if name == "generator":
        if type(value) is MixtureGenerator:
            return {key: _plain(key, item) for key, item in value.get_params().items()}
        if not isinstance(value, str):
            raise InputError(
                f"generator is of your own ({type(value).__name__}): a model file holds only "
                f"generators made from settings. Keep its weights yourself, and save the release."
            )
    if isinstance(value, np.generic):
        value = value.item()
    # The state of a RandomState isn't a setting.
    return value if value is None or isinstance(value, str | int | float) else None


def _parameters(values: Any, kind: type[Any]) -> dict[str, Any]:
    if not isinstance(values, dict) or values.keys() != set(kind.post_processing_parameters):
        raise ReleaseError("the model has other parameters than its synthesizer.")
    mixture = values.get("generator")
    if isinstance(mixture, dict):
        values = {**values, "generator": MixtureGenerator().set_params(**_scalars(mixture))}
    elif not isinstance(mixture, str):
        raise ReleaseError("the model has no generator that can be made from settings.")
    return {**values, **_scalars({k: v for k, v in values.items() if k != "generator"})}


def _scalars(values: dict[str, Any]) -> dict[str, Any]:
    if not all(value is None or isinstance(value, str | int | float) for value in values.values()):
        raise ReleaseError("a parameter of the model is neither a number nor a text.")
    return values


# -- weights --------------------------------------------------------------------------------------


def _weights(generator: Generator | ProductMixture) -> dict[str, npt.NDArray[Any]]:
    if isinstance(generator, ProductMixture):
        columns = {str(j): array for j, array in enumerate(generator.probabilities)}
        return {"shares": generator.shares, **columns}
    state = generator.backbone.state_dict()
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}


def _generator(
    synthesizer: Any, weights: dict[str, npt.NDArray[Any]]
) -> Generator | ProductMixture:
    release = synthesizer.release_
    features = feature_map_of(release) if isinstance(release, Release) else None
    # Here without torch: sampling from a mixture doesn't need it.
    if isinstance(features, InteractionFeatureMap) or getattr(features, "wrapped", False):
        kind = synthesizer.generator
        if not (isinstance(kind, MixtureGenerator) or kind in ("auto", "mixture")):
            raise ReleaseError("the generator of the model needs another release.")
        return _mixture(features.atoms, synthesizer._codec.n_classes, weights)  # type: ignore[union-attr]
    # Settings that don't shape a network but could make building it slow.
    quick = copy.copy(synthesizer).set_params(
        n_steps=1, batch_size=None, learning_rate=None, device="cpu", random_state=0
    )
    return _network(quick._plan_for_release().generator, weights)


def _mixture(
    atoms: AtomLayout, n_classes: int, weights: dict[str, npt.NDArray[Any]]
) -> ProductMixture:
    shares = weights.pop("shares")
    probabilities = tuple(weights.pop(str(j)) for j in range(len(atoms.n_codes)))
    n_components = shares.shape[-1] if shares.ndim == 2 else 0
    fits = (
        not weights
        and shares.shape == (n_classes, n_components)
        and n_components > 0
        and shares.dtype == np.float64
        and all(
            array.shape == (n_components, n) and array.dtype == np.float32
            for array, n in zip(probabilities, atoms.n_codes, strict=True)
        )
    )
    if not fits:
        raise ReleaseError("the weights of the model don't fit its release.")
    sums = np.concatenate([[shares.sum()], *(array.sum(axis=1) for array in probabilities)])
    least = min(array.min() for array in (shares, *probabilities))
    # NaN fails every comparison.
    if not (least >= 0 and np.all(np.abs(sums - 1) <= _TOLERANCE)):
        raise ReleaseError("the weights of the model aren't probabilities.")
    return ProductMixture(atoms, probabilities, shares)


def _network(network: Generator, weights: dict[str, npt.NDArray[Any]]) -> Generator:
    import torch

    expected = {name: t.detach().numpy() for name, t in network.backbone.state_dict().items()}
    fits = weights.keys() == expected.keys() and all(
        (weights[name].shape, weights[name].dtype) == (array.shape, array.dtype)
        for name, array in expected.items()
    )
    if not fits:
        raise ReleaseError("the weights of the model don't fit its settings.")
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise ReleaseError("the weights of the model aren't finite.")
    state = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    network.backbone.load_state_dict(state)
    return network
