"""Sections on the shape of Gaussians: ellipses in the plane, and how isotropic σ is."""

import numpy as np

from zoo.metrics.statistics import percentage
from zoo.report.ellipses import confidence_ellipses, in_ellipses, principal_plane
from zoo.report.section import Number, Section
from zoo.report.style import PALETTE, new_figure, styled

CLASSES, ITEMS = 9, 3
_BLOCK, _SHOWN = 1024, 2000
SIDES = {"images": ("images", PALETTE[0], "-"), "captions": ("captions", PALETTE[1], "--")}


def ellipses_section(run):
    """Ellipses of a few classes and of a caption that is true of every image."""
    if not run.is_gaussian:
        return None
    plane = principal_plane(run.split.images["mean"])
    generic = None
    numbers = ()
    if run.model is not None and run.model.tokenizer is not None:
        embedding = run.model.tower("captions").of_texts([run.generic])
        generic = (f"“{run.generic}”", embedding)
        numbers = generic_numbers(run, plane, generic[1])
    dim = run.split.images["mean"].shape[1]
    where = (
        "The space itself has two dimensions."
        if dim == 2
        else f"The plane is that of the two main directions of the {dim}-dimensional means."
    )
    text = (
        f"Some images and captions of up to {CLASSES} labels as 95 % ellipses. {where} The ellipse "
        "of a caption that is true of every image should include them all."
    )
    labels = np.unique(run.records.image_labels)
    count = min(CLASSES, len(labels))
    shown = labels[np.linspace(0, len(labels) - 1, count).round().astype(int)]
    figure = confidence_ellipses(*items_of(run.split, shown, ITEMS), plane=plane, generic=generic)
    figures = {"95 % confidence ellipses of images (solid) and captions (dashed)": figure}
    return Section("ellipses", "In the plane", text, numbers, figures)


def generic_numbers(run, plane, generic):
    """The generic caption's uncertainty, and the share of images that its ellipse includes."""
    size = np.asarray(run.split.captions["log_variance"]).sum(axis=1, dtype=float)
    own = float(np.asarray(generic["log_variance"], float).sum())
    caption = [pair[0] for pair in plane.project(generic["mean"], generic["log_variance"])]
    means, _ = plane.project(run.split.images["mean"], run.split.images["log_variance"])
    chosen = run.choose(run.records.num_captions)
    log_variance = np.asarray(run.split.captions["log_variance"])[chosen]
    others = zip(
        *plane.project(np.asarray(run.split.captions["mean"])[chosen], log_variance), strict=True
    )
    usual = np.array([in_ellipses(means, [other]).mean() for other in others])
    return (
        Number(
            f"captions less uncertain than “{run.generic}” (log det Σ)",
            run.estimate(percentage, size < own),
            "%",
            of="captions",
        ),
        Number(
            f"image means in the ellipse of “{run.generic}”",
            run.estimate(percentage, in_ellipses(means, [caption])),
            "%",
            of="images",
        ),
        Number(
            "image means in the ellipse of a caption, mean",
            run.estimate(percentage, usual),
            "%",
            of="captions",
        ),
    )


def items_of(split, labels, each):
    """Arguments of `confidence_ellipses`: the first images and captions, `each` of both, of some
    labels of an `EncodedSplit`, and the labels' names.
    """
    records = split.records

    def first(of):
        return np.concatenate([np.flatnonzero(of == label)[:each] for label in labels])

    images, captions = first(records.image_labels), first(records.caption_labels)
    if records.class_names is None:
        place = {label: np.argmax(records.image_labels == label) for label in labels}
        names = {label: f"image {records.image_ids[at]}" for label, at in place.items()}
    else:
        found = {label: records.class_names[label].split(".")[-1] for label in labels}
        names = {label: name.replace("_", " ") for label, name in found.items()}
    return (
        {key: np.asarray(value)[images] for key, value in split.images.items()},
        records.image_labels[images],
        {key: np.asarray(value)[captions] for key, value in split.captions.items()},
        records.caption_labels[captions],
        names,
    )


