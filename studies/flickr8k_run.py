"""One system on Flickr8k, on stored features of two frozen networks: a row of `flickr8k_table`.

    python -m studies.flickr8k_run --system pcmepp --data-dir flickr8k \\
        --image-weights mobilenetv2.h5 --text-weights all-MiniLM-L6-v2 --out runs/pcmepp

All systems read the same: MobileNetV2's last map, averaged over neighbours to 4 × 4 cells, and
MiniLM's states of the first 24 word pieces. They train for the same number of steps on the same
batches, so that what differs is the systems.
"""

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import keras

from zoo import cli, encoders, layers, losses, models, plots, similarities, training
from zoo.cli import setting
from zoo.data import Stream, batches, phase_seed
from zoo.data.records.features import cached, caption_states
from zoo.data.records.sources import Features
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.encoders.stored_features import RegionMask
from zoo.files.environment import cache_folder

PHASES = ("points", "training", "variances")


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The same for every system: margins of birds.py, rates by the validation photos."""

    out: Path = setting(Path("runs/flickr8k"), "run folder to write or resume", identity=False)
    system: Literal[
        "pcme",
        "daa",
        "pcmepp",
        "pcmepp_after_infonce",
        "infonce",
        "pfe",
        "vse_infinity",
        "gaussian_vsepp",
        "pvse",
        "dive",
    ] = setting("infonce", "what to train")
    image_weights: str | None = setting(
        "imagenet", "weights of MobileNetV2: imagenet, or a local file"
    )
    text_weights: str = setting("all-MiniLM-L6-v2", "folder of a BERT, or its name")
    max_words: int = setting(24, "word pieces of a caption that are read")
    dim: int = setting(256, "dimensions of the embedding")
    batch_size: int = setting(256, "pairs")
    steps_per_epoch: int | None = setting(100, "steps between two validations", smoke=2)
    epochs: int = setting(2, "epochs of so many steps", smoke=1)
    variance_epochs: int = setting(1, "epochs of the variances of pfe, after the points")
    learning_rate: float = setting(3e-3, "rate of AdamP, peak of a cosine")
    drop_rate: float = setting(0.2, "cells of the map left out, of pooled towers")
    margin: float = setting(0.2, "margin of triplets, whose negatives are semi-hard")
    scale: float = setting(20.0, "initial a of pcmepp")
    shift: float = setting(24.5, "initial b of pcmepp")
    select: Literal["last"] = setting("last", "whose weights to keep")


def main(argv=None):
    start = time.process_time()
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.system == "daa" and not settings.daa_weight:
        settings = dataclasses.replace(settings, daa_weight=1.0)
    data = settings.data("pairs", "toy_scenes", **settings.pictures())
    data["semantics"] = {
        "variant": settings.semantics,
        "splits": ["test", *(["train"] if settings.daa_weight else [])],
    }
    run = training.start(settings, data)
    if run.finished:
        return training.show(run)
    with run.replicas():
        image_backbone, caption_backbone = store(settings, run)
        points = SYSTEMS[settings.system](
            settings,
            {
                "image_backbone": image_backbone,
                "caption_backbone": caption_backbone,
                "dim": settings.dim,
            },
        )
        encoded = time.process_time()
        if settings.system == "pfe":
            run.model = models.pfe(points)
            set_trainable(points, True)
            fit(settings, run, points, "points", settings.epochs)
            set_trainable(points, False)
            fit(settings, run, run.model, "variances", settings.variance_epochs)
        else:
            run.model = points.with_auxiliaries(*settings.ranking_terms())
            first = settings.epochs // 2 if settings.system == "pcmepp_after_infonce" else 0
            if first:
                set_trainable(points, False, "variance_parts")
                fit(settings, run, means_by_infonce(points), "points", first)
                set_trainable(points, True, "variance_parts")
            fit(settings, run, run.model, "training", settings.epochs - first)
    cost = {
        "cpu_seconds_encoding": encoded - start,
        "cpu_seconds_training": time.process_time() - encoded,
    }
    return training.finish(
        run, **settings.evaluation(), measure_more=lambda *_: cost, report=plots.draw_run
    )


def store(settings, run):
    """Replaces the run's splits by stored features, and returns backbones that pass them on."""
    frozen = networks(settings)
    for name in ("train", "validation", "test"):
        setattr(run, name, stored(getattr(run, name), *frozen))
    states = run.train.records.caption_vectors
    return passed_on(frozen[0].output_shape[1:]), stored_states(*states.shape)


