import json
import os
import re
import stat
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from skdpgen import Schema
from skdpgen.evaluation import copy_check
from skdpgen.exceptions import InputError
from skdpgen.reporting import report


class Touched(AssertionError):
    """Somebody looked at private rows."""


class Untouchable:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise Touched(name)

    def __len__(self):
        raise Touched("len")

    def __bool__(self):
        raise Touched("bool")

    def __iter__(self):
        raise Touched("iter")

    def __eq__(self, other):
        raise Touched("eq")

    __hash__ = None


class Tags(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


# -- what it says --------------------------------------------------------------


def test_a_fresh_sample_is_called_good(good_page):
    levels = {finding.topic: finding.level for finding in good_page.verdict}
    assert levels == {"columns": "good", "links": "good", "learning": "good", "privacy": "good"}
    assert "can stand in for the real one" in good_page.html


def test_shuffled_columns_are_called_bad(bad_page):
    verdict = bad_page.verdict
    assert verdict.columns.level == "good"
    assert (verdict.links.level, verdict.learning.level) == ("poor", "poor")
    assert verdict.links.headline == "Links between columns are lost."
    first = bad_page.html.index("Links between columns are lost.")
    assert first < bad_page.html.index("What was promised</h2>")
    assert "This table can&#39;t stand in for the real one." in bad_page.html


def test_private_rows_call_for_a_warning(good_page, public_page, shop):
    assert "Not for publication." in good_page.html
    assert "no epsilon covers" in good_page.html
    assert "Not for publication." not in public_page.html
    assert '<span class="tag">publishable</span>' in public_page.html
    assert "Not for publication." not in report(shop.good, release=shop.release).html


def test_scores_chance_and_the_real_table_stand_side_by_side(good_page):
    for text in (">Real rows<", ">Synthetic rows<", "Guessing", "ROC AUC"):
        assert text in good_page.html


def test_without_real_rows_nothing_is_praised(shop):
    page = report(shop.good, release=shop.release)
    assert {f.level for f in page.verdict if f.topic != "privacy"} == {"unknown"}
    assert "Pass the real rows as real=" in page.html


def test_only_held_out_rows(shop):
    page = report(shop.good, release=shop.release, test=shop.test, estimators=shop.estimators)
    assert page.verdict.learning.level == "unknown"
    assert page.verdict.learning.headline == "Better than guessing."
    assert page.verdict.columns.level == "unknown"
    assert "Not for publication." in page.html


def test_worst_columns_come_first(shop):
    worse = shop.good.assign(color="green")
    page = report(worse, real=shop.real, schema=shop.schema)
    tiles = re.findall(r'<figcaption><h3><bdi class="name">(\w+)</bdi>', page.html)
    assert tiles[0] == "color"
    assert sorted(tiles) == ["color", "note", "size", "sold"]


def test_the_ledger_and_its_cap(good_page, shop):
    assert "mean embedding" in good_page.html
    assert "The ledger refuses more than epsilon = 2 at delta = 1e-05" in good_page.html


def test_a_copied_table_is_called_one(shop, page_of):
    check = copy_check(shop.real, shop.real, shop.test, schema=shop.schema)
    page = page_of(shop.real, privacy_check=check)
    assert (page.verdict.privacy.level, page.verdict.privacy.label) == ("poor", "Fault found")
    assert "As to privacy: A check found a fault" in page.html
    assert page.to_dict()["privacy_check"]["copying"]


def test_a_check_without_alarm_is_no_praise(shop, page_of, good_page):
    check = copy_check(shop.good, shop.real, shop.test, schema=shop.schema)
    page = page_of(shop.good, privacy_check=check)
    assert page.verdict.privacy == good_page.verdict.privacy
    assert "no evidence of privacy: only the promise above is" in page.html
    assert "CopyResult" not in page.html


def test_insecure_noise_is_red(shop):
    from skdpgen import DPMERFSynthesizer, GaussianFeatures, insecure_noise

    with insecure_noise(seed=0):
        synth = DPMERFSynthesizer(
            1.0, 1e-5, schema=shop.schema, features=GaussianFeatures(20), n_steps=1
        ).fit(shop.real)
    page = report(shop.good, release=synth.release_, publishable=True)
    assert page.verdict.privacy.level == "poor"
    assert "NOT PRIVATE" in page.html
    assert 'class="statement bad"' in page.html
    assert "Not for publication." in page.html
    assert '<span class="tag">publishable</span>' not in page.html


# -- what it doesn't say -------------------------------------------------------


def test_the_publishable_page_touches_no_private_row(shop):
    never = Untouchable()
    page = report(
        shop.good,
        release=shop.release,
        ledger=shop.ledger,
        real=never,
        test=never,
        privacy_check=never,
        publishable=True,
    )
    assert page.publishable
    assert page.to_dict().keys() & {"fidelity", "tstr", "privacy_check"} == set()


def test_the_publishable_page_holds_no_marker_of_the_private_rows(shop):
    real = shop.real.copy()
    real["note"] = "CANARY-7f3a"
    real["size"] = 73.31131317
    page = report(
        shop.good, release=shop.release, real=real, test=real, publishable=True, title="Shop"
    )
    everything = page.html + json.dumps(page.to_dict()) + repr(page)
    for marker in ("CANARY", "73.31", "7331131317"):
        assert marker not in everything


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_number_of_private_rows_is_published_only_where_the_release_does(shop, adjacency):
    from skdpgen import DPMERFSynthesizer, GaussianFeatures

    real = pd.concat([shop.real, shop.real.iloc[:237]])  # 1,737 rows
    synth = DPMERFSynthesizer(
        1.0,
        1e-5,
        schema=shop.schema,
        adjacency=adjacency,
        features=GaussianFeatures(20),
        n_steps=1,
        random_state=0,
    ).fit(real)
    page = report(
        shop.good,
        release=synth.release_,
        ledger=synth.ledger_,
        real=real,
        test=real,
        publishable=True,
    )
    everything = page.html + json.dumps(page.to_dict())
    published = "1,737" in everything or "1737" in everything
    assert published == (adjacency == "replace-one")


# -- hostile texts -------------------------------------------------------------


def test_hostile_texts_make_no_markup(hostile_page):
    page = Tags(hostile_page.html)
    assert not set(page.tags) & {"script", "iframe", "object", "embed", "link", "base", "form"}
    assert page.tags.count("title") == 1
    assert not any(key.startswith("on") for _, key, _ in page.attributes)
    assert "img" not in page.tags
    assert any("<script>alert(1)</script>" in text for text in page.texts)
    assert "{{ 7 * 7 }}" in hostile_page.html
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", hostile_page.html)
    hostile_page.html.encode("utf-8")
    json.dumps(hostile_page.to_dict(), allow_nan=False)


def test_ids_are_unique_and_references_resolve(good_page, hostile_page):
    for html in (good_page.html, hostile_page.html):
        page = Tags(html)
        ids = [value for _, key, value in page.attributes if key == "id"]
        assert len(ids) == len(set(ids))
        links = [v[1:] for _, k, v in page.attributes if k.endswith("href")]
        drawn = re.findall(r"url\(#([^)]+)\)", html)
        assert links
        assert drawn
        assert {x for x in (*links, *drawn) if not x.startswith("ata:")} <= set(ids)


def test_the_page_is_one_file(good_page):
    page = Tags(good_page.html)
    assert not set(page.tags) & {"script", "link", "iframe", "object", "embed", "base"}
    for _, key, value in page.attributes:
        if key in ("src", "href", "xlink:href", "action", "srcset", "poster"):
            assert value.startswith(("#", "data:image/png;base64,"))
    style = good_page.html.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert "Content-Security-Policy" in good_page.html


def test_everything_that_is_shown_has_words(good_page):
    pictures = re.findall(r"<svg [^>]*>", good_page.html)
    assert len(pictures) >= 8
    for picture in pictures:
        assert 'aria-hidden="true"' in picture or re.search(r'aria-label="[^"]{10,}"', picture)
    page = Tags(good_page.html)
    assert page.tags.count("table") == page.tags.count("caption")
    assert ("html", "lang", "en") in page.attributes
    scopes = [v for tag, k, v in page.attributes if (tag, k) == ("th", "scope")]
    assert page.tags.count("th") == len(scopes)


# -- odd tables ----------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": ["x", "x", "x"]}),
        pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}),
        pd.DataFrame({"a": [1.5], "b": ["x"]}),
        pd.DataFrame({"a": np.zeros(0), "b": np.zeros(0, dtype=object)}),
        pd.DataFrame({"a": [1, 2, 3]}),
        pd.DataFrame(index=range(3)),
    ],
    ids=["constant", "all missing", "one row", "no rows", "one column", "no columns"],
)
def test_degenerate_tables_get_a_page(frame):
    page = report(frame, real=frame if frame.shape[1] else None)
    assert page.html.startswith("<!DOCTYPE html>")
    json.dumps(page.to_dict(), allow_nan=False)


