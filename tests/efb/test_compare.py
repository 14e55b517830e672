"""Several runs in one frame and one figure."""

from __future__ import annotations

import math

import pytest

from equinoise import efb, games
from equinoise.report.figures import figure

GAME = games.load("bandit(3)")


def a_run(**options):
    return efb.simulate(*GAME, **{"horizon": 12, "n_checkpoints": 3, "epsilon": 1.0, **options})


def test_a_frame_names_every_run_by_what_differs():
    runs = [a_run(), a_run(epsilon=math.inf), a_run(learner="uniform")]
    frame = efb.compare(runs)
    assert frame.columns[0] == "run"
    names = list(frame["run"].unique())
    assert names == [
        "learner dp-efb, mechanism hashing, tuning sharp, epsilon 1",
        "learner dp-efb, mechanism none, tuning sharp, epsilon inf",
        "learner uniform, mechanism none, tuning uniform, epsilon 1",
    ]
    for name, run in zip(names, runs, strict=True):
        own = frame[frame["run"] == name].drop(columns="run").reset_index(drop=True)
        assert own.equals(run.to_frame())


def test_names_may_be_given_and_numbers_tell_equals_apart():
    run = a_run()
    assert list(efb.compare({"a": run, "b": run})["run"].unique()) == ["a", "b"]
    assert list(efb.compare([run, run])["run"].unique()) == ["0", "1"]
    assert list(efb.compare([run])["run"].unique()) == ["0"]
    assert list(efb.compare([run, a_run(horizon=20)])["run"].unique()) == ["horizon 12", "horizon 20"]
    two = efb.compare([run, a_run(epsilon=2.0), run])
    assert list(two["run"].unique()) == ["0 epsilon 1", "1 epsilon 2", "2 epsilon 1"]


@pytest.mark.parametrize(
    ("runs", "error", "words"),
    [
        ([], ValueError, "some of one kind"),
        ([3], TypeError, "runs must be"),
        (None, TypeError, "runs must be"),
    ],
)
def test_wrong_arguments_are_named(runs, error, words):
    with pytest.raises(error, match=words):
        efb.compare(runs)


@pytest.mark.compiled
def test_runs_of_both_kinds_are_refused():
    played = efb.self_play("kuhn_poker", horizon=10, epsilon=1.0)
    assert len(efb.compare([played, played])) == 20
    with pytest.raises(ValueError, match="of one kind"):
        efb.compare([played, a_run()])


def test_one_figure_shows_each_in_a_colour_of_its_own():
    ax = figure().subplots()
    for run in (a_run(epsilon=0.1), a_run(epsilon=0.2)):
        assert run.plot(ax) is ax
    a_run(epsilon=0.1).plot(ax, label="again", color="red")
    lines = [line for line in ax.get_lines() if "bound" not in line.get_label()]
    assert [line.get_label() for line in lines] == ["dp-efb, ε = 0.1", "dp-efb, ε = 0.2", "again"]
    assert len({line.get_color() for line in lines}) == 3 and lines[2].get_color() == "red"
    assert sum("trivial bound" in line.get_label() for line in ax.get_lines()) == 1
