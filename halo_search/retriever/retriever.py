"""A model, a gallery and a judge: the whole way of an answer."""

import contextlib
import os
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from halo_search import presets
from halo_search.confidence import Confidence, GalleryIdentity, Probes
from halo_search.confidence.bank import Near
from halo_search.confidence.calibrate import AtChanceError
from halo_search.confidence.fits import SHORT, priors
from halo_search.confidence.judge import (
    ABSENT,
    FIT,
    LIKELY,
    NOT_UNDERSTOOD,
    Asked,
    Judge,
    Judgement,
)
from halo_search.confidence.probes import OF_CORRECTED, direction_of
from halo_search.confidence.scores import DEPTH
from halo_search.confidence.spelling import LEAST_SEEN, Spelling, spelling_of
from halo_search.confidence.words import named_words, packaged_bank, stem, unknown_words
from halo_search.embeddings import EmbeddingLike
from halo_search.embeddings.arrays import as_arrays, centres, coordinates, length, take
from halo_search.errors import InputError
from halo_search.files.atomic import atomic
from halo_search.files.written import Written
from halo_search.index import Hub, Index, built, hubs, plan, scoring
from halo_search.index.columns import ids_among, whole_ids
from halo_search.index.hubness import taken_by_few
from halo_search.index.storage import MANIFEST, SAVED_MEANWHILE
from halo_search.retriever.answer import Answer, Everything
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.parts import bank_of, own_probes, training_note
from halo_search.retriever.questions import as_asked, embedded
from halo_search.towers import OnnxModel, Tower, packaged

