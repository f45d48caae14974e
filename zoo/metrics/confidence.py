"""How good a confidence is: nAUC, calibration error, reliability, and their table."""

import numpy as np

from halo_search.embeddings import checks
from zoo.metrics.statistics import spearman
from zoo.metrics.uncertainty import risk_coverage

ABSTENTION_RATES = np.linspace(0, 1, 11)[:-1]  # to the last digit, as MTEB rounds by it


def abstention_auc(confidence, correct):
    """Normalised area under accuracy over abstention rates 0, 0.1 … 0.9: MTEB's nAUC.

    At the rate r the least confident share r of the queries is left out, those of equal confidence
    in random order, whose expectation is taken exactly.

    Args:
        confidence: `(Q,)`, higher is surer.
        correct: `(Q,)` booleans.

    Returns:
        A float: 0 for leaving out at random, 1 for an oracle that leaves out wrong ones first,
        negative for worse than random; NaN where all are right or all are wrong.

    Raises:
        ValueError: if shapes differ, or a confidence is not finite.
    Reference: Gisserot-Boukhlef et al., "Towards Trustworthy Reranking: A Simple yet Effective
        Abstention Mechanism", 2024; MTEB, which takes the order of equal confidences as it comes.
    """
    confidence = checks.vector(confidence, "confidence")
    correct = checks.truths(correct, "correct", len(confidence))
    if correct.all() or not correct.any():
        return float("nan")
    flat = correct.mean()
    area, oracle = (
        np.trapezoid(_accuracy(score, correct), ABSTENTION_RATES) for score in (confidence, correct)
    )
    flat = flat * (ABSTENTION_RATES[-1] - ABSTENTION_RATES[0])
    return float((area - flat) / (oracle - flat))


def expected_calibration_error(probability, correct, bins=10):
    """The mean gap between a probability and how often it came true, over bins of equal count: in
    [0, 1]; of a calibrated probability near √(p(1 − p)·bins / Q)·0.8, not 0.

    Args and Raises: as `reliability`.
    Reference: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI
        2015; bins of equal count after Nguyen and O'Connor, EMNLP 2015.
    """
    diagram = reliability(probability, correct, bins)
    return float(
        np.average(np.abs(diagram["probability"] - diagram["accuracy"]), weights=diagram["count"])
    )


def reliability(probability, correct, bins=10):
    """A reliability diagram: `probability` and `accuracy`, means of each bin, and `count`. Raises
    ValueError if shapes differ or a probability is not in [0, 1].

    Args:
        probability: `(Q,)` in [0, 1].
        correct: `(Q,)` booleans.
        bins: number of bins of rising probability; fewer where there are fewer queries. Queries of
            equal probability count by their mean truth.
    """
    probability = checks.vector(probability, "probability")
    correct = checks.truths(correct, "correct", len(probability))
    if (probability < 0).any() or (probability > 1).any():
        raise ValueError("`probability` must be in [0, 1]")
    bins = min(checks.whole(bins, "bins"), len(probability))
    order = np.argsort(probability, kind="stable")
    parts, accuracy = np.array_split(order, bins), _expected(probability, correct)
    return {
        "probability": np.array([probability[part].mean() for part in parts]),
        "accuracy": np.array([accuracy[part].mean() for part in parts]),
        "count": np.array([len(part) for part in parts]),
    }


def confidence_quality(confidence, correct, bins=10):
    """The figures of a table about confidence, of arguments as of `abstention_auc`.

    Returns:
        A dict: `nauc` (`abstention_auc`); `aurc`, `oracle_aurc` and `random_aurc`
        (`zoo.metrics.risk_coverage` of the errors); `spearman_of_bins`, of the place of a bin of
        falling confidence and its accuracy, −1 for a confidence that orders them all; and where
        the confidence is in [0, 1] also `calibration_error`.
    """
    confidence = checks.vector(confidence, "confidence")
    correct = checks.truths(correct, "correct", len(confidence))
    curve = risk_coverage(-confidence, ~correct)
    parts = np.array_split(np.argsort(-confidence, kind="stable"), min(bins, len(confidence)))
    expected = _expected(confidence, correct)
    accuracy = [expected[part].mean() for part in parts]
    result = {
        "nauc": abstention_auc(confidence, correct),
        **{name: curve[name] for name in ("aurc", "oracle_aurc", "random_aurc")},
        "spearman_of_bins": spearman(np.arange(len(parts)), accuracy),
    }
    if confidence.min() >= 0 and confidence.max() <= 1:
        result["calibration_error"] = expected_calibration_error(confidence, correct, bins)
    return result


def _accuracy(confidence, correct):
    """Expected accuracy of the most confident share 1 − r, for every abstention rate r."""
    confidence = confidence.astype(float)
    total = np.cumsum(_expected(confidence, correct)[np.argsort(-confidence)])
    num_answered = np.maximum(
        1, len(correct) - np.round(len(correct) * ABSTENTION_RATES).astype(int)
    )
    return total[num_answered - 1] / num_answered


def _expected(confidence, correct):
    """Correctness per query, (queries,); queries of equal confidence get their mean."""
    _, group, size = np.unique(confidence, return_inverse=True, return_counts=True)
    return (np.bincount(group, correct) / size)[group]