def test_arrays_and_polars_frames():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    values = rng.random((50, 2))
    assert "synthetic rows" in report(values).html
    frame = polars.DataFrame({"a": values[:, 0], "b": ["x", "y"] * 25})
    assert report(frame, real=frame).verdict.columns.level == "good"


def test_what_is_no_table_is_refused():
    with pytest.raises(InputError):
        report(3)
    with pytest.raises(InputError, match="Schema"):
        report(pd.DataFrame({"a": [1]}), schema={"a": 1})


# -- the object ----------------------------------------------------------------


def test_saving_is_whole_or_nothing(public_page, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    public_page.save(path)
    assert path.read_text(encoding="utf-8") == public_page.html
    os.umask(mask := os.umask(0))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    path.write_text("before")
    with pytest.raises(OSError, match="disk full"):
        public_page.save(path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_plain_values(good_page):
    facts = good_page.to_dict()
    json.dumps(facts, allow_nan=False)
    assert facts["verdict"]["links"]["level"] == "good"
    assert facts["promise"]["epsilon"] == pytest.approx(1.0, rel=1e-4)
    assert facts["tstr"]["target"] == "sold"
    assert facts["synthetic"] == {"n_rows": 1500, "columns": ["size", "color", "note", "sold"]}


def test_notebooks_get_a_frame_of_its_own(public_page):
    shown = public_page._repr_html_()
    page = Tags(shown)
    assert page.tags == ["iframe"]
    assert dict((k, v) for _, k, v in page.attributes)["srcdoc"] == public_page.html
    assert "not for publication" not in repr(public_page)


def test_a_page_of_fifty_columns_would_be_small():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200, 8)), columns=[f"column {i}" for i in range(8)])
    frame["color"] = rng.choice([f"color {i}" for i in range(40)], 200)
    few, more = (report(frame.iloc[:, :k], real=frame) for k in (1, 9))
    a_column = (len(more.html.encode()) - len(few.html.encode())) / 8
    assert len(more.html.encode()) + 41 * a_column < 3_000_000


def test_schema_of_the_release_is_used(shop):
    # Without it the number would be cut at the extremes of the synthetic rows.
    page = report(shop.good, release=shop.release, publishable=True)
    assert "size" in page.html
    other = report(shop.good.rename(columns={"size": "length"}), publishable=True)
    assert isinstance(shop.schema, Schema)
    assert "length" in other.html


def test_one_is_one():
    page = report(pd.DataFrame({"age": [33]}), publishable=True)
    assert "<b>1</b> synthetic row<" in page.html
    assert "<b>1</b> column<" in page.html
    assert "<b>2</b> synthetic rows<" in report(pd.DataFrame({"age": [33, 51]})).html


def test_the_lead_says_where_nothing_was_promised(shop):
    private = report(shop.real, real=shop.real).html
    assert "Links between columns are kept. As to privacy: No promise was given." in private
    public = report(shop.real, publishable=True).html
    assert '<p class="lead">Nothing was promised to the people' in public
