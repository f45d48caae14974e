"""Why PCME++ trains on CSD: uncertainty learned in the plane, against the Wasserstein distance.

    python -m studies.toy_2d            # a minute

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, section 2.2 and appendix A.2.
500 points of each of three classes have free two-dimensional Gaussians and begin near their class's
centroid. 150 of them are confusing: each belongs to two classes, to one of them at random whenever
it is drawn. Trained on the closed-form sampled distance (CSD) they get wider than the others; the
squared 2-Wasserstein distance does not see how wide equal Gaussians are. An epoch is one batch
here, with which the ratios of σ² are the paper's: A.2 does not say what an epoch is.
`metrics.json` has the mean variances, `plots/toy_2d.png` the Gaussians as they were learned.
"""

from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from matplotlib.collections import EllipseCollection
from matplotlib.lines import Line2D

from zoo import cli, losses, models, similarities, training
from zoo.cli import Positive, Share, Signed, Size, setting
from zoo.images.seeding import step_seed, uniform
from zoo.models.run_folder import RunFolder
from zoo.plots.style import GREY, MARKERS, PALETTE, new_figure, save, styled

DISTANCES = {
    "csd": similarities.ClosedFormSampledDistance,
    "wasserstein_2": similarities.SquaredWasserstein2,
}
TITLES = {"csd": "CSD (PCME++)", "wasserstein_2": "squared 2-Wasserstein"}
CLASSES = 3


@dataclass(frozen=True, kw_only=True)
class Settings(training.RunSettings):
    """The paper's settings."""

    out: Path = setting(Path("runs/toy_2d"), "run folder to write or resume", identity=False)
    points_per_class: Size = setting(500, "of each class", source="PCME++, appendix A.2", smoke=50)
    confusing: Share = setting(0.3, "share that is confusing", source="PCME++, appendix A.2")
    noise: float = setting(0.1, "deviation around a centroid", source="PCME++, appendix A.2")
    log_sigma_range: Positive = setting(
        1.5, "most of the first log σ", source="PCME++, appendix A.2"
    )
    learning_rate: float = setting(0.02, "rate of Adam", source="PCME++, appendix A.2")
    epochs: Size = setting(500, "of --steps-per-epoch", source="PCME++, appendix A.2", smoke=3)
    steps_per_epoch: Size = setting(1, "batches of an epoch; 12 are as many points as there are")
    batch_size: Size = setting(128, "points a side", source="PCME++, appendix A.2")
    scale: Positive = setting(5.0, "initial a of b - a d", source="PCME++, section 3.1")
    shift: Signed = setting(5.0, "initial b", source="PCME++, section 3.1")


