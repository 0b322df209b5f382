"""The usage examples of the README run as they stand."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_usage_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    ):
        # With few steps: the search trains a model for each candidate and fold.
        exec(example.replace("1e-5, ledger=ledger,", "1e-5, ledger=ledger, n_steps=20,"), names)
    assert names["df_syn"].shape == (10_000, 9)
    assert (names["df_syn"].dtypes == names["df"].dtypes).all()
    assert (tmp_path / "fair.release").stat().st_size > 0
    assert "differentially private" in capsys.readouterr().out
    assert names["X_syn"].shape == (1000, 8)
    assert 0.9 < names["ledger"].spent(1e-5) <= 1.0
    assert (tmp_path / "fair.ledger").exists()
