"""PCME on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/pcme_cub.py                                   # Toy Birds, minutes on two cores
    python recipes/pcme_cub.py --data-dir CUB_200_2011 --image-weights imagenet \\
        --glove glove.840B.300d.txt
    python recipes/pcme_cub.py --mean-only                       # the paper's "μ only"
    python recipes/pcme_cub.py --held-out seen_test              # table E.3: the seen classes
    python recipes/pcme_cub.py --test-samples 1 3 5 7 15         # figure E.1

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021. Trains on the 150
classes of Xian's split and evaluates on the 50 classes that training has not seen. The same
command resumes a run that was stopped. Results are printed, and kept in the run folder with the
model, the history and the plots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from zoo import cli, encoders, evaluation, models, report, similarities, training
from zoo.cli import setting
from zoo.data import Stream, batches, captions, phase_seed
from zoo.data.augmentation import Augmentation
from zoo.data.random_crops import RandomCrop
from zoo.metrics import evaluate_retrieval
from zoo.report.style import PALETTE, new_figure, save, styled

import keras

PHASES = ("warm_up", "fine_tuning")


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The paper's settings for CUB; `toy` is what runs on Toy Birds."""

    default_backbone: ClassVar[str] = "resnet50"
    crop: ClassVar[RandomCrop] = RandomCrop(area=(0.08, 1.0))

    out: Path = setting(Path("runs/pcme_cub"), "run folder to write or resume", identity=False)
    captions: Path | None = setting(None, "text_c10 folder or archive; default: in --data-dir")
    held_out: Literal["test", "seen_test", "val1", "val2", "val3"] = setting(
        "test",
        "classes to evaluate on: the unseen ones, held-out images of the seen ones, or, to choose "
        "settings on, val1 to val3",
    )
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None, "image encoder; default: that of the weights' file name, else resnet50", toy="tiny"
    )
    image_weights: str | None = setting(
        training.UNSAID, "'imagenet', a local file, or none; must be said with --data-dir"
    )
    glove: Path | None = setting(None, "text file of word vectors to start from")
    image_size: int = setting(224, "pixels", source="PCME, released code", toy=64)
    crop_fraction: float = setting(
        224 / 256,
        "side of a photo's middle, of the shorter side",
        source="PCME, released code",
        toy=1.0,
    )
    dim: int = setting(512, "dimensions of the embedding", source="PCME, appendix C.2", toy=64)
    word_dim: int = setting(
        300, "dimensions of a word vector", source="PCME, released code", toy=64
    )
    sentence_dim: int | None = setting(None, "width of a sentence's states; default: --dim")
    max_words: int = setting(40, "words of a caption that are read", toy=24)
    mean_only: bool = setting(False, "train points instead of Gaussians", source="PCME, table 2")
    covariance: Literal["ellipsoidal", "spherical_mean", "spherical_one"] = setting(
        "ellipsoidal",
        "variances: each dimension its own, their mean, one value",
        source="PCME, table D.2",
    )
    mean_attention: bool = setting(True, "local attention in the mean", source="PCME, table D.3")
    variance_attention: bool = setting(True, "and in the log variance", source="PCME, table D.3")
    variance_gru: bool = setting(
        True, "a second GRU for the log variance of captions", source="PCME, released code"
    )
    squash_variance: bool = setting(
        False, "sigmoid and LayerNorm in the log variance too", source="PCME, table D.3"
    )
    unit_mean: bool = setting(True, "means of unit length", source="PCME, section 3.2.1")
    num_samples: int = setting(7, "samples J of an embedding", source="PCME, appendix C.2")
    method: Literal["sampled", "moment_matched"] = setting(
        "sampled", "match probability by samples, as the paper, or by quadrature, without noise"
    )
    scale: float = setting(
        10.0,
        "initial a of sigmoid(b - a d), twice what is printed: the code has sigmoid(2x)",
        source="PCME, appendix C.2",
    )
    shift: float = setting(10.0, "initial b, likewise", source="PCME, appendix C.2")
    log_variance_bias: float = setting(
        -6.0,
        "initial log variance; at 0, as released, first distances are near sqrt(2 dim)",
        toy=-5.0,
    )
    kl_weight: float = setting(
        1e-3, "weight of KL to N(0, I)", source="PCME, appendix C.2", toy=1e-4
    )
    uniformity_weight: float = setting(
        10.0, "weight of uniformity", source="PCME, appendix C.2", toy=30.0
    )
    learning_rate: float = setting(
        1e-4, "peak, cosine decay per phase", source="PCME, appendix C.2", toy=2e-3
    )
    batch_size: int = setting(150, "pairs", source="PCME, released code", toy=90)
    pairs_per_class: int = setting(1, "pairs of a class in a batch", source="PCME, released code")
    steps_per_epoch: int | None = setting(None, "default: captions / batch size", toy=60, smoke=2)
    fine_tuning_rate: float = setting(1.0, "factor of the rate in fine-tuning")
    warm_up_epochs: int = setting(10, "heads only", source="PCME, appendix C.2", toy=0, smoke=1)
    freeze_text: bool = setting(
        True, "in the warm-up word vectors and GRU are frozen too", source="PCME, appendix C.2"
    )
    fine_tuning_epochs: int = setting(
        50, "everything", source="PCME, appendix C.2", toy=20, smoke=1
    )
    cache_features: bool = setting(
        True, "warm up on stored features of the frozen backbone; Cutout then cuts feature maps"
    )
    crop_and_flip: bool = setting(
        False,
        "train on random parts of 8 to 100 % of the original's area, mirrored or not",
        source="PCME, released code",
    )
    cutout: float = setting(0.2, "probability of Cutout", source="PCME, appendix C.2")
    word_dropping: float = setting(
        0.1, "probability of losing a word", source="PCME, appendix C.2", toy=0.3
    )
    test_samples: tuple[int, ...] = setting(
        (),
        "numbers of samples J to rank by in the end, such as 1 3 7 15",
        source="PCME, figure E.1",
    )
    test_similarities: tuple[str, ...] = setting(
        ("own", "euclidean"),
        f"rankings: own, {', '.join(similarities.NAMES)}",
        source="PCME, table E.1",
    )

    def __post_init__(self):
        super().__post_init__()
        training.check_weights(self, "image_weights", self.network)
        if self.squash_variance and not self.variance_attention:
            raise ValueError("--squash-variance squashes the branch of --variance-attention")
        if self.crop_and_flip and self.cache_features and self.warm_up_epochs:
            raise ValueError("--crop-and-flip needs --no-cache-features: stored features are whole")
        if self.test_samples and (self.mean_only or min(self.test_samples) < 1):
            raise ValueError("--test-samples must be positive, and points have no samples")

    @property
    def network(self):
        """The name of the image encoder: as given, or as the weights' file is named."""
        named = encoders.backbone_of_file(self.image_weights)
        return self.backbone or named or self.default_backbone

    @property
    def head(self):
        """The options of both towers' `GaussianHead`."""
        return {
            "covariance": None if self.mean_only else self.covariance,
            "mean_attention": self.mean_attention,
            "variance_attention": self.variance_attention,
            "squash_variance": self.squash_variance,
            "unit_mean": self.unit_mean,
            "log_variance_bias": self.log_variance_bias,
        }


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train(settings, data(settings))


