"""What the probes of a gallery tell: the same numbers of them as a benchmark has of its rows."""

import dataclasses

import numpy as np
from scipy.special import expit

from zoo.confidence import guarantees
from zoo.confidence.calibrate import ask_probes
from zoo.confidence.features import Logistic
from zoo.confidence.scores import DEPTH, QueryScores
from zoo.embeddings.arrays import take
from zoo.search import Index

PENALTY = 0.01


@dataclasses.dataclass(eq=False)
class Asked:
    """Questions in front of a gallery each, as far as a confidence reads them.

    Attributes:
        scores: their `QueryScores`.
        points: `(Q, dim)`, their means.
        answers: `(Q, 20, dim)`, the means of their best answers.
        uncertainty: `(Q,)`, log of their own.
        answer_uncertainty: `(Q,)`, log of the first answer's.
    """

    scores: QueryScores
    points: np.ndarray
    answers: np.ndarray
    uncertainty: np.ndarray
    answer_uncertainty: np.ndarray


@dataclasses.dataclass(eq=False)
class Told:
    """Probes: with their own items in the gallery, and without.

    Attributes:
        inside, outside: `Asked`.
        right: `(Q,)` booleans: an own item comes first.
        groups: `(Q,)` numbers.
        copies: see `zoo.confidence.agreement`.
        apart: the probes in front of a gallery of their own items alone, and whether they are right
            there. What reads vectors has to learn here: an item that is put into a gallery for its
            own question is of other origin than the gallery, and gives itself away.
    """

    inside: Asked
    outside: Asked
    right: np.ndarray
    groups: np.ndarray
    copies: float | None
    apart: tuple[Asked, np.ndarray] | None = None

    @classmethod
    def by(cls, retriever, gallery, log_total):
        """Those of a `Retriever`.

        Args:
            retriever: with probes.
            gallery: its items' embeddings, a dict of arrays.
            log_total: function from embeddings to the log of each one's uncertainty.
        """
        pairs, index = retriever.probes.pairs("t2i"), retriever.index
        queries, own = pairs["queries"], pairs["own"]
        probed, rows, copies, *_ = ask_probes(index, queries, own, pairs["matches"])
        scores, ids = index.search(queries, min(DEPTH, len(index)))
        places = np.searchsorted(index.ids, ids)  # a flat index of items numbered from 0
        items = {name: gallery[name][places] for name in ("mean", "log_variance")}
        both = {
            name: np.concatenate([items[name], take(own, np.maximum(rows, 0))[name]], axis=1)
            for name in items
        }
        own_scores = index.pair_scores(queries, own, rows)
        own_scores = np.where(np.isnan(own_scores) | probed.is_there, -np.inf, own_scores)
        order = np.argsort(-np.concatenate([scores, own_scores], axis=1), axis=1, kind="stable")[
            :, : scores.shape[1], None
        ]
        joined = {name: np.take_along_axis(both[name], order, axis=1) for name in both}
        uncertainty = np.asarray(log_total(queries), float)

        def asked(found, answers):
            first = {name: values[:, 0] for name, values in answers.items()}
            first = np.asarray(log_total(first), float)
            points = queries["mean"].astype(np.float32)
            return Asked(found, points, answers["mean"], uncertainty, first)

        return cls(
            asked(probed.scores, joined),
            asked(probed.without, items),
            probed.correct,
            guarantees.numbered(pairs["groups"], len(uncertainty)),
            copies,
            asked_apart(retriever.model.similarity, pairs, log_total),
        )

    def probability(self, of_probes, of_rows):
        """What a number says of each row: one logistic curve, fitted on the probes.

        Args:
            of_probes: `(Q,)`, or `(Q, features)`.
            of_rows: `(R,)` or `(R, features)`.
        """
        curve = self.curve(of_probes)
        return expit(curve.logit(columns(of_rows)))

    def presence(self, inside, outside, of_rows):
        """The log odds that a row's own item is there, learnt from probes with it and without."""
        both = np.concatenate([columns(inside), columns(outside)])
        curve = Logistic.fit(both, np.arange(len(both)) < len(inside), PENALTY)
        return curve.logit(columns(of_rows))

    def curve(self, values):
        """One logistic curve of numbers of the probes, every group counted once."""
        weights = guarantees.weights(self.groups)
        return Logistic.fit(columns(values), self.right, PENALTY, weights=weights)


def asked_apart(similarity, pairs, log_total):
    """`(Asked, right)` of probes in front of a gallery of all their own items, and of no others.

    Args:
        similarity: of the model.
        pairs: of `zoo.confidence.Probes.pairs`.
        log_total: as of `Told.by`.
    """
    queries, own = pairs["queries"], pairs["own"]
    index = Index.build(own, similarity)
    scores, ids = index.search(queries, min(DEPTH, len(index)))
    found = index.query_scores(queries, scores, ids)
    answers = own["mean"][ids].astype(np.float32)
    first = {name: values[ids[:, 0]] for name, values in own.items()}
    asked = Asked(
        found,
        queries["mean"].astype(np.float32),
        answers,
        np.asarray(log_total(queries), float),
        np.asarray(log_total(first), float),
    )
    return asked, pairs["matches"][np.arange(len(ids)), ids[:, 0]]


def columns(values):
    """Numbers `(Q,)` or features `(Q, features)` as features."""
    values = np.asarray(values, float)
    return values[:, None] if values.ndim == 1 else values
