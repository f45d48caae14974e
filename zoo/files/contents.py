"""What is in files: by size and time of change at once, by a hash where those are others."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from zoo.errors import InputError
from zoo.files.environment import cache_folder
from zoo.files.json_files import read_json, write_json


def hashes(paths: Iterable[str | os.PathLike]) -> dict[str, str]:
    """The SHA-256 of the contents of files, `{absolute path: hash}`; what names no file has the
    hash "".

    A file is read when it is met first and when its size or its time of change is another. What was
    found is kept in the user's cache folder.

    Raises:
        InputError: if a file cannot be read.
    """
    paths = sorted({os.path.abspath(path) for path in paths})
    key = hashlib.sha256("\0".join(paths).encode()).hexdigest()[:16]
    ledger = cache_folder("contents", f"{key}.json")
    known, now = _read(ledger), {}
    for path in paths:
        stamp = _stamp(path)
        same = stamp and known.get(path, [None])[0] == stamp
        now[path] = [stamp, known[path][1] if same else ""]
    unread = [path for path, (stamp, found) in now.items() if stamp and not found]
    with ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        for path, found in zip(unread, pool.map(_hash, unread), strict=True):
            now[path][1] = found
    if unread:
        write_json(ledger, now)
    return {path: found for path, (_, found) in now.items()}


def _read(path):
    try:
        known = read_json(path)
    except InputError:  # it is a cache, and is made again
        return {}
    return known if isinstance(known, dict) else {}


def _stamp(path):
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{found.st_size}-{found.st_mtime_ns}"


def _hash(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
