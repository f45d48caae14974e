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
_COLUMNS = 3


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
    """Writes the figures of an evaluated split as PNG: retrieval sheets, and of its uncertainties.
    Returns their names.

    Args:
        folder: a `Path`.
        results: of `zoo.evaluation.evaluate`.
        split: the `EncodedSplit` that was evaluated.
        model: the `DualEncoder`.
        picture: function from an image's index to its pixels `(height, width, 3)`, 0 … 255; None,
            for features, draws no sheets.
        true_matches: `(M,)`, the number of images that each caption is true of, or None.
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


@styled
def training_curves(history: Mapping[str, Sequence]) -> Figure:
    """One panel for every logged value, over the epochs of all phases.

    ```python
    figure = training_curves({"loss": [2.0, 1.5, 1.2], "val_loss": [2.1, 1.7, 1.6]})
    ```

    Args:
        history: columns of one length (none is a ValueError), as
            `zoo.training.resume.read_history` or Keras' `History.history` give them. `val_NAME` is
            drawn with `NAME`. A column `phase` sets the phases apart and names them.
    """
    names = [n for n in history if n not in _NOT_CURVES and len(history[n])]
    panels = [n for n in names if not (n.startswith("val_") and n[4:] in names)]
    if not panels:
        raise ValueError(f"`history` must hold curves; received the columns {list(history)}")
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(3.7 * columns, 2.5 * rows + 0.2)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    epochs = np.arange(1, len(history[panels[0]]) + 1)
    for axis, name in zip(axes.flat, panels, strict=False):
        validated = f"val_{name}" in names
        _curve(axis, epochs, history[name], PALETTE[0], "-", "training")
        if validated:
            _curve(axis, epochs, history[f"val_{name}"], PALETTE[1], "--", "validation")
            axis.legend()
        axis.set_title(name.removeprefix("val_").replace("_", " "))
        _scale(axis, history[name])
        axis.margins(x=0.02)
        axis.xaxis.get_major_locator().set_params(integer=True)
        _phases(axis, history.get("phase"))
    for position, axis in enumerate(axes.flat):
        if position >= len(panels):
            axis.set_visible(False)
        elif position + columns >= len(panels):
            axis.set_xlabel("epoch")
            axis.tick_params(labelbottom=True)  # the row below may have no panel here
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


def _curve(axis, epochs, values, color, line, label):
    values = np.asarray(values, float)
    few = np.isfinite(values).sum() <= 30
    axis.plot(
        epochs, values, line, color=color, label=label, marker="o" if few else None, markersize=3.5
    )


def _scale(axis, values):
    """Logarithmic where phases have losses of other sizes, such as sums and single hinges."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if len(values) and 0 < 30 * values.min() < values.max():
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _phases(axis, phases):
    if phases is None:
        return
    starts = [i for i in range(1, len(phases)) if phases[i] != phases[i - 1]]
    if not starts:
        return
    for start in starts:
        axis.axvline(start + 0.5, color=GREY, linewidth=1, linestyle=":")
    for start in (0, *starts):
        axis.annotate(
            str(phases[start]).replace("_", " "),
            (start + (0.5 if start else 1), 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color="#5A5A5A",
        )
    # The names of the phases need room above the curves.
    low, high = axis.get_ylim()
    if axis.get_yscale() == "log":
        axis.set_ylim(low, high * (high / low) ** 0.15)
    else:
        axis.set_ylim(low, high + 0.15 * (high - low))
