"""Toy Birds: drawn birds with known attributes, in the layout of CUB-200-2011 with captions.

`generate` writes a set, `zoo.data.cub.load` reads it as it reads the real one. What the real one
cannot give is the truth about ambiguity: `true_matches` does, and `oracle` what can be reached.
"""

import functools
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from zoo.data.toy import write_whole
from zoo.data.toy.birds import attributes, truth
from zoo.data.toy.birds.attributes import CAPTIONS_PER_IMAGE, describe
from zoo.data.toy.birds.drawing import draw
from zoo.data.toy.birds.truth import Truth, oracle, read_truth, true_matches

__all__ = ["Truth", "draw_again", "generate", "oracle", "read_truth", "true_matches"]

MANIFEST = "toy_birds.json"
VERSION = 1


def generate(
    root, seed=0, num_classes=120, images_per_class=16, image_size=64, part="all", more_classes=0
):
    """Draws a Toy Birds set into a folder, unless that folder already holds it.

    A quarter of the classes are the unseen test classes and each of the three validation splits
    is a third of the others, the proportions of Xian et al. for CUB (150 / 50, 100 + 50). Every
    attribute value of a test class also occurs in a training class.

    Args:
        root: the folder to make. If it holds anything but this set, it is left so (InputError).
        seed: the same seed and sizes give the same bytes.
        num_classes, images_per_class: species, at least 8, and birds of each, at least 4.
        image_size: width and height in pixels.
        part: `"test"` draws the unseen test classes alone; only that split can then be loaded.
        more_classes: further species to train on; all else stays what it is.

    Returns:
        The folder, a `pathlib.Path`, for `zoo.data.cub.load` and `true_matches`.
    """
    wanted = {
        "version": VERSION,
        "seed": int(seed),
        "num_classes": int(num_classes),
        "images_per_class": int(images_per_class),
        "image_size": int(image_size),
    }
    # Only what is not the default, so that a folder of an earlier version is still known.
    if part != "all":
        wanted["part"] = part
    if more_classes:
        wanted["more_classes"] = int(more_classes)
    return write_whole(root, MANIFEST, "Toy Birds", wanted, lambda folder: _write(folder, **wanted))


def draw_again(path, image_size=256):
    """The Pillow image of a file of `generate` at another size: the same bird in the same light."""
    path = Path(path)
    wanted, species = _set(path.parents[2] / MANIFEST)
    index = int(path.stem.rpartition("_")[2]) - 1
    rng = np.random.default_rng([wanted["version"], wanted["seed"], index])
    bird = attributes.individual(rng, species[index // wanted["images_per_class"]])
    return draw(rng, bird, image_size)[0]


def _write(
    folder, version, seed, num_classes, images_per_class, image_size, part="all", more_classes=0
):
    """Draws all species and writes the folder in CUB's layout. `part` "test" draws the unseen
    classes alone, with the same pixels as "all"."""
    rng = np.random.default_rng([version, seed])
    species = attributes.sample_species(rng, num_classes)
    spoken = attributes.species_names(rng, species)
    count = num_classes * images_per_class
    # CUB's own split, for classification with seen classes: half of the images each.
    seen_classes_split = rng.integers(0, 2, count)
    test = attributes.held_out(rng, species, num_classes // 4)
    # From numbers of their own: those of the others are not to change.
    item_rng = np.random.default_rng([version, seed, 0, more_classes])
    species = attributes.sample_species(item_rng, more_classes, species)
    spoken += attributes.species_names(item_rng, species[num_classes:], spoken)
    more = item_rng.integers(0, 2, more_classes * images_per_class)
    seen_classes_split = np.concatenate([seen_classes_split, more])
    count += len(more)
    names = [f"{number:03d}.{name}" for number, name in enumerate(spoken, start=1)]
    drawn = range(len(names)) if part == "all" else test
    for label in drawn:
        (folder / "images" / names[label]).mkdir(parents=True)
        (folder / "text_c10" / names[label]).mkdir(parents=True)

    def stem_of(index):
        label, copy = divmod(index, images_per_class)
        return f"{names[label]}/{names[label][4:]}_{copy + 1:04d}_{index + 1}"

    def make(index):
        label, stem = index // images_per_class, stem_of(index)
        item_rng = np.random.default_rng([version, seed, index])
        bird = attributes.individual(item_rng, species[label])
        picture, box, visible = draw(item_rng, bird, image_size)
        captions, named = zip(
            *(describe(item_rng, bird, visible) for _ in range(CAPTIONS_PER_IMAGE)), strict=True
        )
        picture.save(folder / "images" / f"{stem}.jpg", quality=92, subsampling=0)
        (folder / "text_c10" / f"{stem}.txt").write_text("".join(f"{c}\n" for c in captions))
        return box, attributes.codes(bird), visible, named

    indices = [i for i in range(count) if i // images_per_class in set(drawn)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = dict(zip(indices, pool.map(make, indices), strict=True))
    stems = {i: stem_of(i) for i in made}
    labels = {i: i // images_per_class for i in made}
    _lines(folder / "classes.txt", [f"{i} {name}" for i, name in enumerate(names, start=1)])
    _table(folder / "images.txt", {i: f"{stem}.jpg" for i, stem in stems.items()})
    _table(folder / "image_class_labels.txt", {i: label + 1 for i, label in labels.items()})
    boxes = {i: " ".join(f"{v:.1f}" for v in box) for i, (box, *_) in made.items()}
    _table(folder / "bounding_boxes.txt", boxes)
    _table(folder / "train_test_split.txt", {i: seen_classes_split[i] for i in made})
    _write_splits(rng, folder / "splits_pcme_xian", names, num_classes, test, stems, labels)
    truth.write(folder, list(stems.values()), [row[1:] for row in made.values()])


def _write_splits(rng, folder, names, num_classes, test, stems, labels):
    """The splits of the first `num_classes`; the classes beyond them are to train on in each."""
    folder.mkdir()
    trainval = [index for index in range(num_classes) if index not in set(test)]
    more = list(range(num_classes, len(names)))
    _lines(folder / "testclasses.txt", [names[index] for index in test])
    _lines(folder / "trainvalclasses.txt", [names[index] for index in trainval + more])
    for fold in (1, 2, 3):
        order = rng.permutation(trainval)
        cut = len(order) // 3
        _lines(folder / f"valclasses{fold}.txt", [names[i] for i in sorted(order[:cut])])
        _lines(
            folder / f"trainclasses{fold}.txt",
            [names[i] for i in sorted(order[cut:])] + [names[i] for i in more],
        )
    # As in CUB (1,764 of 11,788), about an eighth of the images test the seen classes.
    seen = []
    for label in trainval + more:
        class_stems = [stems[index] for index, other in labels.items() if other == label]
        if class_stems:
            chosen = rng.choice(len(class_stems), max(1, len(class_stems) // 8), replace=False)
            seen += [f"{class_stems[index]}.jpg" for index in sorted(chosen)]
    _lines(folder / "seen_test_images.txt", seen)


def _table(path, values):
    """A CUB table of `{index: value}`; its numbers count from 1."""
    _lines(path, [f"{index + 1} {value}" for index, value in values.items()])


def _lines(path, values):
    path.write_text("".join(f"{value}\n" for value in values))


@functools.lru_cache(maxsize=4)
def _set(manifest):
    """`(manifest, species)` of a drawn folder; the species are drawn again from its seed."""
    wanted = json.loads(manifest.read_text(encoding="utf-8"))
    rng = np.random.default_rng([wanted["version"], wanted["seed"]])
    return wanted, attributes.sample_species(rng, wanted["num_classes"])
