"""Learns what fits short questions: by the words of captions, or by labels where there are some."""

import numpy as np

from halo_search.confidence import QueryScores
from halo_search.confidence import fits as fitting
from halo_search.confidence.judge import Asked
from halo_search.confidence.words import stems
from halo_search.embeddings.arrays import centres, length
from zoo.evaluation.captioned import Labelled
from zoo.evaluation.gallery import scores_over
from zoo.evaluation.learner import BEST
from zoo.evaluation.phrases import held_stems, short_questions
from zoo.evaluation.relevance import relevance_of_words

_PHRASES = 400  # short questions of each length
# Share of the photos that hold a general word, and of such words that are not told to be absent.
_GENERAL, _KEPT_GENERAL = 0.01, 0.985
KNOWN = 0.5  # share of the captions' stems that the bank has to know


def learn(learner, fits):
    """The second opinion on short questions by its kind, and the probability that common words
    exceed, as of `Fits.second` and `Fits.below`; empty where the bank does not know the
    captions' language."""
    of_words, general = word_parts(learner, fits)
    if not of_words:
        return {}, {}
    # Captions do not name all that is plainly there: where there are labels they alone teach.
    labelled = labelled_parts(learner, fits)
    if labelled and len(np.unique(np.concatenate([fit for _, fit, _ in labelled]))) < 2:
        labelled = []  # they tell nothing apart
    kind = fitting.SHORT if labelled else fitting.WORDS
    learned = learner.opinion(kind, labelled or of_words)
    if not general.any():
        return {kind: learned}, {fitting.SHORT: 0.0}
    read = fitting.read_by(kind, of_words[-1][0])[general, :BEST]
    lowest = np.quantile(learned.probability(read).max(axis=1), 1 - _KEPT_GENERAL)
    return {kind: learned}, {fitting.SHORT: float(lowest)}


def word_parts(learner, learned):
    """What captions' words teach of short questions over all and half of the photos, and which
    are general words; none where the bank does not know the captions' language."""
    captioned, bank = learner.captioned, learner.bank
    held = held_stems(captioned.texts, captioned.owners, length(captioned.images))
    every = [stem for entry in held for stem in entry]
    if not every or np.mean([len(bank.photos_with(entry)) > 0 for entry in every]) < KNOWN:
        return [], None
    texts = short_questions(captioned.texts, learner.rng, _PHRASES)
    embeddings = captioned.encode(texts)
    plain = scores_over(captioned.images, embeddings, captioned.similarity, "images")
    scores = plain + learner.shifts
    captions, questions = (captioned.sentences, captioned.owners), captioned.sentences_of(texts)
    holds, fit = relevance_of_words(texts, held, captions, questions, plain, learner.scale)
    half = np.sort(learner.rng.permutation(len(held))[: len(held) // 2])  # fewer photos
    parts = []
    for photos in (np.arange(len(held)), half):
        rows = scores[:, photos]
        near = None if learner.near is None else learner.near.take(photos)
        pairs = [learner.pairs(row, np.arange(len(row))) for row in rows]
        chosen, counts = (np.array(entry) for entry in zip(*pairs, strict=True))
        table = _table(learner, learned, rows, chosen, texts, embeddings, near)
        true = np.take_along_axis(fit[:, photos], chosen, axis=1)
        parts.append((table, true, counts / counts.sum()))
    is_word = np.array([len(stems(text)) == 1 for text in texts])
    return parts, is_word & (holds[:, half].mean(axis=1) >= _GENERAL)


def labelled_parts(learner, learned):
    """What the labels teach of short questions, of each gallery, a pair a row; all questions
    count alike, and all labelled pairs of a question."""
    parts = []
    for gallery in map(Labelled.of_short, learner.labelled):
        rows, asked, near = gallery_of(learner, gallery)
        every = _table(learner, learned, rows, None, gallery.texts, asked, near)
        at = gallery.questions, gallery.photos
        table = {name: values[at][:, None] for name, values in every.items()}
        weights = 1 / np.bincount(gallery.questions)[gallery.questions]
        parts.append((table, gallery.fit[:, None], weights[:, None]))
    return parts


def _table(learner, learned, rows, chosen, texts, embeddings, near):
    """`opinion_features` over scores `(Q, N)`, of the chosen items `(Q, k)` or all."""
    if chosen is None:
        chosen = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    shown = np.take_along_axis(rows, chosen, axis=1)
    beside, senses = None, learner.senses(texts)
    if near is not None:
        beside = near.of(learner.captioned.near, centres(embeddings), senses, chosen)
    asked = Asked(prior=fitting.priors(texts, senses, learner.bank), near=beside)
    scores = QueryScores.of_matrix(rows)
    return fitting.opinion_features(learned.others(shown), scores, shown, asked)


def gallery_of(learner, labelled):
    """Scores, embeddings of the questions, and `Near` of a labelled gallery."""
    captioned, images = learner.captioned, labelled.images
    embeddings = captioned.encode(labelled.texts)
    rows = scores_over(images, embeddings, captioned.similarity, "images")
    if learner.hubs is not None:
        rows = rows + learner.hubs.shifts(images, captioned.similarity.scorer())
    near = None if captioned.near is None else captioned.near.near(centres(images))
    return rows, embeddings, near
