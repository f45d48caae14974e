"""Search by words for your own photos, trained in seconds: Gaussians over points.

    python recipes/own_pairs.py --data-dir photos --out runs/photos
    python recipes/own_pairs.py --data-dir photos --image-weights mobilenet_v2.h5 --out runs/photos
    python recipes/own_pairs.py --data-dir photos --text-weights all-MiniLM-L6-v2 --out runs/photos
    python recipes/own_pairs.py --data-dir photos --model siglip2_base_patch16_224 --out runs/photos
    python recipes/own_pairs.py                                  # Toy Scenes

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
learnt that ranks the validation photos best is kept; where that is the preset alone, so are its
variances, and the run ends where it began. With `--model` the points are those of CLIP,
SigLIP or another model of points as they are, and the variances alone are learnt. A tenth of the
pictures is for validation and a tenth for the test, or what a column `split` says.
"""

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import own_pairs_next
import own_pairs_start
from halo_search.errors import InputError
from halo_search.files.environment import cache_folder
from zoo import (
    cli,
    encoders,
    losses,
    models,
    plots,
    presets,
    similarities,
    training,
)
from zoo.answering import KerasModel
from zoo.cli import Positive, Share, Size, differs, setting
from zoo.data import Stream, batches
from zoo.data.records.features import cached, caption_vectors
from zoo.data.records.sources import Features
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.images.pictures import RESIZES
from zoo.models.points import frozen_points

import keras

# Layers whose maps are pooled beside the last: they say where and of what, which the last forgets.
LAYERS = {
    "mobilenet_v2": tuple(f"block_{n}_expand_relu" for n in (3, 6, 10, 13, 14, 15, 16)),
    "efficientnet_lite2": encoders.stage_layers(),
}

