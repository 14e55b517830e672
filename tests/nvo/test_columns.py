"""Reading a column: what is a number, which rows have none, and refusals that say what would help."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from equinoise.nvo import columns
from equinoise.nvo.columns import read_column


@pytest.fixture
def read(tmp_path):
    def from_text(text, column="a", **options):
        path = tmp_path / "people.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_column(path, column, **options)

    return from_text


GOOD = [
    ("a,b\n1,x\n2,y\n", {}, np.int64, [1, 2]),
    ("b,a\nx,1\ny,-2\n", {}, np.int64, [1, -2]),
    ("a\n1\n2.5\n1e3\n", {}, np.float64, [1.0, 2.5, 1000.0]),
    ("a\n1.0\n2.0\n", {}, np.float64, [1.0, 2.0]),
    ("a\n0.1\n0.30000000000000004\n", {}, np.float64, [0.1, 0.30000000000000004]),
    ("a\n18446744073709551615\n2\n", {}, np.uint64, [2**64 - 1, 2]),
    ("a\n99999999999999999999\n2\n", {}, np.float64, [1e20, 2.0]),
    ("\ufeffa,b\n1,2\n3,4\n", {}, np.int64, [1, 3]),
    ('"a","b"\r\n"1","2"\r\n"3","4"\r\n', {}, np.int64, [1, 3]),
    ('"b","a"\n"one,\ntwo",1\nthree,2\n', {}, np.int64, [1, 2]),
    ("2020,2021\n1,2\n3,4\n", {"column": 2021}, np.int64, [2, 4]),
    ("2020,2021\n1,2\n3,4\n", {"column": "2020"}, np.int64, [1, 3]),
    ("a;b\n1,5;2\n2,5;3\n", {"sep": ";", "decimal": ","}, np.float64, [1.5, 2.5]),
    ("a\tb\n1\t2\n3\t4\n", {"sep": "tab"}, np.int64, [1, 3]),
    ("a\tb\n1\t2\n3\t4\n", {"sep": "\t"}, np.int64, [1, 3]),
    ("a,b\n1,2\n\n3,4\n\n", {}, np.int64, [1, 3]),
    ("a\n1\n3\n\n\n", {}, np.int64, [1, 3]),
    ("a,b\n1\n3\n", {}, np.int64, [1, 3]),
    ("a\n 1\n 2 \n", {}, np.int64, [1, 2]),
    ("größe\n1\n2\n", {"column": "größe"}, np.int64, [1, 2]),
]


@pytest.mark.parametrize(("text", "options", "dtype", "values"), GOOD)
def test_numbers(read, text, options, dtype, values):
    found = read(text, **options)
    assert found.values.dtype == dtype
    assert found.values.tolist() == values
    assert found.name == str(options.get("column", "a"))
    assert found.row_of.tolist() == [1, 2, 3][: len(values)]
    assert found.n_rows == len(values)


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    assert read_column(path, "b").values.tolist() == [2, 4]


LONG = [
    (b"\0" * 2**22, "2 MiB in its header", {}),
    (b"a,b\n1," + b"x" * 2**21, "1 MiB in 4,096 rows", {"_ROWS": (2**20, "in 4,096 rows")}),
    (b'a,b\n1,"' + b"2,3\n" * 2**19, "1 MiB in 4,096 rows", {"_ROWS": (2**20, "in 4,096 rows")}),
    (b"a\n" + b"1\n" * 2**20, "1 MiB unpacked", {"_MOST": 2**20, "_HELD": 2**20}),
    (b"a\n" + b"1\n" * 2**14, "10,000 rows", {"_MOST_ROWS": 10_000}),
]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zip", ".tar", "-"])
@pytest.mark.parametrize(("content", "most", "ceilings"), LONG)
def test_a_file_that_is_too_long_is_refused_however_it_is_packed(
    tmp_path, monkeypatch, ending, content, most, ceilings
):
    for name, value in ceilings.items():
        monkeypatch.setattr(columns, name, value)
    path = tmp_path / f"people.csv{ending}"
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(ending, bytes)
    path.write_bytes(pack(content))
    if ending == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", content)
    if ending == ".tar":
        (tmp_path / "people.csv").write_bytes(content)
        with tarfile.open(path, "w") as whole:
            whole.add(tmp_path / "people.csv", "people.csv")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    named = "what was piped" if ending == "-" else repr(str(path))
    with pytest.raises(ValueError, match=r"^path must be a CSV file of at most") as raised:
        read_column("-" if ending == "-" else path, "a")
    assert str(raised.value) == f"path must be a CSV file of at most {most}, got more in {named}"


class Zeros(io.RawIOBase):
    def read(self, size=-1):
        return bytes(size)


def tar_of(path, *members, **header):
    """Write an archive of files, by names and sizes, the first of which is a small table."""
    packed = path.suffix.removeprefix(".").replace("tar", "").replace("tgz", "gz")
    with tarfile.open(path, f"w:{packed}", format=tarfile.PAX_FORMAT) as archive:
        for name, size in (("people.csv", 8), *members):
            one = tarfile.TarInfo(name)
            one.size, one.pax_headers = size, header
            archive.addfile(one, io.BytesIO(b"a,b\n1,2\n") if name == "people.csv" else Zeros())
    return path


def test_an_archive_is_read_no_further_than_its_first_file(tmp_path, monkeypatch):
    """The second may be of any size, and what stands before a file too."""
    taken = []
    read = columns._Counted.read1

    def counted(self, size=-1):
        taken.append(len(some := read(self, size)))
        return some

    monkeypatch.setattr(columns._Counted, "read1", counted)
    monkeypatch.setattr(columns._Counted, "read", columns._Counted.read1)
    for ending in (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2"):
        assert read_column(tar_of(tmp_path / f"one{ending}"), "b").values.tolist() == [2]
        large = tar_of(tmp_path / f"two{ending}", ("zeros", 2**22))
        taken.clear()
        with pytest.raises(ValueError, match=r"which is damaged or not one \.\w+ file$"):
            read_column(large, "a")
        assert sum(taken) < 2**16
    with pytest.raises(ValueError, match="at most 2 MiB in its header, got more in"):
        read_column(tar_of(tmp_path / "head.tar.gz", comment="x" * 2**22), "a")
    (tmp_path / "other.tar").write_bytes((tmp_path / "one.tar.gz").read_bytes())
    assert read_column(tmp_path / "other.tar", "a").values.tolist() == [1]


@pytest.mark.parametrize("damage", ["digit", "cut"])
def test_an_archive_is_read_to_its_check_sum(tmp_path, damage):
    """What stands after the table decides whether its digits are those that were packed."""
    packed = gzip.compress(tar_of(tmp_path / "plain.tar").read_bytes(), 0)
    assert packed.count(b"1,2") == 1
    content = packed[:-8] if damage == "cut" else packed.replace(b"1,2", b"9,2")
    (tmp_path / "people.tar.gz").write_bytes(packed)
    assert read_column(tmp_path / "people.tar.gz", "a").values.tolist() == [1]
    (tmp_path / "people.tar.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"which is damaged or not one \.gz file$"):
        read_column(tmp_path / "people.tar.gz", "a")


def test_a_file_with_holes_is_not_read_from_an_archive(tmp_path):
    """They take no room in it, and are as many zeros as it says."""
    path = tar_of(tmp_path / "people.tar", **{"GNU.sparse.size": str(2**22), "GNU.sparse.map": "0,8"})
    with pytest.raises(ValueError, match=r"which is damaged or not one \.tar file$"):
        read_column(path, "a")


def test_columns_have_a_ceiling(read):
    wide = "a" + "," * (2**16 - 1) + "\n1" + "," * (2**16 - 1) + "\n"
    with pytest.raises(ValueError, match=r"of at most 65,536 columns, got 65,537 in '"):
        read(wide.replace("\n", ",\n"))
    assert len(columns._header(io.BytesIO(wide.encode()).read(), ",")) == 2**16


@pytest.mark.parametrize(
    ("text", "values", "rows"),
    [
        ('n,a\nKay,1\n"Smith,2\n"Jones",3\nLee,4\n', [1, 3, 4], [2]),  # a quote has no end
        ('n,a\r\n"Kay\r\nMay",1\r\nLee,2\r\n', [1, 2], [1]),
        ('n,a\nKay,1\n\n"x\n\ny",2\n\n', [1, 2], [2]),
        ('a,n\n1\n2,"Kay\nMay"\n', [1, 2], [2]),
        ('"n\nm",a\n\nKay,1\n"Lee",2', [1, 2], []),
    ],
)
def test_rows_that_a_quote_joins_are_told(read, text, values, rows):
    found = read(text)
    assert (found.values.tolist(), found.joined.tolist()) == (values, rows)


def test_what_is_in_a_zip_file_is_not_unpacked_at_once(tmp_path, monkeypatch):
    path, asked = tmp_path / "people.zip", []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("people.csv", b"a\n" + b"1\n" * 2**20)
    read = zipfile.ZipExtFile.read

    def counted(self, size=-1):
        asked.append(size)
        return read(self, size)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    assert read_column(path, "a").values.sum() == 2**20
    assert 0 < min(asked) <= max(asked) <= 2**20


def test_only_rows_that_are_read_together_count_to_the_ceiling_of_rows(read, monkeypatch):
    monkeypatch.setattr(columns, "_ROWS", (2**19, "in 4,096 rows"))
    assert read(b"a\n" + b"1\n" * 2**20 + b"\n\n", drop_missing=True).n_rows == 2**20


def test_what_unpacks_an_archive_may_be_missing(tmp_path, monkeypatch):
    (tmp_path / "a.csv.zst").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    if sys.version_info < (3, 14):  # which has it
        with pytest.raises(ImportError, match="zstandard"):
            read_column(tmp_path / "a.csv.zst", "a")


@pytest.mark.parametrize("ending", ["gz", "xz", "bz2", "zip", "tar"])
@pytest.mark.parametrize("damage", ["junk", "cut", "empty"])
def test_a_damaged_archive_is_one_clear_line(tmp_path, ending, damage):
    path, whole = tmp_path / f"people.csv.{ending}", tmp_path / "whole"
    frame = pd.DataFrame({"a": np.random.default_rng(1).random(50_000)})
    frame.to_csv(
        whole,
        index=False,
        compression={"method": {"gz": "gzip"}.get(ending, ending)} if damage == "cut" else None,
    )
    content = whole.read_bytes()
    path.write_bytes({"junk": b"a\n1\n2\n", "cut": content[: len(content) // 2], "empty": b""}[damage])
    with pytest.raises(
        ValueError, match=r"^path must be a CSV file in UTF-8 with a header, got '.*'"
    ) as raised:
        read_column(path, "a")
    assert "\n" not in str(raised.value)


def test_what_is_piped_is_read(tmp_path, monkeypatch):
    text = b"b,a\nx,1\ny,-2\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert read_column("-", "a").values.tolist() == [1, -2]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a;b\n1,5;2\n")))
    with pytest.raises(ValueError, match="separated otherwise: sep=';', decimal=','"):
        read_column("-", "a")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(ValueError, match="got what was piped, which is empty"):
        read_column("-", "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_fifo_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"a\n3\n4\n"))
    writer.start()
    assert read_column(tmp_path / "pipe", "a").values.tolist() == [3, 4]
    writer.join()


def test_what_stands_for_a_missing_value(read):
    text = "a\n1\n-9\nnone given\n4\n"
    assert read(text, na="none given", drop_missing=True).values.tolist() == [1, -9, 4]
    with pytest.raises(ValueError, match="column must have no missing value, got 1 in the 3 rows"):
        read("a\n1\n-9\n4\n", na="-9")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n1\nsecret\n", "column must hold numbers, got text in row 2 of 'a'$"),
        ('a\n"1,234"\n', "got text in row 1 of 'a'; write thousands without a comma"),
        ("171,82\n160,70\n", "column must be in the header, got 'a' and a header that looks like a record"),
        ("Ada,1.71e2\n", "column must be in the header, got 'a' and a header that looks like a record"),
        ("Ada,$171\n", "column must be in the header, got 'a' and a header that looks like a record"),
        ("a\n1\ninf\n", "column must hold finite numbers, got an infinite one in row 2 of 'a'"),
    ],
)
def test_no_entry_of_the_file_is_in_a_message_unless_it_is_verbose(read, text, words):
    with pytest.raises((TypeError, ValueError), match=words):
        read(text, verbose=False)
    with pytest.raises((TypeError, ValueError), match=r"secret|1,234|171|1.71e2|got inf"):
        read(text)


def test_values_outside_the_bounds_are_refused_by_their_row_or_put_on_them(read):
    column = read("a\n5\n\n17\n-3\n9\n", drop_missing=True)
    with pytest.raises(ValueError, match=r"got 2 beyond 0 to 10, the first in row 3; clamp=True") as raised:
        column.within(0.0, 10.0)
    assert "17" not in str(raised.value)
    with pytest.raises(ValueError, match="in row 3: 17; clamp=True"):
        column.within(0.0, 10.0, verbose=True)
    found = column.within(-0.5, 10.5, clamp=True)
    assert (found.values.tolist(), found.clamped) == ([5, 10.5, -0.5, 9], 2)  # whatever the others are
    floats = read("a\n5.5\n17.0\n").within(0.0, 10.25, clamp=True)
    assert (floats.values.tolist(), floats.clamped) == ([5.5, 10.25], 1)
    assert column.within(-3.0, 17.0) is column


@pytest.mark.parametrize(
    ("text", "n_rows", "rows", "values"),
    [
        ("a,b\n1,2\n,3\n5,6\n", 3, [1, 3], [1, 5]),
        ("a,b\n1,2\nNA,3\nnan,6\n7,8\n", 4, [1, 4], [1, 7]),
        ("a\n1\n\n3\n\n", 3, [1, 3], [1, 3]),
        ("a\n1\n3\nNA\n", 3, [1, 2], [1, 3]),
        ("a\n1\n\n3\nnan\n\n\n", 4, [1, 3], [1, 3]),
        ('a\n1\n""\n3\n', 3, [1, 3], [1, 3]),
        ("b,a\n1,2\n3\n4,5\n", 3, [1, 3], [2, 5]),
    ],
)
def test_missing_values_are_refused_or_left_out(read, text, n_rows, rows, values):
    with pytest.raises(ValueError, match=r"column must have no missing value, .*'a', .*drop_missing=True"):
        read(text)
    found = read(text, drop_missing=True)
    assert found.values.dtype == np.int64  # a gap does not make floats of integers
    assert (found.n_rows, found.row_of.tolist(), found.values.tolist()) == (n_rows, rows, values)


GERMAN = {"sep": ";", "decimal": ","}
BAD = [
    ("a\n1\nx\n2\n", {}, TypeError, "column must hold numbers, got 'x' in row 2 of 'a'"),
    ('a\n"1,234"\n2\n', {}, TypeError, "got '1,234' in row 1 of 'a'; write thousands without a comma"),
    ('a\n3\n"1,5"\n', {}, TypeError, "got '1,5' in row 2 of 'a'; give decimal=','"),
    ("a;b\n1,5;2\n", {"sep": ";"}, TypeError, "got '1,5' in row 1 of 'a'; give decimal=','"),
    ("a\n1.234\n2.500\n", GERMAN, TypeError, "got '1.234' in row 1 of 'a'; write thousands without a point"),
    ('a\n1\n"2.5"\n', GERMAN, TypeError, "got '2.5' in row 2 of 'a'; .*leave decimal=',' out"),
    ("a\n1.234,5\n", GERMAN, TypeError, "got '1.234,5' in row 1 of 'a'; write thousands without a point"),
    ("a\n1_000\n2\n", {}, TypeError, "got '1_000' in row 1"),
    ("a\n0x10\n2\n", {}, TypeError, "got '0x10' in row 1"),
    ("a\n2020-01-01\n", {}, TypeError, "got '2020-01-01' in row 1"),
    ("a\n1\n\nx\n", {"drop_missing": True}, TypeError, "got 'x' in row 3"),
    ("a\nTrue\nFalse\n", {}, TypeError, "column must hold numbers, got True and False in 'a'"),
    ("a\n1\ninf\n", {}, ValueError, "column must hold finite numbers, got inf in row 2 of 'a'"),
    ("a,b\n,1\n-inf,2\n", {"drop_missing": True}, ValueError, "got -inf in row 2"),
    ("a\n1e400\n1\n", {}, ValueError, "got inf in row 1"),
    ("", {}, ValueError, "path must be a CSV file in UTF-8 with a header, got .*which is empty"),
    ("\n", {}, ValueError, "which is empty"),
    ("\n\na\n1\n2\n", {}, ValueError, "or begins with an empty line$"),
    ("a\n", {}, ValueError, "column must hold numbers, got none in 'a'"),
    ("a\n\n\n", {}, ValueError, "column must hold numbers, got none in 'a'"),
    ("a,b\n,\nNA,\n", {"drop_missing": True}, ValueError, "column must hold numbers, got none in 'a'"),
    ("b,c\n1,2\n", {}, ValueError, "column must be one of 'b', 'c', got 'a'$"),
    (",".join("bcdefghijklm") + "\n", {}, ValueError, "'k', ..., got 'a'"),
    (" a\n1\n", {}, ValueError, "column must be one of ' a', got 'a'"),
    ("a,a\n1,2\n", {}, ValueError, "column must be named once in the header, got 'a' 2 times"),
    ("a;b\n1,5;2\n", {}, ValueError, "got 'a'; fields seem to be separated otherwise: sep=';', decimal=','$"),
    ("a;b\n1;2\n", {}, ValueError, "separated otherwise: sep=';'$"),
    ("a\tb\n1\t2\n", {}, ValueError, "separated otherwise: sep='tab'$"),
    ("a,b\n1,2\n", {"sep": ";"}, ValueError, "separated otherwise: sep=','$"),
    ("a\n1,5\n2,5\n", {}, ValueError, "whose rows have more fields than its header; .*sep=';', decimal=','$"),
    ("a,b\n1,2\n1,2,3\n", {}, ValueError, "whose line 3 has 3 fields and not 2; where a comma"),
    ("a;b\n1;2\n1;2;3\n", {"sep": ";"}, ValueError, "whose line 3 has 3 fields and not 2$"),
    ('a\n1\n"2\n', {}, ValueError, "which does not parse: .*row 2$"),
    ('b,"a\n1\n', {}, ValueError, "which does not parse: a quote in its header has no end$"),
    ('"' + "a" * 2**18, {}, ValueError, "which does not parse: field larger than field limit"),
    ("a\n\xe9\n".encode("latin-1"), {}, ValueError, "which is compressed or in another encoding: save it as"),
    ("a\n1\n".encode("utf-16"), {}, ValueError, "another encoding"),
    (gzip.compress(b"a\n1\n", mtime=0), {}, ValueError, "which is compressed or in another encoding"),
    ("a\n1\n", {"column": 1.5}, TypeError, "column must be a name in the header, got 1.5"),
    ("a\n1\n", {"column": True}, TypeError, "column must be a name in the header, got True"),
    ("a\n1\n", {"sep": ";;"}, ValueError, "sep must be one ASCII character that is not in numbers, got ';;'"),
    ("a\n1\n", {"sep": "1"}, ValueError, "sep must be one ASCII character"),
    ("a¦b\n1¦2\n", {"sep": "¦"}, ValueError, "sep must be one ASCII character"),
    ("a\n1\n", {"sep": None}, TypeError, "sep must be one character, got None"),
    ("a\n1\n", {"decimal": ","}, ValueError, "decimal must not be the separator of fields"),
    ("a\n1\n", {"decimal": "x"}, ValueError, "decimal must be one of"),
    ("a\n1\n", {"drop_missing": 1}, TypeError, "drop_missing must be True or False"),
]


@pytest.mark.parametrize(("text", "options", "error", "words"), BAD)
def test_refusals(read, text, options, error, words):
    with pytest.raises(error, match=words) as caught:
        read(text, **options)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must be an existing CSV file, got .*none there"):
        read_column(tmp_path / "no.csv", "a")
    with pytest.raises(
        FileNotFoundError, match=r"path must be an existing CSV file, got '/dev/zero': (a dev|none)"
    ):
        read_column("/dev/zero", "height")
    with pytest.raises(FileNotFoundError, match=r"path must be an existing CSV file, got .*a folder"):
        read_column(tmp_path, "a")
    with pytest.raises(TypeError, match="path must be the path of a CSV file, got 3"):
        read_column(3, "a")


def test_a_long_file_is_read_in_parts(read, monkeypatch):
    monkeypatch.setattr(columns, "_CHUNK", 4)
    numbers = [str(i) for i in range(11)]
    assert read("a\n" + "\n".join(numbers) + "\n").values.tolist() == list(range(11))
    numbers[9] = "9.5"
    found = read("a\n" + "\n".join(numbers) + "\n")
    assert found.values.dtype == np.float64
    assert found.values[9] == 9.5
    numbers[5:8] = ["", "", ""]
    found = read("a\n" + "\n".join(numbers) + "\n\n\n", drop_missing=True)
    assert found.row_of.tolist() == [1, 2, 3, 4, 5, 9, 10, 11]
    numbers[10] = "x"
    with pytest.raises(TypeError, match="got 'x' in row 11"):
        read("a\n" + "\n".join(numbers) + "\n", drop_missing=True)
    with pytest.raises(ValueError, match="line 9 has 2 fields and not 1"):
        read("a\n" + "\n".join(["1"] * 7 + ["1,2"]) + "\n")
