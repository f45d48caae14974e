"""How much captions have in common with images: CIDEr with their positives, for any batch."""

import numpy as np
import tensorflow as tf

from zoo.data.text.captions import normalise
from zoo.metrics.blocks import SimilarityMatrix
from zoo.metrics.cider_factors import cider_factors


class Semantics:
    """SEM(image, caption) of a split: the mean CIDEr of the caption with the image's positives."""

    def __init__(self, factors, group_of_image, column_of_caption=None):
        if column_of_caption is None:
            column_of_caption = np.arange(factors.shape[1])
        self.factors = factors
        self.group_of_image = np.asarray(group_of_image)
        self.column_of_caption = np.asarray(column_of_caption)
        self.shape = (len(self.group_of_image), len(self.column_of_caption))

    def repeated(self, count):
        """Semantics of `count` copies of all images and captions, one copy after the other."""
        parts = (self.group_of_image, self.column_of_caption)
        return Semantics(self.factors, *(np.tile(part, count) for part in parts))

    def block(self, images, captions):
        """SEM of some images and captions by their indices, float32 `(n, m)`."""
        groups, place = np.unique(self.group_of_image[images], return_inverse=True)
        return self.factors.scores(groups, self.column_of_caption[captions])[place.ravel()]

    def of_batch(self, images, captions):
        """`block` in the graph, of int tensors of known lengths."""
        part = tf.numpy_function(self.block, [images, captions], tf.float32, stateful=False)
        return tf.ensure_shape(part, (images.shape[0], captions.shape[0]))

    def matrix(self):
        """All of it, a `SimilarityMatrix` `(N, M)`, for a split to evaluate on, not to train on.
        Images that share their positives share a row."""
        return SimilarityMatrix(self.factors.matrix(), self.group_of_image, self.column_of_caption)


def semantics(records, variant="cider", verbose=True):
    """The `Semantics` of a split. Raises ValueError if an image has no caption of its label."""
    labels, group_of = np.unique(records.caption_labels, return_inverse=True)
    place = np.minimum(np.searchsorted(labels, records.image_labels), len(labels) - 1)
    if not np.array_equal(labels[place], records.image_labels):
        raise ValueError("`records` must have a caption with the label of every image")
    _, image_of = np.unique(records.caption_image, return_inverse=True)
    words = _words(records.captions)
    factors = cider_factors(words, group_of, variant, verbose=verbose, document_of=image_of)
    return Semantics(factors, place)


def _words(captions):
    """Lower case, letters and digits alone, as word tokenizers read them."""
    words = []
    for start in range(0, len(captions), 65536):
        block = tf.constant(list(captions[start : start + 65536]), tf.string)
        words += [text.decode("utf-8") for text in normalise(block).numpy()]
    return words
