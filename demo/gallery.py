"""What the demo searches: encoded images and captions, their uncertainties, and the indexes."""

import base64
import functools
import io
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np
from PIL import Image

from demo.limits import RefusedError
from demo.reference import Reference
from zoo import similarities
from zoo.confidence import Probes
from zoo.confidence.scores import DEPTH
from zoo.confidence.words import unknown_words
from zoo.embeddings import DIRECTION, has_uncertainty, kind, uncertainty
from zoo.files.decoding import decoded, opened
from zoo.models import Tower
from zoo.retriever import Retriever
from zoo.retriever.parts import bank_of
from zoo.search import Index

SIDES = ("images", "captions")
_OTHER = {"images": "captions", "captions": "images"}
THUMBNAIL = 320  # pixels of the longer side
_IN_ADDRESSES = ":/?#[]@!$&()*+,;=%~"  # no quotes and no angles, so it stays inside an attribute


@dataclass(eq=False)
class Gallery:
    """Images and captions with their embeddings.

    Attributes:
        name: what to call it.
        towers: the `zoo.Tower`s of the model, by side.
        image_names, image_paths: N names to show, and the files; of stored vectors perhaps
            addresses, or neither.
        captions: M texts; they are what an image finds, and the reference for a caption's
            uncertainty. May be empty.
        embeddings: `{"images": N, "captions": M}` embeddings as dicts of arrays.
        records: the `Records` of a data set, which know what matches, or None.
        noun: what a picture shows, for sentences.
        probes: of the model, to calibrate on this gallery, or None.
        larger: function from an image's path to a Pillow picture to show, or None for the file.
        credits: for every image its credit, who may show it, or None.
        trained_on: what the model has learnt from, a sentence's part, or None.
    """

    name: str
    towers: dict[str, Tower]
    image_names: list[str]
    image_paths: list[Path]
    captions: list[str]
    embeddings: dict[str, dict[str, np.ndarray]]
    records: object = None
    noun: str = "picture"
    probes: Probes | None = None
    larger: Callable | None = None
    credits: list | None = None
    trained_on: str | None = None
    references: dict = field(init=False)

    def __post_init__(self):
        self._indexes, self._retrievers, self._lock = {}, {}, threading.RLock()
        self.references = {}
        if self.measure is not None:
            for side, embedding in self.embeddings.items():
                values = self.uncertainty(embedding)
                if values is not None:  # one side alone may have it
                    self.references[side] = Reference(values, self.measure, side)

    @property
    def model(self):
        return self.towers["images"].model

    @property
    def reads_words(self):
        """Whether any caption can be asked; of stored vectors only those of the gallery."""
        return self.towers["captions"].reads == "texts"

    @property
    def measure(self):
        """Of the uncertainty; None of points."""
        measures = (self.towers[side].measure for side in SIDES)
        return next(filter(None, measures), None)

    def uncertainty(self, embedding):
        """`(N,)` by the model's own measure, or None for points."""
        if self.measure is None or not has_uncertainty(embedding):
            return None
        return np.asarray(uncertainty(embedding, self.measure))

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

    def pixels(self, contents):
        """The bytes of a picture as the image encoder is shown it, uint8 `(size, size, 3)`.

        Raises:
            RefusedError: if the model reads vectors.
        """
        if not self.reads_words:
            raise RefusedError("This run reads vectors and no pictures.")
        return self.towers["images"].fitted(contents)

    def of_pixels(self, pictures):
        """The embedding of pictures as `pixels` returns them."""
        return self.towers["images"].of_arrays(np.asarray(pictures))

    def unknown_words(self, text):
        """The words of a text that a word-level tokenizer has not; other tokenizers know all."""
        if not self.reads_words:
            return []
        unknown = unknown_words(self.model.tokenizer, [text])[1]
        return [] if unknown is None else unknown[0]

    @functools.cached_property
    def kind(self):
        """`"a point"`, `"a Gaussian"` or `"a set"`."""
        return kind(self.embeddings["images"])

    @functools.cached_property
    def own_similarity(self):
        """Name of the similarity that the model was trained with."""
        return similarities.name_of(self.model.similarity)

    @functools.cached_property
    def similarity_names(self):
        """The similarities that this kind of embedding can be ranked by, the model's own first.

        Where the sides are of two kinds, points and directions, there is no other than its own.
        """
        kinds = {kind(embedding) for embedding in self.embeddings.values()}
        fitting = similarities.names(
            lambda cls: (
                cls.space and kinds <= set(cls.embeddings) and DIRECTION not in cls.embeddings
            )
        )
        return list(dict.fromkeys([self.own_similarity, *fitting]))

    def index(self, side, name):
        """The `Index` of one side by a similarity's name, built when first asked for."""
        with self._lock:
            if (side, name) not in self._indexes:
                items, similarity = self.embeddings[side], self.similarity(name)
                hubs = None
                if name == self.own_similarity:  # of others the probes say nothing
                    hubs, _ = bank_of("auto", lambda: items, similarity, side, self.probes)
                self._indexes[side, name] = Index.build(
                    items, similarity, side=side, uncertainty_measure=self.measure, hubs=hubs
                )
            return self._indexes[side, name]

    def retriever(self, asked, name=None):
        """The `zoo.Retriever` that one side's questions ask, under a similarity's name.

        Args:
            asked: what the questions are, `"captions"` or `"images"`; the other side answers.
            name: of the similarity; None is the model's own.
        """
        side, name = _OTHER[asked], name or self.own_similarity
        with self._lock:
            if (side, name) not in self._retrievers:
                index = self.index(side, name)
                names = dict(enumerate(self.names(side)))
                self._retrievers[side, name] = Retriever(
                    self.model, index, self.probes, names, towers=self.towers
                )
            return self._retrievers[side, name]

    def judge(self, asked, queries, texts=None, name=None, k=DEPTH):
        """A `zoo.retriever.Judgement` of each question.

        Args:
            asked, name: as of `retriever`.
            queries: embeddings, a dict of arrays.
            texts: the captions that were embedded; None for images.
            k: how many results `fits` is about, at most.
        """
        texts = texts if self.reads_words else None
        return self.retriever(asked, name).judged(queries, asked, texts, k)

    def similarity(self, name):
        """The layer of a name out of `similarity_names`."""
        own = name == self.own_similarity
        return self.model.similarity if own else similarities.get(name, self.model)

    def names(self, side):
        """What to call the items of a side: an image's name, a caption itself."""
        return self.image_names if side == "images" else self.captions

    def take(self, side, rows):
        """The embedding of some items."""
        return {key: value[rows] for key, value in self.embeddings[side].items()}

    @functools.lru_cache(maxsize=4096)  # noqa: B019 -- a gallery lives as long as the process
    def thumbnail(self, image):
        """An image as a small JPEG in a data URI: the page then asks the server for no file.

        Of stored vectors the picture may be an address, which the browser fetches and this
        machine never does, or not be there: then it is "".
        """
        path = self.image_paths[image]
        if self.reads_words:
            return data_uri(_small(path) if self.larger is None else self.larger(path))
        if str(path).startswith(("http://", "https://")):
            return quote(str(path), safe=_IN_ADDRESSES)
        try:
            return data_uri(_small(path))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return ""

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
        own = self.captions_of_image[image]
        return self.captions[own[0]] if own else self.image_names[image]


def _small(path):
    picture = opened(Path(path).read_bytes())
    picture.draft("RGB", (THUMBNAIL, THUMBNAIL))
    picture = Image.fromarray(decoded(picture))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    return picture


def data_uri(picture, quality=88):
    """A PIL image as `data:image/jpeg;base64,…`."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
