"""What the site takes from the package itself, so that nothing is listed by hand.

* the reference: a page for every package, with its public names and its modules;
* a page for every row of a registry, with its options;
* what the command says of itself, the notebooks, and a gallery of their figures.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import pkgutil
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

import nbformat
from typer.testing import CliRunner

import equinoise

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("CONTRIBUTING", "SUPPORT", "CODE_OF_CONDUCT", "CHANGELOG")
NOTEBOOKS = ("games", "release", "experiment")


def version() -> str:
    """Return the version of the package."""
    return equinoise.__version__


# The reference


@cache
def modules() -> dict[str, ModuleType]:
    """Return all modules of the package by name, parents first."""
    names = ["equinoise", *(found.name for found in pkgutil.walk_packages(equinoise.__path__, "equinoise."))]
    left_out = ("equinoise.__main__", "equinoise._typing", "equinoise.cli")  # the command has its own page
    return {name: importlib.import_module(name) for name in names if not name.startswith(left_out)}


def is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield what a module exports, but for modules and names of types.

    A module without a list exports what it defines under a name without an underscore.
    """
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Mapping) or getattr(value, "__module__", "") == module.__name__)
    ]
    for name in getattr(module, "__all__", own):
        value = getattr(module, name)
        if not inspect.ismodule(value) and not name.startswith("__") and get_origin(value) is None:
            yield name, value


@cache
def homes() -> dict[str, list[tuple[str, Any]]]:
    """Return what is documented at each module: an object where a package exports it, else in its module."""
    seen: set[int] = set()
    found: dict[str, list[tuple[str, Any]]] = {}
    for packages in (True, False):
        for name, module in modules().items():
            if is_package(module) is packages:
                new = [(n, v) for n, v in exported(module) if not _shared(v) or id(v) not in seen]
                seen.update(id(value) for _, value in new)
                found[name] = new
    return found


def _shared(value: Any) -> bool:
    """Return whether a value is one object, whatever it is called."""
    return inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, Mapping)


@cache
def aliases() -> dict[str, str]:
    """Return where each public class is documented, by its bare name, for the types in docstrings."""
    found: dict[str, str] = {}
    for module, rows in homes().items():
        for name, value in rows:
            if inspect.isclass(value):
                found.setdefault(name, f"{module}.{name}")
    return found


@cache
def _documented() -> dict[int, str]:
    found = {id(module): name for name, module in modules().items()}
    for module, rows in homes().items():
        found |= {id(value): f"{module}.{name}" for name, value in rows if _shared(value)}
    return found


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Find what a docstring calls by another of its names, such as that of its own module.

    What exists and has no place of its own, such as a field, leads to the class or the module that has it.
    """
    if node.get("refdomain") != "py":
        return None
    for prefix in _scopes(node):
        path = _place(f"{prefix}.{node['reftarget']}" if prefix else node["reftarget"])
        if path:
            domain = env.get_domain("py")
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, contnode)
    return None


def _scopes(node: Any) -> Iterator[str]:
    """Yield the class and the modules that a reference stands in, innermost first, and no scope at all."""
    holder = node
    while holder is not None and "docstring of " not in (holder.source or ""):
        holder = holder.parent
    inside = [".".join(filter(None, (node.get("py:module"), node.get("py:class"))))]
    if holder is not None:
        inside.append(holder.source.rpartition("docstring of ")[2].partition(":")[0])
    for scope in inside:
        while scope:
            yield scope
            scope = scope.rpartition(".")[0]
    yield ""


def _place(path: str) -> str | None:
    """Return where an object is documented, or what has it; None where there is no such object."""
    first, *rest = path.split(".")
    if first != "equinoise":
        return None
    value: Any = equinoise
    place = "equinoise"
    for name in rest:
        known = hasattr(value, name) or name in getattr(value, "__dataclass_fields__", ())
        if not known:
            return None
        owner, value = value, getattr(value, name, None)
        if id(value) in _documented():
            place = _documented()[id(value)]
        elif inspect.isclass(owner):
            home = next((base for base in owner.__mro__ if name in vars(base)), owner)
            documented = inspect.isroutine(value) or isinstance(value, property)
            if id(home) in _documented() and documented and (value.__doc__ or ""):
                place = f"{_documented()[id(home)]}.{name}"
    return place


def plain_bars(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars of absolute values, which reStructuredText would take for substitutions."""
    for number, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "``".join(parts)


def _title(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n"


def _first_line(value: Any) -> str:
    if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
        return ""
    line = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
    line = re.sub(r"\s*\[\d+\]_", "", line)  # a source, cited further below
    return re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"``\1``", line)


def _entry(module: str, name: str, value: Any) -> str:
    path = f"{module}.{name}"
    if inspect.isclass(value):
        return f".. autoclass:: {path}\n   :members:\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n"
    return f".. autodata:: {path}\n   :no-value:\n"


