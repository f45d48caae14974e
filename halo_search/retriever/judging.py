"""The judgement of a question: what its results, its words and the gallery say of its answer."""

import numpy as np

from halo_search.confidence.fits import SHORT, WORDS, priors
from halo_search.confidence.judge import ABSENT, Asked, Judge, Judgement
from halo_search.confidence.scores import DEPTH
from halo_search.confidence.words import packaged_bank, unknown_words
from halo_search.embeddings.arrays import centres, coordinates
from halo_search.index import scoring
from halo_search.retriever.calibration import Calibration
from halo_search.retriever.questions import Questions
from halo_search.retriever.results import Results

_TOO_FEW = f"the search found fewer than {DEPTH}: raise `candidates`"


def judged(calibration: Calibration, questions: Questions, results: Results) -> list[Judgement]:
    """A `Judgement` of each question, of all of its results."""
    if not len(calibration.index):
        nothing = Judgement(np.empty(0), None, ABSENT, "The gallery is empty.", number=0.0)
        return [nothing] * len(questions)
    judge = calibration.judge_for(questions.side)
    asked = facts(calibration, judge, questions, results.ids)
    if judge.confidence is None:
        return judge(None, None, asked, len(questions))
    is_enough = ~np.isnan(results.scores[:, :DEPTH]).any(axis=1)
    if is_enough.all():
        return _by_scores(calibration.index, judge, questions.embeddings, results, asked)
    # Each question by its own results: those of others do not matter.
    unable = calibration.without_probabilities(_TOO_FEW)
    judgements = unable(None, None, asked, len(questions))
    enough = np.flatnonzero(is_enough)
    if len(enough):
        others = judged(calibration, questions.take(enough), results.take(enough))
        for row, judgement in zip(enough, others, strict=True):
            judgements[row] = judgement
    return judgements


def _by_scores(index, judge, queries, results, asked):
    """Judges questions that have all the results that a judge reads."""
    summary = index.scores_of(queries, results.scores, results.ids, judge.copies)
    shown = scoring.sign(index.similarity) * results.scores  # higher is better
    shown = np.nan_to_num(shown, nan=float(np.finfo(np.float32).min))
    return judge(summary, shown, asked)


def facts(calibration: Calibration, judge: Judge, questions: Questions, ids: np.ndarray) -> Asked:
    """What a judge reads of questions beside their scores: where they lie and, of texts, how common
    and how well known their words are, and what captioned photos near the results `ids` `(Q, k)`
    show."""
    embeddings, texts, fits = questions.embeddings, questions.texts, judge.fits
    asked = Asked(means=coordinates(embeddings), in_words=texts is not None)
    if texts is None:
        return asked
    senses = [] if fits is None else calibration.wording.senses(texts)
    if fits is not None and not {SHORT, WORDS}.isdisjoint(fits.second):  # it has learnt of words
        asked = asked._replace(prior=priors(texts, senses, packaged_bank()))
    near = None if fits is None else calibration.near
    if near is not None:
        places = np.maximum(calibration.index.places(ids), 0)  # any, behind the last result
        opinion = near.of(calibration.bank, centres(embeddings), senses, places)
        asked = asked._replace(near=opinion, showing=near.showing(calibration.bank, texts))
    if calibration.model.reads_texts:
        words, unknown = unknown_words(calibration.model, texts)
        unheard = None if fits is None else calibration.wording.unheard(texts)
        asked = asked._replace(words=words, unknown=unknown, unheard=unheard)
    return asked
