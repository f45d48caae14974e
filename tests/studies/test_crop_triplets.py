"""The crops of the controlled ambiguity experiment, by the paper's rule."""

import json

import numpy as np
import pytest

from studies import crop_triplets
from zoo.data import toy_scenes, visual_genome
from zoo.data.records import Records
from zoo.errors import InputError


def records(*pictures):
    """Pictures of (x, y, width, height) boxes."""
    boxes = [box for picture in pictures for box in picture]
    owner = [index for index, picture in enumerate(pictures) for _ in picture]
    return Records(
        name="boxes",
        image_paths=[f"{i}.jpg" for i in range(len(pictures))],
        captions=[f"thing {i}." for i in range(len(boxes))],
        caption_image=owner,
        image_labels=np.arange(len(pictures)),
        image_ids=np.arange(len(pictures)),
        caption_boxes=boxes,
    )


def iou_of_pixels(one, other, side=100):
    """By counting."""

    def inside(box):
        pixels = np.zeros((side, side), bool)
        x, y, width, height = (int(value) for value in box)
        pixels[y : y + height, x : x + width] = True
        return pixels

    one, other = inside(one), inside(other)
    return (one & other).sum() / (one | other).sum()


def test_the_rule_of_the_paper_by_explicit_loops():
    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(20):
        corner = rng.integers(0, 60, (14, 2))
        pictures.append(np.concatenate([corner, rng.integers(3, 40, (14, 2))], axis=1).tolist())
    data = records(*pictures)
    found = crop_triplets.crop_triplets(data, [(100, 100)] * 20, largest=0.09, num_regions=6)
    assert [triplet.image for triplet in found] == list(range(20))
    for triplet, boxes in zip(found, pictures, strict=True):
        small = [i for i, (_, _, w, h) in enumerate(boxes) if w * h <= 900]
        ranked = sorted(small, key=lambda i: -boxes[i][2] * boxes[i][3])[:6]
        a = ranked[0]
        b = min(ranked[1:], key=lambda i: iou_of_pixels(boxes[a], boxes[i]))
        first = 14 * triplet.image
        assert (triplet.first - first, triplet.second - first) == (a, b)
        (ax, ay, aw, ah), (bx, by, bw, bh) = boxes[a], boxes[b]
        left, top = min(ax, bx), min(ay, by)
        union = (left, top, max(ax + aw, bx + bw) - left, max(ay + ah, by + bh) - top)
        np.testing.assert_allclose(triplet.boxes, [boxes[a], boxes[b], union])


def test_boxes_are_cut_to_the_picture_and_what_is_outside_is_no_region():
    data = records(
        [(-10, 0, 20, 10), (50, 90, 30, 30), (200, 200, 5, 5)],  # the last is outside
        [(0, 0, 10, 10)],  # one region makes no triplet
        [(0, 0, 90, 90), (0, 0, 5, 5)],  # one is too large
    )
    (triplet,) = crop_triplets.crop_triplets(data, [(100, 100)] * 3, largest=0.5)
    expected = [(50, 90, 30, 10), (0, 0, 10, 10), (0, 0, 80, 100)]
    np.testing.assert_allclose(triplet.boxes, expected)
    assert (triplet.first, triplet.second) == (1, 0)


def test_toy_scenes_as_visual_genome(tmp_path):
    sizes = {"num_images": 50, "num_species": 6, "image_size": 48, "region_dim": 16}
    scenes_root = toy_scenes.generate(tmp_path / "scenes", seed=3, **sizes)
    folder = crop_triplets.describe_birds(scenes_root, tmp_path / "phrases", "train")
    loaded = visual_genome.load(
        folder / "region_descriptions.json", folder, image_size=48, verbose=False
    ).records
    truths = toy_scenes.read_truth(scenes_root)
    counts = np.bincount(loaded.caption_image)
    for image, number in enumerate(loaded.image_ids):
        birds = [bird for bird in truths[number].birds if min(bird.box[2:]) > 0]
        assert len(birds) >= 2
        assert counts[image] == 3 * len(birds)
        boxes = loaded.caption_boxes[loaded.caption_image == image]
        for index, box in enumerate(boxes):
            bird = birds[index % len(birds)]
            np.testing.assert_allclose(box, bird.box, atol=0.3 * max(bird.box[2:]))
    triplets = crop_triplets.crop_triplets(loaded, [(48, 48)] * loaded.num_images)
    assert len(triplets) == loaded.num_images
    again = json.loads((folder / "toy_phrases.json").read_text())
    assert again["split"] == "train"
    crop_triplets.describe_birds(scenes_root, folder, "train")  # is there already
    with pytest.raises(InputError, match="phrases"):
        crop_triplets.describe_birds(scenes_root, folder, "train", seed=1)
