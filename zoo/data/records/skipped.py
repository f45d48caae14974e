"""What loaders leave out of data: each thing with its reason, and the list in a run's folder."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from zoo.errors import InputError
from zoo.files.atomic import write_text

FILE_NAME = "skipped.jsonl"


class Skipped(NamedTuple):
    """One thing that a loader left out: what kind, where it is, and why.

    ```python
    zoo.data.Skipped("bad images", "images/3.jpg", "not a picture")
    ```
    """

    kind: str
    where: str
    why: str


class Problems:
    """What is wrong with the files of a data set: raised at once, or collected and counted.

    Args:
        skip_bad: False raises `InputError` at the first `bad`; True continues without it.
    """

    def __init__(self, skip_bad=False):
        self.skip_bad = skip_bad
        self.skipped = []

    def bad(self, kind, where, why):
        """Notes a bad item. Returns if it may be left out, else raises."""
        if not self.skip_bad:
            raise InputError(f"{where}: {why}")
        self.skipped.append(Skipped(kind, str(where), why))

    def missing(self, kind, where, why="not there"):
        """Notes a missing item, which is allowed and listed."""
        self.skipped.append(Skipped(kind, str(where), why))


def write_skipped(run: str | os.PathLike, *records: Any) -> dict[str, dict[str, int]]:
    """Writes what was left out of some splits, `Records`, as JSON Lines into a run's folder.

    A line is `{"data": …, "kind": …, "where": …, "why": …}`: the name of the split and a `Skipped`.
    What several splits of one table share is listed and counted once, with the first of them.

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
