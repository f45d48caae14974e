"""Crops A, B and their union C of a picture, which differ in ambiguity by construction; and phrases
about single birds of toy scenes, as Visual Genome has them."""

import json
import math
import shutil
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from zoo.data.loaders import coco
from zoo.data.records import Records
from zoo.data.toy import write_whole
from zoo.data.toy.birds.attributes import choose, mention
from zoo.data.toy.scenes.truth import read_truth
from zoo.images import pictures as images

_SHAKE = 0.04  # of a box's edges, relative to its size: nobody draws the same box twice


class CropTriplet(NamedTuple):
    """Two described regions of a picture, by the indices of their captions A and B, and the one
    around both; `boxes` are float32 `(3, 4)`, (x, y, width, height) of A, B and C in pixels."""

    image: int
    first: int
    second: int
    boxes: np.ndarray


def crop_triplets(
    records: Records, sizes: np.ndarray, largest: float = 1.0, num_regions: int = 10
) -> list[CropTriplet]:
    """One triplet of every picture that has one."""
    if records.caption_boxes is None:
        raise ValueError("`records` must have boxes of their captions; received none")
    sizes = np.asarray(sizes, np.float32)
    corners = _corners(records.caption_boxes, sizes[records.caption_image])
    area = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    share = area / np.prod(sizes[records.caption_image], axis=1)
    triplets = []
    for image in range(records.num_images):
        candidates = np.flatnonzero(
            (records.caption_image == image) & (area > 0) & (share <= largest)
        )
        if len(candidates) < 2:
            continue
        first, *others = candidates[np.argsort(-area[candidates], kind="stable")][:num_regions]
        overlap = _overlap(corners[first], corners[others])
        second = others[int(np.argmin(overlap))]
        both = corners[[first, second]]
        union = np.concatenate([both[:, :2].min(0), both[:, 2:].max(0)])
        boxes = np.stack([*both, union])
        boxes[:, 2:] -= boxes[:, :2]
        triplets.append(CropTriplet(image, int(first), int(second), boxes))
    return triplets


def crop(picture: np.ndarray, box: np.ndarray, size: int) -> np.ndarray:
    """A part of a picture, stretched to a square, uint8 `(size, size, 3)`; of the box (x, y, width,
    height) whole pixels that it touches are taken."""
    part = np.asarray(picture)[_pixels(box)]
    return np.asarray(tf.cast(tf.round(images.resize(part, size, "stretch")), tf.uint8))


def joined(first: str, second: str) -> str:
    """The caption of C: "A and B"."""
    return f"{first.strip().rstrip('.')} and {second.strip()}"


def _pixels(box):
    """Rows and columns of the whole pixels that a box touches."""
    x, y, width, height = box
    rows = slice(max(math.floor(y), 0), math.ceil(y + height))
    return rows, slice(max(math.floor(x), 0), math.ceil(x + width))


def _corners(boxes, sizes):
    """(left, top, right, bottom), cut to the picture."""
    ends = np.stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    return np.clip(ends, 0, sizes[:, None]).reshape(-1, 4)


def _overlap(box, others):
    """Intersection over union of one box with others, by their corners."""
    edges = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    intersection = np.prod(np.maximum(edges, 0), axis=1)
    area = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1)
    return intersection / (area - intersection)


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

    return write_whole(out, "toy_phrases.json", "phrases about toy scenes", wanted, write)


def _box(rng, bird):
    x, y, width, height = bird.box
    left, top, right, bottom = rng.normal(0, _SHAKE, 4) * [width, height, width, height]
    return {
        "x": round(float(x + left), 1),
        "y": round(float(y + top), 1),
        "width": round(float(width + right - left), 1),
        "height": round(float(height + bottom - top), 1),
    }
