"""One page that holds everything: opened from disk, without a network, on a phone or in the dark.

Figures are inline SVG with words for those who do not see them; tables are plain, and sortable where scripts
run. All text is escaped. The page forbids itself to load anything; its links lead to the files of exhibits.
"""

import base64
import hashlib
import math
import re
from numbers import Real
from pathlib import Path

from equinoise._typing import Any, DataFrame, Mapping, Sequence
from equinoise.report.exhibit import Exhibit

_HERE = Path(__file__).parent
_WORDS = 30  # a text of more characters makes its column wide
_Cell = tuple[str, str, str]  # text, the class of its column, and what a number is sorted by


def page(
    title: str, intro: Sequence[str], exhibits: Sequence[Exhibit], provenance: Mapping[str, str]
) -> bytes:
    """Return a self-contained HTML page in UTF-8: the same arguments give the same bytes.

    After the paragraphs of the introduction stand the exhibits in their order, those of one section together
    under its heading, and then how it was made. Raises ValueError when two exhibits have the same name.

    Examples
    --------
    >>> content = page("Report", ["A < B."], [Exhibit("one", "Part", "One", "Why?", "So.")], {"seed": "0"})
    >>> b"A &lt; B." in content, b'<h3 id="one">One</h3>' in content
    (True, True)
    """
    import jinja2

    names = [exhibit.name for exhibit in exhibits]
    if len(set(names)) < len(names):
        raise ValueError(f"exhibits must have different names, got {names}")
    sections: dict[str, list[Exhibit]] = {}
    for exhibit in exhibits:
        sections.setdefault(exhibit.section, []).append(exhibit)
    style, script = ((_HERE / f"page.{end}").read_text(encoding="utf-8") for end in ("css", "js"))
    strict: Any = {"autoescape": True, "undefined": jinja2.StrictUndefined, "keep_trailing_newline": True}
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), trim_blocks=True, **strict)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    words = {"title": title, "intro": intro, "sections": sections, "provenance": provenance}
    parts = {"style": style, "script": script, "digest": digest, "inline": _inline, "cells": _cells}
    made = templates.get_template("page.html").render(words, **parts)
    return made.encode("utf-8", "backslashreplace")


def _inline(drawing: bytes, name: str) -> tuple[str, str]:
    """Return the viewBox of an SVG file, and all that follows its opening tag, with its own ids prefixed."""
    left_out = r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->"
    body = re.sub(left_out, "", drawing.decode(), flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    sized = re.search(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', body)
    if sized is None:
        raise ValueError(f"a drawing must have a viewBox, got none in {name}")
    return sized[1], re.sub(r"\n\s*", "\n", body[sized.end() :]).strip()


def _cells(frame: DataFrame) -> tuple[list[_Cell], list[list[_Cell]]]:
    """Return the headings of a table and the cells of its rows."""
    columns = [list(frame[name]) for name in frame.columns]
    kinds = ["number" if all(map(_is_number, column)) else "" for column in columns]
    headings = [(str(name).replace("_", " "), kind, "") for name, kind in zip(frame, kinds, strict=True)]
    rows = zip(*columns, strict=True)
    return headings, [[_cell(*pair) for pair in zip(row, kinds, strict=True)] for row in rows]


def _cell(value: Any, kind: str) -> _Cell:
    text = _shown(value)
    if not kind:
        return text, "words" if len(text) > _WORDS else "", ""
    return text, kind, "" if math.isnan(value) else repr(float(value)).replace("inf", "Infinity")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value as a reader wants it: four digits, thousands apart, yes or no, a dash for nothing."""
    if not _is_number(value):
        return "–" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))
    number = float(value)
    if not math.isfinite(number):
        return "–" if math.isnan(number) else "∞" if number > 0 else "−∞"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}" if abs(number) >= 1e-4 or number == 0 else f"{number:.1e}"
