"""The photos that come with the package: those of COCO's subset that may be shown, made small.

    python -m tools.packaged_photos ../shared/data/coco_subset      # halo_search/photos
    python -m tools.packaged_photos ../shared/data/coco_subset --captions  # of those that are there
    python -m tools.packaged_photos --vectors photos_pfe            # and what the demo starts with

Their licences are CC BY 2.0, CC BY-SA 2.0 and "no known copyright restrictions". Photos that may
not be changed (NoDerivs) or not be sold (NonCommercial) are left out. Metadata are not kept.
"""

import json
import re
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from halo_search.errors import InputError
from halo_search.photos import (
    CAPTIONS,
    COLUMNS,
    CREDITS,
    FOLDER,
    VECTORS,
    packaged_photos,
)
from zoo.cli import OneLineParser, run

LICENCES = {
    4: ("CC BY 2.0", "https://creativecommons.org/licenses/by/2.0/"),
    5: ("CC BY-SA 2.0", "https://creativecommons.org/licenses/by-sa/2.0/"),
    7: ("No known copyright restrictions", "https://www.flickr.com/commons/usage/"),
}
SIDE, QUALITY = 320, 80
HEAD = """\
# Photos of Flickr that COCO's images.json names (https://cocodataset.org), each made smaller to
# {side} pixels. The licence of each photo holds for its smaller copy too. COCO records neither
# title nor author, and the files hold no metadata: the photo's page on Flickr names both.
# The captions in CAPTIONS are of the COCO Consortium, CC BY 4.0
# (https://creativecommons.org/licenses/by/4.0/), as they are but for spaces.
"""
OF_CAPTIONS = """\
# Captions of COCO (https://cocodataset.org), of the COCO Consortium, CC BY 4.0
# (https://creativecommons.org/licenses/by/4.0/): file, tab, caption.
"""


def main(argv=None):
    parser = OneLineParser(description=__doc__)
    parser.add_argument("source", type=Path, nargs="?", help="folder with captions.json, images/")
    parser.add_argument("--vectors", metavar="PRESET", help="encode the photos that are there")
    parser.add_argument("--captions", action="store_true", help="write the captions alone")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args(argv)
    if options.vectors is not None:
        return write_vectors(options.vectors, options.out)
    if options.source is None:
        raise InputError("name the folder with captions.json, or --vectors PRESET")
    if not options.captions:
        write_photos(options)
    return write_captions(options.source, options.out)


def write_captions(source, out):
    """Writes what COCO's people wrote of the photos that are there."""
    annotations = json.loads((source / "captions.json").read_text())
    names = {image["id"]: _name(image) for image in annotations["images"]}
    there = {path.name for path in out.glob("*.jpg")}
    rows = [
        (names[caption["image_id"]], " ".join(caption["caption"].split()))
        for caption in sorted(annotations["annotations"], key=lambda caption: caption["id"])
        if names[caption["image_id"]] in there
    ]
    lines = "".join(f"{name}\t{text}\n" for name, text in sorted(rows, key=lambda row: row[0]))
    (out / CAPTIONS).write_text(OF_CAPTIONS + lines, encoding="utf-8")
    print(f"{len(rows)} captions in {out / CAPTIONS}")


def write_vectors(preset, out):
    """Encodes the photos, so that the page need not when it starts."""
    from zoo.models.tower import Tower, weights_sha256

    tower = Tower(preset, "images")
    weights = weights_sha256(tower.model)
    halves = {key: x.astype(np.float16) for key, x in tower.of_files(packaged_photos()).items()}
    np.savez_compressed(out / VECTORS, weights_sha256=weights, **halves)
    print(f"{out / VECTORS}: {(out / VECTORS).stat().st_size / 1e6:.1f} MB")


def write_photos(options):
    """Copies the photos that may be shown, smaller, and says whose they are."""
    images = json.loads((options.source / "captions.json").read_text())["images"]
    shown = sorted((image for image in images if image.get("license") in LICENCES), key=_name)
    options.out.mkdir(parents=True, exist_ok=True)
    lines = [HEAD.format(side=SIDE) + "\t".join(COLUMNS)]
    for image in shown:
        with Image.open(options.source / "images" / _name(image)) as opened:
            picture = ImageOps.exif_transpose(opened).convert("RGB")
        picture.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        picture.save(options.out / _name(image), "JPEG", quality=QUALITY, optimize=True)
        lines.append("\t".join((_name(image), *_credit(image))))
    (options.out / CREDITS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in options.out.glob("*.jpg"))
    print(f"{len(shown)} photos, {size / 1e6:.1f} MB, in {options.out}")


def _name(image):
    return image["file_name"]


def _credit(image):
    number = re.search(r"/(\d+)_", image["flickr_url"])[1]
    return number, *LICENCES[image["license"]], f"https://www.flickr.com/photo.gne?id={number}"


if __name__ == "__main__":
    run(main)
