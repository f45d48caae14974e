"""What a user of each of the four paths has (tools/paths.py), where it is not given: drawn here.

python -m tools.path_inputs runs/toy_photos     # a folder of photos to train on, for `make`
"""

import csv
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from zoo.cli import OneLineParser, run
from zoo.data import cub, toy_birds

DRAWN = 200  # photos


def main(argv=None):
    parser = OneLineParser(prog="python -m tools.path_inputs", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder, for photos and pairs.csv")
    parser.add_argument("--count", type=int, default=DRAWN, help="of the photos, at most 480 (200)")
    options = parser.parse_args(argv)
    draw_photos(options.folder, options.count)


def prepare(name, where, photos):
    """What a user of a path has: photos and a table, two arrays, a photo to send."""
    if name == "photos" and photos is not None:
        (where / "photos").symlink_to(photos.resolve())
    elif name == "photos":
        draw_photos(where / "photos", DRAWN)
    elif name == "vectors":
        rng = np.random.default_rng(0)
        shared = rng.normal(size=(2000, 16))
        for side in ("images", "captions"):
            vectors = 2 * shared + rng.normal(size=shared.shape)
            np.save(where / f"{side}.npy", vectors.astype("float32"))
    elif name == "server":
        draw_photos(where / "one", 1)
        shutil.copy(next((where / "one").glob("*.jpg")), where / "a.jpg")


def draw_photos(folder, count):
    """Toy Birds as a user would have them: JPEG files and `pairs.csv`, five captions a photo."""
    drawn = toy_birds.generate(folder.with_name("drawn"), image_size=128, part="test")
    records = cub.load(drawn, split="test", verbose=False).records
    folder.mkdir(parents=True, exist_ok=True)
    rows = [("image", "caption")]
    chosen = np.linspace(0, records.num_images - 1, count).astype(int)
    for number, image in enumerate(chosen):
        with Image.open(records.image_paths[image]) as picture:
            picture.convert("RGB").save(folder / f"{number}.jpg")
        own = np.flatnonzero(records.caption_image == image)[:5]
        rows += [(f"{number}.jpg", records.captions[i]) for i in own]
    with (folder / "pairs.csv").open("w", newline="") as file:  # last: it says that all is there
        csv.writer(file).writerows(rows)


if __name__ == "__main__":
    run(main)
