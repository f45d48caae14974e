"""A generated data set is on disk whole or not at all."""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from zoo.errors import InputError


def write_whole(root, manifest, what, wanted, write):
    """Makes a folder, unless it already holds what is wanted.

    Args:
        root: the folder. It must not exist, be empty, or hold this very set.
        manifest: name of the JSON file in it that says what it holds.
        what: the name of such a set, for messages.
        wanted: JSON values that determine the set.
        write: function of a folder that fills it.

    Returns:
        The folder, a `pathlib.Path`.

    Raises:
        InputError: if the folder holds anything else; it is left as it is.
    """
    root = Path(root).expanduser()
    if _holds(root, manifest, what, wanted):
        return root
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
    except OSError as error:
        raise InputError(f"{root}: cannot be made ({error.strerror})") from error
    try:
        write(partial)
        (partial / manifest).write_text(json.dumps(wanted, indent=2) + "\n")
        partial.chmod(0o755)
        try:
            os.rename(partial, root)
        except OSError:
            if not _holds(root, manifest, what, wanted):  # or another process has just made it
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def _holds(root, manifest, what, wanted):
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return False
    found = None
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((root / manifest).read_text())
    if found != wanted:
        held = "something else" if found is None else f"those of {found}"
        raise InputError(f"{root}: expected nothing or the {what} of {wanted}, found {held}")
    return True
