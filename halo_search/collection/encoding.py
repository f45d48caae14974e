"""Encodes the items of a source on this machine: in parts, and only what is new or has changed."""

import functools
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from halo_search.collection.parts import MANIFEST, Collection, Encoded, read_names, write_part
from halo_search.collection.sources import PICTURES, TEXTS, Items, is_remote
from halo_search.embeddings.arrays import parts_of
from halo_search.errors import InputError
from halo_search.files.atomic import atomic
from halo_search.files.vector_files import read_vectors
from halo_search.files.written import Written

PART_SIZE = 4096
DTYPES = ("float32", "float16")  # of vectors in parts
_PART = re.compile(r"part-(\d+)\.parquet")
_SOME = 3  # names in a message


def encode_items(
    tower: Any, items: Items, advance: Callable[[int], Any] = lambda count: None
) -> Encoded:
    """Encodes some items of a source; `advance` is told how many more are done. An InputError if
    the model does not read such items."""
    bad = {}
    if items.kind == PICTURES:
        arrays = tower.of_files(items.values, items.names, advance, bad)
    elif items.kind == TEXTS:
        arrays = tower.of_texts(items.values, advance)
    else:
        stored = read_vectors(items.path, tower.side)
        if not all(0 <= row < len(stored) for row in items.values):
            found = list(items.values)[:_SOME]
            raise InputError(f"{items.path}: expected rows below {len(stored):,}; received {found}")
        try:
            arrays = tower.of_vectors(np.asarray(stored[list(items.values)]), advance)
        except InputError as error:
            raise InputError(f"{items.path}: {error}") from error
    names = [name for row, name in enumerate(items.names) if row not in bad]
    arrays = parts_of(arrays) if names else {}
    rejected = [(items.names[row], bad[row]) for row in sorted(bad)]
    return Encoded(names, arrays, tower.uncertainty(arrays) if arrays else None, rejected)


def encode(
    items: Items,
    encoder: Any,
    folder: Any,
    identity: dict[str, Any],
    dtype: str = "float32",
    part_size: int = PART_SIZE,
    skip_bad: bool = True,
    progress: bool = True,
) -> "Collection":
    """Encodes what is new or has changed since the last call, by name, size and time.

    A part is whole or not there, so a call that was stopped resumes with the next one; the
    manifest, written last, says which of their items are gone.

    Args:
        items: see `halo_search.collection.read_source`.
        encoder: a `zoo.Tower`, or a function of items and `advance` to an `Encoded`.
        folder: of the parts; new, or as an earlier call left it.
        identity: JSON values that say what the vectors are: the model, its hash, the side.
        dtype: of the vectors on the disk, `"float32"` or `"float16"`.
        part_size: items per part.
        skip_bad: whether items that cannot be read are left out.
        progress: whether to draw a bar.

    Raises:
        InputError: if the folder holds anything else or vectors of another model, if nothing can be
            read, or, unless `skip_bad`, for an item that cannot be read.
    """
    if part_size < 1:
        raise InputError(f"--shard-size must be at least 1; received {part_size}")
    if callable(getattr(encoder, "of_files", None)):
        encoder = functools.partial(encode_items, encoder)
    if is_remote(folder):
        raise InputError(f"{folder}: needs --runner; without it OUT is a folder of this machine")
    written = Written(folder, MANIFEST)
    written.check()
    identity = {**identity, "dtype": dtype}
    before = written.content
    if before and (other := differing(before, identity)):
        raise InputError(
            f"{folder}: holds embeddings of other work ({', '.join(other)} differ); choose another "
            "folder, or delete it"
        )
    written.tidy()
    written.write({**before, **identity})
    known = _Known(folder, written.names)
    kept, rejected, new = known.of(items)
    if "parts" in before and (new or known.gone):
        print(f"{folder}: {known.difference(items, new)}")
    files, total = list(known.files), known.total
    columns = TextColumn("{task.description}"), BarColumn(), _Done(), TimeRemainingColumn()
    # Of a slow model a batch takes more than the 30 s over which speed is estimated else.
    with Progress(*columns, disable=not progress, speed_estimate_period=300) as shown:
        task = shown.add_task("encoding", total=len(items), completed=len(items) - len(new))
        for start in range(0, len(new), part_size):
            some = items.take(new[start : start + part_size])
            encoded = encoder(some, lambda count: shown.advance(task, count))
            if encoded.rejected and not skip_bad:
                name, reason = encoded.rejected[0]
                raise InputError(
                    f"{name}: {reason} ({len(encoded.rejected)} of {len(some)} items of a part "
                    "cannot be read; --skip-bad leaves them out)"
                )
            name = f"part-{known.next + start // part_size:06d}.parquet"
            written.claim(name)
            with atomic(written.folder / name) as temporary:
                write_part(temporary, encoded, dtype, some)
            files.append({"file": name, "items": len(encoded.names)})
            rejected += encoded.rejected
            kept += range(total, total + len(encoded.names))
            total += len(encoded.names)
    ended = outcome(files, kept, rejected, items.seen, items.left)
    written.write({**written.content, **ended})
    return Collection(folder)


