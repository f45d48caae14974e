"""What a split of a data set is: images, captions, which belongs to which, what was left out."""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from halo_search.errors import InputError
from halo_search.files.atomic import write_text

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
    """What is wrong with the files of a data set: raised at once, or with `skip_bad` collected."""

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

    def summary(self):
        """How many were left out, and why the first was: the end of a sentence, or nothing."""
        if not self.skipped:
            return ""
        first = self.skipped[0]
        return f"; {len(self.skipped):,} left out, the first: {first.where}: {first.why}"


def write_skipped(run: str | os.PathLike, *records: Any) -> dict[str, dict[str, int]]:
    """Writes what was left out of some splits, `Records`, as JSON Lines into a run's folder, and
    returns `{name of the split: {kind: count}}`. Raises InputError if the file cannot be written.

    A line is `{"data": …, "kind": …, "where": …, "why": …}`: the name of the split and a `Skipped`.
    What several splits of one table share is listed and counted once, with the first of them.
    """
    listed, rows, counts = set(), [], {split.name: Counter() for split in records}
    for split in records:
        for item in split.skipped:
            if item in listed:
                continue
            listed.add(item)
            counts[split.name][item.kind] += 1
            rows.append(json.dumps({"data": split.name, **item._asdict()}, ensure_ascii=False))
    write_text(Path(run) / FILE_NAME, "".join(f"{row}\n" for row in rows))
    return {name: dict(kinds) for name, kinds in counts.items()}


class Loaded(Sequence):
    """What every loader returns: the pair of the `Records` of a split and a `tf.data.Dataset` of
    one caption with its image an element, made when it is first read.

    ```python
    records, dataset = zoo.data.cub.load("CUB_200_2011", split="test")
    ```
    """

    def __init__(self, records: "Records", make_dataset: Callable[[], Any]) -> None:
        self.records = records
        self._make_dataset = make_dataset

    @cached_property
    def dataset(self) -> Any:
        return self._make_dataset()

    def __getitem__(self, index: int) -> Any:
        return self.dataset if range(2)[index] else self.records

    def __len__(self) -> int:
        return 2