def data(settings):
    return settings.data("cub", "toy_birds", captions=settings.captions, **settings.pictures())


def train(settings, data):
    """Builds, fits and evaluates."""
    run = training.start(settings, data)
    if run.finished:
        return report.show(run)
    with run.replicas():
        model = build(settings, run.train)
        run.model = model.with_auxiliaries(*settings.ranking_terms())
        fit(settings, run)
    more = measure_samples(settings) if settings.test_samples else None
    return report.finish(run, **settings.evaluation(), measure_more=more)


def build(settings, train):
    tokenizer = captions.word_tokenizer(train.records.captions, max_words=settings.max_words)
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    return models.pcme(
        encoders.convolutional(settings.network, settings.image_size, settings.image_weights),
        tokenizer,
        dim=settings.dim,
        word_dim=word_dim,
        word_vectors=word_vectors,
        sentence_dim=settings.sentence_dim,
        variance_gru=settings.variance_gru,
        num_samples=settings.num_samples,
        method=settings.method,
        scale=settings.scale,
        shift=settings.shift,
        kl_weight=settings.kl_weight,
        uniformity_weight=settings.uniformity_weight,
        seed=settings.seed,
        **settings.head,
    )


def fit(settings, run):
    """Warm-up of the heads over frozen networks, words and GRU among them, then everything."""
    backbone = run.model.image_encoder.get_layer("backbone")
    extractors = [backbone]
    if settings.freeze_text:
        extractors.append(run.model.caption_encoder.get_layer("backbone"))
    if settings.warm_up_epochs:
        for extractor in extractors:
            extractor.trainable = False
        if settings.cache_features:
            heads = run.model.with_image_encoder(run.model.image_encoder.get_layer("head"))
            fit_phase(settings, run, heads, "warm_up", *run.stored_features(backbone))
        else:
            fit_phase(settings, run, run.model, "warm_up", run.train, run.validation)
    if settings.fine_tuning_epochs:
        for extractor in extractors:
            extractor.trainable = True
        fit_phase(settings, run, run.model, "fine_tuning", run.train, run.validation)


