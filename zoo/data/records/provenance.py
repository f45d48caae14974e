"""What a run writes about its data: hashes of contents, and what the loaders left out."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from zoo.data.records import Records
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.files.atomic import write_text
from zoo.files.environment import cache_folder
from zoo.files.json_files import read_json, write_json
from zoo.files.vector_files import located

FILE_NAME = "skipped.jsonl"


def hashes(paths: Iterable[str | os.PathLike]) -> dict[str, str]:
    """SHA-256 of files' contents, `{absolute path: hash}`, "" for what names no file. Raises
    InputError if a file cannot be read."""
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


def pictures_sha256(records: Records) -> list[str]:
    """Hash of each picture's contents, or of its path where it is no file; a row `FILE#7` has its
    file's. Raises InputError if a file cannot be read."""
    # A file of features is often of several gigabytes, and is read once.
    places = [_place(str(path)) for path in records.image_paths]
    found = hashes({file for file, _ in places})
    return [f"{found[os.path.abspath(file)] or file}{row}" for file, row in places]


def data_sha256(records: Records, description: Mapping[str, Any]) -> str:
    """Hash of what a run reads of a split: pictures or vectors, captions, matches, and the files
    that the description names. Raises InputError as `pictures_sha256`."""
    columns = (records.captions, records.caption_image, records.image_labels)
    specs = [value for value in description.values() if isinstance(value, str)]
    roots = {None, description.get("root")}  # of files that have moved
    named = [str(located(spec, root)[0]) for spec in specs for root in roots]
    files = hashes(path for path in named if os.path.isfile(path))
    facts = pictures_sha256(records), [list(map(str, c)) for c in columns], sorted(files.values())
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def write_skipped(run: RunFolder, *records: Records) -> None:
    """Writes what was left out of some splits as JSON Lines, whole or not at all.

    Splits that were cut out of one table share what the table's loader left out; it is listed and
    counted once, with the first of them. A line is
    `{"data": …, "kind": …, "where": …, "why": …}`: the name of the split and a `records.Skipped`.
    Without anything left out the file is there and empty.

    Args:
        run: the folder, such as `zoo.files.RunFolder`.
        records: `Records`, one or several.

    Returns:
        `{name of the split: {kind: count}}`, to be written beside the metrics.

    Raises:
        InputError: if the file cannot be written.
    """
    listed, rows, counts = set(), [], {one.name: Counter() for one in records}
    for one in records:
        for item in one.skipped:
            if item in listed:
                continue
            listed.add(item)
            counts[one.name][item.kind] += 1
            rows.append(json.dumps({"data": one.name, **item._asdict()}, ensure_ascii=False))
    write_text(Path(run) / FILE_NAME, "".join(f"{row}\n" for row in rows))
    return {name: dict(kinds) for name, kinds in counts.items()}


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


def _place(path):
    """`(file, row)` of a picture: `FILE#7` is a row of a file of features."""
    file, mark, row = path.rpartition("#")
    is_row = mark and row.isdigit() and not os.path.exists(path)
    return (file, f"#{row}") if is_row else (path, "")
