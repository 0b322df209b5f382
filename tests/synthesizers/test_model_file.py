import copy
import functools
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    load_model,
    load_release,
    save_model,
)
from skdpgen.exceptions import InputError, ReleaseError, SkdpgenWarning
from skdpgen.generators import MLPGenerator
from skdpgen.privacy.archive import read_archive, write_archive
from skdpgen.synthesizers import is_model, synthesizer_class
from skdpgen.utils.canaries import SCHEMA, base_table, findings, marked_table

IMAGES = {
    "image_shape": [4, 4],
    "target": "digit",
    "columns": {
        "pixels": {
            "kind": "numeric", "bounds": [0, 255], "dtype": "int", "repeat": 16, "prefix": "p",
        },
        "digit": {"kind": "label", "values": [0, 1]},
    },
}  # fmt: skip
SMALL = {"n_steps": 20, "random_state": 0}


def images():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 256, (40, 16)), columns=[f"p{i}" for i in range(16)])
    return frame.assign(digit=rng.integers(0, 2, 40))


def mixture(**params):
    features = InteractionFeatures(200, n_bins=16)
    params = {**SMALL, "generator": MixtureGenerator(16), **params}
    return DPMERFSynthesizer(5.0, 1e-3, schema=SCHEMA, features=features, **params)


MAKERS = {
    "mixture": lambda: mixture().fit(base_table()),
    "mixture by name": lambda: mixture(generator="mixture", learning_rate=0.1).fit(base_table()),
    "network": lambda: DPMERFSynthesizer(
        5.0, 1e-3, schema=SCHEMA, features=GaussianFeatures(50), **SMALL
    ).fit(base_table()),
    "images": lambda: DPMERFSynthesizer(
        5.0, 1e-3, schema=IMAGES, features=GaussianFeatures(50), **SMALL
    ).fit(images()),
    "wrapped slices": lambda: SlicedFDivSynthesizer(
        5.0, 1e-3, schema=SCHEMA, n_slices=20, generator=MixtureGenerator(16), **SMALL
    ).fit(base_table()),
    "straight slices": lambda: SlicedFDivSynthesizer(
        5.0, 1e-3, schema=SCHEMA, n_slices=20, directions="sparse", **SMALL
    ).fit(base_table()),
    "rows": lambda: SlicedRowsSynthesizer(5.0, 1e-3, schema=SCHEMA, n_slices=4, **SMALL).fit(
        base_table()
    ),
}


@functools.cache
def made(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkdpgenWarning)
        return MAKERS[kind]()


@pytest.fixture(params=MAKERS)
def fitted(request):
    return copy.deepcopy(made(request.param))


@pytest.fixture
def model(tmp_path):
    """A file of a mixture, and what wrote it."""
    save_model(made("mixture"), tmp_path / "a.model")
    return tmp_path / "a.model", made("mixture")


def test_samples_are_the_same_to_the_last_bit(fitted, tmp_path):
    path = tmp_path / "a.model"
    save_model(fitted, path)
    loaded = load_model(path, template=fitted.sample(0))
    assert type(loaded) is type(fitted)
    for seed in (0, 1):
        pd.testing.assert_frame_equal(
            loaded.sample(50, random_state=seed), fitted.sample(50, random_state=seed), rtol=0
        )
    np.testing.assert_array_equal(loaded.loss_curve_, fitted.loss_curve_)
    assert loaded.noise_floor_ == fitted.noise_floor_
    names = fitted.post_processing_parameters
    assert {n: repr(getattr(loaded, n)) for n in names} == {
        n: repr(getattr(fitted, n)) for n in names
    }
    assert not loaded.sample(50).equals(loaded.sample(50))


