"""Any system of the zoo on real birds: CUB's crops, on stored features of a frozen network.

    python recipes/birds.py --data-dir CUB_200_2011 --image-weights mobilenetv2.weights.h5
    python recipes/birds.py --system infonce --data-dir …        # InfoNCE on PCME++'s towers
    python recipes/birds.py --held-out val1 --data-dir …         # to choose settings
    python recipes/birds.py --validation val1 --data-dir …       # calibrated on unseen classes
    python recipes/birds.py --system pfe --points runs/infonce --learning-rate 3e-3 --data-dir …
    python recipes/birds.py                                      # Toy Birds, to try it out

All systems meet on one split, one file of features, the same batches and the same number of steps,
so that a difference between two runs is one of the systems. The features are of several views of
each picture (whole, mirrored, random parts), made once. Rerun the command to resume a stopped run.
"""

import resource
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import birds_systems
from halo_search.errors import InputError
from halo_search.files.environment import cache_folder
from zoo import cli, encoders, models, plots, presets, training
from zoo.cli import Positive, Share, Signed, Size, differs, setting
from zoo.data import batches, captions, datasets
from zoo.data.pipeline.augmentation import Augmentation, Views
from zoo.data.records import Records, joined
from zoo.data.records.features import cached
from zoo.data.records.sources import Features, Pictures
from zoo.models.run_folder import RunFolder
from zoo.training.settings import (
    CUB_CAPTIONS,
    CUB_SPLITS,
    IMAGE_WEIGHTS,
    UNSAID,
    check_weights,
)

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """Settings chosen on val1 to val3 of the crops; `toy` is for a quick look at Toy Birds."""

    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    captions: Path | None = setting(None, CUB_CAPTIONS)
    out: Path = differs(Path("runs/birds"))
    system: Literal[(*birds_systems.BUILDERS, "pfe")] = setting("pcme", "system to train")
    points: Path | None = setting(
        None, "for pfe: run folder of points that were trained on the same data"
    )
    held_out: Literal[CUB_SPLITS] = differs(
        "test", help="classes to evaluate on; choose settings on val1 to val3"
    )
    validation: Literal["val1", "val2", "val3"] | None = setting(
        None,
        "classes to leave out of training and to calibrate on; default: held-out images of the "
        "training's classes",
    )
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "mobilenet_v2", "image network, whose weights stay as they are", toy="tiny"
    )
    max_words: Size = setting(24, "words read per caption: 95 % of CUB's captions are shorter")
    views: Size = setting(4, "views of each training picture: whole, mirrored, random parts", toy=2)
    glove: Path | None = setting(None, "text file of word vectors to start from")
    dim: Size = setting(512, "dimensions of the embedding", toy=64)
    word_dim: Size = setting(256, "dimensions of a word vector", toy=64)
    min_count: int = setting(
        4, "least occurrences of a word; rarer words become one unknown word", toy=1
    )
    batch_size: Size = setting(94, "pairs per batch")
    pairs_per_class: Size = setting(1, "pairs of each class in a batch")
    steps_per_epoch: Size | None = setting(400, "steps between two validations", toy=20, smoke=2)
    epochs: Size = setting(2, "number of epochs, each of --steps-per-epoch steps", toy=4, smoke=1)
    learning_rate: float = setting(5e-4, "peak learning rate of AdamP, with cosine decay", toy=2e-3)
    weight_decay: float = setting(0.0, "weight decay of AdamP")
    clip_norm: Positive = setting(2.0, "gradients with a larger norm are scaled to it")
    cutout: Share = setting(0.0, "probability that a feature map loses a rectangle")
    drop_rate: Share = setting(0.2, "share of the feature map's cells left out, in pooled towers")
    word_dropping: Share = setting(0.1, "probability that a word is left out")
    temperature: Positive = setting(0.07, "initial temperature of infonce")
    scale: Positive = setting(5.0, "initial a of pcmepp and csd_softmax")
    shift: Signed = setting(5.0, "initial b of pcmepp and csd_softmax")
    log_variance_bias: Signed | None = setting(None, "initial log variance; default: the builder's")
    kl_weight: float = setting(1e-4, "weight of the KL divergence from N(0, I), for Gaussians")
    uniformity_weight: float = setting(10.0, "weight of the uniformity loss, for pcme")
    pseudo_positive_weight: float = setting(0.0, "weight of pseudo-positives (alpha), for pcmepp")
    margin: float = setting(0.2, "margin of the triplet loss")
    mining: Literal["sum", "hardest", "semi_hard"] = setting(
        "hardest", "which negatives the triplet loss takes"
    )
    num_slots: Size = setting(4, "elements per set")
    select: Literal["best", "last"] = setting(
        "last", "validation has the training's classes, or the test's: neither may choose an epoch"
    )

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.backbone)
        if self.views < 1:
            raise ValueError(f"--views must be at least 1; received {self.views}")
        if (self.system == "pfe") != (self.points is not None):
            raise ValueError(
                "--points must be given with --system pfe, and with no other; received "
                f"--system {self.system} and --points {self.points}"
            )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of CUB, or of Toy Birds without `--data-dir`, for `zoo.data.open`."""
    return settings.describe_data(
        "cub",
        "toy_birds",
        captions=settings.captions,
        validation=settings.validation,
        **settings.picture_options(),
    )


def train_and_evaluate(settings, data_description):
    """Trains the system's heads over stored features, and evaluates once on the test split."""
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(
        run, **settings.evaluation(), measure_more=measure_cost, report=plots.draw_run
    )


