"""The folder for what the zoo makes and can make again: drawn data, stored features, embeddings."""

import os
from pathlib import Path

VARIABLE = "HALO_CACHE"


def cache_folder(*parts: str) -> Path:
    """A place below the user's cache folder.

    The environment variable `HALO_CACHE` moves it; else it is `$XDG_CACHE_HOME/halo-zoo`, else
    `~/.cache/halo-zoo`. Nothing is created.

    Args:
        *parts: names of folders and of a file below it.

    Returns:
        A `pathlib.Path`.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().joinpath(*parts)
    base = os.environ.get("XDG_CACHE_HOME")
    base = Path(base) if base else Path("~/.cache").expanduser()
    return base.joinpath("halo-zoo", *parts)
