"""A model, a gallery and a judge: the way of a question, and all that changes the gallery."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from halo_search.confidence import Confidence, Probes
from halo_search.confidence.judge import FIT, Judge, Judgement
from halo_search.confidence.scores import DEPTH
from halo_search.embeddings import EmbeddingLike
from halo_search.embeddings.arrays import as_arrays
from halo_search.files.written import Written
from halo_search.index import Hub, Index
from halo_search.index.columns import ids_among, whole_ids
from halo_search.retriever import gallery_folder
from halo_search.retriever import hubs as gallery_hubs
from halo_search.retriever.answer import Answer, answers
from halo_search.retriever.calibration import OTHER, Calibration, probes_of_pairs
from halo_search.retriever.everything import MOST_LISTED, Everything, page_of
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.items import embed_items
from halo_search.retriever.judging import judged
from halo_search.retriever.names import ItemNames
from halo_search.retriever.parts import RecentParts
from halo_search.retriever.questions import Questions, embed
from halo_search.retriever.results import search
from halo_search.retriever.training_photos import training_note
from halo_search.towers import Tower

LEAST_ANSWERED = 0.01  # probability of an answer to a question of which nothing is known


class Retriever:
    """Asks a gallery in words or pictures, and says how likely the answer is right.

    ```python
    photos = np.random.default_rng(0).integers(0, 256, (30, 64, 64, 3), dtype="uint8")
    retriever = halo_search.Retriever.build("toy_birds_pfe", photos)
    answer = retriever.ask("a small bird with a red crown")
    print(answer.verdict, answer.probability, answer.ids[:3], answer.reason)
    ```

    The model's probes, held-out pairs, are asked in front of this gallery, and again when it has
    grown or shrunk by more than 5 %. Where none come with it, the package's captioned photos serve,
    and the answer says so. Without a calibration the probability is None, with a reason.

    Made by `build` and `load`. Packaged models with ONNX towers, and galleries that `halo search
    build` wrote with such towers beside them, need neither TensorFlow nor Keras.

    Args:
        model: a `GalleryModel`, or what `halo_search.open_model` takes.
        index: the `halo_search.index.Index`; None where the model alone is used, as by `tower`.
        probes: held-out pairs, `halo_search.confidence.Probes`, or None.
        names: what items are called, by id, or None.

    Attributes:
        index: the `halo_search.index.Index`.
        gallery_model: the `GalleryModel`, which opens what is needed of the model.
        calibration: the `Calibration`, which makes the judge.
        note: sentences on photos of the training and on hubs, or None.
        gain: the `Gain` by which hubs are corrected or not, or None; known when it is built.
    """

    def __init__(
        self,
        model: Any,
        index: Index,
        probes: Probes | None = None,
        names: dict[int, str] | None = None,
    ):
        self.index = index
        self.gallery_model = GalleryModel.of(model)
        self.calibration = Calibration(index, self.gallery_model, probes)
        self.note: str | None = None
        self.gain: gallery_hubs.Gain | None = None
        self._names = ItemNames(names)
        self._parts = RecentParts()
        self._history = gallery_folder.History()

    # Building, storing and loading

    @classmethod
    def build(
        cls,
        model: Any,
        items: Any,
        ids: Sequence[int] | None = None,
        probes: Probes | None = None,
        side: str = "images",
        names: Sequence[str] | None = None,
        hubs: Literal["auto"] | bool = "auto",
    ) -> "Retriever":
        """A gallery, encoded, indexed and calibrated.

        Args:
            model: the name of a preset, a `DualEncoder`, or what `zoo.from_preset` takes.
            items: a folder or a list of files of pictures, pixels `(N, height, width, 3)`, texts
                with `side="captions"`, or embeddings as `encode_*` returned them.
            ids: N distinct whole numbers; None counts from 0.
            probes: held-out pairs; None: as the class says.
            side: what the items are, `"images"` or `"captions"`; the other side asks.
            names: N strings to call them; default: of files their paths, of captions the texts.
            hubs: whether items near to all of the probes' questions rank lower; `"auto"`: where
                then more of half of the probes find their own item first, by a paired test.

        Raises:
            InputError: if the model or a picture cannot be read.
            ValueError: if there is no item, or an argument does not fit.
        """
        if hubs not in ("auto", True, False):
            raise ValueError(f'`hubs` must be "auto", True or False; received {hubs!r}')
        if side not in OTHER:
            raise ValueError(f"`side` must be one of {tuple(OTHER)}; received {side!r}")
        model = GalleryModel.of(model)
        probes = model.probes() if probes is None else probes
        items = embed_items(items, side, model.tower)
        names = items.named(names)
        bank, gain = gallery_hubs.bank_of(
            hubs, lambda: items.embeddings, model.similarity, side, probes
        )
        index = Index.build(items.embeddings, model.similarity, ids, side, hubs=bank)
        retriever = cls(model, index, probes)
        retriever._names = ItemNames.given(index.ids, names)
        retriever.gain = gain
        retriever.note = _notes(training_note(items.paths, probes), retriever.hub_note())
        if retriever.judge.at_chance:
            warnings.warn(f"no probabilities: {retriever.judge.why_not}", stacklevel=2)
        return retriever

    @classmethod
    def load(cls, folder: str | os.PathLike, model: Any = None, lean: bool = False) -> "Retriever":
        """Opens what `save` or `halo search build` wrote. Warns of other weights than those that
        embedded the gallery.

        Args:
            folder: what was written.
            model: where the model is now, if it has moved; it then embeds the questions itself.
            lean: whether a few questions are asked: a packaged model then keeps its weights as
                int8, in a third of the memory, and a question takes three times as long.

        Raises:
            InputError: if something is missing or damaged, or embeddings have another width.
        """
        folder = Path(folder)
        stored = gallery_folder.read(folder, model, lean)
        retriever = cls(stored.model, stored.index, stored.probes, stored.names)
        retriever.calibration.restore(stored.confidence, stored.near)
        retriever._history.was_loaded(folder, stored.setup, by_its_model=model is None)
        return retriever

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a folder that `load`, the command line, the demo and the export read; an
        InputError if it cannot, a build or save there takes more than a minute, or another process
        has saved there since it was loaded."""
        gallery_folder.save(Path(folder), self._history, self.calibration, self._names)

    def write(self, written: Written, setup: dict[str, Any]) -> None:
        """Writes the index and its judge into a folder that `built.locked` holds, and `setup`."""
        gallery_folder.write(written, setup, self.calibration, self._names)

    # Asking

    def ask(
        self,
        question: Any,
        k: int = 10,
        among: Sequence[int] | Sequence[str] | str | None = None,
    ) -> Answer | list[Answer]:
        """What the gallery answers: an `Answer`, or a list of them for a list.

        Args:
            question: a text, of which a preamble such as "photos of" is taken off; a picture as a
                `pathlib.Path`, Pillow image or array `(height, width, 3)`; an embedding; or a list
                of one kind. An embedding of several rows is a list too.
            k: how many results, at most as many as there are items.
            among: asks a part of the gallery, judged as a gallery of its own, see `part`.

        Raises:
            ValueError: if k is no whole number from 1, the question does not fit the model, or as
                `part`.
            InputError: if a picture cannot be read.
        """
        if not isinstance(k, (int, float, np.number)) or k % 1 or not 1 <= k < np.inf:
            raise ValueError(f"`k` must be a whole number of at least 1; received {k}")
        if among is not None:
            return self.part(among).ask(question, k)
        is_many = isinstance(question, (list, tuple))
        if is_many and not question:
            return []
        questions = self._embed(question if is_many else [question])
        with self.index.lock:
            k = min(int(k), len(self.index))
            results = search(self.index, questions.embeddings, k)
            judgements = judged(self.calibration, questions, results)
            listed = answers(questions, results, judgements, k, self.names_of)
        return listed if is_many or len(listed) > 1 else listed[0]

    def all(
        self,
        question: Any,
        offset: int = 0,
        limit: int = 100,
        least: float = FIT,
        among: Sequence[int] | Sequence[str] | str | None = None,
    ) -> Everything:
        """Every item that fits one `question`, likeliest first, `limit` a page from `offset` on: of
        the 5,000 with the best scores those that fit with a probability of `least` or more.
        Arguments as of `ask`; a ValueError as `ask`, or if nothing says how likely items fit."""
        if not (0 < least <= 1 and offset >= 0 and limit >= 1):
            raise ValueError(
                "`least` must be in (0, 1], `offset` from 0 and `limit` from 1; received "
                f"{least}, {offset} and {limit}"
            )
        if among is not None:
            return self.part(among).all(question, offset, limit, least)
        questions = self._embed([question])
        if len(questions) != 1:
            raise ValueError(f"`question` must be one question; received {len(questions)}")
        with self.index.lock:
            results = search(self.index, questions.embeddings, min(MOST_LISTED, len(self.index)))
            (judgement,) = judged(self.calibration, questions, results)
            noun = self.calibration.noun
            return page_of(questions, results, judgement, offset, limit, least, self.names_of, noun)

    def judged(
        self, queries: dict[str, np.ndarray], side: str, texts: Sequence[str] | None = None, k=DEPTH
    ) -> list[Judgement]:
        """A `Judgement` of each question, of at most k results; queries are a dict of arrays of
        `side`, and texts the captions that were embedded, or None."""
        questions = Questions(queries, side, texts=texts)
        with self.index.lock:
            results = search(self.index, queries, min(k, len(self.index)))
            return judged(self.calibration, questions, results)

    def _embed(self, questions):
        """The `Questions` of texts, pictures or embeddings."""
        return embed(questions, self.tower, OTHER[self.side], self._meant)

    def _meant(self, text):
        """A text as typed in the words that the model is asked: the likeliest meaning, by how
        common its words are and how likely this gallery has an answer."""
        meanings = self.calibration.wording.meanings(text)
        texts = list(meanings)
        if len(texts) == 1:
            return texts[0]
        judgements = self.judged(self.tower("captions").of_texts(texts), "captions", texts)
        answered = [
            LEAST_ANSWERED if judgement.fits is None else judgement.fits.max(initial=LEAST_ANSWERED)
            for judgement in judgements
        ]
        return texts[int(np.argmax(np.fromiter(meanings.values(), float) + np.log(answered)))]

    # Parts of the gallery, and the same model over another one

    def part(self, among: Sequence[int] | Sequence[str] | str) -> "Retriever":
        """The gallery of some items alone, by ids, names or a pattern of names (`fnmatch`) such as
        `"2019/*"`, as one built of them, with hubs corrected as here; later changes do not reach
        it. A ValueError if an item is not in the gallery or given twice, or there is none."""
        with self.index.lock:
            ids = np.sort(ids_among(among, self._names.by_id))
            if not len(ids):
                raise ValueError("`among` must name at least one item; received none")
            if self.probes is None:
                _ = self.judge  # which encodes the package's photos as probes

            def make():
                return self.over(self.index.part(ids), self._names.by_id)

            return self._parts.get(ids, self.probes, make)

    def over(self, index: Index, names: Any = None) -> "Retriever":
        """The same model, probes and towers over another gallery; arguments as of the class."""
        return type(self)(self.gallery_model, index, self.probes, names)

    # Changes

    def add(
        self, items: Any, ids: Sequence[int] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Adds items, as of `build`; raises as `halo_search.index.Index.add`, and if there are
        more or fewer names than items. Nothing has been added then."""
        items = embed_items(items, self.side, self.tower)
        names = items.named(names)
        note = training_note(items.paths, self.probes)
        with self.index.lock:
            added = self.index.add(items.embeddings, ids)
            self._names.add(added, names)
            self.note = _notes(note, self.hub_note()) or self.note
            self._items_changed()

    def remove(self, ids: Sequence[int]) -> None:
        """Removes all of some items or, where it raises as `halo_search.index.Index.remove`,
        none."""
        ids = whole_ids(ids)
        with self.index.lock:
            self.index.remove(ids)
            self._names.remove(ids)
            self._items_changed()

    def _items_changed(self):
        """Drops what was true of the items before a change."""
        self._parts.clear()
        self._history.items_changed()
        self.calibration.items_changed()

    def calibrate(
        self,
        queries: EmbeddingLike | str | os.PathLike,
        own: EmbeddingLike | None = None,
        groups: Any = None,
    ) -> Confidence:
        """Calibrates on held-out pairs of your own, see `halo_search.confidence.calibrate_on`.

        They take the place of the model's probes, also when the gallery grows and when it is saved.
        Fewer than 300 photos of a folder stand beside these.

        Args:
            queries, own, groups: as of `calibrate_on`; or `queries` alone, a folder of photos with
                captions, see `zoo.data.captioned_folder`.

        Raises:
            ValueError: as `calibrate_on`.
            InputError: if the folder or a photo cannot be read, or the model reads none or no
                texts.
        """
        if isinstance(queries, (str, os.PathLike)):
            if own is not None or groups is not None:
                raise ValueError("`own` and `groups` go with embeddings, not a folder")
            probes = self.gallery_model.opened.with_own(queries, self.probes)
        else:
            queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
            probes = probes_of_pairs(self.side, queries, own, groups, self.probes)
        return self.calibration.calibrate(probes)

    # What it is made of

    @property
    def model(self) -> Any:
        """The `DualEncoder`, opened when it is first needed."""
        return self.gallery_model.opened.keras

    @property
    def model_sha256(self) -> str:
        """The hash of the weights that embedded the gallery, and of how pictures are resized."""
        return self.gallery_model.model_sha256(self.side)

    def tower(self, side: str) -> Tower:
        """What embeds items or questions of a side; an InputError if the model's embedding cannot
        be searched."""
        return self.gallery_model.tower(side)

    @property
    def similarity(self) -> Any:
        """The similarity that ranks the items: the index', else the model's own."""
        return self.gallery_model.similarity if self.index is None else self.index.similarity

    @property
    def side(self) -> str:
        """What the gallery holds, `"images"` or `"captions"`."""
        return self.index.description["side"]

    @property
    def probes(self) -> Probes | None:
        """The held-out pairs that calibrate this gallery, or None."""
        return self.calibration.probes

    @property
    def judge(self) -> Judge:
        """The `Judge` of this gallery; made when first asked for, and again after growth."""
        return self.calibration.judge

    @property
    def confidence(self) -> Confidence | None:
        """The `halo_search.confidence.Confidence` of this gallery, or None."""
        return self.judge.confidence

    def __len__(self) -> int:
        return len(self.index)

    def names_of(self, ids: np.ndarray) -> list[str] | None:
        """What items are called, or None."""
        return self._names.of(ids)

    def hubs(self) -> list[Hub]:
        """The hubs of the probes' questions (`halo_search.index.hubs`); none without probes."""
        return gallery_hubs.probed_hubs(self.index, self.side, self.probes)

    def hub_note(self) -> str | None:
        """A sentence where a hub, or a few items of which none alone need be one, answer many of
        the probes' questions; else None."""
        return gallery_hubs.hub_note(self.index, self.side, self.probes, self.names_of)


def _notes(*sentences):
    """Several sentences, some of them None, as one note or None."""
    return "; ".join(filter(None, sentences)) or None
