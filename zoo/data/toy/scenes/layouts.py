"""Writes toy scenes as COCO's and Flickr30K's files."""

import json
import re
from typing import NamedTuple

import numpy as np

from zoo.data.toy.birds.attributes import ATTRIBUTES, NAMES, codes
from zoo.data.toy.scenes.truth import CAPTIONS_PER_IMAGE, Bird

_NOISE, _PART_LOST = 0.25, 0.25
_OFFSETS = np.cumsum([0, *(len(values) for values in ATTRIBUTES.values())])


class Scene(NamedTuple):
    """One scene as it goes to disk: number from 1, Karpathy's split, bytes and (width, height) of
    its picture, birds from left to right, five captions."""

    number: int
    split: str
    jpeg: bytes
    size: int
    birds: tuple[Bird, ...]
    captions: tuple[str, ...]

    @property
    def caption_ids(self):
        """The ids of its captions, consecutive from a multiple of five."""
        first = CAPTIONS_PER_IMAGE * self.number
        return range(first, first + CAPTIONS_PER_IMAGE)

    @property
    def folder(self):
        """COCO's folder: Karpathy divided val2014 into restval, val and test."""
        return "train2014" if self.split == "train" else "val2014"

    @property
    def coco_name(self):
        return f"COCO_{self.folder}_{self.number:012d}.jpg"

    @property
    def flickr_name(self):
        return f"{self.number:010d}.jpg"


def write_coco(folder, scenes, species):
    """Fills a folder with COCO's images and `annotations/`, whose categories are the species."""
    annotations = folder / "annotations"
    annotations.mkdir(parents=True)
    categories = [
        {"id": number, "name": name, "supercategory": "bird"}
        for number, name in enumerate(species, start=1)
    ]
    for part in ("train2014", "val2014"):
        part_scenes = [scene for scene in scenes if scene.folder == part]
        (folder / part).mkdir()
        for scene in part_scenes:
            (folder / part / scene.coco_name).write_bytes(scene.jpeg)
        images = [
            {"id": s.number, "file_name": s.coco_name, "width": s.size, "height": s.size}
            for s in part_scenes
        ]
        captions = [
            {"id": number, "image_id": scene.number, "caption": text}
            for scene in part_scenes
            for number, text in zip(scene.caption_ids, scene.captions, strict=True)
        ]
        content = {"images": images, "annotations": captions}
        _write_json(annotations / f"captions_{part}.json", content)
        content = {
            "images": images,
            "annotations": _instances(part_scenes),
            "categories": categories,
        }
        _write_json(annotations / f"instances_{part}.json", content)
    for split, name in (("train", "train"), ("restval", "restval"), ("val", "dev"), ("test",) * 2):
        ids = [number for s in scenes if s.split == split for number in s.caption_ids]
        np.save(annotations / f"coco_{name}_ids.npy", np.array(ids, np.int64))
    entries = [
        {"filepath": s.folder, **_karpathy(s, s.coco_name, s.split), "cocoid": s.number}
        for s in scenes
    ]
    _write_json(annotations / "dataset_coco.json", {"images": entries, "dataset": "coco"})


def write_flickr30k(folder, scenes):
    """`dataset_flickr30k.json` and `flickr30k-images/`."""
    images = folder / "flickr30k-images"
    images.mkdir(parents=True)
    # Flickr30K has no restval; those images train, as everyone trains with them on COCO.
    splits = ["train" if scene.split == "restval" else scene.split for scene in scenes]
    for scene in scenes:
        (images / scene.flickr_name).write_bytes(scene.jpeg)
    entries = [
        _karpathy(scene, scene.flickr_name, split)
        for scene, split in zip(scenes, splits, strict=True)
    ]
    _write_json(folder / "dataset_flickr30k.json", {"images": entries, "dataset": "flickr30k"})


def tokens_of(caption):
    """The words of a caption as Karpathy's files have them: lower case, no punctuation."""
    return re.findall(r"[a-z0-9]+", caption.lower())


def write_regions(folder, scenes, seed, num_regions, region_dim):
    """Fills a folder with `{train,dev,test,testall}_{ims.npy,caps.txt,ids.txt}`."""
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
    for name, part_scenes in parts.items():
        rows = [
            _regions(np.random.default_rng([*seed, 2, scene.number]), scene, num_regions)
            for scene in part_scenes
        ]
        noise = np.random.default_rng([*seed, 3, len(part_scenes)])
        features = np.stack(rows) @ projection
        # Detectors' features come out of a ReLU.
        features = np.maximum(features + noise.normal(0, _NOISE, features.shape), 0)
        copies = CAPTIONS_PER_IMAGE if name in ("dev", "test") else 1
        features = np.repeat(features.astype(np.float32), copies, axis=0)
        np.save(folder / f"{name}_ims.npy", features)
        captions = [" ".join(tokens_of(text)) for scene in part_scenes for text in scene.captions]
        (folder / f"{name}_caps.txt").write_text("".join(f"{text}\n" for text in captions))
        ids = "".join(f"{scene.number}\n" * copies for scene in part_scenes)
        (folder / f"{name}_ids.txt").write_text(ids)


def _instances(scenes):
    """COCO's annotations of the birds of all scenes, with their boxes."""
    birds = [(scene.number, bird) for scene in scenes for bird in scene.birds]
    return [
        {
            "id": image * 10 + number,
            "image_id": image,
            "category_id": bird.species + 1,
            "bbox": list(bird.box),
            "area": round(bird.box[2] * bird.box[3], 1),
            "iscrowd": 0,
        }
        for number, (image, bird) in enumerate(birds)
    ]


def _karpathy(scene, name, split):
    """A scene as an entry of Karpathy's JSON."""
    number = scene.number - 1
    sentences = [
        {"tokens": tokens_of(text), "raw": text, "imgid": number, "sentid": sentid}
        for sentid, text in zip(scene.caption_ids, scene.captions, strict=True)
    ]
    sentids = list(scene.caption_ids)
    entry = {"filename": name, "imgid": number, "split": split}
    return {**entry, "sentids": sentids, "sentences": sentences}


def _write_json(path, content):
    path.write_text(json.dumps(content) + "\n")


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
        x, y, width, height = bird.box
        centre = np.array((x + width / 2, y + height / 2))
        rows[row, -2:] = 4 * (centre / scene.size - 0.5)
    return rows
