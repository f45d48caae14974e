"""The list of what a loader left out, in the folder of the run."""

import json
from collections import Counter
from pathlib import Path

from zoo.files.atomic import write_text

FILE_NAME = "skipped.jsonl"


def write_skipped(run, *records):
    """Writes what was left out of some splits as JSON Lines, whole or not at all.

    A line is `{"data": …, "kind": …, "where": …, "why": …}`: the name of the split and a
    `records.Skipped`. Without anything left out the file is there and empty.

    Args:
        run: the folder, such as `zoo.files.RunFolder`.
        records: `Records`, one or several.

    Returns:
        `{name of the split: {kind: count}}`, to be written beside the metrics.

    Raises:
        InputError: if the file cannot be written.
    """
    rows = [
        json.dumps({"data": one.name, **item._asdict()}, ensure_ascii=False)
        for one in records
        for item in one.skipped
    ]
    write_text(Path(run) / FILE_NAME, "".join(f"{row}\n" for row in rows))
    return {one.name: dict(Counter(item.kind for item in one.skipped)) for one in records}
