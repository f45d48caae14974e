"""Sections on retrieval: how well a run retrieves, and how several runs differ."""

import dataclasses

import numpy as np

from zoo import metrics, similarities
from zoo.metrics import Estimate, risk_coverage, spearman
from zoo.metrics.statistics import percentage
from zoo.report.section import Number, Section, Table, by_direction
from zoo.report.style import DIRECTION_STYLE, DIRECTIONS, legend_below, new_figure, styled
from zoo.report.uncertainty_quality import rho_of_bins

KS = (1, 5, 10)


def section(run):
    """Recall@1, 5, 10 and R-Precision, each the mean over its queries, beside chance."""
    chance = metrics.chance(run.split.relevance, KS)

    def numbers(direction, words):
        ranks = with_positive(run, direction)
        for k in KS:
            estimate = run.estimate(percentage, ranks.hits(k))
            yield Number(
                f"{words}: Recall@{k}", estimate, "%", chance=chance[f"{direction}_recall@{k}"]
            )
        estimate = run.estimate(percentage, ranks.r_precision)
        yield Number(
            f"{words}: R-Precision", estimate, "%", chance=chance[f"{direction}_r_precision"]
        )

    ranking = similarities.name_of(run.similarity)
    text = (
        f"{run.records.summary()}. Ranked by {ranking}; ties count against the model. Chance is a "
        "random ranking."
    )
    return Section("retrieval", "Retrieval", text, by_direction(numbers))


def comparison_section(runs):
    """A figure and a table of all runs, and their differences from the first of them."""
    found = {
        name: [{side: measure(run, side) for side in DIRECTIONS} for run in runs]
        for name, (measure, _) in MEASURES.items()
    }
    found = {
        name: rows
        for name, rows in found.items()
        if any(estimate for row in rows for estimate in row.values())
    }
    header = ("run", *(f"{name} {words}" for name in found for words in DIRECTIONS.values()))
    rows = tuple(
        (
            run.name,
            *(
                _cell(rows[place][side], MEASURES[name][1])
                for name, rows in found.items()
                for side in DIRECTIONS
            ),
        )
        for place, run in enumerate(runs)
    )
    differences = [number for run in runs[1:] for number in compared(runs[0], run)]
    text = (
        "Points with 95 % bootstrap intervals over the queries. A run without uncertainties is "
        "missing in the panels about them. Differences from the first run are of the same queries, "
        "pair by pair, where both runs have the same; they leave out what another seed would "
        "change."
    )
    if not all(same_queries(runs[0], run) for run in runs[1:]):
        text += " Not all of these runs have the same queries: compare them with care."
    counts = [
        f"{run.name}: "
        + " and ".join(f"{len(with_positive(run, side).best_rank):,}" for side in DIRECTIONS)
        for run in runs
    ]
    text += f" Queries, images and captions: {'; '.join(counts)}."
    figure = comparison_plot([run.name for run in runs], found)
    return Section(
        "comparison",
        "Runs side by side",
        text,
        tuple(differences),
        {"Runs side by side, with 95 % intervals": figure},
        (Table("All runs", header, rows),),
    )


def compared(first, other):
    """`Number`s of how much the other run has more than the first, on the same queries."""
    if not same_queries(first, other):
        return
    for side, words in DIRECTIONS.items():
        for name, of in (
            ("Recall@1", lambda r: r.hits(1)),
            ("R-Precision", lambda r: r.r_precision),
        ):
            columns = [np.asarray(of(with_positive(run, side)), float) for run in (first, other)]
            estimate = first.estimate(_difference, *columns)
            yield Number(
                f"{other.name} minus {first.name}, {words}: {name}", estimate, "points", "+.1f"
            )


def same_queries(first, other):
    """Whether two runs were evaluated on the same images and captions."""
    a, b = first.records, other.records
    return (
        np.array_equal(a.captions, b.captions)
        and np.array_equal(a.image_ids, b.image_ids)
        and np.array_equal(a.image_labels, b.image_labels)
    )


def with_positive(run, side):
    """The `QueryRanks` of the queries that have a positive."""
    ranks = run.ranks[side]
    chosen = {
        field.name: getattr(ranks, field.name)[ranks.has_positive]
        for field in dataclasses.fields(ranks)
    }
    return metrics.QueryRanks(**chosen)


@styled
def comparison_plot(names, measures):
    """One panel a measure, one line a run, both directions; names from the top.

    Measures are a dict by name; for each run a dict by direction of an `Estimate` or None.
    """
    figure = new_figure(2.4 + 2.5 * len(measures), 1.5 + 0.45 * len(names))
    axes = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for axis, (measure, rows) in zip(axes, measures.items(), strict=True):
        for side, offset in zip(DIRECTIONS, (-0.12, 0.12), strict=True):
            place = [i for i, row in enumerate(rows) if _is_number(row[side])]
            if not place:
                continue
            values, low, high = np.array([rows[i][side][:3] for i in place]).T
            axis.errorbar(
                values,
                np.array(place) + offset,
                xerr=np.maximum([values - low, high - values], 0.0),
                linestyle="none",
                capsize=2.5,
                elinewidth=1,
                **DIRECTION_STYLE[side],
            )
        axis.set_title(measure, fontsize=9.5)
        axis.locator_params(axis="x", nbins=5)
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.5, -0.5)
    legend_below(figure, axes[0])
    return figure


def _recall(run, side):
    return run.estimate(percentage, with_positive(run, side).hits(1))


def _r_precision(run, side):
    return run.estimate(percentage, with_positive(run, side).r_precision)


def _rho_of_bins(run, side):
    if run.is_uncertain:
        return run.estimate(rho_of_bins, *run.ranks_and_uncertainty(side))
    return None


def _aurc(run, side):
    """AURC of 1 − Recall@1, in percent."""

    def area(best_rank, uncertainty):
        return 100 * risk_coverage(uncertainty, best_rank > 1)["aurc"]

    return run.estimate(area, *run.ranks_and_uncertainty(side)) if run.is_uncertain else None


def _rho_of_matches(run, side):
    """Spearman's ρ of caption uncertainty and true matches, where they are known."""
    if side != "t2i" or run.true_matches is None or not run.is_uncertain:
        return None
    return run.estimate(spearman, run.split.caption_uncertainty, run.true_matches)


# By title, the function that measures and the format of its number.
MEASURES = {
    "Recall@1 (%)": (_recall, ".1f"),
    "R-Precision (%)": (_r_precision, ".1f"),
    "ρ of bin and Recall@1": (_rho_of_bins, "+.2f"),
    "AURC (%)": (_aurc, ".1f"),
    "ρ of uncertainty and true matches": (_rho_of_matches, "+.2f"),
}


def _difference(first, other):
    """The mean of the other less that of the first, in percentage points."""
    return 100 * (np.mean(other) - np.mean(first))


def _is_number(estimate):
    return isinstance(estimate, Estimate) and np.isfinite(estimate.value)


def _cell(estimate, form):
    return "–" if estimate is None else estimate.text(form)
