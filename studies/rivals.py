"""How likely the first photo is the wanted one: probes beside what others read of frozen vectors.

    python -m studies.rivals photos_pfe ../shared/data --cache CACHE --out docs

Captions of Flickr8k's validation photos calibrate, captions of its test photos ask galleries of
these; an answer is right if the caption's own photo is first. Every method is calibrated on a
validation gallery of the size that is asked; probes ask the gallery itself. Then the model is
swapped: what was calibrated with the preset's vectors is used with CLIP ViT-B/16's over COCO's
photos (`clip_vectors`) without a new calibration, and with one by half of these pairs. Writes
`results/tables/rivals.csv` and `images/rivals.svg`, and prints the table.
"""

import csv
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from halo_search.confidence import calibrate_on
from halo_search.confidence.features import Logistic
from halo_search.embeddings.arrays import unit
from halo_search.index import Index
from studies.people_data import Encoded, parser_of
from zoo.cli import run
from zoo.metrics.confidence import abstention_auc

SIZES, SWAPPED, SEEDS = (100, 250, 500, 1000), 250, 5
COLUMNS = "setting", "method", "nauc", "log_loss", "error", "said", "right"
PENALTY, BINS, NEAREST = 0.01, 10, 50


class Pairs:
    """Directions of N photos `(N, dim)`, and of a caption of each in the same order."""

    def __init__(self, images, captions):
        self.images, self.captions = (unit(np.asarray(x, np.float32)) for x in (images, captions))
        self.scores = self.captions @ self.images.T
        self.right = self.scores.argmax(axis=1) == np.arange(len(self.images))

    def take(self, rows):
        """Some of the pairs."""
        return Pairs(self.images[rows], self.captions[rows])


class Softmax:
    """The greatest probability of a softmax over the gallery.

    Reference: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017: one temperature,
        by maximum likelihood.
    """

    def __init__(self, pairs):
        def loss(log_scale):
            return -np.diag(log_softmax(np.exp(log_scale) * pairs.scores, axis=1)).mean()

        self.scale = np.exp(minimize_scalar(loss, bounds=(0, 7), method="bounded").x)

    def __call__(self, pairs):
        return softmax(self.scale * pairs.scores, axis=1).max(axis=1)


class BestScore:
    """The cosine of the first photo, by a logistic regression.

    Reference: the baseline of Gomez, "Over the Top-1", UAI 2025; Platt, 1999.
    """

    def __init__(self, pairs):
        self.logistic = Logistic.fit(self.read(pairs)[:, None], pairs.right, PENALTY)

    def read(self, pairs):
        """The number that the regression reads, `(N,)`."""
        return pairs.scores.max(axis=1)

    def __call__(self, pairs):
        return self.logistic.probability(self.read(pairs)[:, None])


class Perturbation(BestScore):
    """The shortest change of the question's vector that makes another photo first, by a logistic
    regression. Of vectors it has a closed form, the distance to the nearest boundary between two
    photos; the paper looks for it in pixels and words, through the model.

    Reference: Gomez, "Over the Top-1", UAI 2025.
    """

    def read(self, pairs):
        best = np.argsort(-pairs.scores, axis=1)[:, : NEAREST + 1]
        scores = np.take_along_axis(pairs.scores, best, axis=1)
        apart = np.linalg.norm(pairs.images[best[:, :1]] - pairs.images[best[:, 1:]], axis=2)
        return np.min((scores[:, :1] - scores[:, 1:]) / np.maximum(apart, 1e-6), axis=1)


class Probes:
    """The pairs as probes in front of the gallery that is asked; `carried`: in front of their own,
    of which the regression alone is used elsewhere."""

    def __init__(self, pairs, probes, carried=False):
        self.probes, self.confidence = probes, None
        if carried:
            self.confidence = self.calibrated(pairs)

    def calibrated(self, pairs):
        """A `Confidence` for the gallery of some pairs."""
        index = Index.build(pairs.images, "cosine")
        return calibrate_on(index, self.probes.captions, self.probes.images)

    def __call__(self, pairs):
        confidence = self.confidence or self.calibrated(pairs)
        scores = Index.build(pairs.images, "cosine").query_scores(
            pairs.captions, copies=confidence.copies
        )
        return confidence.probability(scores)


