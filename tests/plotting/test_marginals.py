"""Small pictures of all columns: what they show is what was counted, and it can be read."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import Schema
from skdpgen.data import Categorical, Datetime, Id, Numeric
from skdpgen.datasets import load_fair
from skdpgen.exceptions import InputError
from skdpgen.plotting import MarginalsDisplay

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")


def odd_table(n):
    rng = np.random.default_rng(n)
    return pd.DataFrame(
        {
            "constant": 1,
            "all missing": [None] * n,
            "a long name that goes on for longer than there is place": rng.normal(size=n),
            "long values": [f"a value with a long name, number {i}" for i in range(n)],
            "gr\u00f6\u00dfe $x_2$ \u65e5\u672c": rng.choice(["$a^2$", "$", "\u65e5"], n),
            "none": rng.choice(np.array(["a", None], dtype=object), n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "hour": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9999, n), "s"),
            "huge": rng.lognormal(20, 4, n),
            "tiny": rng.normal(size=n) * 1e-9,
            "year": rng.integers(1900, 2020, n),
            "gaps": np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n)),
            "lists": [[1]] * n,
            "two\nlines": rng.integers(0, 3, n),
        }
    )


@pytest.mark.parametrize("n", [1, 40])
def test_odd_tables_can_be_drawn_and_read(n, overlaps):
    display = MarginalsDisplay.from_tables(odd_table(n), odd_table(n + 1)).plot()
    assert set(display.left_out) >= {"all missing", "lists"}
    assert len(display.axes_) == len(display.marginals) >= 11
    assert overlaps(display.figure_) == []


def test_tables_without_rows():
    table = odd_table(20).drop(columns=["lists", "all missing"])
    schema = Schema({"constant": Numeric((0, 9)), "none": Categorical(["a"], missing=True)})
    for synthetic, real in ((table.head(0), table), (table, table.head(0)), (table.head(0), None)):
        MarginalsDisplay.from_tables(synthetic, real).plot()
        MarginalsDisplay.from_tables(synthetic, real, schema=schema).plot()
    nothing = MarginalsDisplay.from_tables(table.head(0), table.head(0), schema=schema).plot()
    assert [ax.texts[0].get_text() for ax in nothing.axes_] == ["no rows"] * 2
    nothing = MarginalsDisplay.from_tables(table[["constant"]].head(0)).plot()
    assert "No column can be drawn" in nothing.axes_[0].texts[0].get_text()


def test_a_survey(overlaps):
    frame, schema = load_fair()
    synthetic = pl.from_pandas(frame.head(500))
    display = MarginalsDisplay.from_tables(synthetic, frame, schema=schema).plot()
    assert [ax.get_title(loc="left") for ax in display.axes_] == list(frame.columns)
    assert overlaps(display.figure_) == []
    assert "no epsilon covers this picture" in display.figure_.get_suptitle()
    legend = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert legend == ["synthetic", "real"]
    affair = display.axes_[-1]
    lengths = [bar.get_width() for bar in affair.patches]
    yes = (frame["affair"] == "yes").mean()
    assert lengths[2:] == pytest.approx([1 - yes, yes])


def test_the_picture_of_a_synthetic_table_alone_claims_nothing_of_real_rows():
    display = MarginalsDisplay.from_tables(odd_table(30)).plot()
    assert display.figure_.get_suptitle().strip() == (
        "How often each value occurs, in the synthetic rows."
    )
    assert all(m.real is None for m in display.marginals)


def test_missing_values_have_a_hatched_bar():
    schema = Schema(
        {"n": Numeric((0, 9), "int", missing=True), "c": Categorical(["a"], missing=True)}
    )
    table = pd.DataFrame({"n": [1, 2, None, None], "c": ["a", "a", "a", None]})
    display = MarginalsDisplay.from_tables(table, table, schema=schema).plot()
    numbers, categories = display.axes_
    hatched = [bar.get_height() for bar in numbers.patches if bar.get_hatch()]
    assert hatched == [0.5, 0.5]
    assert [bar.get_width() for bar in categories.patches if bar.get_hatch()] == [0.25, 0.25]
    assert [t.get_text() for t in categories.get_yticklabels()] == ["a", "missing"]


def test_columns_are_chosen_by_name_and_unknown_ones_named():
    table = odd_table(10)
    display = MarginalsDisplay.from_tables(table, columns=["year", "huge"])
    assert [m.name for m in display.marginals] == ["year", "huge"]
    with pytest.raises(InputError, match="'lists' can't be drawn: its cells are neither"):
        MarginalsDisplay.from_tables(table, columns=["lists"])
    with pytest.raises(InputError, match="'age' can't be drawn: no table has it"):
        MarginalsDisplay.from_tables(table, columns=["age"])
    schema = Schema({"key": Id(), "day": Datetime(("2020-01-01", "2030-01-01"))})
    with pytest.raises(InputError, match="'key' can't be drawn: the schema says id"):
        MarginalsDisplay.from_tables(table.assign(key=1), schema=schema, columns=["key"])


def test_wide_tables_are_cut_and_say_so():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(5, 61)), columns=[f"c{i}" for i in range(61)])
    display = MarginalsDisplay.from_tables(table)
    assert len(display.marginals) == 60
    assert display.left_out == {"c60": "only the first 60 are drawn"}


def test_a_single_column_can_be_drawn_into_given_axes():
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots()
    display = MarginalsDisplay.from_tables(odd_table(10), columns=["year"])
    assert display.plot(ax) is display
    assert display.figure_ is figure
    assert display.axes_.tolist() == [ax]
    with pytest.raises(InputError, match="ax holds one column"):
        MarginalsDisplay.from_tables(odd_table(10)).plot(ax)


def test_logarithmic_axes_are_marked():
    schema = Schema({"gain": Numeric((0, 10**5), "int", scale="log1p")})
    table = pd.DataFrame({"gain": [0] * 50 + [5, 70, 10**5]})
    (ax,) = MarginalsDisplay.from_tables(table, schema=schema).plot().axes_
    assert ax.get_xlabel() == "logarithmic axis"
    ticks = dict(zip([t.get_text() for t in ax.get_xticklabels()], ax.get_xticks(), strict=True))
    assert ticks["0"] == 0
    assert ticks["100"] == pytest.approx(np.log1p(100))
