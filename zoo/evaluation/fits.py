"""Learns from captioned photos how likely other items than the wanted one fit a question."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from zoo import metrics
from zoo.confidence import Probes, QueryScores
from zoo.confidence import fits as fitting
from zoo.confidence.calibrate import calibrate_on
from zoo.confidence.checks import one_of_each
from zoo.confidence.features import Logistic
from zoo.confidence.fits import Fits, Strangers, Trial
from zoo.confidence.judge import ABSENCE, Asked, Judge
from zoo.confidence.probes import OF_CORRECTED
from zoo.confidence.words import CaptionBank, packaged_bank, stems
from zoo.embeddings.arrays import centres, length, take, thinned, unit
from zoo.embeddings.csls import LEAST as LEAST_QUESTIONS
from zoo.embeddings.csls import MOST as MOST_QUESTIONS
from zoo.embeddings.csls import CorrectedSpace, can_correct, padded
from zoo.evaluation.gallery import Gain, gallery_of, space_of
from zoo.evaluation.phrases import held_stems, short_questions
from zoo.evaluation.relevance import relevance, relevance_of_words, score_scale, sentence_vectors

LEAST = 60  # captioned photos, half of which are asked
SIZES = (50, 100, 250, 500, 1000)  # of galleries that teach presence and certify cut-offs
DRAWS, TRIALS = 5, 10  # galleries of a size, of different photos where there are enough
MOST_PROBES = 600  # of a trial
CLOSE = 5  # a question's best, by which ρ is learnt for a gallery of one kind
BEST, TAIL = 20, 60  # pairs of a question that teach ρ: its best, and others drawn at random
TAKEN_OUT = 0.3  # items as likely to fit as that are taken out of a world where nothing fits
PHRASES = 400  # short questions of each length
PENALTY = 1e-4
GENERAL, KEPT_GENERAL = 0.01, 0.975  # share of the photos, and of such words that are not declined
KNOWN = 0.5  # share of the captions' stems that the bank has to know


@dataclasses.dataclass(frozen=True)
class Captioned:
    """Photos with captions that a model has encoded, for `learn_fits`."""

    images: dict[str, np.ndarray]
    captions: dict[str, np.ndarray]
    owners: np.ndarray
    texts: Sequence[str]
    sentences: np.ndarray
    similarity: Any
    encode: Callable[[list[str]], dict[str, np.ndarray]]
    name: str = "captioned photos"
    reference: dict[str, dict[str, np.ndarray]] | None = None
    sentences_of: Callable[[list[str]], np.ndarray] = sentence_vectors


def learn_fits(
    captioned: Captioned, bank: CaptionBank | None = None, seed: int = 0
) -> dict[str, Fits]:
    """The `zoo.confidence.Fits` of a model, both ways. Raises ValueError if there are fewer than 60
    photos, or they have one caption each: nothing then says what else fits."""
    count = length(captioned.images)
    captions = np.bincount(captioned.owners, minlength=count)
    if count < LEAST or np.median(captions) < 2:
        raise ValueError(
            f"what else fits is learnt from at least {LEAST} photos with several captions each; "
            f"received {count} photos with {np.median(captions):.0f}"
        )
    bank = packaged_bank() if bank is None else bank
    rng = np.random.default_rng(seed)
    matrices = _matrices(captioned)
    found = {}
    for direction in ("t2i", "i2t"):
        found[direction] = _Learner(captioned, direction, bank, rng, matrices).fits()
    for direction in ("t2i", "i2t"):
        learner = _Learner(captioned, direction, bank, rng, matrices)
        if learner.correct():
            found[OF_CORRECTED + direction] = learner.fits()
    return found


def scores_over(items: Any, queries: Any, similarity: Any, side: str) -> np.ndarray:
    """All scores of queries over items, `(queries, items)` float64."""
    if side == "images":
        pairs = metrics.PairwiseSimilarity(items, queries, similarity).transposed()
    else:
        pairs = metrics.PairwiseSimilarity(queries, items, similarity)
    return pairs.kept().rows(0, length(queries)).astype(np.float64)


class _OwnLeftOut(CorrectedSpace):
    """Questions of a photo do not count for its own items, known by their coordinates."""

    def __init__(self, hubs, items, left_out):
        super().__init__(hubs.base, hubs.bank, hubs.ceiling)
        rows = hubs.base.gallery(items)
        self._of_items = {row.tobytes(): own for row, own in zip(rows, left_out, strict=True)}

    def gallery(self, arrays, left_out=None):
        own = [self._of_items[row.tobytes()] for row in self.base.gallery(arrays)]
        return super().gallery(arrays, np.stack(own))


def _matrices(captioned):
    """Scores, what fits and what belongs together, captions × images."""
    owners, count = captioned.owners, length(captioned.images)
    scores = scores_over(captioned.images, captioned.captions, captioned.similarity, "images")
    own = owners[:, None] == np.arange(count)
    rows, scale = np.arange(len(owners)), score_scale(scores, own)
    return scores, relevance(captioned.sentences, rows, owners, count, scores, scale), own, scale


class _Learner:
    """One direction: questions, items, scores between them, and what fits what."""

    def __init__(self, captioned, direction, bank, rng, matrices):
        self.captioned, self.direction, self.bank, self.rng = captioned, direction, bank, rng
        owners, count = captioned.owners, length(captioned.images)
        scores, fit, own, self.scale = matrices
        if direction == "t2i":
            asked = one_of_each(owners, rng)
            self.queries, self.items = take(captioned.captions, asked), captioned.images
            self.scores, self.fit, self.own = scores[asked], fit[asked], own[asked]
        else:
            self.queries, self.items = captioned.images, captioned.captions
            self.scores, self.fit, self.own = scores.T, fit.T, own.T
        self.plain = self.scores
        self.photo = np.arange(len(self.scores))  # of the question; of the items:
        self.photo_of_item = np.arange(count) if direction == "t2i" else owners
        if direction == "t2i":
            self.photo = owners[asked]
        self.hubs, self.shifts = None, 0.0

    def correct(self):
        """Corrects the scores for hubs by the probes' questions; whether more find their own first.
        Questions of a photo do not count for its own items."""
        space, score = space_of(self.items, self.captioned.similarity), None
        if space is not None:
            score = self.captioned.similarity.scorer()
        bank = thinned(self._bank(), MOST_QUESTIONS)
        owner = bank.pop("photo")
        if not can_correct(space, score) or length(bank) < LEAST_QUESTIONS:
            return False
        before = self._finds_own()
        own = self.photo_of_item[:, None] == owner
        left_out = padded(*np.nonzero(own), len(own))
        hubs = CorrectedSpace.of(space, score, bank, self.items)
        self.shifts = hubs.shifts(self.items, score, left_out)
        self.hubs = _OwnLeftOut(hubs, self.items, left_out)
        self.scores = self.scores + self.shifts
        return Gain.of(self._finds_own(), before).pays

    def _finds_own(self):
        """Whether each question's first item is its own, `(Q,)`."""
        return self.own[np.arange(len(self.own)), self.scores.argmax(axis=1)]

    def _bank(self):
        """The questions that travel with the model, with the `photo` of each."""
        captioned, is_t2i = self.captioned, self.direction == "t2i"
        every = captioned.captions if is_t2i else captioned.images
        photo = captioned.owners if is_t2i else np.arange(length(captioned.images))
        if captioned.reference is None:
            return {**every, "photo": photo}
        bank = captioned.reference["i2t" if is_t2i else "t2i"]
        return {**bank, "photo": photo[_nearest(bank, every)]}

    def fits(self):
        sentence = self._rho(self.scores, self.fit, self.own)
        words, words_below = self._words() if self.direction == "t2i" else (None, 0.0)
        source = f"{length(self.captioned.images):,} photos of {self.captioned.name}"
        found = Fits(sentence[[0, -1]], words, words_below=words_below, source=source)
        found = dataclasses.replace(found, strangers=self._strangers())
        found = self._presence(found)
        return dataclasses.replace(found, trials=self._trials(found))

    def _strangers(self):
        """Each question's best photos, of those that travel with the model."""
        if self.direction != "t2i":
            return None
        items, reference = self.items, self.captioned.reference
        reference = items if reference is None else reference[self.direction]
        row = np.full(length(items), -1)
        row[_nearest(reference, items)] = np.arange(length(reference))
        strangers = np.where(self.own, -np.inf, self.scores)
        best = np.argsort(-strangers, axis=1, kind="stable")[:, :CLOSE]
        kept = row[best] >= 0
        score, fit = (np.take_along_axis(x, best, axis=1)[kept] for x in (self.scores, self.fit))
        item = row[best][kept].astype(np.int32)
        return Strangers(score.astype(np.float32), item, fit.astype(np.float32), length(reference))

    def _rho(self, scores, fit, own, prior=None):
        """a, (c,) b of the pairs that do not belong together: a question's best, and a random part
        of the others, which counts for all of them."""
        tables, truths, weights = [], [], []
        for i, row in enumerate(scores):
            strangers = np.flatnonzero(~own[i])
            order = strangers[np.argsort(-row[strangers], kind="stable")]
            tail = order[BEST:]
            drawn = self.rng.choice(tail, min(TAIL, len(tail)), replace=False)
            chosen = np.concatenate([order[:BEST], drawn])
            table = row[chosen, None]
            if prior is not None:
                table = np.concatenate([table, np.full((len(chosen), 1), prior[i])], axis=1)
            tables.append(table)
            truths.append(fit[i, chosen])
            best = np.ones(min(BEST, len(order)))
            weights.append(np.append(best, np.full(len(drawn), len(tail) / max(1, len(drawn)))))
        learned = Logistic.fit(
            np.concatenate(tables), np.concatenate(truths), PENALTY, weights=np.concatenate(weights)
        )
        return np.append(*learned.plain())

    def _words(self):
        """ρ of short questions, and the probability that general words exceed."""
        captioned, bank = self.captioned, self.bank
        held = held_stems(captioned.texts, captioned.owners, length(captioned.images))
        every = [stem for one in held for stem in one]
        if not every or np.mean([len(bank.photos_with(one)) > 0 for one in every]) < KNOWN:
            return None, 0.0
        texts = short_questions(captioned.texts, self.rng, PHRASES)
        embeddings = captioned.encode(texts)
        plain = scores_over(captioned.images, embeddings, captioned.similarity, "images")
        scores = plain + self.shifts
        captions, questions = (captioned.sentences, captioned.owners), captioned.sentences_of(texts)
        holds, fit = relevance_of_words(texts, held, captions, questions, plain, self.scale)
        prior = fitting.prior_of([bank.count(text) for text in texts], bank.size)
        words = self._rho(scores, fit, np.zeros(fit.shape, bool), prior)
        slope, weight, bias = words
        half = self.rng.permutation(len(held))[: len(held) // 2]  # a gallery has fewer photos
        first = expit(slope * scores[:, half].max(axis=1) + weight * prior + bias)
        is_word = np.array([len(stems(text)) == 1 for text in texts])
        general = is_word & (holds[:, half].mean(axis=1) >= GENERAL)
        below = float(np.quantile(first[general], 1 - KEPT_GENERAL)) if general.any() else 0.0
        return words, below

    def _presence(self, found):
        """Whether anything fits, from galleries with all that fits and with it taken out."""
        tables, truths = [], []
        reference = self._reference
        for size in self._sizes():
            for _ in range(max(2, min(DRAWS, length(self.captioned.images) // size))):
                chosen = self._gallery(size)
                asked = np.flatnonzero(self.own[:, chosen].any(axis=1))
                rows, gone = self.scores[np.ix_(asked, chosen)], self.fit[np.ix_(asked, chosen)]
                for keep, truth in ((None, True), (gone < TAKEN_OUT, False)):
                    if keep is not None:
                        some = keep.sum(axis=1) > 2
                        rows, keep, asked = rows[some], keep[some], asked[some]
                    if not len(rows):
                        continue
                    told = QueryScores.of_matrix(rows, keep)
                    number = found.number(told)
                    tables.append(fitting.presence_features(told, reference[asked], number))
                    truths.append(np.full(len(rows), truth))
        table, truth = np.concatenate(tables), np.concatenate(truths)
        if truth.all():  # nearly all fits, so that no gallery shows what its lack looks like
            return found
        balanced = np.where(truth, 1 / truth.sum(), 1 / (~truth).sum())
        presence = Logistic.fit(table, truth, PENALTY, weights=balanced)
        below = float(np.quantile(presence.logit(table[truth]), ABSENCE))
        return dataclasses.replace(found, presence=presence, absent_below=below)

    @functools.cached_property
    def _reference(self):
        """The mean of each question's ten best scores over the probes' items, those of its own
        photo left out: a new question has no photo of its own there."""
        rows, photo = self.plain, self.photo_of_item
        if self.captioned.reference is not None:
            items = self.captioned.reference[self.direction]
            rows = scores_over(items, self.queries, self.captioned.similarity, self._side)
            photo = photo[_nearest(items, self.items)]
        rows = np.where(self.photo[:, None] == photo, -np.inf, rows)
        return -np.sort(-rows, axis=1)[:, : fitting.REFERENCE].mean(axis=1)

    def _trials(self, found):
        """Cut-offs certified by half of the photos, asked over themselves; the others are
        probes."""
        trials, reference = [], self._reference
        photos = length(self.captioned.images)
        for size in self._sizes():
            if size > photos // 2:
                continue
            order, parts = self.rng.permutation(photos), []
            for start in range(0, min(TRIALS, photos // size) * size, size):
                parts.append(self._asked(found, order[start : start + size], reference))
            parts = [part for part in parts if part is not None]
            if parts:
                sizes, *told = zip(*parts, strict=True)
                said, fit = (np.concatenate(one).astype(np.float16) for one in told)
                trials.append(Trial(int(np.median(sizes)), said, fit, len(said) // len(parts)))
        return tuple(trials)

    def _asked(self, found, inside, reference):
        """`(items, said, fit)` of the questions about some photos, asked over themselves, with the
        other photos as probes; None where these teach nothing."""
        is_inside = np.isin(np.arange(length(self.captioned.images)), inside)
        chosen = np.flatnonzero(is_inside[self.photo_of_item])
        own = np.flatnonzero(~is_inside[self.photo_of_item])
        asked, probing = (np.flatnonzero(is_inside[self.photo] == side) for side in (True, False))
        probing = self.rng.permutation(probing)[:MOST_PROBES]
        own = own[np.isin(self.photo_of_item[own], self.photo[probing])]
        items = take(self.items, chosen)
        gallery = gallery_of(items, self.captioned.similarity, self._side, self.hubs)
        try:
            confidence = calibrate_on(
                gallery,
                take(self.queries, probing),
                take(self.items, own),
                self.photo[probing][:, None] == self.photo_of_item[own],
            )
        except ValueError:  # hardly a right or a wrong answer: nothing is certified
            return None
        rows = self.scores[np.ix_(asked, chosen)]
        best = np.argsort(-rows, axis=1, kind="stable")[:, :BEST]
        scores = gallery.query_scores(take(self.queries, asked), copies=confidence.copies)
        judge = Judge(confidence, found)
        said = judge.probabilities(scores, scores.top, Asked(reference=reference[asked]))["fits"]
        fit = np.take_along_axis(self.fit[np.ix_(asked, chosen)], best, axis=1)
        kept = min(said.shape[1], fit.shape[1])
        return len(chosen), said[:, :kept], fit[:, :kept]

    @property
    def _side(self):
        return "images" if self.direction == "t2i" else "captions"

    def _sizes(self):
        """Numbers of photos of the galleries."""
        count = length(self.captioned.images)
        sizes = [size for size in SIZES if size <= count]
        return sizes if len(sizes) > 1 else [*sizes, count]

    def _gallery(self, size):
        """The items of some photos, drawn at random."""
        photos = self.rng.permutation(length(self.captioned.images))[:size]
        return np.flatnonzero(np.isin(self.photo_of_item, photos))


def _nearest(items, among):
    """The row of each embedding among others that it is a rounded copy of."""
    vectors, others = unit(centres(items)), unit(centres(among))
    return np.concatenate(
        [(vectors[at : at + 512] @ others.T).argmax(axis=1) for at in range(0, len(vectors), 512)]
    )


def with_fits(probes: Probes, found: dict[str, Fits]) -> Probes:
    """Probes that say what else fits; those of classes stay as they are."""
    return probes if probes.by_class else dataclasses.replace(probes, fits=found)
