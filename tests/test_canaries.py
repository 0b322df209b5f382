"""What must not come out of a fit.

Markers in private rows are looked for in everything that a fit leaves behind, and tables that
differ in one hostile row, or in their number of rows, must look alike in everything but the noise.
"""

import json
import logging
import math
import pickle
import struct
import traceback
import types
import warnings
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
)
from skdpgen.data import Categorical, Datetime, Id, Numeric, Text
from skdpgen.exceptions import SkdpgenError
from skdpgen.generators import ProductMixture

CHEAP = {"n_steps": 3, "batch_size": 20, "random_state": 0}
NETWORK = {**CHEAP, "features": GaussianFeatures(20)}
MIXTURE = {
    **CHEAP,
    "features": InteractionFeatures(60, n_bins=8),
    "generator": MixtureGenerator(8, n_mixtures=2),
}
SCHEMA = Schema(
    {
        "key": Id(),
        "height": Numeric((0, 250)),
        "visits": Numeric((0, 40), "int", missing=True),
        "word": Categorical(["red", "blue"], other="other"),
        "level": Categorical(["low", "high"]),
        "when": Datetime(("2020-01-01", "2020-12-31"), missing=True),
        "remark": Text(),
        "label": Categorical(["no", "yes"]),
    },
    target="label",
)
N = 41


def base_table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "key": pd.Series([f"k{i}" for i in range(N)], dtype=object),
            "height": rng.uniform(150, 200, N),
            "visits": pd.Series(rng.integers(0, 40, N).tolist(), dtype=object),
            "word": pd.Series(rng.choice(["red", "blue"], N).tolist(), dtype=object),
            "level": pd.Categorical(rng.choice(["low", "high"], N)),
            "when": pd.Timestamp("2020-06-01") + pd.to_timedelta(rng.integers(0, 200, N), "D"),
            "remark": pd.Series(["words"] * N, dtype=object),
            "label": pd.Series(rng.choice(["no", "yes"], N).tolist(), dtype=object),
        }
    )


# -- canaries --------------------------------------------------------------------------------------

MARK = "CANARY"
NUMBERS = [86753.09375, 197.30078125, 918273645]
MOMENT = pd.Timestamp("2020-03-07 11:22:33.123456")


def marked_table():
    """Markers in every place where a table has room for private facts."""
    df = base_table()
    df.loc[3, "key"] = f"{MARK}-key"
    df.loc[3, "height"], df.loc[4, "height"] = NUMBERS[:2]  # outside and inside the bounds
    df.loc[3, "visits"], df.loc[4, "visits"] = NUMBERS[2], f"{MARK}-cell"
    df.loc[3, "word"] = f"{MARK}-word"
    df["level"] = df["level"].cat.add_categories([f"{MARK}-unused-level", f"{MARK}-level"])
    df.loc[3, "level"] = f"{MARK}-level"
    df.loc[3, "when"] = MOMENT
    df.loc[3, "remark"] = f"{MARK}-remark " * 3
    df.loc[3, "label"] = f"{MARK}-label"
    df.index = pd.Index([f"{MARK}-row-{i}" for i in range(N)], name=f"{MARK}-index")
    df.attrs["source"] = f"{MARK}-attrs"
    return df


def findings(content: bytes) -> list[object]:
    """Markers in bytes, as texts in any case and width and as binary numbers."""
    found: list[object] = [
        w for w in ("utf-8", "utf-16-le", "utf-32-le") if MARK.lower().encode(w) in content.lower()
    ]
    for number in NUMBERS:
        forms = [repr(number).encode()]
        forms += [struct.pack(order + "d", number) for order in "<>"]
        if isinstance(number, int):
            forms += [struct.pack(order + size, number) for order in "<>" for size in "iq"]
        found += [number for form in forms if form in content]
    for unit in ("ns", "us"):
        ticks = MOMENT.as_unit(unit)._value
        found += [MOMENT for order in "<>" if struct.pack(order + "q", ticks) in content]
    return found


