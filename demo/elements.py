"""The elements of a set, one by one: what each attends to, and the caption nearest to it."""

import functools
from typing import TypedDict

import numpy as np


class Element(TypedDict):
    """One element: its number from 1, the caption with the nearest element and their cosine, and
    its attention `(rows, columns)`, which sums to one, or None where the model does not tell."""

    element: int
    caption: str | None
    cosine: float | None
    attention: list[list[float]] | None


def describe(gallery, pixels):
    """The elements of one image.

    Args:
        gallery: a `Gallery` of a model of sets.
        pixels: uint8 `(size, size, 3)`, as `Gallery.pixels` returns them.

    Returns:
        An `Element` each.

    Raises:
        ValueError: if the model does not embed images as sets.
    """
    if gallery.kind != "a set":
        raise ValueError(f"the model must embed images as sets; it embeds them as {gallery.kind}")
    embedding = gallery.of_pixels([pixels])
    count = embedding["elements"].shape[1]
    real = embedding["mask"][0] if "mask" in embedding else np.ones(count, bool)
    weights = attention(gallery.model.image_encoder, np.asarray([pixels], np.float32))
    captions, cosines = [None] * count, [None] * count
    if gallery.captions:
        # As a set of its own an element has the cosine of its best pair for a similarity.
        alone = {"elements": embedding["elements"][0][:, None]}
        scores, rows = gallery.index("captions", "maximum_pair").search(alone, 1)
        captions = [gallery.captions[row] for row in gallery.rows(rows[:, 0])]
        cosines = [float(score) for score in scores[:, 0]]
    return [
        Element(
            element=i + 1,
            caption=captions[i],
            cosine=cosines[i],
            attention=None if weights is None else weights[0, i].tolist(),
        )
        for i in range(count)
        if real[i]
    ]


def attention(encoder, images):
    """The attention of every element of an image encoder's sets.

    Args:
        encoder: the image encoder of a model of sets.
        images: `(N, size, size, 3)`, 0 … 255.

    Returns:
        `(N, K, rows, columns)`, or None where the encoder does not tell, or does not attend to a
        feature map.
    """
    try:
        looking, size = _looking(encoder)
    except ValueError:  # not an encoder of `dive` or `pvse`
        return None
    if size is None:
        return None
    weights = np.asarray(looking(images, training=False)["attention"])
    return weights.reshape(*weights.shape[:2], *size)


@functools.lru_cache(maxsize=2)
def _looking(encoder):
    from zoo import encoders  # which needs Keras

    return encoders.with_attention(encoder), encoders.map_size(encoder)
