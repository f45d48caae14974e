"""How many photos fit a caption: by people, and by an oracle for the pairs that nobody judged."""

import os
from typing import NamedTuple

import numpy as np

import own_pairs
from zoo import evaluation, training
from zoo.confidence.features import Logistic
from zoo.embeddings.arrays import unit

PENALTY = 1e-4


class Points(NamedTuple):
    """Photos and captions of a split as the points of a model."""

    images: np.ndarray  # `(N, dim)` and `(M, dim)`, unit vectors
    captions: np.ndarray  # `(N, dim)` and `(M, dim)`, unit vectors
    spreads: tuple[np.ndarray, np.ndarray] | None
    sentences: np.ndarray
    owners: np.ndarray  # `(M,)`, the row of each caption's photo
    names: list[str]  # N files, relative to the folder of the data
    texts: list[str]  # M captions

    @classmethod
    def of(cls, name, data_dir, split):
        """Encodes a split by a preset or a run of `own_pairs.py`, whose vectors are cached."""
        model, opened = evaluation.open_run(name, data_dir, split)
        stored = own_pairs.stored(opened, model)
        run = training.Run(None)
        run.read_features(stored, stored, stored)
        encoded = evaluation.encode(run.reader(model), stored.records, stored.source)
        records, sides = stored.records, (encoded.images, encoded.captions)
        spreads = None
        if "log_variance" in encoded.images:
            spreads = tuple(np.exp(np.asarray(side["log_variance"])).sum(axis=1) for side in sides)
        vectors = records.caption_vectors.gather(np.arange(records.num_captions))
        return cls(
            *(unit(np.asarray(side["mean"])) for side in sides),
            spreads,
            unit(np.asarray(vectors)),
            records.caption_image,
            [os.path.relpath(path, data_dir) for path in records.image_paths],
            [" ".join(text.split()) for text in records.captions],
        )

    def table(self):
        """`(N, most captions of a photo)`, the captions of each photo, then −1."""
        counts = np.bincount(self.owners, minlength=len(self.images))
        found = np.full((len(counts), counts.max()), -1)
        order = np.argsort(self.owners, kind="stable")
        found[np.arange(counts.max()) < counts[:, None]] = order
        return found

    def features(self, rows, images, table):
        """What the oracle reads of some captions and images, `(Q, B, 3)`."""
        columns = table[images]
        cosines = self.sentences[rows] @ self.sentences[columns.ravel()].T
        cosines = cosines.reshape(len(rows), *columns.shape)
        is_other = (columns >= 0) & (columns != np.asarray(rows)[:, None, None])
        best = np.sort(np.where(is_other, cosines, -1.0), axis=2)
        own = self.captions[rows] @ self.images[images].T
        return np.stack([best[..., -1], best[..., -2], own], axis=2)


class Half(NamedTuple):
    """A gallery of half of the photos, and the judged captions of these photos."""

    questions: np.ndarray  # `(Q,)`, rows of captions
    gallery: np.ndarray  # `(N,)`, rows of photos
    people: np.ndarray  # `(Q, N)`, 1 and 0 as judged, 1 for the caption's own photo, else NaN
    likely: np.ndarray
    oracle: Logistic  # the `Logistic` of `Points.features`

    @property
    def counts(self):
        """How many photos fit each question, by people and by the oracle."""
        return np.nansum(self.people, axis=1), self.likely.sum(axis=1)


def halves(points, judgments, seed):
    """Both halves of a split's photos, each with an oracle of the other."""
    row = {name: place for place, name in enumerate(points.names)}
    caption = {
        pair: place for place, pair in enumerate(zip(points.owners, points.texts, strict=True))
    }
    asked = np.array(
        [
            caption[row[own], " ".join(text.split())]
            for own, text in zip(judgments.own, judgments.captions, strict=True)
        ]
    )
    judged = np.array([row[name] for name in judgments.images])
    is_own, table = points.owners[asked] == judged, points.table()
    questions, place = np.unique(asked, return_inverse=True)
    everything = points.features(questions, np.arange(len(points.images)), table)
    people = np.full(everything.shape[:2], np.nan)
    people[np.arange(len(questions)), points.owners[questions]] = 1.0
    people[place, judged] = judgments.fits
    first = np.random.default_rng(seed).permutation(len(points.images)) < len(points.images) // 2
    for part in (first, ~first):
        learn = ~part[points.owners[asked]] & ~part[judged] & ~is_own
        oracle = Logistic.fit(everything[place, judged][learn], judgments.fits[learn], PENALTY)
        rows, gallery = np.flatnonzero(part[points.owners[questions]]), np.flatnonzero(part)
        likely = oracle.probability(everything[np.ix_(rows, gallery)])
        likely[points.owners[questions[rows]][:, None] == gallery] = 1.0
        yield Half(questions[rows], gallery, people[np.ix_(rows, gallery)], likely, oracle)
