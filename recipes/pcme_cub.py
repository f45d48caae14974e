"""PCME on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/pcme_cub.py                                   # Toy Birds, minutes on two cores
    python recipes/pcme_cub.py --data-dir CUB_200_2011 --image-weights imagenet \\
        --glove glove.840B.300d.txt
    python recipes/pcme_cub.py --mean-only                       # the paper's "μ only"
    python recipes/pcme_cub.py --held-out seen_test              # table E.3: the seen classes

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021. Trains on the 150
classes of Xian's split and evaluates on the 50 classes that training has not seen. Rerun the
command to resume a stopped run. Results are printed, and kept in the run folder with the model,
the history and the plots.

Read on from `Settings`, one line per flag, and `main`, which calls the functions below it in order.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from zoo import cli, encoders, models, plots, training
from zoo.cli import Positive, Share, Signed, Size, differs, setting
from zoo.data import batches, captions
from zoo.data.pipeline.augmentation import Augmentation, RandomCrop
from zoo.training.settings import (
    CUB_CAPTIONS,
    CUB_HELD_OUT,
    CUB_SPLITS,
    IMAGE_WEIGHTS,
    UNSAID,
    check_weights,
)


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The paper's settings for CUB, with their sources.

    `toy` is the value on Toy Birds and `smoke` that with `--smoke`. `differs` changes the default
    of a flag that all retrieval recipes have.
    """

    default_backbone: ClassVar[str] = "resnet50"
    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

    # Run and evaluation
    out: Path = differs(Path("runs/pcme_cub"))
    held_out: Literal[CUB_SPLITS] = differs("test", help=CUB_HELD_OUT)
    select: Literal["best", "last"] = differs("last", source="PCME, released code", toy="best")
    test_similarities: tuple[str, ...] = differs(("own", "euclidean"), source="PCME, table E.1")

    # Data
    captions: Path | None = setting(None, CUB_CAPTIONS)
    image_size: Size = differs(224, source="PCME, released code")
    crop_fraction: Share = setting(
        224 / 256,
        "side of the cropped middle, as a share of the photo's shorter side",
        source="PCME, released code",
        toy=1.0,
    )
    max_words: Size = differs(40)
    min_count: int = setting(
        4,
        "least occurrences of a word; rarer words become one unknown word",
        source="PCME, released code",
        toy=1,
    )

    # Batches and augmentation
    batch_size: Size = setting(150, "pairs per batch", source="PCME, released code", toy=90)
    pairs_per_class: Size = setting(
        1, "pairs of each class in a batch", source="PCME, released code"
    )
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: captions / batch size", toy=60, smoke=2
    )
    crop_and_flip: bool = setting(
        False,
        "train on random crops of 8 to 100 % of the area, mirrored half of the time",
        source="PCME, released code",
    )
    cutout: Share = setting(
        0.2, "probability that Cutout hides part of a picture", source="PCME, appendix C.2"
    )
    word_dropping: Share = setting(
        0.1, "probability that a word becomes <unk>", source="PCME, appendix C.2", toy=0.3
    )
    word_deleting: Share = setting(
        0.1,
        "share of a caption's words that are deleted besides, rounded down",
        source="PCME, released code",
        toy=0.0,
    )

    # Model
    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None, "image encoder; default: that of the weights' file name, else resnet50", toy="tiny"
    )
    glove: Path | None = setting(None, "text file of word vectors to start from")
    dim: Size = setting(512, "dimensions of the embedding", source="PCME, appendix C.2", toy=64)
    word_dim: Size = setting(
        300, "dimensions of a word vector", source="PCME, released code", toy=64
    )
    sentence_dim: Size | None = setting(None, "width of the sentence GRU's states; default: --dim")
    mean_only: bool = setting(False, "train points instead of Gaussians", source="PCME, table 2")
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = setting(
        "ellipsoidal",
        "variances: one per dimension, their mean, or one value",
        source="PCME, table D.2",
    )
    mean_attention: bool = setting(True, "local attention in the mean", source="PCME, table D.3")
    variance_attention: bool = setting(
        True, "local attention in the log variance", source="PCME, table D.3"
    )
    variance_gru: bool = setting(
        True, "a second GRU for the log variance of captions", source="PCME, released code"
    )
    squash_variance: bool = setting(
        False, "sigmoid and LayerNorm in the log variance too", source="PCME, table D.3"
    )
    unit_mean: bool = setting(True, "give means unit length", source="PCME, section 3.2.1")
    log_variance_bias: Signed = setting(
        -6.0,
        "initial log variance; at 0, as released, first distances are near sqrt(2 dim)",
        toy=-5.0,
    )

    # Matching probability and loss
    num_samples: Size = setting(7, "samples per embedding, J", source="PCME, appendix C.2")
    method: Literal["sampled", "moment_matched"] = setting(
        "sampled", "match probability from samples (the paper) or by quadrature (no noise)"
    )
    scale: Positive = setting(
        10.0,
        "initial a in sigmoid(b - a d); twice the printed value: the code has sigmoid(2x)",
        source="PCME, appendix C.2",
    )
    shift: Signed = setting(10.0, "initial b; twice the printed value", source="PCME, appendix C.2")
    pair_weight: float = setting(
        2.0,
        "weight of a pair in the matching loss: 2 as released (once per direction), 1 as printed",
        source="PCME, released code",
        toy=1.0,
    )
    kl_weight: float = setting(
        1e-3, "weight of the KL divergence from N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        10.0, "weight of the uniformity loss", source="PCME, appendix C.2", toy=30.0
    )

    # Optimizer and phases
    learning_rate: float = setting(
        1e-4,
        "peak learning rate, with cosine decay in each phase",
        source="PCME, appendix C.2",
        toy=2e-3,
    )
    clip_norm: Positive | None = setting(
        2.0,
        "gradients with a larger norm are scaled to it",
        source="PCME, released code",
        toy=None,
    )
    cosine_epochs: int | None = setting(
        50,
        "epochs after which the cosine of a phase is 0; default: its own epochs",
        source="PCME, released code",
        toy=None,
    )
    warm_up_epochs: int = setting(
        10,
        "epochs in which the heads and GRUs alone train",
        source="PCME, appendix C.2",
        toy=0,
        smoke=1,
    )
    freeze_text: bool = setting(
        True, "freeze the word vectors in the warm-up too", source="PCME, appendix C.2"
    )
    cache_features: bool = setting(
        True, "warm up on stored features of the frozen backbone; Cutout then cuts feature maps"
    )
    fine_tuning_epochs: int = setting(
        50, "epochs in which everything trains", source="PCME, appendix C.2", toy=20, smoke=1
    )
    fine_tuning_rate: float = setting(
        1.0, "factor of the learning rate in fine-tuning", source="PCME, released code"
    )

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.network)
        if self.squash_variance and not self.variance_attention:
            raise ValueError("--squash-variance squashes the branch of --variance-attention")
        if self.crop_and_flip and self.cache_features and self.warm_up_epochs:
            raise ValueError("--crop-and-flip needs --no-cache-features: stored features are whole")

    @property
    def network(self):
        """The name of the image encoder: `--backbone`, else the one the weights' file names."""
        backbone_of_weights = encoders.backbone_of_file(self.image_weights)
        return self.backbone or backbone_of_weights or self.default_backbone


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of CUB, or of Toy Birds without `--data-dir`, for `zoo.data.open`."""
    return settings.describe_data(
        "cub", "toy_birds", captions=settings.captions, **settings.picture_options()
    )


def train_and_evaluate(settings, data_description):
    """Trains, evaluates once on the test split, and returns the results.

    What a second call of the same command does:
    1. The run is finished: its results are shown.
    2. A phase has a checkpoint: the phase resumes after its last complete epoch.
    3. Else: the phase starts from the weights that the phase before it has left.
    A folder with other settings or data is refused.
    """
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def build(settings, train_split):
    """The untrained model; its vocabulary is that of the training captions."""
    tokenizer = captions.word_tokenizer(
        train_split.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    return models.pcme(
        encoders.convolutional(settings.network, settings.image_size, settings.image_weights),
        tokenizer,
        word_dim=word_dim,
        word_vectors=word_vectors,
        covariance=None if settings.mean_only else settings.covariance,
        dim=settings.dim,
        sentence_dim=settings.sentence_dim,
        variance_gru=settings.variance_gru,
        mean_attention=settings.mean_attention,
        variance_attention=settings.variance_attention,
        squash_variance=settings.squash_variance,
        unit_mean=settings.unit_mean,
        log_variance_bias=settings.log_variance_bias,
        num_samples=settings.num_samples,
        method=settings.method,
        scale=settings.scale,
        shift=settings.shift,
        pair_weight=settings.pair_weight,
        kl_weight=settings.kl_weight,
        uniformity_weight=settings.uniformity_weight,
        seed=settings.seed,
    )


def train_phases(settings, run):
    """Warm-up over a frozen CNN and frozen word vectors, then everything."""

    def training_batches(train_split, seed):
        return batches_of(settings, train_split, run.model.tokenizer, seed)

    def optimizer(model, learning_rate):
        return training.AdamP(learning_rate, global_clipnorm=settings.clip_norm)

    training.run_phases(
        run,
        [warm_up(settings, run), fine_tuning(settings)],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


def warm_up(settings, run):
    """The phase that trains the heads. Both GRUs are parts of the head (figure 3 (a), section
    3.1.1), so they train too."""
    backbone = run.model.image_encoder.get_layer("backbone")
    words = run.model.caption_encoder.get_layer("backbone").get_layer("words")
    model, splits = None, None  # the run's
    if settings.warm_up_epochs and settings.cache_features:
        model, splits = run.without_backbone()
    return training.Phase(
        "warm_up",
        epochs=settings.warm_up_epochs,
        rate=training.cosine_decay(settings.learning_rate, over_epochs=settings.cosine_epochs),
        frozen=[backbone, words] if settings.freeze_text else [backbone],
        model=model,
        splits=splits,
    )


def fine_tuning(settings):
    """The phase that trains everything."""
    return training.Phase(
        "fine_tuning",
        epochs=settings.fine_tuning_epochs,
        rate=training.cosine_decay(settings.learning_rate * settings.fine_tuning_rate),
    )


def batches_of(settings, train_split, tokenizer, seed):
    """The stream of batches: pairs of classes (CUB) or of captions (COCO), augmented."""
    augmentation = Augmentation(
        crop=settings.crop if settings.crop_and_flip else None,
        flip=settings.crop_and_flip,
        cutout=settings.cutout,
        word_dropping=settings.word_dropping,
        word_deleting=settings.word_deleting,
    )
    if train_split.records.class_names is None:
        return settings.stream(
            batches.image_caption_pairs, train_split, tokenizer, seed, augmentation
        )
    return settings.stream(
        batches.class_pairs,
        train_split,
        tokenizer,
        seed,
        augmentation,
        pairs_per_class=settings.pairs_per_class,
    )


if __name__ == "__main__":
    cli.run(main)
