import numpy as np
import pytest

from skdpgen.datasets import gaussian_grid_centers, load_fair, make_gaussian_grid


def test_fair_is_the_published_survey_in_plain_types():
    frame, _ = load_fair()
    assert len(frame) == 6366
    # 2,053 women reported an affair: the count that analyses of this table start from.
    assert (frame["affair"] == "yes").sum() == 2053
    assert frame.notna().all().all()
    assert {c for c in frame if frame[c].dtype == np.int64} == {
        "rate_marriage", "children", "religious", "educ",
    }  # fmt: skip


def test_every_row_of_fair_lies_in_the_codebook():
    frame, schema = load_fair()
    assert list(frame.columns) == list(schema.columns)
    for name, spec in schema.to_dict()["columns"].items():
        if spec["kind"] == "numeric":
            assert frame[name].between(*spec["bounds"]).all()
        else:
            assert frame[name].isin(spec["values"]).all()


def test_fair_without_statsmodels_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "statsmodels.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'skdpgen\[demo\]'"):
        load_fair()


def test_grid_has_its_modes_labels_and_noise():
    frame, schema = make_gaussian_grid(20_000, random_state=0)
    centers = gaussian_grid_centers()
    points = frame[["x", "y"]].to_numpy()
    nearest = np.argmin(((points[:, None] - centers) ** 2).sum(-1), axis=1)
    assert np.bincount(nearest, minlength=25).min() > 600
    assert (nearest // 5 == frame["label"]).mean() > 0.98
    # Overlap of neighbors pulls the residual a little under 0.2.
    assert (points - centers[nearest]).std() == pytest.approx(0.2, abs=0.01)
    assert schema.target == "label"


def test_grid_is_seeded_and_scales():
    a, _ = make_gaussian_grid(10, grid=3, spacing=4.0, noise=0.0, random_state=1)
    b, _ = make_gaussian_grid(10, grid=3, spacing=4.0, noise=0.0, random_state=1)
    assert a.equals(b)
    assert set(a["x"]) <= {-4.0, 0.0, 4.0}
    assert (a["label"] == a["x"] / 4 + 1).all()
