"""Gaussian embeddings in the plane, as confidence ellipses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike

from halo_search.embeddings.arrays import ellipse_axes, principal_plane
from zoo.embeddings import Embedding
from zoo.plots.style import GREY, MARKERS, PALETTE, new_figure, styled


@styled
def confidence_ellipses(
    images: Embedding,
    image_labels: ArrayLike,
    captions: Embedding | None = None,
    caption_labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    plane: Any = None,
    generic: Any = None,
) -> Figure:
    """Ellipses of images (filled) and captions (dashed) in a plane, coloured by class.

    They are those of the true marginal Gaussians. Fourteen classes have a colour and marker of
    their own; the others are grey.

    ```python
    images = {"mean": np.random.rand(4, 8), "log_variance": np.zeros((4, 8))}
    figure = confidence_ellipses(images, np.array([0, 0, 1, 1]))
    ```

    Args:
        images, captions: Gaussians, `{"mean": (n, dim), "log_variance": (n, dim)}`.
        image_labels, caption_labels: `(n,)` classes.
        names: dict from class to its name; without it the class itself.
        confidence: share of each Gaussian that lies in its ellipse.
        plane: a `Plane`, or None for that of the two main directions of all means.
        generic: `(text, Gaussian of one item)`, a caption of no class, drawn black; or None.

    Reference: PCME (Chun et al., CVPR 2021) figure 5.
    """
    groups = [(images, np.asarray(image_labels), True)]
    if captions is not None:
        groups.append((captions, np.asarray(caption_labels), False))
    if plane is None:
        plane = principal_plane(np.concatenate([np.asarray(g["mean"]) for g, _, _ in groups]))
    classes = list(dict.fromkeys(label for _, labels, _ in groups for label in labels.tolist()))
    figure = new_figure(6.4, 5.0)
    axis = figure.subplots()
    for embedding, labels, filled in groups:
        mean, covariance = plane.project(embedding["mean"], embedding["log_variance"])
        for i, label in enumerate(labels.tolist()):
            look = _look(classes.index(label))
            line = "-" if filled else (0, (4, 2))
            draw_gaussian(axis, mean[i], covariance[i], *look, line, filled, confidence)
    if generic is not None:
        mean, covariance = plane.project(generic[1]["mean"], generic[1]["log_variance"])
        draw_gaussian(axis, mean[0], covariance[0], "black", "*", ":", False, confidence, 2.0)
    axis.set_aspect("equal", adjustable="datalim")
    name_axes(axis, plane)
    axis.set_title(f"{100 * confidence:g} % confidence ellipses")
    entries = _legend(axis, classes, names or {}, captions is not None, generic and generic[0])
    # As low as what is drawn, so that a flat plane is not mostly empty.
    drawn = axis.dataLim
    needed = (4.4 * drawn.height / max(drawn.width, 1e-12) + 1.2, 0.25 * entries + 0.8)
    figure.set_figheight(float(np.clip(max(needed), 3.0, 5.0)))
    return figure


def items_of(split, labels, each):
    """Arguments of `confidence_ellipses`: the first images and captions, `each` of both, of some
    labels of an `EncodedSplit`, and the labels' names."""
    records = split.records

    def first(of):
        return np.concatenate([np.flatnonzero(of == label)[:each] for label in labels])

    images, captions = first(records.image_labels), first(records.caption_labels)
    if records.class_names is None:
        place = {label: np.argmax(records.image_labels == label) for label in labels}
        names = {label: f"image {records.image_ids[at]}" for label, at in place.items()}
    else:
        name_of_label = {label: records.class_names[label].split(".")[-1] for label in labels}
        names = {label: name.replace("_", " ") for label, name in name_of_label.items()}
    return (
        {key: np.asarray(value)[images] for key, value in split.images.items()},
        records.image_labels[images],
        {key: np.asarray(value)[captions] for key, value in split.captions.items()},
        records.caption_labels[captions],
        names,
    )


def draw_gaussian(
    axis, mean, covariance, color, marker, line="-", filled=False, confidence=0.95, width=1.2
):
    """Draws one Gaussian of the plane: its mean, and the ellipse that holds its share."""
    (full,), (height,), (angle,) = ellipse_axes(covariance[None], confidence)
    axis.add_patch(
        Ellipse(
            mean,
            full,
            height,
            angle=angle,
            facecolor=(color, 0.10) if filled else "none",
            edgecolor=(color, 0.8),
            linewidth=width,
            linestyle=line,
        )
    )
    axis.plot(
        *mean,
        marker,
        color=color,
        markersize=5 if marker != "*" else 9,
        markerfacecolor=color if filled else "white",
        markeredgewidth=1,
    )
    reach = np.sqrt(np.diag(covariance)) * np.sqrt(-2.0 * np.log1p(-confidence))
    axis.update_datalim([mean - reach, mean + reach])
    axis.autoscale_view()


def name_axes(axis, plane):
    """Labels the axes with the dimensions of a `Plane`."""
    for number, name in enumerate(("x", "y")):
        label = f"dimension {number + 1}"
        if plane.explained is not None:
            share = 100 * plane.explained[number]
            label = f"principal axis {number + 1}  ({share:.0f} % of the variance of the means)"
        getattr(axis, f"set_{name}label")(label)


def _look(position):
    """Colour and marker of a class: seven pairs, then seven others of the same colours."""
    turn, place = divmod(position, len(PALETTE))
    if turn < 2:
        return PALETTE[place], MARKERS[(place + turn) % len(MARKERS)]
    return GREY, "."


def _legend(axis, classes, names, with_captions, generic):
    """Draws the legend beside an axis, and returns its number of entries."""
    handles = []
    known = 2 * len(PALETTE)
    for position, label in enumerate(classes[:known]):
        color, marker = _look(position)
        name = str(names.get(label, label))
        handles.append(Line2D([], [], color=color, marker=marker, linestyle="none", label=name))
    if len(classes) > known:
        rest = f"{len(classes) - known} more classes"
        handles.append(Line2D([], [], color=GREY, marker=".", linestyle="none", label=rest))
    if with_captions:
        handles.append(Line2D([], [], color="black", linewidth=1.2, label="image"))
        handles.append(
            Line2D([], [], color="black", linewidth=1.2, linestyle=(0, (4, 2)), label="caption")
        )
    if generic:
        handles.append(
            Line2D([], [], color="black", linewidth=2, linestyle=":", marker="*", label=generic)
        )
    axis.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return len(handles)
