"""How many images a second the data pipelines deliver, beside Pillow doing the same work alone."""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from benchmarks.report import Report
from benchmarks.timing import compare
from zoo import encoders, models, training
from zoo.data import Augmentation, Records, batches, captions, cub, sources, toy_birds

_AUGMENTATION = Augmentation(flip=True, cutout=0.2, word_dropping=0.1)
_PHOTOS, _BATCH, _TOY_STEPS, _PHOTO_STEPS = 256, 64, 200, 12


def main():
    with tempfile.TemporaryDirectory() as folder:
        birds = Path(folder) / "birds"
        return [_toy(birds), _beside_training(birds), _photos(Path(folder))]


def _toy(root):
    start, cpu_start = time.perf_counter(), time.process_time()
    toy_birds.generate(root)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    records = cub.load(root, image_size=64, verbose=False).records
    tokenizer = captions.word_tokenizer(records.captions)
    functions = {}
    for name, cache in (("in memory", True), ("decoded each time", False)):
        source = sources.Pictures(records, 64, cache=cache)
        options = {"augmentation": _AUGMENTATION, "num_steps": _TOY_STEPS}
        dataset = batches.class_pairs(records, tokenizer, source, batch_size=_BATCH, **options)
        functions[name] = _all(dataset)
    report = Report(f"Toy Birds, 64 x 64, batches of {_BATCH} pairs with Cutout, flip", seed=0)
    _add_rates(report, compare(functions, repeats=3), _TOY_STEPS * _BATCH)
    report.notes.append(
        f"toy_birds.generate: 1,920 images and 19,200 captions in {seconds:.1f} s, {cpu:.1f} CPU-s"
    )
    return report


def _beside_training(root):
    """The pipeline of `recipes/pcme_cub.py` on Toy Birds beside the training step that it feeds."""
    records = cub.load(root, image_size=64, verbose=False).records
    tokenizer = captions.word_tokenizer(records.captions, max_words=24)
    model = models.pcme(encoders.convolutional("tiny", 64), tokenizer, dim=64, word_dim=64)
    model.compile(optimizer=training.AdamP(1e-3))
    pairs, steps = 90, 40
    dataset = batches.class_pairs(
        records,
        tokenizer,
        sources.Pictures(records, 64),
        batch_size=pairs,
        augmentation=Augmentation(cutout=0.2, word_dropping=0.1),
        num_steps=steps,
    )
    batch = next(iter(dataset))
    again = tf.data.Dataset.from_tensors(batch).repeat(steps)  # costs nothing to produce
    functions = {
        "pipeline alone": _all(dataset),
        "training steps on one batch": lambda: model.fit(again, verbose=0),
        "training steps on the pipeline": lambda: model.fit(dataset, verbose=0),
    }
    measured = compare(functions, repeats=3)
    report = Report(f"PCME on Toy Birds, batches of {pairs} pairs of 64 x 64", seed=0)
    _add_rates(report, measured, steps * pairs)
    alone, step, both = (measured[name].seconds for name in functions)
    report.notes.append(
        f"the pipeline alone is {step / alone:.1f} times as fast as training; training on it takes "
        f"{both / step:.2f} times as long as on one batch again and again"
    )
    return report


def _photos(folder):
    """Photographs of COCO's usual size, made here: smooth colour with the noise of a camera."""
    rng = np.random.default_rng(0)
    paths = []
    for index in range(_PHOTOS):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        picture = np.asarray(coarse.resize((640, 480), Image.Resampling.BICUBIC)).astype(int)
        noisy = (picture + rng.normal(0, 8, picture.shape)).clip(0, 255).astype(np.uint8)
        paths.append(str(folder / f"{index}.jpg"))
        Image.fromarray(noisy).save(paths[-1], quality=90)
    size = sum(os.path.getsize(path) for path in paths) / len(paths)
    records = Records(
        "photos", paths, ["a photo"] * len(paths), range(len(paths)), range(len(paths)), paths
    )
    tokenizer = captions.word_tokenizer(records.captions)
    source = sources.Pictures(records, 224, crop_fraction=0.875, cache=False)
    options = {"augmentation": _AUGMENTATION, "num_steps": _PHOTO_STEPS}
    dataset = batches.image_caption_pairs(records, tokenizer, source, batch_size=_BATCH, **options)

    def pillow():
        for path in paths[:128]:
            with Image.open(path) as image:
                side = round(0.875 * min(image.size))
                left, top = (image.width - side) // 2, (image.height - side) // 2
                box = (left, top, left + side, top + side)
                np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR, box), np.float32)

    measured = compare({"pipeline": _all(dataset), "Pillow alone": pillow}, repeats=3)
    report = Report(f"640 x 480 JPEG of {size / 1024:.0f} KiB to 224 x 224", seed=0)
    _add_rates(report, {"pipeline": measured["pipeline"]}, _PHOTO_STEPS * _BATCH)
    _add_rates(report, {"Pillow alone": measured["Pillow alone"]}, 128)
    report.notes.append("Pillow decodes and resizes in one thread, without batching or augmenting")
    return report


def _all(dataset):
    """A function that runs a finite pipeline from its start to its end.

    Not a part of a running one: what it had prefetched before the clock started would count.
    """

    def run():
        for batch in dataset:
            last = batch["images"]
        return last

    return run


def _add_rates(report, measured, images):
    for name, seconds in measured.items():
        report.add(
            what=name,
            images_per_second=images / seconds.seconds,
            images_per_cpu_second=images / seconds.cpu_seconds,
        )
