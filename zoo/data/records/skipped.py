"""Writes the list of what loaders left out into the run's folder."""

import json
from collections import Counter
from pathlib import Path

from zoo.data.records import Records
from zoo.files import RunFolder
from zoo.files.atomic import write_text

FILE_NAME = "skipped.jsonl"


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