TABLE = {"image_column": "image", "caption_column": "caption", "separator": None}  # defaults


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """Settings chosen on the validation photos of Flickr8k."""

    out: Path = differs(Path("runs/own_pairs"))
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
    held_out_share: Share = setting(
        0.1, "images for validation and for the test each, without a column split"
    )
    max_words: Size = setting(32, "word pieces read per caption")
    dim: Size = setting(320, "dimensions of the embedding; 320, as the preset has, starts from it")
    image_size: Size = setting(240, "side in pixels")
    resize: Literal[RESIZES] = differs("stretch")
    batch_size: Size = setting(512, "pairs per batch")
    drop_rate: Share = setting(0.85, "share of a picture's channels that a step leaves out")
    caption_drop_rate: Share = setting(0.3, "share of a caption's channels that a step leaves out")
    temperature: Positive = setting(0.05, "initial temperature of the softmax")
    learning_rate: float = setting(1e-3, "peak learning rate of Adam, with cosine decay")
    epochs: Size = setting(10, "epochs that train the points", smoke=1)
    least_steps: Size = setting(
        30,
        "least steps per epoch; with few captions each is drawn several times",
        smoke=1,
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
                raise ValueError(f"{flag} chooses a network, as --model does; give one of them")


def main(argv=None):
    settings, points = cli.parse(Settings, argv, description=__doc__), None
    if settings.model is not None:
        settings, points = with_points_of_model(settings)
    return train_and_evaluate(settings, describe_data(settings), points=points)


def describe_data(settings):
    """The description of a folder of photos with captions, or of Toy Scenes, for `zoo.data.open`;
    what is the loader's default is left out."""
    picture_options = settings.picture_options()
    if settings.data_dir is None:
        return settings.describe_data("pairs", "toy_scenes", **picture_options)
    table = {
        "image_column": settings.image_column,
        "caption_column": settings.caption_column,
        "separator": settings.separator,
    }
    return settings.describe_data(
        "pairs",
        "toy_scenes",
        seed=settings.seed,
        held_out_share=settings.held_out_share,
        **{name: value for name, value in table.items() if value != TABLE[name]},
        images=None if settings.image_dir is None else str(settings.image_dir),
        **picture_options,
    )


def with_points_of_model(settings):
    """The settings with pictures as `--model` is shown them, and its points. Raises InputError if
    there is no such model, or it is not of pictures, words and points."""
    model = KerasModel.of(settings.model)
    tower = model.tower("images")
    tower.expect("pictures")
    model.tower("captions").expect("texts")
    try:
        points = frozen_points(model.keras)
    except ValueError as error:
        raise InputError(
            f"--model {settings.model}: expected a model of points, over which variances are "
            f"learnt; {error}"
        ) from error
    resize, crop_fraction = tower.resizing
    settings = dataclasses.replace(
        settings, image_size=tower.image_size, resize=resize, crop_fraction=crop_fraction
    )
    return settings, points


def train_and_evaluate(settings, data_description, change_splits=None, networks=None, points=None):
    """Stores the vectors of both networks, trains points, then variances, and evaluates.

    Args:
        settings, data_description: see `Settings` and `describe_data`.
        change_splits: function of the run that replaces its splits, once they hold vectors.
        networks: function of the settings in place of `frozen_networks`.
        points: a trained model of points, whose variances alone are learnt; None trains them too.
    """
    start = time.process_time()
    run = training.start(settings, data_description)
    if run.finished:
        results = training.show(run)
    else:
        with run.replicas():
            epochs = settings.epochs if points is None else 0
            preset = None
            if points is None:
                find_networks = networks or frozen_networks
                preset, image_network, caption_network, tokenizer = find_networks(settings)
                points = build(settings, image_network, caption_network, tokenizer)
            is_start = preset is not None and own_pairs_start.begin(points, preset)
            gaussians = models.pfe(
                points,
                regularization=settings.regularization,
                ambiguity_weight=settings.ambiguity_weight,
            )
            run.model = gaussians.with_auxiliaries(*settings.ranking_terms())
            splits = run.train, run.validation, run.test
            run.read_features(*(stored(split, points) for split in splits))
            if change_splits is not None:
                change_splits(run)
            encoded = time.process_time()
            train_phases(settings, run, points, epochs, preset if is_start else None)
        further = {
            "cpu_seconds_encoding": encoded - start,
            "cpu_seconds_training": time.process_time() - encoded,
        }
        if preset is not None and (recall := own_pairs_start.recall(run, preset)) is not None:
            further["preset_recall@1"] = recall
        results = training.finish(
            run, **settings.evaluation(), measure_more=lambda *_: further, report=plots.draw_run
        )
    if results is not None:  # of several workers the chief alone has them
        print("\n".join(own_pairs_next.lines(results, settings.out)))
    return results


def build(settings, image_network, caption_network, tokenizer):
    """The untrained points: linear maps of the two networks' vectors."""
    return models.DualEncoder(
        encoders.vector_encoder(
            image_network, drop_rate=settings.drop_rate, dim=settings.dim, seed=settings.seed
        ),
        encoders.vector_encoder(
            caption_network,
            drop_rate=settings.caption_drop_rate,
            side="captions",
            dim=settings.dim,
            seed=settings.seed,
        ),
        similarity=similarities.Cosine(1 / settings.temperature, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        name="infonce",
    )


def frozen_networks(settings):
    """`(preset, image_network, caption_network, tokenizer)`. `preset` is None unless both networks
    are its. Raises InputError if weights are absent or of another size."""
    preset = None
    is_packaged_network = settings.image_weights is None and settings.backbone is None
    is_packaged_preset = own_pairs_start.PRESET in presets.list_presets()
    if settings.text_weights is None or (is_packaged_network and is_packaged_preset):
        preset = own_pairs_start.packaged(settings)
    if settings.text_weights is None:
        caption_network = preset.caption_encoder.get_layer("backbone")
        tokenizer = preset.tokenizer
    else:
        caption_network = encoders.sentences(settings.text_weights, settings.max_words)
        tokenizer = read_bert_tokenizer(settings.text_weights, settings.max_words)
    if is_packaged_network and preset is not None:
        image_network = preset.image_encoder.get_layer("backbone")
        preset = preset if settings.text_weights is None else None
        return preset, image_network, caption_network, tokenizer
    return None, image_network_of(settings), caption_network, tokenizer


def image_network_of(settings):
    """The frozen image network of `--backbone` and `--image-weights`, its layers' maps pooled."""
    name = settings.backbone or encoders.backbone_of_file(settings.image_weights) or "mobilenet_v2"
    weights = "imagenet" if settings.image_weights is None else settings.image_weights
    if name in encoders.FROM_SCRATCH and weights == "imagenet":
        weights = None
    network = encoders.convolutional(name, settings.image_size, weights, trainable=False)
    return encoders.mean_and_max(network, LAYERS.get(name, ()))


def stored(split, model):
    """A split as the vectors of the model's frozen networks, of its pictures and its captions."""
    folder = cache_folder("features")
    image_network = model.image_encoder.get_layer("backbone")
    caption_network = model.caption_encoder.get_layer("backbone")
    of_captions = caption_vectors(folder, caption_network, model.tokenizer, split.records.captions)
    of_images = cached(folder, image_network, split.records, split.source)
    records = dataclasses.replace(split.records, caption_vectors=Features(of_captions))
    return dataclasses.replace(split, records=records, source=Features(of_images))


def train_phases(settings, run, points, epochs, preset=None):
    """The points alone, then the variances of the frozen points, which lose nothing by it. Where
    the `preset` is the start, the best mean of both is kept."""
    heads = run.reader(points)
    towers = heads.image_encoder, heads.caption_encoder

    def after_points():
        for tower in towers:  # a variance is of the point that search asks for, without dropout
            tower.get_layer("dropout").rate = 0.0
        if preset is not None:
            own_pairs_start.keep_best_mean(run, heads, preset)

    def after_variances():
        if preset is not None:
            own_pairs_start.keep_variances(run.model, preset)

    points_phase = training.Phase(
        "points",
        epochs=epochs,
        rate=training.cosine_decay(settings.learning_rate, warm_up_epochs=None),
        model=heads,
        then=after_points,
    )
    variances_phase = training.Phase(
        "variances",
        epochs=settings.variance_epochs,
        rate=training.cosine_decay(settings.variance_rate, warm_up_epochs=None),
        frozen=towers,
        model=run.reader(run.model),
        then=after_variances,
    )

    def training_batches(train_split, seed):
        return batches_of(settings, train_split, seed)

    def optimizer(model, learning_rate):
        return keras.optimizers.Adam(learning_rate, beta_2=0.98)

    training.run_phases(
        run,
        [points_phase, variances_phase],
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


def batches_of(settings, train_split, seed):
    """The stream of batches of vectors; an epoch has `--least-steps` steps at least."""
    steps = train_split.records.num_captions // settings.batch_size
    return Stream(
        batches.image_caption_pairs,
        train_split,
        None,  # the captions are vectors
        settings.batch_size,
        seed=seed,
        steps=settings.steps_per_epoch or max(steps, settings.least_steps),
    )


if __name__ == "__main__":
    cli.run(main)
