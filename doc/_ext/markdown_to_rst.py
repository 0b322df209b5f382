"""The little Markdown that this repository's own files use, as reStructuredText.

Headings, paragraphs, lists, tables, fenced code (``math`` fences become formulas), indented code,
emphasis, inline code, links and pictures. What isn't known comes through as text.
"""

import re

UNDERLINES = "=-~^"
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|(?P<picture>!?)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)"
    r"|\*\*(?P<bold>[^*]+)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^*\s][^*]*)\*(?![\w*])"
)
_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*]|\d+\.) +(?P<text>.*)")
_SCRIPTS = re.compile(
    r"(?<=[\w)])\^(?P<sup>[A-Za-z0-9]+|-\d+|\([^()]*\))|(?<=\b[A-Za-z])_(?P<sub>[A-Za-z0-9])\b"
)
_SIGNS = {"<=": "≤", ">=": "≥", "+-": "±", "sqrt(": "√("}


def escape(text):
    """Make plain text of text: nothing in it is markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def prose(text):
    """Escape, with the signs and the powers of formulas in running text set as such."""
    for plain, sign in _SIGNS.items():
        text = text.replace(plain, sign)
    parts, end = [], 0
    for match in _SCRIPTS.finditer(text):
        role = "sup" if match["sup"] else "sub"
        script = (match["sup"] or match["sub"]).strip("()").replace("-", "\N{MINUS SIGN}")
        parts += [escape(text[end : match.start()]), rf"\ :{role}:`{escape(script)}`\ "]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def inline(text, link=None):
    """Convert emphasis, code and links within a paragraph or a cell.

    ``link`` turns a relative target into an address, or into None for plain text.
    """
    parts, end = [], 0
    for match in _INLINE.finditer(text):
        parts.append(prose(text[end : match.start()]))
        end = match.end()
        if match["code"]:
            parts.append(rf"\ ``{match['code']}``\ ")
        elif match["bold"]:
            parts.append(rf"\ **{escape(match['bold'])}**\ ")
        elif match["italic"]:
            parts.append(rf"\ *{escape(match['italic'])}*\ ")
        else:
            target = match["target"]
            if not target.startswith("https://"):
                target = link(target) if link else None
            label = match["text"].strip("`")
            parts.append(rf"\ `{label} <{target}>`__\ " if target else escape(label))
    # Escaped spaces keep markup apart from letters; at the ends there are none.
    joined = "".join([*parts, prose(text[end:])])
    return joined.removeprefix("\\ ").removesuffix("\\ ").strip()


def _table(rows, link):
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    lines = [".. list-table::", "   :header-rows: 1", "   :class: result-table", ""]
    for row in [cells[0], *cells[2:]]:
        for number, cell in enumerate(row):
            # A range such as 0.88-0.90 stays on one line.
            cell = re.sub(r"(?<=\d)-(?=\d)", "\N{NON-BREAKING HYPHEN}", cell)
            lines.append(("   * - " if number == 0 else "     - ") + inline(cell, link))
    return [*lines, ""]


def _literal(lines, language):
    if language == "math":
        head = [".. math::", ""]
    else:
        head = [f".. code-block:: {language or 'text'}", ""]
    return [*head, *(f"   {line}" if line.strip() else "" for line in lines), ""]


def convert(markdown, link=None, level=0):
    """Convert a whole text; a heading of one ``#`` gets the underline of ``level``."""
    lines = markdown.splitlines()
    out, at = [], 0

    def indented(line):
        return line.startswith("    ")

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith("```"):
            stop = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            out += _literal(lines[at + 1 : stop], line[3:].strip())
            at = stop + 1
        elif heading := re.match(r"(#+) (.*)", line):
            title = inline(heading[2], link)
            mark = UNDERLINES[level + len(heading[1]) - 1]
            out += [title, mark * max(len(title), 3), ""]
            at += 1
        elif line.lstrip().startswith("|") and "---" in lines[min(at + 1, len(lines) - 1)]:
            stop = at
            while stop < len(lines) and lines[stop].lstrip().startswith("|"):
                stop += 1
            out += _table(lines[at:stop], link)
            at = stop
        elif indented(line):
            stop = at
            while stop < len(lines) and (indented(lines[stop]) or not lines[stop].strip()):
                stop += 1
            body = "\n".join(text[4:] for text in lines[at:stop]).rstrip()
            out += _literal(body.split("\n"), None)
            at = stop
        elif item := _ITEM.match(line):
            # An item is its first line and what is indented deeper than its mark.
            width = len(item["indent"])
            body, at = [item["text"]], at + 1
            while at < len(lines):
                deeper = len(lines[at]) - len(lines[at].lstrip()) > width
                if lines[at].strip() and not deeper:
                    break
                if not lines[at].strip() and not (
                    at + 1 < len(lines) and lines[at + 1].startswith(" " * (width + 2))
                ):
                    break
                body.append(lines[at][width + 2 :])
                at += 1
            mark = "#. " if item["mark"][0].isdigit() else "* "
            inner = convert("\n".join(body), link, level).splitlines()
            out += [
                (mark if number == 0 else " " * len(mark)) + text if text else ""
                for number, text in enumerate(inner)
            ]
            out.append("")
        else:
            body = []
            while at < len(lines) and lines[at].strip() and not _starts_block(lines[at], body):
                body.append(lines[at].strip())
                at += 1
            out += [inline(" ".join(body), link), ""]
    return "\n".join(out).rstrip() + "\n"


def _starts_block(line, before):
    return bool(before) and (line.startswith(("#", "```", "|")) or bool(_ITEM.match(line)))
