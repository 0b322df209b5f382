import pytest

from skdpgen import Release
from skdpgen.privacy.archive import read_archive, write_archive


def test_a_release(folder, release):
    found = folder.json("inspect", release)
    assert found["kind"] == "release"
    assert found["private"] is True
    assert found["recomputed_epsilon"] == pytest.approx(2.0, rel=1e-4)
    assert found["features"]["rows"] == 300
    assert found["features"]["noise, in rows"] > 0
    assert found["schema"]["target"] == "smoker"
    output = folder("inspect", release).stdout
    assert Release.load(release).statement() in output
    assert "Checked: what it records of its noise gives epsilon = 2" in output
    assert "18 .. 90 int" in output


def test_a_model(folder, model):
    found = folder.json("inspect", model)
    assert found["kind"] == "model"
    assert found["steps"] == 20
    assert found["settings"]["n_steps"] == 20
    assert "steps done" in folder("inspect", model).stdout


def test_noisy_rows(folder):
    folder.fit("--method", "rows", epsilon=100)
    found = folder.json("inspect", folder.path / "a.release")
    assert found["features"] == {
        "kind": "noisy rows", "rows": 300, "slices": 50, "dimension of a slice": 1,
    }  # fmt: skip


def test_a_ledger(folder):
    folder.fit("--ledger", folder.path / "a.ledger")
    found = folder.json("inspect", folder.path / "a.ledger")
    assert found["kind"] == "ledger"
    assert found["cap"] is None
    assert [entry["mechanism"] for entry in found["entries"]] == ["mean embedding"]
    output = folder("inspect", folder.path / "a.ledger").stdout
    assert "1 release is (1, 0.0001)-differentially private" in output


def test_a_promise_that_the_noise_does_not_keep(folder, release):
    header, arrays = read_archive(release)
    write_archive(folder.path / "a.release", {**header, "epsilon": 1.0}, arrays)
    result = folder("inspect", folder.path / "a.release", status=1)
    assert "noise is too small" in result.stderr


def test_something_else(folder):
    assert "not a release" in folder("inspect", folder.data, status=1).stderr
    assert "does not exist" in folder("inspect", folder.path / "x", status=2).stderr
