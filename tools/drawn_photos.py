"""Draws a folder of photos and captions to train on, as a user would have it.

python -m tools.drawn_photos runs/toy_photos     # for `make`
"""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from zoo.cli import OneLineParser, run
from zoo.data import cub, toy_birds

COUNT = 160  # of the photos, with five captions each


def main(argv=None):
    parser = OneLineParser(prog="python -m tools.drawn_photos", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder, for photos and pairs.csv")
    folder = parser.parse_args(argv).folder
    drawn = toy_birds.generate(folder.with_name("drawn"), image_size=128, part="test")
    records = cub.load(drawn, split="test", verbose=False).records
    folder.mkdir(parents=True, exist_ok=True)
    rows = [("image", "caption")]
    chosen = np.linspace(0, records.num_images - 1, COUNT).astype(int)
    for number, image in enumerate(chosen):
        with Image.open(records.image_paths[image]) as picture:
            picture.convert("RGB").save(folder / f"{number}.jpg")
        captions_of_image = np.flatnonzero(records.caption_image == image)[:5]
        rows += [(f"{number}.jpg", records.captions[i]) for i in captions_of_image]
    with (folder / "pairs.csv").open("w", newline="") as file:  # last: it says that all is there
        csv.writer(file).writerows(rows)


if __name__ == "__main__":
    run(main)
