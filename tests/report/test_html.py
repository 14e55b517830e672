"""The page: its structure as a screen reader meets it, nothing loaded, everything escaped, the same bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equinoise.report import figures, html
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison
from equinoise.report.figures import Curve, curves, legend_below
from equinoise.report.html import page

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert('x')</script> & \"quoted\" ]]> --> \ud800"


class Tree(HTMLParser):
    """Elements with their attributes, text and ancestors; refuses tags that do not match."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(content.decode())
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "inside": [e["tag"] for e in self.open]}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


def drawing(label="one"):
    drawn = figures.figure(4.0, 3.0)
    ax = drawn.subplots()
    ax.plot([1, 2, 3], [2, 1, 3], marker="o", label=label)
    ax.legend()
    return drawn


def exhibit(name="first", section="Part", text="plain", **changes):
    frame = pd.DataFrame(
        {"what": ["a", "b"], "ratio_to_bound": [0.5, math.nan], "n": [1200, 3], "sure": [True, False]}
    )
    parts = {
        "name": name,
        "section": section,
        "title": f"Title {text}",
        "question": f"Question {text}",
        "headline": f"Headline {text}",
        "text": (f"Paragraph {text}", "Another."),
        "tables": {"one": Table(f"Caption {text}", frame), "two": Table("Other", frame)},
        "figures": {"one": Picture(f"Figure {text}", f"Description {text}", drawing(text.split()[0]))},
    }
    return Exhibit(**parts | changes)


def built(**changes):
    parts = [exhibit(), exhibit("second"), exhibit("third", section="Another part")]
    return page("Report", ["Introduction."], parts, {"Seed": "0"}, **changes)


@pytest.fixture(scope="module")
def content():
    return built()


@pytest.fixture(scope="module")
def tree(content):
    return Tree(content)


def test_the_same_arguments_give_the_same_bytes(content):
    assert built() == content


def test_ids_are_unique_and_everything_that_is_referred_to_is_there(tree):
    ids = [e["attrs"]["id"] for e in tree.elements if "id" in e["attrs"]]
    assert len(set(ids)) == len(ids)
    for element in tree.elements:
        for name, value in element["attrs"].items():
            if name in ("aria-labelledby", "aria-describedby"):
                assert set(value.split()) <= set(ids), value
            if name == "href" and "/" not in value:
                assert value.startswith("#") and value[1:] in ids, value
            assert set(re.findall(r"url\(#([^)]*)\)", value or "")) <= set(ids), value
    assert len(tree.all("use")) > 30  # glyphs and markers: the check above has seen some


def test_tables_and_figures_link_their_files(tree):
    links = [e["attrs"]["href"] for e in tree.all("a") if "/" in e["attrs"]["href"]]
    files = {name for made in ("first", "second", "third") for name in exhibit(made).files()}
    assert set(links) == files and len(links) == len(files)
    inside = [e["inside"] for e in tree.all("a") if "/" in e["attrs"]["href"]]
    assert all("caption" in where or "figcaption" in where for where in inside)


