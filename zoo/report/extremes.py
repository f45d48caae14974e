"""The most and the least certain items, with what they retrieve."""

import numpy as np

from zoo.report.bootstrap import percent
from zoo.report.reported_run import by_direction
from zoo.report.retrieval_sheet import image_to_text_sheet, text_to_image_sheet
from zoo.report.section import Number, Section, Table

EACH, TOP = 3, 5


def section(run):
    """Sheets of the extremes; where there are no pictures, a table of captions."""
    ends = {side: extremes(values) for side, values in run.uncertainty.items()}

    def numbers(direction, words):
        hits = run.ranks[direction].hits(1)
        for name, chosen in zip(("most", "least"), tenths(run.uncertainty[direction]), strict=True):
            label = f"{words}: Recall@1 of the {name} certain tenth"
            yield Number(label, run.estimate(percent, hits[chosen]), "%")

    text = (
        f"The {EACH} most certain queries, then the {EACH} least certain ones, each with its "
        f"{TOP} best answers."
    )
    if run.picture is None:
        text += " There are no pictures: this run reads features."
        return Section(
            "extremes",
            "Most and least certain",
            text,
            tuple(by_direction(numbers)),
            tables=(_table(run, ends["t2i"]),),
        )
    figures = {
        "The most and the least certain captions with the images they retrieve": _captions(
            run, ends["t2i"]
        ),
        "The most and the least certain images with the captions they retrieve": _images(
            run, ends["i2t"]
        ),
    }
    return Section(
        "extremes", "Most and least certain", text, tuple(by_direction(numbers)), figures
    )


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


def best(pairs, queries, top=TOP):
    """The best answers of some queries and their similarities, `(queries, top)` each."""
    scores = np.concatenate([pairs.rows(query, query + 1) for query in queries])
    found = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return found, np.take_along_axis(scores, found, axis=1)


def _captions(run, queries):
    records = run.records
    found, scores = best(run.pairs.transposed(), queries)
    return text_to_image_sheet(
        [records.captions[query] for query in queries],
        [[run.picture(image) for image in row] for row in found],
        records.image_labels[found] == records.caption_labels[queries][:, None],
        run.split.caption_uncertainty[queries],
        run.split.image_uncertainty[found],
        scores,
    )


def _images(run, queries):
    records = run.records
    found, scores = best(run.pairs, queries)
    return image_to_text_sheet(
        [run.picture(query) for query in queries],
        [[records.captions[caption] for caption in row] for row in found],
        records.caption_labels[found] == records.image_labels[queries][:, None],
        run.split.image_uncertainty[queries],
        run.split.caption_uncertainty[found],
        scores,
    )


def _table(run, queries):
    ranks = run.ranks["t2i"].best_rank
    values = run.split.caption_uncertainty
    rows = tuple(
        (str(run.records.captions[query]), f"{values[query]:.3g}", f"{ranks[query]:,}")
        for query in queries
    )
    return Table("Captions", ("caption", f"uncertainty, {run.split.measure}", "rank"), rows)
