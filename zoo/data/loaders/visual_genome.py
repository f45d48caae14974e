"""Visual Genome: phrases that describe parts of images, each with its box."""

import math
import os
from pathlib import Path

from halo_search.errors import InputError
from halo_search.files.json_files import read_json
from zoo.data.loaders.gather import Record, gather, has_fields
from zoo.data.records import Loaded, Problems

_FOLDERS = ("VG_100K/", "VG_100K_2/", "")
_BOX = ("x", "y", "width", "height")


def load(
    descriptions: str | os.PathLike,
    images: str | os.PathLike | None = None,
    image_size: int = 224,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads Visual Genome's region descriptions; every image is a class of its own, and
    `records.caption_boxes` are the boxes of the file, in pixels of the stored picture.

    Args:
        descriptions: `region_descriptions.json`: a list of `{"regions": [{"region_id", "image_id",
            "phrase", "x", "y", "width", "height"}, …]}`, an entry an image.
        images: the folder of the images `ID.jpg`, which may lie in `VG_100K/` and `VG_100K_2/`
            below it. None: the phrases alone.
        image_size, skip_bad, verbose: as of `zoo.data.cub.load`, as are Returns and Raises.

    Reference: Krishna et al., "Visual Genome" (IJCV 2017).
    """
    path = Path(descriptions).expanduser()
    content = read_json(path)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise InputError(f"{path}: expected a list of objects with 'regions'")
    problems = Problems(skip_bad)
    listed = _records(path, content, problems)
    return gather("Visual Genome", listed, images, image_size, problems, verbose=verbose)


def _records(path, content, problems):
    """Yields a record per image with its good regions; bad entries are problems."""
    seen = set()
    for number, entry in enumerate(content):
        where = f"{path}: [{number}]"
        regions = entry.get("regions")
        if not isinstance(regions, list):
            problems.bad("bad entries", where, "expected a list 'regions'")
            continue
        owners = [region["image_id"] for region in regions if has_fields(region, image_id=int)]
        image_id = entry.get("id", owners[0] if owners else None)
        if not has_fields({"id": image_id}, id=int):
            problems.bad("bad entries", where, "expected an 'id', or regions with an 'image_id'")
            continue
        good = [region for region in regions if _is_good(region, image_id, path, seen, problems)]
        yield Record(
            files=tuple(f"{folder}{image_id}.jpg" for folder in _FOLDERS),
            image_id=image_id,
            captions=[region["phrase"] for region in good],
            caption_ids=[region["region_id"] for region in good],
            where=where,
            caption_boxes=[tuple(region[key] for key in _BOX) for region in good],
        )


def _is_good(region, image_id, path, seen, problems):
    """Whether a region is new, of this image, and has a box; else it is a problem."""
    kinds = {"region_id": int, "image_id": int, **dict.fromkeys(("phrase", *_BOX), object)}
    if not has_fields(region, **kinds):
        problems.bad("bad entries", path, f"expected a region with its box, found {region!r}")
        return False
    where = f"{path}: region {region['region_id']}"
    box = [region[key] for key in _BOX]
    if region["image_id"] != image_id:
        problems.bad("bad entries", where, f"of image {region['image_id']}, among {image_id}'s")
    elif region["region_id"] in seen:
        problems.bad("duplicate captions", where, "the id occurs twice")
    elif not all(isinstance(value, int | float) and math.isfinite(value) for value in box):
        problems.bad("bad boxes", where, f"expected numbers, found {box}")
    elif box[2] <= 0 or box[3] <= 0:
        problems.bad("bad boxes", where, f"expected a width and height above 0, found {box}")
    else:
        seen.add(region["region_id"])
        return True
    return False
