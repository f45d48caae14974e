"""Toy scenes: several Toy Birds in one picture, in the layouts of COCO, Flickr30K and SCAN.

`generate` writes a set, which the real ones' loaders read; `truth_matrix` knows which captions
are true of which scenes.
"""

import io
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from zoo.data.toy import write_whole
from zoo.data.toy.birds import attributes
from zoo.data.toy.scenes import truth
from zoo.data.toy.scenes.layouts import Scene, write_coco, write_flickr30k, write_regions
from zoo.data.toy.scenes.truth import (
    CAPTIONS_PER_IMAGE,
    SceneTruth,
    describe_scene,
    draw_scene,
    read_truth,
    truth_matrix,
)

__all__ = ["SceneTruth", "generate", "read_truth", "truth_matrix"]

MANIFEST = "toy_scenes.json"
VERSION = 1
_SHARES = {"train": 0.6, "restval": 0.1, "val": 0.1, "test": 0.2}


def generate(
    root, seed=0, num_images=1200, num_species=16, image_size=96, num_regions=12, region_dim=128
):
    """Draws toy scenes into a folder, unless that folder already holds them, and returns its path.

    One to three Toy Birds a picture and five captions, which count the birds, describe one or
    several, or say which is left of which; in three layouts:

    - `coco/`: `train2014/`, `val2014/`, and in `annotations/` the captions and instances in COCO's
      format, `coco_{train,restval,dev,test}_ids.npy` and `dataset_coco.json`. A category is a
      species of bird.
    - `flickr30k/`: `flickr30k-images/`, `dataset_flickr30k.json`.
    - `regions/`: `{train,dev,test,testall}_{ims.npy,caps.txt,ids.txt}`.

    60 % of the scenes are Karpathy's train, 10 % restval, 10 % val and 20 % test.

    Args:
        root, seed: as of `zoo.data.toy_birds.generate`.
        num_images, num_species: scenes, at least 10, and species, at least 2.
        image_size: width and height in pixels, at least 32.
        num_regions, region_dim: regions an image, at least 6: two for every bird; and their size.
    """
    wanted = {
        "version": VERSION,
        "seed": int(seed),
        "num_images": int(num_images),
        "num_species": int(num_species),
        "image_size": int(image_size),
        "num_regions": int(num_regions),
        "region_dim": int(region_dim),
    }
    return write_whole(
        root, MANIFEST, "toy scenes", wanted, lambda folder: _write(folder, **wanted)
    )


def _write(folder, version, seed, num_images, num_species, image_size, num_regions, region_dim):
    """Draws all scenes and writes them in the layouts of COCO, Flickr30K and regions."""
    rng = np.random.default_rng([version, seed])
    species = attributes.sample_species(rng, num_species)
    names = [name.replace("_", " ") for name in attributes.species_names(rng, species)]
    splits = rng.permutation(_splits(num_images))

    def make(index):
        item_rng = np.random.default_rng([version, seed, index])
        picture, birds = draw_scene(item_rng, species, image_size)
        captions, statements = zip(
            *(describe_scene(item_rng, birds) for _ in range(CAPTIONS_PER_IMAGE)), strict=True
        )
        jpeg = io.BytesIO()
        picture.save(jpeg, format="JPEG", quality=92, subsampling=0)
        scene = Scene(
            index + 1, str(splits[index]), jpeg.getvalue(), image_size, tuple(birds), captions
        )
        return scene, statements

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(make, range(num_images)))
    scenes = [scene for scene, _ in made]
    write_coco(folder / "coco", scenes, names)
    write_flickr30k(folder / "flickr30k", scenes)
    write_regions(folder / "regions", scenes, [version, seed], num_regions, region_dim)
    scene_truths = {scene.number: truth.SceneTruth(scene.birds, s) for scene, s in made}
    truth.write(folder, scene_truths)


def _splits(count):
    """Karpathy's split of each of so many scenes; each has one at least."""
    sizes = {split: max(1, round(share * count)) for split, share in _SHARES.items()}
    sizes["train"] += count - sum(sizes.values())
    return [split for split, size in sizes.items() for _ in range(size)]
