"""Files: read with errors that say where, written whole or not at all."""

from zoo.files.array_files import open_memmap
from zoo.files.atomic import atomic, locked, remove_leftovers, write_text
from zoo.files.environment import cache_folder
from zoo.files.run_folder import RunFolder

__all__ = [
    "RunFolder",
    "atomic",
    "cache_folder",
    "locked",
    "open_memmap",
    "remove_leftovers",
    "write_text",
]
