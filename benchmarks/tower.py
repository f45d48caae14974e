"""Encoding photos by a Tower, beside decoding them all and the model's own `predict`.

`HALO_BENCHMARK_PHOTOS=FOLDER python -m benchmarks tower`. The photos of a folder (the packaged,
if none is named) are repeated until there are 1,000, and encoded by the preset `photos_pfe`. Both
sides have all cores; `predict` gets the decoded photos as one array.
"""

import os

import numpy as np

import zoo
from benchmarks.report import Report
from benchmarks.timing import compare, peak_memory
from zoo import collection
from zoo.data import packaged_photos

PRESET, SEED = "photos_pfe", 0
ITEMS = int(os.environ.get("HALO_BENCHMARK_ITEMS", 1_000))
REPEATS, BATCH, MORE = 5, 64, 4


def main():
    return [speed(), memory()]


def photos(count=ITEMS):
    """Paths, of the same photos again and again."""
    root = os.environ.get("HALO_BENCHMARK_PHOTOS")
    paths = packaged_photos() if root is None else collection.pictures(root).values
    return [paths[i % len(paths)] for i in range(count)]


def speed():
    report = Report(f"{ITEMS:,} photos: decoding and `predict`, and a Tower", SEED)
    model, paths = zoo.from_preset(PRESET), photos()
    tower = zoo.Tower(model, "images", BATCH)
    vectors = {}

    def decode_and_predict():
        pixels = np.stack([tower.fitted(path) for path in paths])
        found = model.image_encoder.predict(pixels, batch_size=BATCH, verbose=0)
        vectors["predict"] = found["mean"]

    def of_files():
        vectors["tower"] = tower.of_files(paths)["mean"]

    found = compare({"predict": decode_and_predict, "tower": of_files}, REPEATS)
    for name, one in found.items():
        report.add(
            way=name,
            seconds=one.seconds,
            cpu_seconds=one.cpu_seconds,
            times_predict=one.seconds / found["predict"].seconds,
            cpu_times_predict=one.cpu_seconds / found["predict"].cpu_seconds,
        )
    difference = float(np.abs(vectors["tower"] - vectors["predict"]).max())
    report.notes.append(f"at most 1.03 times is wanted; largest difference {difference:.1g}")
    return report


def memory():
    report = Report(f"Memory of {ITEMS:,} photos, and of {MORE} times as many", SEED)
    for count in (ITEMS, MORE * ITEMS):
        found = peak_memory("benchmarks.tower:encoded", count=count)
        report.add(photos=count, mib=found / 2**20, mib_of_vectors=_mib_of_vectors(count))
    report.notes.append("the embedding itself grows; pixels of two batches do not")
    return report


def encoded(count):
    """What is counted: a warm tower encodes so many photos.

    TensorFlow and the allocator keep buffers for each thread that has met one, which takes some
    hundred photos; a tower is warm after that.
    """
    tower, paths = zoo.Tower(PRESET, "images", BATCH), photos(count)
    tower.of_files(photos(ITEMS))
    return lambda: tower.of_files(paths)


def _mib_of_vectors(count):
    dim = zoo.from_preset(PRESET).image_encoder.output["mean"].shape[-1]
    return count * 2 * dim * 4 / 2**20  # mean and log variance, float32
