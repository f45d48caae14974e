"""The towers of a model of stored vectors, which can be asked what its gallery holds."""

import numpy as np

from demo.limits import RefusedError
from zoo import embeddings
from zoo.data import batches
from zoo.errors import InputError

_MEASURES = {
    embeddings.GAUSSIAN: embeddings.GAUSSIAN_UNCERTAINTIES,
    embeddings.SET: embeddings.SET_UNCERTAINTIES,
}


class StoredEncoders:
    """What `Encoders` is for pictures and words, for vectors: a caption is one of the gallery's.

    Args:
        model: a `DualEncoder` whose captions are vectors.
        split: the `zoo.data.Split` whose vectors are the gallery.

    Raises:
        InputError: if the split has no vectors of captions.
    """

    reads_words = False

    def __init__(self, model, split):
        records = split.records
        if records.caption_vectors is None:
            raise InputError("the model reads vectors of captions, and this gallery has words")
        self.model = model
        images = batches.image_batches(records, split.source)
        captions = batches.caption_batches(records, None)
        self.embeddings = {
            "images": _arrays(model.image_encoder, images.map(lambda batch: batch["images"])),
            "captions": _arrays(
                model.caption_encoder, captions.map(lambda batch: batch["captions"])
            ),
        }
        self._place = {text: row for row, text in reversed(list(enumerate(records.captions)))}
        self._example = records.captions[0]
        # The page compares both sides, so captions alone (of AsymVLM) count as points there.
        kind = embeddings.kind(self.embeddings["images"])
        allowed = _MEASURES.get(kind)
        self.measure = None if allowed is None else model.uncertainty_measure or allowed[0]

    def captions(self, texts):
        """The embedding of captions of the gallery.

        Raises:
            RefusedError: if a text is none of them.
        """
        unknown = [text for text in texts if text not in self._place]
        if unknown:
            raise RefusedError(
                "This run reads vectors and no words. Ask for one of its captions, such as "
                f"“{self._example}”."
            )
        rows = [self._place[text] for text in texts]
        return {name: value[rows] for name, value in self.embeddings["captions"].items()}

    def pixels(self, contents):
        """Refuses: a picture has no vector here."""
        raise RefusedError("This run reads vectors and no pictures.")

    def images(self, pixels):
        """Refuses, as `pixels`."""
        return self.pixels(pixels)

    def uncertainty(self, embedding):
        """`(N,)` by the model's own measure, or None for points."""
        if self.measure is None or not embeddings.has_uncertainty(embedding):
            return None
        return np.asarray(embeddings.uncertainty(embedding, self.measure))

    def unknown_words(self, text):
        """None: a caption of the gallery is known whole."""
        return []


def _arrays(encoder, inputs):
    return {name: np.asarray(value) for name, value in encoder.predict(inputs, verbose=0).items()}
