"""What the recipes of VSE++ and VSRN share, for points and for Gaussians: settings and training."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from zoo import encoders, losses, models, plots, similarities, training
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data import batches, captions
from zoo.data.pipeline.augmentation import Augmentation, RandomCrop
from zoo.losses.ranking import MINING
from zoo.training.settings import IMAGE_WEIGHTS, UNSAID, check_weights

import keras

# What the papers train Gaussians on, and the other order of KL.
SIMILARITIES = ("wasserstein_2", "kl", "reverse_kl", "min_kl")


@dataclass(frozen=True, kw_only=True)
class TripletSettings(training.RetrievalSettings):
    """The settings of Pishdad et al., 2022, for VSE++ and VSRN; `toy` runs on Toy Scenes."""

    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

    # Data
    features: Literal["pictures", "regions"] = setting(
        "pictures", "features that are read of an image"
    )
    image_size: Size = differs(224, source="VSE++, released code", toy=32)
    crop_fraction: Share = setting(
        224 / 256,
        "side of the cropped middle, as a share of the photo's shorter side",
        source="VSE++, released code",
        toy=1.0,
    )
    max_words: Size = differs(40, toy=48)
    min_count: int = setting(
        4,
        "least occurrences of a word; rarer words become one unknown word",
        source="VSE++, released code",
        toy=1,
    )

    # Batches and augmentation
    batch_size: Size = setting(128, "pairs per batch", source="Pishdad et al., section 4.2")
    crop_and_flip: bool = setting(
        True,
        "train on random crops of 8 to 100 % of the area, mirrored half of the time",
        source="VSE++, released code",
        toy=False,
    )
    word_dropping: Share = setting(0.0, "probability that a word is left out", toy=0.1)

    # Model and loss
    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet152", "image network", source="Pishdad et al., section 4.2", toy="tiny"
    )
    fine_tune: bool = setting(
        False,
        "train the image network in all epochs, for one without pretrained weights",
        source="Pishdad et al., section 4.2",
        toy=True,
    )
    dim: Size = setting(
        1024, "dimensions of the embedding", source="Pishdad et al., section 4.2", toy=64
    )
    word_dim: Size = setting(
        300, "dimensions of a word vector", source="Pishdad et al., section 4.2", toy=64
    )
    margin: float = setting(0.2, "margin of the triplet loss", source="Pishdad et al., section 4.2")
    mining: Literal[MINING] = setting(
        "hardest",
        "which negatives the triplet loss takes after the warm-up",
        source="VSE++, released code",
        toy="semi_hard",
    )

    # Optimizer and phases
    learning_rate: float = setting(
        2e-4, "learning rate of Adam", source="Pishdad et al., section 4.2", toy=2e-3
    )
    clip_norm: Positive = setting(
        2.0, "gradients with a larger norm are scaled to it", source="VSE++, released code"
    )
    warm_up_epochs: int = setting(
        1,
        "first epochs, which sum over all negatives so that training does not collapse",
        toy=6,
        smoke=1,
    )
    epochs: Size = setting(
        30, "total number of epochs", source="Pishdad et al., section 4.2", toy=24, smoke=2
    )
    drop_epoch: int = setting(
        15,
        "epoch after which the learning rate is a tenth",
        source="Pishdad et al., section 4.2",
        toy=18,
        smoke=1,
    )
    fine_tuning_epochs: int = setting(
        0,
        "further epochs, which train the image network too; 15 for the papers' ft rows",
        source="VSE++, section 4",
    )
    fine_tuning_rate: float = setting(
        2e-5, "learning rate of Adam in the fine-tuning epochs", source="VSE++, section 4"
    )

    def __post_init__(self):
        super().__post_init__()
        network = self.backbone if self.features == "pictures" else None
        check_weights(self, "image_weights", network)
        if not 0 <= self.warm_up_epochs <= self.drop_epoch <= self.epochs:
            raise ValueError(
                "--warm-up-epochs, --drop-epoch and --epochs must not decrease in this order"
            )
        if self.fine_tuning_epochs and self.features == "regions":
            raise ValueError("--fine-tuning-epochs needs an image network; regions have none")


def train_and_evaluate(settings, loader, build, with_extra_loss=None):
    """Trains, evaluates once on the test split, and returns the results.

    Args:
        settings: a `TripletSettings`.
        loader: of the pictures, a name of `zoo.data.LOADERS`.
        build: function `(settings, train_split) -> DualEncoder`.
        with_extra_loss: function `(settings, model)` that returns the model to fit, which shares
            the weights; default: `model` itself.
    """
    run = training.start(settings, describe_data(settings, loader))
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        fitted = run.model if with_extra_loss is None else with_extra_loss(settings, run.model)
        train_phases(settings, run, fitted)
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def describe_data(settings, loader):
    """The description of pictures by a loader of `zoo.data.LOADERS`, or of regions; on toy data, of
    Toy Scenes in the loader's layout."""
    picture_options = settings.picture_options()
    if settings.features == "regions":
        loader, picture_options = "regions", {}
    layout = {} if settings.data_dir else {"layout": loader}
    return settings.describe_data(loader, "toy_scenes", **picture_options, **layout)


