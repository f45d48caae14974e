"""What the demo searches: encoded images and captions, their uncertainties, and the indexes."""

import base64
import functools
import io
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps

from demo.encoders import Encoders
from demo.reference import Reference
from zoo import similarities
from zoo.embeddings import kind
from zoo.search import Index

SIDES = ("images", "captions")
_THUMBNAIL = 256  # pixels of the longer side


@dataclass(eq=False)
class Gallery:
    """Images and captions with their embeddings.

    Attributes:
        name: what to call it.
        encoders: the model.
        image_names, image_paths: N names to show, and the files.
        captions: M texts; they are what an image finds, and the reference for a caption's
            uncertainty. May be empty.
        embeddings: `{"images": N, "captions": M}` embeddings as dicts of arrays.
        records: the `Records` of a data set, which know what matches, or None.
    """

    name: str
    encoders: Encoders
    image_names: list[str]
    image_paths: list[Path]
    captions: list[str]
    embeddings: dict[str, dict[str, np.ndarray]]
    records: object = None
    references: dict = field(init=False)

    def __post_init__(self):
        self._indexes, self._lock = {}, threading.Lock()
        self.references = {}
        if self.encoders.measure is not None:
            for side, embedding in self.embeddings.items():
                values = self.encoders.uncertainty(embedding)
                self.references[side] = Reference(values, self.encoders.measure, side)

    @property
    def model(self):
        return self.encoders.model

    @functools.cached_property
    def kind(self):
        """`"a point"`, `"a Gaussian"` or `"a set"`, of the images."""
        return kind(self.embeddings["images"])

    @functools.cached_property
    def own_similarity(self):
        """Name of the similarity that the model was trained with."""
        return similarities.name_of(self.model.similarity)

    @functools.cached_property
    def similarity_names(self):
        """The similarities that this kind of embedding can be ranked by, the model's own first."""
        fitting = similarities.names(lambda cls: cls.space and self.kind in cls.embeddings)
        return list(dict.fromkeys([self.own_similarity, *fitting]))

    def index(self, side, name):
        """The `Index` of one side by a similarity's name, built when first asked for."""
        with self._lock:
            if (side, name) not in self._indexes:
                own = name == self.own_similarity
                similarity = self.model.similarity if own else similarities.get(name, self.model)
                self._indexes[side, name] = Index.build(
                    self.embeddings[side],
                    similarity,
                    side=side,
                    uncertainty_measure=self.encoders.measure,
                )
            return self._indexes[side, name]

    def take(self, side, rows):
        """The embedding of some items."""
        return {key: value[rows] for key, value in self.embeddings[side].items()}

    @functools.lru_cache(maxsize=4096)  # noqa: B019 -- a gallery lives as long as the process
    def thumbnail(self, image):
        """An image as a small JPEG in a data URI: the page then asks the server for no file.

        Of stored vectors a picture may be an address, which is shown as it is, or not there at all.
        """
        path = self.image_paths[image]
        if str(path).startswith(("http://", "https://")):
            return str(path)
        if not Path(path).is_file():
            return _card(self.image_names[image])
        with Image.open(self.image_paths[image]) as picture:
            picture.draft("RGB", (_THUMBNAIL, _THUMBNAIL))
            picture = ImageOps.exif_transpose(picture).convert("RGB")
        picture.thumbnail((_THUMBNAIL, _THUMBNAIL))
        return data_uri(picture)

    @functools.cached_property
    def captions_of_image(self):
        """For every image the rows of its captions, where the gallery knows them."""
        rows = [[] for _ in self.image_names]
        if self.records is not None:
            for caption, image in enumerate(self.records.caption_image):
                rows[image].append(caption)
        return rows

    def describe(self, image):
        """A text for somebody who does not see the image: its first caption, or its name."""
        own = self.captions_of_image[image]
        return self.captions[own[0]] if own else self.image_names[image]


def _card(name):
    """A picture that only says a name."""
    picture = Image.new("RGB", (_THUMBNAIL, _THUMBNAIL), (225, 225, 225))
    ImageDraw.Draw(picture).text((16, _THUMBNAIL // 2), name[:32], fill=(40, 40, 40), font_size=20)
    return data_uri(picture)


def data_uri(picture, quality=88):
    """A PIL image as `data:image/jpeg;base64,…`."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
