"""What the page that searches in the browser has to know of a gallery and its judge, as numbers."""

import sys

import numpy as np
from scipy.special import logit, stdtrit

from zoo.confidence import fits as fitting
from zoo.confidence import judge as judging
from zoo.confidence.caption_bank import packaged_bank
from zoo.confidence.features import LEAST_GAP
from zoo.confidence.known import ERROR, NEAREST, SeenTexts
from zoo.confidence.scores import DEPTH
from zoo.confidence.words import ARTICLES, FUNCTION_WORDS, IRREGULAR, MOST_WORDS
from zoo.embeddings.spaces import SPACES, straight_line
from zoo.errors import InputError
from zoo.retriever.preambles import ENDINGS, PREAMBLES

LIST_ERROR, INTERVAL_ERROR = 0.1, 0.1  # of `Answer.first_k` and `Confidence.interval`


def facts_of(retriever, images):
    """`(facts, arrays)` for `docs/live/judge.js`.

    Args:
        retriever: a `zoo.Retriever` of Gaussians compared by CSD, calibrated, whose probes know
            what fits, and whose tokenizer spells words out of pieces.
        images: the embedding of its items, a dict of arrays, in the order of the index.

    Returns:
        JSON values, and a dict of arrays: float32 `gallery`, `(items, dim + 1)`, the vectors of
        CSD's space; float16 `reference`, `(items, dim)`, the means of the probes' items; float16
        `seen`, `(texts, dim)`, of `SeenTexts`; uint16 `photos`, of the caption bank.

    Raises:
        InputError: if the page cannot judge as this retriever does.
    """
    judge, model = retriever.judge, retriever.model
    confidence, fits = judge.confidence, judge.fits
    if confidence is None:
        raise InputError(f"the gallery is not calibrated: {judge.why_not}")
    known = None if judge.known is None else judge.known.shape
    is_fit = {
        "Gaussians compared by CSD": retriever.index.description["space"] == "csd",
        "texts of word pieces that were seen": isinstance(known, SeenTexts),
        "probes that know what fits": fits is not None
        and fits.words is not None
        and fits.presence is not None,
    }
    missing = [what for what, there in is_fit.items() if not there]
    if missing:
        raise InputError(f"the page needs a model with {', '.join(missing)}; received another")
    seen, bank = confidence.in_gallery, packaged_bank()
    enough = judge.length(LIST_ERROR)
    facts = {
        "dim": int(known.seen.shape[1]),
        "depth": DEPTH,
        "noun": judge.noun,
        "least_gap": LEAST_GAP,
        "line": list(straight_line(model.similarity.scorer())),
        "copies": 1.0 if confidence.copies is None else confidence.copies,
        "names": list(confidence.names),
        "logistic": _logistic(confidence.logistic),
        "ranked": None if seen.ranked is None else _logistic(seen.ranked),
        "brought": seen.brought,
        "fits": {
            "sentence": np.asarray(fits.sentence).tolist(),
            "words": np.asarray(fits.words).tolist(),
            "presence": _logistic(fits.presence),
            "absent_below": fits.absent_below,
            "words_below": fits.words_below,
            "answerable": float(logit(fitting.ANSWERABLE)),
            "nearest": fitting.REFERENCE,
            "least_number": fitting.LEAST_NUMBER,
            "nodes": fitting.NODES.tolist(),
            "weights": fitting.WEIGHTS.tolist(),
            "reach": fitting.REACH,
        },
        "first_k": None if enough == sys.maxsize else enough,
        "width": float(stdtrit(seen.num_kinds - 1, 1 - INTERVAL_ERROR / 2) * seen.deviation),
        "threshold": judge.threshold,
        "absence": judging.ABSENCE,
        "fit": judging.FIT,
        "low": judging.LOW,
        "sure": judging.SURE,
        "many": judging.MANY,
        "nothing_said": judging.NOTHING_SAID,
        "function_words": sorted(FUNCTION_WORDS),
        "known": {
            "error": ERROR,
            "nearest": NEAREST,
            "tilt": known.tilt.tolist(),
            "kept": judge.known.kept.tolist(),
        },
        "questions": _question_facts(bank),
        "probes": confidence.num_queries,
    }
    dim = len(known.tilt)
    reference = SPACES["csd"].gallery(retriever.probes.items("t2i")).astype(np.float32)
    facts["fits"]["spreads"] = reference[:, dim].tolist()
    arrays = {
        "gallery": SPACES["csd"].gallery(images).astype(np.float32),
        "reference": reference[:, :dim].astype(np.float16),  # as the probes keep them
        "seen": known.seen,
        "photos": bank.photos,
    }
    return facts, arrays


def _logistic(learned):
    return {
        "centre": learned.centre.tolist(),
        "spread": learned.spread.tolist(),
        "weights": learned.weights.tolist(),
        "bias": learned.bias,
    }


def _question_facts(bank):
    """How a question is shortened, and how common its words are."""
    return {
        "preambles": list(PREAMBLES),
        "endings": list(ENDINGS),
        "articles": list(ARTICLES),
        "irregular": IRREGULAR,
        "stems": list(bank.stems),
        "starts": np.asarray(bank.starts).tolist(),
        "size": bank.size,
        "most_words": MOST_WORDS,
    }
