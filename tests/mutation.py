"""Plant faults in the package, one at a time, and list which tests notice each.

``python -m tests.mutation [--jobs N] [--only NAME ...]``, in an environment with the extras of the tests. The
faults are in ``tests/data/faults.toml``, each with the tests that should notice it. First these tests must
pass in a copy of the tree as it is. Then every fault is planted in a copy of its own, and one of its tests
must fail: what breaks an import, or never ends, is noticed by no test. Exit code 1 where one is not noticed.
"""

import argparse
import ast
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "equinoise"
FAULTS = ROOT / "tests" / "data" / "faults.toml"
COPIED = ("src", "tests", "pyproject.toml", "README.md")
IGNORED = shutil.ignore_patterns("__pycache__", ".*_cache", "*.egg-info")
# Examples of hypothesis are the same in every run; one that fails is not made smaller, which takes minutes.
CONFTEST = """from hypothesis import Phase, settings

settings.register_profile("first", derandomize=True, phases=[Phase.explicit, Phase.generate])
settings.load_profile("first")
"""
UNSET = {"NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK", "PYTEST_ADDOPTS"}
SECONDS = 300.0  # after which a fault's tests are given up
ALL_SECONDS = 3600.0  # and those of all faults in the tree as it is


@dataclass(frozen=True)
class Fault:
    """One fault: in `file` of the package `new` stands for `old`, and `tests` of the tests' folder see it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it is planted."""
        return PACKAGE / self.file

    def planted(self, text: str) -> str:
        """Return the text of the file with the fault; ValueError where its place is not there just once."""
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"{self.name}: {self.file} must have {self.old!r} once, and another text there")
        return text.replace(self.old, self.new)


class Ran(NamedTuple):
    """How tests ended: pytest's exit code, which failed, its last lines, seconds by the clock and of CPU."""

    code: int
    failed: list[str]
    said: str
    wall: float
    cpu: float

    @property
    def noticed(self) -> bool:
        """Whether a test failed, and nothing else went wrong."""
        return self.code == 1 and bool(self.failed)


def faults() -> list[Fault]:
    """Return all faults, in the order of the file."""
    rows = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    return [Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def copied(folder: Path) -> Path:
    """Return a copy of what tests need of this tree."""
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=IGNORED)
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    return folder


def run(tree: Path, kernels: Path, tests: Iterable[str], *options: str, seconds: float = SECONDS) -> Ran:
    """Run tests in a tree, compiled, with kernels in a folder."""
    settings = {name: value for name, value in os.environ.items() if name not in UNSET}
    settings |= {"NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(tree / "src"), "MPLBACKEND": "Agg"}
    words = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=line", "-p", "no:cacheprovider", *options]
    words += [f"tests/{test}" for test in tests]
    begun = time.monotonic()
    with (tree / "said.txt").open("w+b") as out:
        child = subprocess.Popen(words, cwd=tree, env=settings, stdout=out, stderr=subprocess.STDOUT)
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        _, status, used = os.wait4(child.pid, 0)  # which says what this child alone has used
        child.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        out.seek(0)
        said = out.read().decode("utf-8", "replace")
    failed = re.findall(r"^FAILED tests/(.+?)(?: - .*)?$", said, re.MULTILINE)
    wall = time.monotonic() - begun
    return Ran(child.returncode, failed, said[-2000:], wall, used.ru_utime + used.ru_stime)


# Kernels: a fault compiles anew what leads to it, and takes the rest from the tree as it is.


def modules() -> dict[str, Path]:
    """Return the modules of the package by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """Yield what a module may import, of the package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def leading_to(changed: Path) -> set[str]:
    """Return the modules that import a file, or what imports it, and so on; and its own."""
    known = modules()
    above = {name: {*imported(path)} for name, path in known.items()}
    found = {name for name, path in known.items() if path == changed}
    while more := {name for name, names in above.items() if names & found} - found:
        found |= more
    return found


def give_kernels(fault: Fault, tree: Path, base: Path, kernels: Path) -> None:
    """Copy the kernels that a fault cannot change to where the changed tree looks for its own."""
    from equinoise import _jit

    with contextlib.suppress(StopIteration):
        known = next(base.glob("equinoise-*"))
        with _names:
            _jit._PACKAGE, _jit.config.CACHE_DIR = tree / "src" / "equinoise", str(kernels)
            _jit._sources.cache_clear()
            target = _jit.cache_directory.__wrapped__()
        changed = leading_to(fault.path) if "njit" in fault.path.read_text(encoding="utf-8") else set()
        target.mkdir(parents=True)
        for path in known.iterdir():
            of = re.search(r"-(equinoise[\w.]*)-\d+\.", path.name)
            if of and of[1] not in changed:
                shutil.copy(path, target)


_names = threading.Lock()


def tried(fault: Fault, work: Path, base: Path) -> Ran:
    """Plant a fault in a copy of the tree and run its tests."""
    folder = work / re.sub(r"\W", "-", fault.name)
    tree = copied(folder)
    place = tree / "src" / "equinoise" / fault.file
    place.write_text(fault.planted(place.read_text(encoding="utf-8")), encoding="utf-8")
    give_kernels(fault, tree, base, folder / "kernels")
    found = run(tree, folder / "kernels", fault.tests, "-x")
    shutil.rmtree(folder)
    how = found.failed[0] if found.noticed else f"NOT NOTICED (exit code {found.code})"
    print(f"{fault.name}: {how}, {found.wall:.0f} s", flush=True)
    return found


def main() -> int:
    """Try all faults, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="faults that are tried at a time")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="faults whose names have one of these words"
    )
    given = parser.parse_args()
    chosen = [one for one in faults() if not given.only or any(word in one.name for word in given.only)]
    if not chosen:
        parser.error(f"no fault has one of {given.only} in its name")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        work, nodes = Path(temporary), sorted({test for one in chosen for test in one.tests})
        spread = ["-n", str(given.jobs), "--dist", "loadfile"] if given.jobs > 1 else []
        plain = run(copied(work / "tree"), work / "kernels", nodes, *spread, seconds=ALL_SECONDS)
        print(
            f"{len(nodes)} tests in the tree as it is: exit code {plain.code}, {plain.wall:.0f} s", flush=True
        )
        if plain.code:
            print(plain.said)
            return 1
        with ThreadPoolExecutor(given.jobs) as pool:
            found = list(pool.map(lambda one: tried(one, work, work / "kernels"), chosen))
    width = max(len(one.name) for one in chosen)
    print(f"\n{'fault':{width}}  wall s  CPU s  noticed by")
    for one, ran in zip(chosen, found, strict=True):
        who = ", ".join(ran.failed) if ran.noticed else "NOBODY"
        print(f"{one.name:{width}}  {ran.wall:6.1f}  {ran.cpu:5.1f}  {who}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    missed = [(one, ran) for one, ran in zip(chosen, found, strict=True) if not ran.noticed]
    for one, ran in missed:
        print(f"\nnot noticed: {one.name}\n{ran.said}")
    seconds = f"{time.monotonic() - begun:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU"
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} faults are noticed, in {seconds}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
