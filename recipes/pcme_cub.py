"""PCME on CUB-200-2011, or on Toy Birds when no data are given.

    python recipes/pcme_cub.py                                   # Toy Birds, minutes on two cores
    python recipes/pcme_cub.py --data-dir CUB_200_2011 --image-weights imagenet
    python recipes/pcme_cub.py --mean-only                       # the paper's "μ only"

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021. Trains on the 150
classes of Xian's split and evaluates on the 50 classes that training has not seen. The same
command resumes a run that was stopped. Results are printed, and kept in the run folder with the
model, the history and the plots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import keras
import numpy as np

from zoo import encoders, models, report, similarities, training
from zoo.data import batches, captions, cub, features, sources, toy_birds
from zoo.data.augmentation import Augmentation
from zoo.training import setting


@dataclass(frozen=True, kw_only=True)
class Settings(training.RunSettings):
    """The paper's settings for CUB; `toy` is what runs on Toy Birds."""

    out: Path = setting(Path("runs/pcme_cub"), "run folder to write or resume", identity=False)
    captions: Path | None = setting(None, "text_c10 folder or archive; default: in --data-dir")
    split: Literal["trainval", "train1", "train2", "train3"] = setting(
        "trainval", "trainval is tested on the unseen classes, trainN on the classes of valN"
    )
    skip_bad: bool = setting(False, "leave out what is bad in the data, and count it")
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None, "image encoder; default: that of the weights' file name, else resnet50", toy="tiny"
    )
    image_weights: str | None = setting(None, "'imagenet', a local file, or none")
    glove: Path | None = setting(None, "text file of word vectors to start from")
    image_size: int = setting(224, "pixels", source="section 4.1", toy=64)
    dim: int = setting(512, "dimensions of the embedding", source="section 4.1", toy=64)
    word_dim: int = setting(300, "dimensions of a word vector", source="section 4.1", toy=64)
    max_words: int = setting(40, "words of a caption that are read", toy=24)
    mean_only: bool = setting(False, "train points instead of Gaussians", source="table 1")
    num_samples: int = setting(7, "samples J of an embedding", source="section 4.1")
    method: Literal["sampled", "moment_matched"] = setting(
        "sampled", "match probability by samples, as the paper, or by quadrature, without noise"
    )
    scale: float = setting(10.0, "initial a of sigmoid(b - a d)", source="2 x 5, supplementary A")
    shift: float = setting(10.0, "initial b", source="2 x 5, supplementary A")
    log_variance_bias: float = setting(
        -6.0,
        "initial log variance; at 0, as released, first distances are near sqrt(2 dim)",
        toy=-5.0,
    )
    kl_weight: float = setting(1e-3, "weight of KL to N(0, I)", source="suppl. A", toy=1e-4)
    uniformity_weight: float = setting(10.0, "weight of uniformity", source="suppl. A", toy=30.0)
    learning_rate: float = setting(1e-4, "peak, cosine decay per phase", source="A", toy=2e-3)
    batch_size: int = setting(150, "pairs, one a class", source="supplementary A", toy=90)
    steps_per_epoch: int | None = setting(None, "default: captions / batch size", toy=60, smoke=2)
    warm_up_epochs: int = setting(10, "heads only", source="suppl. A", toy=0, smoke=1)
    fine_tuning_epochs: int = setting(50, "everything", source="suppl. A", toy=20, smoke=1)
    cache_features: bool = setting(
        True, "warm up on stored features of the frozen backbone; Cutout then cuts feature maps"
    )
    cutout: float = setting(0.2, "probability of Cutout", source="supplementary A")
    word_dropping: float = setting(
        0.1, "probability of losing a word", source="supplementary A", toy=0.3
    )
    test_similarities: tuple[str, ...] = setting(
        ("match_probability", "mean"), f"rankings: {', '.join(similarities.NAMES)}"
    )

    def __post_init__(self):
        unknown = set(self.test_similarities) - set(similarities.NAMES)
        if unknown:
            raise ValueError(f"--test-similarities: unknown {sorted(unknown)}")


def main(argv=None):
    settings = training.parse(Settings, argv, description=__doc__)
    run = training.RunFolder.open(settings.out, settings)
    if run.finished:
        print(f"{run.path} is finished")
        show(run.metrics)
        return
    keras.utils.set_random_seed(settings.seed)
    if settings.mixed_precision:
        keras.config.set_dtype_policy(settings.mixed_precision)
    root = settings.data_dir or toy_birds.generate(Path("data") / "toy_birds")
    train, test = load(settings, root)
    tokenizer = captions.word_tokenizer(train.captions, max_words=settings.max_words)
    model = build(settings, tokenizer)
    pictures = sources.Pictures(train, settings.image_size)
    fit(settings, run, model, train, pictures)
    results = evaluate(settings, run, model, test, root)
    run.save_model(model)
    run.finish(results)
    show(results)
    print(f"Everything is in {run.path}")


