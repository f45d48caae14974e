"""Section on confidence: what tells right answers from wrong ones, and whether it is calibrated."""

import numpy as np

from zoo.confidence import abstention_auc, expected_calibration_error, reliability
from zoo.evaluation.calibration import cross_fitted
from zoo.evaluation.known import facts_of_split
from zoo.metrics import risk_coverage
from zoo.report.reported_run import LEAST_QUERIES, RUNS_OWN, SCORES, UNION
from zoo.report.section import Number, Section, of_error
from zoo.report.style import (
    DIRECTIONS,
    GREY,
    PALETTE,
    draw_shares,
    new_figure,
    styled,
    with_minus,
)

LEAST_COVERAGE = 0.02  # of a curve beside others
SIGNALS = {
    "uncertainty": "uncertainty",
    "best_score": "best score",
    "best_minus_mean": "best score − mean",
}
COLORS = dict(zip([RUNS_OWN, UNION, SCORES, *SIGNALS.values()], PALETTE, strict=False))


def section(run):
    """nAUC of each confidence, risk–coverage curves and a reliability diagram, by direction."""
    numbers, figures, verdicts, missing = [], {}, [], []
    for direction, words in DIRECTIONS.items():
        judged = run.judged[direction]
        answers = judged.answers
        if run.probes is not None and judged.why_not is not None:
            missing.append(f"{words}: {RUNS_OWN}: {judged.why_not}.")
        confidences, probabilities, why_not = _confidences(run, judged)
        missing += [f"{words}: {reason}." for reason in why_not]
        correct = answers.correct
        found = {
            name: run.estimate(abstention_auc, values, correct)
            for name, values in confidences.items()
        }
        numbers += [
            Number(f"{words}: nAUC of {name}", estimate, form=".2f")
            for name, estimate in found.items()
        ]
        numbers += [
            Number(
                f"{words}: calibration error of {name}",
                of_error(run.estimate(expected_calibration_error, values, correct).scaled(100)),
                "points",
            )
            for name, values in probabilities.items()
        ]
        strange = _unknown(run, direction)
        if strange is not None:
            estimate = run.estimate(np.mean, strange).scaled(100)
            numbers.append(Number(f"{words}: queries not understood", estimate, "%"))
        shown = next(iter(probabilities), None)
        if shown is not None:
            verdicts.append(_verdict(words, shown, probabilities[shown], correct))
        figures[f"{words}: errors left when less is answered, and how true the probability is"] = (
            confidence_plot(confidences, correct, shown, words)
        )
    text = (
        "How sure an answer is, by the query's uncertainty, by what its scores over the gallery "
        "say, and by calibrated probabilities made of these. nAUC is the area that leaving out "
        "unsure queries gains: 0 for leaving out at random, 1 for an oracle. Cross-fitted means "
        "learnt without a fifth of this split's queries and applied to that fifth."
    )
    if run.probes is not None:
        text += (
            " The run's probes are held-out pairs of its validation split, asked in front of this "
            "gallery. Where the classes of the test are others, their probabilities may be too "
            "high or too low, which the diagram shows. Queries that are not understood have mostly "
            "words that training has not, or lie far from all that it has seen; nearly all of a "
            "test split's own should be understood."
        )
    text += "".join(f" {reason}" for reason in missing)
    return Section(
        "confidence",
        "Confidence beside other signals",
        text,
        tuple(numbers),
        figures,
        verdicts=tuple(verdicts),
    )


def _unknown(run, direction):
    """Whether each query is declined since the model does not know its kind, or None."""
    known = None if run.probes is None else run.probes.known.get(direction)
    if known is None or run.model is None:
        return None
    return known.declined(**facts_of_split(run.model, run.split, direction)).astype(float)