def fit_phase(settings, run, model, phase, train, validation):
    epochs = getattr(settings, f"{phase}_epochs")
    by_class = train.records.class_names is not None
    crop = settings.crop if settings.crop_and_flip else None
    stream = Stream(
        batches.class_pairs if by_class else batches.image_caption_pairs,
        train,
        model.tokenizer,
        settings.batch_size,
        seed=phase_seed(settings.seed, phase, PHASES),
        augmentation=Augmentation(
            crop=crop,
            flip=settings.crop_and_flip,
            cutout=settings.cutout,
            word_dropping=settings.word_dropping,
        ),
        steps=settings.steps_per_epoch,
        options={"pairs_per_class": settings.pairs_per_class} if by_class else {},
    )
    rate = settings.learning_rate
    if phase == "fine_tuning":
        rate *= settings.fine_tuning_rate
    schedule = keras.optimizers.schedules.CosineDecay(rate, epochs * stream.steps_per_epoch)
    model.compile(optimizer=training.AdamP(schedule))
    run.fit(model, phase, stream, epochs, validation=validation)


def measure_samples(settings):
    """A function `(run, model) -> dict` of retrieval by so many samples of each Gaussian.

    As many are drawn at test time as `--test-samples` say, whatever the training took.
    """

    def measure(run, model):
        encoded = evaluation.encode(model, run.test.records, run.test.source)
        scale, shift = float(model.similarity.scale), float(model.similarity.shift)
        found = {}
        for count in settings.test_samples:
            similarity = similarities.MatchProbability(scale, shift, count, settings.seed)
            pairs = encoded.pairs(similarity).kept()
            found[str(count)] = evaluate_retrieval(pairs, encoded.relevance)
        save(samples_plot(found), run.folder.plots / "test_samples.png")
        return {"test_samples": found}

    return measure


@styled
def samples_plot(found):
    """R-Precision of both directions over the number of samples."""
    figure = new_figure(5.0, 3.6)
    axis = figure.subplots()
    counts = sorted(found, key=int)
    for side, name, color in zip(
        ("i2t", "t2i"), ("image to text", "text to image"), PALETTE, strict=False
    ):
        values = [found[count][f"{side}_r_precision"] for count in counts]
        axis.plot([int(count) for count in counts], values, marker="o", color=color, label=name)
    axis.set(xlabel="samples J at test time", ylabel="R-Precision in %", xscale="log")
    axis.set_xticks([int(count) for count in counts], counts)
    axis.legend()
    return figure


if __name__ == "__main__":
    cli.run(main)
