"""One direction of captioned photos, with the two regressions that `learn_fits` is made of."""

import numpy as np

from halo_search.confidence import fits as fitting
from halo_search.confidence.features import Logistic
from halo_search.confidence.senses import NO_WORDS
from halo_search.embeddings.arrays import centres, length, take, thinned, unit
from halo_search.embeddings.checks import one_of_each
from halo_search.embeddings.csls import LEAST as LEAST_QUESTIONS
from halo_search.embeddings.csls import MOST as MOST_QUESTIONS
from halo_search.embeddings.csls import CorrectedSpace, can_correct, padded
from halo_search.retriever.hubs import Gain
from zoo.evaluation.gallery import OwnLeftOut, space_of

BEST, TAIL = 20, 60  # pairs of a question that teach ρ: its best, and others drawn at random
_PENALTY = 1e-4


class Learner:
    """One direction of captioned photos: questions, items, scores between them, what fits what, and
    the regressions that are learnt from these.

    Attributes:
        queries, items: embeddings of Q questions and N items.
        texts: the questions' texts, for `"t2i"`.
        scores, fit, is_owner: `(Q, N)`; `fit` in [0, 1].
        photo, photo_of_item: the row of the photo of each question `(Q,)` and item `(N,)`.
        near: the `Near` of the items, for `"t2i"` with a bank.
        hubs, shifts: of `correct`; shifts `(N,)` are added to scores.
    """

    def __init__(self, captioned, direction, bank, rng, matrices, labelled=()):
        self.captioned = captioned
        self.direction = direction
        self.bank = bank
        self.rng = rng
        self.labelled = labelled
        self.near, self.texts = None, None
        self.hubs, self.shifts = None, 0.0
        owners, photos = captioned.owners, np.arange(length(captioned.images))
        scores, fit, is_owner, self.scale = matrices
        if direction == "t2i":
            asked = one_of_each(owners, rng)
            self.queries, self.items = take(captioned.captions, asked), captioned.images
            self.scores, self.fit, self.is_owner = scores[asked], fit[asked], is_owner[asked]
            self.photo, self.photo_of_item = owners[asked], photos
            self.texts = [captioned.texts[row] for row in asked]
            if captioned.near is not None:
                self.near = captioned.near.near(centres(captioned.images))
        else:
            self.queries, self.items = captioned.images, captioned.captions
            self.scores, self.fit, self.is_owner = scores.T, fit.T, is_owner.T
            self.photo, self.photo_of_item = photos, owners

    def correct(self):
        """Corrects the scores for hubs by the probes' questions; whether more find their own."""
        space, score = space_of(self.items, self.captioned.similarity), None
        if space is not None:
            score = self.captioned.similarity.scorer()
        bank = thinned(self._bank(), MOST_QUESTIONS)
        owner = bank.pop("photo")
        if not can_correct(space, score) or length(bank) < LEAST_QUESTIONS:
            return False
        before = self._finds_own()
        is_owner = self.photo_of_item[:, None] == owner
        left_out = padded(*np.nonzero(is_owner), len(is_owner))
        hubs = CorrectedSpace.of(space, score, bank, self.items)
        self.shifts = hubs.shifts(self.items, score, left_out)
        self.hubs = OwnLeftOut(hubs, self.items, left_out)
        self.scores = self.scores + self.shifts
        return Gain.of(self._finds_own(), before).pays

    def _finds_own(self):
        """bool (questions,): whether the best result is the question's own item."""
        return self.is_owner[np.arange(len(self.is_owner)), self.scores.argmax(axis=1)]

    def _bank(self):
        """The embeddings of the captions (or images) that a question is compared with, and the
        photo of each."""
        captioned, is_t2i = self.captioned, self.direction == "t2i"
        every = captioned.captions if is_t2i else captioned.images
        photo = captioned.owners if is_t2i else np.arange(length(captioned.images))
        if captioned.reference is None:
            return {**every, "photo": photo}
        bank = captioned.reference["i2t" if is_t2i else "t2i"]
        return {**bank, "photo": photo[nearest(bank, every)]}

    def opinion(self, kind, parts, columns=slice(None)):
        """The second opinion of a kind by `(table, fit, weights)`s, or all of one weight."""
        tables = [fitting.read_by(kind, table)[:, columns] for table, *_ in parts]
        truths = [fit[:, columns] for _, fit, *_ in parts]
        weights = [
            rest[0] if rest else np.full(fit.shape, 1 / fit.size)
            for fit, (_, _, *rest) in zip(truths, parts, strict=True)
        ]
        rows = np.concatenate([arrays.reshape(-1, arrays.shape[-1]) for arrays in tables])
        truth, weight = (
            np.concatenate([x.ravel() for x in arrays]) for arrays in (truths, weights)
        )
        return Logistic.fit(rows, truth, fitting.PENALTIES[kind], weights=weight)

    def rho(self):
        """a and b of the pairs that do not belong together."""
        tables, truths, weights = [], [], []
        for i, row in enumerate(self.scores):
            chosen, counts = self.pairs(row, np.flatnonzero(~self.is_owner[i]))
            tables.append(row[chosen])
            truths.append(self.fit[i, chosen])
            weights.append(counts)
        table, truth, weight = (np.concatenate(arrays) for arrays in (tables, truths, weights))
        return np.append(*Logistic.fit(table[:, None], truth, _PENALTY, weights=weight).plain())

    def pairs(self, row, among):
        """A question's best items and a random part of the others, and how many each counts for."""
        order = among[np.argsort(-row[among], kind="stable")]
        tail = order[BEST:]
        drawn = self.rng.choice(tail, min(TAIL, len(tail)), replace=False)
        counts = np.full(len(drawn), len(tail) / max(1, len(drawn)))
        return np.append(order[:BEST], drawn), np.append(np.ones(min(BEST, len(order))), counts)

    def senses(self, texts):
        """What captions may call the words of texts, see `Lexicon.senses_of`."""
        bank, encode = self.captioned.near, self.captioned.encode
        lexicon = NO_WORDS if bank is None or not encode else bank.lexicon
        return lexicon.senses_of(texts, lambda words: centres(encode(words)))

    @property
    def side(self):
        """What the items are, `"images"` or `"captions"`."""
        return "images" if self.direction == "t2i" else "captions"


def nearest(items, among):
    """The row of each embedding among others that it is a rounded copy of."""
    vectors, others = unit(centres(items)), unit(centres(among))
    return np.concatenate(
        [(vectors[at : at + 512] @ others.T).argmax(axis=1) for at in range(0, len(vectors), 512)]
    )
