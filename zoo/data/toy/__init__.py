"""Toy data: drawn birds, and scenes of several, of which the truth is known."""

import contextlib
import json
from pathlib import Path

from halo_search.errors import InputError
from halo_search.files.atomic import atomic_folder


def write_whole(root, manifest, what, wanted, write):
    """Makes a folder by `write(folder)`, unless it holds what `manifest` says already. Raises
    InputError if it holds anything else; it is left as it is."""
    root = Path(root).expanduser()
    if _holds(root, manifest, what, wanted):
        return root
    try:
        with atomic_folder(root) as unfinished:
            write(unfinished)
            (unfinished / manifest).write_text(json.dumps(wanted, indent=2) + "\n")
    except InputError:
        if not _holds(root, manifest, what, wanted):  # or another process has just made it
            raise
    return root


def _holds(root, manifest, what, wanted):
    """Whether the folder holds what is wanted; False if it is empty. Raises InputError if it holds
    something else."""
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return False
    content = None
    with contextlib.suppress(OSError, ValueError):
        content = json.loads((root / manifest).read_text())
    if content != wanted:
        held = "something else" if content is None else f"those of {content}"
        raise InputError(f"{root}: expected nothing or the {what} of {wanted}, found {held}")
    return True
