"""Pictures and captions of one's own: a table of image paths and captions."""

import json
import os
from collections import defaultdict
from pathlib import Path

from zoo.data.files import read_lines
from zoo.data.items import Item, gather
from zoo.data.records import Loaded, Problems
from zoo.data.tables import SEPARATORS, read_table
from zoo.errors import InputError

_JSON_LINES = (".jsonl", ".ndjson")


def load(
    table: str | os.PathLike,
    images: str | os.PathLike | None = None,
    image_column: str = "image",
    caption_column: str = "caption",
    image_size: int = 224,
    skip_bad: bool = False,
    missing: str = "skip",
    verbose: bool = True,
) -> Loaded:
    """Reads a CSV, TSV or JSON Lines file of image paths and captions.

    ```
    image,caption
    holiday/beach.jpg,two children build a castle
    holiday/beach.jpg,a castle of sand
    ```

    An image may have several rows; a caption that an image has already is left out and reported.
    In JSON Lines, `{"image": …, "caption": …}`, a caption may also be a list of strings.

    Args:
        table: the file; `.csv` and `.tsv` need a first line with the names of the columns.
        images: the folder that the paths are relative to, by default the table's own.
        image_column: name of the column, or key, of the path.
        caption_column: name of the column, or key, of the caption.
        image_size: height and width of the images in the dataset.
        skip_bad: leave out what is bad, and count it, instead of raising.
        missing: what to do about photos that are not there: `"skip"` reports them and goes on,
            `"error"` raises.
        verbose: print one line with the counts.

    Returns:
        A `Loaded` tuple `(records, dataset)`, every image a class of its own; its id is its path
        as the table has it.

    Raises:
        ValueError: if `missing` is unknown.
        InputError: if something is not there or not what it has to be, with file and line.
    """
    table = Path(table).expanduser()
    problems = Problems(skip_bad)
    columns = image_column, caption_column
    if table.suffix in SEPARATORS:
        rows = _table_rows(table, columns, problems)
    elif table.suffix in _JSON_LINES:
        rows = _json_rows(table, columns, problems)
    else:
        kinds = ", ".join((*SEPARATORS, *_JSON_LINES))
        raise InputError(f"{table}: expected a file of one of the kinds {kinds}")
    found, known = {}, defaultdict(set)
    for line, image, captions in rows:
        where = f"{table}:{line}"
        if not isinstance(image, str) or not image.strip():
            problems.bad("rows without image", where, f"expected a path as {image_column!r}")
            continue
        own = captions if isinstance(captions, list) else [captions]
        empty = [not isinstance(caption, str) or not caption.strip() for caption in own]
        if any(empty) or not own:
            problems.bad("empty captions", where, f"expected text as {caption_column!r}")
        name = Path(image.strip()).as_posix()
        item = found.setdefault(name, Item((name,), name, [], None, where))
        for text, bad in zip(own, empty, strict=True):
            if bad:
                continue
            if text.strip() in known[name]:
                problems.missing("duplicate pairs", where, f"{name} has this caption already")
                continue
            known[name].add(text.strip())
            item.captions.append(text)
    items = [item for item in found.values() if item.captions]
    images = table.parent if images is None else images
    return gather(table.name, items, images, image_size, problems, missing, verbose)


def _table_rows(table, columns, problems):
    def bad(where, why):
        problems.bad("rows with too many fields", where, why)

    for line, (image, caption) in read_table(table, columns, bad):
        yield line, image, caption


def _json_rows(table, keys, problems):
    for line, text in enumerate(read_lines(table), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            problems.bad("bad lines", f"{table}:{line}", f"not JSON ({error.msg})")
            continue
        if not isinstance(row, dict) or not all(key in row for key in keys):
            problems.bad("bad lines", f"{table}:{line}", f"expected an object with {keys}")
            continue
        yield line, row[keys[0]], row[keys[1]]
