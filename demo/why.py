"""What an answer rests on: held-out questions whose answers are known, asked in this gallery."""

import threading
import weakref

import numpy as np

from demo.limits import RefusedError
from halo_search.confidence.calibrate import ask_probes
from halo_search.confidence.probes import direction_of
from halo_search.index import scoring

BINS = 36
_ASKED = weakref.WeakKeyDictionary()  # best scores and correctness of the probes, by index
_LOCK = threading.Lock()


def evidence(gallery, retriever, question):
    """JSON values: where the best score of a question lies among those of the probes.

    Args:
        gallery: a `Gallery`.
        retriever: the `zoo.Retriever` that is asked.
        question: as `Retriever.ask` takes it.

    Returns:
        A dict with `similarity`, the name of what ranks; `score`, the question's best one;
        `uncertainty`, the share of captions that are more certain, or None; and, of a calibrated
        gallery, `probes`: the counts of `right` and `wrong` ones in bins from `low` to `high` and
        how many there are of each, `lower`: the share of right ones with a lower best score. Else
        `why_not` says why nothing is calibrated.

    Raises:
        RefusedError: if the gallery is empty.
    """
    answer = retriever.ask(question, 1)
    if not len(answer.ids):
        raise RefusedError("The gallery is empty.")
    sign = scoring.sign(retriever.index.similarity)
    score = sign * float(answer.scores[0])
    found = {
        "similarity": scoring.name_of(retriever.index.similarity).replace("_", " "),
        "score": score,
        "model": gallery.called,
        "measure": gallery.measure,
        "items": len(retriever),
        "probes": None,
        "why_not": None,
    }
    if retriever.confidence is None:
        return found | {"why_not": retriever.judge.why_not}
    best, correct = _probes(retriever)
    low, high = np.quantile(best, (0.002, 0.998))
    low, high = min(low, score), max(high, score)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    counts = {
        name: np.histogram(np.clip(best[of], low, high), edges)[0].tolist()
        for name, of in (("right", correct), ("wrong", ~correct))
    }
    fits = retriever.judge.fits
    found["probes"] = {
        **counts,
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "num_right": int(correct.sum()),
        "num_wrong": int((~correct).sum()),
        "lower": float(np.mean(best[correct] < score)),
        "judged_by": None if fits is None else fits.source,
    }
    return found


def _probes(retriever):
    """`(best scores, correct)` of the probes in front of this gallery, `(Q,)` each."""
    with _LOCK:
        index = retriever.index
        if index not in _ASKED:
            pairs = retriever.probes.pairs(direction_of(retriever.side))
            probed, *_ = ask_probes(index, pairs["queries"], pairs["own"], pairs["matches"])
            _ASKED[index] = np.asarray(probed.scores.top[:, 0], float), probed.correct
        return _ASKED[index]
