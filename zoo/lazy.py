"""Packages whose names are imported when they are first used (PEP 562).

A search box answers without Keras. So a package on its way imports nothing by itself, and lists
where its public names are.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def names_of(
    package: str, where: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        where: from each public name to the module that has it; a module is named as
            `"package.module"` of itself.
    """

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(where[name])
        own = where[name].rpartition(".")[2] == name and not hasattr(module, name)
        return module if own else getattr(module, name)

    return get, lambda: sorted(where)