def networks(settings):
    """The frozen network of photos, that of captions, and its tokenizer."""
    network = encoders.convolutional(
        "mobilenet_v2", settings.image_size, settings.image_weights, trainable=False
    )
    cells = keras.layers.AveragePooling2D(2, padding="same", name="cells")(network.output)
    photos = keras.Model(network.input, cells, name="backbone")
    sentences = encoders.sentences(settings.text_weights, settings.max_words)
    return photos, sentences, read_bert_tokenizer(settings.text_weights, settings.max_words)


def stored(split, photos, sentences, tokenizer):
    """A split as the features of the frozen networks, which are computed once."""
    folder = cache_folder("features")
    states = caption_states(folder, sentences, tokenizer, split.records.captions)
    records = dataclasses.replace(split.records, caption_vectors=states)
    pictures = Features(cached(folder, photos, split.records, split.source))
    return dataclasses.replace(split, records=records, source=pictures)


def passed_on(shape):
    """A backbone of stored maps."""
    features = keras.Input(shape, name="images")
    same = keras.layers.Identity(name="map")(features)
    return keras.Model(features, same, name="backbone")


def stored_states(length, width):
    """A backbone of stored states of captions, where rows of zeros are padding."""
    states = keras.Input((length, width), name="captions")
    mask = RegionMask(name="mask")(states)
    pooled = layers.MeanPooling(name="pooling")(states, mask=mask)
    outputs = {"features": states, "mask": mask, "pooled": pooled}
    return keras.Model(states, outputs, name="backbone")


def set_trainable(model, value, parts=None):
    """Of the towers, or of some parts of their heads."""
    for tower in (model.image_encoder, model.caption_encoder):
        for layer in getattr(tower.get_layer("head"), parts) if parts else [tower]:
            layer.trainable = value


def fit(settings, run, model, phase, epochs):
    stream = Stream(
        batches.image_caption_pairs,
        run.train,
        None,
        settings.batch_size,
        seed=phase_seed(settings.seed, phase, PHASES),
        steps=settings.steps_per_epoch,
    )
    steps = epochs * stream.steps_per_epoch
    rate = settings.learning_rate
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - steps // 20), warmup_target=rate, warmup_steps=max(1, steps // 20)
    )
    model.compile(training.AdamP(schedule, global_clipnorm=2.0))
    run.fit(model, phase, stream, epochs)


def means_by_infonce(model):
    """The same towers, to train their means: a start for PCME++, as CLIP is in the paper."""
    return models.DualEncoder(
        model.image_encoder,
        model.caption_encoder,
        similarity=similarities.Cosine(20.0, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=model.tokenizer,
        name="points",
    )


def _triplets(settings):
    return {"margin": settings.margin, "mining": "semi_hard"}


def _infonce(settings, towers):
    return models.infonce(
        **towers,
        temperature=0.05,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


def _pcme(settings, towers):
    return models.pcme(**towers, kl_weight=1e-4, log_variance_bias=-6.0, seed=settings.seed)


def _pcmepp(settings, towers):
    return models.pcmepp(
        **towers,
        scale=settings.scale,
        shift=settings.shift,
        pseudo_positive_weight=0.0,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


SYSTEMS = {
    "pcme": _pcme,
    "daa": _pcme,
    "pcmepp": _pcmepp,
    "pcmepp_after_infonce": _pcmepp,
    "infonce": _infonce,
    "pfe": _infonce,
    "vse_infinity": lambda settings, towers: models.vse_infinity(
        **towers,
        **_triplets(settings),
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    ),
    "gaussian_vsepp": lambda settings, towers: models.gaussian_vsepp(
        **towers, **_triplets(settings), similarity=similarities.get("wasserstein_2")
    ),
    "pvse": lambda settings, towers: models.pvse(
        **towers, **_triplets(settings), num_embeddings=2, seed=settings.seed
    ),
    "dive": lambda settings, towers: models.dive(
        **towers, **_triplets(settings), num_slots=4, seed=settings.seed
    ),
}


if __name__ == "__main__":
    cli.run(main)
