"""Sections on the quality of uncertainties: where the model errs, and what is ambiguous."""

import numpy as np

from zoo.metrics import (
    QueryRanks,
    recall_in_bins,
    risk_coverage,
    spearman,
    spearman_of_bins,
    uncertainty_verdict,
)
from zoo.metrics.statistics import percentage
from zoo.report import retrieval_sheets
from zoo.report.section import Number, Section, Table, by_direction
from zoo.report.style import DIRECTIONS
from zoo.report.uncertainty_plots import (
    recall_by_uncertainty_plot,
    risk_coverage_plot,
    uncertainty_against_matches,
)

BINS = 10
EACH = 3  # queries at each end


def recall_section(run):
    """Recall@1 in bins of rising query uncertainty."""
    bins = {side: recall_in_bins(run.ranks[side], run.uncertainty[side]) for side in DIRECTIONS}

    def numbers(direction, words):
        columns = run.ranks_and_uncertainty(direction)
        yield Number(
            f"{words}: Spearman's ρ of bin and Recall@1",
            run.estimate(rho_of_bins, *columns),
            form="+.2f",
        )
        yield Number(
            f"{words}: Recall@1, most certain tenth minus most uncertain tenth",
            run.estimate(recall_gap, *columns),
            "points",
            "+.1f",
        )
        yield Number(
            f"{words}: Spearman's ρ of uncertainty and rank of the best match, query by query",
            run.estimate(spearman, *columns),
            form="+.2f",
        )

    text = (
        f"Queries in {BINS} bins of equal size by their uncertainty ({run.split.measure}). The "
        "line of an informative uncertainty falls: ρ near −1. Bars are 95 % Wilson intervals. "
        "A resample holds some queries twice, which blurs the bins: the intervals of their ρ reach "
        "towards 0 and may even leave it out. The ρ query by query has no such bias; it should be "
        "above 0."
    )
    figures = {"Recall@1 over bins of query uncertainty": recall_by_uncertainty_plot(**bins)}
    title = "Recall by uncertainty"
    return Section("recall_by_uncertainty", title, text, by_direction(numbers), figures)


def risk_section(run):
    """Risk–coverage curves, their areas against random and oracle rejection, and a verdict."""
    curves, verdicts = {}, []

    def numbers(direction, words):
        best, uncertainty = run.ranks_and_uncertainty(direction)
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
        verdict = uncertainty_verdict(uncertainty, error, resamples=run.resamples, seed=run.seed)
        verdicts.append(f"{words}: {verdict.sentence}")
        yield Number(
            f"{words}: share of the way from random to oracle", verdict.gain.scaled(100), "%"
        )

    found = by_direction(numbers)
    text = (
        "The curves are the error (1 − Recall@1) that is left when the most uncertain queries are "
        "rejected. Rejection at random leaves it as it is; the oracle rejects exactly the errors. "
        "A useful uncertainty lies below the dashed line."
    )
    figures = {"Error over the share of queries answered": risk_coverage_plot(**curves)}
    return Section(
        "risk_coverage",
        "Risk and coverage",
        text,
        found,
        figures,
        verdicts=tuple(verdicts),
    )


def ambiguity_section(run):
    """Caption uncertainty against the number of images that the caption is true of."""
    if run.true_matches is None:
        return None
    values = run.split.caption_uncertainty
    estimate = run.estimate(spearman, values, run.true_matches)
    text = (
        "Toy data know how many of the images each caption is true of. A caption that is true of "
        "more images should be more uncertain: ρ near +1."
    )
    figure = uncertainty_against_matches(values, run.true_matches, run.split.measure)
    label = "Spearman's ρ of caption uncertainty and true matches"
    return Section(
        "ambiguity",
        "True ambiguity",
        text,
        (Number(label, estimate, form="+.2f", of="captions"),),
        {"Uncertainty of captions over the images that they are true of": figure},
    )


def extremes_section(run):
    """Sheets of the most and the least certain queries; without pictures, a table of captions."""

    def numbers(direction, words):
        hits = run.ranks[direction].hits(1)
        for name, chosen in zip(("most", "least"), tenths(run.uncertainty[direction]), strict=True):
            label = f"{words}: Recall@1 of the {name} certain tenth"
            yield Number(label, run.estimate(percentage, hits[chosen]), "%")

    ends = {side: extremes(values) for side, values in run.uncertainty.items()}
    text = (
        f"The {EACH} most certain queries, then the {EACH} least certain ones, each with its "
        f"{retrieval_sheets.TOP} best answers."
    )
    figures, tables = {}, ()
    if run.picture is None:
        text += " There are no pictures: this run reads features."
        tables = (_table_of_captions(run, ends["t2i"]),)
    else:
        of_run = run.split, run.pairs, run.picture
        figures = {
            "The most and the least certain captions with the images they retrieve": (
                retrieval_sheets.sheet_of_captions(*of_run, ends["t2i"])
            ),
            "The most and the least certain images with the captions they retrieve": (
                retrieval_sheets.sheet_of_images(*of_run, ends["i2t"])
            ),
        }
    title = "Most and least certain"
    return Section("extremes", title, text, by_direction(numbers), figures, tables)


def extremes(values, each=EACH):
    """Indices of the lowest, then of the highest values, the highest last."""
    order = np.argsort(values, kind="stable")
    each = min(each, len(order) // 2)
    return np.concatenate([order[:each], order[len(order) - each :]])


def tenths(values):
    """Indices of the lowest and of the highest tenth, one item at least."""
    order = np.argsort(values, kind="stable")
    count = max(1, len(order) // 10)
    return order[:count], order[-count:]


def _table_of_captions(run, queries):
    ranks = run.ranks["t2i"].best_rank
    values = run.split.caption_uncertainty
    rows = tuple(
        (str(run.records.captions[query]), f"{values[query]:.3g}", f"{ranks[query]:,}")
        for query in queries
    )
    return Table("Captions", ("caption", f"uncertainty, {run.split.measure}", "rank"), rows)


def rho_of_bins(best_rank, uncertainty):
    """Spearman's ρ of the bin and its Recall@1."""
    return spearman_of_bins(_recall_of_bins(best_rank, uncertainty))


def recall_gap(best_rank, uncertainty):
    """Recall@1 of the most certain bin less that of the most uncertain, in percentage points."""
    recall = _recall_of_bins(best_rank, uncertainty)
    return 100 * (recall[0] - recall[-1])


def _recall_of_bins(best_rank, uncertainty):
    nothing = np.zeros(len(best_rank))
    ranks = QueryRanks(np.ones(len(best_rank), int), best_rank, nothing, nothing)
    return recall_in_bins(ranks, uncertainty, bins=BINS)["recall"]
