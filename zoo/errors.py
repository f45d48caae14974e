"""What a person can fix: bad input, a missing package, and names that earlier versions had.

`former.tsv` says of each former name, as it was typed, what to use instead: `zoo.search.tune`,
`halo search check`, `halo search build --kind`, `make live`, `python -m zoo.search`.
"""

import importlib
import importlib.abc
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

TABLE = Path(__file__).with_name("former.tsv")


class InputError(ValueError):
    """Bad input: a file, a folder, a flag or an array that is not what it has to be.

    The message says the argument or file, what was expected and what was received. Command lines
    (`zoo.cli.run`) print it as one line and exit with code 2; everything else that
    is raised is a defect of ours and keeps its traceback.
    """


class MissingPackageError(InputError, ImportError):
    """A package of an extra is not installed. The message names the extra."""


def require(module: str, extra: str) -> ModuleType:
    """Imports a module, or raises MissingPackageError with the extra that brings its package; an
    error inside of an installed package is raised as it is."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingPackageError(
            f'the package {package} is not installed: pip install ".[{extra}]" in the checkout, or '
            f'"halo-zoo[{extra}]" once it is released'
        ) from error


def sentence(name: str) -> str | None:
    """What to use instead of a name of an earlier version; None of any other name."""
    return table().get(name)


def table() -> dict[str, str]:
    """All names, with their sentences. Read only where a name is unknown."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def typed(program: str, words: Sequence[str]) -> str | None:
    """The sentence of the first word of a command line that earlier versions had: a subcommand, a
    flag, or a flag with its value."""
    known = table()
    for word, following in zip(words, (*words[1:], ""), strict=False):
        flag, _, value = word.partition("=")
        for name in (flag, f"{flag} {value or following}"):
            if (said := known.get(f"{program} {name}")) is not None:
                return f"{name}: {said}"
    return None


def lookup(module: str, places: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562): an error says what a former name is now.

    Args:
        module: `__name__` of the package.
        places: names that are imported at first use, each with the module that has it.
    """

    def find(name):
        place = (places or {}).get(name)
        if place is not None:
            found = importlib.import_module(place)
            return found if place == f"{module}.{name}" else getattr(found, name)
        said = sentence(f"{module}.{name}")
        reason = "" if said is None else f": {said}"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{reason}")

    return find


class Modules(importlib.abc.MetaPathFinder):
    """Asked last: the error of a former module says what to use, of `python -m MODULE` too."""

    def find_spec(self, fullname, path=None, target=None):
        """Finds nothing; raises ModuleNotFoundError, or ends `python -m` with exit code 2."""
        if fullname.partition(".")[0] != "zoo":
            return
        module = fullname.removesuffix(".__main__")
        if sys.argv[0] == "-m" and (said := sentence(f"python -m {module}")):
            print(f"error: python -m {module}: {said}", file=sys.stderr)
            sys.exit(2)
        if said := sentence(fullname):
            raise ModuleNotFoundError(f"No module named {fullname!r}: {said}", name=fullname)