def reachable(root):
    """Every object that can be reached from one, by attributes and items, with its path."""
    todo, seen = [("", root)], set()
    while todo:
        path, thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType):
            continue
        seen.add(id(thing))
        yield path, thing
        if isinstance(thing, dict | types.MappingProxyType):
            todo += [(f"{path}[{k!r}]", v) for k, v in thing.items()]
            todo += [(f"{path} key", k) for k in thing]
        elif isinstance(thing, list | tuple | set | frozenset):
            todo += [(f"{path}[{i}]", v) for i, v in enumerate(thing)]
        elif isinstance(thing, types.FunctionType | types.MethodType | types.GeneratorType):
            closure = getattr(thing, "__closure__", None) or ()
            todo += [(f"{path} closure", cell.cell_contents) for cell in closure]
            todo += [(f"{path} self", thing.__self__)] if hasattr(thing, "__self__") else []
        slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
        names = [*getattr(thing, "__dict__", ()), *(slots if isinstance(slots, list) else ())]
        for name in names:
            if isinstance(name, str) and not name.startswith("__"):
                todo.append((f"{path}.{name}", getattr(thing, name, None)))


def test_the_search_itself_finds_markers():
    found = findings(pickle.dumps(marked_table()))
    assert set(NUMBERS) <= set(found)
    assert "utf-8" in found
    assert MOMENT in found
    assert any(
        isinstance(thing, str) and MARK in thing
        for _, thing in reachable({"a": [types.SimpleNamespace(b=f"{MARK}")]})
    )


@pytest.fixture(scope="module", params=[NETWORK, MIXTURE], ids=["network", "mixture"], autouse=True)
def cheap(request):
    """Every test of a fit runs with both kinds of features and generators."""
    CHEAP.clear()
    CHEAP.update(request.param)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("way", ["table", "table and y", "units", "polars"])
def test_no_marker_survives_a_fit(way, adjacency, caplog, capfd, tmp_path):
    caplog.set_level(logging.DEBUG)
    df = marked_table()
    X, y, unit_id = df, None, None
    if way == "table and y":
        X, y = df.drop(columns="label"), df["label"]
    elif way == "units":
        unit_id = [f"{MARK}-unit-{i // 2}" for i in range(N)]
    elif way == "polars":
        X = pl.from_pandas(df.astype({"visits": str, "level": str}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        synthesizer = DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, adjacency=adjacency, **CHEAP)
        synthesizer.fit(X, y, unit_id=unit_id)
        synthesizer.sample(50)
        synthesizer.retrain(n_steps=2)
    problems = failures_of_bad_calls(synthesizer, X, y)
    out, err = capfd.readouterr()

    synthesizer.release_.save(tmp_path / "release")
    with zipfile.ZipFile(tmp_path / "release") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    places = {
        "pickle": pickle.dumps(synthesizer),
        "old pickle": pickle.dumps(synthesizer, protocol=0),
        "repr": (repr(synthesizer) + synthesizer._repr_html_()).encode(),
        "statements": (repr(synthesizer.release_) + synthesizer.privacy_statement()).encode(),
        "ledger": (repr(synthesizer.ledger_) + repr(synthesizer.ledger_.entries)).encode(),
        "logs": caplog.text.encode(),
        "output": (out + err).encode(),
        "warnings": repr([str(w.message) for w in caught]).encode(),
        "errors": problems.encode(),
        **members,
    }
    assert {place: found for place, content in places.items() if (found := findings(content))} == {}
    for path, thing in reachable(synthesizer):
        assert not isinstance(thing, pd.DataFrame | pd.Series | pl.DataFrame | pl.Series), path
        if isinstance(thing, np.ndarray):
            assert findings(thing.tobytes()) == [], path
        elif isinstance(thing, str | bytes | int | float):
            assert findings(repr(thing).encode()) == [], path


def failures_of_bad_calls(synthesizer, X, y):
    """All error texts, with causes and contexts, of calls that fail after and during a fit."""
    without = X.drop("height") if isinstance(X, pl.DataFrame) else X.drop(columns="height")
    doubled = X if isinstance(X, pl.DataFrame) else pd.concat([X, X[["word"]]], axis=1)
    wrong = X.rename({"word": "w"}) if isinstance(X, pl.DataFrame) else X.assign(height=X["level"])
    calls = [
        lambda: synthesizer.sample(-1),
        lambda: synthesizer.sample(1, y=["maybe"]),
        lambda: synthesizer.retrain(epsilon=3.0),
        lambda: synthesizer.retrain(generator="gan"),
        lambda: synthesizer.fit(without, y),
        lambda: synthesizer.fit(doubled, ["no"]),
        lambda: synthesizer.fit(wrong, y),
        lambda: synthesizer.fit(X, ["no"]),
        lambda: synthesizer.fit(X, y, unit_id=[f"{MARK}"]),
        lambda: DPMERFSynthesizer(1.0, 1e-5, domain_budget=None).fit(X, y),
        lambda: DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA.drop(["word"])).fit(X, y),
        lambda: DPMERFSynthesizer.from_release(synthesizer.release_, template=without),
    ]
    texts = []
    for call in calls:
        with pytest.raises(SkdpgenError) as caught:
            call()
        texts += traceback.format_exception(caught.value)
    # What the interpreter prints of the source of this file is no output of the package.
    return "\n".join(line for text in texts for line in text.splitlines() if "lambda" not in line)


