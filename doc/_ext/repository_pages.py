"""Pages that are made of files of the repository when the documentation is built.

The proofs in ``skdpgen/privacy/README.md`` and the tables in ``benchmarks/results`` are read by
people who have no site, too. So they stay where they are, and nothing of them is copied into git.
"""

import re
import shutil
from pathlib import Path

import results
from markdown_to_rst import convert

DOC = Path(__file__).parents[1]
ROOT = DOC.parent
MADE = "generated"


def _write(path, text):
    # Untouched where nothing changed, so that a second build is quick.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _fresh(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def slug(title):
    """Name the page of a section."""
    return re.sub(r"\W+", "_", re.sub(r"^\d+\.", "", title)).strip("_").lower()


def privacy_pages():
    """Write one page for each numbered section of the README of the privacy core."""
    folder = _fresh(DOC / "privacy" / MADE)
    text = (ROOT / "skdpgen" / "privacy" / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"(?m)^## ", text)
    pages = {}
    for section in sections:
        title, body = section.split("\n", 1)
        label = f"privacy-section-{title.split('.')[0]}"
        converted = convert(f"# {title}\n{body}")
        pages[slug(title)] = f".. _{label}:\n\n{converted}"
    known = {int(number) for number in re.findall(r"(?m)^## (\d+)\.", text)}
    for name, page in pages.items():
        _write(folder / f"{name}.rst", _linked(page, known))
    # The table of files, with the sentence above it.
    overview = convert(head.split("\n", 1)[1])
    _write(folder / "overview.txt", _linked(overview, known))
    return list(pages)


def _linked(page, known):
    def link(match):
        number = int(match[2])
        if number not in known:
            return match[0]
        return rf":ref:`{match[1]} {number} <privacy-section-{number}>`"

    lines = []
    literal = False
    for line in page.splitlines():
        # Not in code and formulas, nor in titles.
        literal = line.startswith((".. code-block", ".. math")) or (
            literal and (not line or line.startswith(" "))
        )
        lines.append(line if literal else re.sub(r"\b([Ss]ection) (\d+)\b", link, line))
    return "\n".join(lines) + "\n"


def benchmark_pages():
    """Write one page for each table in ``benchmarks/results``, with its pictures."""
    folder = _fresh(DOC / "benchmarks" / MADE)
    for path in sorted(results.RESULTS.glob("*.md")):
        page = convert(path.read_text(encoding="utf-8"))
        for picture in sorted(results.RESULTS.glob(f"{path.stem}*.png")):
            shutil.copyfile(picture, folder / picture.name)
            words = picture.stem.replace("_", " ")
            page += f"\n.. image:: {picture.name}\n   :alt: {words}\n   :width: 90%\n"
        _write(folder / f"{path.stem}.rst", page)
    _write(folder / "by_size.txt", results.by_size())
    _write(folder / "by_epsilon.txt", results.by_epsilon())
    results.draw(folder)


def make_pages(app, config):
    """Write all pages before Sphinx looks for sources."""
    privacy_pages()
    benchmark_pages()


def setup(app):
    """Connect."""
    app.connect("config-inited", make_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
