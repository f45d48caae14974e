"""The elements of a set, one by one: what each attends to, and the caption nearest to it."""

from typing import TypedDict

import keras
import numpy as np

from zoo.layers import PolysemousEmbedding, SetPrediction

_WITH_ATTENTION = (SetPrediction, PolysemousEmbedding)


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
        pixels: uint8 `(size, size, 3)`, as `Encoders.pixels` gives them.

    Returns:
        An `Element` each.

    Raises:
        ValueError: if the model does not embed images as sets.
    """
    if gallery.kind != "a set":
        raise ValueError(f"the model must embed images as sets; it embeds them as {gallery.kind}")
    embedding = gallery.encoders.images([pixels])
    count = embedding["elements"].shape[1]
    real = embedding["mask"][0] if "mask" in embedding else np.ones(count, bool)
    weights = attention(gallery.model.image_encoder, np.asarray([pixels], np.float32))
    captions, cosines = [None] * count, [None] * count
    if gallery.captions:
        # As a set of its own an element has the cosine of its best pair for a similarity.
        alone = {"elements": embedding["elements"][0][:, None]}
        scores, rows = gallery.index("captions", "maximum_pair").search(alone, 1)
        captions = [gallery.captions[row] for row in rows[:, 0]]
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
        encoder: of the sub-models `"backbone"` and `"head"`, as the zoo's are, or one model.
        images: `(N, size, size, 3)`, 0 … 255.

    Returns:
        `(N, K, rows, columns)`, or None where no layer with attention is found, or it does not
        attend to a square map. An element of PIE-Net attends by weighted mean, a slot by its last
        round, mean over heads.
    """
    names = [layer.name for layer in encoder.layers]
    head, features = encoder, images
    if {"backbone", "head"} <= set(names):
        head = encoder.get_layer("head")
        features = encoder.get_layer("backbone")(images, training=False)
    layer = next((one for one in head.layers if isinstance(one, _WITH_ATTENTION)), None)
    if layer is None:
        return None
    before = keras.Model(head.inputs, layer.input)
    local, *others = before(features, training=False)
    if isinstance(layer, SetPrediction):
        weights = layer(local, *others, return_attention=True)["attention"]
    else:  # of the pooled feature nothing is attended to
        mask = others[1] if len(others) > 1 else None
        weights = layer.attention(local, mask=mask, return_attention=True)[1]
    weights = np.asarray(weights)
    side = round(weights.shape[-1] ** 0.5)
    if side * side != weights.shape[-1]:
        return None
    return weights.reshape(*weights.shape[:2], side, side)