def load(settings, root):
    """Training classes and test classes."""
    held_out = {"trainval": "test"}.get(settings.split, settings.split.replace("train", "val"))
    options = {
        "captions": settings.captions,
        "image_size": settings.image_size,
        "skip_bad": settings.skip_bad,
    }
    return [cub.load(root, split=split, **options).records for split in (settings.split, held_out)]


def build(settings, tokenizer):
    word_vectors, word_dim = None, settings.word_dim
    if settings.glove:
        word_vectors, coverage = captions.read_glove(settings.glove, tokenizer, settings.seed)
        word_dim = word_vectors.shape[1]
        print(f"{settings.glove}: vectors of {coverage:.1%} of the vocabulary")
    name = settings.backbone or encoders.backbone_of_file(settings.image_weights) or "resnet50"
    head = {"covariance": None} if settings.mean_only else {}
    return models.pcme(
        encoders.convolutional(name, settings.image_size, settings.image_weights),
        tokenizer,
        dim=settings.dim,
        word_dim=word_dim,
        word_vectors=word_vectors,
        num_samples=settings.num_samples,
        method=settings.method,
        scale=settings.scale,
        shift=settings.shift,
        kl_weight=settings.kl_weight,
        uniformity_weight=settings.uniformity_weight,
        seed=settings.seed,
        log_variance_bias=settings.log_variance_bias,
        **head,
    )


def fit(settings, run, model, train, pictures):
    """Warm-up with a frozen backbone, then everything."""
    backbone = model.image_encoder.get_layer("backbone")
    if settings.warm_up_epochs:
        backbone.trainable = False
        if settings.cache_features:
            stored = features.cached(run.path, backbone, train, pictures)
            heads = model.with_image_encoder(model.image_encoder.get_layer("head"))
            fit_phase(settings, run, heads, "warm_up", train, sources.Features(stored))
        else:
            fit_phase(settings, run, model, "warm_up", train, pictures)
    if settings.fine_tuning_epochs:
        backbone.trainable = True
        fit_phase(settings, run, model, "fine_tuning", train, pictures)


def fit_phase(settings, run, model, phase, train, source):
    batch_size = min(settings.batch_size, train.num_classes)
    steps = settings.steps_per_epoch or batches.steps_per_epoch(train, batch_size)
    epochs = getattr(settings, f"{phase}_epochs")
    schedule = keras.optimizers.schedules.CosineDecay(settings.learning_rate, epochs * steps)
    model.compile(optimizer=training.AdamP(schedule))
    resume = training.Resume(run.checkpoints, phase)
    done = resume.restore(model)
    if done:
        print(f"{phase}: {done} of {epochs} epochs are done already")
    stream = batches.class_pairs(
        train,
        model.tokenizer,
        source,
        batch_size=batch_size,
        # The phases must not repeat each other's batches.
        seed=2 * settings.seed + (phase == "fine_tuning"),
        start_step=done * steps,
        augmentation=Augmentation(cutout=settings.cutout, word_dropping=settings.word_dropping),
    )
    model.fit(
        stream,
        epochs=epochs,
        initial_epoch=done,
        steps_per_epoch=steps,
        shuffle=False,  # the stream is shuffled already
        callbacks=[training.HistoryFile(run.history_path, phase), resume],
    )


def evaluate(settings, run, model, test, root):
    pictures = sources.Pictures(test, settings.image_size, cache=False)
    split = report.encode(model, test, pictures)
    names = ("mean",) if settings.mean_only else settings.test_similarities
    results = report.evaluate(model, split, names)
    matches = None
    if settings.data_dir is None:
        matches = toy_birds.true_matches(root, test)
        if not settings.mean_only:
            results["ambiguity_spearman"] = report.spearman_of_matches(split, matches)
    report.draw(run.plots, results, split, model, pictures.picture, matches)
    history = training.read_history(run.history_path)
    report.save(report.training_curves(history), run.plots / "training_curves.png")
    return {**results, "seconds": float(np.nansum(history["seconds"]))}


def show(results):
    report.print_results(results["retrieval"], "unseen classes, in %", results["chance"])
    for side, worth in results.get("uncertainty", {}).items():
        print(
            f"{side}: Spearman of uncertainty bin and R@1 {worth['spearman_of_bins']:+.2f}; "
            f"area under risk–coverage {100 * worth['risk_coverage']['aurc']:.1f} "
            f"(at random {100 * worth['risk_coverage']['random_aurc']:.1f})"
        )
    if "ambiguity_spearman" in results:
        rho = results["ambiguity_spearman"]
        print(f"Spearman of caption uncertainty and true number of matches {rho:+.2f}")


if __name__ == "__main__":
    training.run(main)
