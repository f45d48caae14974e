"""COCO captions: the original JSON files, with Karpathy's division in either of its forms."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halo_search.errors import InputError
from halo_search.files.json_files import read_json
from zoo.data.loaders.gather import (
    SPLITS,
    Record,
    gather,
    has_fields,
    is_karpathy,
    karpathy_records,
    lacking,
)
from zoo.data.records import Loaded, Problems
from zoo.metrics.annotations import read_ids


def load(
    captions: str | os.PathLike | Sequence[str | os.PathLike],
    images: str | os.PathLike | None = None,
    ids: Any = None,
    split: str | None = None,
    image_size: int = 224,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads COCO captions, whole or a part of them; every image is a class of its own.

    Args:
        captions: `captions_*.json` in COCO's format, or several (Karpathy's division needs those
            of train2014 and val2014 together), or `dataset_coco.json` in Karpathy's.
        images: the folder of the images, or of their folders `train2014/` …; None: no images.
        ids: the captions to keep: annotation ids, or a file of them (`.npy`, or text with one a
            line), such as PCME's `coco_test_ids.npy`. Absent ones are in `records.skipped`.
        split: of `dataset_coco.json` alone: `"train"` (with `restval`), `"val"`, `"test"`,
            `"restval"`.
        image_size, skip_bad, verbose: as of `zoo.data.cub.load`, as are Returns and Raises.

    Reference: Lin et al., "Microsoft COCO" (ECCV 2014); Karpathy and Fei-Fei (CVPR 2015).
    """
    if split is not None and split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS} or None; received {split!r}")
    files = [captions] if isinstance(captions, str | Path) else list(captions)
    problems = Problems(skip_bad)
    contents = [(Path(file).expanduser(), read_json(file)) for file in files]
    if is_karpathy(contents[0][1]):
        listed = karpathy_records(*contents[0], split, problems, "cocoid")
    elif split is not None:
        raise InputError(
            f"{files[0]}: `split` must be None for files in COCO's own format; give `ids`, or "
            "dataset_coco.json"
        )
    else:
        listed = coco_records(contents, problems)
    if ids is not None:
        ids = read_ids(Path(ids).expanduser()) if isinstance(ids, str | Path) else ids
        listed = _keep(listed, set(map(int, ids)), problems)
    name = " ".join(["COCO", *([split] if split else [path.stem for path, _ in contents])])
    return gather(name, listed, images, image_size, problems, verbose=verbose)


def coco_records(contents, problems):
    """The images of `(path, content)` of files in COCO's format, as `Record`s. Raises InputError if
    a file has another format."""
    listed, seen = {}, set()
    for path, content in contents:
        for key in ("images", "annotations"):
            if not isinstance(content, dict) or not isinstance(content.get(key), list):
                raise InputError(f"{path}: expected a list {key!r}, as COCO's files have it")
        for entry in content["images"]:
            if not has_fields(entry, id=int, file_name=str):
                why = lacking(entry, id=int, file_name=str)
                problems.bad("bad entries", path, why)
                continue
            where = f"{path}: image {entry['id']}"
            if entry["id"] in listed:
                problems.bad("duplicate images", where, "the id occurs twice")
            else:
                name = entry["file_name"]
                listed[entry["id"]] = Record(_places(name, path), entry["id"], [], [], where)
        for entry in content["annotations"]:
            if not has_fields(entry, id=int, image_id=int, caption=object):
                why = lacking(entry, id=int, image_id=int, caption=object)
                problems.bad("bad entries", path, why)
                continue
            where = f"{path}: annotation {entry['id']}"
            if entry["id"] in seen:
                problems.bad("duplicate captions", where, "the id occurs twice")
            elif entry["image_id"] not in listed:
                problems.bad("captions without image", where, f"unknown image {entry['image_id']}")
            else:
                seen.add(entry["id"])
                listed[entry["image_id"]].captions.append(entry["caption"])
                listed[entry["image_id"]].caption_ids.append(entry["id"])
    return listed.values()


def _places(name, path):
    """Possible places of an image: the folder itself, or the folder of its COCO split."""
    split = re.search(r"(train|val|test)20\d\d", name) or re.search(
        r"(train|val|test)20\d\d", path.name
    )
    return (name, f"{split[0]}/{name}") if split else (name,)


def _keep(listed, wanted, problems):
    """The records with the captions whose ids are `wanted`; other captions are left out."""
    seen, records = set(), []
    for record in listed:
        pairs = [p for p in zip(record.captions, record.caption_ids, strict=True) if p[1] in wanted]
        if pairs:
            captions, numbers = map(list, zip(*pairs, strict=True))
            seen.update(numbers)
            records.append(record._replace(captions=captions, caption_ids=numbers))
    for number in sorted(wanted - seen):
        problems.missing("missing captions", f"caption {number}")
    return records
