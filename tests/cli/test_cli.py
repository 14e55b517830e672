"""The command: exit codes, one line for wrong use, files whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
import warnings
from pathlib import Path

import pytest
from scipy import stats

import equinoise
from equinoise import _jit
from equinoise.cli import main
from equinoise.efb import LEARNERS
from equinoise.efb.tuning import RULES
from equinoise.experiments.commands import efb as efb_command
from equinoise.experiments.commands.nvo import SEARCHES
from equinoise.games import load
from equinoise.games.catalog import BUILT_IN
from equinoise.nvo.noise import NAMES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
START = "import sys; from equinoise.cli import main; sys.exit(main())"
SMALL = ["efb", "kuhn_poker", "--trials", "100", "--replicates", "2"]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def test_what_other_packages_tell_programmers_is_not_shown(capsys, monkeypatch):
    def show(**_):
        warnings.warn_explicit("old name", DeprecationWarning, "other.py", 1)
        warnings.warn_explicit("look out", RuntimeWarning, "other.py", 1)

    monkeypatch.setattr("equinoise.cli.app", show)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([]) == 0
    assert capsys.readouterr().err == "equinoise: warning: look out\n"


def command(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "TERM": "xterm"},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"equinoise {equinoise.__version__}\n"
    for arguments in ([], ["--help"], ["-h"]):
        assert main(arguments) == 0
        assert "games" in capsys.readouterr().out
    assert main(["efb", "--help"]) == 0
    out = capsys.readouterr().out
    for option in (
        *("--player", "--epsilon", "--trials", "--replicates", "--tuning", "--seed", "--jobs"),
        *("--checkpoints", "--recall", "--max-histories", "--out", "--json", "equinoise-efb"),
    ):
        assert option in out


def test_games_lists_built_ins_with_sizes(capsys):
    assert main(["games"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"leduc_poker +469 +1,093 +\d+ +103\.2 ", out)
    assert "openspiel:" in out
    assert ".efg" in out


def test_games_as_json(capsys):
    assert main(["games", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    kuhn = next(row for row in rows if row["game"] == "kuhn_poker")
    assert (kuhn["infosets"], kuhn["actions"]) == (7, 13)
    assert kuhn["log_n_strategies"] == pytest.approx(3.2958, abs=1e-4)
    assert kuhn["loss_of_best_strategy"] < kuhn["loss_of_uniform_play"]


def test_completion_is_offered_and_writes_a_script(capsys, monkeypatch):
    monkeypatch.setenv("_EQUINOISE_COMPLETE", "source_bash")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert "_EQUINOISE_COMPLETE=complete_bash" in capsys.readouterr().out


def completed(capsys, monkeypatch, line):
    """Return what a shell offers at the end of a line."""
    monkeypatch.setenv("_EQUINOISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit):
        main([])
    return capsys.readouterr().out.split()


def test_names_complete_from_their_registries(capsys, monkeypatch, tmp_path):
    def offered(line):
        return completed(capsys, monkeypatch, f"equinoise {line}")

    assert set(BUILT_IN) <= set(offered("efb "))
    assert offered("efb kuhn") == ["kuhn_poker"]
    assert offered("efb kuhn_poker(players=3) --player ") == ["0", "1", "2"]
    assert offered("efb no_such_game --player ") == []
    assert offered("efb kuhn_poker --tuning ") == list(RULES)
    assert offered("efb kuhn_poker --epsilon 1 --epsilon 2 --learner ") == list(LEARNERS)
    assert offered("nvo a.csv --scales ") == list(NAMES)
    assert offered("nvo a.csv --search ") == list(SEARCHES)
    (tmp_path / "game.efg").write_text(EFG.format(first="1/3", third=1))
    assert offered("efb game.efg --epsilon 2 --player ") == ["0", "1", "A", "B"]
    (tmp_path / "a.csv").write_text("wage;age\n1;2\n")
    assert offered("nvo a.csv --sep ; --column ") == ["wage", "age"]
    assert offered("nvo missing.csv --column ") == []


def test_games_of_openspiel_complete_where_it_is_installed(capsys, monkeypatch):
    pytest.importorskip("pyspiel")
    assert completed(capsys, monkeypatch, "equinoise efb openspiel:kuhn") == ["openspiel:kuhn_poker"]
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    assert completed(capsys, monkeypatch, "equinoise efb ") == list(BUILT_IN)


def test_help_fits_80_columns_and_names_arguments_as_they_are_typed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]
    for name, argument in (("efb", "GAME"), ("nvo", "FILE"), ("reproduce", "[PILLAR]")):
        assert main([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"Usage: equinoise {name} [OPTIONS] {argument}\n")
        assert max(map(len, out.splitlines())) <= 80


def test_efb_prints_a_table_and_writes_three_files(capsys, tmp_path):
    assert main([*SMALL, "--out", "here/deep", "--jobs", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = re.findall(r"^ +(\d+) +\d+ ± \d+ +\d+ +\d+ ± \d+ +\d+ +\d+ ± \d+ *$", out, re.MULTILINE)
    assert rows == [str(10 * i) for i in range(1, 11)]
    assert "Learner dp-efb, mechanism hashing, tuning sharp: a user sends at most 3 bytes." in out
    assert names(tmp_path / "here/deep") == ["regret.csv", "regret.png", "run.json"]
    document = json.loads((tmp_path / "here/deep/run.json").read_text())
    assert document["parameters"]["trials"] == 100


def test_efb_writes_into_a_folder_of_its_own_by_default(capsys, tmp_path):
    assert main([*SMALL, "--replicates", "1"]) == 0
    assert names(tmp_path) == ["equinoise-efb"]
    assert "±" not in capsys.readouterr().out


def test_several_epsilons_a_schedule_and_a_learner(capsys, tmp_path):
    passing = json.dumps({f"{card}{past}": [1, 0] for card in "012" for past in ("p", "b")})
    (tmp_path / "pass.json").write_text(passing, encoding="utf-8-sig")  # as some editors do
    more = ["--epsilon", "1", "--epsilon", "inf", "--schedule", "10:uniform", "--schedule", "20:pass.json"]
    assert main([*SMALL, *more, "--learner", "flat-exp3"]) == 0
    out = capsys.readouterr().out
    row = r"^ +(\d+)" + r" +\d+ ± \d+ +\d+" * 2 + r" +-?\d+ ± \d+ *$"
    assert re.findall(row, out, re.MULTILINE) == [str(10 * i) for i in range(1, 11)]
    assert "epsilon 1 " in out and "epsilon inf" not in out and "Learner flat-exp3, mechanism laplace" in out
    document = json.loads((tmp_path / "equinoise-efb/run.json").read_text())
    assert document["parameters"]["epsilon"] == [1.0, "inf"]
    assert document["parameters"]["schedule"] == ["10:uniform", "20:pass.json"]


def test_how_others_play_is_asked_for_in_one_line(capsys, tmp_path):
    (tmp_path / "some.json").write_text('{"0p": [1, 0]}')
    (tmp_path / "text").write_text("0p: 1, 0")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "two.json").write_text('{"a": {"x": 1}, "b": {"x": 1}, "b": {"y": 1}}')
    for options, words in (
        (["--opponents", "some.json"], "--opponents must cover infoset '"),
        (["--opponents", "text"], "--opponents must be 'uniform' or a JSON file, got 'text'"),
        (["--opponents", "list.json"], "--opponents must be 'uniform' or a JSON file, got 'list.json': it"),
        (["--opponents", "two.json"], "a JSON file, got 'two.json': it names an infoset or an action twice"),
        (["--schedule", "many:uniform"], "--schedule must be of TRIALS:OPPONENTS"),
        (["--schedule", "5:some.jsn"], "--schedule must be 'uniform' or a JSON file, got 'some.jsn'"),
        (["--schedule", f"{2**54}:uniform"], "--schedule must be an integer from 1 to 1000000000000"),
        (["--schedule", "5:uniform", "--opponents", "some.json"], "place of --opponents 'some.json'"),
        (["--learner", "ixomd", "--epsilon", "4"], "--epsilon must be inf for learner 'ixomd'"),
        (["--epsilon", "1", "--epsilon", "1"], "--epsilon must be values that differ"),
    ):
        assert main([*SMALL, *options]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1) and words in err
    assert not (tmp_path / "equinoise-efb").exists()


@pytest.mark.parametrize("options", [["--epsilon", "inf"], ["--learner", "ixomd"]])
def test_a_learner_without_privacy_stands_in_one_column(capsys, options):
    assert main([*SMALL, *options]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  +100" + r" +-?\d+ ± \d+ +\d+" + r" +-?\d+ ± \d+ *$", out, re.MULTILINE)
    assert "no privacy" in out and "mechanism none" in out


PAPER = ("--tuning", "paper", "--mechanism", "laplace")


def test_a_bound_that_says_nothing_is_called_that(capsys, tmp_path):
    assert main([*SMALL, *PAPER]) == 0
    out = capsys.readouterr().out
    assert "For 100 trials no bound is proven below the trivial regret of 1 per trial." in out


def test_json_is_all_of_stdout(capsys, tmp_path):
    assert main([*SMALL, "--json", "--epsilon", "0.5", "--seed", "3", *PAPER]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    assert document == json.loads((tmp_path / "equinoise-efb/run.json").read_text()) | {
        "finished": document["finished"]
    }
    assert document["parameters"]["tuning"] == "paper"


def test_the_same_seed_gives_the_same_numbers_for_any_number_of_threads(capsys, tmp_path):
    for jobs in ("1", "3"):
        assert main([*SMALL, "--jobs", jobs, "--out", jobs]) == 0
    assert (tmp_path / "1/regret.csv").read_bytes() == (tmp_path / "3/regret.csv").read_bytes()


WRONG = [
    (["efb"], "GAME"),
    (["efb", "no_such_game"], "GAME must be one of kuhn_poker"),
    (["efb", "missing.efg"], "GAME must be an existing .efg file"),
    (["efb", "bandit(0)"], "GAME"),
    ([*SMALL, "--epsilon", "0"], "--epsilon must be a positive number, got 0.0"),
    ([*SMALL, "--epsilon", "-1"], "--epsilon must be a positive number, got -1.0"),
    ([*SMALL, "--epsilon", "nan"], "--epsilon must be"),
    ([*SMALL, "--epsilon", "1e-300"], "--epsilon must"),
    ([*SMALL, "--epsilon", "four"], "--epsilon"),
    ([*SMALL, "--trials", "0"], "--trials must be an integer from 1 to 1000000000000, got 0"),
    ([*SMALL, "--trials", "2e5"], "--trials"),
    ([*SMALL, "--trials", str(10**13)], "--trials must be an integer from 1 to 1000000000000"),
    ([*SMALL, "--replicates", str(10**9)], "--replicates must be one whose results fit"),
    ([*SMALL, "--epsilon", "4", "--learner", "exp4"], "--learner must be one of"),
    ([*SMALL, "--replicates", "0"], "--replicates must be"),
    ([*SMALL, "--checkpoints", "0"], "--checkpoints must be"),
    ([*SMALL, "--seed", "-1"], "--seed must be"),
    ([*SMALL, "--tuning", "best"], "--tuning must be one of 'sharp', 'paper'"),
    ([*SMALL, "--recall", "no"], "--recall must be one of 'check', 'refine'"),
    ([*SMALL, "--player", "9"], "--player must be"),
    ([*SMALL, "--player", "Alice"], "--player must be"),
    ([*SMALL, "--jobs", "0"], "--jobs must be"),
    ([*SMALL, "--max-histories", "3"], "--max-histories"),
    ([*SMALL, "--out", "file"], "--out must be a folder"),
    ([*SMALL, "--out", "file/below"], "--out must be a folder"),
    ([*SMALL, "--out", "x" * 300], "--out must be a folder to write into, got 'xxx"),
    (["nvo", "verify", "x" * 300], "FOLDER must be that of a release, got 'xxx"),
    ([*SMALL, "--colour"], "--colour"),
    (["play"], "play"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_use_is_one_line_and_exit_2(capsys, tmp_path, arguments, words):
    (tmp_path / "file").write_text("in the way")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"equinoise: .+\n", err)
    assert words in err
    assert names(tmp_path) == ["file"]


EFG = """EFG 2 R "t" {{ "A" "B" }}
c "" 1 "" {{ "x" {first} "y" 1/3 "z" 1/3 }} 0
p "" 1 1 "s" {{ "l" "r" }} 0
t "" 1 "" {{ 1, -1 }}
t "" 2 "" {{ -1, 1 }}
p "" 1 {third} "s" {{ "l" "r" }} 0
t "" 1
t "" 2
t "" 3 "" {{ 0, 0 }}
"""


def test_a_warning_is_one_line(tmp_path):
    (tmp_path / "game.efg").write_text(EFG.format(first="0.333333", third=1))
    child = command("efb", "game.efg", "--trials", "20")
    out, err = child.communicate(timeout=400)
    assert child.returncode == 0, err
    assert "player 0: 2 infosets, 3 actions" in out
    assert re.fullmatch(r"equinoise: warning: game\.efg, line 2: .*sum to.*\n", err)


def test_players_go_by_their_labels_first(capsys, tmp_path):
    """Player 0, who is called 1, is absent-minded; player 1, who is called 2, never moves."""
    node = 'p "" 1 1 "" { "l" "r" } 0 '
    ends = " ".join(f't "" {i} "" {{ 0 0 }}' for i in (1, 2, 3))
    (tmp_path / "game.efg").write_text('EFG 2 R "t" { "1" "2" } ' + node + node + ends)
    for player, words in (("0", "absent-minded"), ("1", "absent-minded"), ("2", "player 1 never does")):
        with pytest.raises(ValueError, match=words):
            load("game.efg", player)
        assert main(["efb", "game.efg", "--player", player]) == 2
        assert words in capsys.readouterr().err


def test_advice_is_in_the_words_of_the_options(capsys, tmp_path):
    forgets = """EFG 2 R "t" { "A" }
