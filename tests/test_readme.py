"""The usage example of the README runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_usage_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(example, names)
    assert names["df_syn"].shape == (10_000, 9)
    assert (names["df_syn"].dtypes == names["df"].dtypes).all()
    assert (tmp_path / "fair.release").stat().st_size > 0
    assert "differentially private" in capsys.readouterr().out
