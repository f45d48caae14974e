"""The towers of a model of stored vectors, which can be asked what its gallery holds."""

import numpy as np

from demo.limits import MAX_CHARACTERS, MAX_WORDS, RefusedError
from zoo import embeddings
from zoo.data import batches
from zoo.encoders.embed import embed
from zoo.errors import InputError

_MOST_LISTED = 2000  # captions that the page holds to choose from
_ROOM = 40  # characters of a label for its row


class StoredEncoders:
    """What `Encoders` is for pictures and words, for vectors: a caption is one of the gallery's.

    Args:
        model: a `DualEncoder` whose captions are vectors.
        split: the `zoo.data.Split` whose vectors are the gallery.

    Attributes:
        labels: what each caption is asked by, all of them different.
        embeddings: `{"images", "captions"}`, of the gallery.
        measure: of the uncertainty, or None.

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
            "images": embed(model.image_encoder, images.map(lambda batch: batch["images"])),
            "captions": embed(model.caption_encoder, captions.map(lambda batch: batch["captions"])),
        }
        self.labels = _labels(records.captions, records.caption_ids)
        self._row = {label: row for row, label in enumerate(self.labels)}
        measures = [
            embeddings.measure_of(one, model.uncertainty_measure)
            for one in self.embeddings.values()
        ]
        self.measure = next(filter(None, measures), None)

    def captions(self, texts):
        """The embedding of captions of the gallery, by their labels.

        Raises:
            RefusedError: if a text is none of them.
        """
        if any(text not in self._row for text in texts):
            raise RefusedError(
                "This run reads vectors and no words: choose one of its captions, such as "
                f"“{self.labels[0]}”."
            )
        rows = [self._row[text] for text in texts]
        return {name: value[rows] for name, value in self.embeddings["captions"].items()}

    def pixels(self, contents):
        """Refuses: a picture has no vector here."""
        raise RefusedError("This run reads vectors and no pictures.")

    def images(self, pixels):
        """Refuses, as `pixels`."""
        return self.pixels(pixels)

    def uncertainty(self, embedding):
        """`(N,)` by the model's own measure, or None for points."""
        if not embeddings.has_uncertainty(embedding):
            return None
        return np.asarray(embeddings.uncertainty(embedding, self.measure))

    def unknown_words(self, text):
        """None: a caption of the gallery is known whole."""
        return []


def listed(labels):
    """`(choices, what to call them)` of captions: all, or as many evenly as a page can hold."""
    if len(labels) <= _MOST_LISTED:
        return list(labels), "Choose a caption, or type to find one"
    rows = np.linspace(0, len(labels) - 1, _MOST_LISTED).round().astype(int)
    return [labels[row] for row in rows], (
        f"Choose a caption: {_MOST_LISTED:,} of {len(labels):,} are listed; any other one can be "
        "typed in full"
    )


def _labels(texts, ids):
    """Texts as a person can ask for them: on one line, short enough, and no two alike."""
    taken, labels = set(), []
    for text, row in zip(texts, ids, strict=True):
        words = "".join(c if c.isprintable() else " " for c in text).split()
        label = " ".join(words)
        if not any(c.isalnum() for c in label):
            label = f"caption {row}"
        elif len(words) > MAX_WORDS or len(label) > MAX_CHARACTERS:
            label = " ".join(words[: MAX_WORDS - 3])[: MAX_CHARACTERS - _ROOM].rstrip() + " …"
        while label in taken:
            label = f"{label} (row {row})"
        taken.add(label)
        labels.append(label)
    return labels
