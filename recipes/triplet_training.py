"""What the recipes of VSE++ and VSRN share, of points and of Gaussians: settings and training."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from zoo import encoders, losses, models, plots, similarities, training
from zoo.cli import differs, setting
from zoo.data import batches, captions
from zoo.data.pipeline.augmentation import Augmentation, RandomCrop
from zoo.losses.ranking import MINING
from zoo.training.settings import IMAGE_WEIGHTS, UNSAID, check_weights

import keras

# What the papers train Gaussians on, and the other order of KL.
SIMILARITIES = ("wasserstein_2", "kl", "reverse_kl", "min_kl")


@dataclass(frozen=True, kw_only=True)
class TripletSettings(training.RetrievalSettings):
    """The settings of Pishdad et al., 2022, which are VSE++'s and VSRN's; `toy` is for scenes."""

    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    features: Literal["pictures", "regions"] = setting(
        "pictures", "features that are read of an image"
    )
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet152", "image network", source="Pishdad et al., section 4.2", toy="tiny"
    )
    fine_tune: bool = setting(
        False,
        "train the image network in all epochs, for one without pretrained weights",
        source="Pishdad et al., section 4.2",
        toy=True,
    )
    image_size: int = differs(224, source="VSE++, released code", toy=32)
    crop_fraction: float = setting(
        224 / 256,
        "side of the cropped middle, as a share of the photo's shorter side",
        source="VSE++, released code",
        toy=1.0,
    )
    dim: int = setting(
        1024, "dimensions of the embedding", source="Pishdad et al., section 4.2", toy=64
    )
    word_dim: int = setting(
        300, "dimensions of a word vector", source="Pishdad et al., section 4.2", toy=64
    )
    max_words: int = differs(40, toy=48)
    min_count: int = setting(
        4,
        "least occurrences of a word; rarer words become one unknown word",
        source="VSE++, released code",
        toy=1,
    )
    margin: float = setting(0.2, "margin of the triplet loss", source="Pishdad et al., section 4.2")
    mining: Literal[MINING] = setting(
        "hardest",
        "which negatives the triplet loss takes after the warm-up",
        source="VSE++, released code",
        toy="semi_hard",
    )
    learning_rate: float = setting(
        2e-4, "learning rate of Adam", source="Pishdad et al., section 4.2", toy=2e-3
    )
    clip_norm: float = setting(
        2.0, "gradients with a larger norm are scaled to it", source="VSE++, released code"
    )
    batch_size: int = setting(128, "pairs per batch", source="Pishdad et al., section 4.2")
    warm_up_epochs: int = setting(
        1,
        "first epochs, which sum over all negatives so that training does not collapse",
        toy=6,
        smoke=1,
    )
    epochs: int = setting(
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
    crop_and_flip: bool = setting(
        True,
        "train on random crops of 8 to 100 % of the area, mirrored half of the time",
        source="VSE++, released code",
        toy=False,
    )
    word_dropping: float = setting(0.0, "probability that a word is left out", toy=0.1)

    def __post_init__(self):
        super().__post_init__()
        network = self.backbone if self.features == "pictures" else None
        check_weights(self, "image_weights", network)
        if not 0 <= self.warm_up_epochs <= self.drop_epoch <= self.epochs:
            raise ValueError("--warm-up-epochs, --drop-epoch and --epochs must not fall")
        if self.fine_tuning_epochs and self.features == "regions":
            raise ValueError(
                "--fine-tuning-epochs are of a network over pictures; regions have none"
            )


@dataclass(frozen=True, kw_only=True)
class MeanSettings(TripletSettings):
    """What VSE++ has besides: the mean of the features goes through a linear map."""

    unit_features: bool = setting(
        True,
        "scale a network's mean feature to length one before the linear map; regions never",
        source="VSE++, released code",
    )

    def of_means(self):
        """The options of `zoo.models.vsepp`."""
        return {"unit_features": self.unit_features and self.features == "pictures"}


@dataclass(frozen=True, kw_only=True)
class GaussianSettings(TripletSettings):
    """What a Gaussian has besides."""

    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = setting(
        "ellipsoidal", "variances: one per dimension, their mean, or one value"
    )
    similarity: Literal[SIMILARITIES] = setting(
        "wasserstein_2",
        "similarity to train and to rank with",
        source="Pishdad et al., section 4.4",
        toy="kl",
    )
    lowest_variance: float = setting(
        0.1, "bound on the variance of a dimension", source="Pishdad et al., section 4.2"
    )
    highest_variance: float = setting(
        10.0, "bound on the variance of a dimension", source="Pishdad et al., section 4.2"
    )
    initial_log_variance: float = setting(
        0.0, "initial log variance; 0 is the middle of the bounds"
    )
    test_similarities: tuple[str, ...] = differs(("own", "euclidean"))

    def of_gaussian(self):
        """The options of `zoo.models.gaussian`."""
        return {
            "covariance": self.covariance,
            "similarity": similarities.get(self.similarity),
            "bounds": (self.lowest_variance, self.highest_variance),
            "initial_log_variance": self.initial_log_variance,
        }


def parts(settings, train):
    """The options that all four builders have."""
    words = captions.word_tokenizer(
        train.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    backbone = train.source.shape
    if settings.features == "pictures":
        backbone = encoders.convolutional(
            settings.backbone, settings.image_size, settings.image_weights, settings.fine_tune
        )
    return {
        "image_backbone": backbone,
        "tokenizer": words,
        "dim": settings.dim,
        "word_dim": settings.word_dim,
        "margin": settings.margin,
        "mining": settings.mining,
    }


def captioned(settings, model):
    """The model to fit where regions also have to tell the captions."""
    weight = settings.captioning_weight
    if not weight:
        return model
    size = {"word_dim": settings.word_dim, "hidden_dim": settings.dim // 4}
    return models.with_captioning(model, weight, **size)


def data(settings, loader):
    """What is read: pictures by a loader of `zoo.data.LOADERS`, or regions."""
    shown = settings.pictures()
    if settings.features == "regions":
        loader, shown = "regions", {}
    layout = {} if settings.data_dir else {"layout": loader}
    return settings.data(loader, "toy_scenes", **shown, **layout)


def train(settings, loader, build, prepare=lambda settings, model: model):
    """Builds, by `build(settings, train)`, fits and evaluates; `loader` is of the pictures, and
    `prepare(settings, model)` gives the model to fit, which shares the weights."""
    run = training.start(settings, data(settings, loader))
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run, prepare(settings, run.model))
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def train_phases(settings, run, model):
    """The sum of all hinges first, then the hardest negatives; the network over pictures last."""
    warm_up, rate = settings.warm_up_epochs, settings.learning_rate
    hinges = losses.TripletRanking(settings.margin, mining="sum")
    mined = losses.TripletRanking(settings.margin, mining=settings.mining)
    frozen = []
    if settings.fine_tuning_epochs and not settings.fine_tune:
        frozen = [model.image_encoder.get_layer("backbone")]
    phases = [
        training.Phase(
            "sum_of_hinges", warm_up, rate=rate, loss=hinges, frozen=frozen, model=model
        ),
        training.Phase(
            settings.mining,
            settings.epochs - warm_up,
            rate=training.drop_after(rate, settings.drop_epoch - warm_up),
            loss=mined,
            frozen=frozen,
            model=model,
        ),
        training.Phase(
            "fine_tuning",
            settings.fine_tuning_epochs,
            rate=settings.fine_tuning_rate,
            loss=mined,
            model=model,
        ),
    ]

    def stream(train, seed):
        crops = settings.crop_and_flip and settings.features == "pictures"
        augmentation = Augmentation(
            crop=settings.crop if crops else None,
            flip=crops,
            word_dropping=settings.word_dropping,
        )
        words = model.tokenizer
        return settings.stream(batches.image_caption_pairs, train, words, seed, augmentation)

    def adam(model, rate):
        return keras.optimizers.Adam(rate, global_clipnorm=settings.clip_norm)

    training.fit(run, phases, stream, adam, settings.seed)