@dataclass(frozen=True)
class Points:
    """Where points begin, and which classes each belongs to: one, or two for a confusing one."""

    first: np.ndarray
    second: np.ndarray
    mean: np.ndarray
    log_sigma: np.ndarray

    @property
    def confusing(self):
        return self.first != self.second


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    run = RunFolder.open(settings.out, settings)
    if run.finished:
        print(f"{run.path} is finished")
        show(run.metrics)
        return
    points = make_points(settings)
    shown = sorted({0, settings.epochs // 10, settings.epochs})
    results, panels = {}, {}
    for name in DISTANCES:
        keras.utils.set_random_seed(settings.seed)
        model = build(settings, points, name)
        panels[name] = [fit(settings, model, points, *span) for span in _spans(shown)]
        results[name] = variances(panels[name][-1], points)
        run.save_model(model, name)
    save(draw(panels, results, points, shown), run.plots / "toy_2d.png")
    run.finish(results)
    show(results)
    print(f"Everything is in {run.path}")


def make_points(settings):
    """Points around a random centroid of each class; the last ones of it are confusing.

    A.2 does not say how centroids are drawn: here they are standard normal.
    """
    random = np.random.default_rng(settings.seed)
    first = np.repeat(np.arange(CLASSES), settings.points_per_class)
    place = np.tile(np.arange(settings.points_per_class), CLASSES)
    certain = settings.points_per_class - round(settings.points_per_class * settings.confusing)
    second = np.where(place < certain, first, (first + 1) % CLASSES)
    centroids = random.normal(size=(CLASSES, 2))
    mean = centroids[first] + settings.noise * random.normal(size=(len(first), 2))
    log_sigma = random.uniform(-1, 1, size=(len(first), 2)) * settings.log_sigma_range
    return Points(first, second, mean, log_sigma)


def build(settings, points, distance):
    """A dual encoder whose two towers are one table of Gaussians."""
    count = len(points.first)
    ids = keras.Input((), dtype="int32", name="points")
    mean, log_sigma = (
        keras.layers.Embedding(count, 2, weights=getattr(points, name), name=name)(ids)
        for name in ("mean", "log_sigma")
    )
    encoder = keras.Model(ids, {"mean": mean, "log_variance": 2.0 * log_sigma}, name="table")
    similarity = DISTANCES[distance](settings.scale, settings.shift)
    model = models.DualEncoder(encoder, encoder, similarity, loss=losses.MatchingCrossentropy())
    model.compile(keras.optimizers.Adam(settings.learning_rate))
    return model


def stream(settings, points, first_step):
    """Two batches of points against each other; a step's labels are drawn for it."""
    count, size = len(points.first), settings.batch_size
    classes = tf.constant(np.stack([points.first, points.second], 1), tf.int32)

    def draw(step):
        key = step_seed(settings.seed, step)
        batch = {}
        for purpose, side in enumerate(("image", "caption")):
            chosen = tf.cast(uniform(key, 2 * purpose, 1, size)[0] * count, tf.int32)
            coin = tf.cast(uniform(key, 2 * purpose + 1, 1, size)[0] < 0.5, tf.int32)
            batch[f"{side}s"] = chosen
            batch[f"{side}_labels"] = tf.gather_nd(classes, tf.stack([chosen, coin], 1))
        return batch

    return tf.data.Dataset.range(first_step, tf.int64.max).map(draw).prefetch(tf.data.AUTOTUNE)


def fit(settings, model, points, first_epoch, last_epoch):
    """Trains from one epoch to another and returns the Gaussians as arrays."""
    steps = settings.steps_per_epoch
    if last_epoch > first_epoch:
        # One call of Keras for many epochs, which are short.
        batches = stream(settings, points, first_epoch * steps)
        of_epoch = steps * (last_epoch - first_epoch)
        model.fit(batches, steps_per_epoch=of_epoch, shuffle=False, verbose=0)  # it is random
    mean, log_sigma = (
        keras.ops.convert_to_numpy(model.image_encoder.get_layer(name).embeddings)
        for name in ("mean", "log_sigma")
    )
    return {"mean": mean, "log_variance": 2 * log_sigma}


def variances(gaussians, points):
    """Mean σ² of confusing and of certain points, and their ratio."""
    variance = np.exp(gaussians["log_variance"]).mean(axis=1)
    confusing = float(variance[points.confusing].mean())
    certain = float(variance[~points.confusing].mean())
    return {"confusing": confusing, "certain": certain, "ratio": confusing / certain}


@styled
def draw(panels, results, points, shown):
    """A row a distance, a column an epoch: every Gaussian as its one-σ ellipse."""
    figure = new_figure(4.2 * len(shown), 8.6)
    axes = figure.subplots(len(panels), len(shown), squeeze=False, sharex="col", sharey="col")
    colors = np.where(points.confusing, GREY, np.array(PALETTE)[points.first])
    for row, (name, gaussians) in zip(axes, panels.items(), strict=True):
        for axis, epoch, gaussian in zip(row, shown, gaussians, strict=True):
            mean, sigma = gaussian["mean"], np.exp(0.5 * gaussian["log_variance"])
            order = np.argsort(points.confusing, kind="stable")  # confusing ones last, to be seen
            look = {"facecolors": "none", "edgecolors": colors[order], "alpha": 0.45}
            look |= {"offsets": mean[order], "offset_transform": axis.transData, "units": "xy"}
            sizes = (*2 * sigma[order].T, np.zeros(len(order)))
            axis.add_collection(EllipseCollection(*sizes, **look))
            axis.update_datalim(np.concatenate([mean - sigma, mean + sigma]))
            axis.scatter(*mean.T, c=colors, s=4)
            axis.set(aspect="equal", title=f"{TITLES[name]}, epoch {epoch}")
        result = results[name]
        # Inside the panel: a label below it would set the last column off from the others.
        text = "mean σ²: confusing {confusing:.2f}, certain {certain:.2f}, ratio {ratio:.2f}"
        box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none"}
        row[-1].text(0.02, 0.02, text.format(**result), transform=row[-1].transAxes, bbox=box)
    names = [*(f"class {c + 1}" for c in range(CLASSES)), "confusing: one of two classes"]
    handles = [
        Line2D([], [], color=color, marker=MARKERS[0], linestyle="", label=label)
        for color, label in zip([*PALETTE[:CLASSES], GREY], names, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def show(results):
    for name, result in results.items():
        print(
            f"{TITLES[name]:>22}: mean σ² {result['confusing']:.3f} confusing, "
            f"{result['certain']:.3f} certain, ratio {result['ratio']:.2f}"
        )


def _spans(epochs):
    """(0, 0), (0, first), (first, second) …: the steps to train before each picture."""
    return zip([0, *epochs[:-1]], epochs, strict=True)


if __name__ == "__main__":
    cli.run(main)