def test_a_figure_refers_to_its_own_parts_only(tree):
    """Each drawing is inside one svg, so a reference with its name cannot mean another's."""
    for element in tree.all("use"):
        assert re.match(r"#(first|second|third)-figure-one-", element["attrs"]["href"])
    owners = [re.match(r"#(\w+)-", e["attrs"]["href"])[1] for e in tree.all("use")]
    assert {owners.count(name) for name in ("first", "second", "third")} == {len(owners) // 3}


def test_every_figure_says_what_it_shows(tree):
    drawings = tree.all("svg")
    assert len(drawings) == 3
    by_id = {e["attrs"].get("id"): e for e in tree.elements}
    for svg in drawings:
        assert svg["attrs"]["role"] == "img"
        assert by_id[svg["attrs"]["aria-labelledby"]]["tag"] == "title"
        assert by_id[svg["attrs"]["aria-labelledby"]]["text"] == "Figure plain"
        assert by_id[svg["attrs"]["aria-describedby"]]["tag"] == "desc"
        assert by_id[svg["attrs"]["aria-describedby"]]["text"] == "Description plain"
        assert "viewbox" in svg["attrs"] and "width" not in svg["attrs"]
    assert [e["text"] for e in tree.all("figcaption")] == ["Figure plain PNG SVG"] * 3


def test_every_table_has_a_caption_and_headings_with_a_scope(tree):
    tables = tree.all("table")
    assert len(tables) == len(tree.all("caption")) == 6
    assert all(e["text"] for e in tree.all("caption"))
    for heading in tree.all("th"):
        assert heading["attrs"]["scope"] == ("col" if "thead" in heading["inside"] else "row")
    assert len(tree.all("tr")) == 6 * 3
    assert len([e for e in tree.all("th") if "tbody" in e["inside"]]) == 6 * 2
    boxes = [e for e in tree.all("div") if e["attrs"].get("class") == "box"]
    assert len(boxes) == 6  # they scroll, so the keyboard must reach them, and they have a name
    assert all(e["attrs"]["tabindex"] == "0" and e["attrs"]["aria-labelledby"] for e in boxes)


def test_headings_are_in_order_and_landmarks_are_there(tree):
    levels = [int(e["tag"][1]) for e in tree.all("h1", "h2", "h3", "h4")]
    assert levels == [1, 2, 3, 3, 2, 3, 2]
    for landmark in ("header", "nav", "main", "footer"):
        assert len(tree.all(landmark)) == 1
    assert tree.all("nav")[0]["attrs"]["aria-label"]
    assert tree.all("html")[0]["attrs"]["lang"] == "en"
    assert tree.all("title")[0]["text"] == "Report"


def test_the_first_link_skips_to_the_content_and_the_contents_name_every_exhibit(tree):
    links = tree.all("a")
    assert links[0]["attrs"] == {"class": "skip", "href": "#main"}
    listed = [e["attrs"]["href"] for e in links if "nav" in e["inside"]]
    assert listed == ["#section-0", "#first", "#second", "#section-1", "#third", "#made"]


def test_nothing_is_loaded_and_only_our_script_runs(content, tree):
    assert not tree.all("link", "img", "iframe", "object", "embed", "video", "audio")
    assert not [e for e in tree.elements if "src" in e["attrs"] or "srcset" in e["attrs"]]
    assert not [e for e in tree.elements if any(name.startswith("on") for name in e["attrs"])]
    assert b"http://" not in content and b"https://" not in content and b"@import" not in content
    (script,) = tree.all("script")
    digest = base64.b64encode(hashlib.sha256(script["text"].encode()).digest()).decode()
    policies = [e["attrs"]["content"] for e in tree.all("meta") if "http-equiv" in e["attrs"]]
    assert policies == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"]


def test_the_page_fits_a_phone_and_the_dark(content, tree):
    names = {e["attrs"].get("name"): e["attrs"].get("content") for e in tree.all("meta")}
    assert names["viewport"] == "width=device-width, initial-scale=1"
    assert names["color-scheme"] == "light dark"
    assert content.count(b": light-dark(#") == 7
    assert re.search(rb"\.drawing \{ background: #ffffff", content)  # figures are drawn on white


def test_tables_of_many_columns_are_narrower_and_paper_cuts_nothing_off(content):
    wide = pd.DataFrame({f"c{i}": [1.0] for i in range(8)})
    boxes = [
        element["attrs"]["class"]
        for frame in (wide, wide.iloc[:, :7])
        for element in Tree(page("t", [], [exhibit(tables={"x": Table("c", frame)})], {})).all("div")
        if element["attrs"]["class"].startswith("box")
    ]
    assert boxes == ["box many", "box"]
    paper = content.decode().split("@media print", 1)[1]
    assert "@page { size: A4;" in paper and ".box { max-height: none; overflow: visible;" in paper
    assert "min-width: 0" in paper and "thead, tr" in paper  # headings stand on every page


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_have_the_contrast_that_wcag_aa_asks_for():
    css = (Path(html.__file__).parent / "page.css").read_text()
    pairs = re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", css)
    for scheme in (1, 2):
        colour = {pair[0]: pair[scheme] for pair in pairs}
        for front, backs, wanted in (
            ("text", ("page", "card", "mark"), 4.5),
            ("quiet", ("page", "card"), 4.5),
            ("link", ("page",), 4.5),
            ("line", ("page",), 3.0),
        ):
            for back in backs:
                high, low = sorted((luminance(colour[front]), luminance(colour[back])), reverse=True)
                assert (high + 0.05) / (low + 0.05) >= wanted, (front, back)


def test_text_is_escaped_wherever_it_comes_from():
    columns = pd.Index([f"column {HOSTILE}", "n"], dtype=object)  # Arrow's strings hold no lone surrogate
    bad = exhibit(
        "bad",
        section=f"Section {HOSTILE}",
        text=HOSTILE,
        tables={"one": Table(HOSTILE, pd.DataFrame([[HOSTILE, 1]], columns=columns, dtype=object))},
        figures={"one": Picture(HOSTILE, HOSTILE, drawing("<script>alert(1)</script>"))},
    )
    content = page(HOSTILE, [HOSTILE], [bad], {HOSTILE: HOSTILE})
    tree = Tree(content)
    assert len(tree.all("script")) == 1
    shown = HOSTILE.replace("\ud800", "\\ud800")
    for tag, text in (
        ("title", shown),
        ("h1", shown),
        ("h2", f"Section {shown}"),
        ("h3", f"Title {shown}"),
        ("caption", shown),
        ("td", "1"),
        ("figcaption", shown),
        ("desc", shown),
        ("dt", shown),
        ("dd", shown),
    ):
        assert tree.all(tag)[0]["text"].removesuffix(" CSV").removesuffix(" PNG SVG") == text, tag
    assert [e["text"] for e in tree.all("th")] == [f"column {shown}", "n", shown]


@pytest.mark.parametrize(
    ("value", "shown", "sorted_by"),
    [
        (1234567, "1,234,567", "1234567.0"),
        (np.int64(12), "12", "12.0"),
        (0.123456, "0.1235", "0.123456"),
        (49_876.4, "49,876", "49876.4"),
        (4321.7, "4,322", "4321.7"),
        (0.0, "0", "0.0"),
        (0.00002, "2.0e-05", "2e-05"),
        (-0.5, "-0.5", "-0.5"),
        (math.inf, "∞", "Infinity"),
        (-math.inf, "−∞", "-Infinity"),
        (math.nan, "–", None),
    ],
)
def test_numbers_are_shown_to_readers_and_kept_for_sorting(value, shown, sorted_by):
    content = page("t", [], [exhibit(tables={"x": Table("c", pd.DataFrame({"a": ["x"], "n": [value]}))})], {})
    (cell,) = Tree(content).all("td")
    assert cell["text"] == shown
    assert cell["attrs"].get("data-value") == sorted_by
    assert cell["attrs"]["class"] == "number"


def test_columns_of_words_keep_their_gaps_as_words(tree):
    frame = pd.DataFrame({"a": ["x", "y"], "tuning": ["sharp", None], "b": [True, False]})
    cells = Tree(page("t", [], [exhibit(tables={"x": Table("c", frame)})], {})).all("td")
    assert [cell["text"] for cell in cells] == ["sharp", "yes", "–", "no"]
    assert all("class" not in cell["attrs"] and "data-value" not in cell["attrs"] for cell in cells)
    assert "ratio to bound" in [e["text"] for e in tree.all("th")]


def test_two_exhibits_of_one_name_are_refused():
    with pytest.raises(ValueError, match="exhibits must have different names"):
        page("t", [], [exhibit(), exhibit()], {})


def test_files_of_an_exhibit():
    made = exhibit()
    files = made.files()
    assert list(files) == [
        "tables/first-one.csv",
        "tables/first-two.csv",
        "figures/first-one.png",
        "figures/first-one.svg",
    ]
    assert files["tables/first-one.csv"].decode().splitlines() == [
        "what,ratio_to_bound,n,sure",
        "a,0.5,1200,True",
        "b,,3,False",
    ]
    assert files["figures/first-one.png"].startswith(b"\x89PNG")
    assert ET.fromstring(files["figures/first-one.svg"]).tag == "{http://www.w3.org/2000/svg}svg"
    assert exhibit().files()["figures/first-one.svg"] == files["figures/first-one.svg"]
    assert exhibit("other").files()["figures/other-one.svg"] != files["figures/first-one.svg"]


def test_an_exhibit_is_restored_from_its_document_and_files():
    frame = pd.DataFrame(
        {
            "what": ["a", None, "c"],
            "x": [0.1 + 0.2, math.nan, math.inf],
            "nothing": [math.nan] * 3,
            "n": [1, 2, 3],
            "sure": [True, False, True],
            "words": ["NA", 'a "b",\nc', math.nan],
            "empty": [None] * 3,
        }
    )
    made = exhibit(tables={"one": Table("c", frame)})
    document, files = made.document(), made.files()
    kept = json.loads(json.dumps(document, allow_nan=False))
    del kept["tables"]["one"]["rows"]
    again = Exhibit.restored(kept, files)
    assert again.document() == document and again.files() == files
    assert page("t", [], [again], {}) == page("t", [], [made], {})
    assert document["tables"]["one"]["rows"][1] == [None, None, None, 2, False, 'a "b",\nc', None]
    assert document["tables"]["one"]["rows"][2] == ["c", "inf", None, 3, True, None, None]
    assert document["headline"] == "Headline plain" and set(document["figures"]) == {"one"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../up"}, "name must be"),
        ({"name": "Upper"}, "name must be"),
        ({"tables": {"a b": None}}, "tables must be"),
        ({"figures": {"": None}}, "figures must be"),
        ({"headline": "two\nlines"}, "headline must be one line"),
        ({"headline": ""}, "headline must be one line"),
    ],
)
def test_wrong_exhibits(changes, words):
    with pytest.raises(ValueError, match=words):
        exhibit(**changes)


