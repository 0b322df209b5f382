"""A small private table in files, and commands run on it."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from skdpgen import DPMERFSynthesizer, InteractionFeatures, Schema, save_model
from skdpgen.cli import main
from skdpgen.data.files import scan_table
from skdpgen.synthesizers import _feature_maps

SCHEMA = {
    "target": "smoker",
    "columns": {
        "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
        "height": {"kind": "numeric", "bounds": [100, 250], "dtype": "float", "missing": ["?"]},
        "town": {"kind": "categorical", "values": ["Rome", "Oslo", "Bonn"]},
        "twins": {"kind": "categorical", "values": [0, 1]},
        "smoker": {"kind": "label", "values": ["no", "yes"]},
    },
}


class FewFeatures(InteractionFeatures):
    """What "auto" is here."""

    def __init__(self):
        super().__init__(100, n_bins=16)


class Folder:
    """A folder with a private table, and commands that run in it."""

    def __init__(self, path):
        self.path = path
        self.schema = path / "schema.json"
        self.schema.write_text(json.dumps(SCHEMA))
        self.data = path / "data.csv"
        rng = np.random.default_rng(0)
        age = rng.integers(18, 91, 300)
        frame = pd.DataFrame(
            {
                "age": age,
                "height": rng.normal(170, 9, 300).round(1).astype(str),
                "town": rng.choice(["Rome", "Oslo", "Bonn"], 300),
                "twins": rng.integers(0, 2, 300),
                "smoker": np.where(age + rng.normal(0, 20, 300) > 50, "yes", "no"),
            }
        )
        frame.loc[::7, "height"] = "?"
        frame.to_csv(self.data, index=False)

    def __call__(self, *arguments, status=0):
        """Run a command; paths that don't exist yet are in this folder."""
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert result.exit_code == status, result.output + repr(result.exception)
        return result

    def json(self, *arguments, status=0):
        """Run a command with --json; nothing else may be on standard output."""
        return json.loads(self(*arguments, "--json", status=status).stdout)

    def fit(self, *arguments, status=0, data=None, epsilon=1, delta=1e-4):
        """Run ``fit`` to ``a.release``."""
        budget = ("--epsilon", epsilon, "--delta", delta, "-o", self.path / "a.release")
        data = self.data if data is None else data
        return self("fit", data, "--schema", self.schema, *budget, *arguments, status=status)

    @property
    def names(self):
        """Files of the folder."""
        return sorted(p.name for p in self.path.iterdir())


@pytest.fixture(autouse=True)
def _few_features(monkeypatch):
    """Commands in this process make small releases."""
    monkeypatch.setattr(_feature_maps, "InteractionFeatures", FewFeatures)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def _small_files(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("small"))
    synthesizer = DPMERFSynthesizer(
        2.0,
        1e-4,
        schema=folder.schema,
        features=InteractionFeatures(100, n_bins=16),
        random_state=0,
    )
    schema = Schema.from_json(folder.schema)
    release = synthesizer.make_release(scan_table(folder.data, schema))
    release.save(folder.path / "small.release")
    model = DPMERFSynthesizer.from_release(release, n_steps=20, random_state=0)
    save_model(model, folder.path / "small.model")
    return folder.path


@pytest.fixture
def release(_small_files):
    """A release of few features."""
    return _small_files / "small.release"


@pytest.fixture
def model(_small_files):
    """A model trained on it for a few steps."""
    return _small_files / "small.model"
