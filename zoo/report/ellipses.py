"""Gaussian embeddings in the plane, as confidence ellipses, and what lies in them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike
from scipy.stats import chi2

from zoo.embeddings import Embedding
from zoo.embeddings.plane import ellipse_axes, principal_plane
from zoo.report.style import GREY, MARKERS, PALETTE, new_figure, styled


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
    """Ellipses of images (filled) and captions (dashed) in the plane, coloured by class.

    The plane is that of the two main directions of all means; covariances are projected with
    them, so the ellipses are those of the true marginal Gaussians. Fourteen classes have a colour
    and marker of their own; the others are grey. More than a few dozen items cannot be told apart.

    ```python
    images = {"mean": np.random.rand(4, 8), "log_variance": np.zeros((4, 8))}
    figure = confidence_ellipses(images, np.array([0, 0, 1, 1]))
    ```

    Args:
        images: a Gaussian, `{"mean": (n, dim), "log_variance": (n, dim)}`.
        image_labels: `(n,)` classes.
        captions: a Gaussian likewise, or None.
        caption_labels: `(m,)` classes of the captions.
        names: dict from class to its name; without it the class itself.
        confidence: share of each Gaussian that lies in its ellipse.
        plane: a `Plane` to draw in, or None for that of the main directions.
        generic: `(text, Gaussian of one item)`, a caption of no class, drawn black and dotted; or
            None.

    Returns:
        A matplotlib figure.

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


def inside(points, mean, variance, confidence=0.95):
    """Whether points `(…, dim)` lie in the ellipsoid that holds a share of a Gaussian, `(…,)`.

    ```python
    inside(np.array([[0.0, 0.0], [9.0, 0.0]]), 0.0, 1.0)  # [True, False]
    ```
    """
    squared = ((points - mean) ** 2 / variance).sum(axis=-1)
    return squared <= chi2.ppf(confidence, np.shape(points)[-1])


def mass_inside(mean, variance, others, noise, confidence=0.95):
    """The share of a Gaussian that lies in the regions of all the others.

    Others are pairs of a mean and a variance, `(dim,)` each; noise is `(num_samples, dim)`.
    """
    points = mean + np.sqrt(variance) * noise
    return float(np.mean(_in_all(points, others, confidence)))


def area_inside(mean, covariance, others, disc, confidence=0.95):
    """The share of a Gaussian's ellipse in the plane that lies in the ellipses of all the others.

    Others are pairs of a mean `(2,)` and a covariance `(2, 2)`; `disc` is points of the unit disc.
    """
    points = ellipse_points(mean, covariance, disc, confidence)
    return float(np.mean(in_ellipses(points, others, confidence)))


def shared_area_inside(first, second, third, disc, confidence=0.95):
    """The share of the intersection of two ellipses that a third covers; NaN where there is none.

    Each is a pair of a mean and a covariance.
    """
    points = ellipse_points(*first, disc, confidence)
    points = points[in_ellipses(points, [second], confidence)]
    return float(np.mean(in_ellipses(points, [third], confidence))) if len(points) else np.nan


def ellipse_points(mean, covariance, disc, confidence=0.95):
    """The image of points of the unit disc in an ellipse, `(num_samples, 2)`."""
    radius = np.sqrt(chi2.ppf(confidence, 2))
    return mean + radius * disc @ np.linalg.cholesky(covariance).T


def in_ellipses(points, ellipses, confidence=0.95):
    """Whether points of the plane lie in all of some ellipses, booleans `(points,)`."""
    result = np.ones(len(points), bool)
    for mean, covariance in ellipses:
        turned = np.linalg.solve(np.linalg.cholesky(covariance), (points - mean).T).T
        result &= inside(turned, 0.0, 1.0, confidence)
    return result


def unit_disc(generator, num_samples):
    """Points drawn uniformly from the unit disc, `(num_samples, 2)`."""
    radius = np.sqrt(generator.random(num_samples))
    angle = 2 * np.pi * generator.random(num_samples)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _in_all(points, others, confidence):
    result = np.ones(len(points), bool)
    for mean, variance in others:
        result &= inside(points, mean, variance, confidence)
    return result
