"""Images and captions in the plane as ellipses, and a caption that says nothing in particular."""

import numpy as np

from zoo.report.bootstrap import percent
from zoo.report.confidence_regions import in_ellipses
from zoo.report.ellipses import confidence_ellipses, principal_plane
from zoo.report.section import Number, Section

CLASSES, ITEMS = 9, 3


def section(run):
    """Ellipses of a few classes, and where the generic caption's reaches."""
    if not run.is_gaussian:
        return None
    plane = principal_plane(run.split.images["mean"])
    generic = None
    numbers = ()
    if run.model is not None:
        ids = run.model.tokenize([run.generic])
        embedding = run.model.caption_encoder.predict(ids, verbose=0)
        generic = (f"“{run.generic}”", {key: np.asarray(v) for key, v in embedding.items()})
        numbers = generic_numbers(run, plane, generic[1])
    dim = run.split.images["mean"].shape[1]
    where = (
        "The space itself has two dimensions."
        if dim == 2
        else f"The plane is that of the two main directions of the {dim}-dimensional means."
    )
    text = (
        f"Some images and captions of up to {CLASSES} labels as 95 % ellipses. {where} A caption "
        "that fits everything should have an ellipse that reaches over all."
    )
    figure = confidence_ellipses(*few(run), plane=plane, generic=generic)
    figures = {"95 % confidence ellipses of images (solid) and captions (dashed)": figure}
    return Section("ellipses", "In the plane", text, numbers, figures)


def generic_numbers(run, plane, generic):
    """How uncertain the generic caption is, and how many images its ellipse reaches."""
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
            run.estimate(percent, size < own),
            "%",
            of="captions",
        ),
        Number(
            f"image means in the ellipse of “{run.generic}”",
            run.estimate(percent, in_ellipses(means, [caption])),
            "%",
            of="images",
        ),
        Number(
            "image means in the ellipse of a caption, mean",
            run.estimate(percent, usual),
            "%",
            of="captions",
        ),
    )


def few(run):
    """Arguments of `confidence_ellipses`: the first items of some labels, evenly spaced."""
    records = run.records
    labels = np.unique(records.image_labels)
    shown = labels[np.linspace(0, len(labels) - 1, min(CLASSES, len(labels))).round().astype(int)]

    def first(of):
        return np.concatenate([np.flatnonzero(of == label)[:ITEMS] for label in shown])

    images, captions = first(records.image_labels), first(records.caption_labels)
    names = {
        label: f"image {records.image_ids[np.argmax(records.image_labels == label)]}"
        for label in shown.tolist()
    }
    if records.class_names is not None:
        names = {
            label: records.class_names[label].split(".")[-1].replace("_", " ")
            for label in shown.tolist()
        }
    return (
        {key: np.asarray(value)[images] for key, value in run.split.images.items()},
        records.image_labels[images],
        {key: np.asarray(value)[captions] for key, value in run.split.captions.items()},
        records.caption_labels[captions],
        names,
    )
