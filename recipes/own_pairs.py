"""Search by words for your own photos, trained in seconds: Gaussians over points.

    python recipes/own_pairs.py --data-dir photos --out runs/photos
    python recipes/own_pairs.py --data-dir photos --image-weights mobilenet_v2.h5 --out runs/photos
    python recipes/own_pairs.py --data-dir photos --text-weights all-MiniLM-L6-v2 --out runs/photos
    python recipes/own_pairs.py --data-dir photos --model siglip2_base_patch16_224 --out runs/photos
    python recipes/own_pairs.py --data-dir photos --text gru --out runs/photos   # own_pairs_gru.py
    python recipes/own_pairs.py                                  # Toy Scenes, by a GRU

`--data-dir` is a folder with one of these, or the table itself (docs/data.md describes each):

    pairs.csv, pairs.tsv or pairs.jsonl   a table of pictures and captions
    metadata.csv or metadata.jsonl        imagefolder
    captions.txt                          Flickr8k as on Kaggle
    dataset_flickr8k.json and others      Karpathy's
    captions_train2017.json and others    COCO's
    beach.jpg and beach.txt               a text file a picture, one caption a line

A pretrained network of ImageNet reads the pictures and a pretrained MiniLM the captions, once; both
stay as they are. Linear maps of their stored vectors then learn to match (InfoNCE), and after that
how sure each is (probabilistic embeddings, PFE). The networks are those of the packaged preset
`photos_pfe`, so nothing is fetched; its maps are the start, and the mean of them and of what was
learnt that ranks the validation photos best is kept. With `--model` the points are those of CLIP,
SigLIP or another model of points as they are, and the variances alone are learnt. A tenth of the
pictures is for validation and a tenth for the test, or what a column `split` says.
"""

import dataclasses
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import own_pairs_gru
import own_pairs_next
from zoo import (
    cli,
    encoders,
    evaluation,
    losses,
    metrics,
    models,
    plots,
    similarities,
    training,
)
from zoo.cli import differs, setting
from zoo.confidence.probes import contents_hash
from zoo.data import Stream, batches
from zoo.data.records.features import cached, caption_vectors
from zoo.data.records.sources import Features
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.errors import InputError
from zoo.files.environment import cache_folder
from zoo.files.images import RESIZES
from zoo.models import Tower
from zoo.models.points import frozen_points

import keras
import numpy as np