# What a gallery that is saved where it was loaded from keeps: how it was built, and by which model.
_KEPT = ("model", "model_sha256", "towers", "parts", "build")
PARTS, PART_ITEMS = 8, 200_000  # parts of a gallery, and items of these, that are kept
_MOST_LISTED = 5000  # items with the best scores, of which all that fit are listed
_WAIT = 60  # seconds that a save waits for others of its folder
_OTHER = {"images": "captions", "captions": "images"}
_NOUNS = {"images": "photo", "captions": "caption"}


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

    Attributes:
        model: the `DualEncoder`, opened when it is first needed.
        index, probes: the `halo_search.index.Index`; the `halo_search.confidence.Probes` or None.
        note: sentences on photos of the training and on hubs, or None.
        gain: the `Gain` by which hubs are corrected or not, or None; told when it is built.
    """

    def __init__(
        self,
        model: Any,
        index: Index,
        probes: Probes | None = None,
        names: dict[int, str] | None = None,
    ):
        self.index, self.probes = index, probes
        self.note, self.gain, self._names = None, None, names
        self._model = GalleryModel.of(model)
        self._lock = threading.RLock()
        self._judge = self._near = None
        self._parts = {}  # that were asked lately
        self._setup = None  # the folder it was loaded from, and what that says
        self._saved = None  # the folder of the last load or save, and what told its state then

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
        if side not in _OTHER:
            raise ValueError(f"`side` must be one of {tuple(_OTHER)}; received {side!r}")
        model = GalleryModel.of(model)
        probes = model.probes() if probes is None else probes
        retriever = cls(model, None, probes)
        embeddings, found, paths = retriever._embedded(items, side)
        names = _checked_names(found if names is None else names, length(embeddings))
        bank, retriever.gain = bank_of(hubs, lambda: embeddings, model.similarity, side, probes)
        retriever.index = Index.build(embeddings, model.similarity, ids, side, hubs=bank)
        if names is not None:
            retriever._names = dict(zip(retriever.index.ids.tolist(), names, strict=True))
        retriever.note = _notes(training_note(paths, probes), retriever.hub_note())
        if retriever.judge.at_chance:
            warnings.warn(f"no probabilities: {retriever.judge.why_not}", stacklevel=2)
        return retriever

    @property
    def model(self) -> Any:
        return self._model.opened.keras

    @property
    def similarity(self) -> Any:
        """What ranks: that of the index, else the model's own."""
        return self._model.similarity if self.index is None else self.index.similarity

    def over(self, index: Index, names: Any = None) -> "Retriever":
        """The same model, probes and towers over another gallery; arguments as of the class."""
        return type(self)(self._model, index, self.probes, names)

    def part(self, among: Sequence[int] | Sequence[str] | str) -> "Retriever":
        """The gallery of some items alone, by ids, names or a pattern of names (`fnmatch`) such as
        `"2019/*"`, as one built of them, with hubs corrected as here; later changes do not reach
        it. A ValueError if an item is not in the gallery or given twice, or there is none."""
        with self.index.lock:
            ids = np.sort(ids_among(among, self._names))
            if not len(ids):
                raise ValueError("`among` must name at least one item; received none")
            if self.probes is None:
                _ = self.judge  # which encodes the package's photos as probes
            with self._lock:
                key = ids.tobytes()
                part = self._parts.pop(key, None)
                if part is None or part.probes is not self.probes:
                    part = self.over(self.index.part(ids), self._names)
                self._parts[key] = part  # the latest is last
                kept = self._parts  # the first is the oldest
                total = lambda: sum(map(len, kept.values()))  # noqa: E731
                while len(kept) > PARTS or (len(kept) > 1 and total() > PART_ITEMS):
                    del kept[next(iter(kept))]
        return part

    @property
    def side(self) -> str:
        """What the gallery holds, `"images"` or `"captions"`."""
        return self.index.description["side"]

    @property
    def judge(self) -> Judge:
        """The `Judge` of this gallery; made when first asked for, and again after growth."""
        with self.index.lock, self._lock:  # in this order everywhere
            known = None if self._judge is None else self._judge.confidence
            if self._judge is None or (known is not None and known.is_void(len(self.index))):
                self._judge = self._calibrated()
            return self._judge

    @property
    def confidence(self) -> Confidence | None:
        """The `halo_search.confidence.Confidence` of this gallery, or None."""
        return self.judge.confidence

    def __len__(self) -> int:
        return len(self.index)

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
        asked = self._asked(question if is_many else [question])
        with self.index.lock:
            k = min(int(k), len(self.index))
            found, judged = self._found(asked.embeddings, asked.side, asked.texts, k)
            answers = [
                self._answer(asked, row, *_listed(scores, ids, judgement, k))
                for row, (scores, ids, judgement) in enumerate(zip(*found, judged, strict=True))
            ]
        return answers if is_many or len(answers) > 1 else answers[0]

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
        asked = self._asked([question])
        if len(asked.called) != 1:
            raise ValueError(f"`question` must be one question; received {len(asked.called)}")
        with self.index.lock:
            k = min(_MOST_LISTED, len(self.index))
            found, (judgement,) = self._found(asked.embeddings, asked.side, asked.texts, k)
            if judgement.fits is None and judgement.verdict != NOT_UNDERSTOOD:
                raise ValueError(f"nothing says which items fit: {judgement.reason}")
            likely = np.empty(0) if judgement.fits is None else judgement.fits[:k]
            order = np.argsort(-likely, kind="stable")
            order = order[likely[order] >= least]
            unfit = float(1 - likely[order].mean()) if len(order) else None
            page = order[offset : offset + limit]
            if judgement.fits is not None:
                judgement = judgement._replace(fits=likely[page])
            answer = self._answer(asked, 0, *(part[0, page] for part in found), judgement)
        return Everything(answer, len(order), offset, unfit, least, self.judge.noun)

    def _asked(self, questions):
        return embedded(questions, self.tower, _OTHER[self.side], self.as_asked)

    def add(
        self, items: Any, ids: Sequence[int] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Adds items, as of `build`; raises as `halo_search.index.Index.add`, and if there are
        more or fewer names than items. Nothing has been added then."""
        embeddings, found, paths = self._embedded(items, self.side)
        names = _checked_names(found if names is None else names, length(embeddings))
        note = training_note(paths, self.probes)
        with self.index.lock:
            added = self.index.add(embeddings, ids)
            if names is not None:
                new = dict(zip(added.tolist(), names, strict=True))
                self._names = {**(self._names or {}), **new}
            self.note = _notes(note, self.hub_note()) or self.note
            self._seen_again()

    def remove(self, ids: Sequence[int]) -> None:
        """Removes all of some items or, where it raises as `halo_search.index.Index.remove`,
        none."""
        ids = whole_ids(ids)
        with self.index.lock:
            self.index.remove(ids)
            if self._names is not None:
                gone = set(ids.tolist())
                self._names = {one: name for one, name in self._names.items() if one not in gone}
            self._seen_again()

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
            probes = self._model.opened.with_own(queries, self.probes)
        else:
            queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
            probes = own_probes(self.side, queries, own, groups, self.probes)
        with self.index.lock, self._lock:
            confidence = probes.calibrate(self.index)
            self.probes, self._near = probes, None
            self._judge = self._judge_of(confidence)
        return confidence

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a folder that `load`, the command line, the demo and the export read; an
        InputError if it cannot, a build or save there takes more than a minute, or another process
        has saved there since it was loaded."""
        folder = Path(folder)
        with built.locked(folder, _WAIT) as written, self.index.lock:
            where, state = self._saved or (None, None)
            if where == folder.resolve() and state != _saved_in(written.content):
                raise InputError(f"{folder}: {SAVED_MEANWHILE}")
            is_same = self._setup is not None and self._setup[0] == folder.resolve()
            kept = {k: v for k, v in self._setup[1].items() if k in _KEPT} if is_same else {}
            origin = self._model.origin
            if origin is None or Path(origin) == folder / built.MODEL:
                written.claim(built.MODEL)
                with atomic(folder / built.MODEL) as temporary:
                    self._model.opened.save(temporary)
                kept["model"] = built.MODEL
            made = {"model_sha256": self.model_sha256, "towers": built.packaged_towers(self._model)}
            self.write(written, {"model": presets.absolute(origin), **made, **kept})
            self._saved = folder.resolve(), _saved_in(written.content)

    @property
    def model_sha256(self) -> str:
        """The hash of the weights that embedded the gallery, and of how pictures are resized."""
        return self._model.model_sha256(self.side)

    def write(self, written: Written, setup: dict[str, Any]) -> None:
        """Writes the index and its judge into a folder that `built.locked` holds, and `setup`."""
        where = built.fresh(written, built.INDEX)
        try:
            setup = {**setup, **self._write_index(where)}
            built.commit(written, setup)
        except BaseException:
            with contextlib.suppress(OSError, InputError):  # the error is what stopped it
                # LanceDB's own index is open there by now; the next build or save removes it.
                if written.content.get("index") != where.name and self.index.engine == "memory":
                    written.remove({where.name})
            raise

    def _write_index(self, where):
        """Writes the index and what lies beside it into a folder, and returns what `search.json`
        says of it."""
        self.index.save(where)
        Written(where, MANIFEST).claim(*built.BESIDE)
        if self._names is not None:
            built.write_names(where, self._names)
        if self.confidence is not None:
            self.confidence.save(where / built.CALIBRATION)
        if self.probes is not None and not self._has_packaged_probes:
            self.probes.save(where / built.PROBES)
        if self.near is not None:
            with atomic(where / built.NEAR) as temporary, temporary.open("wb") as file:
                np.savez(file, **self.near.arrays())
        is_of_captions = self.side == "captions"
        return {"captions": is_of_captions, "index": where.name, "engine": self.index.engine}

    @property
    def _has_packaged_probes(self):
        """Whether the probes are those of the package, which a saved gallery names."""
        model = self._model
        return built.packaged_towers(model) is not None and self.probes is model.probes()

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
        folder, model_is_given = Path(folder), model is not None

        def towers(setup):
            if model is None and isinstance(setup.get("towers"), str):
                return OnnxModel(folder / setup["towers"], built.model_of(folder, setup))
            return packaged(setup["model"] if model is None else model, lean)

        setup, names, index, judging, onnx = built.load(folder, _judging, towers)
        probes, confidence, near = judging
        source = built.model_of(folder, setup) if model is None else model
        gallery_model = GalleryModel(source, onnx, check=lambda opened: check(opened))
        retriever = cls(gallery_model, index, probes, names)
        retriever._near = near

        def check(opened):
            retriever._check_weights(folder, opened, setup.get("model_sha256"))

        if onnx is None or not isinstance(setup.get("towers"), str):
            check(retriever._model.light)
        if probes is None:
            retriever.probes = retriever._model.probes()
        if confidence is not None:
            retriever._judge = retriever._judge_of(confidence)
        if not model_is_given:
            retriever._setup = folder.resolve(), setup
        retriever._saved = folder.resolve(), _saved_in(setup)
        return retriever

    def _check_weights(self, folder, opened, sha256):
        """Warns where other weights embedded the gallery; refuses those of another width."""
        if sha256 is None or opened.model_sha256(self.side) == sha256:
            return
        expected = self.index.description["dim"]
        if expected not in opened.widths:
            raise InputError(
                f"{folder}: was built with embeddings of {expected} numbers; this model's have "
                f"{max(opened.widths)}: open it with its own model, or build it again"
            )
        warnings.warn(
            f"{folder}: another model embedded this gallery: its weights differ from those of "
            f"{opened.origin or 'the model that is open'}. Scores and probabilities mean nothing. "
            "Open it with its own model, or build it again",
            stacklevel=3,
        )

    def tower(self, side: str) -> Tower:
        """What embeds items or questions of a side; an InputError if the model's embedding cannot
        be searched."""
        return self._model.tower(side)

    def names_of(self, ids: np.ndarray) -> list[str] | None:
        """What items are called, or None."""
        if self._names is None:
            return None
        return [self._names.get(one, str(one)) for one in ids.tolist()]

    def judged(
        self, queries: dict[str, np.ndarray], side: str, texts: Sequence[str] | None = None, k=DEPTH
    ) -> list[Judgement]:
        """A `Judgement` of each question, of at most k results; queries are a dict of arrays of
        `side`, and texts the captions that were embedded, or None."""
        with self.index.lock:
            return self._found(queries, side, texts, min(k, len(self.index)))[1]

    def _found(self, queries, side, texts, k):
        """`((scores, ids), judgements)`: of each question the best k, at least, and what to
        believe."""
        if not len(self.index):
            count = length(plan.checked_queries(self.index.description, self.similarity, queries))
            nothing = Judgement(np.empty(0), None, ABSENT, "The gallery is empty.", number=0.0)
            scores, ids = np.empty((count, 0), np.float32), np.empty((count, 0), np.int64)
            return (scores, ids), [nothing] * count
        judge = self.judge
        if side == self.side:
            judge = Judge(why_not=f"this gallery is calibrated for {_OTHER[side]}, not for {side}")
        found, depth = None, max(k, min(DEPTH, len(self.index)))
        if k or judge.confidence is not None:
            found = self.index.search(queries, depth)
        if judge.confidence is None:
            return found, judge(None, None, self.facts(queries, texts, judge), length(queries))
        scores, ids = found
        is_few = np.isnan(scores[:, :DEPTH]).any(axis=1)
        if len(is_few) > 1 and is_few.any():  # of each alone: what others find does not matter
            alone = [
                self._found(take(queries, [row]), side, texts and [texts[row]], k)[1][0]
                for row in range(len(is_few))
            ]
            return found, alone
        if is_few.any():
            judge = self._unjudged(f"the search found fewer than {DEPTH}: raise `candidates`")
            return found, judge(None, None, self.facts(queries, texts, judge), 1)
        facts = self.facts(queries, texts, judge, ids)
        shown = scoring.sign(self.index.similarity) * scores
        shown = np.nan_to_num(shown, nan=float(np.finfo(np.float32).min))
        return found, judge(self.index.scores_of(queries, scores, ids, judge.copies), shown, facts)

    def facts(
        self,
        queries: dict[str, np.ndarray],
        texts: Sequence[str] | None,
        judge: Judge,
        ids: np.ndarray | None = None,
    ) -> Asked:
        """What a judge asks about questions beside their scores; `texts` is what was embedded, or
        None for pictures, and `ids` `(Q, k)` what was found."""
        means, middle = coordinates(queries), centres(queries)
        asked, fits = Asked(means=means, in_words=texts is not None), judge.fits
        if texts is None:
            return asked
        if fits is not None and SHORT in fits.second:  # it has learnt of words
            asked = asked._replace(prior=priors(texts, packaged_bank()))
        if fits is not None and ids is not None and (near := self.near) is not None:
            places = np.maximum(self.index.places(ids), 0)  # of what was not found any
            asked = asked._replace(near=near.of(self.probes.bank, middle, texts, places))
        if not self._model.reads_texts:
            return asked
        words, unknown = unknown_words(self._model, texts)
        unheard = None if fits is None else self._unheard(texts)
        return asked._replace(words=words, unknown=unknown, unheard=unheard)

    def _unheard(self, texts):
        """Of each text, the words that no caption holds and that the reader spells of pieces."""
        is_word, spelled = self._is_word(), packaged_bank().words
        return [
            [word for word in named_words(text) if not (word in spelled or is_word(word))]
            for text in texts
        ]

    @property
    def near(self) -> Near | None:
        """What the captioned photos of the probes show near each item; None without any, and for a
        gallery of captions."""
        bank = None if self.probes is None else self.probes.bank
        if bank is None or self.side != "images" or not isinstance(self.index, Index):
            return None
        with self.index.lock, self._lock:
            if self._near is None or len(self._near) != len(self.index):
                vectors = self.index.item_vectors(np.arange(len(self.index)))
                self._near = bank.near(vectors[:, : bank.images.shape[1]])
            return self._near

    def as_asked(self, text: str) -> str:
        """A question as the model is asked it: `preambles.as_asked`, and without typos: of what a
        mistyped question may have meant the likeliest that this gallery has a likely answer to,
        else the likeliest."""
        texts = self.spelling.meant(as_asked(text), self._is_word())
        if len(texts) == 1 or self.index is None or not len(self.index):
            return texts[0]
        asked = _OTHER[self.side]
        judged = self.judged(self.tower(asked).of_texts(texts), asked, texts)
        answered = (text for text, one in zip(texts, judged, strict=True) if one.verdict == LIKELY)
        return next(answered, texts[0])

    @property
    def spelling(self) -> Spelling:
        """The words that somebody may have meant: those of captions, and of a model that knows
        whole words alone these words."""
        known = self._model.known_words
        return spelling_of(None if known is None else frozenset(known))

    def _is_word(self):
        """A function of a word: whether the reader knows it in one piece."""
        words = self._model.known_words
        known = frozenset(self._model.vocabulary or ()) if words is None else words
        bank = None if self.probes is None else self.probes.bank

        def is_word(word):
            if word in known or f"{word}</w>" in known:
                return True
            is_asked = words is None and bank is not None  # else every known word is listed
            return is_asked and len(bank.holding(stem(word))) >= LEAST_SEEN

        return is_word

    def _answer(self, asked, row, scores, ids, judgement):
        there, fits = ids >= 0, judgement.fits
        question, text = asked.called[row], asked.texts and asked.texts[row]
        return Answer(
            question,
            ids[there],
            scores[there],
            self.names_of(ids[there]),
            judgement.verdict,
            judgement.reason,
            fits=None if fits is None else fits[: len(ids)][there],
            wanted=judgement.wanted,
            number=judgement.number,
            interval=judgement.interval,
            asked=None if text == question else text,
            _length=judgement.length,
        )

    def _embedded(self, items, side):
        """`(embeddings, names or None, paths)` of items."""
        is_list = isinstance(items, (list, tuple))
        if isinstance(items, (str, os.PathLike)) or (
            is_list and all(isinstance(item, (str, os.PathLike)) for item in items)
        ):
            if is_list and not items:
                raise ValueError("`items` must hold at least one item; received none")
            if is_list and side == "captions":
                return self.tower("captions").of_texts(items), [str(one) for one in items], []
            from halo_search.collection import pictures

            found = pictures(items)
            return self.tower("images").of_files(found.values), found.names, found.values
        if getattr(items, "ndim", 0) == 4:
            return self.tower("images").of_files(np.asarray(items)), None, []
        return as_arrays(items, "items"), None, []

    def _unjudged(self, why_not, at_chance=False):
        known = None if self.probes is None else self.probes.known.get(direction_of(self.side))
        noun = _NOUNS[self.side]
        return Judge(why_not=why_not, known=known, at_chance=at_chance, noun=noun)

    def _calibrated(self):
        if self.probes is None and len(self.index):
            self.probes = self._model.general_probes()
        if self.probes is None:
            return Judge(noun=_NOUNS[self.side])
        try:
            confidence = self.probes.calibrate(self.index)
        except ValueError as error:
            return self._unjudged(str(error), isinstance(error, AtChanceError))
        return self._judge_of(confidence)

    def _judge_of(self, confidence):
        """The `Judge` of the gallery as it is now, by a calibration."""
        probes, fits = self.probes, None
        if probes is not None and self._ranks_as_trained:
            which = "" if self.index.hubs is None else OF_CORRECTED  # of these scores
            fits = probes.fits.get(which + direction_of(self.side))
        if fits is not None and confidence.in_gallery is not None:
            fits = fits.near(confidence.in_gallery.likeness)
        return Judge(
            confidence,
            fits=fits,
            by_class=probes is not None and probes.by_class,
            known=confidence.known,
            gallery=GalleryIdentity.of_index(self.index),
            noun=_NOUNS[self.side],
            note="" if probes is None else probes.note,
        )

    @property
    def _ranks_as_trained(self):
        return scoring.rank_alike(self._model.similarity, self.index.similarity)

    def hubs(self) -> list[Hub]:
        """Of the probes' questions, see `halo_search.index.hubs`; none without probes that fit."""
        return self._of_questions(hubs) or []

    def hub_note(self) -> str | None:
        """A sentence where a hub, or a few items of which none alone need be one, answer many of
        the probes' questions; else None."""
        found, size = self.hubs(), len(self.index)
        if found:
            (name,) = self.names_of(np.array([found[0].id])) or [f"item {found[0].id}"]
            others = f", and {len(found) - 1:,} more items likewise" if found[1:] else ""
            return (
                f"{name} is among the first {found[0].first} answers of {found[0].share:.0%} of "
                f"the probes' questions{others}: look whether it belongs there"
            )
        few = self._of_questions(taken_by_few)
        return few and f"{few[0]:,} of {size:,} items are first for {few[1]:.0%} of the probes"

    def _of_questions(self, found):
        if self.probes is None:
            return None
        try:
            return found(self.index, self.probes.questions(self.side))
        except ValueError:  # an index of another similarity
            return None

    def _seen_again(self):
        """After a change of the gallery: its identity, for the judge."""
        self._parts.clear()
        self._near = None
        if self._setup is not None:  # whose parts are of other items now
            folder, setup = self._setup
            self._setup = folder, {k: v for k, v in setup.items() if k != "parts"}
        judge = self._judge
        if judge is None or judge.confidence is None or not len(self.index):
            self._judge = None
        else:
            self._judge = self._judge_of(judge.confidence)


def _saved_in(content):
    """What tells the state of a folder, of what its `search.json` says."""
    return content.get("index"), content.get("files")


def _notes(*sentences):
    return "; ".join(filter(None, sentences)) or None


def _listed(scores, ids, judgement, k):
    """The first k of a question's results `(depth,)` as they are listed, and their judgement."""
    if judgement.order is None:
        return scores[:k], ids[:k], judgement
    places = judgement.order[:k]
    return scores[places], ids[places], judgement.listed()


def _judging(folder, files):
    """The probes, the calibration and `Near` in the folder of an index, each None where its files
    have none."""
    kinds = {built.PROBES: Probes, built.CALIBRATION: Confidence, built.NEAR: Near}
    return [kind.load(folder / name) if name in files else None for name, kind in kinds.items()]


def _checked_names(names, count):
    if names is None:
        return None
    if isinstance(names, str) or len(names) != count:
        received = repr(names) if isinstance(names, str) else len(names)
        raise ValueError(f"`names` must be {count} strings; received {received}")
    return [str(name) for name in names]