def test_published_figures_stand_beside_ours_with_a_ratio_and_a_reason():
    frame = comparison(
        [
            Claim("far", 2.0, 3.0, "Because."),
            Claim("near", 2.0, 2.19, "Because."),
            Claim("not quite", 2.0, 2.21, "Because."),
            Claim("zero", 0.0, 0.3, "Because."),
            Claim("printed zero", 0.0, 0.00004, "Because.", 4),
            Claim("printed", 0.0003, 0.00034, "Because.", 4),
            Claim("printed, but not so", 0.0003, 0.00036, "Because.", 4),
            Claim("unpublished", math.nan, 1.0, "A control."),
        ]
    )
    assert list(frame.columns) == ["quantity", "published", "ours", "ratio", "why"]
    np.testing.assert_allclose(frame["ratio"][:3], [1.5, 1.095, 1.105])
    assert frame["ratio"][[3, 4, 7]].isna().all()
    agree, printed = "Within 10%.", "Equal in all printed decimals."
    assert frame["why"].tolist() == [
        *("Because.", agree, "Because.", "Because.", printed, printed, "Because.", "A control.")
    ]


def test_an_interval_that_holds_what_was_published_is_an_agreement():
    frame = comparison(
        [
            Claim("inside", 1.0, 1.3, "Because.", stderr=0.16),
            Claim("outside", 1.0, 1.3, "Because.", stderr=0.15),
            Claim("without", 1.0, 1.3, "Because."),
        ]
    )
    assert list(frame.columns) == ["quantity", "published", "ours", "stderr", "ratio", "why"]
    assert frame["why"].tolist() == [
        "Our 95% interval contains the published figure.",
        "Because.",
        "Because.",
    ]