def _confidences(run, judged):
    """`(confidences, those that are probabilities, why others are missing)`, by name."""
    answers, makers, probabilities, why_not = judged.answers, {}, {}, []
    if judged.probability is not None:
        probabilities[judged.source] = judged.probability
    if answers.uncertainty is not None:
        makers[UNION] = lambda: cross_fitted(answers, run.seed)
    makers[SCORES] = lambda: cross_fitted(answers.without("uncertainty"), run.seed)
    for name, make in makers.items():
        if name in probabilities:
            continue
        try:
            probabilities[name] = make()
        except ValueError as error:
            why_not.append(f"{name}: {error}")
    signals = {SIGNALS[name]: values for name, values in answers.signals.items()}
    return {**signals, **probabilities}, probabilities, why_not


def _verdict(words, name, probability, correct):
    order = np.argsort(-probability, kind="stable")
    half = order[: (len(order) + 1) // 2]
    wrong = 100 * (1 - correct[half].mean()), 100 * (1 - correct.mean())
    return (
        f"{words}: of all answers {wrong[1]:.0f} % are wrong, of the surer half ({name}) "
        f"{wrong[0]:.0f} %."
    )


@styled
def confidence_plot(confidences, correct, reliable=None, title=""):
    """Risk–coverage curves of several confidences, and the reliability of one of them.

    Args:
        confidences: by name, `(Q,)`, higher is surer.
        correct: `(Q,)` booleans.
        reliable: name of the one that is a probability, or None: then there is no second panel.
        title: of the first panel.

    Returns:
        A matplotlib figure.
    """
    figure = new_figure(5.6 if reliable is None else 10.4, 5.0)
    axes = figure.subplots(1, 1 if reliable is None else 2, squeeze=False)[0]
    axis, wrong = axes[0], ~np.asarray(correct, bool)
    at_random, top = wrong.mean(), wrong.mean()
    coverage = np.arange(1, len(wrong) + 1) / len(wrong)
    shown = coverage >= min(1.0, max(LEAST_COVERAGE, LEAST_QUERIES / len(wrong)))
    for name, values in confidences.items():
        risk = risk_coverage(-np.asarray(values, float), wrong)["risk"][shown]
        nauc = with_minus(f"{abstention_auc(values, correct):.2f}")
        label = f"{name}, nAUC {nauc}"
        axis.plot(100 * coverage[shown], 100 * risk, color=COLORS[name], label=label)
        top = max(top, risk.max())
    oracle = np.maximum(0.0, 1.0 - (1.0 - at_random) / coverage)
    axis.plot(100 * coverage, 100 * oracle, ":", color="black", label="oracle, nAUC 1")
    axis.axhline(100 * at_random, linestyle="--", color=GREY, label="at random, nAUC 0")
    axis.set(xlim=(0, 100), ylim=(0, 105 * max(top, 0.01)))
    axis.set_title(f"{title}: errors when less is answered  (n = {len(wrong):,})")
    axis.set_xlabel("queries answered (%)")
    axis.set_ylabel("wrong answers among them (%)")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    if reliable is not None:
        _draw_reliability(axes[1], confidences[reliable], correct, reliable)
    return figure


def _draw_reliability(axis, probability, correct, name):
    bins = reliability(probability, correct)
    error = 100 * expected_calibration_error(probability, correct)
    right = np.rint(bins["accuracy"] * bins["count"])
    axis.plot([0, 100], [0, 100], "--", color=GREY, linewidth=1, label="perfectly calibrated")
    style = {"color": COLORS[name], "marker": "o", "label": f"{name}, error {error:.1f} points"}
    high = draw_shares(axis, 100 * bins["probability"], right, bins["count"], **style)
    end = min(102.0, 1.08 * max(high.max(), 100 * bins["probability"].max()))  # as of a weak model
    axis.set(xlim=(0, end), ylim=(0, end), title="Reliability, tenths of the queries")
    axis.set_xlabel("probability that the answer is right (%)")
    axis.set_ylabel("right answers among them (%)")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
