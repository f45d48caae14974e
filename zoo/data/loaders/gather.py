"""Gathers listed records into `Records`: checks that are the same for every data set."""

from os.path import isfile
from typing import NamedTuple

import numpy as np

from halo_search.errors import InputError
from halo_search.files.decoding import check_images
from halo_search.files.folders import UNPRINTABLE, printable
from halo_search.files.text_files import existing_folder, portable, safe_relative
from zoo.data.pipeline import batches
from zoo.data.records import Loaded, Problems, Records

SPLITS = ("train", "val", "test", "restval")


class Record(NamedTuple):
    """One image of an annotation file, from `where` in it; the first of `files` that exists is
    taken. `caption_boxes` are (x, y, width, height); the split is None where nobody says."""

    files: tuple[str, ...]
    image_id: int | str
    captions: list[str]
    caption_ids: list[int] | None
    where: str
    caption_boxes: list[tuple[float, ...]] | None = None
    split: str | None = None


_KINDS = {int: "a whole number of 64 bits", str: "text", list: "a list", object: "a value"}


def has_fields(entry, **kinds):
    """Whether an entry of a JSON file is an object with these keys and kinds of values: `str`,
    `int` (one that an id may be: 64 bits, no truth value), `list`, or `object` for anything."""
    return isinstance(entry, dict) and all(
        key in entry and _is_of(entry[key], kind) for key, kind in kinds.items()
    )


def lacking(entry, **kinds):
    """Why `has_fields` is not true of an entry: a key is missing, or its value of another kind."""
    keys = ", ".join(map(repr, kinds))
    if not isinstance(entry, dict) or not kinds.keys() <= entry.keys():
        return f"expected the keys {keys} in {entry!r}"
    key, kind = next((key, kind) for key, kind in kinds.items() if not _is_of(entry[key], kind))
    return f"expected {_KINDS[kind]} as {key!r}, found {entry[key]!r}"


def _is_of(value, kind):
    """Whether a value has a type; an int must fit into 64 bits, and a bool is not an int."""
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return isinstance(value, kind)


def gather(name, listed, images, image_size, problems=None, missing="skip", verbose=True):
    """A `Loaded` tuple of the listed images that can be used, each a class of its own. Raises
    InputError as `problems` and `missing` decide."""
    problems = problems or Problems()
    listed = _with_captions(_distinct(listed, problems), problems)
    if images is None:
        paths = [record.files[0] for record in listed]
    else:
        listed, paths = _with_pictures(listed, existing_folder(images), problems, missing)
    if not listed:
        raise InputError(f"{name}: no image with captions is left to use")
    counts = [len(record.captions) for record in listed]
    ids, boxes = (
        [value for record in listed for value in getattr(record, name)]
        if all(getattr(record, name) is not None for record in listed)
        else None
        for name in ("caption_ids", "caption_boxes")
    )
    records = Records(
        name=name,
        image_paths=paths,
        captions=[caption for record in listed for caption in record.captions],
        caption_image=np.repeat(np.arange(len(listed)), counts),
        image_labels=np.arange(len(listed)),
        image_ids=[record.image_id for record in listed],
        skipped=tuple(problems.skipped),
        caption_ids=ids,
        caption_boxes=boxes,
    )
    if verbose:
        print(records.summary())
    size = None if images is None else image_size
    return Loaded(records, lambda: batches.pairs(records, size))


def is_karpathy(content):
    """Whether a JSON file has this format: images with their sentences inside."""
    entries = content.get("images") if isinstance(content, dict) else None
    return isinstance(entries, list) and any(
        has_fields(entry, sentences=object) for entry in entries
    )