class _Done(MofNCompleteColumn):
    def render(self, task):
        speed = task.finished_speed or task.speed
        return super().render(task) + Text("" if speed is None else f" {speed:,.1f}/s")


def continues(folder: Any, identity: dict[str, Any], dtype: str = "float32") -> bool:
    """Whether a folder of parts is new, or one that `encode` would add such vectors to."""
    before = Written(folder, MANIFEST).content
    return not before or not differing(before, {**identity, "dtype": dtype})


def differing(before: dict[str, Any], identity: dict[str, Any]) -> list[str]:
    """In what vectors of before differ; a model under another name is the same by its hash."""
    keys = set(identity) - ({"model"} if identity.get("model_sha256") else set())
    return sorted(key for key in keys if before.get(key) != identity[key])


def outcome(files, kept, rejected, seen, left) -> dict[str, Any]:
    """What the manifest says in the end, counted; an InputError if nothing could be read."""
    if not kept:
        name, reason = rejected[0]
        raise InputError(f"{name}: {reason}; none of the {len(rejected)} items can be read")
    if rejected:
        left = {**left, "cannot be read": len(rejected)}
    gone = np.setdiff1d(np.arange(sum(file["items"] for file in files)), kept).tolist()
    count = {"seen": seen, "taken": len(kept), "left": left}
    return {"parts": files, "gone": gone, "rejected": rejected, "count": count}


class _Known:
    """The items of earlier parts, and those among them that are in no source any more (`gone`)."""

    def __init__(self, folder, listed):
        self.files, self.total, self.next, self.gone = [], 0, 0, 0
        self._rows, self._rejected, self._names = defaultdict(list), {}, set()
        there = sorted(name for name in listed if _PART.fullmatch(name))
        for name in (name for name in there if (Path(folder) / name).exists()):
            names, stamps, rejected, _ = read_names(Path(folder) / name)
            for row, item in enumerate(zip(names, stamps, strict=True), self.total):
                self._rows[item].append(row)
            self._rejected.update({(n, stamp): reason for n, reason, stamp in rejected})
            self._names.update(names)
            self.files.append({"file": name, "items": len(names)})
            self.total += len(names)
            self.next = int(_PART.fullmatch(name)[1]) + 1
        for rows in self._rows.values():
            rows.reverse()  # the first is taken first

    def of(self, items):
        """`(rows of parts, rejected, numbers of new items)` of items as they are now."""
        kept, rejected, new = [], [], []
        for number, item in enumerate(zip(items.names, items.stamps, strict=True)):
            if self._rows.get(item):
                kept.append(self._rows[item].pop())
            elif item in self._rejected:
                rejected.append((item[0], self._rejected[item]))
            else:
                new.append(number)
        self.gone = len(self._names.difference(items.names))
        return kept, rejected, new

    def difference(self, items, new):
        """What is other than before, in words."""
        changed = [items.names[n] for n in new if items.names[n] in self._names]
        said = f"{len(new) - len(changed):,} new, {len(changed):,} changed, {self.gone:,} gone"
        more = f" and {len(changed) - _SOME:,} more" if changed[_SOME:] else ""
        return said + (f"; changed: {', '.join(changed[:_SOME])}{more}" if changed else "")
