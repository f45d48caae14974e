"""Several runs side by side, and how they differ on the same queries."""

import numpy as np

from zoo.metrics import risk_coverage, spearman
from zoo.report.bootstrap import Estimate, percent
from zoo.report.section import Number, Section, Table
from zoo.report.style import DIRECTION_STYLE, DIRECTIONS, new_figure, styled
from zoo.report.worth_sections import spearman_of_bins

MEASURES = {
    "Recall@1 (%)": lambda run, side: run.estimate(percent, asked(run, side).hits(1)),
    "R-Precision (%)": lambda run, side: run.estimate(percent, asked(run, side).r_precision),
    "ρ of bin and Recall@1": lambda run, side: uncertain(run, side, spearman_of_bins),
    "AURC (%)": lambda run, side: uncertain(run, side, area),
    "ρ of uncertainty and true matches": lambda run, side: ambiguity(run, side),
}
FORMS = {"ρ of bin and Recall@1": "+.2f", "ρ of uncertainty and true matches": "+.2f"}


def section(runs):
    """A figure and a table of all runs, and their differences from the first of them."""
    found = {
        name: [{side: measure(run, side) for side in DIRECTIONS} for run in runs]
        for name, measure in MEASURES.items()
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
                _cell(rows[place][side], FORMS.get(name, ".1f"))
                for name, rows in found.items()
                for side in DIRECTIONS
            ),
        )
        for place, run in enumerate(runs)
    )
    differences = [number for run in runs[1:] for number in compared(runs[0], run)]
    text = (
        "Points with 95 % bootstrap intervals over the queries. A run without uncertainties has no "
        "place in the panels about them. Differences from the first run are of the same queries, "
        "pair by pair, where both runs were asked the same; they leave out what another seed would "
        "change."
    )
    same = [same_queries(runs[0], run) for run in runs[1:]]
    if not all(same):
        text += " Not all of these runs were asked the same queries: compare them with care."
    counts = [
        f"{run.name}: {len(asked(run, 'i2t').best_rank):,} and {len(asked(run, 't2i').best_rank):,}"
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
            columns = [np.asarray(of(asked(run, side)), float) for run in (first, other)]
            estimate = first.estimate(difference, *columns)
            yield Number(
                f"{other.name} minus {first.name}, {words}: {name}", estimate, "points", "+.1f"
            )


def difference(first, other):
    """The mean of the other less that of the first, in percentage points."""
    return 100 * (np.mean(other) - np.mean(first))


def same_queries(first, other):
    """Whether two runs were evaluated on the same images and captions."""
    a, b = first.records, other.records
    return (
        np.array_equal(a.captions, b.captions)
        and np.array_equal(a.image_ids, b.image_ids)
        and np.array_equal(a.image_labels, b.image_labels)
    )


def asked(run, side):
    """The `QueryRanks` of the queries that have a positive."""
    ranks = run.ranks[side]
    there = ranks.has_positive
    return type(ranks)(
        ranks.num_positives[there],
        ranks.best_rank[there],
        ranks.r_precision[there],
        ranks.average_precision_at_r[there],
    )


def uncertain(run, side, statistic):
    """An estimate of the best ranks and uncertainties, or None for points."""
    return run.estimate(statistic, *run.asked(side)) if run.is_uncertain else None


def area(best_rank, uncertainty):
    """AURC of 1 − Recall@1, in percent."""
    return 100 * risk_coverage(uncertainty, best_rank > 1)["aurc"]


def ambiguity(run, side):
    """Spearman's ρ of caption uncertainty and true matches, where they are known."""
    if side != "t2i" or run.fits is None or not run.is_uncertain:
        return None
    return run.estimate(spearman, run.split.caption_uncertainty, run.fits)


@styled
def comparison_plot(names, measures):
    """One panel a measure, one line a run, both directions.

    Args:
        names: of the runs, from the top.
        measures: by name, for each run a dict by direction of an `Estimate` or None.

    Returns:
        A matplotlib figure.
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
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _is_number(estimate):
    return isinstance(estimate, Estimate) and np.isfinite(estimate.value)


def _cell(estimate, form):
    return "–" if estimate is None else estimate.text(form)
