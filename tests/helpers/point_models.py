"""The builders of points at a tiny size, on pictures and on precomputed regions."""

import numpy as np

import zoo
from zoo.data.text.captions import WordTokenizer

BUILDERS = ("vse0", "vsepp", "vse_infinity", "infonce", "vsrn")
WORDS = ["bird", "red", "blue", "wing", "a", "small"]
REGIONS = (5, 7)


def tiny(builder, image_backbone="tiny", max_words=3, **options):
    if isinstance(image_backbone, tuple):
        image_backbone = zoo.encoders.image_features(image_backbone)
    if builder.endswith("vsrn"):
        options = {"num_layers": 2, **options}
    options = {"dim": 8, "word_dim": 6, "image_size": 16, **options}
    return getattr(zoo.models, builder)(
        image_backbone, WordTokenizer(WORDS, max_words=max_words), **options
    )


def batch(model, pairs=6, seed=0):
    shape = model.image_encoder.input_shape[1:]
    return random_pairs(shape, model.caption_encoder.input_shape[1], pairs, seed)


def random_pairs(shape, length, pairs, seed=0):
    """A batch of images of some shape, or features, and captions of some length."""
    rng = np.random.default_rng(seed)
    labels = np.arange(pairs, dtype="int32")
    return {
        "images": rng.uniform(0, 255 if len(shape) == 3 else 1, (pairs, *shape)).astype("float32"),
        "captions": rng.integers(1, 8, (pairs, length)).astype("int32"),
        "image_labels": labels,
        "caption_labels": labels,
    }


def largest_difference(these, those):
    """Of two structures `{side: {name: array}}`."""
    assert {side: set(e) for side, e in these.items()} == {s: set(e) for s, e in those.items()}
    return max(
        float(np.abs(np.asarray(value) - np.asarray(those[side][name])).max())
        for side, embedding in these.items()
        for name, value in embedding.items()
    )