def _reference(name: str, package: ModuleType) -> str:
    """Return the page of a package: its own names, and then those of its modules."""
    functions = {f"{module}.{n}" for module, rows in homes().items() for n, _ in rows}
    quiet = "   :no-index:\n" if name in functions else ""  # a function may be called as its module is
    title = name.removeprefix("equinoise.") if "." in name else "All packages"
    parts = [_title(title, "="), f".. automodule:: {name}\n{quiet}", f".. currentmodule:: {name}\n"]
    rows = homes()[name]
    if rows:
        table = "\n".join(f"   * - :py:obj:`{n} <{name}.{n}>`\n     - {_first_line(v)}" for n, v in rows)
        parts.append(f".. list-table::\n   :widths: 1 3\n\n{table}\n")
        parts += [_entry(name, *row) for row in rows]
    inside = [m for m in homes() if m.rpartition(".")[0] == name]
    below = [m for m in inside if is_package(modules()[m])]
    if below:
        parts.append(".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {m}\n" for m in below))
    for module in (m for m in inside if m not in below):
        quiet = "   :no-index:\n" if module in functions else ""
        parts += [_title(module.removeprefix(f"{name}."), "-"), f".. automodule:: {module}\n{quiet}"]
        parts += [_entry(module, *row) for row in homes()[module]]
    return "\n".join(parts)


# Registries


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]], widths: str) -> str:
    lines = [f".. list-table::\n   :header-rows: 1\n   :widths: {widths}\n"]
    for row in (head, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _value(option: Any) -> tuple[str, str, str]:
    """Return what an option may be, its default, and what it is for."""
    if not hasattr(option, "kind"):
        return type(option).__name__, f"``{option!r}``", ""
    takes = {"flag": "true or false", "choice": ", ".join(option.choices), "integer": "an integer"}
    text = takes.get(option.kind, "a number")
    if option.low is not None or option.high is not None:
        ends = ("any" if end is None else f"{end:g}" for end in (option.low, option.high))
        text += " from {} to {}".format(*ends)
    return text, f"``{option.default!r}``", option.summary


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?")) else f"{text}."


def registries() -> dict[str, Mapping[str, Any]]:
    """Return every registry of the package by its place: a constant that maps names to rows."""
    found: list[tuple[tuple[Any, ...], str, Mapping[str, Any]]] = []
    for module, value in modules().items():
        for name, rows in vars(value).items():
            named = name.isupper() and not name.startswith("_") and isinstance(rows, Mapping) and rows
            if named and all(is_dataclass(row) and hasattr(row, "source") for row in rows.values()):
                shown = name in getattr(value, "__all__", ())
                found.append(((-len(rows), not shown, not is_package(value)), f"{module}.{name}", rows))
    kept: dict[str, Mapping[str, Any]] = {}
    seen: set[int] = set()
    for _, place, rows in sorted(found, key=lambda one: one[:2]):
        ids = {id(row) for row in rows.values()}
        if not ids <= seen:  # neither imported from elsewhere nor a part of another
            kept[place] = rows
            seen |= ids
    return dict(sorted(kept.items()))


def _about(row: Any) -> str:
    """Return what a row is, in a few words."""
    said = (getattr(row, field, "") for field in ("summary", "title", "label", "promise"))
    return next(filter(None, said), "")


def _row_page(name: str, row: Any, place: str) -> str:
    """Return the page of one row of a registry, from whatever the row says."""
    parts = [_title(name, "="), f"{_sentence(_about(row))}\n", f":Registered in: :py:obj:`{place}`"]
    if hasattr(row, "private"):
        parts.append(f":Private in the rewards: {'yes' if row.private else 'no'}")
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, str) and value and field.name not in ("name", "summary"):
            literal = re.fullmatch(r"[\w.:-]*[_:][\w.:-]*", value)
            said = f"``{value}``" if literal else value.replace("|", r"\|").replace("*", r"\*")
            parts.append(f":{field.name.replace('_', ' ').capitalize()}: {said}")
    parts.append("")
    if hasattr(row, "kernels") and hasattr(row, "needs_epsilon"):
        epsilon = ", epsilon=1.0" if row.needs_epsilon else ""
        parts.append(f"::\n\n    bandits.simulate({name!r}, [0.6, 0.5], horizon=1000{epsilon})\n")
    if getattr(row, "options", None):
        rows = [(f"``{option}``", *_value(value)) for option, value in row.options.items()]
        parts += [_title("Options", "-"), _table(("option", "takes", "default", ""), rows, "1 2 1 3")]
    if inspect.ismodule(getattr(row, "kernels", None)):
        path = row.kernels.__name__
        about = (inspect.getdoc(row.kernels) or "").replace("|", r"\|")
        parts += [_title("How it is played", "-"), f".. currentmodule:: {path}\n", about]
        parts.append(f"\nThe code: :py:mod:`{path}`.\n")
    return "\n".join(parts)


# The headings by the constant and the package of a registry; any other has the first line of its module.
_HEADINGS = {
    "bandits.POLICIES": "Policies of bandits, for :py:func:`equinoise.bandits.simulate`",
    "linear.POLICIES": "Policies with contexts, for :py:func:`equinoise.bandits.linear.simulate`",
    "LEARNERS": "Learners of games, for :py:func:`equinoise.efb.simulate`",
    "MECHANISMS": "What a user of DP-EFB sends, for :py:func:`equinoise.efb.simulate`",
    "RULES": "Tunings of DP-EFB, for :py:func:`equinoise.efb.tune`",
    "BUILT_IN": "Games, for :py:func:`equinoise.games.load`, next to those of OpenSpiel and Gambit",
    "SEARCHES": "Searches for a release, methods of :py:class:`equinoise.nvo.NoiseGame`",
    "FAMILIES": "Families of noise for a release",
    "COUNTERS": "Counters of running sums",
}


