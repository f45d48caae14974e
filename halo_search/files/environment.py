"""Where this user's machine keeps what can be made again."""

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """A place below the user's cache folder: that of the environment variable `HALO_CACHE`, else
    `$XDG_CACHE_HOME/halo-zoo`, else `~/.cache/halo-zoo`. Nothing is created."""
    given = os.environ.get("HALO_CACHE")
    if given:
        return Path(given).expanduser().joinpath(*parts)
    base = os.environ.get("XDG_CACHE_HOME")
    base = Path(base) if base else Path("~/.cache").expanduser()
    return base.joinpath("halo-zoo", *parts)