def test_a_difference_without_a_reason_is_refused():
    with pytest.raises(ValueError, match="why must say why"):
        comparison([Claim("far", 1.0, 2.0, " ")])


def test_curves_draw_intervals_bounds_and_published_points():
    ax = figures.figure().subplots()
    x = [1.0, 2.0, 4.0]
    series = [
        Curve("ours", x, [3.0, 2.0, 1.0], [2.5, 1.5, 0.5], [3.1, 2.1, 1.1]),
        Curve("its bound", x, [9.0, 8.0, math.nan], kind="bound"),
        Curve("theirs", x, [3.1, math.nan, 1.2], kind="published"),
        Curve("a level", [0.0], [2.2], kind="level"),
        Curve("more", x, [5.0, 4.0, 3.0]),
    ]
    assert curves(ax, series, horizontal="ε", vertical="regret", logarithmic="xy") is ax
    lines = {line.get_label(): line for line in ax.get_lines()}
    ours, bound, theirs = (lines[name] for name in ("ours", "its bound", "theirs"))
    assert ours.get_color() == bound.get_color() != theirs.get_color()
    assert ours.get_marker() == bound.get_marker() != theirs.get_marker()
    assert bound.get_markerfacecolor() == "white" and bound.get_linestyle() != "-"
    assert theirs.get_linestyle() == "None"
    np.testing.assert_allclose(lines["a level"].get_ydata(), [2.2, 2.2])
    assert len({lines[name].get_color() for name in ("ours", "theirs", "a level", "more")}) == 4
    (bars,) = (c for c in ax.collections if len(c.get_segments()) == 3)
    np.testing.assert_allclose([s[:, 1] for s in bars.get_segments()], [[2.5, 3.1], [1.5, 2.1], [0.5, 1.1]])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()) == (
        "ε",
        "regret",
        "log",
        "log",
    )
    legend = ax.get_figure().legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [curve.label for curve in series]
    assert ax.get_legend() is None


