"""What a report opens with: the verdict, what an answer is worth, and six answers."""

import numpy as np

from zoo.confidence.caption_bank import packaged_bank
from zoo.confidence.fits import REFERENCE, priors
from zoo.confidence.judge import Asked, Judge
from zoo.evaluation.calibration import ERROR, RISK
from zoo.evaluation.known import query_facts
from zoo.evaluation.pair_gallery import PairGallery
from zoo.evaluation.printing import ASKED, verdict
from zoo.metrics import chance, risk_coverage
from zoo.metrics.statistics import percentage
from zoo.report.reported_run import LEAST_QUERIES, RUNS_OWN
from zoo.report.retrieval import with_positive
from zoo.report.retrieval_sheets import best
from zoo.report.section import Example, Found, Number, Section, Table
from zoo.report.style import DIRECTIONS
from zoo.report.uncertainty_plots import risk_coverage_plot

EXAMPLES, SHOWN = 6, 3  # questions, and answers of each
NOT_PROMISED = "cannot be promised"


def section(run):
    """The verdicts, one number a question, risk over coverage, and six examples."""
    judged = run.judged
    verdicts = tuple(f"{ASKED[side]}: {verdict(one.found)}" for side, one in judged.items())
    figures = {}
    for side, one in judged.items():
        if one.probability is not None:
            title = f"{ASKED[side]}: wrong answers, when the least sure are left out"
            figures[title] = risk_coverage_plot(
                **{side: _curve(one)}, error="wrong answers", by="by confidence", areas=False
            )
    sources = {one.source for one in judged.values()} - {None}
    text = f"The confidence is {' or '.join(sorted(sources))}." if sources else ""
    for side, one in judged.items():
        if one.why_not is not None and one.source != RUNS_OWN:
            text += f" {ASKED[side]}: {one.why_not}."
    return Section(
        "opening",
        "In short",
        text.strip(),
        tuple(_number(run, side) for side in DIRECTIONS),
        figures,
        (_table(run),),
        verdicts,
        examples(run),
    )


def _curve(one):
    """Risk over coverage, but for shares of so few queries that luck makes them."""
    curve = risk_coverage(-one.probability, ~one.answers.correct)
    shown = curve["coverage"] >= min(1.0, LEAST_QUERIES / len(one.probability))
    return {**curve, "risk": np.where(shown, curve["risk"], np.nan)}


def _number(run, side):
    """The share of queries whose first answer is right."""
    by_chance = chance(run.split.relevance, (1,))[f"{side}_recall@1"]
    estimate = run.estimate(percentage, with_positive(run, side).hits(1))
    label = f"{ASKED[side]}: first answers that are right"
    return Number(label, estimate, "%", chance=by_chance)


def _table(run):
    rows = {
        "How often is the first answer right?": _right,
        "How true is the probability that it is?": _true,
        "How many results hold a right one 9 times in 10?": _enough,
        f"How many questions are answered with at most {100 * RISK:.0f} % wrong?": _certified,
    }
    assert ERROR == 0.1  # the row says 9 times in 10
    table = tuple(
        (question, *(tell(run, side) for side in DIRECTIONS)) for question, tell in rows.items()
    )
    return Table("", ("question", *ASKED.values()), table)


def _right(run, side):
    number = _number(run, side)
    return f"{number.text}, by chance {number.chance:.1f} %"


def _true(run, side):
    found = run.judged[side].found
    if "why_not" in found:
        return "not known"
    said, right = 100 * found["said"], 100 * found["right"]
    error = 100 * found["calibration_error"]
    return f"off by {error:.1f} points (said {said:.0f} % on average, right {right:.0f} %)"


def _enough(run, side):
    found = run.judged[side].found.get("smallest_k")
    return NOT_PROMISED if found is None else f"{found['k']:,}"


def _certified(run, side):
    found = run.judged[side].found.get("certified_threshold")
    if found is None:
        return NOT_PROMISED
    answered, wrong = 100 * found["answered"], 100 * found["risk"]
    if not answered:
        return "none"
    return f"{answered:.0f} % ({wrong:.0f} % of them wrong)"


def examples(run, count=EXAMPLES):
    """`Example`s from the surest answer to the least sure, each with its first answers.

    They stand for the split: of six, one is drawn from the middle of every sixth of the queries in
    the order of their confidence. They are listed by the probability that the first result fits.
    """
    one, records = run.judged["t2i"], run.records
    sure = one.answers.scores.top[:, 0] if one.probability is None else one.probability
    places = (np.arange(count) + 0.5) / count * len(sure)
    chosen = np.unique(np.argsort(-sure, kind="stable")[places.astype(int)], return_index=True)
    chosen = chosen[0][np.argsort(chosen[1])]  # in order of confidence, none twice
    rows = one.answers.rows[chosen]
    found, _ = best(run.pairs.transposed(), rows, SHOWN)
    texts = [str(records.captions[row]) for row in rows]
    judgements = _judgements(run, one, chosen, rows, texts)
    right = records.image_labels[found] == records.caption_labels[rows][:, None]
    examples = []
    for i, judgement in enumerate(judgements):
        fits = [None] * found.shape[1] if judgement.fits is None else map(float, judgement.fits)
        shown = zip(found[i], right[i], fits, strict=False)
        examples.append(
            Example(
                texts[i],
                judgement.verdict,
                None if judgement.fits is None else float(judgement.fits[0]),
                judgement.reason,
                int(one.answers.ranks[chosen[i]]),
                tuple(_found(run, *item) for item in shown),
            )
        )
    return tuple(sorted(examples, key=lambda one: -(one.probability or 0)))


def _judgements(run, one, chosen, rows, texts):
    probes = run.probes
    fits = None if probes is None else probes.fits.get("t2i")
    judge = Judge(
        one.confidence,
        fits,
        by_class=probes is not None and probes.by_class,
        why_not=one.why_not or "",
        known=None if probes is None else probes.known.get("t2i"),
        gallery=None if one.confidence is None else one.confidence.gallery,
    )
    queries = {name: np.asarray(values)[rows] for name, values in run.split.captions.items()}
    facts = {} if run.model is None else query_facts(run.model, queries, texts)
    if fits is not None:
        facts["prior"] = None if fits.words is None else priors(texts, packaged_bank())
        items = PairGallery(probes.items("t2i"), run.similarity, "images")
        facts["reference"] = items.query_scores(queries).top[:, :REFERENCE].mean(axis=1)
    return judge(one.answers.scores.take(chosen), asked=Asked(**facts), count=len(chosen))


def _found(run, image, right, fits):
    if run.picture is not None:
        return Found(np.asarray(run.picture(int(image))), "", bool(right), fits)
    own = np.flatnonzero(run.records.caption_image == image)
    text = str(run.records.captions[own[0]]) if len(own) else f"image {image}"
    return Found(None, text, bool(right), fits)
