"""From what an annotation file lists to records: checks that are the same for every data set."""

from os.path import isfile
from typing import NamedTuple

import numpy as np

from zoo.data import batches
from zoo.data.reading.files import check_images, existing_folder, safe_relative
from zoo.data.records import Loaded, Problems, Records
from zoo.errors import InputError


class Item(NamedTuple):
    """One image as an annotation file lists it.

    Attributes:
        files: names relative to the folder of the images, the first that exists is taken.
        image_id: the data set's own id.
        captions: strings.
        caption_ids: their ids, or None.
        where: the file and the line or id, for messages.
        caption_boxes: (x, y, width, height) of what each describes, or None.
    """

    files: tuple[str, ...]
    image_id: int | str
    captions: list[str]
    caption_ids: list[int] | None
    where: str
    caption_boxes: list[tuple[float, ...]] | None = None


def has_fields(entry, **kinds):
    """Whether an entry of a JSON file is an object with these keys and kinds of values.

    Args:
        entry: whatever JSON gave.
        kinds: for each key `str`, `int` (one that an id may be: 64 bits, no truth value), `list`,
            or `object` for anything.
    """
    return isinstance(entry, dict) and all(
        key in entry
        and isinstance(entry[key], kind)
        and (kind is not int or (not isinstance(entry[key], bool) and abs(entry[key]) < 1 << 63))
        for key, kind in kinds.items()
    )


def gather(name, items, images, image_size, problems=None, missing="skip", verbose=True):
    """Records of the images that can be used, each a class of its own.

    Args:
        name: of the split.
        items: `Item`s, in order.
        images: the folder with the images, or None for captions without them: then paths are
            only names, nothing is looked up, and the dataset yields the names.
        image_size: of the images in the dataset.
        problems: where problems so far were collected.
        missing: `"skip"` goes on without photos that are not there and reports them, `"error"`
            raises.
        verbose: print one line with the counts.

    Returns:
        A `Loaded` tuple.

    Raises:
        ValueError: if `missing` is unknown.
        InputError: if nothing is left, or at the first problem unless `problems` collects them.
    """
    if missing not in ("skip", "error"):
        raise ValueError(f"`missing` must be 'skip' or 'error'; received {missing!r}")
    problems = problems or Problems()
    items = _with_captions(_distinct(items, problems), problems)
    if images is None:
        paths = [item.files[0] for item in items]
    else:
        items, paths = _with_pictures(items, existing_folder(images), problems, missing)
    if not items:
        raise InputError(f"{name}: no image with captions is left to use")
    counts = [len(item.captions) for item in items]
    ids, boxes = (
        [value for item in items for value in getattr(item, name)]
        if all(getattr(item, name) is not None for item in items)
        else None
        for name in ("caption_ids", "caption_boxes")
    )
    records = Records(
        name=name,
        image_paths=paths,
        captions=[caption for item in items for caption in item.captions],
        caption_image=np.repeat(np.arange(len(items)), counts),
        image_labels=np.arange(len(items)),
        image_ids=[item.image_id for item in items],
        skipped=tuple(problems.skipped),
        caption_ids=ids,
        caption_boxes=boxes,
    )
    if verbose:
        print(records.summary())
    size = None if images is None else image_size
    return Loaded(records, lambda: batches.pairs(records, size))


def _distinct(items, problems):
    seen = set()
    for item in items:
        if item.image_id in seen:
            problems.bad("duplicate images", item.where, f"image {item.image_id} occurs twice")
        elif not all(safe_relative(name) for name in item.files):
            why = f"{item.files[0]!r} leads out of the folder of the images"
            problems.bad("unsafe file names", item.where, why)
        else:
            seen.add(item.image_id)
            yield item


def _with_captions(items, problems):
    kept = []
    for item in items:
        good = [isinstance(caption, str) and bool(caption.strip()) for caption in item.captions]
        for number, fine in enumerate(good, start=1):
            if not fine:
                why = f"caption {number} of image {item.image_id} is empty"
                problems.bad("empty captions", item.where, why)
        if not item.captions:
            why = f"image {item.image_id} has no caption"
            problems.bad("images without captions", item.where, why)
        if any(good):
            pick = [index for index, fine in enumerate(good) if fine]
            ids = item.caption_ids and [item.caption_ids[index] for index in pick]
            boxes = item.caption_boxes and [item.caption_boxes[index] for index in pick]
            captions = [item.captions[index].strip() for index in pick]
            kept.append(item._replace(captions=captions, caption_ids=ids, caption_boxes=boxes))
    return kept


def _with_pictures(items, folder, problems, missing):
    there, paths = [], []
    for item in items:
        # `Path.is_file` raises where a name is too long.
        found = next((folder / name for name in item.files if isfile(folder / name)), None)
        if found is not None:
            there.append(item)
            paths.append(found)
        elif missing == "error":
            raise InputError(f"{item.where}: no file {folder / item.files[0]}")
        else:
            problems.missing("missing photos", folder / item.files[0])
    kept, good = [], []
    for item, path, why in zip(there, paths, check_images(paths), strict=True):
        if why is None:
            kept.append(item)
            good.append(str(path))
        else:
            problems.bad("bad images", path, why)
    return kept, good