PRESET = "photos_pfe"
# Layers whose maps are pooled beside the last: they say where and of what, which the last forgets.
LAYERS = {
    "mobilenet_v2": tuple(f"block_{n}_expand_relu" for n in (3, 6, 10, 13, 14, 15, 16)),
    "efficientnet_lite2": encoders.stage_layers(),
}
PHASES = ("points", "variances")
HEADS = ("unit_variance_of_features", "embedding")  # what a tower learns over a frozen network
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the maps learnt here, the rest is the preset's
GRU = ("--text=gru", "--start-from")  # of `own_pairs_gru.py`


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """Settings chosen on the validation photos of Flickr8k; there is no toy data for them."""

    out: Path = differs(Path("runs/own_pairs"))
    text: Literal["sentence", "gru"] = setting(
        "sentence", "what reads captions: a pretrained MiniLM, or a GRU trained here"
    )
    model: str | None = setting(
        None, "model whose points stay as they are; its picture size replaces --image-size"
    )
    text_weights: str | None = setting(
        None,
        "folder of a BERT (MiniLM, E5, BGE), or its name on Hugging Face, fetched once; default: "
        "MiniLM, out of the preset photos_pfe",
    )
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None,
        "image network, frozen; default: what the weights are named after, or those of photos_pfe",
    )
    image_weights: str | None = setting(
        None,
        "a local .h5, .npz or .safetensors file; imagenet, fetched once; or none; default: "
        "imagenet, without --backbone those in the preset photos_pfe",
    )
    image_dir: Path | None = setting(
        None, "folder of the pictures; default: found at or below --data-dir"
    )
    image_column: str = setting("image", "column or key of a table's pictures")
    caption_column: str = setting("caption", "column or key of a table's captions")
    separator: str | None = setting(
        None, "between the fields of a table, or tab; default: comma in .csv, tab in .tsv"
    )
    held_out_share: float = setting(
        0.1, "images for validation and for the test each, without a column split"
    )
    max_words: int = setting(32, "word pieces read per caption")
    dim: int = setting(320, "dimensions of the embedding; 320, as the preset has, starts from it")
    image_size: int = setting(240, "side in pixels")
    resize: Literal[RESIZES] = differs("stretch")
    batch_size: int = setting(512, "pairs per batch")
    drop_rate: float = setting(0.85, "share of a picture's channels that a step leaves out")
    caption_drop_rate: float = setting(0.3, "share of a caption's channels that a step leaves out")
    temperature: float = setting(0.05, "initial temperature of the softmax")
    learning_rate: float = setting(1e-3, "peak learning rate of Adam, with cosine decay")
    epochs: int = setting(10, "epochs that train the points", smoke=1)
    least_steps: int = setting(
        30,
        "least steps per epoch; with few captions each is drawn several times",
        smoke=1,
        kind="size",
    )
    variance_epochs: int = setting(3, "epochs that train the variances", smoke=1)
    variance_rate: float = setting(3e-3, "peak learning rate for the variances, with cosine decay")
    regularization: float = setting(0.01, "L2 penalty on the maps that give the variances")
    ambiguity_weight: float = setting(
        100.0, "weight of the term by which a variance follows how many captions lie near; 0: none"
    )
    select: Literal["last"] = setting(
        "last", "validation ranks by points, so that it cannot choose an epoch of variances"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.model is None:
            return
        if self.data_dir is None:
            raise ValueError("--model needs --data-dir, a folder of photos with captions")
        for name in ("text_weights", "image_weights", "backbone"):
            if getattr(self, name) is not None:
                flag = "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is of a network beside --model; give one of both")


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    if is_for_gru(argv):
        _refuse_flags_of_sentences(argv)
        return own_pairs_gru.main(argv)
    settings, points = cli.parse(Settings, argv, description=__doc__), None
    if settings.model is not None:
        settings, points = over(settings)
    data = settings.data("pairs", "toy_scenes", **own_pairs_gru.options(settings))
    return train(settings, data, points=points)


def over(settings):
    """The settings with pictures as `--model` is shown them, and its points.

    Raises:
        InputError: if there is no such model, or it is not of pictures, words and points.
    """
    tower = Tower(settings.model, "images", settings.batch_size)
    tower.expect("pictures")
    Tower(tower.model, "captions").expect("texts")
    try:
        points = frozen_points(tower.model)
    except ValueError as error:
        raise InputError(
            f"--model {settings.model}: expected a model of points, over which variances are "
            f"learnt; {error}"
        ) from error
    mode, fraction = tower.resizing
    shown = {"image_size": tower.image_size, "resize": mode, "crop_fraction": fraction}
    return dataclasses.replace(settings, **shown), points


def _refuse_flags_of_sentences(argv):
    """Raises InputError for flags that `--help` lists and `own_pairs_gru.py` has not."""
    own, grus = (
        {f.name for f in dataclasses.fields(s)} for s in (Settings, own_pairs_gru.Settings)
    )
    flags = {"--" + name.replace("_", "-") for name in own - grus}
    given = next((flag for arg in argv if (flag := arg.partition("=")[0]) in flags), None)
    if given is not None:
        raise InputError(
            f"{given}: expected --text sentence, which needs --data-dir or --model; received "
            f"{'--text gru' if 'gru' in ' '.join(argv) else 'neither'}"
        )


def is_for_gru(argv):
    """Whether `own_pairs_gru.py` is asked for: by its flags, or with no data."""
    if {"-h", "--help"} & set(argv):
        return "gru" in argv or "--text=gru" in argv
    said = [
        flag if "=" in flag else "=".join(argv[at : at + 2]) if flag == "--text" else flag
        for at, flag in enumerate(argv)
    ]
    has_data = any(flag.partition("=")[0] in ("--data-dir", "--model") for flag in said)
    return not has_data or any(flag.startswith(GRU) for flag in said)


