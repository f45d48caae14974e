"""What a person can fix: bad input, and a package that is not installed."""

import importlib
from types import ModuleType


class InputError(ValueError):
    """Bad input: a file, a folder, a flag or an array that is not what it has to be.

    The message says the argument or file, what was expected and what was received. Command lines
    (`halo_search.cli.parser.run`) print it as one line and exit with code 2; everything else that
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
        raise MissingPackageError(missing(package, extra)) from error


def missing(package: str, extra: str) -> str:
    """The sentence about a package that is not installed."""
    return (
        f'the package {package} is not installed: pip install ".[{extra}]" in the checkout, or '
        f'"halo-zoo[{extra}]" once it is released'
    )
