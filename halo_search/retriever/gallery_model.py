"""The model of a gallery: ONNX towers where there are some, Keras' model when something needs
it."""

import threading
from collections.abc import Callable
from typing import Any

from halo_search.confidence import Probes
from halo_search.embeddings import TOKENS
from halo_search.errors import InputError
from halo_search.index import scoring
from halo_search.towers import OnnxModel, Tower, keras_models, open_model


class GalleryModel:
    """What a retriever asks of its model. Questions and items are embedded by ONNX towers where
    they exist; Keras' model is opened when something first needs it, and then kept.

    Args:
        source: a `DualEncoder`, or what `zoo.from_preset` takes, by which Keras' model is opened.
        onnx: the ONNX towers of the same model, or None.
        opened: what has been opened already.
        check: called with Keras' model once it has been opened.
    """

    def __init__(
        self,
        source: Any,
        onnx: OnnxModel | None = None,
        opened: Any = None,
        check: Callable[[Any], None] | None = None,
    ):
        self.onnx = onnx
        self._source, self._opened, self._check = source, opened, check
        self._lock, self._probes = threading.RLock(), None

    @classmethod
    def of(cls, model: Any) -> "GalleryModel":
        """Opens a model, given as to `halo_search.open_model`."""
        if isinstance(model, cls):
            return model
        opened = open_model(model)
        if isinstance(opened, OnnxModel):
            return cls(opened.origin, onnx=opened)
        return cls(model, opened=opened)

    @property
    def opened(self) -> Any:
        """The `zoo.answering.KerasModel`, opened now if it has not been."""
        with self._lock:
            if self._opened is None:
                self._opened = keras_models().open_model(self._source)
                if self._check is not None:
                    self._check(self._opened)
            return self._opened

    @property
    def light(self) -> Any:
        """The ONNX towers where there are some, else Keras' model."""
        return self.opened if self.onnx is None else self.onnx

    @property
    def origin(self) -> str | None:
        """The name or path by which the model can be opened again, or None."""
        return self.light.origin

    @property
    def similarity(self) -> Any:
        """The model's own."""
        return self.light.similarity

    def similarity_named(self, name: str | None) -> Any:
        """A similarity by name; None: the model's own. One that is not plain numbers is computed by
        Keras, which is imported for it."""
        if name is None or name == self.similarity.identifier:
            return self.similarity
        if self.onnx is None:
            return self.opened.similarity_named(name)
        return scoring.resolve(name)

    def tower(self, side: str) -> Tower:
        """What embeds items or questions of a side; an InputError if no index can hold its
        embeddings."""
        if self.onnx is not None and side in self.onnx:
            return self.onnx.tower(side)
        model = self.opened
        if model.kind == TOKENS:
            raise InputError(
                f"the model embeds an image as {TOKENS}; only points, Gaussians and sets can be "
                "asked"
            )
        return model.tower(side)

    def model_sha256(self, side: str) -> str:
        """The hash of the weights and of how pictures become squares: it identifies vectors."""
        has_side = self.onnx is not None and side in self.onnx
        return (self.onnx if has_side else self.opened).model_sha256(side)

    def probes(self) -> Probes | None:
        """The held-out pairs that come with the model, or None."""
        with self._lock:
            if self._probes is None:
                self._probes = self.light.probes()
            return self._probes

    def general_probes(self) -> Probes | None:
        """Probes by the captioned photos of the package; None where the model cannot read them."""
        return self.opened.general_probes()

    @property
    def reads_texts(self) -> bool:
        """Whether questions may be words."""
        return self.light.reads_texts

    @property
    def known_words(self) -> frozenset[str] | None:
        """The words that the model's tokenizer knows; None if it spells every word."""
        return self.light.known_words

    @property
    def vocabulary(self) -> frozenset[str]:
        """The words and pieces of the model's tokenizer."""
        return self.light.vocabulary
