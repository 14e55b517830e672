"""Names of a package that are loaded when first used, so that importing the package stays quick."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Any]:
    """Return ``__getattr__`` and ``__dir__`` for a package, of names by the modules below it they come from.

    The last part of a module's path is the module itself, and so is every name that comes from "".
    """
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        path = home[name] or name
        module = import_module(f"{package}.{path}")
        value = module if path.rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *home})
