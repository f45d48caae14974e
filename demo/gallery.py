"""What the demo searches: encoded images and captions, their pictures, and the retrievers."""

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from demo.limits import RefusedError
from demo.pictures import Pictures
from halo_search.confidence.words import unknown_words
from halo_search.embeddings import kind
from halo_search.index import Index, scoring
from halo_search.index.similarities import BY_NAME
from halo_search.retriever import Retriever
from halo_search.retriever.hubs import bank_of

SIDES = ("images", "captions")
OTHER = {"images": "captions", "captions": "images"}


@dataclass(eq=False)
class Gallery:
    """Images and captions with their embeddings.

    Attributes:
        name: what to call it.
        asker: the `zoo.Retriever` with the model's towers and its probes, to calibrate on this
            gallery.
        image_names, image_paths: N names to show, and the files; of stored vectors perhaps
            addresses, or neither.
        captions: M texts; they are what an image finds, and the reference for a caption's
            uncertainty. May be empty.
        embeddings: `{"images": N, "captions": M}` embeddings as dicts of arrays. May be a mapping
            that reads them when they are asked for.
        records: the `Records` of a data set, which know what matches, or None.
        noun: what a picture shows, for sentences.
        larger: function from an image's path to a Pillow picture to show, or None for the file.
        credits: for every image its credit, who may show it, or None.
        descriptions: for every image a text for who does not see it, or None.
        model_name: what to call the model; None for the name by which it was opened.
        ids: sorted, those of the items in the asker's index, where that is the index of this
            gallery, of one side; None where indexes are built of the embeddings.
        uncertainties: of the items, by side, where they are stored.
        missing: sentences on what this gallery has not that others have, by what it is.
    """

    name: str
    asker: Retriever
    image_names: list[str]
    image_paths: list[Path]
    captions: list[str]
    embeddings: Mapping[str, dict[str, np.ndarray]]
    records: object = None
    noun: str = "photo"
    larger: Callable | None = None
    credits: list | None = None
    descriptions: list[str] | None = None
    model_name: str | None = None
    ids: np.ndarray | None = None
    uncertainties: dict[str, np.ndarray] | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self._indexes, self._retrievers, self._lock = {}, {}, threading.RLock()
        if self.ids is not None:
            key = self.asker.side, self.own_similarity
            self._indexes[key], self._retrievers[key] = self.asker.index, self.asker

    @functools.cached_property
    def pictures(self):
        """The `Pictures` of the images."""
        return Pictures(self.image_paths, self.larger, has_addresses=not self.reads_words)

    @functools.cached_property
    def uncertainty_shares(self):
        """For every side with an uncertainty, `(N,)`: the share of items that are more certain."""
        if self.measure is None:
            return {}
        values = self.uncertainties
        if values is None:
            values = {side: self.uncertainty(items) for side, items in self.embeddings.items()}
        known = {side: own for side, own in values.items() if own is not None}
        return {side: shares_below(own, own) for side, own in known.items()}

    @functools.cached_property
    def towers(self):
        """What embeds each side, by side."""
        return {side: self.asker.tower(side) for side in SIDES}

    @property
    def reads_words(self):
        """Whether any caption can be asked; of stored vectors only those of the gallery."""
        return self.towers["captions"].reads == "texts"

    @property
    def called(self):
        """What to call the model."""
        return self.model_name or Path(self.asker.gallery_model.origin or "model").name

    @property
    def measure(self):
        """The name of the measure of uncertainty; None for points."""
        measures = (self.towers[side].measure for side in SIDES)
        return next(filter(None, measures), None)

    def uncertainty(self, embedding):
        """`(N,)` by the model's own measure, or None for points."""
        values = (self.towers[side].uncertainty(embedding) for side in SIDES)
        return next((own for own in values if own is not None), None)

    def of_words(self, texts):
        """The embedding of captions; of stored vectors, of captions of the gallery.

        Raises:
            RefusedError: if the model reads vectors, and a text is no caption of the gallery.
        """
        if self.reads_words:
            return self.towers["captions"].of_texts(texts)
        rows = {caption: row for row, caption in enumerate(self.captions)}
        if any(text not in rows for text in texts):
            raise RefusedError(
                "This run reads vectors and no words: choose one of its captions, such as "
                f"“{self.captions[0]}”."
            )
        return self.take("captions", [rows[text] for text in texts])

    def questions(self, texts):
        """Captions as `zoo.Retriever.ask` takes them: texts, or embeddings of stored vectors."""
        return list(texts) if self.reads_words else [self.of_words([text]) for text in texts]

    def pixels(self, picture):
        """A picture's decoded pixels as the image encoder is shown it, uint8 `(size, size, 3)`.

        Raises:
            RefusedError: if the model reads vectors.
        """
        if not self.reads_words:
            raise RefusedError("This run reads vectors and no pictures.")
        return self.towers["images"].fitted(picture)

    def of_pixels(self, pictures):
        """The embedding of pictures as `pixels` returns them."""
        return self.towers["images"].of_arrays(np.asarray(pictures))

    def unknown_words(self, text):
        """The words of a text that a word-level tokenizer has not; other tokenizers know all."""
        if not self.reads_words:
            return []
        unknown = unknown_words(self.asker.gallery_model, [text])[1]
        return [] if unknown is None else unknown[0]

    @property
    def main_side(self):
        """`"images"`; `"captions"` where there are no images. An index has its side, also while it
        is empty."""
        if self.ids is not None:
            return self.asker.side
        return "images" if self.image_names else "captions"

    @functools.cached_property
    def kind(self):
        """`"a point"`, `"a Gaussian"` or `"a set"`."""
        return self._kinds[self.main_side]

    @functools.cached_property
    def _kinds(self):
        if self.ids is not None:
            return {self.asker.side: self.asker.index.description["embedding"]}
        return {side: kind(embedding) for side, embedding in self.embeddings.items()}

    @functools.cached_property
    def own_similarity(self):
        """Name of the similarity that the model was trained with, or the index built with."""
        return scoring.name_of(self.asker.similarity)

    @functools.cached_property
    def similarity_names(self):
        """The similarities that this kind of embedding can be ranked by, the model's own first.

        Where the sides are of two kinds, points and directions, there is no other than its own.
        Layers of Keras are among them where the model was opened by Keras.
        """
        if "map" in self.missing or len(set(self._kinds.values())) > 1:
            return [self.own_similarity]
        kind = self.kind
        names = [name for name, plain in BY_NAME.items() if kind in plain.embeddings]
        if "zoo.similarities" in sys.modules:
            names += _of_keras(kind)
        return list(dict.fromkeys([self.own_similarity, *names]))

    def index(self, side, name=None):
        """The `Index` of one side by a similarity's name, built when first asked for."""
        name = name or self.own_similarity
        with self._lock:
            if (side, name) not in self._indexes:
                items, similarity = self.embeddings[side], self.similarity(name)
                probes, hubs = self.asker.probes, None
                if name == self.own_similarity:  # of others the probes say nothing
                    hubs, _ = bank_of(self._hubs, lambda: items, similarity, side, probes)
                self._indexes[side, name] = Index.build(
                    items,
                    similarity,
                    ids=self.ids,
                    side=side,
                    hubs=hubs,
                )
            return self._indexes[side, name]

    @property
    def _hubs(self):
        """Whether hubs are corrected: as in the asker's index, where it has one."""
        return "auto" if self.asker.index is None else self.asker.index.hubs is not None

    def retriever(self, asked, name=None):
        """The `zoo.Retriever` that one side's questions ask, under a similarity's name.

        Args:
            asked: what the questions are, `"captions"` or `"images"`; the other side answers.
            name: of the similarity; None is the model's own.
        """
        side, name = OTHER[asked], name or self.own_similarity
        with self._lock:
            if (side, name) not in self._retrievers:
                index = self.index(side, name)
                names = self.names(side)
                ids = range(len(names)) if self.ids is None else self.ids.tolist()
                self._retrievers[side, name] = self.asker.over(
                    index, dict(zip(ids, names, strict=True))
                )
            return self._retrievers[side, name]

    def rows(self, ids):
        """The rows in this gallery of items of an index."""
        return ids if self.ids is None else np.searchsorted(self.ids, ids)

    def similarity(self, name):
        """The layer of a name out of `similarity_names`."""
        if name == self.own_similarity:
            return self.asker.similarity
        if name in BY_NAME:
            return BY_NAME[name]
        similarities = sys.modules["zoo.similarities"]

        return similarities.get(name, self.asker.model)

    def names(self, side):
        """What to call the items of a side: an image's name, a caption itself."""
        return self.image_names if side == "images" else self.captions

    def take(self, side, rows):
        """The embedding of some items."""
        return {key: value[rows] for key, value in self.embeddings[side].items()}

    @functools.cached_property
    def captions_of_image(self):
        """For every image the rows of its captions, where the gallery knows them."""
        rows = [[] for _ in self.image_names]
        if self.records is not None:
            for caption, image in enumerate(self.records.caption_image):
                rows[image].append(caption)
        return rows

    @functools.cached_property
    def row_of_caption(self):
        """The first row of every caption."""
        rows = {}
        for row, caption in enumerate(self.captions):
            rows.setdefault(" ".join(caption.split()), row)
        return rows

    def describe(self, image):
        """A text for somebody who does not see the image: its first caption, or its name."""
        if self.descriptions is not None:
            return self.descriptions[image]
        own = self.captions_of_image[image]
        return self.captions[own[0]] if own else self.image_names[image]


def _of_keras(kind):
    """Names of the layers of Keras that rank such embeddings."""
    similarities = sys.modules["zoo.similarities"]
    classes = {name: similarities.by_name.get_class(name) for name in similarities.NAMES}
    return [name for name, one in classes.items() if kind in one.embeddings]


def shares_below(values, among):
    """The share of `among` that is below each value, equal ones counting half, `(N,)` in [0, 1]."""
    values, ordered = np.asarray(values, np.float64), np.sort(np.asarray(among, np.float64))
    below = np.searchsorted(ordered, values, side="left")
    to = np.searchsorted(ordered, values, side="right")
    return (below + to) / (2.0 * len(ordered))
