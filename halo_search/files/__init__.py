"""Files: read with errors that say where, written whole or not at all."""

from halo_search.files.array_files import open_memmap
from halo_search.files.atomic import atomic, locked, remove_leftovers, write_text
from halo_search.files.environment import cache_folder

__all__ = [
    "atomic",
    "cache_folder",
    "locked",
    "open_memmap",
    "remove_leftovers",
    "write_text",
]