p "" 1 1 "s" { "l" "r" } 0
p "" 1 2 "u" { "l" "r" } 0
t "" 1 "" { 1 }
t "" 2 "" { 0 }
p "" 1 2 "u" { "l" "r" } 0
t "" 1
t "" 2
"""
    (tmp_path / "game.efg").write_text(forgets)
    assert main(["efb", "game.efg", "--trials", "20"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("equinoise: GAME must have perfect recall")
    assert "--recall refine" in err
    assert main(["efb", "game.efg", "--trials", "20", "--recall", "refine"]) == 0


def test_a_missing_package_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    assert main(["efb", "openspiel:kuhn_poker"]) == 2
    assert 'pip install "equinoise[games]"' in capsys.readouterr().err


def test_work_that_fails_leaves_no_files_and_exits_1(capsys, monkeypatch, tmp_path):
    for error in (OSError(28, "No space left"), MemoryError(), RuntimeError("can't start new thread")):

        def fail(*arguments, error=error, **options):
            raise error

        monkeypatch.setattr(efb_command, "compare", fail)
        assert main(SMALL) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"equinoise: failed: .+\n", err)
        assert names(tmp_path) == []


def test_our_own_mistakes_are_not_called_wrong_use(monkeypatch):
    def fail(*arguments, **options):
        raise ValueError("a bug")

    monkeypatch.setattr(efb_command, "compare", fail)
    with pytest.raises(ValueError, match="a bug"):
        main(SMALL)


def test_no_threads_for_numba_is_one_line():
    script = [sys.executable, "-m", "equinoise", "audit", "user"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    said = "equinoise: failed: NUMBA_NUM_THREADS: Number of threads specified must be > 0.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_date_that_no_package_can_read_is_one_line():
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "SOURCE_DATE_EPOCH": "x"}
    script = [sys.executable, "-m", "equinoise", "games"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    said = "equinoise: SOURCE_DATE_EPOCH must be a whole number, got 'x'.\n"
    assert (done.returncode, done.stderr) == (2, said)


EARLY = """
    import signal, sys
    from importlib import import_module
    class Finder:
        def find_spec(self, name, *_):
            if name == "typer":
                signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    sys.meta_path.insert(0, Finder())
    module, _, name = sys.argv[1].partition(":")
    sys.exit(getattr(import_module(module), name)())
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_before_the_command_is_there_is_130_too():
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = [sys.executable, "-c", textwrap.dedent(EARLY), project["scripts"]["equinoise"]]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "equinoise: interrupted\n")


