"""The figures of a run's folder."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from zoo import similarities
from zoo.evaluation.retrieval import EncodedSplit
from zoo.models import DualEncoder
from zoo.plots import retrieval_sheets, style, uncertainty_plots
from zoo.plots.curves import training_curves
from zoo.plots.ellipses import confidence_ellipses, items_of, principal_plane
from zoo.similarities import by_name
from zoo.training import Run, read_history


def draw_run(run: Run, results: dict[str, Any], split: EncodedSplit, model: DualEncoder) -> None:
    """Writes the figures of a finished run into its folder: `draw`, and the curves of training.

    For `report=` of `zoo.training.finish`.

    Args:
        run: whose test split was evaluated.
        results, split, model: see `draw`.
    """
    folder, test = run.folder.plots, run.test
    draw(folder, results, split, model, test.picture, test.true_matches)
    if run.folder.history_path.exists():  # not where nothing is trained
        curves = training_curves(read_history(run.folder.history_path))
        style.save(curves, folder / "training_curves.png")


def draw(
    folder: str | os.PathLike,
    results: dict[str, Any],
    split: EncodedSplit,
    model: DualEncoder,
    picture: Callable | None,
    true_matches: np.ndarray | None = None,
) -> list[str]:
    """Writes the figures of an evaluated split as PNG: retrieval sheets, and of its uncertainties.

    Args:
        folder: a `Path`.
        results: of `zoo.evaluation.evaluate`.
        split: the `EncodedSplit` that was evaluated.
        model: the `DualEncoder`.
        picture: function from an image's index to its pixels `(height, width, 3)`, 0 … 255; None,
            for features, draws no sheets.
        true_matches: `(M,)`, the number of images that each caption is true of, or None.

    Returns:
        The names of the figures.
    """
    figures = {}
    if picture is not None:
        similarity = _ranking(next(iter(results["retrieval"])), model)
        figures |= _sheets(split, split.pairs(similarity).kept(), picture)
    if "uncertainty" in results:
        quality = results["uncertainty"]
        bins = {side: quality[side]["recall_by_uncertainty"] for side in quality}
        curves = {side: quality[side]["risk_coverage"] for side in quality}
        if len(quality) == 2:  # not where captions alone have an uncertainty
            draw_bins = uncertainty_plots.recall_by_uncertainty_plot
            figures["recall_by_uncertainty"] = draw_bins(**bins)
            figures["risk_coverage"] = uncertainty_plots.risk_coverage_plot(**curves)
        if "log_variance" in split.images:
            labels = np.unique(split.records.image_labels)[:5]
            plane = principal_plane(split.images["mean"])
            figures["confidence_ellipses"] = confidence_ellipses(
                *items_of(split, labels, each=4), plane=plane
            )
        if true_matches is not None:
            figures["ambiguity"] = uncertainty_plots.uncertainty_against_matches(
                split.caption_uncertainty, true_matches, split.measure
            )
    for name, figure in figures.items():
        style.save(figure, folder / f"{name}.png")
    return list(figures)


def _ranking(name, model):
    """The similarity with this name in the results."""
    own = model.similarity
    name = by_name.current_name(name) or name  # of a run that is older than its name
    return own if similarities.name_of(own) == name else similarities.get(name, model)


def _sheets(split, pairs, picture, rows=6):
    """Queries from the most certain to the most uncertain, with their best answers."""
    records = split.records
    captions = _spread(split.caption_uncertainty, records.num_captions, rows)
    images = _spread(split.image_uncertainty, records.num_images, rows)
    return {
        "text_to_image": retrieval_sheets.sheet_of_captions(split, pairs, picture, captions),
        "image_to_text": retrieval_sheets.sheet_of_images(split, pairs, picture, images),
    }


def _spread(values, count, rows):
    order = np.arange(count) if values is None else np.argsort(values, kind="stable")
    return order[np.linspace(0, count - 1, rows).round().astype(int)]