def towers(settings, train_split):
    """The arguments that the builders of all recipes share: towers and loss."""
    tokenizer = captions.word_tokenizer(
        train_split.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    backbone = train_split.source.shape  # (regions, channels)
    if settings.features == "pictures":
        backbone = encoders.convolutional(
            settings.backbone, settings.image_size, settings.image_weights, settings.fine_tune
        )
    return {
        "image_backbone": backbone,
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "word_dim": settings.word_dim,
        "margin": settings.margin,
        "mining": settings.mining,
    }


def gaussian_head(settings):
    """The arguments that the builders of Gaussians have besides."""
    return {
        "covariance": settings.covariance,
        "similarity": similarities.get(settings.similarity),
        "bounds": (settings.lowest_variance, settings.highest_variance),
        "initial_log_variance": settings.initial_log_variance,
    }


def with_captioning(settings, model):
    """The model to fit with VSRN's second loss, by which regions predict the captions; the model
    itself where the loss has no weight."""
    if not settings.captioning_weight:
        return model
    return models.with_captioning(
        model,
        settings.captioning_weight,
        word_dim=settings.word_dim,
        hidden_dim=settings.dim // 4,
    )


def train_phases(settings, run, model):
    """The sum of all hinges first, then the hardest negatives; the network over pictures last."""
    rate = settings.learning_rate
    all_negatives = losses.TripletRanking(settings.margin, mining="sum")
    mined_negatives = losses.TripletRanking(settings.margin, mining=settings.mining)
    frozen = []
    if settings.fine_tuning_epochs and not settings.fine_tune:
        frozen = [model.image_encoder.get_layer("backbone")]
    phases = [
        training.Phase(
            "sum_of_hinges",
            epochs=settings.warm_up_epochs,
            rate=rate,
            loss=all_negatives,
            frozen=frozen,
            model=model,
        ),
        training.Phase(
            settings.mining,
            epochs=settings.epochs - settings.warm_up_epochs,
            rate=training.drop_after(rate, settings.drop_epoch - settings.warm_up_epochs),
            loss=mined_negatives,
            frozen=frozen,
            model=model,
        ),
        training.Phase(
            "fine_tuning",
            epochs=settings.fine_tuning_epochs,
            rate=settings.fine_tuning_rate,
            loss=mined_negatives,
            model=model,
        ),
    ]
    crops = settings.crop_and_flip and settings.features == "pictures"
    augmentation = Augmentation(
        crop=settings.crop if crops else None, flip=crops, word_dropping=settings.word_dropping
    )

    def training_batches(train_split, seed):
        return settings.stream(
            batches.image_caption_pairs, train_split, model.tokenizer, seed, augmentation
        )

    def optimizer(model, learning_rate):
        return keras.optimizers.Adam(learning_rate, global_clipnorm=settings.clip_norm)

    training.run_phases(
        run, phases, batches=training_batches, optimizer=optimizer, seed=settings.seed
    )