class Drops:
    """Hears of Ctrl-C where no error can be raised, as llvmlite does while it compiles."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("how", ["another error", "dropped"])
def test_ctrl_c_is_heard_where_others_lose_it(capsys, monkeypatch, tmp_path, how):
    def lose(*arguments, **options):
        if how == "dropped":
            Drops()
            for _ in range(1000):
                time.sleep(0.01)
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("numba._devicearray failed to import")

    monkeypatch.setattr(efb_command, "prepare", lose)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        assert main(SMALL) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "equinoise: interrupted\n"
    assert names(tmp_path) == []


@pytest.mark.compiled
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT and opens a terminal")
def test_compiling_is_told_once(capsys, monkeypatch, tmp_path):
    @contextlib.contextmanager
    def compiling(tell):
        tell(True)
        tell(True)
        yield tell(False)

    monkeypatch.setattr(_jit, "compiling", compiling)
    for kept, when in (
        (True, "on first use"),
        (False, "at every use: kernels can be kept nowhere (NUMBA_CACHE_DIR)\n"),
    ):
        monkeypatch.setattr(_jit, "keeps", lambda kept=kept: kept)
        assert main(list(SMALL)) == 0
        assert capsys.readouterr().err.count(f"equinoise: compiling, {when}") == 1
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # and not in a pipe


def test_ctrl_c_is_130_without_a_traceback(tmp_path):
    master, terminal = pty.openpty()
    child = command("efb", "kuhn_poker", "--trials", "1000000000000", stderr=terminal)
    os.close(terminal)
    watchdog = threading.Timer(100, child.kill)
    watchdog.start()
    screen = ""
    while not re.search(r"epsilon 4.*[1-9]\d*:\d\d:\d\d", screen, re.DOTALL):  # a remaining time: it computes
        screen += os.read(master, 1000).decode(errors="replace")
    begun = time.perf_counter()
    child.send_signal(signal.SIGINT)
    assert child.wait() == 130
    took = time.perf_counter() - begun
    watchdog.cancel()
    screen += os.read(master, 100_000).decode(errors="replace")
    os.close(master)
    assert "Traceback" not in screen
    assert "equinoise: interrupted" in screen
    assert took < 10.0  # a second or two, but for a loaded machine; the run takes far longer
    assert names(tmp_path) == []
    child.stdout.close()


def test_no_bar_in_a_pipe_and_a_reader_that_leaves_is_no_error(tmp_path):
    child = command(*SMALL)
    assert child.stdout.readline().startswith("kuhn_poker, player 0: 7 infosets, 13 actions")
    child.stdout.close()
    assert child.stderr.read() == ""
    child.wait(60)
    child.stderr.close()
    assert names(tmp_path / "equinoise-efb") == ["regret.csv", "regret.png", "run.json"]


@pytest.mark.parametrize("closed", [[1], [2], [1, 2]])
def test_closed_streams_cost_no_results(tmp_path, closed):
    def close():
        for number in closed:
            os.close(number)

    process = command(*SMALL, "--out", str(tmp_path / "out"), preexec_fn=close)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert names(tmp_path / "out") == ["regret.csv", "regret.png", "run.json"]
    assert ("Wrote" in out) == (1 not in closed)
    assert err == ""


def test_a_back_end_of_figures_that_is_not_there_costs_no_results(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "MPLBACKEND": "nothing"}
    subprocess.run([sys.executable, "-c", START, *SMALL], cwd=tmp_path, env=environment, check=True)
    assert names(tmp_path / "equinoise-efb") == ["regret.csv", "regret.png", "run.json"]


def test_a_program_that_calls_the_command_keeps_its_back_end(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "pdf")
    assert main(["games"]) == 0
    assert os.environ["MPLBACKEND"] == "pdf"


def test_names_that_the_terminal_or_unicode_lack_are_shown_as_escapes(tmp_path):
    name = os.fsdecode(b"caf\xe9 $x$ \xc3\xa9.efg")
    game = 'EFG 2 R "g" { "a" }\np "" 1 1 "" { "l" "r" } 0\nt "" 1 "" { 1 }\nt "" 2 "" { 0 }\n'
    (tmp_path / name).write_text(game)
    arguments = [sys.executable, "-c", START, "efb", name, "--trials", "100", "--replicates", "2"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "ascii"}
    made = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert made.stderr == b""
    assert made.stdout.startswith(rb"caf\udce9 $x$ \xe9.efg, player 0")
    document = json.loads((tmp_path / "equinoise-efb/run.json").read_bytes())
    assert document["parameters"]["game"] == name


def test_the_package_runs_as_a_module():
    made = subprocess.run(
        [sys.executable, "-m", "equinoise", "--version"],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == f"equinoise {equinoise.__version__}\n"


@pytest.mark.skipif(os.name != "posix", reason="Windows removes no folder that is in use")
def test_a_folder_that_was_removed_is_said(monkeypatch, capsys, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for arguments in (["games"], ["efb", "kuhn_poker", "--out", str(tmp_path / "made")]):
        assert main(arguments) == 1
        assert capsys.readouterr() == ("", "equinoise: failed: the current folder is no longer there\n")
    assert not (tmp_path / "made").exists()


def test_what_an_interval_over_few_replicates_covers_is_not_promised(capsys):
    covered = {n: round(100 * (2 * stats.t(n - 1).cdf(1.96) - 1)) for n in (30, 8, 3)}
    said = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    assert f"about {covered[30]}% with 30, {covered[8]}% with 8 and {covered[3]}% with 3" in said
    assert main(SMALL) == 0
    assert ": 1.96 standard errors over replicates, 95% where these are many." in capsys.readouterr().out
