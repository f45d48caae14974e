"""PVSE on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/pvse_cub.py                                   # Toy Birds
    python recipes/pvse_cub.py --num-embeddings 1                # a single embedding
    python recipes/pvse_cub.py --method vse0                     # without PIE-Net, all negatives
    python recipes/pvse_cub.py --data-dir CUB_200_2011 --image-weights imagenet

Song and Soleymani, "Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval", CVPR 2019.
PCME's paper compares with it on CUB, so the split, the batches and the phases are those of
`pcme_cub.py`, and the loss and the optimiser are PVSE's. Rerun the command to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dive_coco import measure_sets
from pcme_cub import describe_data
from zoo import cli, encoders, models, plots, training
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data import batches, captions
from zoo.data.pipeline.augmentation import Augmentation
from zoo.training.settings import (
    CUB_CAPTIONS,
    CUB_HELD_OUT,
    CUB_SPLITS,
    IMAGE_WEIGHTS,
    UNSAID,
    check_weights,
)

import keras


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """PVSE's settings in PCME's comparison on CUB; `toy` runs on Toy Birds."""

    # Run and evaluation
    out: Path = differs(Path("runs/pvse_cub"))
    held_out: Literal[CUB_SPLITS] = differs("test", help=CUB_HELD_OUT)
    select: Literal["best", "last"] = differs("last", source="PCME, released code", toy="best")

    # Data
    captions: Path | None = setting(None, CUB_CAPTIONS)
    image_size: Size = differs(224, source="PVSE, released code")
    crop_fraction: Share = setting(
        224 / 256,
        "side of the cropped middle, as a share of the photo's shorter side",
        source="PCME, released code",
        toy=1.0,
    )
    min_count: int = setting(
        4,
        "least occurrences of a word; rarer words become one unknown word",
        source="PCME, released code",
        toy=1,
    )

    # Batches and augmentation
    batch_size: Size = setting(150, "pairs, one a class", source="PCME, released code", toy=90)
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: captions / batch size", toy=60, smoke=2
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
    method: Literal["pvse", "vse0"] = setting(
        "pvse", "PIE-Net, or one embedding without it and all negatives", source="PCME, table 2"
    )
    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet50", "image encoder", source="PCME, appendix C.2", toy="tiny"
    )
    glove: Path | None = setting(None, "text file of word vectors to start from")
    dim: Size = setting(512, "dimensions of an embedding", source="PCME, appendix C.2", toy=64)
    word_dim: Size = setting(
        300, "dimensions of a word vector", source="PVSE, released code", toy=64
    )
    num_embeddings: Size = setting(2, "embeddings per item, K", source="PCME, table 2")

    # Loss
    margin: float = setting(0.1, "margin of the triplet loss", source="PVSE, released code")
    mining: Literal["sum", "hardest", "semi_hard"] = setting(
        "hardest", "which negatives the triplet loss takes", source="PVSE, released code", toy="sum"
    )
    discrepancy_weight: float = setting(
        0.01, "weight of the MMD loss", source="PVSE, released code"
    )
    diversity_weight: float = setting(
        0.1, "weight of the diversity loss", source="PVSE, released code"
    )

    # Optimizer and phases
    learning_rate: float = setting(
        2e-4,
        "learning rate of Adam, with cosine decay in each phase in place of plateaus",
        source="PVSE, released code",
        toy=2e-3,
    )
    amsgrad: bool = setting(
        True, "Adam's variant that never lowers its second average", source="PVSE, released code"
    )
    clip_norm: Positive = setting(
        2.0, "gradients with a larger norm are scaled to it", source="PVSE, released code"
    )
    warm_up_epochs: int = setting(
        10, "epochs in which the heads alone train", source="PCME, appendix C.2", toy=0, smoke=1
    )
    fine_tuning_epochs: int = setting(
        50, "epochs in which everything trains", source="PCME, appendix C.2", toy=20, smoke=1
    )

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.backbone)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    run = training.start(settings, describe_data(settings))
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(
        run,
        **settings.evaluation(),
        measure_more=measure_sets if settings.method == "pvse" else None,
        report=plots.draw_run,
    )


def build(settings, train_split):
    """The untrained model: PVSE, or VSE0 on the same towers."""
    tokenizer = captions.word_tokenizer(
        train_split.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    towers = {
        "image_backbone": encoders.convolutional(
            settings.backbone, settings.image_size, settings.image_weights
        ),
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "margin": settings.margin,
        "word_dim": word_dim,
        "word_vectors": word_vectors,
    }
    if settings.method == "vse0":
        return models.vse0(**towers)
    return models.pvse(
        num_embeddings=settings.num_embeddings,
        mining=settings.mining,
        discrepancy_weight=settings.discrepancy_weight,
        diversity_weight=settings.diversity_weight,
        seed=settings.seed,
        **towers,
    )


def train_phases(settings, run):
    """Warm-up with a frozen CNN and frozen word vectors, then everything."""
    rate = training.cosine_decay(settings.learning_rate)
    backbone = run.model.image_encoder.get_layer("backbone")
    words = run.model.caption_encoder.get_layer("backbone").get_layer("words")
    warm_up = training.Phase(
        "warm_up", epochs=settings.warm_up_epochs, rate=rate, frozen=[backbone, words]
    )
    fine_tuning = training.Phase("fine_tuning", epochs=settings.fine_tuning_epochs, rate=rate)
    augmentation = Augmentation(
        word_dropping=settings.word_dropping, word_deleting=settings.word_deleting
    )

    def training_batches(train_split, seed):
        return settings.stream(
            batches.class_pairs, train_split, run.model.tokenizer, seed, augmentation
        )

    def optimizer(model, learning_rate):
        return keras.optimizers.Adam(
            learning_rate, amsgrad=settings.amsgrad, global_clipnorm=settings.clip_norm
        )

    training.run_phases(
        run,
        [warm_up, fine_tuning],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


if __name__ == "__main__":
    cli.run(main)