RIVALS = {"softmax": Softmax, "best score": BestScore, "perturbation": Perturbation}


def main(argv=None):
    parser = parser_of("rivals", __doc__, "flickr8k and clip_vectors")
    parser.add_argument("--out", type=Path, help="folder of the documentation")
    options = parser.parse_args(argv)
    validation, test = (
        Encoded.of(options.folder / "flickr8k", options.model, split, options.cache)
        for split in ("validation", "test")
    )
    results = {}
    for seed in range(options.seed, options.seed + SEEDS):
        rng = np.random.default_rng(seed)
        held_out, asked = one_of_each(validation, rng), one_of_each(test, rng)
        for size in SIZES:
            swapped, gallery = (some.take(drawn(some, size, rng)) for some in (held_out, asked))
            methods = {name: method(swapped) for name, method in RIVALS.items()}
            methods["probes"] = Probes(swapped, held_out)
            for name, method in methods.items():
                results.setdefault((f"{size:,} photos", name), []).append(
                    (method(gallery), gallery)
                )
        clip = coco_clip(options.folder)
        rows = rng.permutation(len(clip.images))
        swapped, gallery = (clip.take(np.sort(part)) for part in (rows[:SWAPPED], rows[SWAPPED:]))
        known = held_out.take(drawn(held_out, SWAPPED, rng))
        for setting, pairs, carried in (
            ("swapped", known, True),
            ("calibrated again", swapped, False),
        ):
            methods = {name: method(pairs) for name, method in RIVALS.items()}
            probes = held_out if carried else swapped
            methods["probes"] = Probes(pairs, probes, carried)
            for name, method in methods.items():
                results.setdefault((setting, name), []).append((method(gallery), gallery))
    table = []
    for key, asked in results.items():
        table.append((*key, *np.mean([measured(*pair) for pair in asked], axis=0)))
    for row in [COLUMNS, *([*row[:2], *(f"{value:.3f}" for value in row[2:])] for row in table)]:
        print("|", " | ".join(row), "|")
    if options.out is not None:
        write(options.out, table)
    return 0


def one_of_each(encoded, rng):
    """The `Pairs` of a split with one caption of each photo."""
    places = np.arange(len(encoded.owners))
    rows = [rng.choice(places[encoded.owners == photo]) for photo in range(len(encoded.names))]
    return Pairs(encoded.images["mean"], encoded.captions["mean"][rows])


def drawn(pairs, count, rng):
    """Rows of some pairs, in order."""
    return np.sort(rng.permutation(len(pairs.images))[:count])


def coco_clip(folder):
    """500 of COCO's photos and a caption each, by CLIP ViT-B/16."""
    with np.load(folder / "clip_vectors/coco_val2017_clip_b16_pairs.npz") as file:
        return Pairs(file["images"], file["captions"])


def measured(probability, pairs):
    """nAUC, log loss, and the mean difference over ten bins of equal size; said and right."""
    right = pairs.right
    sure = np.clip(probability, 1e-6, 1 - 1e-6)
    loss = -np.mean(right * np.log(sure) + (1 - right) * np.log(1 - sure))
    bins = np.array_split(np.argsort(probability, kind="stable"), BINS)
    error = np.mean([abs(probability[part].mean() - right[part].mean()) for part in bins])
    return abstention_auc(probability, right), loss, error, probability.mean(), right.mean()


def write(out, table):
    """Writes the table and the figure."""
    from matplotlib import pyplot

    with open(out / "results/tables/rivals.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *([*row[:2], *(round(x, 4) for x in row[2:])] for row in table)])
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    settings = list(dict.fromkeys(row[0] for row in table))
    for name in (*RIVALS, "probes"):
        rows = {row[0]: row for row in table if row[1] == name}
        for place, axis in ((2, axes[0]), (4, axes[1])):
            axis.plot([rows[setting][place] for setting in settings], "o-", label=name)
    for axis, title in zip(axes, ("nAUC, higher is better", "|said − true|"), strict=True):
        axis.set_title(title)
        axis.set_xticks(range(len(settings)), settings, rotation=30, ha="right")
    axes[1].legend()
    figure.savefig(out / "images/rivals.svg", metadata={"Date": None})


if __name__ == "__main__":
    run(main)
