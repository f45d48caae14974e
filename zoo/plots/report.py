"""The report on a run: `report.md`, of a screen or two, with its figures beside it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.confidence import Probes
from halo_search.files.atomic import write_text
from halo_search.files.written import Written
from zoo import evaluation, metrics, similarities
from zoo.data.records.sources import Split
from zoo.evaluation import calibration
from zoo.evaluation.printing import ARROWS, ASKED, verdict
from zoo.metrics.statistics import RESAMPLES, percentage
from zoo.models import DualEncoder
from zoo.plots import style
from zoo.plots.run_figures import draw
from zoo.plots.uncertainty_plots import risk_coverage_plot

PAGE = "report.md"
KS = (1, 5, 10)
MOST = 5000  # queries of a direction whose confidence is measured
FEW = 200  # queries; below, intervals are too wide to compare models
LEAST_QUERIES = 10  # of a point of a curve
FIGURES = {
    "confidence": "Wrong answers, by the share of questions answered, the most confident first",
    "recall_by_uncertainty": "Recall@1 over ten bins of the query's uncertainty: it should fall",
    "risk_coverage": "Wrong answers when the most uncertain queries are left out",
    "ambiguity": "Uncertainty of captions over the number of images that they are true of",
    "confidence_ellipses": "95 % ellipses of images and captions of five classes",
    "text_to_image": "Captions, from certain to uncertain, with the images that they find",
    "image_to_text": "Images, from certain to uncertain, with the captions that they find",
}


def write_report(
    out: str | os.PathLike,
    model: DualEncoder,
    split: Split,
    name: str,
    probes: Probes | None = None,
    ranking: str = "own",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Path:
    """Evaluates a model on a split and writes `report.md`, whose path it returns, and its figures.

    ```python
    model, split = zoo.evaluation.open_run("toy_birds_pfe")
    zoo.plots.write_report("report", model, split, "toy_birds_pfe")
    ```

    Args:
        out: the folder; an InputError if it cannot be written, or holds such files of others.
        model: a `DualEncoder` with a tokenizer.
        split: a `zoo.data.Split`.
        name: of the run, as commands take it.
        probes: the run's `halo_search.confidence.Probes`; None: a confidence learnt here by
        cross-fitting.
        ranking: `"own"`, or another of `zoo.similarities.NAMES` to rank by; else a ValueError.
        resamples, seed: of the bootstrap.
    """
    out = Path(out)
    Written(out).claim(PAGE, *(f"{figure}.png" for figure in FIGURES))
    similarity = model.similarity if ranking == "own" else similarities.get(ranking, model)
    results, encoded = evaluation.measure(model, split, (ranking,))
    drawn = draw(out, results, encoded, model, split.picture, split.true_matches)
    pairs, truth = encoded.pairs_in_memory(similarity), encoded.relevance
    ranks = {
        "i2t": metrics.rank_queries(pairs, truth),
        "t2i": metrics.rank_queries(pairs.transposed(), truth.transposed()),
    }
    judged = {side: _judged(encoded, similarity, side, probes, seed) for side in ARROWS}
    curves = {side: curve for side, (_, curve) in judged.items() if curve is not None}
    if curves:
        options = {"error": "wrong answers", "by": "by confidence", "areas": False}
        style.save(risk_coverage_plot(**curves, **options), out / "confidence.png")
        drawn.append("confidence")
    confidences = {side: confidence for side, (confidence, _) in judged.items()}

    def estimate(statistic, *columns):
        return metrics.bootstrap(statistic, *columns, resamples=resamples, seed=seed)

    lines = [
        f"# {name}",
        f"{results['split']}. Ranked by {similarities.name_of(similarity)}; ties count against the "
        f"model. Brackets are 95 % bootstrap intervals over the queries (seed {seed}).",
        "## Verdict",
        "\n".join(
            f"- {ASKED[side]}: {verdict(confidence)}" for side, confidence in confidences.items()
        ),
        "## Retrieval, in %",
        _table(_retrieval(ranks, results["chance"], estimate)),
        "## Confidence",
        _table(_confidence(confidences)),
        *_uncertainty(results, encoded, ranks, resamples, seed),
        "## Next",
        "\n".join(
            f"- {line}" for line in _next(name, ranks, confidences, probes, estimate, results)
        ),
        "## Figures",
        *(f"**{text}**\n\n![{text}]({key}.png)" for key, text in FIGURES.items() if key in drawn),
    ]
    write_text(out / PAGE, "\n\n".join(lines) + "\n")
    return out / PAGE


def _judged(encoded, similarity, side, probes, seed):
    """What the confidence of one direction is worth, and its risk over coverage or None."""
    confidence = None
    try:
        if probes is not None:
            confidence = calibration.calibrated(probes, similarity, encoded, side, seed)
        copies = None if confidence is None else confidence.copies
        answers = evaluation.Answers.of(encoded, similarity, side, MOST, seed, copies=copies)
        if confidence is None:
            probabilities = calibration.cross_fitted(answers, seed)
            measured = calibration.worth(probabilities, answers.correct)
        else:
            probabilities = calibration.said_of(confidence, answers)
            measured = calibration.measure(confidence, answers)
    except ValueError as error:
        return {"why_not": str(error)}, None
    curve = metrics.risk_coverage(-probabilities, ~answers.correct)
    shown = curve["coverage"] >= min(1.0, LEAST_QUERIES / len(probabilities))
    return measured, {**curve, "risk": np.where(shown, curve["risk"], np.nan)}


def _retrieval(ranks, chance, estimate):
    """Rows of Recall@K and R-Precision with intervals, beside a random ranking's."""
    yield ("direction", *(f"R@{k}" for k in KS), "R-Precision", "queries")
    for side, words in ARROWS.items():
        ranks_of_side, known = ranks[side], ranks[side].has_positive
        values = [*(ranks_of_side.hits(k)[known] for k in KS), ranks_of_side.r_precision[known]]
        yield (words, *(estimate(percentage, v).text() for v in values), f"{known.sum():,}")
        keys = [*(f"recall@{k}" for k in KS), "r_precision"]
        yield ("by chance", *(f"{chance[f'{side}_{key}']:.1f}" for key in keys), "")