def test_no_number_of_rows_survives_under_add_remove(tmp_path):
    n = 4567
    df = pd.DataFrame(
        {"height": np.linspace(0, 250, n), "label": ["no", "yes", "yes"] * (n // 3) + ["no"]}
    )
    schema = Schema({"height": Numeric((0, 250)), "label": Categorical(["no", "yes"])}, "label")
    synthesizer = DPMERFSynthesizer(1.0, 1e-5, schema=schema, adjacency="add-remove", **CHEAP)
    synthesizer.fit(df)
    assert synthesizer.release_.n_rows is None
    synthesizer.release_.save(tmp_path / "release")
    with zipfile.ZipFile(tmp_path / "release") as archive:
        header = json.loads(archive.read("header.json"))
    assert header["n_rows"] is None
    for path, thing in [*reachable(synthesizer), *reachable(header)]:
        if isinstance(thing, np.ndarray):
            # A noisy integer is some 10^8 wide: it equals n with probability below 1e-8.
            assert n not in thing.shape, path
            assert not (thing == n).any() if thing.dtype.kind in "iuf" else True, path
        elif isinstance(thing, int | float):
            assert thing != n, path
        elif isinstance(thing, str):
            assert str(n) not in thing, path
        elif isinstance(thing, list | tuple | dict | set):
            assert len(thing) != n, path


# -- hostile neighbors -----------------------------------------------------------------------------


class Hostile:
    """A cell whose methods all fail."""

    def _fail(self, *_):
        raise RuntimeError("private cell")

    __eq__ = __lt__ = __str__ = __repr__ = __float__ = __int__ = __bool__ = __len__ = _fail
    __iter__ = __array__ = __index__ = _fail

    def __hash__(self):
        raise RuntimeError("private cell")


HUGE = "long " * 100_000
CELLS = [
    1e9,
    math.inf,
    -math.inf,
    math.nan,
    None,
    "",
    "unique",
    [1, 2],
    {},
    HUGE,
    10**400,
    True,
    pd.NA,
    pd.NaT,
    Decimal("sNaN"),
    np.datetime64("NaT"),
    1j,
    b"bytes",
    Hostile(),
    "\x00",
    -1,
]
SWAPS = [
    *(("height", number) for number in (1e9, math.inf, -math.inf, math.nan, 5e-324, 1e308, -0.0)),
    *((column, cell) for column in ("visits", "word", "label") for cell in CELLS),
    *((column, cell) for column in ("key", "remark") for cell in ("unique", None, [1], Hostile())),
    ("level", None),
    ("level", "a level of its own"),
    *(("when", time) for time in (pd.NaT, "1700-01-01", "2260-12-31")),
]


def neighbor(column, cell):
    df = base_table()
    if column == "level" and cell is not None:
        df["level"] = df["level"].cat.add_categories([cell])
    if column in ("height", "level", "when"):
        df.loc[7, column] = cell
    else:
        cells = df[column].tolist()
        cells[7] = cell
        array = np.empty(N, dtype=object)
        for i, value in enumerate(cells):
            array[i] = value
        df[column] = pd.Series(array, dtype=object)
    assert df[column].dtype == base_table()[column].dtype or column == "level"
    return df


def generator_shapes(generator):
    if isinstance(generator, ProductMixture):
        return [p.shape for p in generator.probabilities], generator.shares.shape
    return {name: value.shape for name, value in generator.state_dict().items()}


def appearance(X, y=None, unit_id=None, **params):
    """All that is visible of a fit and isn't noise, or made from noise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = {"delta": 1e-5, "ledger": PrivacyLedger(), **CHEAP, **params}
        synthesizer = DPMERFSynthesizer(1.0, schema=SCHEMA, **settings)
        synthesizer.fit(X, y, unit_id=unit_id)
        sample = synthesizer.sample(5)
    release = synthesizer.release_
    sampled, sampled_y = sample if y is not None else (sample, None)
    return {
        "attributes": {name: type(value) for name, value in vars(synthesizer).items()},
        "names": synthesizer.feature_names_in_.tolist(),
        "classes": synthesizer.classes_.tolist(),
        "codec": pickle.dumps(synthesizer._codec),
        "release": {
            name: (value.dtype, value.shape) if isinstance(value, np.ndarray) else repr(value)
            for name, value in vars(release).items()
        },
        "features": {name: array.tolist() for name, array in release.public_arrays.items()},
        "ledger": synthesizer.ledger_.entries,
        "stream": synthesizer._sampling_rng.bit_generator.state["state"],
        "generator": generator_shapes(synthesizer.generator_),
        "loss": synthesizer.loss_curve_.shape,
        "dtypes": [str(dtype) for dtype in sampled.dtypes],
        "levels": sampled["level"].cat.categories.tolist(),
        "y": None if sampled_y is None else (sampled_y.dtype, sampled_y.name),
        "warnings": [(w.category, str(w.message)) for w in caught],
    }


@pytest.fixture(scope="module")
def plain(cheap):
    return appearance(base_table())


@pytest.mark.parametrize("swap", SWAPS, ids=lambda s: f"{s[0]}-{type(s[1]).__name__}")
def test_neighbors_with_a_hostile_row_look_alike(swap, plain):
    assert appearance(neighbor(*swap)) == plain


def test_neighbors_with_a_hostile_target_look_alike():
    def of(df):
        return appearance(df.drop(columns="label"), df["label"])

    plain = of(base_table())
    for cell in CELLS:
        assert of(neighbor("label", cell)) == plain


def test_neighbors_with_a_hostile_unit_look_alike():
    ids = [f"unit-{i // 2}" for i in range(N)]
    plain = appearance(base_table(), unit_id=ids, rows_per_unit=2)
    for cell in CELLS:
        assert appearance(base_table(), unit_id=[*ids[:-1], cell], rows_per_unit=2) == plain


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_many_hostile_rows_at_once(adjacency, plain):
    df = base_table()
    df["height"] = np.inf
    df["visits"] = df["word"] = df["label"] = pd.Series([[]] * N, dtype=object)
    df["level"] = pd.Categorical([None] * N, categories=["low", "high"])
    df["when"] = pd.Series([pd.NaT] * N, dtype=df["when"].dtype)
    found = appearance(df, adjacency=adjacency)
    assert found["dtypes"] == plain["dtypes"]
    assert found["warnings"] == []


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("delta", [1e-5, 0.0247])  # the second lies between 1 / 41 and 1 / 40
def test_under_add_remove_numbers_of_rows_cannot_be_told_apart(n, delta):
    settings = {"adjacency": "add-remove", "delta": delta}
    whole = appearance(base_table(), **settings)
    assert appearance(base_table().head(n), **settings) == whole


@pytest.mark.parametrize("delta", [1e-5, 0.0247])
def test_with_units_numbers_of_rows_cannot_be_told_apart(delta):
    # The last unit was replaced by one with fewer rows.
    ids = [f"unit-{i // 8}" for i in range(N)]
    settings = {"rows_per_unit": 2, "delta": delta}
    fewer = appearance(base_table().head(40), unit_id=[*ids[:39], "unit-5"], **settings)
    assert appearance(base_table(), unit_id=ids, **settings) == fewer
