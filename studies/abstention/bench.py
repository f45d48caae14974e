"""A data set as a benchmark: a gallery, its questions in four kinds, and what is true of them."""

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np

import zoo
from studies.abstention.questions import (
    ANSWERABLE,
    KINDS,
    PARAPHRASED,
    REMOVED,
    UNKNOWN,
    of_unknown_words,
    paraphrased,
    rows_of,
)
from studies.abstention.told import Asked, Told
from zoo import data
from zoo.confidence.judge import NOT_UNDERSTOOD
from zoo.confidence.scores import QueryScores, best_first
from zoo.data import toy_birds
from zoo.embeddings import log_uncertainty
from zoo.embeddings.arrays import take
from zoo.evaluation.runs import data_of

# By name: the preset that is asked, and where in the folder of data its pictures lie.
SETS = {
    "toy_birds": ("toy_birds_pfe", None),
    "flickr8k": ("photos_pfe", "flickr8k"),
    "birds": ("birds_pfe", "CUB_200_2011_crops"),
}
QUESTIONS = 2000


@dataclasses.dataclass(eq=False)
class Bench:
    """One data set, asked. A row is a question in front of a gallery; there are four of each.

    Attributes:
        retriever: the `zoo.Retriever` of the whole gallery.
        texts: T strings, three for each caption that was drawn.
        questions: their embeddings, a dict of arrays.
        similarity: `(T, N)`, their scores.
        wanted: `(T, N)` booleans: what is right for each; nothing of unknown words.
        fitting: `(T, N)` booleans: what has to go for nothing to match. Where the truth is known,
            as of Toy Birds, that is also what is of another class and has all that is named.
        kind: `(R,)`, of `KINDS`.
        text: `(R,)`, the row of each one's text.
        group: `(R,)`, captions of one image, or of one class, belong together.
    """

    retriever: zoo.Retriever
    texts: list
    questions: dict
    similarity: np.ndarray
    wanted: np.ndarray
    fitting: np.ndarray
    kind: np.ndarray
    text: np.ndarray
    group: np.ndarray

    @property
    def keep(self):
        """`(R, N)` booleans: what the gallery of each row holds."""
        return ~(self.fitting[self.text] & (self.kind == REMOVED)[:, None])

    @property
    def right(self):
        """`(R,)` booleans: the first answer is right."""
        first = np.argmax(np.where(self.keep, self.similarity[self.text], -np.inf), axis=1)
        found = self.wanted[self.text, first]
        return found & (self.kind != REMOVED)

    def asked(self, copies=None):
        """Every row as `studies.abstention.told.Asked`."""
        vectors = self.retriever.index.own_space.item_vectors(self.gallery)
        found, best = [], []
        for some in np.array_split(np.arange(len(self.kind)), 16):
            rows, keep = self.similarity[self.text[some]], self.keep[some]
            found.append(QueryScores.of_matrix(rows, keep, vectors, copies))
            best.append(best_first(np.where(keep, rows, -np.inf)))
        best = np.concatenate(best)
        first = {name: values[best[:, 0]] for name, values in self.gallery.items()}
        return Asked(
            QueryScores.concatenate(found),
            self.questions["mean"][self.text],
            self.gallery["mean"][best],
            self.log_total(self.questions)[self.text],
            self.log_total(first),
        )

    def log_total(self, embedding):
        """Log of the uncertainty of each, by the model's own measure."""
        return np.asarray(log_uncertainty(embedding, self.retriever.probes.measure), float)

    @functools.cached_property
    def not_understood(self):
        """`(R,)` booleans: the retriever says of the question alone that it does not understand."""
        judged = self.retriever.judged(self.questions, "captions", self.texts)
        return np.array([one.verdict == NOT_UNDERSTOOD for one in judged])[self.text]

    def told(self):
        """What the model's probes say of the whole gallery."""
        return Told.by(self.retriever, self.gallery, self.log_total)

    @property
    def gallery(self):
        """The items' embeddings, a dict of arrays."""
        return self.retriever.gallery_embeddings

    def save(self, folder):
        """Writes `truth.npz`, which the score of a file needs, and `vectors.npz`, for others."""
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            folder / "truth.npz", kind=self.kind, right=self.right, group=self.group
        )
        np.savez(
            folder / "vectors.npz",
            text=self.text,
            wanted=np.packbits(self.wanted, axis=1),
            fitting=np.packbits(self.fitting, axis=1),
            similarity=self.similarity,
            **{f"gallery_{name}": values for name, values in self.gallery.items()},
            **{f"question_{name}": values for name, values in self.questions.items()},
        )
        (folder / "questions.json").write_text(json.dumps(self.texts, indent=0) + "\n")