def karpathy_records(path, content, split, problems, id_key):
    """The images of a split; `"train"` has `restval` in it, and None is all. Without `id_key` an
    image's id is its file name."""
    splits = {None: SPLITS, "train": ("train", "restval")}.get(split, (split,))
    for number, entry in enumerate(content["images"]):
        where = f"{path}: images[{number}]"
        if not has_fields(entry, filename=str, split=str, sentences=list):
            problems.bad("bad entries", where, "expected 'filename', 'split' and 'sentences'")
        elif entry["split"] not in SPLITS:
            problems.bad("bad entries", where, f"unknown split {entry['split']!r}")
        elif not all(has_fields(sentence, raw=object) for sentence in entry["sentences"]):
            problems.bad("bad entries", where, "expected sentences with 'raw'")
        elif not has_fields({"filepath": "", **entry}, filepath=str):
            problems.bad("bad entries", where, "expected text as 'filepath'")
        elif entry["split"] in splits:
            name = entry["filename"]
            folder = entry.get("filepath")
            image_id = entry.get(id_key, name)
            if not has_fields({"id": image_id}, id=int) and image_id != name:
                problems.bad("bad entries", where, f"expected a number as {id_key!r}")
                continue
            sentences = entry["sentences"]
            numbered = all(has_fields(sentence, sentid=int) for sentence in sentences)
            yield Record(
                (f"{folder}/{name}", name) if folder else (name,),
                image_id,
                [sentence["raw"] for sentence in sentences],
                [sentence["sentid"] for sentence in sentences] if numbered else None,
                where,
                split=entry["split"],
            )


def _distinct(listed, problems):
    """Yields records of safe file names and of ids that have not come before; others are
    problems."""
    seen = set()
    for record in listed:
        record = record._replace(files=tuple(map(portable, record.files)))
        if record.image_id in seen:
            problems.bad("duplicate images", record.where, f"image {record.image_id} occurs twice")
        elif any(printable(name) != name for name in record.files):
            problems.bad("unsafe file names", printable(record.where), UNPRINTABLE)
        elif not all(safe_relative(name) for name in record.files):
            why = f"{record.files[0]!r} leads out of the folder of the images"
            problems.bad("unsafe file names", record.where, why)
        else:
            seen.add(record.image_id)
            yield record


def _with_captions(listed, problems):
    """The records that have captions, without their empty ones; what is left out is a problem."""
    captioned = []
    for record in listed:
        good = [isinstance(caption, str) and bool(caption.strip()) for caption in record.captions]
        for number, fine in enumerate(good, start=1):
            if not fine:
                why = f"caption {number} of image {record.image_id} is empty"
                problems.bad("empty captions", record.where, why)
        if not record.captions:
            why = f"image {record.image_id} has no caption"
            problems.bad("images without captions", record.where, why)
        if any(good):
            pick = [index for index, fine in enumerate(good) if fine]
            ids = record.caption_ids and [record.caption_ids[index] for index in pick]
            boxes = record.caption_boxes and [record.caption_boxes[index] for index in pick]
            captions = [record.captions[index].strip() for index in pick]
            captioned.append(
                record._replace(captions=captions, caption_ids=ids, caption_boxes=boxes)
            )
    return captioned


def _with_pictures(listed, folder, problems, missing):
    """`(records, paths)` of the photos that exist and can be decoded. Raises InputError for missing
    ones if `missing` is "error", else they are problems."""
    there, paths, gone = [], [], []
    for record in listed:
        # `Path.is_file` raises where a name is too long.
        picture = next((folder / name for name in record.files if isfile(folder / name)), None)
        if picture is not None:
            there.append(record)
            paths.append(picture)
        else:
            gone.append(record)
    if gone and missing == "error":
        first = ", ".join(record.files[0] for record in gone[:3])
        raise InputError(
            f"{gone[0].where}: no file {folder / gone[0].files[0]}; {len(gone):,} of "
            f"{len(gone) + len(there):,} photos are missing: {first}{', …' if gone[3:] else ''}"
        )
    for record in gone:
        problems.missing("missing photos", folder / record.files[0])
    existing, good = [], []
    for record, path, why in zip(there, paths, check_images(paths), strict=True):
        if why is None:
            existing.append(record)
            good.append(str(path))
        else:
            problems.bad("bad images", path, why)
    return existing, good
