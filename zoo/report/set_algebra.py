"""Section on set algebra: the Gaussians of mixed and of erased images beside the originals'."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from zoo.data import images
from zoo.files.seeding import step_seed
from zoo.metrics.statistics import nan_mean, percentage
from zoo.report.ellipses import (
    area_inside,
    draw_gaussian,
    mass_inside,
    name_axes,
    principal_plane,
    shared_area_inside,
    unit_disc,
)
from zoo.report.section import Number, Section
from zoo.report.style import MARKERS, PALETTE, new_figure, styled

ERASED = 0.3  # of the area
NUM_SAMPLES = 512
CONTROL = "of another pair"


@dataclass(frozen=True)
class Algebra:
    """Pairs of images, their mixes and their erased versions, encoded.

    Attributes:
        first, second: `(pairs,)` indices of images.
        embeddings: by name, `"first"`, `"second"`, `"mix"` and `"erased"` (of the first), a
            Gaussian of all pairs as NumPy arrays in float64.
        pictures: by the same names, uint8 `(pairs, height, width, 3)`.
    """

    first: np.ndarray
    second: np.ndarray
    embeddings: dict
    pictures: dict


def make(run):
    """Mixes pairs of images of different labels and erases a part of the first.

    The run has a model and pictures. An `Algebra`, or None if there are no two labels.
    """
    labels = run.records.image_labels
    order = np.random.default_rng(run.seed).permutation(len(labels))[: 2 * (run.items // 2)]
    half = len(order) // 2
    first, second = order[:half], order[half : 2 * half]
    different = labels[first] != labels[second]
    first, second = first[different], second[different]
    if not len(first):
        return None
    pictures = {
        "first": np.stack([run.picture(index) for index in first]),
        "second": np.stack([run.picture(index) for index in second]),
    }
    both = pictures["first"].astype(np.float32) + pictures["second"]
    pictures["mix"] = np.round(both / 2).astype(np.uint8)
    shown = tf.constant(pictures["first"])
    pictures["erased"] = images.erase(shown, ERASED, step_seed(run.seed, 1)).numpy()
    embeddings = {
        "first": _take(run.split.images, first),
        "second": _take(run.split.images, second),
    }
    for name in ("mix", "erased"):
        found = run.model.tower("images").of_arrays(pictures[name])
        embeddings[name] = _take(found, slice(None))
    return Algebra(first, second, embeddings, pictures)


def measure(algebra, plane, seed=0):
    """Shares of areas and masses that lie in each other, for every pair of an `Algebra`.

    Areas are compared in the `plane`; `seed` is of the points that shares are taken over.

    Returns:
        A dict of `(pairs,)` arrays, shares in percent: `mix_area`, of the mix's ellipse in the
        intersection of both originals' ellipses, and `mix_area_control` in that of the next pair's
        originals; `covered`, of the intersection by the mix, NaN where it is empty; `mix_mass` and
        `mix_mass_control`, of the Gaussian in both 95 % regions of the whole space;
        `original_in_erased`, `erased_in_original`, of the mass likewise; `wider_mix`,
        `wider_erased`: whether log det Σ is above the originals' mean, the original's.
    """
    generator = np.random.default_rng(seed)
    gaussians = algebra.embeddings
    noise = generator.standard_normal((NUM_SAMPLES, gaussians["mix"]["mean"].shape[1]))
    disc = unit_disc(generator, NUM_SAMPLES)
    flat = {
        name: list(zip(*plane.project(g["mean"], g["log_variance"]), strict=True))
        for name, g in gaussians.items()
    }
    full = {
        name: list(zip(g["mean"], np.exp(g["log_variance"]), strict=True))
        for name, g in gaussians.items()
    }
    count = len(algebra.first)
    columns = {}

    def collect(name, value):
        columns.setdefault(name, []).append(100.0 * value)

    for pair in range(count):
        other = (pair + 1) % count
        for name, at in (("", pair), ("_control", other)):
            originals = [flat[side][at] for side in ("first", "second")]
            area = area_inside(*flat["mix"][pair], originals, disc)
            collect(f"mix_area{name}", area)
            originals = [full[side][at] for side in ("first", "second")]
            mass = mass_inside(*full["mix"][pair], originals, noise)
            collect(f"mix_mass{name}", mass)
        three = [flat[side][pair] for side in ("first", "second", "mix")]
        collect("covered", shared_area_inside(*three, disc))
        first, erased = full["first"][pair], full["erased"][pair]
        collect("original_in_erased", mass_inside(*first, [erased], noise))
        collect("erased_in_original", mass_inside(*erased, [first], noise))
    size = {name: g["log_variance"].sum(axis=1) for name, g in gaussians.items()}
    columns["wider_mix"] = size["mix"] > (size["first"] + size["second"]) / 2
    columns["wider_erased"] = size["erased"] > size["first"]
    return {name: np.asarray(values) for name, values in columns.items()}


@styled
def algebra_plot(plane, mix, erased, pictures):
    """One mixture and one erased image: their ellipses in the plane, and the pictures below.

    The mixture is Gaussians of one each: first, mix, second; the erased one likewise: original,
    erased. Pictures are two lists in the same orders.
    """
    figure = new_figure(9.0, 6.0)
    grid = figure.add_gridspec(2, 6, height_ratios=[3.2, 1.3])
    panels = (
        ("Mixing two images", mix, ("image 1", "mix", "image 2"), (0, 2, 1), slice(0, 3)),
        ("Erasing a part", erased, ("image 1", "erased"), (0, 3), slice(3, 6)),
    )
    for (title, gaussians, names, looks, columns), shown in zip(panels, pictures, strict=True):
        axis = figure.add_subplot(grid[0, columns])
        frames = []
        for gaussian, name, look in zip(gaussians, names, looks, strict=True):
            middle, covariance = plane.project(gaussian["mean"], gaussian["log_variance"])
            line = "-" if name.startswith("image") else (0, (4, 2))
            color, marker = PALETTE[look], MARKERS[look]
            filled = name.startswith("image")
            draw_gaussian(axis, middle[0], covariance[0], color, marker, line, filled, width=1.8)
            frames.append((color, line))
        axis.set_aspect("equal", adjustable="datalim")
        name_axes(axis, plane)
        axis.set_title(title)
        # The pictures are the legend: each is framed as its ellipse is drawn.
        pictured = zip(shown, names, frames, strict=True)
        for place, (picture, name, (color, line)) in enumerate(pictured):
            below = figure.add_subplot(grid[1, columns.start + place])
            below.imshow(picture)
            below.set(xticks=[], yticks=[])
            below.spines[:].set(visible=True, color=color, linestyle=line, linewidth=2.5)
            below.set_title(name, loc="center", fontsize=9)
    return figure


def section(run):
    """How mixing and erasing move and widen the Gaussians of images."""
    if run.model is None or run.picture is None or not run.is_gaussian:
        return None
    algebra = make(run)
    if algebra is None:
        return None
    plane = principal_plane(run.split.images["mean"])
    found = measure(algebra, plane, run.seed)
    lines = (
        ("in the plane: the mix's ellipse lies in the originals' intersection", "mix_area"),
        (f"in the plane: … in the intersection {CONTROL}", "mix_area_control"),
        ("in the plane: the intersection is covered by the mix, where there is one", "covered"),
        ("all dimensions: the mix's mass lies in both originals' 95 % regions", "mix_mass"),
        (f"all dimensions: … in those {CONTROL}", "mix_mass_control"),
        (
            "all dimensions: the original's mass lies in the erased one's region",
            "original_in_erased",
        ),
        (
            "all dimensions: the erased one's mass lies in the original's region",
            "erased_in_original",
        ),
    )
    numbers = [
        Number(label, run.estimate(nan_mean, found[name]), "%", of="pairs") for label, name in lines
    ]
    numbers += [
        Number(
            "mixes wider than the mean of their originals (log det Σ)",
            run.estimate(percentage, found["wider_mix"]),
            "%",
            of="pairs",
        ),
        Number(
            "erased images wider than the originals (log det Σ)",
            run.estimate(percentage, found["wider_erased"]),
            "%",
            of="images",
        ),
    ]
    text = (
        "Pairs of images of different labels. A mix is the mean of their pixels. It may show "
        "either, so its ellipse should lie in the intersection of theirs, more than in that of "
        f"two other images. The ellipse of an image with {100 * ERASED:.0f} % of its area erased "
        "should include the original's. The plane is that of the two main directions of all "
        "images' means; there, ellipses overlap that are far apart in the whole space. The figure "
        "is of the pair with the median share in the intersection."
    )
    order = np.argsort(found["mix_area"], kind="stable")
    typical = order[len(order) // 2]

    def shown(*names):
        return (
            [_take(algebra.embeddings[name], [typical]) for name in names],
            [algebra.pictures[name][typical] for name in names],
        )

    (mix, above), (erased, below) = shown("first", "mix", "second"), shown("first", "erased")
    figure = algebra_plot(plane, mix, erased, (above, below))
    return Section(
        "set_algebra",
        "Set algebra: mixing and erasing",
        text,
        tuple(numbers),
        {"Ellipses of two images with their mix, and of one with its erased self": figure},
    )


def _take(gaussian, positions):
    return {key: np.asarray(value, np.float64)[positions] for key, value in gaussian.items()}