def train(settings, data, prepare=lambda run: None, networks=None, points=None):
    """Stores the vectors of both networks, fits points, then variances, and evaluates.

    Args:
        settings: see `Settings`.
        data: what is read, a description for `zoo.data.open`.
        prepare: function of the run that may replace its splits, once they hold vectors.
        networks: function of the settings in place of `own_networks`.
        points: a trained model of points, whose variances alone are learnt; None trains them too.
    """
    start = time.process_time()
    run = training.start(settings, data)
    if run.finished:
        results = training.show(run)
    else:
        with run.replicas():
            epochs = settings.epochs if points is None else 0
            points = points or build(settings, *(networks or own_networks)(settings))
            first = None
            if networks is None and epochs and reads_packaged(settings):
                first = maps_of_preset(points)
            gaussians = models.pfe(
                points,
                regularization=settings.regularization,
                ambiguity_weight=settings.ambiguity_weight,
            )
            run.model = gaussians.with_auxiliaries(*settings.ranking_terms())
            splits = run.train, run.validation, run.test
            run.read_features(*(stored(split, points) for split in splits))
            prepare(run)
            encoded = time.process_time()
            fit(settings, run, points, epochs, first)
        cost = {
            "cpu_seconds_encoding": encoded - start,
            "cpu_seconds_training": time.process_time() - encoded,
        }
        if networks is None and reads_packaged(settings) and is_new_to_preset(run):
            cost["preset_recall@1"] = recall_of_preset(run)
        results = training.finish(
            run, **settings.evaluation(), measure_more=lambda *_: cost, report=plots.draw_run
        )
    if results is not None:  # of several workers the chief alone has them
        print("\n".join(own_pairs_next.lines(results, settings.out)))
    return results


