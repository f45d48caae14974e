"""What tells right answers from wrong ones: signals of a query, and probabilities made of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from studies.statistics import mean_and_deviation
from zoo.cli.bounds import DIVISIONS
from zoo.confidence import QueryScores, abstention_auc, confidence_quality, query_features
from zoo.evaluation.answers import Answers
from zoo.evaluation.calibration import MOST, fitted, said_of
from zoo.evaluation.retrieval import EncodedSplit

DIRECTIONS = ("i2t", "t2i")
TEMPERATURE = 0.25  # of the entropy, in standard deviations of a query's scores
SIGNALS = {
    "uncertainty": "uncertainty",
    "best_score": "best score",
    "entropy": "−entropy",
    "margin": "first − second",
    "best_minus_mean": "best − mean",
    "z_score": "z-score",
}
LEARNT = {
    "validation": "calibrated on the validation split",
    "half_of_test": "calibrated on half of the test queries",
    "half_of_classes": "calibrated on the queries of half of the test classes",
}


def confidence_study(
    encoded: EncodedSplit,
    similarity: Callable,
    validation: EncodedSplit | None = None,
    divisions: int = DIVISIONS,
    seed: int = 0,
) -> dict[str, Any]:
    """Compares all signals of how sure an answer is, in both directions.

    ```python
    model, test = evaluation.open_run("runs/pcme_cub")
    _, held_out = evaluation.open_run("runs/pcme_cub", split="validation")
    encoded, seen = (evaluation.encode(model, s.records, s.source) for s in (test, held_out))
    study = confidence_study(encoded, model.similarity, seen)
    ```

    Args:
        encoded: the `EncodedSplit` of the test split.
        similarity: the layer or function to rank by.
        validation: the `EncodedSplit` to calibrate on, or None. Nothing of the test split is used
            but what needs no truth: each query's scores, and their mean and variance over the test
            gallery.
        divisions: of the test queries, and of their classes, at random into halves; either half is
            calibrated on and the other is measured on.
        seed: of the divisions.

    Returns:
        A dict of JSON values: for `"i2t"` and `"t2i"`

        - `queries`, `items`, `recall@1` (a share),
        - `signals`: by name `nauc` and `spearman_of_bins` of the test queries. The entropy is of
          softmax(s / τ), τ a quarter of the median standard deviation of a query's scores,
        - `calibrated`: by `"validation"`, `"half_of_test"` and `"half_of_classes"` the figures of
          `confidence_quality`, `nauc_without_agreement` where their answers' vectors are known,
          `nauc_without_uncertainty` where the queries have one, and `nauc_of_signals` on the same
          queries; means over all halves. Or `why_not`, a sentence.

        Also `labels`, of `"i2t"` and `"t2i"`: number of classes.

    Raises:
        ValueError: if no query has a match, or a similarity is not finite.
    """
    pairs = encoded.pairs(similarity).kept()
    study = {}
    for direction in DIRECTIONS:
        answers = Answers.of(encoded, similarity, direction, pairs=pairs)
        seen = None
        if validation is not None:
            seen = Answers.of(validation, similarity, direction, MOST, seed)
        study[direction] = study_of(answers, seen, divisions, seed)
    return study


def halves_by_class(answers: Answers, seed: int) -> tuple[Answers, Answers]:
    """The queries of half of the classes, drawn at random, and those of the others."""
    classes = np.random.default_rng(seed).permutation(np.unique(answers.labels))
    first = np.isin(answers.labels, classes[: (len(classes) + 1) // 2])
    return answers.take(first), answers.take(~first)


def study_of(
    answers: Answers, seen: Answers | None = None, divisions: int = DIVISIONS, seed: int = 0
) -> dict[str, Any]:
    """The study of one direction: see `confidence_study`.

    Args:
        answers: the `Answers` of the test split.
        seen: those to calibrate on, or None.
        divisions, seed: as of `confidence_study`.
    """
    halves = [answers.halves(seed + number) for number in range(divisions)]
    by_class = [halves_by_class(answers, seed + number) for number in range(divisions)]
    rows = {
        "validation": None if seen is None else [(seen, answers)],
        "half_of_test": _both_ways(halves),
        "half_of_classes": _both_ways(by_class),
    }
    return {
        "queries": len(answers),
        "items": answers.num_items,
        "classes": len(np.unique(answers.labels)),
        "recall@1": float(answers.correct.mean()),
        "signals": {
            name: _order(values, answers.correct) for name, values in signals_of(answers).items()
        },
        "calibrated": {
            name: _tried(lambda parts=parts: _row(parts))
            for name, parts in rows.items()
            if parts is not None
        },
    }


def signals_of(answers: Answers) -> dict[str, np.ndarray]:
    """All signals of `SIGNALS` by name, `(Q,)` arrays, greater is surer."""
    scores = answers.scores
    found = dict(answers.signals)
    found["margin"] = scores.top[:, 0] - scores.top[:, 1]
    temperature = TEMPERATURE * float(np.median(np.sqrt(scores.variance)))
    if temperature > 0:
        found["entropy"] = -entropy(scores, temperature)
    found["z_score"] = query_features(scores, names=["z_score"])[:, 0]
    return {name: found[name] for name in SIGNALS if name in found}


def entropy(scores: QueryScores, temperature: float) -> np.ndarray:
    """The entropy of softmax(s / τ) over a gallery, in nats, `(queries,)`.

    The best 20 scores are exact; the others are taken for a normal distribution with the mean and
    variance of the rest, cut off at the lowest of the best, over which sums of exp(s / τ) are
    closed forms.

    Args:
        scores: a `QueryScores`.
        temperature: τ, in units of the scores.
    """
    logits = scores.top / temperature
    best = logsumexp(logits, axis=1)
    rest, rest_energy = _normal_rest(scores, temperature)
    log_sum = np.logaddexp(best, rest)
    # The mean of s / τ under the softmax: of the best, and of the rest where there is one.
    energy = (np.exp(logits - log_sum[:, None]) * logits).sum(axis=1)
    energy = energy + np.exp(rest - log_sum) * np.where(np.isfinite(rest), rest_energy, 0.0)
    return np.maximum(log_sum - energy, 0.0)


def _normal_rest(scores, temperature):
    """log Σ exp(s / τ) of the scores below the best R, and the mean of s / τ under that softmax.

    With x ~ N(m, v) cut off at c, E[exp(x)] = exp(m + v/2) Φ((c − m − v)/√v) / Φ((c − m)/√v), and
    weighed by exp(x) it is N(m + v, v) cut off at c.
    """
    top, count = scores.top / temperature, scores.top.shape[1]
    rest = (scores.size - count).astype(np.float64)
    some = np.maximum(rest, 1.0)
    mean = (scores.size * scores.mean / temperature - top.sum(axis=1)) / some
    # The mean of squares about the rest's own mean, by the parallel axis theorem.
    about = scores.mean / temperature
    squares = scores.size * scores.variance / temperature**2 - ((top - about[:, None]) ** 2).sum(1)
    variance = np.maximum(squares / some - (mean - about) ** 2, 1e-12)
    deviation = np.sqrt(variance)
    cut = np.maximum(top[:, -1], mean)  # a rest above its own cut is rounding, or not sorted out
    at, tilted = (cut - mean) / deviation, (cut - mean - variance) / deviation
    log_mean = mean + variance / 2 + log_ndtr(tilted) - log_ndtr(at)
    hazard = np.exp(-0.5 * tilted**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(tilted))
    with np.errstate(divide="ignore"):
        return np.log(rest) + log_mean, mean + variance - deviation * hazard


def summarise_studies(studies: Sequence[Any]) -> Any:
    """Several studies, such as of three seeds, as one: every number becomes mean and deviation.

    Args:
        studies: results of `confidence_study`.

    Returns:
        Their common structure with `{"mean", "deviation", "runs"}` in place of every number; the
        deviation (n − 1) of one is None. What not all studies have is left out.
    """
    first = studies[0]
    if isinstance(first, dict):
        common = [name for name in first if all(name in study for study in studies)]
        return {name: summarise_studies([study[name] for study in studies]) for name in common}
    if not isinstance(first, int | float):
        return first
    values = np.array(studies, float)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "deviation": deviation, "runs": len(values)}


def study_table(studies: Sequence[dict[str, Any]]) -> str:
    """The table of some runs' studies in Markdown, means ± standard deviations over the runs.

    Args:
        studies: results of `confidence_study`, of runs that differ in the seed.
    """
    lines = ["| confidence | i2t nAUC | ρ | ECE | t2i nAUC | ρ | ECE |", f"|{'---|' * 7}"]
    for name, title in SIGNALS.items():
        found = [[study[side]["signals"].get(name, {}) for study in studies] for side in DIRECTIONS]
        if all(found[0]) and all(found[1]):
            lines.append(_line(title, found))
    for name, title in LEARNT.items():
        found = [
            [study[side]["calibrated"].get(name, {}) for study in studies] for side in DIRECTIONS
        ]
        if any("nauc" in one for side in found for one in side):
            lines.append(_line(title, found))
            for what in ("uncertainty", "agreement"):
                name = f"nauc_without_{what}"
                if any(name in one for one in found[0]):
                    without = [[{"nauc": one.get(name)} for one in side] for side in found]
                    lines.append(_line(f"the same without {what}", without))
    return "\n".join(lines) + "\n"


def _both_ways(halves):
    return [pair for first, second in halves for pair in ((first, second), (second, first))]


def _row(parts):
    """Means over pairs of `Answers`, to calibrate on and to measure on."""
    return _mean([_measured(calibration, answers) for calibration, answers in parts])


def _measured(calibration, answers):
    confidence = fitted(calibration)
    probability = said_of(confidence, answers)
    result = confidence_quality(probability, answers.correct)
    result["nauc_of_signals"] = {
        name: abstention_auc(values, answers.correct) for name, values in answers.signals.items()
    }
    for name, there in (
        ("uncertainty", answers.uncertainty),
        ("agreement", answers.scores.agreement),
    ):
        if there is not None:
            less = answers.without(name)
            alone = fitted(calibration.without(name))
            probability = said_of(alone, less)
            result[f"nauc_without_{name}"] = abstention_auc(probability, answers.correct)
    return result


def _order(values, correct):
    found = confidence_quality(values, correct)
    return {name: found[name] for name in ("nauc", "spearman_of_bins")}


def _mean(results):
    """Means of the numbers of dicts of the same structure."""
    first = results[0]
    if isinstance(first, dict):
        return {name: _mean([result[name] for result in results]) for name in first}
    return float(np.mean(results))


def _tried(make):
    try:
        return make()
    except ValueError as error:
        return {"why_not": str(error)}


def _line(title, found):
    cells = [
        _cell([one.get(name) for one in side], form)
        for side in found
        for name, form in (
            ("nauc", ".2f"),
            ("spearman_of_bins", "+.2f"),
            ("calibration_error", ".3f"),
        )
    ]
    return f"| {title} | {' | '.join(cells)} |"


def _cell(values, form):
    return "" if None in values else mean_and_deviation(values, form)