def test_a_short_logarithmic_axis_has_more_than_one_tick():
    for low, high, wanted in ((3.2, 7.0, {"5"}), (1500.0, 70_000.0, {"2,000", "5,000", "10,000", "50,000"})):
        ax = figures.figure().subplots()
        curves(ax, [Curve("a", [1, 2], [low, high])], horizontal="", vertical="", logarithmic="y")
        assert wanted <= {label.get_text() for label in ax.get_yticklabels()}
        bottom, top = ax.get_ylim()
        assert bottom <= low and top >= high


def test_a_short_logarithmic_axis_of_epsilons_has_plain_numbers():
    """Labels of matplotlib's own minor ticks, 2 x 10^0 and so on, run into one another there."""
    ax = figures.figure().subplots()
    curves(ax, [Curve("a", [1.3, 4.4, 15.0], [1.0, 2.0, 3.0])], horizontal="", vertical="", logarithmic="x")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "5", "10"]
    assert len(ax.get_xticks(minor=True)) == 0
    ax = figures.figure().subplots()
    curves(ax, [Curve("a", [2.5, 4.5], [1.0, 2.0])], horizontal="", vertical="", logarithmic="x")
    ax.figure.draw_without_rendering()
    assert len(ax.get_xticks()) + len(ax.get_xticks(minor=True)) > 1


def test_ticks_stand_where_the_points_are():
    ax = figures.figure().subplots()
    curve = Curve("a", [0.5, 8.0], [1.0, 2.0])
    curves(ax, [curve], horizontal="", vertical="", logarithmic="x", ticks=(0.5, 8.0))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "8"]
    assert not len(ax.get_xticks(minor=True))


def test_a_legend_below_hides_nothing():
    drawn = figures.figure(5.6, 4.0)
    ax = drawn.subplots()
    for i in range(5):
        ax.plot([0, 1], [i, 1], label=f"a rather long label, number {i}, of a policy")
    ax.legend()
    ax.set_xlabel("the horizontal axis")
    legend_below(ax)
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    assert ax.get_legend() is None
    assert legend.get_window_extent().y1 <= ax.xaxis.label.get_window_extent().y0
    assert legend.get_window_extent().x0 >= 0.0 and legend.get_window_extent().x1 <= drawn.bbox.x1


def test_wrong_curves():
    with pytest.raises(ValueError, match="kind must be one of"):
        Curve("a", [1], [1], kind="guess")
    with pytest.raises(ValueError, match="logarithmic must be one of"):
        curves(None, [], horizontal="", vertical="", logarithmic="yx")
