"""DAA on SAF, SGR and SGRAF on Flickr30K, or on Toy Scenes' regions when no data are given.

    python recipes/daa_sgraf_flickr30k.py                          # SGR on Toy Scenes
    python recipes/daa_sgraf_flickr30k.py --module saf --out runs/saf
    python recipes/daa_sgraf_flickr30k.py --daa-weight 0           # the base model
    python recipes/daa_sgraf_flickr30k.py --ensemble runs/sgr runs/saf --out runs/sgraf
    python recipes/daa_sgraf_flickr30k.py --data-dir f30k_precomp

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022, on Diao et al., "Similarity Reasoning and Filtration for
Image-Text Matching", AAAI 2021, whose SGRAF is the mean of an SGR and a SAF that were trained
apart. `--data-dir` holds SCAN's files of precomputed regions. For COCO the paper has `--epochs 40
--drop-epoch 30` (DAA, section 5.2). Its code adds the two directions of DAA's term, of which ours
is the mean: its weights of 10 for Flickr30K and 25 for COCO are 20 and 50 here. Rerun the command
to resume a stopped run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo import cli, losses, models, plots, training
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data import batches, captions
from zoo.data.pipeline.augmentation import Augmentation
from zoo.losses.ranking import MINING
from zoo.models.run_folder import RunFolder
from zoo.models.sgraf import MODULES

import keras


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The papers' settings for Flickr30K; `toy` is what runs on Toy Scenes."""

    out: Path = differs(Path("runs/daa_sgraf_flickr30k"))
    ensemble: tuple[str, ...] = setting((), "finished runs to average instead of training")
    daa_weight: float = setting(
        20.0,
        "weight of semantic precision (DAA), twice the code's; 0: the base model",
        source="DAA, released code",
        toy=10.0,
    )
    daa_temperature: Positive = differs(0.001, help="temperature of the ranks", toy=0.01)
    asp: bool = setting(True, "measure ASP, the average semantic precision")
    module: Literal[MODULES] = setting("sgr", "how image and caption are compared")
    dim: Size = setting(
        1024, "channels per region and per word", source="SGRAF, section 4.2", toy=64
    )
    similarity_dim: Size = setting(
        256, "channels per alignment", source="SGRAF, section 4.2", toy=16
    )
    word_dim: Size = setting(
        300, "dimensions of a word vector", source="SGRAF, section 4.2", toy=64
    )
    num_steps: Size = setting(3, "number of graph convolutions in SGR", source="SGRAF, section 4.2")
    dropout: Share = setting(
        0.4, "dropout rate of words and inside the pooling", source="DAA, released code", toy=0.1
    )
    min_count: int = setting(
        4,
        "least occurrences of a word; rarer words become one unknown word",
        source="SCAN, released code",
        toy=1,
    )
    margin: float = setting(0.2, "margin of the triplet loss", source="SGRAF, section 4.2")
    mining: Literal[MINING] = setting(
        "hardest",
        "which negatives the triplet loss takes after the warm-up",
        source="SGRAF, section 4.2",
        toy="sum",
    )
    learning_rate: float = setting(
        6e-4, "learning rate of Adam", source="DAA, section 5.2", toy=2e-3
    )
    clip_norm: Positive = setting(
        2.0, "gradients with a larger norm are scaled to it", source="DAA, released code"
    )
    batch_size: Size = setting(128, "pairs per batch", source="DAA, section 5.2", toy=48)
    warm_up_epochs: int = setting(
        0, "first epochs, which sum over all negatives so that training does not collapse", smoke=1
    )
    epochs: Size = setting(50, "total number of epochs", source="DAA, section 5.2", toy=4, smoke=2)
    drop_epoch: int = setting(
        40,
        "epoch after which the learning rate is a tenth",
        source="DAA, section 5.2",
        toy=3,
        smoke=1,
    )

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.warm_up_epochs <= self.drop_epoch <= self.epochs:
            raise ValueError(
                "--warm-up-epochs, --drop-epoch and --epochs must not decrease in this order"
            )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of regions, or of those of Toy Scenes, for `zoo.data.open`."""
    layout = {} if settings.data_dir else {"layout": "regions"}
    return settings.describe_data("regions", "toy_scenes", **layout)


def train_and_evaluate(settings, data_description):
    """Trains and evaluates once on the test split; or with `--ensemble` averages finished runs."""
    if settings.ensemble:
        folder = RunFolder.open(settings.out, settings, data=data_description)
        return training.finish_ensemble(folder, settings.ensemble, **settings.benchmark())
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def build(settings, train_split):
    """The untrained SAF or SGR."""
    tokenizer = captions.word_tokenizer(
        train_split.records.captions, max_words=settings.max_words, min_count=settings.min_count
    )
    return models.sgraf(
        train_split.source.shape,
        tokenizer,
        dim=settings.dim,
        similarity_dim=settings.similarity_dim,
        module=settings.module,
        num_steps=settings.num_steps,
        word_dim=settings.word_dim,
        dropout=settings.dropout,
        margin=settings.margin,
        mining=settings.mining,
        seed=settings.seed,
    )


def train_phases(settings, run):
    """All negatives for the warm-up, then those of `--mining`; the rate falls once."""
    rate = settings.learning_rate
    warm_up = training.Phase(
        "warm_up",
        epochs=settings.warm_up_epochs,
        rate=rate,
        loss=losses.TripletRanking(settings.margin, "sum"),
    )
    main_phase = training.Phase(
        "training",
        epochs=settings.epochs - settings.warm_up_epochs,
        rate=training.drop_after(rate, settings.drop_epoch - settings.warm_up_epochs),
        loss=losses.TripletRanking(settings.margin, settings.mining),
    )

    def training_batches(train_split, seed):
        return settings.stream(
            batches.image_caption_pairs, train_split, run.model.tokenizer, seed, Augmentation()
        )

    def optimizer(model, learning_rate):
        return keras.optimizers.Adam(learning_rate, global_clipnorm=settings.clip_norm)

    training.run_phases(
        run,
        [warm_up, main_phase],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


if __name__ == "__main__":
    cli.run(main)
