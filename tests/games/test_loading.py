"""load: every door, and what it says when none fits."""

from __future__ import annotations

import subprocess
import sys

import pytest

from equinoise import games
from equinoise.games import best_response_value, load, uniform_value

EFG = """EFG 2 R "two moves" { "Ann" "Bob" }
p "" 1 1 "first" { "in" "out" } 0
p "" 2 1 "second" { "kind" "unkind" } 0
t "" 1 "" { 3 1 }
t "" 2 "" { -1 2 }
t "" 3 "" { 0 0 }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.efg"
    path.write_text(EFG)
    return path


def test_a_file_of_gambits(file):
    for game in (file, str(file)):
        tree, environment = load(game)
        assert (tree.n_infosets, tree.n_actions, tree.infoset_labels[0]) == (1, 2, "first")
        assert uniform_value(environment) == pytest.approx(0.5)
        assert best_response_value(environment) == pytest.approx(1.0)
    assert best_response_value(load(file, player="Bob")[1]) == pytest.approx(1.0)
    assert best_response_value(load(file, 0, {"second": {"kind": 0.25, "unkind": 0.75}})[1]) == 0.0


def test_a_file_that_is_not_there(tmp_path):
    for game in (tmp_path / "none.efg", str(tmp_path / "none.efg"), tmp_path):
        with pytest.raises(FileNotFoundError, match="game"):
            load(game)


@pytest.mark.parametrize(
    "game", ["chess", "kuhn", "", "openspiel", "two.txt", "bandit 3", "openspiel kuhn_poker"]
)
def test_unknown_names_list_what_there_is(game):
    with pytest.raises(
        ValueError, match=r"game.*kuhn_poker.*leduc_poker.*bandit.*complete.*openspiel.*\.efg"
    ):
        load(game)


@pytest.mark.parametrize("game", [None, 3, b"kuhn_poker", ["kuhn_poker"], object()])
def test_other_types_are_refused(game):
    with pytest.raises(TypeError, match="game"):
        load(game)


@pytest.mark.parametrize("game", ["kuhn_poker", "bandit(3)"])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"player": 2}, ValueError),
        ({"player": -1}, ValueError),
        ({"player": "Ann"}, ValueError),
        ({"player": 1.0}, TypeError),
        ({"player": True}, TypeError),
        ({"opponents": "best"}, ValueError),
        ({"opponents": 7}, (TypeError, ValueError)),
        ({"recall": "ignore"}, ValueError),
        ({"recall": 1}, TypeError),
        ({"max_histories": 0}, ValueError),
        ({"max_histories": 1e6}, TypeError),
    ],
)
def test_wrong_options_are_named(game, options, error):
    with pytest.raises(error, match=next(iter(options))):
        load(game, **options)


def test_a_game_object_of_openspiel():
    pyspiel = pytest.importorskip("pyspiel")
    tree, environment = load(pyspiel.load_game("kuhn_poker"), player="1")
    assert tree.n_infosets == 7
    assert best_response_value(environment) == pytest.approx(5 / 12)


WITHOUT = """
import sys
sys.modules["pyspiel"] = None
from equinoise.games import load
assert load("kuhn_poker")[0].n_infosets == 7
try:
    load("openspiel:kuhn_poker")
except ImportError as error:
    print(error)
"""


def test_without_openspiel_it_says_what_to_install():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert 'pip install "equinoise[games]"' in run.stdout


def test_it_says_so_in_this_process_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ImportError, match=r"equinoise\[games\]"):
        load("openspiel:kuhn_poker")


LIGHT = """
import sys
import equinoise.games
assert "GameTree" in dir(equinoise.games)
assert not {"numba", "numpy", "pandas", "pyspiel"} & set(sys.modules), set(sys.modules)
from equinoise.games import load
load("kuhn_poker")
assert not {"pandas", "pyspiel"} & set(sys.modules)
"""


def test_importing_the_package_imports_nothing_heavy():
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


def test_every_public_name_is_there():
    assert set(games.__all__) <= set(dir(games))
    for name in games.__all__:
        assert getattr(games, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        games.no_such_name  # noqa: B018
