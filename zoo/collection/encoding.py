"""A `zoo.Tower` over one piece of work: items of files, tables and containers to a shard."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from zoo.collection import contents
from zoo.collection.shards import Encoded
from zoo.collection.work import ROWS, Work, read
from zoo.embeddings.arrays import joined, parts_of
from zoo.errors import InputError
from zoo.files.vector_files import read_vectors
from zoo.models import Tower

_AT_ONCE = 8  # batches whose files are in memory together


def encode_work(
    tower: Tower, work: Work, advance: Callable[[int], Any] = lambda count: None
) -> Encoded:
    """Encodes the items of one shard.

    ```python
    tower = zoo.Tower("toy_birds_pfe", "captions")
    (work,) = zoo.collection.of_items("texts", ["first"], ["a red bird"])
    zoo.collection.encode_work(tower, work).arrays["mean"].shape  # (1, 64)
    ```

    Args:
        tower: of the side that the items are of.
        work: see `zoo.collection.plan`.
        advance: is told how many more items are done.

    Returns:
        An `Encoded`; its `rejected` names the items that cannot be read.

    Raises:
        InputError: if the model does not read such items.
    """
    if work.kind == ROWS:
        return _of_rows(tower, work, advance)
    names, parts, rejected, held, lost = [], [], [], [], []
    stamps, done = contents.stamps(work), 0
    for batch in _batches(read(work, tower.side), _AT_ONCE * tower.batch_size):
        said = [
            f"{stamps[min(done + i, len(stamps) - 1)]}:{contents.hashed(data)}"
            for i, (_, data, _) in enumerate(batch)
        ]
        reasons = {i: reason for i, (*_, reason) in enumerate(batch) if reason is not None}
        whole = [i for i in range(len(batch)) if i not in reasons]
        items = [batch[i][1] for i in whole]
        if items and tower.side == "images":
            bad = {}
            parts.append(tower.of_files(items, [batch[i][0] for i in whole], advance, bad))
            reasons |= {whole[row]: reason for row, reason in bad.items()}
        elif items:
            parts.append(tower.of_texts(items, advance))
        advance(len(batch) - len(items))
        good = [i for i in whole if i not in reasons]
        names += [batch[i][0] for i in good]
        held += [said[i] for i in good]
        lost += [said[i] for i in sorted(reasons)]
        rejected += [(batch[i][0], reasons[i]) for i in sorted(reasons)]
        done += len(batch)
    return _encoded(tower, names, [part for part in parts if part], rejected, held + lost)


def encoder_of(tower: Any) -> Callable[..., Encoded]:
    """A function from a `Work` to an `Encoded`: that of a tower, or what was given."""
    return functools.partial(encode_work, tower) if isinstance(tower, Tower) else tower


def _of_rows(tower, work, advance):
    if tower.reads != "vectors":
        raise InputError(f"{work.path}: the model reads no vectors of {tower.side}")
    stamps = contents.stamps(work)
    array = read_vectors(work.path, tower.side)
    start, stop = work.items
    if not 0 <= start < stop <= len(array):
        raise InputError(f"{work.path}: expected rows below {len(array):,}; received {start}")
    rows = np.asarray(array[start:stop])
    try:
        found = tower.of_vectors(rows)
    except InputError as error:
        raise InputError(f"{work.path}: {error}") from error
    advance(stop - start)
    said = [f"{stamp}:{contents.hashed(row)}" for stamp, row in zip(stamps, rows, strict=True)]
    return _encoded(tower, list(work.names), [found], [], said)


def _encoded(tower, names, parts, rejected, said):
    whole = joined(parts)
    arrays = parts_of(whole) if whole else {}
    uncertainty = tower.uncertainty(arrays) if arrays else None
    return Encoded(names, arrays, uncertainty, rejected, said)


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
