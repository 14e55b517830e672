"""Run the tests with the lowest and with the newest versions that pyproject.toml allows, on every Python.

Needs uv, which tells the lowest versions: ``pip install uv``, then ``python tests/floors.py``. A Python that
uv does not list, as those of pyenv, is found when its ``bin`` is on the PATH. What follows ``--`` goes to
pytest; by default all but the slow tests run, about twenty minutes for each environment. No CI runs it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("games", "secure", "distributed", "parquet", "data", "test")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
UNSET = {"PYTHONPATH", "VIRTUAL_ENV", "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"}


def pythons() -> dict[str, str]:
    """Return the interpreters of this machine that the package is for: minor version to path."""
    listed = subprocess.check_output(
        ["uv", "python", "list", "--only-installed", "--output-format", "json", ">=3.11"], text=True
    )
    found: dict[str, str] = {}
    for row in json.loads(listed):
        parts = row["version_parts"]
        if row["implementation"] == "cpython" and row.get("variant", "default") == "default":
            found.setdefault(f"{parts['major']}.{parts['minor']}", row["path"])
    return found


def tried(python: str, resolution: str, folder: Path, options: list[str]) -> int:
    """Make an environment anew and run the tests in it; pytest's exit code."""
    settings = {name: value for name, value in os.environ.items() if name not in UNSET}
    settings["NUMBA_CACHE_DIR"] = str(folder / "kernels")
    own = folder / "bin" / "python"
    subprocess.check_call(["uv", "venv", "-q", "--clear", "--python", python, folder])
    install = ["uv", "pip", "install", "-q", "--python", own]
    versions = ["--resolution", RESOLUTIONS[resolution], "--only-binary", ":all:"]
    extras = [word for name in EXTRAS for word in ("--extra", name)]
    subprocess.check_call([*install, *versions, "-r", "pyproject.toml", *extras], cwd=ROOT)
    subprocess.check_call([*install, "--no-deps", "--editable", "."], cwd=ROOT)
    return subprocess.call(
        [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], cwd=ROOT, env=settings
    )


def main() -> int:
    """Run them all, and say at the end what passed."""
    found = pythons()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", nargs="+", choices=found, default=list(found))
    parser.add_argument("--versions", nargs="+", choices=RESOLUTIONS, default=list(RESOLUTIONS))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "floors")
    parser.add_argument("options", nargs="*", default=["-m", "not slow"], help="for pytest, after --")
    given = parser.parse_args()
    codes = {
        f"{version}-{resolution}": tried(
            found[version], resolution, given.folder.absolute() / f"{version}-{resolution}", given.options
        )
        for version in given.python
        for resolution in given.versions
    }
    for name, code in codes.items():
        print(name, "passed" if code == 0 else f"failed: pytest's exit code {code}")
    return max(codes.values(), default=1)


if __name__ == "__main__":
    sys.exit(main())
