import re
from functools import partial

import pandas as pd
import pytest

from skdpgen import InteractionFeatures, demo
from skdpgen.datasets import load_fair


@pytest.fixture
def output(tmp_path, monkeypatch, capsys):
    """Printed output and CSV of a quick run."""
    quick = partial(demo.DPMERFSynthesizer, features=InteractionFeatures(200, n_bins=16))
    monkeypatch.setattr(demo, "DPMERFSynthesizer", quick)
    monkeypatch.setattr(demo, "N_STEPS", 20)
    path = tmp_path / "synthetic.csv"
    demo.main(["--output", str(path)])
    assert [p.name for p in tmp_path.iterdir()] == ["synthetic.csv"]
    return capsys.readouterr().out, pd.read_csv(path)


def test_demo_writes_a_table_like_the_private_one_and_says_what_covers_it(output):
    printed, synthetic = output
    frame, schema = load_fair()
    assert len(synthetic) == 4774
    assert list(synthetic.columns) == list(frame.columns)
    assert set(synthetic["affair"]) <= set(schema.columns["affair"].values)
    assert synthetic["age"].between(15, 50).all()
    for name in ("logistic regression", "gradient boosting", "random forest"):
        real, made = re.search(rf"{name} +(0\.\d+) +(0\.\d+)", printed).groups()
        assert float(real) > 0.65
        assert 0 < float(made) < 1
    assert "(1, 1e-05)-differentially private" in printed
    assert "replace-one" in printed
    assert "not private" in printed
    assert re.search(r"\d+\.\d seconds in all\.\n$", printed)
