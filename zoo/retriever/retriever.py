"""A model, a gallery and a judge: the whole way of an answer."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.arrays import as_arrays, joined, length
from zoo.collection import list_images
from zoo.confidence import Confidence, GalleryIdentity, Probes, calibrate_on
from zoo.confidence.judge import Judge, Judgement, is_void
from zoo.confidence.scores import DEPTH
from zoo.data.text.questions import asked_for
from zoo.embeddings import TOKENS, EmbeddingLike, log_uncertainty
from zoo.embeddings import kind as kind_of_embedding
from zoo.errors import InputError
from zoo.evaluation import probes_of
from zoo.evaluation.known import query_facts
from zoo.files.atomic import atomic, write_text
from zoo.models import DualEncoder, Tower
from zoo.models.cards import shown_pictures
from zoo.models.presets import from_preset
from zoo.retriever.answer import Answer
from zoo.retriever.training_photos import training_note
from zoo.search import Hub, Index, ShardedIndex, built, hubs

CALIBRATION, PROBES = "calibration.json", "probes.npz"
_WAIT = 60  # seconds that a save waits for others of its folder
_OTHER = {"images": "captions", "captions": "images"}


class _Asked(NamedTuple):
    """Questions of one kind: their embeddings, what they are of, what to call each, and the texts
    that were embedded."""

    embeddings: dict[str, np.ndarray]
    side: str
    called: list[str]
    texts: list[str] | None = None


class Retriever:
    """Asks a gallery in words or pictures, and says how likely the answer is right.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    photos = np.random.default_rng(0).integers(0, 256, (30, 64, 64, 3), dtype="uint8")
    retriever = zoo.Retriever.build(model, photos)
    answer = retriever.ask("a small bird with a red crown")
    print(answer.verdict, answer.probability, answer.ids[:3], answer.reason)
    ```

    The model's probes, held-out pairs that come with it, are asked in front of this gallery when it
    is built, and again when it has grown or shrunk by more than 5 %: what is said is of the gallery
    that is asked. A gallery that cannot be calibrated answers all the same, with the probability
    None and a sentence on why.

    Made by `build` and `load`.

    Attributes:
        model: the `DualEncoder`.
        index: the `zoo.search.Index` or `ShardedIndex`, of images or of captions.
        probes: the `zoo.confidence.Probes`, or None.
        note: sentences on photos that the model was trained on, and on items that answer an
            implausible share of the probes' questions; None where there is nothing to say.
    """

    def __init__(
        self,
        model: DualEncoder,
        index: Index | ShardedIndex,
        probes: Probes | None = None,
        names: Any = None,
        resizing: dict[str, Any] | None = None,
        origin: str | None = None,
    ):
        self.model, self.index, self.probes = model, index, probes
        self.note, self._names = None, names
        self._origin, self._resizing = origin, resizing or {}
        self._towers, self._lock = {}, threading.RLock()
        self._judge = None

    @classmethod
    def build(
        cls,
        model: DualEncoder | str | os.PathLike,
        items: Any,
        ids: Sequence[int] | None = None,
        probes: Probes | None = None,
        kind: str = "flat",
        side: str = "images",
        names: Sequence[str] | None = None,
    ) -> "Retriever":
        """A gallery, encoded, indexed and calibrated.

        Args:
            model: a `DualEncoder`, or what `zoo.from_preset` takes.
            items: a folder or a list of files of pictures, pixels `(N, height, width, 3)`, texts
                with `side="captions"`, or embeddings as `encode_*` returned them.
            ids: N distinct whole numbers; None counts from 0.
            probes: held-out pairs; None takes those that come with the model.
            kind: of the index, see `zoo.search.Index.build`.
            side: what the items are, `"images"` or `"captions"`; the other side asks.
            names: N strings to call them; default: of files their paths, of captions the texts.

        Raises:
            InputError: if the model or a picture cannot be read.
            ValueError: if there is no item, or arguments do not fit.
        """
        if side not in _OTHER:
            raise ValueError(f"`side` must be one of {tuple(_OTHER)}; received {side!r}")
        model, origin, resizing = opened(model)
        if probes is None and origin is not None:
            probes = probes_of(origin)
        retriever = cls(model, None, probes, None, resizing, origin)
        embeddings, found, paths = retriever._embedded(items, side)
        names = _checked_names(found if names is None else names, length(embeddings))
        retriever.index = Index.build(
            embeddings,
            model.similarity,
            kind,
            ids=ids,
            side=side,
            uncertainty_measure=model.tower("captions").measure,
        )
        if names is not None:
            retriever._names = dict(zip(retriever.index.ids.tolist(), names, strict=True))
        retriever.note = _notes(training_note(paths, probes), retriever._hub_note())
        return retriever

    @property
    def side(self) -> str:
        """What the gallery holds, `"images"` or `"captions"`."""
        return self.index.description["side"]

    @property
    def judge(self) -> Judge:
        """The `Judge` of this gallery; made when first asked for, and again after growth."""
        with self.index.reading(), self._lock:  # in this order everywhere
            judge = self._judge
            if judge is None or (
                judge.confidence is not None and is_void(judge.confidence, len(self.index))
            ):
                self._judge = judge = self._calibrated()
            return judge

    @property
    def confidence(self) -> Confidence | None:
        """The `zoo.confidence.Confidence` of this gallery, or None."""
        return self.judge.confidence

    def __len__(self) -> int:
        return len(self.index)

    def ask(
        self, question: Any, k: int = 10, max_uncertainty: float | None = None
    ) -> Answer | list[Answer]:
        """What the gallery answers.

        Args:
            question: a text, of which a preamble such as "photos of" is taken off, see
                `zoo.data.text.questions.asked_for`; a picture as a `pathlib.Path`, Pillow image or
                array `(height, width, 3)`; or an embedding of one question. A list has many, of one
                kind; so has an embedding of several rows.
            k: how many results, at most as many as there are items.
            max_uncertainty: leave out items that are less sure than that, see `Index.search`. Of a
                part of the gallery no probability is known.

        Returns:
            An `Answer`, or a list of them for a list.

        Raises:
            ValueError: if k is no whole number from 1, the gallery is empty, or the question does
                not fit the model.
            InputError: if a picture cannot be read.
        """
        if not isinstance(k, (int, float, np.number)) or k % 1 or not 1 <= k < np.inf:
            raise ValueError(f"`k` must be a whole number of at least 1; received {k}")
        is_many = isinstance(question, (list, tuple))
        questions = question if is_many else [question]
        if not questions:
            return []
        asked = self._asked(questions)
        with self.index.reading():
            if not len(self.index):
                raise ValueError("the gallery is empty: there is nothing to ask")
            k = min(int(k), len(self.index))
            found, judged = self._found(
                asked.embeddings, asked.side, asked.texts, k, max_uncertainty
            )
            answers = [
                self._answer(called, text, scores[:k], ids[:k], judgement)
                for called, text, scores, ids, judgement in zip(
                    asked.called, asked.texts or asked.called, *found, judged, strict=True
                )
            ]
        return answers if is_many or len(answers) > 1 else answers[0]

    def add(
        self, items: Any, ids: Sequence[int] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Adds items, as of `build`.

        Raises:
            ValueError: as `zoo.search.Index.add`, or if there are more or fewer names than items.
                Nothing has then been added.
        """
        embeddings, found, paths = self._embedded(items, self.side)
        names = _checked_names(found if names is None else names, length(embeddings))
        note = training_note(paths, self.probes)
        with self._writing():
            named = self._named()
            added = self.index.add(embeddings, ids)
            if names is not None:
                named = {**(named or {}), **dict(zip(added.tolist(), names, strict=True))}
            self._names = named
            self.note = _notes(note, self._hub_note()) or self.note
            self._seen_again()

    def remove(self, ids: Sequence[int]) -> None:
        """Removes items.

        Raises:
            ValueError: as `zoo.search.Index.remove`. Nothing has then been removed.
        """
        with self._writing():
            named = self._named()
            self.index.remove(ids)
            if named is not None:
                gone = set(np.atleast_1d(ids).tolist())
                named = {one: name for one, name in named.items() if one not in gone}
            self._names = named
            self._seen_again()

    def calibrate(
        self,
        queries: EmbeddingLike,
        own: EmbeddingLike,
        groups: Any = None,
        matches: Any = None,
    ) -> Confidence:
        """Calibrates on held-out pairs of one's own, see `zoo.confidence.calibrate_on`.

        Returns:
            The `Confidence`, by which the retriever judges from now on.

        Raises:
            ValueError: as `calibrate_on`.
        """
        queries = as_arrays(queries, "queries")
        uncertainty = None
        measure = self.model.tower("captions").measure
        if measure is not None:
            uncertainty = np.asarray(log_uncertainty(queries, measure), float)
        known = self._known()
        with self.index.reading(), self._lock:
            confidence = calibrate_on(
                self.index, queries, own, matches, groups, uncertainty, known=known
            )
            self._judge = Judge(confidence, known=known, gallery=confidence.gallery)
        return confidence

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a folder that `load`, the command line, the demo and the export read.

        Raises:
            InputError: if it cannot be written, or a build or another save there takes more than a
                minute.
        """
        folder = Path(folder)
        with built.locked(folder, _WAIT), self.index.reading():
            where = built.new_index(folder)
            self.index.save(where)
            self.save_judge(where)
            shards = None
            if isinstance(self._names, dict):
                names = {str(number): name for number, name in self._names.items()}
                write_text(where / built.NAMES, json.dumps(names) + "\n")
            elif self._names is not None:
                shards = str(Path(self._names.folder).resolve())
            if self._origin is None:
                with atomic(folder / built.MODEL) as temporary:
                    self.model.save(temporary)
            setup = {"model": self._origin or built.MODEL, "captions": self.side == "captions"}
            built.commit(folder, {**setup, "index": where.name, "shards": shards})

    def save_judge(self, folder: str | os.PathLike) -> None:
        """Writes the calibration and the probes into the folder of an index."""
        folder = Path(folder)
        if self.confidence is not None:
            self.confidence.save(folder / CALIBRATION)
        if self.probes is not None:
            self.probes.save(folder / PROBES)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        model: DualEncoder | str | os.PathLike | None = None,
    ) -> "Retriever":
        """Opens what `save` or `halo search build` wrote.

        Args:
            folder: of the retriever.
            model: where the model is now, if it has moved.

        Raises:
            InputError: if something is missing or damaged.
        """
        folder = Path(folder)
        setup, names, index, (probes, confidence) = built.load(folder, _judging)
        model, origin, resizing = opened(built.model_of(folder, setup) if model is None else model)
        if probes is None and origin is not None:
            probes = probes_of(origin)
        retriever = cls(model, index, probes, names, resizing, origin)
        if confidence is not None:
            known, gallery = confidence.known, GalleryIdentity.of_index(index)
            retriever._judge = Judge(confidence, known=known, gallery=gallery)
        return retriever

    def tower(self, side: str) -> Tower:
        """The `zoo.Tower` that embeds items or questions of a side, compiled once.

        Raises:
            InputError: if the model embeds it as something that cannot be searched.
        """
        with self._lock:
            if side not in self._towers:
                what = kind_of_embedding(self.model.image_encoder.output)
                if what == TOKENS:
                    raise InputError(
                        f"the model embeds an image as {what}; only points, Gaussians and sets "
                        "can be asked"
                    )
                self._towers[side] = Tower(self.model, side, **self._resizing)
            return self._towers[side]

    def names_of(self, ids: np.ndarray) -> list[str] | None:
        """What items are called, or None."""
        if self._names is None:
            return None
        if isinstance(self._names, dict):
            return [self._names.get(one, str(one)) for one in ids.tolist()]
        return self._names.names(ids)

    def judged(
        self, queries: dict[str, np.ndarray], side: str, texts: Sequence[str] | None = None
    ) -> list[Judgement]:
        """A `zoo.retriever.Judgement` of each question.

        Args:
            queries: embeddings, a dict of arrays.
            side: what they are, `"images"` or `"captions"`.
            texts: the captions that were embedded, or None.
        """
        with self.index.reading():
            return self._found(queries, side, texts)[1]

    def _found(self, queries, side, texts, k=0, max_uncertainty=None):
        """`((scores, ids), judgements)`: of each question the best k, if any, and what to believe.

        The items are k at least, and as many as a judge needs.
        """
        if max_uncertainty is not None:
            judge = Judge(None, "nothing is known of a part of the gallery", self._known())
        elif side == self.side:
            judge = Judge(why_not=f"this gallery is calibrated for {_OTHER[side]}, not for {side}")
        else:
            judge = self.judge
        found = said = uncertainty = None
        if k or judge.confidence is not None:
            depth = max(k, min(DEPTH, len(self.index)))
            found = self.index.search(queries, depth, max_uncertainty)
        if judge.confidence is not None:
            try:
                said = self.index.scores_of(queries, *found, judge.copies)
            except ValueError as error:  # an approximate index found too few
                judge = Judge(why_not=str(error), known=judge.known)
        facts = query_facts(self.model, queries, texts)
        if said is not None and "uncertainty" in judge.confidence.names:
            measure = self.model.tower("captions").measure
            uncertainty = np.asarray(log_uncertainty(queries, measure), float)
        return found, judge(said, uncertainty, **facts, count=length(queries))

    def _answer(self, question, asked, scores, ids, judgement):
        there = ids >= 0
        return Answer(
            question,
            ids[there],
            scores[there],
            self.names_of(ids[there]),
            judgement.probability,
            judgement.verdict,
            judgement.reason,
            judgement.interval,
            asked,
            judgement.length,
        )

    def _asked(self, questions):
        """Questions of one kind, embedded."""
        kinds = {_kind_of(question) for question in questions}
        if len(kinds) > 1:
            raise ValueError(f"questions must be of one kind; received {' and '.join(kinds)}")
        (kind,) = kinds
        if kind == "text":
            texts = [asked_for(question) for question in questions]
            embeddings = self.tower("captions").of_texts(texts)
            return _Asked(embeddings, "captions", questions, texts)
        if kind == "file":
            embeddings = self.tower("images").of_files(questions)
            return _Asked(embeddings, "images", list(map(str, questions)))
        if kind == "picture":
            embeddings = self.tower("images").of_files(questions)
            return _Asked(embeddings, "images", ["a picture"] * len(questions))
        embeddings = joined([as_arrays(_row(one), "question") for one in questions])
        return _Asked(embeddings, _OTHER[self.side], ["an embedding"] * length(embeddings))

    def _embedded(self, items, side):
        """`(embeddings, names or None, paths)` of items."""
        if isinstance(items, (str, os.PathLike)):
            names, paths = list_images(items)
            return self.tower("images").of_files(paths), names, paths
        if isinstance(items, (list, tuple)) and all(
            isinstance(item, (str, os.PathLike)) for item in items
        ):
            if not items:
                raise ValueError("`items` must hold at least one item; received none")
            if side == "captions":
                return self.tower("captions").of_texts(items), [str(one) for one in items], []
            return self.tower("images").of_files(items), [str(item) for item in items], list(items)
        if getattr(items, "ndim", 0) == 4:
            return self.tower("images").of_files(np.asarray(items)), None, []
        return as_arrays(items, "items"), None, []

    def _known(self):
        direction = "t2i" if self.side == "images" else "i2t"
        return None if self.probes is None else self.probes.known.get(direction)

    def _calibrated(self):
        known = self._known()
        if self.probes is None:
            return Judge(known=known)
        try:
            confidence = self.probes.calibrate(self.index)
        except ValueError as error:
            return Judge(why_not=str(error), known=known)
        return Judge(confidence, known=known, gallery=confidence.gallery)

    def _writing(self):
        """The index, for a change of it and of what is kept beside it."""
        if not isinstance(self.index, Index):
            raise ValueError(
                "the gallery is an index in parts, which can only be searched; build it again"
            )
        return self.index.writing()

    def _named(self):
        """What items are called as a dict from their ids, which a change can begin with."""
        if self._names is None or isinstance(self._names, dict):
            return self._names
        ids = self.index.ids
        return dict(zip(ids.tolist(), self._names.names(ids), strict=True))

    def hubs(self) -> list[Hub]:
        """The items that answer an implausible share of the probes' questions.

        See `zoo.search.hubs`; none without probes that fit the index.
        """
        if self.probes is None:
            return []
        bank = self.probes.captions if self.side == "images" else self.probes.images
        try:
            return hubs(self.index, bank)
        except ValueError:  # an index of another similarity
            return []

    def _hub_note(self):
        found = self.hubs()
        if not found:
            return None
        (name,) = self.names_of(np.array([found[0].id])) or [f"item {found[0].id}"]
        others = f", and {len(found) - 1:,} more items likewise" if found[1:] else ""
        return (
            f"{name} is among the first {found[0].first} answers of {found[0].share:.0%} of the "
            f"probes' questions{others}: look whether it belongs there"
        )

    def _seen_again(self):
        """After a change of the gallery: its identity, for the judge."""
        judge = self._judge
        if judge is None:
            return
        if judge.confidence is None or not len(self.index):
            self._judge = None
        else:
            gallery = GalleryIdentity.of_index(self.index)
            self._judge = Judge(judge.confidence, known=judge.known, gallery=gallery)


def opened(model: Any) -> tuple[DualEncoder, Any, dict[str, Any]]:
    """`(DualEncoder, where it came from or None, how it is shown pictures)`."""
    model = model if isinstance(model, DualEncoder) else from_preset(model)
    origin = getattr(model, "origin", None)
    return model, origin, shown_pictures(model, origin)


def _notes(*sentences):
    return "; ".join(filter(None, sentences)) or None


def _judging(folder):
    """The probes and the calibration in the folder of an index, each None where there is none."""
    probes, calibration = folder / PROBES, folder / CALIBRATION
    return (
        Probes.load(probes) if probes.is_file() else None,
        Confidence.load(calibration) if calibration.is_file() else None,
    )


def _checked_names(names, count):
    if names is None:
        return None
    if isinstance(names, str) or len(names) != count:
        received = repr(names) if isinstance(names, str) else len(names)
        raise ValueError(f"`names` must be {count} strings; received {received}")
    return [str(name) for name in names]


def _kind_of(question):
    if isinstance(question, str):
        return "text"
    if isinstance(question, os.PathLike):
        return "file"
    if isinstance(question, bytes) or hasattr(question, "convert"):
        return "picture"
    rank, kind = getattr(question, "ndim", 0), getattr(question, "dtype", None)
    if rank == 3 or (rank == 2 and kind == np.uint8):  # grey; embeddings are floats
        return "picture"
    return "embedding"


def _row(embedding):
    """An embedding of one question may come without its first axis."""
    if isinstance(embedding, dict):
        main = "elements" if "elements" in embedding else "mean"
        if np.ndim(embedding[main]) == (2 if main == "elements" else 1):
            return {name: np.asarray(values)[None] for name, values in embedding.items()}
        return embedding
    return np.asarray(embedding)[None] if np.ndim(embedding) == 1 else embedding