def _confidence(confidences):
    """Yields the rows of the table of confidence: a question, and an answer per direction."""
    yield ("question", *ASKED.values())
    yield (
        "How often is the first answer right?",
        *(_right(confidence) for confidence in confidences.values()),
    )
    yield (
        "How true is the probability that it is?",
        *(_true(confidence) for confidence in confidences.values()),
    )
    yield (
        f"How many results contain a right one in {100 - 100 * calibration.ERROR:.0f} % of cases?",
        *(_enough(confidence) for confidence in confidences.values()),
    )


def _right(confidence):
    return f"{100 * confidence['right']:.0f} %" if "right" in confidence else "not known"


def _true(confidence):
    if "why_not" in confidence:
        return "not known"
    error, probability = 100 * confidence["calibration_error"], 100 * confidence["said"]
    return f"off by {error:.1f} points; {probability:.0f} % predicted on average"


def _enough(confidence):
    smallest_k = confidence.get("smallest_k")
    return "not promised" if smallest_k is None else f"{smallest_k['k']:,}"


def _uncertainty(results, encoded, ranks, resamples, seed):
    """The section on the model's own uncertainties, where it has any."""
    if "uncertainty" not in results:
        return []
    sides = {"i2t": encoded.image_uncertainty, "t2i": encoded.caption_uncertainty}
    lines = []
    for side, measured in results["uncertainty"].items():
        known = ranks[side].has_positive
        judged = metrics.uncertainty_verdict(
            sides[side][known], ~ranks[side].hits(1)[known], resamples=resamples, seed=seed
        )
        rho = style.format_spearman(measured["spearman_of_bins"])
        lines.append(f"- {ASKED[side]}: {judged.sentence} Bin and Recall@1: {rho}.")
    if "ambiguity_spearman" in results:
        rho = style.format_spearman(results["ambiguity_spearman"])
        lines.append(f"- Caption uncertainty and true number of matches: {rho}.")
    return [f"## Uncertainty: {encoded.measure}", "\n".join(lines)]


def _next(name, ranks, confidences, probes, estimate, results) -> Iterator[str]:
    """What to do with this run, by what was measured."""
    for side, asked in ASKED.items():
        known = ranks[side].has_positive
        if not known.any():
            continue
        low = estimate(percentage, ranks[side].hits(1)[known]).low
        if low <= results["chance"][f"{side}_recall@1"]:
            yield f"{asked}: no better than chance. Train longer, or check which captions belong."
        elif known.sum() < FEW:
            yield f"{asked}: {known.sum():,} queries. Hold out more before you compare models."
        kind = confidences[side].get("verdict")
        if kind == "informative":
            yield f"{asked}: leave out answers whose probability is low."
        elif kind is not None:
            yield f"{asked}: show several results rather than one answer."
    if probes is None:
        yield "The run has no probes: its answers elsewhere get generic probabilities."
    yield f"`halo search build PHOTOS INDEX --model {name}` searches your photos with it."
    yield f"`halo demo {name}` shows it in the browser; `halo export {name} OUT` serves it."


def _table(rows: Any) -> str:
    """Rows of texts as a Markdown table; the first row is the head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * (head.count(" | ") + 1), *body])
