"""Files: read with errors that say where, written whole or not at all."""

from zoo.errors import lookup
from zoo.files.array_files import open_memmap
from zoo.files.atomic import atomic, locked, remove_leftovers, write_text
from zoo.files.environment import cache_folder

__all__ = [
    "atomic",
    "cache_folder",
    "locked",
    "open_memmap",
    "remove_leftovers",
    "write_text",
]

__getattr__ = lookup(__name__)  # names of earlier versions
