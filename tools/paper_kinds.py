"""How each paper's command trains: the rows `trains: …` of docs/models/settings.csv.

Each recipe builds a small model with the paper's settings; rates, schedules, dropout, word noise,
losses, frozen parts and checkpoint are read from what it hands to `zoo.training`.
"""

import contextlib
import dataclasses
import importlib
import re
import types
from unittest import mock

import keras

from tools import paper_sources
from zoo import data, encoders, training
from zoo.data import MixedStream
from zoo.data.pipeline.augmentation import SizeAugmentation
from zoo.data.text import clip_tokenizer

STARTS = "trains: "  # of the cells under "setting"
KINDS = ("rates", "schedule", "dropout", "words", "loss", "BatchNorm", "checkpoint")
SMALL = {"backbone": "tiny", "image_size": 32, "dim": 8, "word_dim": 6, "max_words": 6}
SMALL |= {"image_weights": "none", "weights": "none", "sentence_dim": 8, "cache_features": None}
FILES = ("--glove", "--bpe", "--annotations-dir", "--weights", "--image-weights", "--backbone")
BERT = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
STEPS = 1000  # per epoch
BATCH_NORM = keras.layers.BatchNormalization
CAPTIONS = ["a red bird on a blue branch"] * 4


def rows(commands):
    """Cells of the table, one row per kind of each `(title, recipe, flags)`; takes minutes."""
    said = {
        (recipe, one["kind"]): one
        for one in paper_sources.entries("kind")
        for recipe in one["recipes"].split()
    }
    for title, recipe, flags in commands:
        for kind, value in of(recipe, flags).items():
            one = said[recipe, kind]
            paper, _, place = one["source"].partition(", ")
            yield paper, place, "", f"{one['text']}.", STARTS + kind, value, f"{title}: {flags}"