def build(settings, photos, sentences, tokenizer):
    """The points: linear maps of the two networks' vectors."""
    options = {"dim": settings.dim, "seed": settings.seed}
    return models.DualEncoder(
        encoders.vector_encoder(photos, drop_rate=settings.drop_rate, **options),
        encoders.vector_encoder(
            sentences, drop_rate=settings.caption_drop_rate, side="captions", **options
        ),
        similarity=similarities.Cosine(1 / settings.temperature, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        name="infonce",
    )


def own_networks(settings):
    """The frozen network of pictures, that of captions, and the tokenizer.

    Raises:
        InputError: if weights are not there, or the preset reads captions of another length.
    """
    preset = None
    packaged = settings.image_weights is None and settings.backbone is None
    if settings.text_weights is None or (packaged and PRESET in models.list_presets()):
        preset = packaged_networks(settings)
    if settings.text_weights is None:
        sentences, tokenizer = preset.caption_encoder.get_layer("backbone"), preset.tokenizer
    else:
        sentences = encoders.sentences(settings.text_weights, settings.max_words)
        tokenizer = read_bert_tokenizer(settings.text_weights, settings.max_words)
    if packaged and preset is not None:
        return preset.image_encoder.get_layer("backbone"), sentences, tokenizer
    name = settings.backbone or encoders.backbone_of_file(settings.image_weights) or "mobilenet_v2"
    weights = "imagenet" if settings.image_weights is None else settings.image_weights
    weights = None if name in encoders.FROM_SCRATCH and weights == "imagenet" else weights
    network = encoders.convolutional(name, settings.image_size, weights, trainable=False)
    return encoders.mean_and_max(network, LAYERS.get(name, ())), sentences, tokenizer


def packaged_networks(settings):
    """The preset whose networks are taken.

    Raises:
        InputError: if it is not there, or made for other sizes.
    """
    if PRESET not in models.list_presets():
        raise InputError(
            f"the preset {PRESET!r} is not packaged here; give --text-weights a folder with a "
            "MiniLM or a name on Hugging Face, or take --text gru"
        )
    preset = models.from_preset(PRESET)
    found = {
        "--max-words": preset.tokenizer.max_words,
        "--image-size": preset.image_encoder.input_shape[1],
    }
    wanted = {"--max-words": settings.max_words, "--image-size": settings.image_size}
    for flag, value in found.items():
        if wanted[flag] != value:
            raise InputError(
                f"{flag} must be {value}, as of the preset {PRESET!r}; received {wanted[flag]}. "
                "Other sizes need --text-weights and --image-weights"
            )
    return preset


def reads_packaged(settings):
    """Whether a run stores the vectors of the preset's own networks."""
    named = settings.image_weights, settings.text_weights, settings.model, settings.backbone
    return named == (None,) * 4


def is_new_to_preset(run):
    """Whether the preset was trained on none of the run's test photos."""
    seen = evaluation.probes_of(PRESET).trained_on
    paths = run.test.records.image_paths
    return not np.isin([contents_hash(path) for path in paths], seen).any()


def recall_of_preset(run):
    """R@1 of the preset on the run's test photos, text to image, in percent.

    It reads the vectors that the run has stored, so that asking costs a second.
    """
    return recalls(run.reader(models.from_preset(PRESET)), run.test)["t2i_recall@1"]


def recalls(heads, split):
    """Recalls of heads on a split of stored vectors, in percent."""
    found = evaluation.encode(heads, split.records, split.source)
    pairs = metrics.PairwiseSimilarity(found.images, found.captions, heads.similarity)
    owners = split.records.caption_image
    relevance = metrics.LabelRelevance(np.arange(split.records.num_images), owners)
    found = metrics.evaluate_retrieval(pairs, relevance)
    return {name: value for name, value in found.items() if "recall" in name}


def stored(split, model):
    """A split as the vectors of the model's frozen networks, of its pictures and its captions."""
    folder = cache_folder("features")
    photos, sentences = (
        tower.get_layer("backbone") for tower in (model.image_encoder, model.caption_encoder)
    )
    vectors = caption_vectors(folder, sentences, model.tokenizer, split.records.captions)
    records = dataclasses.replace(split.records, caption_vectors=Features(vectors))
    pictures = Features(cached(folder, photos, split.records, split.source))
    return dataclasses.replace(split, records=records, source=pictures)


def maps_of_preset(points):
    """The maps of the preset, which become those of `points`; None if they are of other widths."""
    preset = models.from_preset(PRESET)
    own, start = maps(points), [weight.numpy() for weight in maps(preset)]
    if [weight.shape for weight in own] != [weight.shape for weight in start]:
        return None
    for weight, value in zip(own, start, strict=True):
        weight.assign(value)
    return start


def maps(model):
    """The weights of both towers' heads."""
    towers = model.image_encoder, model.caption_encoder
    return [weight for t in towers for name in HEADS for weight in t.get_layer(name).weights]


def keep_best_mean(run, heads, start):
    """Sets maps to the mean of the preset's and those learnt that ranks the validation best."""
    own = maps(heads)
    learnt = [weight.numpy() for weight in own]

    def mix(share):
        for weight, first, last in zip(own, start, learnt, strict=True):
            weight.assign((1 - share) * first + share * last)

    def ranked(share):
        mix(share)
        return sum(recalls(heads, run.validation).values())

    share = max(SHARES, key=ranked)
    mix(share)
    print(f"maps: {share:.0%} learnt from these photos, the rest from {PRESET}")


def fit(settings, run, points, epochs, start=None):
    """The points alone, then the variances of the frozen points, which lose nothing by it. With the
    maps of the preset as the `start`, the best mean of both is kept."""
    heads = run.reader(points)
    towers = heads.image_encoder, heads.caption_encoder
    rate = training.cosine_decay_after_a_twentieth

    def asked_for():  # a variance is of the point that will be asked for
        for tower in towers:
            tower.get_layer("dropout").rate = 0.0
        if start is not None:
            keep_best_mean(run, heads, start)

    phases = [
        training.Phase(
            "points",
            epochs,
            rate=rate(settings.learning_rate),
            model=heads,
            then=asked_for,
        ),
        training.Phase(
            "variances",
            settings.variance_epochs,
            rate=rate(settings.variance_rate),
            frozen=towers,
            model=run.reader(run.model),
        ),
    ]

    def pairs(train, seed):
        least = max(train.records.num_captions // settings.batch_size, settings.least_steps)
        return Stream(
            batches.image_caption_pairs,
            train,
            None,
            settings.batch_size,
            seed=seed,
            steps=settings.steps_per_epoch or least,
        )

    def adam(model, rate):
        return keras.optimizers.Adam(rate, beta_2=0.98)

    training.fit(run, phases, pairs, adam, settings.seed)


if __name__ == "__main__":
    cli.run(main)
