"""The page in a real browser: layout, errors, requests, pictures, and what is seen first.

Skipped where there is no browser, unless SKDPGEN_REQUIRE_BROWSER=1.
"""

import os
import shutil
from io import BytesIO

import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LAPTOP, PHONE = (1280, 800), (390, 844)

# Elements beyond the right or left edge, but for what scrolls or is cut inside its own box.
STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth, found = [];
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('svg') && element.tagName !== 'svg') continue;
    if (element.closest('.skip, .quiet')) continue;
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    let inside = false;
    for (let up = element.parentElement; up; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== 'visible') inside = true;
    if (!inside && (box.right > width + 0.5 || box.left < -0.5))
      found.push(element.tagName + '.' + element.className + ' ' + box.left + '-' + box.right);
  }
  return found;
}"""

# Pairs of texts and backgrounds with less contrast than WCAG 2 AA asks for.
LOW_CONTRAST = """() => {
  const light = c => {
    const v = c.slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
  };
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const found = [];
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest('.skip, .quiet') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest('svg') ? style.fill : style.color;
    let behind = [255, 255, 255];
    for (let up = element; up; up = up.parentElement) {
      const color = parse(getComputedStyle(up).backgroundColor);
      if (color.length < 4 || color[3] > 0) { behind = color; break; }
    }
    const [a, b] = [light(parse(drawn)), light(behind)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const text = element.textContent.slice(0, 40);
    if (ratio < 4.5) found.push(element.tagName + ' ' + text + ' ' + ratio);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("SKDPGEN_REQUIRE_BROWSER") == "1":
            pytest.fail("SKDPGEN_REQUIRE_BROWSER=1, but there is no browser, or no playwright.")
        pytest.skip("there is no browser, or no playwright")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page; what it says in the console and asks for is kept."""
    contexts = []

    def visit(page, size, scheme="light"):
        path = tmp_path / "page.html"
        page.save(path)
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        contexts.append(context)
        tab = context.new_page()
        tab.said, tab.requests = [], []
        tab.on("console", lambda message: tab.said.append(message.text))
        tab.on("pageerror", lambda error: tab.said.append(str(error)))
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.goto(path.as_uri(), wait_until="load")
        tab.own = path.as_uri()
        return tab

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture(params=["good", "bad", "public", "hostile"])
def page(request, good_page, bad_page, public_page, hostile_page):
    return {"good": good_page, "bad": bad_page, "public": public_page, "hostile": hostile_page}[
        request.param
    ]


def test_what_sticks_out_is_found(visit, public_page):
    tab = visit(public_page, PHONE)
    tab.add_style_tag(content=".card { width: 500px; }")
    assert any("card" in line for line in tab.evaluate(STICKING_OUT))


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_page_fits_and_asks_for_nothing(visit, page, size):
    tab = visit(page, size)
    for folded in tab.query_selector_all("details"):
        folded.evaluate("element => { element.open = true; }")
    assert tab.said == []
    outside = [url for url in tab.requests if url != tab.own and not url.startswith("data:")]
    assert outside == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert tab.evaluate(STICKING_OUT) == []
    # Images decode, those inside of pictures too; pictures have a size.
    assert tab.evaluate(
        """async () => {
          const urls = [...document.querySelectorAll('img')].map(i => i.src).concat(
            [...document.querySelectorAll('svg image')].map(i => i.href.baseVal));
          for (const url of urls) {
            const image = new Image();
            image.src = url;
            await image.decode();
            if (!image.naturalWidth) return false;
          }
          return [...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().width);
        }"""
    )


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_verdict_is_on_the_first_screen(visit, bad_page, size, scheme):
    tab = visit(bad_page, size, scheme)
    headlines = tab.query_selector_all("#verdict .headline")
    assert len(headlines) == 4
    for headline in headlines:
        box = headline.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= size[1]
    lost = tab.get_by_text("Links between columns are lost.", exact=True).first.bounding_box()
    assert lost["y"] + lost["height"] <= size[1]
    warning = tab.get_by_text("Not for publication.").bounding_box()
    assert warning["y"] < 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(visit, good_page, scheme):
    tab = visit(good_page, LAPTOP, scheme)
    assert tab.evaluate(LOW_CONTRAST) == []
    tab.add_style_tag(content=".detail, .tiles svg text { color: #888; fill: #888 !important; }")
    found = tab.evaluate(LOW_CONTRAST)
    assert any(line.startswith("P ") for line in found) == (scheme == "light")
    assert any(line.startswith("text ") for line in found) == (scheme == "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_the_page_is_not_blank(visit, good_page, scheme):
    from matplotlib.image import imread

    tab = visit(good_page, LAPTOP, scheme)
    pixels = imread(BytesIO(tab.screenshot()), format="png")[..., :3]
    packed = (pixels * 255).astype(np.int64) @ (65536, 256, 1)
    assert len(np.unique(packed)) > 50
    assert (pixels.mean() > 0.5) == (scheme == "light")
    # So are the pictures on it.
    for picture in tab.query_selector_all(".tiles svg")[:4]:
        drawn = imread(BytesIO(picture.screenshot()), format="png")[..., :3]
        assert drawn.std() > 0.02


def test_folds_are_open_on_paper(visit, good_page):
    tab = visit(good_page, LAPTOP)
    assert not tab.query_selector("#verdict .fold li").is_visible()
    tab.emulate_media(media="print")
    assert not tab.query_selector(".toc").is_visible()
    assert tab.query_selector("#verdict .fold li").is_visible()
