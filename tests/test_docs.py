"""What the documents say of the package is so: links, names of tests, versions, one place for addresses."""

import re
import sys
import tomllib
from pathlib import Path

import equinoise

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def markdown():
    return [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "papers").glob("*.md")]


def test_relative_links_lead_somewhere(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import links

    assert links.broken() == []
    assert links.links()
    del sys.modules["links"]


def test_tests_that_are_named_exist():
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"def (test_\w+)", written))
    named = {name for path in markdown() for name in re.findall(r"`(test_\w+)`", path.read_text())}
    assert named
    assert named <= defined


def test_files_of_tests_that_are_named_exist():
    named = {path for one in markdown() for path in re.findall(r"\btests/\w[\w/]*\.py", one.read_text())}
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_the_address_of_the_project_is_said_once():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    host = urls["Source"].split("/")[2]
    files = [*markdown(), ROOT / "CITATION.cff", *DOCS.glob("*.py"), *(ROOT / "src").rglob("*.py")]
    assert [str(path) for path in files if host in path.read_text()] == []


def test_the_citation_is_of_this_version_and_has_the_papers():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {equinoise.__version__}\n" in text
    for words in ("Extensive-Form Bandit", "Per-Instance Additive Noise", "Adaptive Data Gathering"):
        assert words in text
        assert words in (ROOT / "README.md").read_text()


def test_every_extra_is_in_all():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    everything = re.findall(r"\w+", extras["all"][0].partition("[")[2])
    assert sorted(everything) == sorted(set(extras) - {"all"})


def test_the_machine_of_every_ratio_is_named():
    """Ratios of two makes of a processor are not to be compared."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert re.findall(r"Zen \d", text.split("\n| work")[0]) == ["Zen 4"]
    table = text.split("## Beside hand-written C")[1].split("## Compiling")[0]
    assert table.lstrip().startswith("On the same machine and day")
    rows = [line for line in table.splitlines() if "against_c" in line]
    assert len(rows) > 5 and "Zen" not in "".join(rows)
