"""The figures of a run: what an evaluated split looks like."""

import numpy as np

from zoo import similarities
from zoo.report import ellipses, retrieval_sheet, style, uncertainty_bins
from zoo.report.ambiguity import uncertainty_against_matches
from zoo.report.risk_coverage_plot import risk_coverage_plot


def draw(folder, results, split, model, picture, matches=None):
    """Writes the figures of a run as PNG: retrieval sheets, and what its uncertainties are worth.

    Args:
        folder: where to.
        results: of `evaluate`.
        split: the `EncodedSplit` it came from.
        model: the `DualEncoder`.
        picture: from an image's index to its pixels `(height, width, 3)`, 0 … 255; None, where
            there are only features, draws no sheets.
        matches: `(M,)` true number of images that each caption fits, where it is known.
    """
    if picture is not None:
        similarity = _ranking(next(iter(results["retrieval"])), model)
        for name, figure in _sheets(split, similarity, picture).items():
            style.save(figure, folder / f"{name}.png")
    if "uncertainty" not in results:
        return
    worth = results["uncertainty"]
    bins = {side: worth[side]["recall_by_uncertainty"] for side in worth}
    curves = {side: worth[side]["risk_coverage"] for side in worth}
    figures = {
        "recall_by_uncertainty": uncertainty_bins.recall_by_uncertainty_plot(**bins),
        "risk_coverage": risk_coverage_plot(**curves),
    }
    if "log_variance" in split.images:
        figures["confidence_ellipses"] = _ellipses(split)
    if matches is not None:
        figures["ambiguity"] = uncertainty_against_matches(
            split.caption_uncertainty, matches, split.measure
        )
    for name, figure in figures.items():
        style.save(figure, folder / f"{name}.png")


def _ranking(name, model):
    """The similarity that results go by."""
    own = model.similarity
    name = similarities.current_name(name) or name  # of a run that is older than its name
    return own if similarities.name_of(own) == name else similarities.get(name, model)


def _ellipses(split, classes=5, items=4):
    """A few images and captions of a few classes, in the plane of all images' means."""
    records = split.records
    shown = np.unique(records.image_labels)[:classes]

    def first(labels):
        return np.concatenate([np.flatnonzero(labels == label)[:items] for label in shown])

    images, captions = first(records.image_labels), first(records.caption_labels)
    names = None
    if records.class_names is not None:
        names = {i: records.class_names[i].split(".")[-1].replace("_", " ") for i in shown}
    return ellipses.confidence_ellipses(
        {key: np.asarray(value)[images] for key, value in split.images.items()},
        records.image_labels[images],
        {key: np.asarray(value)[captions] for key, value in split.captions.items()},
        records.caption_labels[captions],
        names=names,
        plane=ellipses.principal_plane(split.images["mean"]),
    )


def _sheets(split, similarity, picture, rows=6, top=5):
    """Queries from the most certain to the most uncertain, each with what it retrieves."""
    records = split.records
    pairs = split.pairs(similarity).kept()
    queries = _spread(split.caption_uncertainty, records.num_captions, rows)
    found, scores = _best(pairs.transposed(), queries, top)
    certain = split.image_uncertainty is not None
    sheets = {
        "text_to_image": retrieval_sheet.text_to_image_sheet(
            [records.captions[query] for query in queries],
            [[picture(image) for image in row] for row in found],
            records.image_labels[found] == records.caption_labels[queries][:, None],
            split.caption_uncertainty[queries] if certain else None,
            split.image_uncertainty[found] if certain else None,
            scores,
        )
    }
    queries = _spread(split.image_uncertainty, records.num_images, rows)
    found, scores = _best(pairs, queries, top)
    sheets["image_to_text"] = retrieval_sheet.image_to_text_sheet(
        [picture(query) for query in queries],
        [[records.captions[caption] for caption in row] for row in found],
        records.caption_labels[found] == records.image_labels[queries][:, None],
        split.image_uncertainty[queries] if certain else None,
        split.caption_uncertainty[found] if certain else None,
        scores,
    )
    return sheets


def _spread(values, count, rows):
    order = np.arange(count) if values is None else np.argsort(values, kind="stable")
    return order[np.linspace(0, count - 1, rows).round().astype(int)]


def _best(pairs, queries, top):
    scores = np.concatenate([pairs.rows(query, query + 1) for query in queries])
    found = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return found, np.take_along_axis(scores, found, axis=1)