def effective_dimensions(log_variance):
    """The participation ratio (Σσ²)² / (D · Σσ⁴) of every item, in (0, 1].

    It is 1 where all variances are equal (a sphere) and 1/D where one dimension has all of it.

    ```python
    effective_dimensions(np.zeros((2, 8)))  # [1.0, 1.0]
    ```

    Args:
        log_variance: `(items, dim)`, log σ².
    """
    shares = []
    for start in range(0, len(log_variance), _BLOCK):  # in float64, a few MiB at a time
        block = np.asarray(log_variance[start : start + _BLOCK], float)
        # Relative to the largest, which cancels, so that nothing under- or overflows.
        variance = np.exp(block - block.max(axis=1, keepdims=True))
        of_block = variance.sum(axis=1) ** 2 / (variance**2).sum(axis=1)
        shares.append(of_block / block.shape[1])
    return np.concatenate(shares)


@styled
def isotropy_plot(ratios, deviations):
    """The distribution of the effective share of dimensions, and σ over the dimensions.

    By side `(items,)` of `effective_dimensions`, and `(items, dim)`, σ in units of the space.
    """
    figure = new_figure(8.8, 3.6)
    left, right = figure.subplots(1, 2)
    for side, (label, color, line) in SIDES.items():
        share = 100 * np.sort(ratios[side])
        left.plot(
            share,
            100 * np.arange(1, len(share) + 1) / len(share),
            line,
            color=color,
            label=f"{label}, n = {len(share):,}",
        )
        middle = np.median(deviations[side], axis=0)
        order = np.argsort(-middle, kind="stable")
        low, high = np.percentile(deviations[side], (10, 90), axis=0)
        place = np.arange(1, len(middle) + 1)
        right.plot(place, middle[order], line, color=color, label=f"{label}: median")
        right.fill_between(place, low[order], high[order], color=color, alpha=0.15, linewidth=0)
    left.set(
        xlabel="effective share of the dimensions (%)",
        ylabel="items up to there (%)",
        xlim=(0, 103),
        ylim=(0, 103),
        title="How round: 100 % is a sphere",
    )
    right.set(
        xlabel="dimension, by falling median",
        ylabel="σ (units of the space)",
        title="σ by dimension; band: 80 % of the items",
    )
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.legend(loc="best")
    return figure


def isotropy_section(run):
    """How isotropic the variances are, and how much they differ between items."""
    if not run.is_gaussian:
        return None
    sides = {"images": run.split.images, "captions": run.split.captions}
    ratios, deviations, numbers = {}, {}, []
    for side, embedding in sides.items():
        log_variance = np.asarray(embedding["log_variance"])
        ratios[side] = effective_dimensions(log_variance)
        # A few thousand items show σ by dimension as well as all do.
        some = np.linspace(0, len(log_variance) - 1, min(_SHOWN, len(log_variance))).astype(int)
        deviations[side] = np.exp(0.5 * log_variance[some])
        spread = log_variance.mean(axis=1, dtype=float) / 2
        numbers += [
            Number(
                f"{side}: mean effective share of the dimensions",
                run.estimate(percentage, ratios[side]),
                "%",
                of=side,
            ),
            Number(
                f"{side}: deviation of the items' mean log σ",
                run.estimate(np.std, spread),
                "nats",
                ".3f",
                side,
            ),
        ]
    text = (
        "The effective share of an item's dimensions is (Σσ²)² / (D Σσ⁴): 100 % for a sphere, "
        f"100/D = {100 / log_variance.shape[1]:.1f} % where one dimension has all the variance. "
        "The deviation of the mean log σ says how much items differ in size at all: at 0 all are "
        "equally uncertain."
    )
    return Section(
        "isotropy",
        "How isotropic σ is",
        text,
        tuple(numbers),
        {
            "Effective share of the dimensions, and σ by dimension": isotropy_plot(
                ratios, deviations
            )
        },
    )