def make(name, data_dir=None, presets=None, seed=0):
    """A `Bench` by name.

    Args:
        name: of `SETS`.
        data_dir: the folder with the data sets that are not drawn.
        presets: a folder with presets that are not packaged yet, or None.
        seed: of all that is drawn.
    """
    preset, place = SETS[name]
    if presets is not None and (Path(presets) / preset).exists():
        preset = Path(presets) / preset
    records, matches, fitting, classes = _opened(name, preset, data_dir, place)
    model = zoo.from_preset(preset)
    retriever = _Asked.build(model, [Path(path) for path in records.image_paths])
    rng = np.random.default_rng(seed)
    drawn = rows_of(records.captions, records.caption_image, QUESTIONS, seed)
    originals = [str(records.captions[row]) for row in drawn]
    texts = [
        *originals,
        *(paraphrased(text, rng) for text in originals),
        *(of_unknown_words(text, rng) for text in originals),
    ]
    questions = retriever.tower("captions").of_texts(texts)
    count, own = len(drawn), np.arange(len(drawn))
    group = (records.caption_labels if classes else records.caption_image)[drawn]
    wanted, fitting = (
        np.concatenate([one[drawn], one[drawn], np.zeros_like(one[drawn])])
        for one in (matches, fitting)
    )
    rows = {ANSWERABLE: own, REMOVED: own, PARAPHRASED: count + own, UNKNOWN: 2 * count + own}
    return Bench(
        retriever,
        texts,
        questions,
        _similarity(model, retriever.gallery_embeddings, questions),
        wanted,
        fitting,
        np.repeat(KINDS, count),
        np.concatenate([rows[kind] for kind in KINDS]),
        np.tile(group, len(KINDS)),
    )


class _Asked(zoo.Retriever):
    """A retriever that keeps its gallery's embeddings."""

    def _embedded(self, items, side):
        found = super()._embedded(items, side)
        self.gallery_embeddings = found[0]
        return found


def _similarity(model, gallery, questions, block=500):
    parts = [
        np.asarray(model.similarity(gallery, take(questions, slice(start, start + block)))).T
        for start in range(0, len(questions["mean"]), block)
    ]
    return np.concatenate(parts)


def _opened(name, preset, data_dir, place):
    """`(records, matches (captions, images), what fits, whether matches are by class)`."""
    if name == "flickr8k":
        described = {"loader": "pairs", "image_size": 224}
    else:
        described = dict(data_of(preset))
    if place is not None:  # Toy Birds are drawn into the cache
        described["root"] = str(Path(data_dir) / place)
    records = data.open(described, "test").records
    matches = np.asarray(records.caption_labels)[:, None] == np.asarray(records.image_labels)
    fitting = matches | _true_of(records) if name == "toy_birds" else matches
    return records, matches, fitting, name != "flickr8k"


def _true_of(records):
    """Of which birds a caption is true: not only its class has what it names."""
    truth = toy_birds.read_truth(Path(records.image_paths[0]).parents[2], records)
    return np.stack([((said < 0) | (said == truth.images)).all(-1) for said in truth.captions])
