"""One page that holds everything: opened from disk, without a network, on a phone or in the dark.

Figures are inline SVG with words for those who do not see them; tables are plain, and sortable where scripts
run. All text is escaped. The page forbids itself to load anything.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from numbers import Real
from pathlib import Path
from typing import Any

from equinoise.report.exhibit import Drawn, Exhibit, Picture, Table

__all__ = ["page"]

_HERE = Path(__file__).parent
_WORDS = 30  # a text of more characters makes its column wide


def page(
    title: str, intro: Sequence[str], exhibits: Sequence[Exhibit], provenance: Mapping[str, str]
) -> bytes:
    """Return a self-contained HTML page.

    Parameters
    ----------
    title : str
    intro : sequence of str
        Paragraphs before the contents.
    exhibits : sequence of Exhibit
        In their order; those of one section stand together, under the section's heading.
    provenance : mapping of str to str
        How it was made, shown at the end.

    Returns
    -------
    bytes
        UTF-8. The same arguments give the same bytes.

    Raises
    ------
    ValueError
        When two exhibits have the same name.

    Examples
    --------
    >>> content = page("Report", ["A < B."], [Exhibit("one", "Part", "One", "Why?", "So.")], {"seed": "0"})
    >>> b"A &lt; B." in content, b'<h3 id="one">One</h3>' in content
    (True, True)
    """
    names = [exhibit.name for exhibit in exhibits]
    if len(set(names)) < len(names):
        raise ValueError(f"exhibits must have different names, got {names}")
    sections: dict[str, list[Exhibit]] = {}
    for exhibit in exhibits:
        sections.setdefault(exhibit.section, []).append(exhibit)
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    lines = [
        *_head(title, script),
        '<a class="skip" href="#main">Skip to the experiments</a>',
        f"<header>\n<h1>{escape(title)}</h1>",
        *(f"<p>{escape(paragraph)}</p>" for paragraph in intro),
        *_contents(sections),
        '</header>\n<main id="main" tabindex="-1">',
        *_main(sections),
        "</main>\n<footer>",
        *_facts(provenance),
        f"</footer>\n<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _head(title: str, script: str) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{(_HERE / 'page.css').read_text(encoding='utf-8')}</style>\n</head>\n<body>"


def _contents(sections: Mapping[str, Sequence[Exhibit]]) -> Iterator[str]:
    yield '<nav aria-label="Contents">\n<ul>'
    for i, (section, exhibits) in enumerate(sections.items()):
        yield f'<li><a href="#section-{i}">{escape(section)}</a>\n<ul>'
        for exhibit in exhibits:
            yield f'<li><a href="#{exhibit.name}">{escape(exhibit.title)}</a></li>'
        yield "</ul>\n</li>"
    yield '<li><a href="#made">How this was made</a></li>\n</ul>\n</nav>'


def _main(sections: Mapping[str, Sequence[Exhibit]]) -> Iterator[str]:
    for i, (section, exhibits) in enumerate(sections.items()):
        yield f'<section aria-labelledby="section-{i}">\n<h2 id="section-{i}">{escape(section)}</h2>'
        for exhibit in exhibits:
            yield from _article(exhibit)
        yield "</section>"


def _article(exhibit: Exhibit) -> Iterator[str]:
    yield f'<article aria-labelledby="{exhibit.name}">\n<h3 id="{exhibit.name}">{escape(exhibit.title)}</h3>'
    yield f'<p class="question">{escape(exhibit.question)}</p>'
    yield f'<p class="headline">{escape(exhibit.headline)}</p>'
    for paragraph in exhibit.text:
        yield f"<p>{escape(paragraph)}</p>"
    if exhibit.figures:
        yield '<div class="figures">'
    for stem, picture in exhibit.figures.items():
        yield from _figure(f"{exhibit.name}-figure-{stem}", picture, exhibit.drawings[stem])
    if exhibit.figures:
        yield "</div>"
    for stem, table in exhibit.tables.items():
        yield from _table(f"{exhibit.name}-table-{stem}", table)
    yield "</article>"


def _figure(name: str, picture: Picture, drawing: Drawn) -> Iterator[str]:
    yield '<figure>\n<div class="drawing">'
    yield _inline(drawing.svg.decode(), name, picture)
    yield f"</div>\n<figcaption>{escape(picture.caption)}</figcaption>\n</figure>"


def _inline(drawing: str, name: str, picture: Picture) -> str:
    """Return an SVG file as an element of a page: its own ids prefixed, and said what it shows."""
    body = drawing[drawing.index("<svg") :]
    for part in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        body = re.sub(part, "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    said = f'<title id="{name}-said">{escape(picture.caption)}</title>'
    said += f'<desc id="{name}-more">{escape(picture.description)}</desc>'
    sized = re.match(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', body)
    if sized is None:
        raise ValueError(f"a drawing must have a viewBox, got none in {name}")
    opening = (
        f'<svg viewBox="{sized[1]}" role="img" aria-labelledby="{name}-said" aria-describedby="{name}-more">'
    )
    return re.sub(r"\n\s*", "\n", opening + said + body[sized.end() :]).strip()


def _table(name: str, table: Table) -> Iterator[str]:
    """Yield a table in a box that scrolls, which the keyboard can reach."""
    frame = table.frame
    yield f'<div class="box" role="group" tabindex="0" aria-labelledby="{name}">'
    yield f'<table>\n<caption id="{name}"><span>{escape(table.caption)}</span></caption>\n<thead>\n<tr>'
    numeric = [all(map(_is_number, frame[column])) for column in frame.columns]
    for column, is_number in zip(frame.columns, numeric, strict=True):
        kind = ' class="number"' if is_number else ""
        yield f'<th scope="col"{kind}>{escape(str(column).replace("_", " "))}</th>'
    yield "</tr>\n</thead>\n<tbody>"
    for row in frame.itertuples(index=False, name=None):
        cells = zip(row, numeric, strict=True)
        yield f"<tr>{''.join(_cell(*cell, first=i == 0) for i, cell in enumerate(cells))}</tr>"
    yield "</tbody>\n</table>\n</div>"


def _cell(value: Any, numeric: bool, *, first: bool) -> str:
    """Return one cell: the first of a row is its heading, and a number has its value for sorting."""
    text = _shown(value)
    options = ' scope="row"' if first else ""
    if numeric:
        options += ' class="number"'
        if not math.isnan(value):
            options += f' data-value="{float(value)!r}"'.replace("inf", "Infinity")
    elif len(text) > _WORDS:
        options += ' class="words"'
    tag = "th" if first else "td"
    return f"<{tag}{options}>{escape(text)}</{tag}>"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value as a reader wants it: four digits, thousands apart, yes or no, a dash for nothing."""
    if not _is_number(value):
        if value is None:
            return "–"
        return {"True": "yes", "False": "no"}.get(str(value), str(value))
    number = float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}" if abs(number) >= 1e-4 or number == 0 else f"{number:.1e}"


def _facts(provenance: Mapping[str, str]) -> Iterator[str]:
    yield '<h2 id="made">How this was made</h2>\n<dl class="facts">'
    for name, value in provenance.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"
