"""The contract of every similarity layer."""

import keras

from zoo.embeddings import as_embedding


class Similarity(keras.layers.Layer):
    """Base of the similarity layers: two batches of embeddings in, a matrix of logits out.

    Subclasses write `call(images, captions)`. They create their scale and shift, if any, in
    `__init__`, since there are only scalars and no shape to wait for.

    Call arguments:
        images: N embeddings of images, a dict of tensors or what `encode_images` returned.
        captions: M embeddings of captions, likewise.

    Output: `(N, M)` float32, higher is better. Always float32, whatever the global precision:
        distances of near-identical points do not survive half precision.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.built = True

    def __call__(self, images, captions, **kwargs):
        # Distributions are not tensors, so Keras must not see them as layer inputs.
        images, captions = as_embedding(images, "images"), as_embedding(captions, "captions")
        return super().__call__(images, captions, **kwargs)
