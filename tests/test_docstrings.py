"""What every public name is documented with: a sentence, an example, and the paper it comes from."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

PACKAGES = (
    *("replicates", "games", "efb", "mechanisms", "inference", "nvo", "nvo.pairs", "nvo.gaussian"),
    *("bandits", "bandits.linear"),
)

#: What comes from a paper, by package: its docstring says from which, and from where in it.
FROM_PAPERS = {
    "games": {"exploitability", "kuhn_poker", "leduc_poker", "realization_plan"},
    "efb": {"Server", "User", "self_play", "simulate", "tune"},
    "mechanisms": {
        "BinaryCounter",
        "HybridCounter",
        "KaryCounter",
        "VectorCounter",
        "laplace",
        "secure_laplace",
    },
    "inference": {
        *("adjusted_p_value", "arm_means", "bias_bound", "confidence_sequence", "corrected_level", "e_bh"),
        *("e_value", "max_information", "off_policy_value", "shifted_interval", "shifted_p_value"),
    },
    "nvo": {"NoiseGame", "Profile"},
    "bandits": {"DPKLUCB", "LazyDPTS", "PrivateUCB", "Thompson", "UCB", "UCB1", "interact", "simulate"},
    "bandits.linear": {"simulate"},
}
REFERENCE = re.compile(r"^\.\. \[1\] [^[]*\((?:\d{4}|[^)]*under review)\)")


def public_callables():
    """Every function and class that a public package exports, by its first name."""
    for package in PACKAGES:
        module = importlib.import_module(f"equinoise.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not inspect.ismodule(value):
                yield pytest.param(value, id=f"{package}.{name}")


def section(text, title):
    """What stands under a heading of a docstring, or an empty string."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("value", list(public_callables()))
def test_a_public_callable_has_a_summary_and_an_example(value):
    text = inspect.getdoc(value) or ""
    first = text.partition("\n")[0]
    assert first.endswith((".", ":")) and len(first) <= 110, first
    assert ">>> " in section(text, "Examples")


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, names in FROM_PAPERS.items() for name in sorted(names)]
)
def test_what_comes_from_a_paper_says_from_where(package, name):
    module = importlib.import_module(f"equinoise.{package}")
    assert name in module.__all__
    assert REFERENCE.match(section(inspect.getdoc(getattr(module, name)) or "", "References"))


def test_every_reference_is_of_one_shape():
    """A section of references holds ``.. [n] authors (year), title, place`` and nothing that is older."""
    for parameter in public_callables():
        text = section(inspect.getdoc(parameter.values[0]) or "", "References")
        if text:
            assert REFERENCE.match(text), (parameter.id, text)
