"""What uncertainties are worth: recall by bin, risk–coverage, and the true number of matches."""

import numpy as np

from zoo.metrics import QueryRanks, recall_in_bins, risk_coverage, spearman
from zoo.report.ambiguity import uncertainty_against_matches
from zoo.report.reported_run import by_direction
from zoo.report.risk_coverage_plot import risk_coverage_plot
from zoo.report.section import Number, Section
from zoo.report.style import DIRECTIONS
from zoo.report.uncertainty_bins import recall_by_uncertainty_plot

BINS = 10


def recall_section(run):
    """Recall@1 in bins of rising query uncertainty."""
    bins = {side: recall_in_bins(run.ranks[side], run.uncertainty[side]) for side in DIRECTIONS}

    def numbers(direction, words):
        columns = run.asked(direction)
        yield Number(
            f"{words}: Spearman's ρ of bin and Recall@1",
            run.estimate(spearman_of_bins, *columns),
            form="+.2f",
        )
        yield Number(
            f"{words}: Recall@1, most certain tenth minus most uncertain tenth",
            run.estimate(end_to_end, *columns),
            "points",
            "+.1f",
        )
        yield Number(
            f"{words}: Spearman's ρ of uncertainty and rank of the best match, query by query",
            run.estimate(spearman, *columns),
            form="+.2f",
        )

    text = (
        f"Queries in {BINS} bins of equal size by their uncertainty ({run.split.measure}). A model "
        "that knows where it errs has a falling line: ρ near −1. Bars are 95 % Wilson intervals. "
        "A resample asks some queries twice, which blurs the bins: the intervals of their ρ reach "
        "towards 0 and may even leave it out. The ρ query by query has no such bias; it is wanted "
        "above 0."
    )
    figures = {"Recall@1 over bins of query uncertainty": recall_by_uncertainty_plot(**bins)}
    return Section(
        "recall_by_uncertainty",
        "Recall by uncertainty",
        text,
        tuple(by_direction(numbers)),
        figures,
    )


def risk_section(run):
    """Risk–coverage curves and their areas against random and oracle rejection."""
    curves = {}

    def numbers(direction, words):
        best, uncertainty = run.asked(direction)
        error = best > 1
        curves[direction] = risk_coverage(uncertainty, error)
        for name, label in (
            ("aurc", "area under risk–coverage (AURC)"),
            ("random_aurc", "AURC of rejection at random"),
            ("oracle_aurc", "AURC of the oracle"),
        ):

            def area(values, wrong, name=name):
                return 100 * risk_coverage(values, wrong)[name]

            yield Number(f"{words}: {label}", run.estimate(area, uncertainty, error), "%")
        yield Number(
            f"{words}: share of the way from random to oracle",
            run.estimate(gain, uncertainty, error),
            "%",
        )

    found = tuple(by_direction(numbers))
    text = (
        "The error (1 − Recall@1) that is left when the most uncertain queries are not answered. "
        "Rejection at random leaves it as it is; the oracle rejects exactly the errors. Below the "
        "dashed line the uncertainty is of use, above it does harm."
    )
    figures = {"Error over the share of queries answered": risk_coverage_plot(**curves)}
    return Section("risk_coverage", "Risk and coverage", text, found, figures)


def ambiguity_section(run):
    """Caption uncertainty against the number of images that the caption is true of."""
    if run.fits is None:
        return None
    values = run.split.caption_uncertainty
    estimate = run.estimate(spearman, values, run.fits)
    text = (
        "Toy data know how many of the images each caption is true of. A model that has understood "
        "ambiguity is the less certain of a caption, the more images it fits: ρ near +1."
    )
    figure = uncertainty_against_matches(values, run.fits, run.split.measure)
    number = Number(
        "Spearman's ρ of caption uncertainty and true matches", estimate, form="+.2f", of="captions"
    )
    return Section(
        "ambiguity",
        "True ambiguity",
        text,
        (number,),
        {"Uncertainty of captions over the images that they fit": figure},
    )


def spearman_of_bins(best_rank, uncertainty):
    """Spearman's ρ of the bin and its Recall@1; NaN where there are not two bins."""
    recall = _bins(best_rank, uncertainty)
    recall = recall[np.isfinite(recall)]
    return spearman(np.arange(len(recall)), recall) if len(recall) > 1 else float("nan")


def end_to_end(best_rank, uncertainty):
    """Recall@1 of the most certain bin less that of the most uncertain, in percentage points."""
    recall = _bins(best_rank, uncertainty)
    return 100 * (recall[0] - recall[-1])


def gain(uncertainty, error):
    """How much of what an oracle would save by rejecting the uncertainty saves, in percent."""
    curve = risk_coverage(uncertainty, error)
    possible = curve["random_aurc"] - curve["oracle_aurc"]
    if not possible:
        return float("nan")
    return 100 * (curve["random_aurc"] - curve["aurc"]) / possible


def _bins(best_rank, uncertainty):
    nothing = np.zeros(len(best_rank))
    ranks = QueryRanks(np.ones(len(best_rank), int), best_rank, nothing, nothing)
    return recall_in_bins(ranks, uncertainty, bins=BINS)["recall"]
