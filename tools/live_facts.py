"""What the page that searches in the browser has to know of a gallery and its judge, as numbers."""

import math

import numpy as np
from scipy.special import stdtrit

from zoo.confidence.features import LEAST_GAP
from zoo.confidence.judge import ABSENCE, FEW_WORDS, NOTHING_SAID
from zoo.confidence.scores import DEPTH
from zoo.confidence.seen_texts import NEAREST, SeenTexts
from zoo.confidence.unknown import ERROR
from zoo.data.text.captions import FUNCTION_WORDS
from zoo.errors import InputError
from zoo.search.gallery_scores import affine
from zoo.similarities.spaces import SPACES

LIST_ERROR, INTERVAL_ERROR = 0.1, 0.1  # of `Answer.first_k` and `Confidence.interval`


def facts_of(retriever, images):
    """`(facts, gallery, seen)` for `docs/live/judge.js`.

    Args:
        retriever: a `zoo.Retriever` of Gaussians compared by CSD, calibrated, whose tokenizer
            spells words out of pieces.
        images: the embedding of its items, a dict of arrays, in the order of the index.

    Returns:
        JSON values; float32 `(items, dim + 1)`, the vectors of CSD's space; float16
        `(texts, dim)` of `SeenTexts`.

    Raises:
        InputError: if the page cannot judge as this retriever does.
    """
    judge, model = retriever.judge, retriever.model
    confidence = judge.confidence
    if confidence is None:
        raise InputError(f"the gallery is not calibrated: {judge.why_not}")
    known = None if judge.known is None else judge.known.shape
    is_fit = {
        "Gaussians compared by CSD": retriever.index.description["space"] == "csd",
        "a total variance as their uncertainty": model.uncertainty_measure == "total_variance",
        "texts of word pieces that were seen": isinstance(known, SeenTexts),
        "no recalibration": confidence.recalibration is None,
    }
    missing = [what for what, there in is_fit.items() if not there]
    if missing:
        raise InputError(f"the page needs a model with {', '.join(missing)}; received another")
    promises, spread = confidence.promises, confidence.spread
    certified = judge.certified
    width = None
    if spread is not None:
        width = float(stdtrit(spread.kinds - 1, 1 - INTERVAL_ERROR / 2) * spread.deviation)
    is_absence_known = promises is not None and len(promises.absent) > 0
    facts = {
        "dim": int(known.seen.shape[1]),
        "depth": DEPTH,
        "least_gap": LEAST_GAP,
        "line": list(affine(model.similarity.scorer())),
        "copies": 1.0 if confidence.copies is None else confidence.copies,
        "names": list(confidence.names),
        "logistic": _logistic(confidence.logistic),
        "matcher": _logistic(promises.matcher) if is_absence_known else None,
        "present": promises.present.tolist() if is_absence_known else [],
        "lengths": _lengths(promises),
        "width": width,
        "threshold": judge.threshold,
        "risk": None if certified is None else certified.risk,
        "absence": ABSENCE,
        "few_words": FEW_WORDS,
        "nothing_said": NOTHING_SAID,
        "function_words": sorted(FUNCTION_WORDS),
        "known": {
            "error": ERROR,
            "nearest": NEAREST,
            "tilt": known.tilt.tolist(),
            "kept": judge.known.kept.tolist(),
        },
        "questions": confidence.num_queries,
    }
    return facts, SPACES["csd"].gallery(images).astype(np.float32), known.seen


def _logistic(learned):
    return {
        "centre": learned.centre.tolist(),
        "spread": learned.spread.tolist(),
        "weights": learned.weights.tolist(),
        "bias": learned.bias,
    }


def _lengths(promises):
    """Of `ListLength`; None where no length can be promised."""
    if promises is None:
        return None
    lengths = promises.list_length(LIST_ERROR)
    if not math.isfinite(lengths.shift):
        return None
    return {
        "confidence": lengths.confidence.tolist(),
        "shape": lengths.shape.tolist(),
        "shift": float(lengths.shift),
        "most": int(lengths.most),
    }
