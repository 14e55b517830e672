"""How the site is built: ``sphinx-build -n -W --keep-going docs build/site``. It needs no network."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["NUMBA_DISABLE_JIT"] = "1"  # signatures and docstrings of kernels as they were written

import generate  # noqa: E402 - found by the line above
import numpydoc.xref  # noqa: E402

_project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = "equinoise"
author = _project["authors"][0]["name"]
copyright = author
release = version = generate.version()

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb"]

html_theme = "furo"
html_title = f"equinoise {version}"
html_theme_options = {"source_repository": _project["urls"]["Source"], "source_directory": "docs/"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

# Outputs come from notebooks/run.py, which CI runs.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say shapes and units too
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc.xref.DEFAULT_LINKS.clear()  # the docs of Python and NumPy are not fetched
numpydoc_xref_ignore = "all"  # but for what generate.py finds to be documented
numpydoc_xref_aliases = generate.aliases()
nitpick_ignore_regex = [
    ("py:.*", r"(collections|concurrent|fractions|functools|matplotlib|numba|numpy|pandas)\..*")
]

generate.pages(HERE / "generated")


def setup(app: object) -> None:
    """Register what finds an object under each of its names, and what keeps |x| an absolute value."""
    app.connect("missing-reference", generate.resolve)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", generate.plain_bars, priority=1)  # type: ignore[attr-defined]
