"""Run the notebooks from clean kernels: ``NAME.py`` becomes ``NAME.ipynb`` with its outputs.

python notebooks/run.py            writes the .ipynb files
python notebooks/run.py --check    writes nothing; fails where a cell fails or a .ipynb is not of its .py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat

HERE = Path(__file__).resolve().parent
NAMES = ("games", "release", "experiment")
os.environ.pop("MPLBACKEND", None)  # with another one than the kernel's there are no figures


def run(script: Path) -> nbformat.NotebookNode:
    notebook = jupytext.read(script)
    here = {"metadata": {"path": HERE}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=here).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same for the same script, so that a change shows in a diff
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    return notebook


def sources(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for script in (HERE / f"{name}.py" for name in NAMES):
        print(script.name, flush=True)
        made, beside = run(script), script.with_suffix(".ipynb")
        if not check:
            nbformat.write(made, beside)
        elif sources(nbformat.read(beside, as_version=4)) != sources(made):
            stale.append(beside.name)
    for name in stale:
        print(f"{name} is not of its script: run `python notebooks/run.py`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