def build(settings, train_split):
    """The untrained system: frozen backbone and heads."""
    if settings.points is not None:
        return build_pfe(settings)
    tokenizer = captions.word_tokenizer(
        train_split.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    backbone = encoders.convolutional(
        settings.backbone, settings.image_size, settings.image_weights, trainable=False
    )
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    towers = {
        "image_backbone": backbone,
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "word_dim": word_dim,
    }
    return birds_systems.BUILDERS[settings.system](settings, towers, word_vectors)


def build_pfe(settings):
    """Untrained variances over the frozen points of a finished run. Raises InputError if that run
    has other data, so that a test class cannot have been trained on."""
    points_run = RunFolder.existing(settings.points)
    this_run = RunFolder.existing(settings.out)
    points_data, expected_data = without_semantics(points_run), without_semantics(this_run)
    if points_data != expected_data:
        raise InputError(
            f"--points {points_run.path}: must be of the same data, or what it has learnt is "
            f"tested; expected {expected_data}, found {points_data}"
        )
    points = presets.from_preset(points_run.path)
    return models.pfe(points, scale=settings.scale, shift=settings.shift)


def without_semantics(run_folder):
    """The description of a run's data, without semantics, which say nothing of the splits."""
    return {name: value for name, value in run_folder.data.items() if name != "semantics"}


def train_phases(settings, run):
    """One phase, of the heads over stored features."""
    run.read_features(*stored_features(settings, run))
    phase = training.Phase(
        "training",
        epochs=settings.epochs,
        rate=training.cosine_decay(settings.learning_rate, warm_up_epochs=None),
        model=run.reader(),
    )
    augmentation = Augmentation(cutout=settings.cutout, word_dropping=settings.word_dropping)

    def training_batches(train_split, seed):
        return settings.stream(
            batches.class_pairs,
            train_split,
            run.model.tokenizer,
            seed,
            augmentation,
            pairs_per_class=settings.pairs_per_class,
        )

    def optimizer(model, learning_rate):
        return training.AdamP(
            learning_rate, weight_decay=settings.weight_decay, global_clipnorm=settings.clip_norm
        )

    training.run_phases(
        run, [phase], batches=training_batches, optimizer=optimizer, seed=settings.seed
    )


def stored_features(settings, run):
    """The three splits as features: of all views of the training pictures, of one view else.

    One file holds the features of all pictures, whatever is held out: view v of picture p, of P in
    all, is row v · P + p.
    """
    paths = np.unique(np.concatenate([split.records.image_paths for split in all_splits(run)]))
    num_pictures = len(paths)
    pictures = Records("pictures", paths, [], [], np.zeros(num_pictures), np.arange(num_pictures))
    resizing = (settings.image_size, settings.resize, settings.crop_fraction)
    source = Views(Pictures(pictures, *resizing, cache=False), pictures, settings.views)
    backbone = run.model.image_encoder.get_layer("backbone")
    features = cached(cache_folder("features"), backbone, pictures, source)
    row_of_path = {path: row for row, path in enumerate(paths)}

    def with_features(split, views=1):
        first_view = np.array([row_of_path[path] for path in split.records.image_paths])
        rows = np.concatenate([first_view + view * num_pictures for view in range(views)])
        records = joined([split.records] * views)
        if split.records.semantics is not None:
            records = replace(records, semantics=split.records.semantics.repeated(views))
        return replace(split, records=records, source=Features(features, rows))

    return (
        with_features(run.train, settings.views),
        with_features(run.validation),
        with_features(run.test),
    )


def all_splits(run):
    """Splits of all classes: the run's if none is held out for validation, else opened again."""
    description = {name: value for name, value in run.folder.data.items() if name != "validation"}
    description["held_out"] = "test"
    if description == run.folder.data:
        return run.train, run.validation, run.test
    return [datasets.open(description, split) for split in datasets.SPLITS]


def measure_cost(run, model):
    """Processor time of this process in seconds, and its peak memory in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_memory_mib": used.ru_maxrss / 1024,
    }


if __name__ == "__main__":
    cli.run(main)