@dataclass(frozen=True, eq=False)
class Records:
    """One split: N images and M captions, each caption of one image.

    ```python
    records = zoo.data.Records(
        name="mine",
        image_paths=["a.jpg", "b.jpg"],
        captions=["a bird", "a red bird", "a boat"],
        caption_image=[0, 0, 1],
        image_labels=[0, 1],
        image_ids=[10, 11],
    )
    records.caption_labels  # [0, 0, 1]
    ```

    Attributes:
        name: what to call it in a table, such as `"CUB_200_2011 test"`.
        image_paths, captions: `(N,)` and `(M,)` strings, as they are in the files.
        caption_image: `(M,)` int32, the index in 0 … N−1 of each caption's image.
        image_labels: `(N,)` int32. An image and a caption with equal labels match: class numbers
            for CUB, one number an image for COCO and Flickr30K.
        image_ids: `(N,)`, the data set's own ids.
        class_names: the names of the labels 0, 1, …, or None where a label is no class.
        skipped: everything that the loader left out.
        recoded: caption files with bytes that are not UTF-8, which were decoded all the same.
        caption_ids: `(M,)`, the data set's own ids of the captions, or None where it has none.
        caption_boxes: `(M, 4)` float32, the (x, y, width, height) in pixels of what each caption
            describes, or None where captions are of whole images.
        caption_vectors: a `zoo.data.sources.Features` that models read in place of `captions`.
        semantics: a `zoo.data.records.semantics.Semantics`, of which every training batch then
            brings its part, or None. A selection has none.

    Raises:
        ValueError: if the lengths disagree or an index is out of range.
    """

    name: str
    image_paths: np.ndarray
    captions: np.ndarray
    caption_image: np.ndarray
    image_labels: np.ndarray
    image_ids: np.ndarray
    class_names: tuple[str, ...] | None = None
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    recoded: tuple[str, ...] = field(default=(), repr=False)
    caption_ids: np.ndarray | None = None
    caption_boxes: np.ndarray | None = None
    caption_vectors: Any = field(default=None, repr=False)
    semantics: Any = field(default=None, repr=False)

    def __post_init__(self):
        for name, dtype in (("caption_image", np.int32), ("image_labels", np.int32)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype))
        for name in ("image_paths", "captions", "image_ids"):
            values = getattr(self, name)
            # Strings stay Python's: NumPy's own are as wide as the longest of them, each.
            if not isinstance(values, np.ndarray):
                object.__setattr__(self, name, _column(values))
        images, captions = len(self.image_paths), len(self.captions)
        lengths = {"image_labels": images, "image_ids": images, "caption_image": captions}
        if self.caption_ids is not None:
            object.__setattr__(self, "caption_ids", np.asarray(self.caption_ids, np.int64))
            lengths["caption_ids"] = captions
        if self.caption_boxes is not None:
            boxes = np.asarray(self.caption_boxes, np.float32).reshape(-1, 4)
            object.__setattr__(self, "caption_boxes", boxes)
            lengths["caption_boxes"] = captions
        for name, length in lengths.items():
            if len(getattr(self, name)) != length:
                raise ValueError(
                    f"`{name}` must have {length} elements; received {len(getattr(self, name))}"
                )
        if captions and not 0 <= self.caption_image.min() <= self.caption_image.max() < images:
            raise ValueError(f"`caption_image` must hold indices of {images} images")
        if self.class_names is not None and images:
            last = len(self.class_names) - 1
            if not 0 <= self.image_labels.min() <= self.image_labels.max() <= last:
                raise ValueError(f"`image_labels` must index {last + 1} class names")

    @property
    def caption_labels(self) -> np.ndarray:
        """`(M,)` int32, the label of each caption's image."""
        return self.image_labels[self.caption_image]

    @property
    def num_images(self) -> int:
        return len(self.image_paths)

    @property
    def num_captions(self) -> int:
        return len(self.captions)

    @property
    def num_classes(self) -> int:
        """How many different labels the images have."""
        return len(np.unique(self.image_labels))

    def select(self, images: ArrayLike) -> "Records":
        """The records of some images, by distinct indices (else a ValueError), in their order."""
        images = np.asarray(images, np.int64)
        if len(np.unique(images)) != len(images):
            raise ValueError("`images` must be distinct indices")
        if len(images) and not 0 <= images.min() <= images.max() < self.num_images:
            raise ValueError(f"`images` must be indices below {self.num_images}")
        position = np.full(self.num_images, -1)
        position[images] = np.arange(len(images))
        captions = np.flatnonzero(position[self.caption_image] >= 0)
        captions = captions[np.argsort(position[self.caption_image[captions]], kind="stable")]
        return Records(
            name=self.name,
            image_paths=self.image_paths[images],
            captions=self.captions[captions],
            caption_image=position[self.caption_image[captions]],
            image_labels=self.image_labels[images],
            image_ids=self.image_ids[images],
            class_names=self.class_names,
            skipped=self.skipped,
            recoded=self.recoded,
            caption_ids=None if self.caption_ids is None else self.caption_ids[captions],
            caption_boxes=None if self.caption_boxes is None else self.caption_boxes[captions],
            caption_vectors=self.caption_vectors and self.caption_vectors.select(captions),
        )

    def summary(self) -> str:
        """One line: the sizes of the split, and what was left out."""
        line = f"{self.name}: {self.num_images:,} images, {self.num_captions:,} captions"
        if self.class_names is not None:
            line += f", {self.num_classes:,} classes"
        if self.skipped:
            counts = Counter(item.kind for item in self.skipped)
            line += "; left out: " + ", ".join(f"{n:,} {kind}" for kind, n in counts.items())
        if self.recoded:
            line += f"; {len(self.recoded):,} caption files were not clean UTF-8"
        return line


def joined(parts):
    """The records of several splits of one data set as one, in their order; without semantics."""
    first, *others = parts
    if not others:
        return first
    starts = np.cumsum([0, *(part.num_images for part in parts)])
    owners = [part.caption_image + start for part, start in zip(parts, starts, strict=False)]
    columns = ("image_paths", "captions", "image_labels", "image_ids")
    return replace(
        first,
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns},
        caption_image=np.concatenate(owners),
        skipped=tuple(item for part in parts for item in part.skipped),
        recoded=tuple(name for part in parts for name in part.recoded),
        semantics=None,
    )


def with_shuffled_captions(records, share, seed=0):
    """The records of a training split with a share of the captions given to wrong images."""
    rng = np.random.default_rng(seed)
    count = round(share * records.num_captions)
    shuffled = rng.permutation(records.num_captions)[:count]
    captions = records.captions.copy()
    captions[np.roll(shuffled, 1)] = records.captions[shuffled]
    return replace(records, captions=captions)


def _column(values):
    """An array of one value per item: int64 if all are integers, else of objects."""
    column = np.empty(len(values), object)
    column[:] = list(values)
    kinds = {type(value) for value in column}
    return column.astype(np.int64) if kinds <= {int, np.int32, np.int64} and kinds else column
