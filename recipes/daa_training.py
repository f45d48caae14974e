"""What DAA's recipes over PCME-BERT share: settings, the model, its phases."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from halo_search.errors import InputError, require
from zoo import encoders, models, plots, similarities, training
from zoo.cli import Positive, Share, Signed, Size, differs, setting
from zoo.data import captions, read_bert_tokenizer
from zoo.data.pipeline.augmentation import Augmentation, RandomCrop
from zoo.training.settings import IMAGE_WEIGHTS, UNSAID, check_weights


@dataclass(frozen=True, kw_only=True)
class DAASettings(training.RetrievalSettings):
    """PCME-BERT with DAA, as for COCO; `toy` runs on Toy Scenes and Toy Birds."""

    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

    # Evaluation
    asp: bool = setting(True, "measure ASP, the average semantic precision")
    test_similarities: tuple[str, ...] = setting(
        ("own", "cosine"),
        f"rankings: own, {', '.join(similarities.NAMES)}; DAA's ASP ranks by the cosine of means",
        source="DAA, section 4.1",
    )

    # Data
    image_size: Size = differs(224, source="PCME, released code")
    crop_fraction: Share = setting(
        224 / 256,
        "side of the cropped middle, as a share of the photo's shorter side",
        source="PCME, released code",
        toy=1.0,
    )

    # Batches and augmentation
    batch_size: Size = setting(128, "pairs per batch", source="DAA, section 5.2", toy=90)
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: captions / batch size", toy=60, smoke=2
    )
    crop_and_flip: bool = setting(
        True,
        "train on random crops of 8 to 100 % of the area, mirrored half of the time",
        source="PCME, released code",
        toy=False,
    )
    cutout: Share = setting(
        0.2, "probability that Cutout hides part of a picture", source="DAA, section 5.2"
    )
    word_dropping: Share = setting(
        0.1, "probability that a word becomes <unk>", source="DAA, section 5.2", toy=0.3
    )
    word_deleting: Share = setting(
        0.1,
        "share of a caption's words that are deleted besides, rounded down",
        source="PCME, released code",
        toy=0.0,
    )

    # Model
    image_weights: str | None = setting(UNSAID, IMAGE_WEIGHTS)
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet152", "image encoder", source="DAA, section 5.2", toy="tiny"
    )
    bert: Path | None = setting(None, "folder of BERT's preset; needed with --data-dir")
    bert_vocabulary: Path | None = setting(None, "BERT's vocab.txt")
    dim: Size = setting(1024, "dimensions of the embedding", source="DAA, section 5.2", toy=64)
    log_variance_bias: Signed = setting(-6.0, "initial log variance", toy=-5.0)

    # Matching probability and loss
    num_samples: Size = setting(5, "samples per embedding, J", source="DAA, section 5.2")
    method: Literal["sampled", "moment_matched"] = setting(
        "sampled", "match probability from samples (the paper) or by quadrature (no noise)"
    )
    scale: Positive = setting(
        30.0,
        "initial a in sigmoid(b - a d); twice the printed 15",
        source="PCME, appendix C.2",
        toy=10.0,
    )
    shift: Signed = setting(
        30.0, "initial b in the match probability", source="PCME, appendix C.2", toy=10.0
    )
    pair_weight: float = setting(
        2.0,
        "weight of a pair in the matching loss: 2 as released (once per direction), 1 as printed",
        source="DAA, released code",
        toy=1.0,
    )
    kl_weight: float = setting(
        1e-5, "weight of the KL divergence from N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        0.0, "weight of the uniformity loss", source="PCME, appendix C.2", toy=30.0
    )
    daa_weight: float = setting(
        2000.0,
        "weight of semantic precision (DAA), twice the code's; 0: the base model",
        source="DAA, released code",
        toy=300.0,
    )
    daa_samples: int = setting(
        5,
        "rank so many samples of each Gaussian; 0: the model's own logits",
        source="DAA, released code",
        toy=0,
    )
    daa_temperature: Positive = differs(0.01, help="temperature of the ranks", toy=0.1)
    semantic_temperature: Positive | None = differs(None, toy=0.01)

    # Optimizer and phases
    learning_rate: float = setting(
        1.5e-4,
        "learning rate of AdamP, with cosine decay in each phase",
        source="DAA, section 5.2",
        toy=2e-3,
    )
    clip_norm: Positive = setting(
        2.0, "gradients with a larger norm are scaled to it", source="DAA, released code", toy=100.0
    )
    warm_up_epochs: int = setting(
        3,
        "epochs of pre-training, in which the learning rate rises",
        source="DAA, section 5.2",
        toy=0,
        smoke=1,
    )
    pre_training_epochs: int = setting(
        30,
        "epochs with the image network frozen, warm-up included",
        source="DAA, figure 4",
        toy=0,
        smoke=1,
    )
    fine_tuning_epochs: int = setting(
        40, "epochs in which everything trains", source="DAA, figure 4", toy=20, smoke=1
    )
    fine_tuning_rate: float = setting(
        0.1, "factor of the learning rate in fine-tuning", source="DAA, released code", toy=1.0
    )

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.backbone)
        if self.warm_up_epochs > self.pre_training_epochs:
            raise ValueError("--pre-training-epochs must not be below --warm-up-epochs")


def train_and_evaluate(settings, data_description, make_batches):
    """Trains on the batches of `make_batches`, a function of `zoo.data.batches`, and evaluates once
    on the test split."""
    require("keras_hub", extra="models")  # for BERT, before the data are read
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run, make_batches)
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def build(settings, train_split):
    """The untrained PCME-BERT."""
    tokenizer, bert = tokenizer_and_bert(settings, train_split.records)
    return models.pcme_bert(
        encoders.convolutional(settings.backbone, settings.image_size, settings.image_weights),
        tokenizer,
        bert,
        dim=settings.dim,
        num_samples=settings.num_samples,
        method=settings.method,
        scale=settings.scale,
        shift=settings.shift,
        kl_weight=settings.kl_weight,
        uniformity_weight=settings.uniformity_weight,
        pair_weight=settings.pair_weight,
        seed=settings.seed,
        log_variance_bias=settings.log_variance_bias,
    )


def tokenizer_and_bert(settings, records):
    """The tokenizer, and the folder of BERT's preset; on toy data words, and None, which builds a
    small BERT. Raises InputError if a flag of BERT is missing with `--data-dir`."""
    if settings.data_dir is None:
        return captions.word_tokenizer(records.captions, max_words=settings.max_words), None
    if settings.bert is None or settings.bert_vocabulary is None:
        raise InputError("--data-dir needs --bert and --bert-vocabulary")
    return read_bert_tokenizer(settings.bert_vocabulary, settings.max_words), settings.bert


def train_phases(settings, run, make_batches):
    """The image head and the complete text encoder first, with a rising rate, then everything."""
    backbone = run.model.image_encoder.get_layer("backbone")
    pre_training = training.Phase(
        "pre_training",
        epochs=settings.pre_training_epochs,
        rate=training.cosine_decay(settings.learning_rate, settings.warm_up_epochs),
        frozen=[backbone],
    )
    fine_tuning = training.Phase(
        "fine_tuning",
        epochs=settings.fine_tuning_epochs,
        rate=training.cosine_decay(settings.learning_rate * settings.fine_tuning_rate),
    )
    augmentation = Augmentation(
        crop=settings.crop if settings.crop_and_flip else None,
        flip=settings.crop_and_flip,
        cutout=settings.cutout,
        word_dropping=settings.word_dropping,
        word_deleting=settings.word_deleting,
    )

    def training_batches(train_split, seed):
        return settings.stream(make_batches, train_split, run.model.tokenizer, seed, augmentation)

    def optimizer(model, learning_rate):
        return training.AdamP(learning_rate, global_clipnorm=settings.clip_norm)

    training.run_phases(
        run,
        [pre_training, fine_tuning],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )
