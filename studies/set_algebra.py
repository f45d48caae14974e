"""PCME's figure 8: the Gaussians of mixed and of erased images beside the originals'."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from scipy.stats import chi2

from halo_search.errors import InputError
from zoo.data import images
from zoo.images.seeding import step_seed
from zoo.metrics.statistics import nan_mean
from zoo.plots.ellipses import draw_gaussian, name_axes, principal_plane
from zoo.plots.style import MARKERS, PALETTE, new_figure, styled

ERASED = 0.3  # of the area
NUM_SAMPLES = 512
_SHARE = 0.95  # of a Gaussian, that its ellipse holds


@dataclass(frozen=True)
class Algebra:
    """Pairs of images, their mixes and their erased versions, encoded."""

    first: np.ndarray  # `(pairs,)` indices of images
    second: np.ndarray  # `(pairs,)` indices of images
    embeddings: dict
    pictures: dict  # by the same names, uint8 `(pairs, height, width, 3)`


def make(run):
    """Mixes pairs of images of different labels and erases a part of the first."""
    if run.picture is None:
        raise InputError("figure 8 mixes pictures; this run reads features")
    labels = run.encoded.records.image_labels
    order = np.random.default_rng(run.seed).permutation(len(labels))[: 2 * (run.items // 2)]
    half = len(order) // 2
    first, second = order[:half], order[half : 2 * half]
    different = labels[first] != labels[second]
    first, second = first[different], second[different]
    if not len(first):
        raise InputError("figure 8 mixes images of two labels; found no such pair")
    pictures = {
        "first": np.stack([run.picture(index) for index in first]),
        "second": np.stack([run.picture(index) for index in second]),
    }
    both = pictures["first"].astype(np.float32) + pictures["second"]
    pictures["mix"] = np.round(both / 2).astype(np.uint8)
    shown = tf.constant(pictures["first"])
    pictures["erased"] = images.erase(shown, ERASED, step_seed(run.seed, 1)).numpy()
    embeddings = {
        "first": _take(run.encoded.images, first),
        "second": _take(run.encoded.images, second),
    }
    for name in ("mix", "erased"):
        elements = run.model.tower("images").of_arrays(pictures[name])
        embeddings[name] = _take(elements, slice(None))
    return Algebra(first, second, embeddings, pictures)


def measure(algebra, plane, seed=0):
    """Shares of areas that lie in each other, for every pair of an `Algebra`."""
    gaussians, disc = algebra.embeddings, unit_disc(np.random.default_rng(seed), NUM_SAMPLES)
    flat = {
        name: list(zip(*plane.project(g["mean"], g["log_variance"]), strict=True))
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
            collect(f"mix_area{name}", area_inside(*flat["mix"][pair], originals, disc))
        three = [flat[side][pair] for side in ("first", "second", "mix")]
        collect("covered", shared_area_inside(*three, disc))
        first, erased = flat["first"][pair], flat["erased"][pair]
        collect("original_in_erased", area_inside(*first, [erased], disc))
        collect("erased_in_original", area_inside(*erased, [first], disc))
    size = {name: g["log_variance"].sum(axis=1) for name, g in gaussians.items()}
    columns["wider_mix"] = size["mix"] > (size["first"] + size["second"]) / 2
    columns["wider_erased"] = size["erased"] > size["first"]
    return {name: np.asarray(values) for name, values in columns.items()}


@styled
def algebra_plot(plane, mix, erased, pictures):
    """One mixture and one erased image: their ellipses in the plane, and the pictures below."""
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


def mixed_and_erased(run):
    """Figure 8, of the pair with the median share in the intersection; and the means of `measure`
    over all pairs.
    """
    algebra = make(run)
    plane = principal_plane(run.encoded.images["mean"])
    results = measure(algebra, plane, run.seed)
    order = np.argsort(results["mix_area"], kind="stable")
    typical = order[len(order) // 2]

    def shown(*names):
        return (
            [_take(algebra.embeddings[name], [typical]) for name in names],
            [algebra.pictures[name][typical] for name in names],
        )

    (mix, above), (erased, below) = shown("first", "mix", "second"), shown("first", "erased")
    numbers = {name: nan_mean(np.asarray(values, float)) for name, values in results.items()}
    return algebra_plot(plane, mix, erased, (above, below)), {"pairs": len(order), **numbers}


def area_inside(mean, covariance, others, disc):
    """The share of a Gaussian's ellipse in the plane that lies in the ellipses of all the others:
    pairs of a mean `(2,)` and a covariance `(2, 2)`; `disc` is points of the unit disc."""
    return float(np.mean(in_ellipses(ellipse_points(mean, covariance, disc), others)))


def shared_area_inside(first, second, third, disc):
    """The share of the intersection of two ellipses that a third covers; NaN if there is none."""
    points = ellipse_points(*first, disc)
    points = points[in_ellipses(points, [second])]
    return float(np.mean(in_ellipses(points, [third]))) if len(points) else np.nan


def ellipse_points(mean, covariance, disc):
    """The image of points of the unit disc in an ellipse, `(num_samples, 2)`."""
    return mean + np.sqrt(chi2.ppf(_SHARE, 2)) * disc @ np.linalg.cholesky(covariance).T


def in_ellipses(points, ellipses):
    """Whether points of the plane lie in all of some ellipses, booleans `(points,)`."""
    result = np.ones(len(points), bool)
    for mean, covariance in ellipses:
        turned = np.linalg.solve(np.linalg.cholesky(covariance), (points - mean).T)
        result &= np.square(turned).sum(axis=0) <= chi2.ppf(_SHARE, 2)
    return result


def unit_disc(generator, num_samples):
    """Points drawn uniformly from the unit disc, `(num_samples, 2)`."""
    radius = np.sqrt(generator.random(num_samples))
    angle = 2 * np.pi * generator.random(num_samples)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _take(gaussian, positions):
    return {key: np.asarray(value, np.float64)[positions] for key, value in gaussian.items()}
