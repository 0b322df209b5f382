"""Fits without a schema, or with one that lacks something: learned, charged, and nothing else."""

import copy
import json
import math
import pickle
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import (
    DPMERFSynthesizer,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Release,
    Schema,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    insecure_noise,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import (
    BudgetExceededError,
    PrivacyParameterError,
    ReleaseError,
    SchemaError,
    SkdpgenError,
)
from skdpgen.privacy.accounting import composed_delta
from skdpgen.privacy.shares import nominal_mu

CHEAP = {"n_steps": 3, "random_state": 0, "generator": MixtureGenerator(8, n_mixtures=2)}
N = 4000


def make(cls=DPMERFSynthesizer, epsilon=1.0, **params):
    if cls is DPMERFSynthesizer:
        params.setdefault("features", InteractionFeatures(60, n_bins=8))
    else:
        params.setdefault("n_slices", 10)
    return cls(epsilon, 1e-5, **{**CHEAP, **params})


def table(n=N):
    """Bins and values with at least 400 rows, far above every threshold here, or with none."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "height": rng.uniform(130, 250, n),
            "visits": rng.integers(2, 4, n),
            "flag": rng.random(n) < 0.5,
            "town": rng.choice(["Rome", "Oslo"], n),
            "level": pd.Categorical(
                rng.choice(["low", "high"], n), categories=["low", "high", "none"]
            ),
            "when": pd.Timestamp("2020-06-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
            "sparse": np.where(rng.random(n) < 0.5, np.nan, 3.0),
        }
    )


EXPECTED = {
    "height": (128.0, 256.0),
    "visits": (2, 3),
    "flag": (False, True),
    "town": ("Oslo", "Rome", "other"),
    "level": ("high", "low", "other"),
    "when": ("2020-01-01T00:00:00", "2020-12-31T23:59:59"),
    "sparse": (2.0, 4.0),
}


def learned(synthesizer):
    """Bounds or categories of each column."""
    columns = synthesizer.schema_.columns
    return {n: getattr(c, "bounds", None) or c.categories for n, c in columns.items()}


@pytest.fixture(scope="module", params=[DPMERFSynthesizer, SlicedFDivSynthesizer])
def fitted(request):
    return make(request.param).fit(table())


# -- what is learned -----------------------------------------------------------------------------


def test_a_table_without_a_schema(fitted):
    """False alarms below 1e-6: no count lies within 8 standard deviations of a threshold."""
    assert learned(fitted) == EXPECTED
    missing = {n: c.missing for n, c in fitted.schema_.columns.items()}
    assert missing == {**dict.fromkeys(EXPECTED, False), "sparse": True}
    sample = fitted.sample(200)
    df = table()
    assert list(sample) == list(df)
    assert sample.drop(columns="level").dtypes.equals(df.drop(columns="level").dtypes)
    assert sample["level"].cat.categories.tolist() == ["high", "low", "other"]
    assert sample["height"].between(128, 256).all()
    assert set(sample["town"]) <= {"Oslo", "Rome", "other"}
    assert 0 < sample["sparse"].isna().sum() < 200
    assert not sample.drop(columns="sparse").isna().any(axis=None)


@pytest.mark.parametrize("kind", ["polars", "numpy", "objects", "lists"])
def test_other_kinds_of_tables(kind):
    df = table()[["height", "visits"]]
    X = {
        "polars": lambda: pl.from_pandas(df),
        "numpy": df.to_numpy,
        "objects": lambda: df.to_numpy().astype(object),
        "lists": df[["visits"]].to_numpy().tolist,
    }[kind]()
    synthesizer = make().fit(X)
    found = list(learned(synthesizer).values())
    expected = {
        "polars": [(128.0, 256.0), (2, 3)],
        "numpy": [(128.0, 256.0), (2.0, 4.0)],
        # Objects are categories: no height occurs twice.
        "objects": [("other",), (2, 3)],
        "lists": [(2, 3)],
    }[kind]
    assert found == expected
    sample = synthesizer.sample(3)
    assert type(sample) is (type(X) if kind != "lists" else np.ndarray)


@pytest.mark.parametrize("n", range(1, 11))
def test_small_tables_end_with_the_public_default(n):
    """False alarms: 10 empty or nearly empty columns, each below 1e-5 of 1e-6 at most."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synthesizer = DPMERFSynthesizer(1.0, 1e-5, n_steps=1, random_state=0, **small()).fit(
            table(n), np.arange(n) + 17
        )
        X, y = synthesizer.sample(5)
    assert learned(synthesizer) == {
        "height": (-1000.0, 1000.0),
        "visits": (-1000, 1000),
        "flag": (False, True),
        "town": ("other",),
        "level": ("other",),
        "when": ("1970-01-01T00:00:00", "2068-12-31T23:59:59"),
        "sparse": (-1000.0, 1000.0),
        "y": (0,),
    }
    assert y.tolist() == [0] * 5
    assert X.dtypes.drop("level").equals(table(n).dtypes.drop("level"))


