"""Looks at paths and at names of models before anything is imported for them.

A name that passes may still be wrong: whatever opens it reports that.
"""

import argparse
import difflib
import os
import re
from pathlib import Path
from typing import Any

from halo_search import presets
from halo_search.cli.hub_handles import HUGGING_FACE, KAGGLE, check_handle
from halo_search.errors import InputError
from halo_search.files import decoding, folders, tables, vector_files

_INDEX_FILE = "search.json"
_HUB = "clip", "siglip"  # one is in each name of KerasHub's dual encoders


def _token(value):
    """A token that fits into a header."""
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise argparse.ArgumentTypeError("expected ASCII letters, digits or signs without spaces")
    return value


TOKEN = {
    "type": _token,
    "default": os.environ.get("HALO_TOKEN"),
    "help": "word that clients have to send (default: the environment variable HALO_TOKEN)",
}


def _host(value):
    if not re.fullmatch(r"[\w.:*\[\]-]+", value):
        raise argparse.ArgumentTypeError(f"expected a name or an address; received {value!r}")
    return value


def _root_path(value):
    if value and not value.startswith(("/", "http://", "https://")):
        raise argparse.ArgumentTypeError(f"expected a path that begins with /; received {value!r}")
    return value


ALLOWED_HOST = {
    "type": _host,
    "nargs": "+",
    "default": [],
    "metavar": "NAME",
    "help": "further names it answers to",
}
ROOT_PATH = {"type": _root_path, "help": "path under which a proxy serves it"}


def check_path(value: Any, message: str) -> None:
    """Raises InputError, with a sentence, unless a local path exists. None, patterns and addresses
    pass."""
    text = str(value)
    is_elsewhere = value is None or "://" in text or any(sign in text for sign in "*?[")
    if not is_elsewhere and not Path(text).expanduser().exists():
        raise InputError(message)


def check_source(source: Any, captions: bool = False, column: str | None = None) -> None:
    """Raises InputError where a local source, which is there, holds nothing to encode."""
    path, side = vector_files.located(source)[0], "captions" if captions else "images"
    if not path.exists():  # an address
        return
    if path.suffix in vector_files.SUFFIXES:
        vector_files.read_vectors(source, side)
    elif path.suffix in tables.SEPARATORS:
        row = next(tables.read_table(path, [column or side[:-1]]), None)
        if row is None:
            raise InputError(f"{source}: has no rows")
    elif path.is_dir() and not captions:
        pictures = (file for file in path.rglob("*") if file.suffix.lower() in decoding.SUFFIXES)
        if next(pictures, None) is None:
            raise InputError(folders.no_image(source, folders.pictures_in(path)[1]))


def check_model(name: Any) -> None:
    """Raises InputError for a name that is neither a path, a preset nor on a hub; of one on a hub
    as `check_handle`."""
    text = str(name)
    names = presets.names()
    if name is None or text in names:
        return
    if not text.strip() or "\0" in text:
        raise InputError(f"expected a name, folder or handle of a model; received {text!r}")
    if text.startswith((HUGGING_FACE, KAGGLE)):
        check_handle(text)
        return
    try:
        if "://" not in text and Path(text).expanduser().exists():
            return
    except OSError:  # a name that no file can have
        pass
    if "/" not in text and any(word in text.lower() for word in _HUB):
        check_handle(text)
        return
    close = difflib.get_close_matches(text, names, 1)
    if not close and re.fullmatch(r"[\w-]+/[\w.-]+", text):  # as Hugging Face names its models
        close = [f"{HUGGING_FACE}{text}"]
    raise InputError(
        f"no such model: {text!r}; a model must be one of the presets {', '.join(names)}; a "
        "KerasHub name such as 'siglip2_base_patch16_224'; a handle that begins with hf:// or "
        "kaggle://; or a file or folder" + (f"; did you mean {close[0]!r}?" if close else "")
    )


def check_run(name: Any, message: str | None = None) -> None:
    """Raises InputError, with a sentence, for what is neither a preset nor a path."""
    if str(name) not in presets.names():
        check_path(name, message or f"no such run folder: {name}")


def check_data_dir(folder: Any) -> None:
    """Raises InputError for a --data-dir that is not there; None passes."""
    if folder is not None and not Path(folder).expanduser().exists():
        raise InputError(f"--data-dir {folder}: no such file or folder")


def is_index(folder: Any) -> bool:
    """Whether a folder holds what `halo search build` wrote."""
    return (Path(folder) / _INDEX_FILE).is_file()


def check_index(folder: Any) -> None:
    """Raises InputError unless a folder holds what `halo search build` wrote."""
    path = Path(folder) / _INDEX_FILE
    if not path.exists():
        raise InputError(f"{path}: there is no such file; expected what `build` wrote")
