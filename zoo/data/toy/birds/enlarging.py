"""A bird of a Toy Birds set, drawn again at another size."""

import functools
import json
from pathlib import Path

import numpy as np

from zoo.data.toy.birds import attributes
from zoo.data.toy.birds.drawing import draw
from zoo.data.toy.birds.writing import MANIFEST


def draw_again(path, image_size=256):
    """The picture of a file of `generate` at another size: the same bird in the same light.

    Args:
        path: of the file, in the folder that `generate` made.
        image_size: width and height in pixels.

    Returns:
        A Pillow image.

    Raises:
        OSError: if the folder's manifest cannot be read.
    """
    path = Path(path)
    wanted, species = _set(path.parents[2] / MANIFEST)
    index = int(path.stem.rpartition("_")[2]) - 1
    rng = np.random.default_rng([wanted["version"], wanted["seed"], index])
    bird = attributes.individual(rng, species[index // wanted["images_per_class"]])
    return draw(rng, bird, image_size)[0]


@functools.lru_cache(maxsize=4)
def _set(manifest):
    wanted = json.loads(manifest.read_text(encoding="utf-8"))
    rng = np.random.default_rng([wanted["version"], wanted["seed"]])
    return wanted, attributes.sample_species(rng, wanted["num_classes"])
