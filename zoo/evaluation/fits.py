"""Learns from captioned photos how likely other items than the wanted one fit a question."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from halo_search.confidence import Probes, QueryScores
from halo_search.confidence import fits as fitting
from halo_search.confidence.bank import Bank
from halo_search.confidence.calibrate import calibrate_on
from halo_search.confidence.features import Logistic
from halo_search.confidence.fits import Fits, Strangers, Trial
from halo_search.confidence.judge import ABSENCE, Asked, Judge
from halo_search.confidence.probes import DIRECTIONS, OF_CORRECTED
from halo_search.confidence.scores import best_first
from halo_search.confidence.senses import NO_WORDS
from halo_search.confidence.words import CaptionBank, is_short, packaged_bank, stems
from halo_search.embeddings.arrays import centres, length, take, thinned, unit
from halo_search.embeddings.checks import one_of_each
from halo_search.embeddings.csls import LEAST as LEAST_QUESTIONS
from halo_search.embeddings.csls import MOST as MOST_QUESTIONS
from halo_search.embeddings.csls import CorrectedSpace, can_correct, padded
from halo_search.retriever.hubs import Gain
from zoo.evaluation.gallery import OwnLeftOut, gallery_of, scores_over, space_of
from zoo.evaluation.phrases import held_stems, short_questions
from zoo.evaluation.relevance import relevance, relevance_of_words, score_scale, sentence_vectors

LEAST = 60  # captioned photos, half of which are asked
SIZES = (50, 100, 250, 500, 1000)  # of galleries that teach the second opinion and cut-offs
TRIALS = 10  # galleries of a size, of different photos where there are enough
MOST_PROBES = 600  # of a trial
CLOSE = 5  # a question's best, by which ρ is learnt for a gallery of one kind
BEST, TAIL = 20, 60  # pairs of a question that teach ρ: its best, and others drawn at random
TAKEN_OUT = 0.3  # items as likely to fit as that are taken out of a world where nothing fits
PHRASES = 400  # short questions of each length
PENALTY = 1e-4
# Share of the photos that hold a general word, and of such words that are not told to be absent.
GENERAL, KEPT_GENERAL = 0.01, 0.985
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
    encode: Callable[[list[str]], dict[str, np.ndarray]] | None  # None: no short questions
    name: str = "captioned photos"
    reference: dict[str, dict[str, np.ndarray]] | None = None
    sentences_of: Callable[[list[str]], np.ndarray] = sentence_vectors
    near: Bank | None = None  # captioned photos behind the second opinion, such as of training
    relevance: np.ndarray | None = None  # (M, N) in [0, 1], what fits, where other captions tell


class Labelled(NamedTuple):
    """Short questions to photos, and of some pairs whether they fit, as people judged."""

    images: dict[str, np.ndarray]
    texts: list[str]
    questions: np.ndarray  # (P,), rows of texts
    photos: np.ndarray  # (P,), rows of images
    fit: np.ndarray  # (P,), 0 to 1
    weights: np.ndarray  # (P,), how many pairs each stands for

    def of_short(self) -> "Labelled":
        """The pairs of questions of up to three content words alone."""
        is_kept = np.array([is_short(text) for text in self.texts])[self.questions]
        return self._replace(
            **{
                name: getattr(self, name)[is_kept]
                for name in ("questions", "photos", "fit", "weights")
            }
        )


def learn_fits(
    captioned: Captioned,
    bank: CaptionBank | None = None,
    seed: int = 0,
    labelled: Sequence[Labelled] = (),
    hubs: bool = True,
    directions: Sequence[str] = DIRECTIONS[::-1],
) -> dict[str, Fits]:
    """The `halo_search.confidence.Fits` of a model, by default both ways; `hubs`: of corrected
    scores too, where that pays. Raises ValueError if there are fewer than 60 photos, or they have
    one caption
    each: nothing then says what else fits."""
    count = length(captioned.images)
    captions = np.bincount(captioned.owners, minlength=count)
    if count < LEAST or (np.median(captions) < 2 and captioned.relevance is None):
        raise ValueError(
            f"what else fits is learnt from at least {LEAST} photos with several captions each; "
            f"received {count} photos with {np.median(captions):.0f}"
        )
    bank = packaged_bank() if bank is None else bank
    rng = np.random.default_rng(seed)
    matrices = matrices_of(captioned)
    fits = {}
    for direction in directions:
        fits[direction] = Learner(captioned, direction, bank, rng, matrices, labelled).fits()
    for direction in directions if hubs else ():
        learner = Learner(captioned, direction, bank, rng, matrices, labelled)
        if learner.correct():
            fits[OF_CORRECTED + direction] = learner.fits()
    return fits


def learn_short(
    captioned: Captioned,
    fits: dict[str, Fits],
    labelled: Sequence[Labelled],
    bank: CaptionBank | None = None,
    seed: int = 0,
) -> dict[str, Fits]:
    """The same `Fits`, of `learn_fits`, with what they say of short questions learnt again, which
    takes minutes less; the other arguments as of `learn_fits`."""
    bank = packaged_bank() if bank is None else bank
    matrices, learned = matrices_of(captioned), dict(fits)
    for name, known in fits.items():
        if not name.endswith("t2i"):
            continue
        rng = np.random.default_rng(seed)
        learner = Learner(captioned, "t2i", bank, rng, matrices, labelled)
        if name.startswith(OF_CORRECTED):
            learner.correct()
        short, lowest = learner.short(known)
        second, below = known.second | short, known.below | lowest
        learned[name] = dataclasses.replace(known, second=second, below=below)
    return learned


def _in_steps(shares):
    """Shares as float16 in steps of 1/1024, which take two thirds of the room on the disk."""
    return (np.round(shares * 1024) / 1024).astype(np.float16)


def matrices_of(captioned):
    """Scores, what fits and what belongs together, captions × images."""
    owners, count = captioned.owners, length(captioned.images)
    scores = scores_over(captioned.images, captioned.captions, captioned.similarity, "images")
    is_owner = owners[:, None] == np.arange(count)
    rows, scale = np.arange(len(owners)), score_scale(scores, is_owner)
    fit = captioned.relevance
    if fit is None:
        fit = relevance(captioned.sentences, rows, owners, count, scores, scale)
    return scores, fit, is_owner, scale


class Learner:
    """One direction of `learn_fits`: questions, items, scores between them, and what fits what."""

    def __init__(self, captioned, direction, bank, rng, matrices, labelled=()):
        self.captioned, self.direction, self.bank, self.rng = captioned, direction, bank, rng
        self.labelled, self.near, self.texts = labelled, None, None
        owners, count = captioned.owners, length(captioned.images)
        scores, fit, is_owner, self.scale = matrices
        if direction == "t2i":
            asked = one_of_each(owners, rng)
            self.queries, self.items = take(captioned.captions, asked), captioned.images
            self.scores, self.fit, self.is_owner = scores[asked], fit[asked], is_owner[asked]
            self.texts = [captioned.texts[row] for row in asked]
            if captioned.near is not None:
                self.near = captioned.near.near(centres(captioned.images))
        else:
            self.queries, self.items = captioned.images, captioned.captions
            self.scores, self.fit, self.is_owner = scores.T, fit.T, is_owner.T
        self.plain = self.scores
        self.photo = np.arange(len(self.scores))  # of the question; of the items:
        self.photo_of_item = np.arange(count) if direction == "t2i" else owners
        if direction == "t2i":
            self.photo = owners[asked]
        self.hubs, self.shifts = None, 0.0

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
        return {**bank, "photo": photo[_nearest(bank, every)]}

    def fits(self):
        """Learns `Fits` of this direction: ρ, a second opinion by the shape of the scores, the
        level of absent answers, and trials that show how true they are."""
        sentence = self.rho()
        source = f"{length(self.captioned.images):,} photos of {self.captioned.name}"
        learned = Fits(sentence, source=source, strangers=self._strangers())
        draws = self._draws(learned)
        if not draws:
            return learned
        second, below, probabilities = {}, {}, [drawn.plain for drawn in draws]
        if len({drawn.photos for drawn in draws}) > 1:  # of one size nothing is learnt for others
            second = {
                kind: self.opinion(kind, [(drawn.table, drawn.fit) for drawn in draws], columns)
                for kind, columns in ((fitting.FIRST, slice(0, 1)), (fitting.LATER, slice(1, None)))
            }
            probabilities = []
            for draw in draws:
                read = [
                    drawn.probability(fitting.read_by(kind, draw.table))
                    for kind, drawn in second.items()
                ]
                probabilities.append(np.concatenate([read[0][:, :1], read[1][:, 1:]], axis=1))
            firsts = [
                drawn[part.present, 0] for drawn, part in zip(probabilities, draws, strict=True)
            ]
            below[fitting.FIRST] = float(np.quantile(np.concatenate(firsts), ABSENCE))
        if self.direction == "t2i" and self.captioned.encode is not None:
            short, lowest = self.short(learned)
            second |= short
            below |= lowest
        learned = dataclasses.replace(learned, second=second, below=below)
        trials = []
        for photos in dict.fromkeys(drawn.photos for drawn in draws):
            same = [
                pair for pair in zip(probabilities, draws, strict=True) if pair[1].photos == photos
            ]
            predicted, true = (
                _in_steps(np.concatenate([part[drawn.present] for part, drawn in pairs]))
                for pairs in (same, [(drawn.fit, drawn) for _, drawn in same])
            )
            items = int(np.median([drawn.items for _, drawn in same]))
            trials.append(Trial(items, predicted, true, len(predicted) // len(same)))
        return dataclasses.replace(learned, trials=tuple(trials))

    def _strangers(self):
        """Each question's best photos, of those that travel with the model."""
        if self.direction != "t2i":
            return None
        items, reference = self.items, self.captioned.reference
        reference = items if reference is None else reference[self.direction]
        row = np.full(length(items), -1)
        row[_nearest(reference, items)] = np.arange(length(reference))
        strangers = np.where(self.is_owner, -np.inf, self.scores)
        best = np.argsort(-strangers, axis=1, kind="stable")[:, :CLOSE]
        has_photo = row[best] >= 0
        score, fit = (
            np.take_along_axis(x, best, axis=1)[has_photo] for x in (self.scores, self.fit)
        )
        item = row[best][has_photo].astype(np.int32)
        return Strangers(score.astype(np.float32), item, fit.astype(np.float32), length(reference))

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
            chosen, counts = self._pairs(row, np.flatnonzero(~self.is_owner[i]))
            tables.append(row[chosen])
            truths.append(self.fit[i, chosen])
            weights.append(counts)
        table, truth, weight = (np.concatenate(arrays) for arrays in (tables, truths, weights))
        return np.append(*Logistic.fit(table[:, None], truth, PENALTY, weights=weight).plain())

    def _pairs(self, row, among):
        """A question's best items and a random part of the others, and how many each counts for."""
        order = among[np.argsort(-row[among], kind="stable")]
        tail = order[BEST:]
        drawn = self.rng.choice(tail, min(TAIL, len(tail)), replace=False)
        counts = np.full(len(drawn), len(tail) / max(1, len(drawn)))
        return np.append(order[:BEST], drawn), np.append(np.ones(min(BEST, len(order))), counts)

    def short(self, fits):
        """The second opinion on short questions by its kind, and the probability that common words
        exceed, as of `Fits.second` and `Fits.below`; empty where the bank does not know the
        captions' language."""
        of_words, general = self.word_parts(fits)
        if not of_words:
            return {}, {}
        # Captions do not name all that is plainly there: where there are labels they alone teach.
        labelled = self.labelled_parts(fits)
        if labelled and len(np.unique(np.concatenate([fit for _, fit, _ in labelled]))) < 2:
            labelled = []  # they tell nothing apart
        kind = fitting.SHORT if labelled else fitting.WORDS
        learned = self.opinion(kind, labelled or of_words)
        if not general.any():
            return {kind: learned}, {fitting.SHORT: 0.0}
        read = fitting.read_by(kind, of_words[-1][0])[general, :BEST]
        lowest = np.quantile(learned.probability(read).max(axis=1), 1 - KEPT_GENERAL)
        return {kind: learned}, {fitting.SHORT: float(lowest)}

    def word_parts(self, learned):
        """What captions' words teach of short questions over all and half of the photos, and which
        are general words; none where the bank does not know the captions' language."""
        captioned, bank = self.captioned, self.bank
        held = held_stems(captioned.texts, captioned.owners, length(captioned.images))
        every = [stem for entry in held for stem in entry]
        if not every or np.mean([len(bank.photos_with(entry)) > 0 for entry in every]) < KNOWN:
            return [], None
        texts = short_questions(captioned.texts, self.rng, PHRASES)
        embeddings = captioned.encode(texts)
        plain = scores_over(captioned.images, embeddings, captioned.similarity, "images")
        scores = plain + self.shifts
        captions, questions = (captioned.sentences, captioned.owners), captioned.sentences_of(texts)
        holds, fit = relevance_of_words(texts, held, captions, questions, plain, self.scale)
        half = np.sort(self.rng.permutation(len(held))[: len(held) // 2])  # fewer photos
        parts = []
        for photos in (np.arange(len(held)), half):
            rows = scores[:, photos]
            near = None if self.near is None else self.near.take(photos)
            pairs = [self._pairs(row, np.arange(len(row))) for row in rows]
            chosen, counts = (np.array(entry) for entry in zip(*pairs, strict=True))
            table = self._short_table(learned, rows, chosen, texts, embeddings, near)
            true = np.take_along_axis(fit[:, photos], chosen, axis=1)
            parts.append((table, true, counts / counts.sum()))
        is_word = np.array([len(stems(text)) == 1 for text in texts])
        return parts, is_word & (holds[:, half].mean(axis=1) >= GENERAL)

    def labelled_parts(self, learned):
        """What the labels teach of short questions, of each gallery, a pair a row; all questions
        count alike, and all labelled pairs of a question."""
        parts = []
        for gallery in map(Labelled.of_short, self.labelled):
            rows, asked, near = self.gallery_of(gallery)
            every = self._short_table(learned, rows, None, gallery.texts, asked, near)
            at = gallery.questions, gallery.photos
            table = {name: values[at][:, None] for name, values in every.items()}
            weights = 1 / np.bincount(gallery.questions)[gallery.questions]
            parts.append((table, gallery.fit[:, None], weights[:, None]))
        return parts

    def _short_table(self, learned, rows, chosen, texts, embeddings, near):
        """`opinion_features` over scores `(Q, N)`, of the chosen items `(Q, k)` or all."""
        if chosen is None:
            chosen = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
        shown = np.take_along_axis(rows, chosen, axis=1)
        beside, senses = None, self._senses(texts)
        if near is not None:
            beside = near.of(self.captioned.near, centres(embeddings), senses, chosen)
        asked = Asked(prior=fitting.priors(texts, senses, self.bank), near=beside)
        scores = QueryScores.of_matrix(rows)
        return fitting.opinion_features(learned.others(shown), scores, shown, asked)

    def _senses(self, texts):
        """What captions may call the words of texts, see `Lexicon.senses_of`."""
        bank, encode = self.captioned.near, self.captioned.encode
        lexicon = NO_WORDS if bank is None or not encode else bank.lexicon
        return lexicon.senses_of(texts, lambda words: centres(encode(words)))

    def gallery_of(self, labelled):
        """Scores, embeddings of the questions, and `Near` of a labelled gallery."""
        captioned, images = self.captioned, labelled.images
        embeddings = captioned.encode(labelled.texts)
        rows = scores_over(images, embeddings, captioned.similarity, "images")
        if self.hubs is not None:
            rows = rows + self.hubs.shifts(images, captioned.similarity.scorer())
        near = None if captioned.near is None else captioned.near.near(centres(images))
        return rows, embeddings, near

    def _draws(self, learned):
        """Galleries of some photos, asked over themselves; the others are probes."""
        draws, photos = [], length(self.captioned.images)
        for size in self._sizes():
            if size > photos // 2:
                continue
            order = self.rng.permutation(photos)
            for start in range(0, min(TRIALS, photos // size) * size, size):
                draws.append(self._asked(learned, order[start : start + size]))
        return [drawn for drawn in draws if drawn is not None]

    def _asked(self, learned, inside):
        """A `_Draw` of the questions about some photos, asked over themselves, with the others as
        probes; of some what fits is taken out. None where this teaches nothing."""
        is_inside = np.isin(np.arange(length(self.captioned.images)), inside)
        chosen = np.flatnonzero(is_inside[self.photo_of_item])
        own_items = np.flatnonzero(~is_inside[self.photo_of_item])
        asked, probing = (np.flatnonzero(is_inside[self.photo] == side) for side in (True, False))
        probing = self.rng.permutation(probing)[:MOST_PROBES]
        own_items = own_items[np.isin(self.photo_of_item[own_items], self.photo[probing])]
        items = take(self.items, chosen)
        gallery = gallery_of(items, self.captioned.similarity, self._side, self.hubs)
        try:
            confidence = calibrate_on(
                gallery,
                take(self.queries, probing),
                take(self.items, own_items),
                self.photo[probing][:, None] == self.photo_of_item[own_items],
            )
        except ValueError:  # hardly a right or a wrong answer: nothing is certified
            return None
        rows, fit = (matrix[np.ix_(asked, chosen)] for matrix in (self.scores, self.fit))
        keep = (self.rng.random(len(asked)) < fitting.ANSWERABLE)[:, None] | (fit < TAKEN_OUT)
        keep |= (keep.sum(axis=1) < min(BEST, len(chosen)))[:, None]
        vectors = None
        if gallery.own_space is not None:
            vectors = gallery.item_vectors(np.arange(len(chosen)))
        scores = QueryScores.of_matrix(rows, keep, vectors, confidence.copies)
        best = best_first(np.where(keep, rows, -np.inf), scores.top.shape[1])
        asked_for = Asked()
        plain = Judge(confidence, learned).probabilities(scores, scores.top, asked_for)["fits"]
        if self.near is not None:
            questions = [self.texts[row] for row in asked]
            means = centres(self.queries)[asked]
            near = self.near.take(chosen)
            near = near.of(self.captioned.near, means, self._senses(questions), best)
            asked_for = asked_for._replace(near=near)
        table = fitting.opinion_features(plain, scores, scores.top, asked_for)
        true = np.take_along_axis(fit, best, axis=1)
        return _Draw(len(inside), len(chosen), table, plain, true, keep.all(axis=1))

    @property
    def _side(self):
        return "images" if self.direction == "t2i" else "captions"

    def _sizes(self):
        """The gallery sizes to learn on: those of `SIZES` that the photos allow, two at least."""
        count = length(self.captioned.images)
        sizes = [size for size in SIZES if size <= count]
        return sizes if len(sizes) > 1 else [*sizes, count]


class _Draw(NamedTuple):
    """Questions over a gallery: what the second opinion reads, P by the scores alone, what fits,
    and of which nothing was taken out."""

    photos: int
    items: int
    table: dict[str, np.ndarray]
    plain: np.ndarray
    fit: np.ndarray
    present: np.ndarray


def _nearest(items, among):
    """The row of each embedding among others that it is a rounded copy of."""
    vectors, others = unit(centres(items)), unit(centres(among))
    return np.concatenate(
        [(vectors[at : at + 512] @ others.T).argmax(axis=1) for at in range(0, len(vectors), 512)]
    )


def with_fits(probes: Probes, fits: dict[str, Fits], bank: Bank | None = None) -> Probes:
    """Probes, unless of classes, that say what else fits, with the bank that it was learnt with."""
    return probes if probes.by_class else dataclasses.replace(probes, fits=fits, bank=bank)
