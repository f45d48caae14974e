"""What DAA's recipes over PCME-BERT share: settings, the model, its phases."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from halo_search.errors import InputError, require
from pcme_cub import OnPictures
from zoo import encoders, models, plots, similarities, training
from zoo.cli import differs, setting
from zoo.data import captions, read_bert_tokenizer
from zoo.data.pipeline.augmentation import Augmentation, RandomCrop
from zoo.training.settings import check_weights


@dataclass(frozen=True, kw_only=True)
class DAASettings(OnPictures):
    """PCME-BERT with DAA as for COCO; `toy` is what runs on the embedded data."""

    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

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
    daa_temperature: float = differs(0.01, help="temperature of the ranks", toy=0.1)
    semantic_temperature: float | None = differs(None, toy=0.01)
    test_similarities: tuple[str, ...] = setting(
        ("own", "cosine"),
        f"rankings: own, {', '.join(similarities.NAMES)}; DAA's ASP ranks by the cosine of means",
        source="DAA, section 4.1",
    )
    asp: bool = setting(True, "measure ASP, the average semantic precision")
    backbone: Literal[encoders.CONVOLUTIONAL] = setting(
        "resnet152", "image encoder", source="DAA, section 5.2", toy="tiny"
    )
    image_size: int = differs(224, source="PCME, released code")
    bert: Path | None = setting(None, "folder of BERT's preset; needed with --data-dir")
    bert_vocabulary: Path | None = setting(None, "BERT's vocab.txt")
    dim: int = setting(1024, "dimensions of the embedding", source="DAA, section 5.2", toy=64)
    num_samples: int = setting(5, "samples per embedding, J", source="DAA, section 5.2")
    method: Literal["sampled", "moment_matched"] = setting(
        "sampled", "match probability from samples (the paper) or by quadrature (no noise)"
    )
    scale: float = setting(
        30.0,
        "initial a in sigmoid(b - a d); twice the printed 15",
        source="PCME, appendix C.2",
        toy=10.0,
    )
    shift: float = setting(
        30.0, "initial b in the match probability", source="PCME, appendix C.2", toy=10.0
    )
    log_variance_bias: float = setting(-6.0, "initial log variance", toy=-5.0)
    kl_weight: float = setting(
        1e-5, "weight of the KL divergence from N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        0.0, "weight of the uniformity loss", source="PCME, appendix C.2", toy=30.0
    )
    pair_weight: float = setting(
        2.0,
        "weight of a pair in the matching loss: 2 as released (once per direction), 1 as printed",
        source="DAA, released code",
        toy=1.0,
    )
    learning_rate: float = setting(
        1.5e-4,
        "learning rate of AdamP, with cosine decay in each phase",
        source="DAA, section 5.2",
        toy=2e-3,
    )
    fine_tuning_rate: float = setting(
        0.1, "factor of the learning rate in fine-tuning", source="DAA, released code", toy=1.0
    )
    clip_norm: float = setting(
        2.0, "gradients with a larger norm are scaled to it", source="DAA, released code", toy=100.0
    )
    batch_size: int = setting(128, "pairs per batch", source="DAA, section 5.2", toy=90)
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
    cutout: float = setting(
        0.2, "probability that Cutout hides part of a picture", source="DAA, section 5.2"
    )
    crop_and_flip: bool = setting(
        True,
        "train on random crops of 8 to 100 % of the area, mirrored half of the time",
        source="PCME, released code",
        toy=False,
    )
    word_dropping: float = differs(0.1, source="DAA, section 5.2")

    def __post_init__(self):
        super().__post_init__()
        check_weights(self, "image_weights", self.backbone)
        if self.warm_up_epochs > self.pre_training_epochs:
            raise ValueError("--pre-training-epochs must not be below --warm-up-epochs")


def build(settings, train):
    tokenizer, backbone = _captions(settings, train.records)
    return models.pcme_bert(
        encoders.convolutional(settings.backbone, settings.image_size, settings.image_weights),
        tokenizer,
        backbone,
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


def _captions(settings, records):
    """The tokenizer and BERT; without data a small one over whole words."""
    if settings.data_dir is None:
        return captions.word_tokenizer(records.captions, max_words=settings.max_words), None
    if settings.bert is None or settings.bert_vocabulary is None:
        raise InputError("--data-dir needs --bert and --bert-vocabulary")
    return read_bert_tokenizer(settings.bert_vocabulary, settings.max_words), settings.bert


def train(settings, data, pairs):
    """Builds, fits on the batches of `pairs`, a function of `zoo.data.batches`, and evaluates."""
    require("keras_hub", extra="models")  # for BERT, before the data are read
    run = training.start(settings, data)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run, pairs)
    return training.finish(run, **settings.evaluation(), report=plots.draw_run)


def train_phases(settings, run, pairs):
    """The image head and all of the textual encoder first, with a rising rate, then everything."""
    rate, backbone = settings.learning_rate, run.model.image_encoder.get_layer("backbone")
    phases = [
        training.Phase(
            "pre_training",
            settings.pre_training_epochs,
            rate=training.cosine_decay(rate, settings.warm_up_epochs),
            frozen=[backbone],
        ),
        training.Phase(
            "fine_tuning",
            settings.fine_tuning_epochs,
            rate=training.cosine_decay(rate * settings.fine_tuning_rate),
        ),
    ]

    def stream(train, seed):
        augmentation = Augmentation(
            crop=settings.crop if settings.crop_and_flip else None,
            flip=settings.crop_and_flip,
            cutout=settings.cutout,
            word_dropping=settings.word_dropping,
            word_deleting=settings.word_deleting,
        )
        return settings.stream(pairs, train, run.model.tokenizer, seed, augmentation)

    def adamp(model, rate):
        return training.AdamP(rate, global_clipnorm=settings.clip_norm)

    training.fit(run, phases, stream, adamp, settings.seed)