def test_what_was_loaded_trains_on_as_what_was_saved(fitted, tmp_path, recwarn):
    save_model(fitted, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model", template=fitted.sample(0)).retrain(n_steps=5)
    fitted.retrain(n_steps=5)
    pd.testing.assert_frame_equal(
        loaded.sample(20, random_state=0), fitted.sample(20, random_state=0), rtol=0
    )


def test_a_model_holds_its_release(fitted, tmp_path):
    fitted.release_.save(tmp_path / "a.release")
    save_model(fitted, tmp_path / "a.model")
    alone, inside = load_release(tmp_path / "a.release"), load_release(tmp_path / "a.model")
    assert (is_model(tmp_path / "a.release"), is_model(tmp_path / "a.model")) == (False, True)
    assert synthesizer_class(alone) is synthesizer_class(inside) is type(fitted)
    for release in (alone, inside):
        header, arrays = release.to_archive()
        expected_header, expected = fitted.release_.to_archive()
        assert json.dumps(header) == json.dumps(expected_header)
        assert arrays.keys() == expected.keys()
        assert all(np.array_equal(arrays[name], expected[name]) for name in arrays)


def test_without_a_template_samples_have_the_usual_dtypes(model):
    path, synthesizer = model
    loaded = load_model(path)
    again = DPMERFSynthesizer.from_release(synthesizer.release_, **SMALL, generator="mixture")
    assert loaded.sample(3).dtypes.equals(again.sample(3).dtypes)
    assert loaded.schema_ == again.schema_


def test_nothing_of_the_rows_is_in_the_file(tmp_path):
    path = tmp_path / "a.model"
    save_model(mixture().fit(marked_table()), path)
    with zipfile.ZipFile(path) as archive:
        contents = [archive.read(name) for name in archive.namelist()]
    assert not [
        marker for content in [path.read_bytes(), *contents] for marker in findings(content)
    ]


def test_the_state_of_a_random_state_is_no_setting(tmp_path):
    synthesizer = mixture(random_state=np.random.RandomState(0)).fit(base_table())
    save_model(synthesizer, tmp_path / "a.model")
    assert load_model(tmp_path / "a.model").random_state is None


def test_generators_of_your_own_are_refused_by_name(tmp_path):
    synthesizer = DPMERFSynthesizer(
        5.0, 1e-3, schema=SCHEMA, features=GaussianFeatures(50), generator=MLPGenerator, **SMALL
    ).fit(base_table())
    with pytest.raises(InputError, match=r"generator is of your own \(type\)"):
        save_model(synthesizer, tmp_path / "a.model")
    assert not list(tmp_path.iterdir())


def test_only_trained_synthesizers(tmp_path):
    unfitted = mixture()
    released = mixture()
    released.make_release(base_table())
    for thing in (unfitted, released, MixtureGenerator()):
        with pytest.raises(InputError, match="trained synthesizer"):
            save_model(thing, tmp_path / "a.model")


# -- files of others ------------------------------------------------------------------------------


def changed(path, change):
    """The file with a change of its header and arrays."""
    header, arrays = read_archive(path)
    change(header, arrays)
    write_archive(path, header, arrays)
    return path


def scale(name, factor):
    def change(header, arrays):
        arrays[name] = arrays[name] * np.asarray(factor, arrays[name].dtype)

    return change


def setting(*keys, value):
    def change(header, arrays):
        place = header
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


def array(name, value):
    def change(header, arrays):
        arrays[name] = value

    return change


HOSTILE = {
    "another version": setting("version", value=2),
    "another format": setting("format", value="x"),
    "another class": setting("synthesizer", value="SlicedFDivSynthesizer"),
    "no release": setting("release", value=[]),
    "a better promise": setting("release", "epsilon", value=0.1),
    "a missing parameter": lambda header, arrays: header["parameters"].pop("n_steps"),
    "one parameter more": setting("parameters", "epsilon", value=1.0),
    "a list as parameter": setting("parameters", "n_steps", value=[1]),
    "an unknown generator": setting("parameters", "generator", value={"layers": 3}),
    "no generator": setting("parameters", "generator", value=None),
    "a generator that needs another release": setting("parameters", "generator", value="mlp"),
    "other weights": array("weights/x", np.zeros(3)),
    "missing weights": lambda header, arrays: arrays.pop("weights/0"),
    "flat weights": array("weights/shares", np.full(32, 1 / 32)),
    "no component": array("weights/shares", np.zeros((2, 0))),
    "too many components": array("weights/shares", np.full((2, 17), 1 / 34)),
    "another dtype": array("weights/shares", np.full((2, 16), 1 / 32, np.float32)),
    "texts": array("weights/shares", np.full((2, 16), "x")),
    "no probabilities": scale("weights/0", 2.0),
    "negative ones": scale("weights/0", -1.0),
    "NaN": scale("weights/shares", np.nan),
    "an unknown array": array("x", np.zeros(3)),
    "no loss": lambda header, arrays: arrays.pop("training/loss_curve"),
    "a square loss": array("training/loss_curve", np.zeros((2, 2))),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_file_whose_parts_do_not_fit_is_refused(model, change):
    with pytest.raises(ReleaseError):
        load_model(changed(model[0], change))


@pytest.mark.parametrize(
    "change",
    [
        scale("weights/from_label.weight", np.inf),
        array("weights/from_label.weight", np.zeros((3, 3), np.float32)),
        lambda header, arrays: arrays.pop("weights/from_label.weight"),
    ],
)
def test_weights_of_a_network_are_checked_too(tmp_path, change):
    path = tmp_path / "a.model"
    save_model(made("network"), path)
    with pytest.raises(ReleaseError, match="weights"):
        load_model(changed(path, change))


def test_settings_of_a_file_do_not_make_loading_slow(model):
    # A step of a trillion rows would take all memory.
    path = changed(model[0], setting("parameters", "batch_size", value=10**12))
    assert len(load_model(path).sample(3)) == 3


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path):
    path = tmp_path / "a.model"
    write_archive(path, {"format": "skdpgen-model"}, {"weights/0": np.zeros(2**24)})
    assert path.stat().st_size < 2**20
    with pytest.raises(ReleaseError, match="unpacks to far more"):
        load_model(path)


def test_a_release_alone_is_no_model(model, tmp_path):
    model[1].release_.save(tmp_path / "a.release")
    with pytest.raises(ReleaseError, match="not a model"):
        load_model(tmp_path / "a.release")


# -- releases without training --------------------------------------------------------------------


def test_make_release_makes_what_fit_makes(recwarn):
    for synthesizer in (mixture(), SlicedRowsSynthesizer(5.0, 1e-3, schema=SCHEMA, n_slices=4)):
        release = synthesizer.make_release(base_table())
        assert release is synthesizer.release_
        assert not hasattr(synthesizer, "generator_")
        assert len(synthesizer.ledger_.entries) == 1
        synthesizer.retrain(n_steps=5)
        assert len(synthesizer.sample(3)) == 3
        assert len(synthesizer.ledger_.entries) == 1


def test_make_release_warns_as_fit_does():
    table = base_table(3)
    with pytest.warns(SkdpgenWarning, match="one over the number of rows"):
        mixture().set_params(delta=0.5).make_release(table)
