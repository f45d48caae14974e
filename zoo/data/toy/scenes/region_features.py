"""Region features of toy scenes, in the files of SCAN and its successors."""

import numpy as np

from zoo.data.toy.birds.attributes import ATTRIBUTES, NAMES, codes
from zoo.data.toy.scenes.layouts import tokens_of
from zoo.data.toy.scenes.scene import centre
from zoo.data.toy.scenes.statements import CAPTIONS_PER_IMAGE

_NOISE, _PART_LOST = 0.25, 0.25
_OFFSETS = np.cumsum([0, *(len(values) for values in ATTRIBUTES.values())])


def write_regions(folder, scenes, seed, num_regions, region_dim):
    """`{train,dev,test,testall}_{ims.npy,caps.txt,ids.txt}`.

    As in the published files, `test` is the first fifth of `testall`, and images are stored once
    (`train`, `testall`) or once for every caption (`dev`, `test`): readers must take both.

    Args:
        folder: to fill.
        scenes: `Scene`s.
        seed: integers, of the projection and of the noise.
        num_regions: regions an image, at least two for each bird.
        region_dim: size of a feature.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng([*seed, 1])
    projection = rng.normal(0, 1, (_OFFSETS[-1] + 2, region_dim)) / np.sqrt(len(NAMES) / 2)
    testall = [scene for scene in scenes if scene.split == "test"]
    parts = {
        "train": [scene for scene in scenes if scene.split in ("train", "restval")],
        "dev": [scene for scene in scenes if scene.split == "val"],
        "test": testall[: max(1, len(testall) // 5)],
        "testall": testall,
    }
    for name, own in parts.items():
        rows = [
            _regions(np.random.default_rng([*seed, 2, scene.number]), scene, num_regions)
            for scene in own
        ]
        noise = np.random.default_rng([*seed, 3, len(own)])
        features = np.stack(rows) @ projection
        # Detectors' features come out of a ReLU.
        features = np.maximum(features + noise.normal(0, _NOISE, features.shape), 0)
        copies = CAPTIONS_PER_IMAGE if name in ("dev", "test") else 1
        features = np.repeat(features.astype(np.float32), copies, axis=0)
        np.save(folder / f"{name}_ims.npy", features)
        captions = [" ".join(tokens_of(text)) for scene in own for text in scene.captions]
        (folder / f"{name}_caps.txt").write_text("".join(f"{text}\n" for text in captions))
        ids = "".join(f"{scene.number}\n" * copies for scene in own)
        (folder / f"{name}_ids.txt").write_text(ids)


def _regions(rng, scene, count):
    """What a detector might find: every bird twice, parts of birds, and background."""
    birds = list(range(len(scene.birds)))
    others = rng.choice([-1, *birds], count - 2 * len(birds))
    rows = np.zeros((count, _OFFSETS[-1] + 2))
    for row, index in enumerate(rng.permutation([*birds, *birds, *others])):
        if index < 0:
            continue
        bird = scene.birds[index]
        for column, (name, code) in enumerate(zip(NAMES, codes(bird.attributes), strict=True)):
            if name in bird.visible and rng.random() >= _PART_LOST:
                rows[row, _OFFSETS[column] + code] = 1
        rows[row, -2:] = 4 * (centre(bird.box) / scene.size - 0.5)
    return rows
