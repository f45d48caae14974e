"""The figures of a run's folder, with the curves over its epochs, and those over prompts."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from zoo import similarities
from zoo.evaluation.retrieval import EncodedSplit
from zoo.models import DualEncoder
from zoo.plots import retrieval_sheets, style, uncertainty_plots
from zoo.plots.ellipses import confidence_ellipses, items_of, principal_plane
from zoo.plots.style import GREY, MARKERS, PALETTE, new_figure, styled
from zoo.similarities import by_name
from zoo.training import Run, read_history

_NOT_CURVES = ("phase", "epoch", "seconds")


def draw_run(run: Run, results: dict[str, Any], split: EncodedSplit, model: DualEncoder) -> None:
    """Writes the figures of a finished run into its folder: `draw` of its test split, and the
    curves of training. For `report=` of `zoo.training.finish`."""
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
    """Writes the figures of an evaluated split as PNG into `folder`, a `Path`, and returns their
    names: retrieval sheets, and figures of its uncertainties.

    Args:
        results, split: of `zoo.evaluation.evaluate`, and its `EncodedSplit`.
        model: the `DualEncoder`.
        picture: function from an image's index to its pixels `(height, width, 3)`, 0 … 255; None,
            for features, draws no sheets.
        true_matches: `(M,)`, the number of images that each caption is true of, or None.
    """
    figures = {}
    if picture is not None:
        similarity = _ranking(next(iter(results["retrieval"])), model)
        figures |= _sheets(split, split.pairs(similarity).in_memory(), picture)
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
    similarity = model.similarity
    name = by_name.current_name(name) or name  # of a run that is older than its name
    return similarity if similarities.name_of(similarity) == name else similarities.get(name, model)


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
    """int (rows,): positions of evenly spaced quantiles of the values, or of all items without
    values."""
    order = np.arange(count) if values is None else np.argsort(values, kind="stable")
    return order[np.linspace(0, count - 1, rows).round().astype(int)]


@styled
def training_curves(history: Mapping[str, Sequence]) -> Figure:
    """A panel for every value of a history, as `zoo.training.read_history` or Keras give it, over
    the epochs; `val_NAME` is drawn with `NAME`. A ValueError if it has no values.

    ```python
    figure = training_curves({"loss": [2.0, 1.5, 1.2], "val_loss": [2.1, 1.7, 1.6]})
    ```
    """
    names = [n for n in history if n not in _NOT_CURVES and len(history[n])]
    panels = list(dict.fromkeys(name.removeprefix("val_") for name in names))
    if not panels:
        raise ValueError(f"`history` must hold curves; received the columns {list(history)}")
    figure = new_figure(5.6, 1.8 * len(panels) + 0.4)
    axes = figure.subplots(len(panels), squeeze=False, sharex=True)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        for name, line, label in ((panel, "-", "training"), (f"val_{panel}", "--", "validation")):
            if name in names:
                epochs = np.arange(1, len(history[name]) + 1)
                axis.plot(epochs, history[name], line, marker=".", label=label)
        axis.set_title(panel.replace("_", " "))
        axis.legend()
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    axes[-1].set_xlabel("epoch, over all phases")
    return figure


@styled
def prompts_plot(accuracy, best_of_class):
    """Accuracy, top-1 in percent `(prompts,)`, with the K most certain prompts of every class, and
    the best K of each class, `(classes,)`.

    ```python
    figure = prompts_plot([8.0, 9.5, 9.3], [1, 3, 3, 2])
    ```

    Reference: PCME++ (Chun, ICLR 2024), figure C.1.
    """
    prompts = len(accuracy)
    figure = new_figure(9.0, 3.4)
    same, classes = figure.subplots(1, 2)
    best = int(np.argmax(accuracy))
    same.plot(np.arange(1, prompts + 1), accuracy, color=PALETTE[0])
    same.plot(best + 1, accuracy[best], marker=MARKERS[0], color=PALETTE[0])
    same.axhline(accuracy[-1], color=GREY, linestyle="--", label="all prompts")
    same.set(title=f"The same K: best {best + 1}", xlabel="K most certain prompts")
    same.set_ylabel("top-1 (%)")
    same.legend()
    classes.hist(best_of_class, bins=np.arange(0.5, prompts + 1), color=PALETTE[1])
    classes.set(title="Each class by its best K", xlabel="K", ylabel="classes")
    return figure