def _heading(place: str) -> str:
    known = (text for end, text in _HEADINGS.items() if f".{place}".endswith(f".{end}"))
    return next(known, None) or _first_line(modules()[place.rpartition(".")[0]]) or place


def _registry(folder: Path, place: str, rows: Mapping[str, Any]) -> str:
    """Write a page for every row; return the section of the registry."""
    module, _, name = place.rpartition(".")
    stem = f"{module.removeprefix('equinoise.')}-{name.lower()}".replace(".", "-").replace("-registry", "")
    table, pages = [], []
    for key, row in rows.items():
        page = f"{stem}-{key}".replace(" ", "-")
        (folder / f"{page}.rst").write_text(_row_page(key, row, place))
        private = "private" if getattr(row, "private", False) else ""
        source = getattr(row, "source", "").replace("*", r"\*")
        form = getattr(row, "form", key)
        table.append((f":doc:`{form} <choices/{page}>`", _about(row), private, source))
        pages.append(f"   choices/{page}\n")
    heading = _heading(place)
    short = heading.partition(",")[0]
    return "\n".join(
        [
            _title(short, "-"),
            f"{_sentence(heading)}\n",
            _table(("name", "what it is", "", "source"), table, "2 4 1 4"),
            ".. toctree::\n   :hidden:\n\n" + "".join(pages),
        ]
    )


def _choices(folder: Path) -> str:
    """Write the pages of all registries; return the page that lists them."""
    from equinoise.experiments import plan

    (folder / "choices").mkdir()
    parts = [_title("What can be chosen by name", "="), "Made from the registries of the package.\n"]
    parts += [_registry(folder / "choices", place, rows) for place, rows in registries().items()]
    steps = plan.plan("all", plan.Settings()).steps
    rows = [(f"``{step.name}``", step.title) for step in steps]
    parts += [_title("Experiments of ``equinoise reproduce``", "-"), _table(("name", "title"), rows, "2 5")]
    return "\n".join(parts)


# The command, the notebooks, the gallery


def _command() -> str:
    from equinoise.cli import app

    run, names = CliRunner(), [""]
    names += [str(c.name or c.callback.__name__) for c in app.registered_commands if c.callback]
    parts = [_title("The command", "="), "What ``equinoise --help`` says, command by command.\n"]
    for name in names:
        environment = {"COLUMNS": "96", "TERMINAL_WIDTH": "96", "NO_COLOR": "1", "TERM": "dumb"}
        said = run.invoke(app, [*name.split(), "--help"], env=environment, prog_name="equinoise").output
        text = "\n".join(f"    {line.rstrip()}" for line in said.strip("\n").splitlines())
        parts += [_title(f"equinoise {name}".strip(), "-"), f".. code-block:: text\n\n{text}\n"]
    return "\n".join(parts)


def _notebooks(folder: Path) -> str:
    """Copy the notebooks and their figures; return the page of the gallery."""
    parts = [
        "# Gallery\n",
        "Each figure is an output of a notebook; its code stands there.\n",
        "![One panel for each part of the package](picture.png)\n",
    ]
    shutil.copy(ROOT / "notebooks" / "picture.png", folder / "picture.png")
    for name in NOTEBOOKS:
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        nbformat.write(notebook, folder / f"{name}.ipynb")
        title = re.sub(r"^# ", "", notebook.cells[0].source.splitlines()[0])
        parts.append(f"## [{title}]({name}.ipynb)\n")
        outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
        images = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
        for number, image in enumerate(images):
            path = folder / f"{name}-{number}.png"
            path.write_bytes(base64.b64decode(image))
            parts.append(f"![A figure of the notebook {name}]({path.name})\n")
    return "\n".join(parts)


def _of_the_root(name: str) -> str:
    """Return a Markdown file of the root, with its links as they are from the folder of generated pages."""
    text = (ROOT / f"{name}.md").read_text()
    for target in set(re.findall(r"\]\(([^):#]+)\)", text)):
        path = f"../../{target}"
        if target.removesuffix(".md") in PAGES:
            path = target.lower()
        elif target.startswith("docs/"):
            path = f"../{target.removeprefix('docs/')}"
        text = text.replace(f"]({target})", f"]({path})")
    return text


def pages(folder: Path) -> None:
    """Write all that is generated into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "api").mkdir(parents=True)
    for name, module in modules().items():
        if is_package(module):
            (folder / "api" / f"{name}.rst").write_text(_reference(name, module))
    for name in PAGES:
        (folder / f"{name.lower()}.md").write_text(_of_the_root(name))
    (folder / "choices.rst").write_text(_choices(folder))
    (folder / "command.rst").write_text(_command())
    (folder / "gallery.md").write_text(_notebooks(folder))
