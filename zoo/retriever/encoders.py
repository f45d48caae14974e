"""A model's two towers for questions: one at a time, from several threads, of any batch size."""

import os

import numpy as np
import tensorflow as tf

from zoo import embeddings
from zoo.arrays import joined, parts_of
from zoo.data import images
from zoo.data.reading.folders import printable
from zoo.data.reading.pictures import check_images, decoded
from zoo.data.text.captions import unknown_words
from zoo.errors import InputError

_BATCH = 64


class Encoders:
    """Captions and pictures to embeddings (dicts of arrays), compiled once for any batch size.

    `DualEncoder.encode_*` goes through `predict`, which is made for many items and not for
    threads: it costs 50 ms a call, this 2 to 5.

    Args:
        model: a `DualEncoder` with a tokenizer, whose images are pictures.
        mode, crop_fraction: how pictures become squares, as in training, see
            `zoo.data.images.prepare` and `zoo.evaluation.resizing_of`.

    Raises:
        InputError: if it is no such model.
    """

    reads_words = True

    def __init__(self, model, mode="crop", crop_fraction=1.0):
        shape = model.image_encoder.inputs[0].shape
        if len(shape) != 4 or shape[1] is None or shape[1] != shape[2]:
            raise InputError(
                f"the model reads features of shape {tuple(shape[1:])}, not square pictures, so "
                "it cannot be asked with pictures"
            )
        if model.tokenizer is None:
            raise InputError("the model has no tokenizer, so it cannot be asked in words")
        kind = embeddings.kind(model.image_encoder.output)
        if kind == embeddings.TOKENS:
            raise InputError(
                f"the model embeds an image as {kind}; only points, Gaussians and sets can be asked"
            )
        self.model = model
        self.image_size = shape[1]
        self.resizing = (mode, crop_fraction)
        self._captions = tf.function(
            lambda texts: model.caption_encoder(model.tokenizer(texts), training=False),
            input_signature=[tf.TensorSpec((None,), tf.string)],
        )
        self._images = tf.function(
            lambda batch: model.image_encoder(batch, training=False),
            input_signature=[tf.TensorSpec((None, *shape[1:]), tf.float32)],
        )
        for encode in (self._captions, self._images):
            encode.get_concrete_function()  # traced here, since tracing is not for threads
        self.measure = measure_of(model)  # of the uncertainty; points have none

    def captions(self, texts):
        """The embedding of strings.

        Raises:
            InputError: if one holds a lone surrogate, which is no text.
        """
        texts = list(texts)
        for text in texts:
            if any("\ud800" <= one <= "\udfff" for one in text):
                raise InputError(f"a text must be Unicode; received a lone surrogate in {text!r}")
        return _in_batches(self._captions, np.array(list(texts), object), 4 * _BATCH)

    def pixels(self, contents):
        """The bytes of a picture as the image encoder gets it, uint8 `(size, size, 3)`."""
        return self.fitted(bytes(contents))

    def fitted(self, picture):
        """A picture as the image encoder gets it, uint8 `(size, size, 3)`.

        Args:
            picture: what `zoo.data.reading.pictures.decoded` takes: bytes, a Pillow image, an
                array.

        Raises:
            InputError: if it is no picture.
        """
        return images.fit(decoded(picture), self.image_size, *self.resizing).numpy()

    def images(self, pixels):
        """The embedding of pictures `(N, size, size, 3)`, 0 … 255."""
        return _in_batches(self._images, np.asarray(pixels, np.float32), _BATCH)

    def files(self, paths):
        """The embedding of the pictures in files, decoded side by side.

        Raises:
            InputError: if one cannot be read.
        """
        for path, reason in zip(paths, check_images(paths), strict=True):
            if reason is not None:
                raise InputError(f"{printable(str(path))}: {reason}")
        pictures = tf.data.Dataset.from_tensor_slices([os.fsencode(path) for path in paths]).map(
            lambda path: images.prepare(tf.io.read_file(path), self.image_size, *self.resizing),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        batches = pictures.batch(4 * _BATCH).as_numpy_iterator()
        return joined([self.images(batch) for batch in batches])

    def uncertainty(self, embedding):
        """`(N,)` by the model's own measure, or None for points."""
        if self.measure is None:
            return None
        return np.asarray(embeddings.uncertainty(embedding, self.measure))

    def unknown_words(self, text):
        """The words of a text that a word-level tokenizer has not, normalised; others know all."""
        unknown = unknown_words(self.model.tokenizer, [text])[1]
        return [] if unknown is None else unknown[0]


def measure_of(model):
    """The measure of a model's uncertainty, or None where its captions have none."""
    return embeddings.measure_of(model.caption_encoder.output, model.uncertainty_measure)


def _in_batches(encode, inputs, size):
    if not len(inputs):
        raise ValueError("there must be at least one item to encode; received none")
    parts = [encode(inputs[start : start + size]) for start in range(0, len(inputs), size)]
    return joined([parts_of(part) for part in parts])
