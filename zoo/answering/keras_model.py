"""A `DualEncoder` as `halo_search` asks it: the interface of its `OnnxModel`, by Keras."""

import functools
import os
from typing import Any

from halo_search.confidence import Probes
from halo_search.embeddings import kind
from halo_search.files.written import Written
from halo_search.towers import SIDES
from zoo import similarities
from zoo.answering.write_towers import write_towers
from zoo.data import captioned_folder
from zoo.evaluation.probes import general_probes, with_own
from zoo.evaluation.runs import probes_of
from zoo.models import DualEncoder, Tower
from zoo.models.tower import weights_sha256
from zoo.presets import from_preset
from zoo.presets.folders import shown_pictures
from zoo.presets.openers import weights_mark


class KerasModel:
    """A Keras model, where it came from, and how it is shown pictures.

    Args:
        model: a `DualEncoder`.
        origin: the name or path by which it can be opened again, or None.
        resizing: `{"mode", "crop_fraction"}` of its pictures.
    """

    def __init__(self, model: DualEncoder, origin: str | None, resizing: dict[str, Any]):
        self.keras, self.origin, self.resizing = model, origin, resizing
        self._towers = {}

    @classmethod
    def of(cls, model: "DualEncoder | str | os.PathLike") -> "KerasModel":
        """The model of a `DualEncoder`, or of a name or folder that `zoo.from_preset` opens. If its
        weights have changed since it was opened, it has no origin: its probes do not fit."""
        model = model if isinstance(model, DualEncoder) else from_preset(model)
        shown = shown_pictures(model, model.origin)
        is_as_opened = model.origin is not None and model.origin_weights == weights_mark(model)
        return cls(model, model.origin if is_as_opened else None, shown)

    def __contains__(self, side: str) -> bool:
        return True

    @property
    def similarity(self) -> similarities.Similarity:
        """The model's own."""
        return self.keras.similarity

    @property
    def kind(self) -> str:
        """The kind of its embeddings, as of `zoo.embeddings.kind`."""
        return kind(self.keras.image_encoder.output)

    @property
    def widths(self) -> set[int]:
        """The last dimensions of the parts of an embedding."""
        return {part.shape[-1] for part in self.keras.image_encoder.output.values()}

    def similarity_named(self, name: str) -> similarities.Similarity:
        """A similarity by name, with the model's scale and shift where it is its own."""
        return similarities.get(name, self.keras)

    def tower(self, side: str) -> Tower:
        """The tower of a side, made when it is first needed."""
        if side not in self._towers:
            self._towers[side] = Tower(self.keras, side, **self.resizing)
        return self._towers[side]

    def model_sha256(self, side: str) -> str:
        """The hash of the weights and of how pictures become squares: it identifies vectors."""
        return self.tower(side).model_sha256

    def probes(self) -> Probes | None:
        """The held-out pairs that come with the run or preset, or None."""
        return None if self.origin is None else probes_of(self.origin)

    def general_probes(self) -> Probes | None:
        """Probes by the captioned photos of the package, see `zoo.evaluation.general_probes`."""
        return general_probes(self.keras, {side: self.tower(side) for side in SIDES})

    def with_own(self, folder: str | os.PathLike, before: Probes | None) -> Probes:
        """Probes of a folder of photos with captions, beside those before or in their place."""
        towers = {side: self.tower(side) for side in SIDES}
        return with_own(self.keras, captioned_folder(folder), before, towers)

    def write_towers(self, written: Written, index: Any) -> tuple[str | None, str | None]:
        """Writes ONNX towers beside an index: `(name of their folder, None)`, or `(None, why
        questions need Keras)`."""
        return write_towers(written, self, index)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model as a `.keras` file."""
        self.keras.save(path)

    @functools.cached_property
    def weights_sha256(self) -> str:
        """The hash of all weights."""
        return weights_sha256(self.keras)

    @property
    def known_words(self) -> frozenset[str] | None:
        """The words that the tokenizer knows; None if it spells every word."""
        words = getattr(self.keras.tokenizer, "known_words", None)
        return None if words is None else frozenset(words)

    @property
    def vocabulary(self) -> frozenset[str]:
        """The words and pieces of the tokenizer; empty without one."""
        return frozenset(getattr(self.keras.tokenizer, "vocabulary", ()))

    @property
    def reads_texts(self) -> bool:
        """Whether questions may be words."""
        return self.keras.tokenizer is not None
