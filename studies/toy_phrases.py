"""Phrases about single birds of toy scenes, as Visual Genome has them, for the crops' study."""

import json
import shutil

import numpy as np

from zoo.data.loaders import coco
from zoo.data.toy import write_whole
from zoo.data.toy.birds.attributes import choose, mention
from zoo.data.toy.scenes.truth import read_truth

PHRASES_MANIFEST = "toy_phrases.json"
_SHAKE = 0.04  # of a box's edges, relative to its size: nobody draws the same box twice


def describe_birds(root, out, split="test", seed=0, phrases_per_bird=3):
    """Writes phrases about the birds of those scenes that show several."""
    layout = root / "coco"
    records = coco.load(
        layout / "annotations" / "dataset_coco.json", layout, split=split, verbose=False
    ).records
    truths = read_truth(root)
    wanted = {
        "split": split,
        "seed": int(seed),
        "phrases_per_bird": int(phrases_per_bird),
        "images": [int(number) for number in records.image_ids],
    }

    def write(folder):
        (folder / "VG_100K").mkdir()
        entries, region = [], 0
        for path, number in zip(records.image_paths, wanted["images"], strict=True):
            birds = [bird for bird in truths[number].birds if min(bird.box[2:]) > 0]
            if len(birds) < 2:
                continue
            rng = np.random.default_rng([seed, number])
            regions = []
            for bird in birds * phrases_per_bird:
                phrase = mention(rng, bird.attributes, choose(rng, bird.attributes, bird.visible))
                region += 1
                regions.append(
                    {"region_id": region, "image_id": number, "phrase": phrase, **_box(rng, bird)}
                )
            entries.append({"id": number, "regions": regions})
            shutil.copyfile(path, folder / "VG_100K" / f"{number}.jpg")
        (folder / "region_descriptions.json").write_text(json.dumps(entries))

    return write_whole(out, PHRASES_MANIFEST, "phrases about toy scenes", wanted, write)


def _box(rng, bird):
    x, y, width, height = bird.box
    left, top, right, bottom = rng.normal(0, _SHAKE, 4) * [width, height, width, height]
    return {
        "x": round(float(x + left), 1),
        "y": round(float(y + top), 1),
        "width": round(float(width + right - left), 1),
        "height": round(float(height + bottom - top), 1),
    }
