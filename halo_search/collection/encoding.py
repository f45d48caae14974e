"""Encodes the items of a source on this machine: in parts, and only what is new or has changed."""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as Names
from dataclasses import replace
from typing import Any

import numpy as np

from halo_search.collection.part_files import PARQUET, check_format
from halo_search.collection.parts import MANIFEST, Collection, Encoded, read_names, write_part
from halo_search.collection.sources import PICTURES, TEXTS, Items
from halo_search.embeddings.arrays import parts_of
from halo_search.errors import InputError
from halo_search.files.atomic import atomic
from halo_search.files.stores import is_remote, present_in
from halo_search.files.vector_files import read_vectors
from halo_search.files.written import Written

PART_SIZE = 4096
DTYPES = ("float32", "float16")  # of vectors in parts
# A number of this machine's, or a hash of a cluster's; of one tar each.
_PART = re.compile(r"part-(?:(\d{1,9})|[0-9a-f]{16})\.(?:parquet|npz)")
_TAR_PART = re.compile(r"tar-[0-9a-f]{16}\.parquet")
_SOME = 3  # names in a message


def encode_items(
    tower: Any, items: Items, advance: Callable[[int], Any] = lambda count: None
) -> Encoded:
    """Encodes some items of a source and calls `advance` with the number of each part. An
    InputError if the model does not read such items."""
    bad = {}
    if items.kind == PICTURES:
        arrays = tower.of_files(items.values, items.names, advance, bad)
    elif items.kind == TEXTS:
        arrays = tower.of_texts(items.values, advance)
    else:
        stored = read_vectors(items.path, tower.side)
        if not all(0 <= row < len(stored) for row in items.values):
            received = list(items.values)[:_SOME]
            raise InputError(
                f"{items.path}: expected rows below {len(stored):,}; received {received}"
            )
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
    suffix: str = PARQUET,
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
        suffix: `".parquet"`, which other programs read and Arrow writes, or `".npz"`. Parts of
            earlier calls may have the other.

    Raises:
        InputError: if the folder holds anything else or vectors of another model, if nothing can be
            read, or, unless `skip_bad`, for an item that cannot be read; the others of its part are
            kept for the next call.
    """
    from halo_search.collection.progress import progress_bar  # here: a question needs none

    check_part_size(part_size)
    check_format(suffix)
    if callable(getattr(encoder, "of_files", None)):
        encoder = functools.partial(encode_items, encoder)
    if is_remote(folder):
        raise InputError(f"{folder}: needs --cluster; without it OUT is a folder of this machine")
    written = Written(folder, MANIFEST)
    before = begin(written, folder, {**identity, "dtype": dtype})
    known = Known(folder, part_files(written.names & present_in(written), before))
    rows, rejected, new = known.of(items, try_again=not skip_bad)
    if "parts" in before and (new or known.gone):
        print(f"{folder}: {known.difference(items, new)}")
    files, total = list(known.files), known.total
    with progress_bar(progress) as shown:
        task = shown.add_task("encoding", total=len(items), completed=len(items) - len(new))
        for start in range(0, len(new), part_size):
            some = items.take(new[start : start + part_size])
            encoded = encoder(some, lambda count: shown.advance(task, count))
            is_refused = bool(encoded.rejected) and not skip_bad
            if encoded.names or not is_refused:
                name = f"part-{known.next + start // part_size:06d}{suffix}"
                written.claim(name)
                # What is refused is not rejected: the next call tries it again.
                part = replace(encoded, rejected=[]) if is_refused else encoded
                with atomic(written.folder / name) as temporary:
                    write_part(temporary, part, dtype, some, suffix)
            if is_refused:
                item, reason = encoded.rejected[0]
                raise InputError(
                    f"{item}: {reason} ({len(encoded.rejected)} of {len(some)} items of a part "
                    "cannot be read; --skip-bad leaves them out)"
                )
            files.append({"file": name, "items": len(encoded.names)})
            rejected += encoded.rejected
            rows += range(total, total + len(encoded.names))
            total += len(encoded.names)
    ended = outcome(files, rows, rejected, items.seen, items.left)
    written.write({**written.content, **ended})
    return Collection(folder)


def check_part_size(part_size: int) -> None:
    """Raises InputError unless a part has at least one item."""
    if part_size < 1:
        raise InputError(f"--shard-size must be at least 1; received {part_size}")


def continues(folder: Any, identity: dict[str, Any], dtype: str = "float32") -> bool:
    """Whether a folder of parts is new, or one that `encode` would add such vectors to."""
    before = Written(folder, MANIFEST).content
    return not before or not differing(before, {**identity, "dtype": dtype})


def begin(written: Any, folder: Any, identity: dict[str, Any]) -> dict[str, Any]:
    """Claims a folder of parts for vectors of one identity; what its manifest said before. Raises
    InputError if it holds anything else, or vectors of another identity."""
    written.check()
    before = written.content
    if before and (other := differing(before, identity)):
        raise InputError(
            f"{folder}: holds embeddings of other work ({', '.join(other)} differ); choose another "
            "folder, or delete it"
        )
    written.tidy()
    written.write({**before, **identity})
    return before


def differing(before: dict[str, Any], identity: dict[str, Any]) -> list[str]:
    """In what vectors of before differ; a model under another name is the same by its hash."""
    keys = set(identity) - ({"model"} if identity.get("model_sha256") else set())
    return sorted(key for key in keys if before.get(key) != identity[key])


def outcome(files, rows, rejected, seen, skipped) -> dict[str, Any]:
    """What the manifest says in the end, counted; an InputError if nothing could be read."""
    if not rows:
        name, reason = rejected[0]
        raise InputError(f"{name}: {reason}; none of the {len(rejected)} items can be read")
    if rejected:
        skipped = {**skipped, "cannot be read": len(rejected)}
    gone = np.setdiff1d(np.arange(sum(file["items"] for file in files)), rows).tolist()
    count = {"seen": seen, "taken": len(rows), "left": skipped}
    return {"parts": files, "gone": gone, "rejected": rejected, "count": count}


def part_files(names: Iterable[str], before: dict[str, Any]) -> list[str]:
    """The files of parts among some names: those of the last manifest first, in its order."""
    parts = {name for name in names if _PART.fullmatch(name) or _TAR_PART.fullmatch(name)}
    first = [part["file"] for part in before.get("parts", ()) if part["file"] in parts]
    return first + sorted(parts.difference(first))


class Known:
    """The items of earlier parts, and those among them that are in no source any more (`gone`).

    Args:
        folder: of the parts, here or in an object store.
        names: of the files of parts, in the order in which rows are counted.
        tars: the parts of tars that are as they were: their items are kept.
    """

    def __init__(self, folder: Any, names: Sequence[str], tars: Names[str] = ()):
        self.files, self.total, self.next, self.gone = [], 0, 0, 0
        self.rows_of_tars, self.rejected_of_tars, self.skipped_of_tars = [], [], Counter()
        self._rows, self._rejected, self._names = defaultdict(list), {}, set()
        for name in names:
            content = read_names(f"{str(folder).rstrip('/')}/{name}")
            if name in tars:
                self._add_tar(content)
            elif _PART.fullmatch(name):
                self._add_items(content)
                self.next = max(self.next, int(_PART.fullmatch(name)[1] or -1) + 1)
            self.files.append({"file": name, "items": len(content[0])})
            self.total += len(content[0])
        for rows in self._rows.values():
            rows.reverse()  # the first is taken first

    def _add_items(self, content):
        """Remembers the rows, rejected items and names of a part, by name and stamp."""
        names, stamps, rejected, _ = content
        for row, item in enumerate(zip(names, stamps, strict=True), self.total):
            self._rows[item].append(row)
        self._rejected.update({(n, stamp): reason for n, reason, stamp in rejected})
        self._names.update(names)

    def _add_tar(self, content):
        """Keeps all of a part of a tar, whose rows follow those before."""
        names, _, rejected, skipped = content
        self.rows_of_tars += range(self.total, self.total + len(names))
        self.rejected_of_tars += [(name, reason) for name, reason, _ in rejected]
        self.skipped_of_tars.update(skipped)

    def of(self, items, try_again=False):
        """`(rows of parts, rejected, numbers of new items)` of items as they are now. What was
        rejected is new where it is to be tried again."""
        rows, rejected, new = [], [], []
        for number, item in enumerate(zip(items.names, items.stamps, strict=True)):
            if self._rows.get(item):
                rows.append(self._rows[item].pop())
            elif item in self._rejected and not try_again:
                rejected.append((item[0], self._rejected[item]))
            else:
                new.append(number)
        self.gone = len(self._names.difference(items.names))
        return rows, rejected, new

    def difference(self, items, new):
        """What is other than before, in words."""
        changed = [items.names[n] for n in new if items.names[n] in self._names]
        counts = f"{len(new) - len(changed):,} new, {len(changed):,} changed, {self.gone:,} gone"
        more = f" and {len(changed) - _SOME:,} more" if changed[_SOME:] else ""
        return counts + (f"; changed: {', '.join(changed[:_SOME])}{more}" if changed else "")
