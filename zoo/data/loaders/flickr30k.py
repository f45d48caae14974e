"""Flickr30K in Karpathy's JSON, or in one by file name."""

import os
from pathlib import Path

from halo_search.errors import InputError
from halo_search.files.json_files import read_json
from zoo.data.loaders.gather import Record, gather, is_karpathy, karpathy_records
from zoo.data.records import Loaded, Problems

SPLITS = ("train", "val", "test")


def load(
    captions: str | os.PathLike,
    images: str | os.PathLike | None = None,
    split: str = "train",
    image_size: int = 224,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads one split of Flickr30K; every image is a class of its own.

    Args:
        captions: `dataset_flickr30k.json` in Karpathy's format; or a JSON object
            `{file name: {"split": …, "captions": […]}}`. A `.json.gz` is unpacked.
        images: the folder of the images, or None for the captions alone.
        split: `"train"` (29,000 images), `"val"` (1,014) or `"test"` (1,000).
        image_size, skip_bad, verbose: as of `zoo.data.cub.load`, as are Returns and Raises.

    Reference: Young et al., "From image descriptions to visual denotations" (TACL 2014).
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    path = Path(captions).expanduser()
    problems = Problems(skip_bad)
    content = read_json(path)
    if is_karpathy(content):
        # Karpathy's `imgid` is a running number; the file name is Flickr's own id.
        listed = karpathy_records(path, content, split, problems, "filename")
    else:
        listed = _records_by_name(path, content, split, problems)
    return gather(f"Flickr30K {split}", listed, images, image_size, problems, verbose=verbose)


def _records_by_name(path, content, split, problems):
    """Yields the records of a split from an object by file name; bad entries are problems."""
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path}: expected 'images' with 'sentences', or an object by file name")
    for name, entry in content.items():
        where = f"{path}: {name}"
        if not isinstance(entry, dict) or not isinstance(entry.get("captions"), list):
            problems.bad("bad entries", where, "expected 'split' and a list 'captions'")
        elif entry.get("split") not in SPLITS:
            problems.bad("bad entries", where, f"unknown split {entry.get('split')!r}")
        elif entry["split"] == split:
            yield Record((name,), name, entry["captions"], None, where)
