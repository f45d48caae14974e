"""Runs of random embeddings, whose labels and uncertainties mean something, for the report."""

import numpy as np

from zoo.data import Records
from zoo.embeddings import uncertainty
from zoo.evaluation.retrieval import EncodedSplit

WORDS = ("red", "blue", "crown", "short", "bill", "wing", "small", "long")


def records(images=40, captions_per_image=3, labels=8, seed=0):
    rng = np.random.default_rng(seed)
    count = images * captions_per_image
    texts = [" ".join(["a bird", *rng.choice(WORDS, rng.integers(1, 6))]) for _ in range(count)]
    return Records(
        name="random",
        image_paths=[f"{i}.png" for i in range(images)],
        captions=texts,
        caption_image=np.arange(count) // captions_per_image,
        image_labels=np.arange(images) % labels,
        image_ids=np.arange(images),
        class_names=tuple(f"{i:03d}.Class_{i}" for i in range(labels)),
    )


def encoded(shown, dim=6, seed=0, kind="gaussian"):
    """Means around their label's, the further away the larger the variance."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(int(shown.image_labels.max()) + 1, dim))

    def side(labels):
        log_variance = rng.normal(-3, 1.0, (len(labels), 1)) + rng.normal(
            0, 0.2, (len(labels), dim)
        )
        noise = rng.normal(size=(len(labels), dim)) * np.exp(0.5 * log_variance) * 4
        mean = (centres[labels] + noise).astype("float32")
        if kind == "point":
            return {"mean": mean}
        if kind == "set":
            spread = np.exp(0.5 * log_variance.astype("float32"))[:, None]
            return {"elements": mean[:, None] + rng.normal(size=(len(labels), 3, dim)) * spread}
        return {"mean": mean, "log_variance": log_variance.astype("float32")}

    images, captions = side(shown.image_labels), side(shown.caption_labels)
    if kind == "point":
        return EncodedSplit(shown, images, captions)
    name = {"gaussian": "log_det", "set": "circular_variance"}[kind]
    values = [np.asarray(uncertainty(one, name)) for one in (images, captions)]
    return EncodedSplit(shown, images, captions, *values, name, name)


def picture(index):
    return np.random.default_rng(index).integers(0, 255, (8, 8, 3), np.uint8)