def of(recipe, flags):
    """`{kind: value}` of a recipe with the flags of a paper's command."""
    with contextlib.ExitStack() as patches:
        caught = _caught(recipe, flags, patches.enter_context)
    model, phases, last = caught["model"], [p for p in caught["phases"] if p.epochs], None
    stream = caught["pairs"](caught["train"], 0)
    stream = stream.stream if isinstance(stream, MixedStream) else stream
    lines = {"schedule": [], "loss": [], "BatchNorm": []}
    for phase in phases:
        training.phases.freeze(phase.frozen, caught["parts"])
        rate = phase.rate(phase.epochs, STEPS) if callable(phase.rate) else phase.rate
        every = [*range(0, phase.epochs * STEPS, STEPS // 2), phase.epochs * STEPS - 1]
        at = [float(rate(step)) for step in every] if callable(rate) else [rate]
        ends = [at[0], max(at), at[-1]]
        over = " to ".join(dict.fromkeys(f"{value:.2g}" for value in ends))
        names = [part.name for part in phase.frozen]
        shown = ", ".join(names) if len(names) < 4 else f"{len(names)} layers of the network"
        frozen = f", frozen: {shown}" * bool(names)
        lines["schedule"].append(f"{phase.name}, {phase.epochs} epochs: {over}{frozen}")
        lines["loss"].append(_loss(phase.loss or model.loss))
        norms = [one for one in _layers(model.image_encoder) if isinstance(one, BATCH_NORM)]
        if any(not one.trainable for one in norms):
            lines["BatchNorm"].append(f"{phase.name}: stored statistics")
        last = phase
    optimizer = caught["optimizer"](last.model or model, 1.0)
    towers = (("image", model.image_encoder), ("caption", model.caption_encoder))
    dropped = [line for name, tower in towers for line in _dropout(tower, name)]
    terms = [f"{t.weight:g} × {t.name} ({getattr(t, 'reduction', 'mean')})" for t in _terms(model)]
    return {
        "rates": f"{type(optimizer).__name__}, norm {optimizer.global_clipnorm}; "
        + _rates(optimizer, model),
        "schedule": "; ".join(lines["schedule"]),
        "dropout": "; ".join(dict.fromkeys(dropped)) or "none",
        "words": _words(stream.augmentation),
        "loss": " + ".join([" then ".join(dict.fromkeys(lines["loss"])), *terms]),
        "BatchNorm": "; ".join(lines["BatchNorm"]) or "nothing frozen has one",
        "checkpoint": caught["select"],
    }


def _caught(recipe, flags, enter):
    module, caught = importlib.import_module(recipe), {}

    def start(settings, described, select=None):
        regions = described["loader"] == "regions"
        source = types.SimpleNamespace(shape=(36, 16) if regions else (32, 32, 3))
        named = ["a class"] if described["loader"] in ("cub", "few_classes") else None
        records = types.SimpleNamespace(captions=CAPTIONS, class_names=named)
        train = caught["train"] = types.SimpleNamespace(records=records, source=source)
        kept = select or settings.select
        averaged = getattr(settings, "averaged_epochs", 0)
        caught["select"] = f"the average of the last {averaged} epochs" if averaged else kept
        run = types.SimpleNamespace(finished=False, train=train, validation=train)
        run.replicas = contextlib.nullcontext
        return run

    def fit(run, phases, pairs, optimizer, seed=0, order=None):
        parts = [part for phase in phases for part in phase.frozen]
        caught.update(model=run.model, phases=phases, pairs=pairs, optimizer=optimizer, parts=parts)
        raise StopIteration

    def tokenizer(path, max_words):
        return data.word_tokenizer(CAPTIONS, max_words=max_words)

    bert, images, text = encoders.bert, encoders.clip_image, encoders.clip_text
    for place, name, value in (
        (training, "start", start),
        (training, "fit", fit),
        (clip_tokenizer, "read_clip_tokenizer", tokenizer),
        (encoders, "bert", lambda *_, max_length=8, **__: bert(None, 30, max_length, **BERT)),
        (encoders, "clip_image", lambda *_, **more: images("tiny", None, 32, **more)),
        (encoders, "clip_text", lambda *_, **more: text("tiny", None, **more)),
    ):
        enter(mock.patch.object(place, name, value))
    for where in map(importlib.import_module, (recipe, "daa_training", "dive_coco")):
        if hasattr(where, "read_bert_tokenizer"):
            enter(mock.patch.object(where, "read_bert_tokenizer", tokenizer))
    with contextlib.suppress(StopIteration):
        module.main(_small(module.Settings, flags))
    return caught


def _small(settings, flags):
    """The flags without files, and the sizes of a small model where the recipe has such flags."""
    kept, words = [], flags.split()
    for flag, value in zip(words[::2], words[1::2], strict=True):
        kept += [flag, value] if flag not in FILES else []
    names = {field.name for field in dataclasses.fields(settings)}
    for name, value in SMALL.items():
        if name in names and not (name == "backbone" and "--bpe" in words):
            kept.append(f"--{name.replace('_', '-')}={value}" if value else "--no-cache-features")
    return kept


def _rates(optimizer, model):
    optimizer.build(model.trainable_variables)
    factors = getattr(optimizer, "_rate_of", None) or [1.0] * len(model.trainable_variables)
    rate = {id(v): factor for v, factor in zip(model.trainable_variables, factors, strict=True)}
    said = []
    for tower in (model.image_encoder, model.caption_encoder):
        for part in tower.layers:
            found = sorted({rate[id(v)] for v in part.trainable_variables if id(v) in rate})
            if found and found != [1.0]:
                said.append(f"{tower.name.split('_')[0]} {part.name} × {_list(found)}")
    return "; ".join(said) or "one rate"


def _dropout(part, place):
    for layer in part._flatten_layers(include_self=False, recursive=False):
        name = f"{place} {re.sub(r'_[0-9]+$', '', layer.name)}"
        for rate in (getattr(layer, "rate", 0), getattr(layer, "drop_rate", 0)):
            if isinstance(rate, float) and rate:
                yield f"{name} {rate:g}"
        yield from _dropout(layer, name)


def _words(noise):
    lost = noise.word_dropping
    if isinstance(noise, SizeAugmentation) and lost:
        return f"{lost:.0%} lost: half masked, a tenth replaced, the rest deleted"
    deleted = f", then {noise.word_deleting:.0%} deleted" * bool(noise.word_deleting)
    return f"{lost:.0%} masked{deleted}" if lost else "kept"


def _loss(loss):
    config = loss.get_config()
    said = [config.get("mining"), config.get("reduction")]
    return f"{type(loss).__name__} ({', '.join(filter(None, said)) or 'mean'})"


def _terms(model):
    return [term for term in model.auxiliaries if term.weight]


def _layers(part):
    return [layer for layer in part._flatten_layers() if isinstance(layer, keras.layers.Layer)]


def _list(values):
    return ", ".join(f"{value:.2g}" for value in values)
