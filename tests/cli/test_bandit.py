"""``equinoise bandit``: two tables, sentences, files, and one line for wrong use."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from equinoise import bandits, inference
from equinoise.cli import main
from equinoise.experiments.commands import bandit as computed

FILES = ["bias.csv", "bias.png", "frontier.png", "regret.csv", "regret.png", "run.json"]
SMALL = ["bandit", "--means", "1,0.5,0.25", "--horizon", "40", "--replicates", "30", "--jobs", "1"]
PRIVATE = [*SMALL, "--epsilon", "0.05"]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def read(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words(text):
    return " ".join(text.split())


def test_help_names_every_option_and_policy(capsys):
    assert main(["bandit", "--help"]) == 0
    out = words(capsys.readouterr().out)
    for word in (
        *("--policy", "--means", "--horizon", "--epsilon", "--replicates", "--width", "--counter"),
        *("--reward", "--ties", "--seed", "--jobs", "--checkpoints", "--out", "--json", "equinoise-bandit"),
        *bandits.POLICIES,
    ):
        assert word in out


def test_help_says_of_options_what_the_registry_says(capsys):
    assert main(["bandit", "--help"]) == 0
    out = words(capsys.readouterr().out).replace("- ", "-")
    for policy in bandits.POLICIES.values():
        for name, option in policy.options.items():
            assert option.summary in out and name in out
    assert "{" not in out


def test_it_works_alone(capsys):
    assert main(["bandit", "--replicates", "20"]) == 0
    assert capsys.readouterr().out.startswith("private-ucb, epsilon 0.1: 4 arms, 500 rounds, 20 replicates")


def test_options_of_a_policy_are_given_by_name(capsys):
    given = [*SMALL, "--policy", "dp-klucb", "--epsilon", "0.3"]
    assert main([*given, "--option", "clip_sums=no", "--out", "raw"]) == 0
    assert main([*given, "--out", "clipped"]) == 0
    raw, clipped = (json.loads(Path(name, "run.json").read_text()) for name in ("raw", "clipped"))
    assert raw["parameters"]["clip_sums"] is False and "clip_sums" not in clipped["parameters"]
    assert raw["runs"]["dp-klucb"] != clipped["runs"]["dp-klucb"]
    assert raw["runs"]["ucb"] == clipped["runs"]["ucb"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("--policy dp", {"dp-klucb", "dp-se"}),
        ("--policy ", set(bandits.POLICIES)),
        ("--width ", {"counter", "published"}),
        ("--counter h", {"hybrid"}),
        ("--reward g", {"gaussian"}),
        ("--ties ", {"first", "random"}),
        ("--policy dp-klucb --option ", {"clip_sums=yes", "clip_sums=no"}),
        ("--policy noise-only --option ", {"counter=k-ary", "counter=binary", "counter=hybrid"}),
        ("--policy none --option ", set()),
    ],
)
def test_names_complete_in_a_shell(capsys, monkeypatch, typed, found):
    line = f"equinoise bandit {typed}"
    monkeypatch.setenv("_EQUINOISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert set(capsys.readouterr().out.split()) == found


def test_bias_and_regret_stand_beside_the_controls(capsys):
    assert main([*PRIVATE, "--out", "here/deep"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("private-ucb, epsilon 0.05: 3 arms, 40 rounds, 30 replicates, seed 0\n")
    for name in ("private-ucb", "ucb", "uniform", "width-only", "noise-only"):
        line = (
            rf"^ +{name} +\d\.\d{{4}} ± \d\.\d{{4}} +\d\.\d{{4}} +-?\d\.\d{{4}} +\d of 3 +[\d.]+ ± [\d.]+ *$"
        )
        assert re.search(line, out, re.MULTILINE), name
    cell = r"-?\d\.\d{4} ± \d\.\d{4}"
    arms = re.findall(rf"^ +(\d) +(\S+) +(\d\.\d+) +{cell} +{cell} +{cell} *$", out, re.MULTILINE)
    assert [(arm, mean) for arm, mean, _ in arms] == [("0", "1"), ("1", "0.5"), ("2", "0.25")]
    bounds = [float(bound) for *_, bound in arms]
    np.testing.assert_allclose(bounds, inference.bias_bound(0.05, [1.0, 0.5, 0.25]), atol=5e-5)
    assert names("here/deep") == FILES
    assert all(f"here/deep/{name}" in out for name in FILES)


def test_what_is_protected_and_what_is_not_is_said(capsys):
    assert main(PRIVATE) == 0
    out = words(capsys.readouterr().out)
    assert "Protected: every single reward, from whoever sees which arms were chosen" in out
    assert "e^0.05, or 1.052 times" in out
    assert "Proven: the bias of an arm is at most tanh(epsilon/4), whatever its mean, here 0.0125" in out
    assert "Not protected: what the analyst sees." in out
    assert "A simulation protects nobody" in out
    assert "width-only is private-ucb without its noise (not private)" in out


def test_the_bound_says_something_at_every_epsilon(capsys):
    assert main([*SMALL, "--epsilon", "3"]) == 0
    out = capsys.readouterr().out
    assert "whatever its mean, here 0.6352, and at most" in words(out)
    assert "proven" in out.split("Protected")[0]
    assert main([*SMALL, "--epsilon", "inf", "--out", "b"]) == 0
    assert "bound" not in capsys.readouterr().out.split("Nothing is protected")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "ucb"], "Nothing is protected: ucb is not private"),
        (["--policy", "width-only", "--epsilon", "1"], "Nothing is protected: width-only is not private"),
        (["--epsilon", "0.05", "--reward", "gaussian"], "Gaussian rewards have no bounds"),
        (["--epsilon", "inf"], "at an infinite epsilon there is no noise"),
    ],
)
def test_where_nothing_is_protected_no_bound_is_shown(capsys, arguments, said):
    assert main([*SMALL, *arguments]) == 0
    out = words(capsys.readouterr().out)
    assert said in out
    assert "Not protected" not in out
    assert "proven bound" not in out
    assert all(row["bound"] == "" for row in read("equinoise-bandit/bias.csv"))


@pytest.mark.parametrize("policy", sorted(bandits.POLICIES))
def test_every_policy_runs(capsys, policy):
    epsilon = ["--epsilon", "1"] if bandits.POLICIES[policy].needs_epsilon else []
    assert main([*SMALL, "--policy", policy, *epsilon]) == 0
    out = capsys.readouterr().out
    expected = {policy, "ucb", "uniform"} | ({"width-only", "noise-only"} if epsilon else set())
    assert {row["run"] for row in read("equinoise-bandit/bias.csv")} == expected
    assert re.search(rf"^ +{policy} ", out, re.MULTILINE)


def test_files_hold_every_arm_and_checkpoint(drawn, capsys):
    assert main([*PRIVATE, "--checkpoints", "4"]) == 0
    bias, regret = read("equinoise-bandit/bias.csv"), read("equinoise-bandit/regret.csv")
    assert list(bias[0]) == ["run", "arm", "mean", "bias", "stderr", "ci_low", "ci_high", "bound"]
    assert len(bias) == 5 * 3
    assert [row["bound"] != "" for row in bias] == [True] * 3 + [False] * 12
    assert list(regret[0]) == ["run", "trials", "mean", "stderr", "ci_low", "ci_high"]
    assert [row["trials"] for row in regret[:4]] == ["10", "20", "30", "40"]
    # 40 rounds of uniform play over 3 arms: 14, 13, 13 pulls
    last = [row for row in regret if row["run"] == "uniform"][-1]
    assert float(last["mean"]) == pytest.approx(13 * 0.5 + 13 * 0.75)
    for picture in ("bias.png", "frontier.png", "regret.png"):
        assert Path("equinoise-bandit", picture).read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("equinoise-bandit/run.json").read_text(encoding="utf-8"))
    assert document["parameters"]["means"] == [1.0, 0.5, 0.25]
    assert document["arms"][1]["ucb"]["bias"] == pytest.approx(float(bias[4]["bias"]))


def test_json_is_all_of_stdout(capsys):
    assert main([*PRIVATE, "--json", "--seed", "3", "--width", "published", "--ties", "random"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    written = json.loads(Path("equinoise-bandit/run.json").read_text(encoding="utf-8"))
    assert document == written | {"finished": document["finished"]}
    assert document["parameters"]["width"] == "published"
    assert list(document["runs"]) == ["private-ucb", "ucb", "uniform", "width-only", "noise-only"]


def test_the_same_seed_gives_the_same_files_for_any_number_of_threads(capsys):
    for jobs in ("1", "3"):
        assert main([*PRIVATE, "--jobs", jobs, "--out", jobs]) == 0
    for name in ("bias.csv", "regret.csv"):
        assert Path("1", name).read_bytes() == Path("3", name).read_bytes()


def test_one_replicate_has_no_intervals(capsys):
    assert main([*PRIVATE, "--replicates", "1"]) == 0
    assert "±" not in capsys.readouterr().out
    assert json.loads(Path("equinoise-bandit/run.json").read_text())["arms"][0]["ucb"]["stderr"] is None


def test_the_tables_fit_into_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    means = ",".join(f"{1 - 0.05 * i:g}" for i in range(20))
    assert main([*SMALL, "--means", means, "--policy", "lazy-dp-ts", "--epsilon", "0.05"]) == 0
    plain = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    lines = plain.split("Wrote")[0].splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_many_arms_are_cut_and_said_to_be(capsys):
    means = ",".join(["0.5"] * 30)
    assert main([*PRIVATE, "--means", means]) == 0
    out = capsys.readouterr().out
    assert "The first 25 arms; all of them are in bias.csv." in out
    assert len(read("equinoise-bandit/bias.csv")) == 5 * 30


WRONG = [
    (["bandit", "--null", "nan"], "--null must be left out without --plan, got nan"),
    ([*SMALL, "--policy", "best"], "--policy must be one of 'ucb'"),
    ([*SMALL, "--epsilon", "0"], "--epsilon must be a positive number, got 0.0"),
    ([*SMALL, "--epsilon", "nan"], "--epsilon must be"),
    ([*SMALL, "--epsilon", "small"], "--epsilon"),
    ([*PRIVATE, "--means", "1;2"], "--means must be numbers separated by commas, got '1;2'"),
    ([*PRIVATE, "--means", ""], "--means must be numbers separated by commas"),
    ([*PRIVATE, "--means", "0.5,1.5"], "--means must be at most 1, got 1.5 at index 1"),
    ([*PRIVATE, "--means", "0.5,nan"], "--means must be finite"),
    ([*PRIVATE, "--horizon", "2"], "--horizon must be an integer from 3 to 1000000000000, got 2"),
    ([*PRIVATE, "--horizon", "1e3"], "--horizon"),
    ([*PRIVATE, "--horizon", "10000000000000000"], "--horizon must be an integer from 3 to"),
    ([*SMALL, "--epsilon", "1e-200"], "--epsilon must be"),
    ([*PRIVATE, "--reward", "gaussian", "--means", "1e200"], "--means must be at most"),
    (
        [*PRIVATE, "--replicates", "1000000000"],
        "--replicates must be one whose results fit into this machine's",
    ),
    (
        [*PRIVATE, "--horizon", "1000000000000", "--replicates", "1001"],
        "--replicates must be at most 1,000 of 1,000,000,000,000 trials or rounds each (10^15 in all)",
    ),
    ([*PRIVATE, "--replicates", "0"], "--replicates must be"),
    ([*PRIVATE, "--checkpoints", "0"], "--checkpoints must be"),
    ([*PRIVATE, "--width", "none"], "--width must be one of 'counter', 'published'"),
    ([*PRIVATE, "--counter", "tree"], "--counter must be one of 'k-ary', 'binary', 'hybrid'"),
    ([*PRIVATE, "--reward", "beta"], "--reward must be one of 'bernoulli', 'gaussian'"),
    ([*PRIVATE, "--option", "speed"], "--option must be NAME=VALUE, got 'speed'"),
    (
        [*PRIVATE, "--policy", "dp-klucb", *2 * ["--option", "clip_sums=no"]],
        "--option must be given once for 'clip_sums', got 'clip_sums=no' too",
    ),
    ([*PRIVATE, "--option", "speed=3"], "'speed' is no option of the policy 'private-ucb'"),
    ([*PRIVATE, "--policy", "dp-klucb", "--option", "clip_sums=3"], "clip_sums must be True or False"),
    ([*PRIVATE, "--ties", "last"], "--ties must be one of 'first', 'random'"),
    ([*PRIVATE, "--seed", "-1"], "--seed must be"),
    ([*PRIVATE, "--jobs", "0"], "--jobs must be"),
    ([*PRIVATE, "--out", "file"], "--out must be a folder"),
    ([*PRIVATE, "--colour"], "--colour"),
    ([*PRIVATE, "extra"], "extra"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=lambda value: " ".join(value[-2:]))
def test_wrong_use_is_one_line_and_exit_2(capsys, tmp_path, arguments, said):
    (tmp_path / "file").write_text("in the way")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"equinoise: .+\n", err)
    assert said in err
    assert names(tmp_path) == ["file"]


def test_work_that_fails_leaves_no_files_and_exits_1(capsys, monkeypatch, tmp_path):
    def fail(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(computed, "compare", fail)
    assert main(PRIVATE) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "equinoise: failed: MemoryError\n")
    assert names(tmp_path) == []


def test_our_own_mistakes_are_not_called_wrong_use(monkeypatch):
    def fail(*arguments, **options):
        raise ValueError("a bug")

    monkeypatch.setattr(computed, "compare", fail)
    with pytest.raises(ValueError, match="a bug"):
        main(PRIVATE)


def test_help_loads_nothing_heavy():
    import subprocess

    source = Path(__file__).resolve().parents[2] / "src"
    script = (
        "import sys; from equinoise.cli import main; main(['bandit', '--help']); "
        "print([name for name in ('numba', 'pandas', 'matplotlib', 'scipy') if name in sys.modules])"
    )
    child = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(source), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert child.stdout.splitlines()[-1] == "[]"


def test_one_replicate_has_no_interval_that_holds_zero(capsys, tmp_path):
    arguments = ["bandit", "--policy", "ucb", "--means", "1,0.5", "--horizon", "50", "--replicates", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert "0 of 2" not in capsys.readouterr().out
    document = json.loads((tmp_path / "run.json").read_text())
    assert "arms_at_zero" in json.dumps(document) and '"arms_at_zero": 0' not in json.dumps(document)


def test_help_says_which_means_a_plan_takes(capsys):
    """The first arm is the control: to find that it is the best is no plan."""
    assert main(["bandit", "--plan"]) == 2
    assert "one of them best and not arm 0" in capsys.readouterr().err
    assert main(["bandit", "--help"]) == 0
    assert "the best arm, not the first of --means" in " ".join(capsys.readouterr().out.split())


def test_a_plan_shows_power_beside_regret(capsys):
    plan = ["bandit", "--plan", "--means", "0.2,0.8", "--horizon", "200", "--replicates", "20", "--jobs", "1"]
    assert main([*plan, "--policy", "dp-klucb", "--epsilon", "2", "--null", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "power" in said and "max information" in said and "Wrote" in said
    assert names("equinoise-bandit") == ["power.csv", "power.png", "run.json"]
    rows = read("equinoise-bandit/power.csv")
    assert {row["policy"] for row in rows} == {"uniform", "dp-klucb", "thompson", "ucb"}
    assert main([*plan, "--json", "--option", "floor=0.3", "--policy", "thompson"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["parameters"]["options"] == {"floor": 0.3} and document["experiment"] == "plan"
    assert {row["test"] for row in document["rows"]} == {"plain", "split", "e-values", "aipw", "batched-ols"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--means", "0.5,0.4"], "--means must be of two arms or more, one of them best and not arm 0"),
        (["--null", "2"], "--null must be a number in [0, 1], got 2.0"),
        (["--means", "0.1,0.5", "--reward", "gaussian"], "--reward must be 'bernoulli' for a plan"),
        (["--replicates", "10:30"], "--replicates must be a number for a plan, got a slice"),
        (["--replicates", "0:10"], "--replicates must be a number for a plan, got a slice"),
    ],
)
def test_a_plan_refuses_in_one_line(capsys, arguments, said):
    assert main(["bandit", "--plan", "--means", "0.1,0.2", *arguments]) == 2
    assert said in capsys.readouterr().err
