"""Variances over points, on CUB-200-2011 or on Toy Birds when no data are given.

    python recipes/pfe_cub.py                                    # Toy Birds, minutes on two cores
    python recipes/pfe_cub.py --data-dir CUB_200_2011 --image-weights imagenet

Points first, by the softmax of InfoNCE on pooled towers; then the points are frozen, and a linear
map of each learns its variance: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019, here for
images and captions. So the variances cost the points nothing. The classes of `val1` are left out of
training: validation and calibration are of classes that the model has not seen, as the test is.

On Toy Birds the results have one more row: what an oracle reaches that knows all that was drawn and
said. Rerun the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo import cli, encoders, metrics, models, plots, training
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data import batches, captions, toy_birds
from zoo.data.pipeline.augmentation import Augmentation
from zoo.training.settings import (
    CUB_CAPTIONS,
    CUB_SPLITS,
    IMAGE_WEIGHTS,
    UNSAID,
    check_weights,
)


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """Settings for CUB; `toy` is what runs on Toy Birds."""

    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    captions: Path | None = setting(None, CUB_CAPTIONS)
    out: Path = differs(Path("runs/pfe_cub"))
    held_out: Literal[CUB_SPLITS] = differs(
        "test",
        help="classes to evaluate on; choose settings on val1 to val3, without --validation",
    )
    validation: Literal["val1", "val2", "val3", "none"] = setting(
        "val1",
        "classes to leave out of training and to calibrate on; none: held-out images of the "
        "training's classes",
    )
    more_classes: int = setting(0, "further species to draw and to train on", toy=360, smoke=0)
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "mobilenet_v2", "image encoder", toy="tiny_layout"
    )
    dim: Size = setting(512, "dimensions of the embedding", toy=64)
    word_dim: Size = setting(300, "dimensions of a word vector", toy=64)
    temperature: Positive = setting(0.07, "initial temperature of the softmax")
    drop_rate: Share = setting(0.2, "share of the image map's cells left out", toy=0.0)
    word_dropping: Share = setting(0.1, "probability that a word is left out", toy=0.0)
    flip: bool = setting(True, "mirror half of the pictures")
    batch_size: Size = setting(90, "pairs, each of another class", toy=180)
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: captions / batch size", toy=125, smoke=2
    )
    epochs: Size = setting(10, "epochs that train the points", toy=12, smoke=1)
    learning_rate: float = setting(5e-4, "peak learning rate of AdamP, with cosine decay", toy=2e-3)
    variance_epochs: int = setting(2, "epochs that train the variances", smoke=1)
    variance_rate: float = setting(3e-3, "peak learning rate for the variances, with cosine decay")
    regularization: float = setting(0.01, "L2 penalty on the maps that give the variances", toy=0.3)
    image_features: bool = setting(
        False, "an image's variance reads the backbone's features, not the point", toy=True
    )
    select: Literal["last"] = setting(
        "last", "validation ranks by points, so that it cannot choose an epoch of variances"
    )

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.backbone)
        if self.more_classes and self.data_dir is not None:
            raise ValueError(f"--more-classes are drawn: no --data-dir; received {self.data_dir}")
        if self.validation != "none" and self.held_out != "test":
            raise ValueError(
                f"--held-out {self.held_out} needs --validation none; received {self.validation}"
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
        validation=None if settings.validation == "none" else settings.validation,
        more_classes=settings.more_classes or None,
        **settings.picture_options(),
    )


def train_and_evaluate(settings, data_description):
    """Trains points, then their variances, and evaluates once on the test split."""
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        points = build_points(settings, run.train)
        gaussians = models.pfe(
            points,
            regularization=settings.regularization,
            image_features=settings.image_features,
        )
        run.model = gaussians.with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run, points)
    is_toy = settings.data_dir is None
    return training.finish(
        run,
        **settings.evaluation(),
        measure_more=measure_oracle if is_toy else None,
        report=plots.draw_run,
    )


def build_points(settings, train_split):
    """The untrained points: InfoNCE on pooled towers."""
    tokenizer = captions.word_tokenizer(train_split.records.captions, max_words=settings.max_words)
    return models.infonce(
        encoders.convolutional(settings.backbone, settings.image_size, settings.image_weights),
        tokenizer,
        dim=settings.dim,
        word_dim=settings.word_dim,
        temperature=settings.temperature,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


def train_phases(settings, run, points):
    """The points alone, then the variances of the frozen points."""
    points_phase = training.Phase(
        "points",
        epochs=settings.epochs,
        rate=training.cosine_decay(settings.learning_rate),
        model=points,
    )
    variances_phase = training.Phase(
        "variances",
        epochs=settings.variance_epochs,
        rate=training.cosine_decay(settings.variance_rate),
        frozen=[points.image_encoder, points.caption_encoder],
    )
    augmentation = Augmentation(flip=settings.flip, word_dropping=settings.word_dropping)

    def training_batches(train_split, seed):
        return settings.stream(
            batches.class_pairs, train_split, points.tokenizer, seed, augmentation
        )

    def optimizer(model, learning_rate):
        return training.AdamP(learning_rate)

    training.run_phases(
        run,
        [points_phase, variances_phase],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


def measure_oracle(run, model):
    """Retrieval of an oracle that knows what was drawn and named, see `toy_birds.oracle`."""
    records = run.test.records
    relevance = metrics.LabelRelevance(records.image_labels, records.caption_labels)
    return {"oracle": metrics.evaluate_retrieval(toy_birds.oracle(records), relevance)}


if __name__ == "__main__":
    cli.run(main)