def small():
    return {"features": InteractionFeatures(60, n_bins=8), "generator": MixtureGenerator(4)}


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.repeat(["no", "yes"], N // 2), ["no", "yes", "other"]),
        (np.repeat(["no", "yes"], N // 2).astype(object), ["no", "yes", "other"]),
        (np.repeat([1, 5], N // 2), [1, 5]),
        (np.repeat([1, 5], N // 2).astype(object), [1, 5, None]),
        (np.repeat([True, False], N // 2), [False, True]),
        (np.repeat([1.5, 2.5], N // 2), None),
    ],
)
def test_targets(y, classes):
    """The dtype decides between classes and a quantity."""
    synthesizer = make().fit(table()[["height"]], y)
    _, labels = synthesizer.sample(400)
    assert labels.dtype.kind == y.dtype.kind
    if classes is None:
        assert not hasattr(synthesizer, "classes_")
        assert ((labels >= 1) & (labels <= 4)).all()
        return
    assert synthesizer.classes_.tolist() == classes
    # Nobody has another label than the frequent ones, so none is made up.
    assert set(labels.tolist()) == set(y.tolist())
    assert set(synthesizer.sample(40, y="balanced")[1].tolist()) == set(y.tolist())
    if "other" in classes:
        assert set(synthesizer.sample(4, y=["other"] * 4)[1].tolist()) == {"other"}


def test_rare_labels_are_other_where_there_are_many():
    """400 labels of their own: their share is 40 standard deviations of the noise."""
    y = np.array(["no"] * 1800 + ["yes"] * 1800 + [f"name {i}" for i in range(400)], dtype=object)
    synthesizer = make().fit(table()[["height"]], y)
    assert synthesizer.classes_.tolist() == ["no", "yes", "other"]
    _, labels = synthesizer.sample(1000)
    assert 60 < (labels == "other").sum() < 140


def test_only_what_a_schema_lacks_is_learned():
    schema = Schema(
        {
            "height": Numeric((100, 300)),
            "visits": Numeric(None, "int"),
            "town": Categorical(["Rome", "Oslo"]),
        },
        target="town",
    )
    synthesizer = make(schema=schema).fit(table()[["height", "visits", "town"]])
    assert learned(synthesizer) == {
        "height": (100, 300),
        "visits": (2, 3),
        "town": ("Rome", "Oslo"),
    }
    assert synthesizer.classes_.tolist() == ["Rome", "Oslo"]
    (bounds, _) = synthesizer.ledger_.entries
    assert bounds.mechanism == "private bounds"
    assert bounds.extra_delta == 0
    opened = schema.with_columns({"town": Categorical(None)})
    synthesizer = make(schema=opened).fit(table()[["height", "visits", "town"]])
    assert synthesizer.classes_.tolist() == ["Oslo", "Rome", "other"]


def test_an_open_schema_names_the_target_of_a_table():
    df = table().assign(label=np.repeat([1, 2], N // 2))
    schema = Schema.from_dtypes(df, target="label", leave_open=True)
    synthesizer = make(schema=schema).fit(df)
    assert learned(synthesizer) == {**EXPECTED, "label": (1, 2)}
    assert synthesizer.classes_.tolist() == [1, 2]
    assert synthesizer.sample(3, y=[2, 2, 2])["label"].tolist() == [2, 2, 2]


def test_dtypes_that_say_everything_cost_nothing_more():
    df = table()[["flag"]].assign(other=True)
    synthesizer = make().fit(df, np.array([True, False] * (N // 2)))
    assert len(synthesizer.ledger_.entries) == 1
    assert synthesizer.classes_.tolist() == [False, True]
    assert synthesizer.release_.statement().endswith("(replace-one adjacency).")


def test_a_complete_schema_costs_nothing_more():
    schema = Schema({"height": Numeric((100, 300))})
    for budget in (0.1, None):
        synthesizer = make(schema=schema, domain_budget=budget).fit(table()[["height"]])
        (entry,) = synthesizer.ledger_.entries
        assert entry.mechanism == "mean embedding"
        assert entry.epsilon == 1.0
        assert synthesizer.release_.earlier == ()


# -- what it costs -------------------------------------------------------------------------------


def test_everything_together_is_the_asked_guarantee(fitted):
    entries = fitted.ledger_.entries
    assert [e.mechanism for e in entries] == [
        "private bounds",
        "private categories",
        "mean embedding",
    ]
    release = fitted.release_
    assert (release.epsilon, release.delta) == (1.0, 1e-5)
    assert release.earlier == entries[:2]
    assert 0.999 < release.verify() <= 1
    assert 0.999 < fitted.ledger_.spent(1e-5) <= 1
    mu = math.hypot(
        *(nominal_mu(e) for e in entries[:2]),
        math.sqrt(release.sensitivity_squared) / release.noise_stddev,
    )
    assert 0.9999e-5 < composed_delta(1.0, mu, 1e-6) <= 1e-5
    # The reserve is for the noise that was drawn, to within rounding.
    own = math.sqrt(release.sensitivity_squared) / release.noise_stddev
    assert own == pytest.approx(nominal_mu(entries[2]), rel=1e-9)
    assert own <= nominal_mu(entries[2])


def test_statements_name_the_total(fitted):
    statement = (
        "(1, 1e-05)-differentially private for replacing one row (replace-one adjacency), together "
        "with private bounds and private categories."
    )
    assert fitted.release_.statement() == fitted.privacy_statement() == statement
    twice = make(ledger=PrivacyLedger())
    for _ in range(2):
        twice.fit(table()[["height"]])
    assert "It is one of 4 releases in its ledger" in twice.privacy_statement()


def test_a_learned_schema_says_so_wherever_it_goes(tmp_path):
    rows = table()[["height", "town"]]
    numbered = rows.set_axis([0, 1], axis=1)  # names of another JSON form
    first, other = make().fit(rows), make().fit(numbered)
    schema = first.schema_
    open_too = Schema({**schema.columns, "visits": Numeric(None)})
    again = {
        "passed on": make(schema=schema).fit(rows),
        "as a dictionary": make(schema=schema.to_dict(), domain_budget=None).fit(rows),
        "with integer names": make(schema=other.schema_).fit(numbered),
        "of a release": DPMERFSynthesizer.from_release(first.release_, n_steps=1).fit(rows),
        "rows": SlicedRowsSynthesizer(100.0, 1e-5, schema=schema, n_steps=1, n_slices=9).fit(rows),
        "and learned more": make(schema=open_too).fit(table()[["height", "town", "visits"]]),
    }
    schema.to_json(tmp_path / "schema.json")
    again["from a file"] = make(schema=tmp_path / "schema.json").fit(rows)
    for how, synthesizer in again.items():
        assert "whose cost is not included" in synthesizer.release_.statement(), how
        assert "whose cost is not included" in synthesizer.privacy_statement(), how
    again["passed on"].release_.save(tmp_path / "release")
    assert "whose cost" in Release.load(tmp_path / "release").statement()
    more = again["and learned more"]
    assert [e.mechanism for e in more.release_.earlier] == ["private bounds"]
    said = {n: c.metadata["learned"] for n, c in more.schema_.columns.items()}
    assert said == {"height": "before", "town": "before", "visits": True}
    # Who paid says nothing, also where the release is trained on again; nor does a schema of one's
    # own.
    for synthesizer in (first, other, DPMERFSynthesizer.from_release(first.release_, n_steps=1)):
        assert "whose cost" not in synthesizer.privacy_statement()
    declared = {n: {**c, "learned": False} for n, c in schema.to_dict()["columns"].items()}
    own = make(schema={"columns": declared}).fit(rows)
    assert "whose cost" not in own.privacy_statement()


def test_a_cap_holds_for_everything_at_once():
    ledger = PrivacyLedger(1.0, 1e-5)
    make(ledger=ledger).fit(table())
    assert len(ledger.entries) == 3
    for epsilon, entries in ((0.99, 0), (0.5, 0)):
        tight = PrivacyLedger(epsilon, 1e-5)
        with pytest.raises(BudgetExceededError):
            make(ledger=tight).fit(table())
        assert len(tight.entries) == entries


def test_a_larger_budget_means_less_noise_on_domains():
    noise = []
    for budget in (0.01, 0.1, 0.5):
        ledger = make(domain_budget=budget).fit(table()[["height"]]).ledger_
        bounds, main = ledger.entries
        noise.append((1 / bounds.mu, main.noise_stddev))
        assert bounds.mu**2 / (bounds.mu**2 + main.mu**2) == pytest.approx(budget, rel=1e-6)
    assert noise[0][0] > noise[1][0] > noise[2][0]
    assert noise[0][1] < noise[1][1] < noise[2][1]


def test_a_domain_is_learned_anew_in_every_fit():
    synthesizer = make()
    first = synthesizer.fit(table()[["height"]]).release_
    second = synthesizer.fit(table()[["height"]]).release_
    assert len(synthesizer.ledger_.entries) == 4
    assert first.earlier == second.earlier


# -- the release ---------------------------------------------------------------------------------


def test_a_release_travels_with_what_was_learned(fitted, tmp_path):
    fitted.release_.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    assert loaded.earlier == fitted.release_.earlier
    assert loaded.statement() == fitted.release_.statement()
    assert loaded.verify() == fitted.release_.verify()
    params = {k: v for k, v in CHEAP.items() if k in ("n_steps", "generator", "random_state")}
    again = type(fitted).from_release(loaded, template=table().head(0), **params)
    assert learned(again) == learned(fitted) == EXPECTED
    assert again.schema_ == fitted.schema_
    assert (again.epsilon, again.delta) == (1.0, 1e-5)
    assert again.sample(3).dtypes.astype(str).equals(fitted.sample(3).dtypes.astype(str))
    assert again.privacy_statement() == fitted.privacy_statement()


@pytest.mark.parametrize(
    "convert",
    [
        lambda df: df,
        lambda df: df.astype(object),
        lambda df: df.convert_dtypes(),
        lambda df: df.convert_dtypes(dtype_backend="pyarrow"),
        lambda df: df.to_numpy().astype(str),
        lambda df: pl.from_pandas(df.astype({"level": str})),
    ],
    ids=["pandas", "objects", "masked", "arrow", "texts", "polars"],
)
@pytest.mark.parametrize("y", [None, np.repeat(["a", "b"], N // 2), np.repeat([1, 2], N // 2)])
def test_a_release_of_any_dtypes_can_be_trained_on_elsewhere(convert, y):
    synthesizer = make().fit(convert(table()), y)
    again = DPMERFSynthesizer.from_release(synthesizer.release_, **CHEAP)
    assert again.schema_ == synthesizer.schema_
    assert again.sample(2).shape == (2, 7 + (y is not None))


def test_a_release_cannot_forget_its_earlier_ones(fitted):
    release = fitted.release_
    copied = pickle.loads(pickle.dumps(release))
    assert copied.earlier == release.earlier == copy.deepcopy(release).earlier
    first, second = release.earlier
    for earlier, message in (
        ((first, replace(second, noise_stddev=second.noise_stddev / 2)), "too small"),
        ((first, replace(second, extra_delta=1e-4)), "too small"),
        ((first, replace(second, private=False)), "don't fit"),
        ((first, replace(second, unit="unit", rows_per_unit=2)), "don't fit"),
        ((replace(first, adjacency="add-remove"), second), "don't fit"),
        ((first, "entry"), "don't fit"),
    ):
        with pytest.raises(ReleaseError, match=message):
            replace(release, earlier=earlier).verify()
    # Without them the same noise gives more, and never less.
    assert replace(release, earlier=()).verify() < release.verify()


def test_tampered_files_are_refused(fitted, tmp_path):
    path = tmp_path / "release"
    fitted.release_.save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(content["header.json"])
    assert header["version"] == 2

    def write(**changes):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                changed = json.dumps({**header, **changes}).encode()
                archive.writestr(name, changed if name == "header.json" else data)

    write()
    assert Release.load(path).earlier == fitted.release_.earlier
    for changes in (
        {"version": 1},
        {"earlier": []},
        {"earlier": [{}]},
        {"earlier": 3},
        {"earlier": [{**header["earlier"][0], "noise_stddev": "wide"}]},
    ):
        write(**changes)
        with pytest.raises(ReleaseError):
            Release.load(path)


def test_insecure_noise_marks_everything(tmp_path):
    with insecure_noise(0):
        synthesizer = make().fit(table()[["height", "town"]])
    release = synthesizer.release_
    assert release.statement().startswith("NOT PRIVATE")
    assert not any(entry.private for entry in (*release.earlier, *synthesizer.ledger_.entries))
    assert release.verify() == math.inf
    release.save(tmp_path / "release")
    assert Release.load(tmp_path / "release").earlier == release.earlier
    with pytest.raises(ReleaseError, match="don't fit"):
        replace(release, noise="discrete gaussian").verify()


# -- units and private numbers of rows -----------------------------------------------------------


def test_rows_beyond_the_limit_of_their_unit_teach_nothing():
    """One unit has 3,000 of the rows; with at most two of them the town isn't frequent."""
    df = table()
    df.loc[:2999, "town"] = "Lima"
    units = np.r_[np.zeros(3000, int), np.arange(1, 1001)]
    rows = df[["town"]]
    assert "Lima" in learned(make().fit(rows))["town"]
    bounded = make(rows_per_unit=2).fit(rows, unit_id=units)
    assert "Lima" not in learned(bounded)["town"]
    assert {e.unit for e in bounded.ledger_.entries} == {"unit"}
    assert {e.rows_per_unit for e in bounded.ledger_.entries} == {2}
    assert 0.999 < bounded.release_.verify() <= 1
    assert "all rows of one unit (at most 2 rows a unit, kept)" in bounded.privacy_statement()


def test_under_add_remove():
    synthesizer = make(adjacency="add-remove").fit(table())
    assert learned(synthesizer) == EXPECTED
    categories = synthesizer.ledger_.entries[1]
    # Two columns, in each of which a row adds one count of 2^bits steps (a replacement moves two).
    assert math.log2(categories.sensitivity_squared / 2) % 2 == 0
    assert synthesizer.release_.n_rows is None
    assert 0.999 < synthesizer.release_.verify() <= 1
    kept = str(N).encode()
    assert kept not in json.dumps(synthesizer.schema_.to_dict()).encode()


# -- what must not come out ----------------------------------------------------------------------

MARK = "CANARY"


def marked():
    df = table()
    df.loc[3, "height"] = 1e9 + 0.125
    df.loc[4, "height"] = -86753.09375
    df["visits"] = df["visits"].astype("int64")
    df.loc[3, "visits"] = 918273645
    df.loc[3, "town"] = f"{MARK}-town"
    df["level"] = df["level"].cat.add_categories([f"{MARK}-unused", f"{MARK}-level"])
    df.loc[3, "level"] = f"{MARK}-level"
    df.loc[3, "when"] = pd.Timestamp("1777-07-07")
    df["names"] = [f"{MARK}-{i}" for i in range(N)]
    return df


def test_no_marker_comes_out(caplog, capfd, tmp_path):
    """An outlier, labels of their own, 4,000 unique texts: no trace, in 2 fits."""
    y = pd.Series(np.repeat(["no", "yes"], N // 2), name="label", dtype=object)
    y[5] = f"{MARK}-label"
    for params in ({}, {"adjacency": "add-remove"}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            synthesizer = make(**params).fit(marked(), y)
            X, labels = synthesizer.sample(300)
        assert learned(synthesizer) == {
            **EXPECTED,
            "names": ("other",),
            "label": ("no", "yes", "other"),
        }
        synthesizer.release_.save(tmp_path / "release")
        with zipfile.ZipFile(tmp_path / "release") as archive:
            members = b"".join(archive.read(name) for name in archive.namelist())
        errors = []
        for call in (
            lambda s=synthesizer: s.sample(2, y=["no", "maybe"]),
            lambda: make(epsilon=-1.0).fit(marked(), y),
            lambda: make(domain_budget=7).fit(marked(), y),
            lambda: make(domain_budget=None).fit(marked(), y),
            lambda: make(ledger=PrivacyLedger(0.1, 1e-5)).fit(marked(), y),
        ):
            with pytest.raises(SkdpgenError) as caught:
                call()
            errors.append(str(caught.value))
        out, err = capfd.readouterr()
        seen = "".join(
            [
                repr(synthesizer),
                repr(synthesizer.schema_.to_dict()),
                repr(synthesizer.release_),
                repr(synthesizer.ledger_.entries),
                synthesizer.privacy_statement(),
                out + err + caplog.text,
                *errors,
                X.to_csv() + labels.to_csv(),
            ]
        ).encode()
        for content in (seen, members, pickle.dumps(synthesizer), pickle.dumps(synthesizer, 0)):
            for marker in (MARK, "1777-07", "918273645", "86753.09375", "1000000000.125"):
                assert marker.encode() not in content


def test_neighbors_learn_the_same_schema():
    """An outlier and labels of their own against a usual row: the same schema, in 10 fits each.

    A fit differs with probability below 1e-5 (delta2 is 1e-6, and no count is near a threshold).
    """
    columns = ["height", "visits", "town", "level", "when"]
    usual, other = table()[columns], marked()[columns].astype({"height": float})
    other.loc[4] = usual.loc[4]
    other["level"] = other["level"].astype(object).astype("category")
    params = {"n_steps": 1, "features": InteractionFeatures(20, n_bins=4)}
    schemas = []
    for frame in (usual, other):
        for _ in range(10):
            schemas.append(make(**params).fit(frame).schema_.to_dict())
    assert all(schema == schemas[0] for schema in schemas)


class Hostile:
    """A cell whose methods all fail."""

    def _fail(self, *_):
        raise RuntimeError("private cell")

    __eq__ = __lt__ = __str__ = __repr__ = __float__ = __int__ = __bool__ = __len__ = _fail
    __iter__ = __array__ = __index__ = __hash__ = _fail


class HostileText(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("private cell")

    __eq__ = __hash__ = __str__


CELLS = [
    *(1e9, math.inf, math.nan, 10**5000, -(10**400), True, 1j, b"bytes", None, pd.NA, pd.NaT),
    *("", "unique", "long " * 10**5, "\ud800", "\x00", [1], {}, pd.Timestamp("1700-01-01")),
    *(Hostile(), HostileText("a"), np.datetime64("NaT"), np.float16("nan")),
]


def appearance(X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        synthesizer = make(n_steps=1).fit(X, y)
        sample, labels = synthesizer.sample(4)
    return {
        "schema": synthesizer.schema_.to_dict(),
        "codec": pickle.dumps(synthesizer._codec),
        "attributes": {name: type(value) for name, value in vars(synthesizer).items()},
        "classes": synthesizer.classes_.tolist(),
        "ledger": synthesizer.ledger_.entries,
        "dtypes": [*sample.dtypes, labels.dtype],
        "warnings": [str(w.message) for w in caught],
    }


def objects(cells):
    column = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        column[i] = cell
    return pd.Series(column, dtype=object)


def test_neighbors_with_hostile_cells_look_alike():
    """False alarms below 1e-5 a fit: see above."""
    words, labels = ["Rome", "Oslo"] * 500, ["no", "yes"] * 500
    plain = appearance(pd.DataFrame({"x": objects(words)}), objects(labels))
    assert plain["classes"] == ["no", "yes", "other"]
    assert plain["warnings"] == []
    for cell in CELLS:
        changed = pd.DataFrame({"x": objects([*words[:-1], cell])})
        assert appearance(changed, objects([*labels[:-1], cell])) == plain
    # Many of them at once: another schema, but no error and no warning.
    many = objects([*CELLS, *words, *[Hostile()] * 500])
    assert appearance(pd.DataFrame({"x": many}), many)["warnings"] == []


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, 1.0, -0.1, math.nan, "auto", True, 1e-4])
@pytest.mark.parametrize("cls", [DPMERFSynthesizer, SlicedFDivSynthesizer])
def test_budgets_out_of_range_are_refused_before_rows_are_read(budget, cls, monkeypatch):
    ledger = PrivacyLedger()
    monkeypatch.setattr("skdpgen.data.grids.NumberGrid.bins", None)
    with pytest.raises(PrivacyParameterError, match="domain_budget must be"):
        make(cls, domain_budget=budget, ledger=ledger).fit(table()[["height"]])
    assert ledger.entries == ()


def test_none_refuses_by_name():
    with pytest.raises(SchemaError, match=r"bounds=\{'height': \(LOWER, UPPER\)\}"):
        make(domain_budget=None).fit(table()[["height"]])
    schema = Schema({"height": Numeric(None)})
    with pytest.raises(SchemaError, match="without bounds or values: 'height'"):
        make(domain_budget=None, schema=schema).fit(table()[["height"]])
    # Rows that each get noise have no budget for domains.
    with pytest.raises(SchemaError, match="height"):
        SlicedRowsSynthesizer(1.0, 1e-5).fit(table()[["height"]])


def test_columns_that_a_schema_does_not_name_are_still_refused():
    with pytest.raises(ValueError, match="not in the schema: 'visits'"):
        make(schema=Schema({"height": Numeric(None)})).fit(table()[["height", "visits"]])


def test_what_is_wrong_is_found_before_anything_is_charged():
    for params, message in (
        ({"features": "fourier"}, "features must be"),
        ({"generator": "mlp"}, "train a mixture"),
        ({"n_steps": -1}, "n_steps"),
        ({"schema": Schema({"height": Numeric(None, metadata={"seen": {1}})})}, "metadata"),
    ):
        ledger = PrivacyLedger()
        with pytest.raises(ValueError, match=message):
            make(ledger=ledger, **params).fit(table()[["height"]])
        assert ledger.entries == ()


def test_a_clone_has_the_parameter():
    synthesizer = make(domain_budget=0.2)
    assert synthesizer.get_params()["domain_budget"] == 0.2
    assert "domain_budget" not in synthesizer.post_processing_parameters
