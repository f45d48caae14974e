"""What a preset trains over stored vectors of its networks: its maps, its blocks of text."""

import dataclasses
import importlib
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

import zoo
from halo_search.files.environment import cache_folder
from tools import preset_text
from zoo import training
from zoo.data.pipeline.augmentation import Views
from zoo.data.records.features import cached
from zoo.data.records.sources import Features
from zoo.presets import from_preset

COCO_TIMES = 4  # how often an epoch sees the captions of COCO, which are few and of other things


def recipe():
    """The recipe of pictures of one's own, which lies outside of the packages."""
    folder = str(Path(__file__).parent.parent / "recipes")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("own_pairs")


def repeat(started, folder):
    """Lets an epoch see the captions of COCO's photos several times."""
    records = started.train.records
    of_coco = np.array([Path(path).parent == folder for path in records.image_paths])
    more = np.flatnonzero(of_coco[records.caption_image])
    rows = np.concatenate([np.arange(records.num_captions), *[more] * (COCO_TIMES - 1)])
    repeated = dataclasses.replace(
        records,
        captions=records.captions[rows],
        caption_image=records.caption_image[rows],
        caption_vectors=records.caption_vectors.select(rows),
    )
    started.train = started.train.with_records(repeated)


def of_vectors(name, model, settings, data, options):
    """A run over the vectors of a model's networks, in a work folder of its own."""
    work = options.out / "work"
    started = training.start(dataclasses.replace(settings, out=work / name), data)
    splits = started.train, started.validation, started.test
    started.read_features(*(recipe().stored(split, model) for split in splits))
    if options.views > 1:
        seen, backbone = splits[0].records, backbones(model)[0]
        views = Views(splits[0].source, seen, options.views)
        vectors = cached(cache_folder("features"), backbone, seen, views)
        source = AnyView(vectors, seen.num_images, settings.seed)
        started.train = dataclasses.replace(started.train, source=source)
    repeat(started, work / "data" / "coco")
    return started


class AnyView(Features):
    """Stored vectors of several views of each of `count` pictures, of which any is read."""

    def __init__(self, vectors, count, seed):
        super().__init__(vectors)
        self.views, self.count = len(vectors) // count, count
        self.rng = np.random.default_rng(seed)

    def gather(self, indices):
        views = self.rng.integers(self.views, size=len(indices))
        return super().gather(indices + self.count * tf.constant(views, indices.dtype))


def averaged(settings, data, options):
    """The points of a preset with the mean of the maps that training with each seed makes of its
    own: they start alike, so that their mean is a map as they are (Wortsman et al., ICML 2022)."""
    own_pairs, preset = recipe(), from_preset(options.text_weights)
    start = own_pairs.own_pairs_start
    if options.text:
        preset = with_text(preset, settings, data, options)
    started = of_vectors("heads", preset, settings, data, options)
    points = own_pairs.build(settings, *backbones(preset), preset.tokenizer)
    heads, weights, weights_by_seed = started.reader(points), start.maps(points), []
    for seed in options.heads:
        start.begin(points, preset)
        preset_text.fit(heads, started.train, None, seed, **preset_text.AGAIN)
        weights_by_seed.append([weight.numpy() for weight in weights])
        print(f"seed {seed}:", start.recalls(heads, started.validation), flush=True)
    start.assign(
        weights, [np.mean(values, axis=0) for values in zip(*weights_by_seed, strict=True)]
    )
    print("mean:", start.recalls(heads, started.validation), flush=True)
    for tower in (points.image_encoder, points.caption_encoder):
        tower.get_layer("dropout").rate = 0.0  # a variance is of the point that is asked for
    return points


def with_text(preset, settings, data, options):
    """The points of a preset, MiniLM's upper blocks trained on, as they are kept."""
    own_pairs, folder = recipe(), options.out / "work" / "trained-on"
    if not folder.exists():
        started = of_vectors("text-again", preset, settings, data, options)
        points = own_pairs.build(settings, *backbones(preset), preset.tokenizer)
        own_pairs.own_pairs_start.begin(points, preset)
        points = preset_text.with_blocks(points, started.train, settings.seed)
        zoo.save_preset(points, folder, half_precision="int8")
    return from_preset(folder)


def backbones(model):
    return [tower.get_layer("backbone") for tower in (model.image_encoder, model.caption_encoder)]
