"""Every number that a flag sets arrives where it acts, and nowhere else, in each recipe."""

import collections
import contextlib
import dataclasses
import importlib
import os
import re
import types
from pathlib import Path

import pytest

from zoo import cli, data, training

WRITTEN = Path(__file__).parents[1] / "golden" / "settings.txt"
WRITE = "HALO_WRITE_GOLDEN=1 pytest tests/recipes/test_settings_arrive.py"
WHOLE = {
    "dim": 24,
    "word_dim": 10,
    "batch_size": 12,
    "steps_per_epoch": 13,
    "max_words": 15,
    "seed": 7771,
    "num_samples": 5,
    "similarity_dim": 14,
    "num_slots": 2,
    "num_iterations": 6,
    "captions_per_image": 3,
    "num_embeddings": 2,
    "num_layers": 3,
    "num_steps": 7,
    "warm_up_epochs": 21,
    "frozen_epochs": 22,
    "mean_epochs": 31,
    "pre_training_epochs": 41,
    "fine_tuning_epochs": 51,
    "cosine_epochs": 91,
    "drop_epoch": 61,
    "last_epochs": 71,
    "averaged_epochs": 33,
    "epochs": 171,
    "variance_epochs": 34,
}
GAUSSIAN = ("--covariance=spherical_mean", "--similarity=min_kl")
PICTURES = (
    "--mining=hardest",
    "--features=resnet152",
    "--backbone=tiny",
    "--image-size=32",
    "--crop-and-flip",
)
RECIPES = {
    "pcme_cub": (),
    "pcme_coco": (),
    "pcmepp_coco": (),
    "pcmepp_coco vse": ("--method=vse_infinity",),
    "pcmepp_coco infonce": ("--method=infonce",),
    "vse_coco": ("--no-fine-tune",),
    "gaussian_vsepp_coco": GAUSSIAN,
    "vsrn_flickr30k": ("--fine-tuning-epochs=0",),
    "gaussian_vsrn_flickr30k": (*GAUSSIAN, "--fine-tuning-epochs=0"),
    "daa_cub": (),
    "daa_coco": ("--method=moment_matched",),
    "daa_sgraf_flickr30k": ("--mining=hardest",),
    "dive_coco": ("--frozen-epochs=0", "--mining=hardest"),
    "dive_coco pictures": PICTURES,
    "pvse_cub": (),
}
SKIPPED = {"inbound_nodes", "build_config", "input_layers", "output_layers", "batch_shape"}
SKIPPED |= {"kernel_size", "strides", "filters"}  # of shapes and of the network over pictures
NOT_MARKED = {"crop_fraction"}  # of the data


class DoneError(Exception):
    """The model and the phases are there; nothing has to be trained."""


@pytest.mark.usefixtures("small_sets", "undecoded")
@pytest.mark.parametrize("name", RECIPES)
def test_every_number_arrives(name, tmp_path, monkeypatch):
    recipe = importlib.import_module(name.split()[0])
    flags, marks = marked(recipe.Settings, RECIPES[name])
    caught = {}

    def run_phases(run, phases, batches, optimizer, seed=0, order=None):
        caught.update(model=run.model, phases=phases, batches=batches, optimizer=optimizer)
        caught["seed"] = seed
        raise DoneError

    def started(settings, described, select=None):
        train = caught["train"] = data.open(described, "train")
        run = types.SimpleNamespace(finished=False, train=train, validation=train)
        run.replicas = contextlib.nullcontext
        run.without_backbone = lambda: (run.model, (train, train))
        return run

    monkeypatch.setattr(training, "run_phases", run_phases)
    monkeypatch.setattr(training, "start", started)
    with pytest.raises(DoneError):
        recipe.main([*flags, f"--out={tmp_path / 'run'}"])
    assert caught["seed"] == WHOLE["seed"]
    lines = [f"{name}: {line}" for line in arrived(caught, marks)]
    if os.environ.get("HALO_WRITE_GOLDEN"):
        others = WRITTEN.read_text().splitlines() if WRITTEN.exists() else []
        others = [line for line in others if not line.startswith(f"{name}: ")]
        WRITTEN.write_text("\n".join(sorted([*others, *lines])) + "\n")
    expected = [line for line in WRITTEN.read_text().splitlines() if line.startswith(f"{name}: ")]
    changed = sorted(set(lines) ^ set(expected))
    assert sorted(lines) == expected, f"{changed[:6]}; if it is meant: {WRITE}"


def marked(of_recipe, more):
    """Flags that give every number a value that no other has, and `{value: flag}`."""
    given = cli.parse(of_recipe, list(more))
    flags, marks = list(more), {}
    said = {flag.lstrip("-").partition("=")[0].replace("-", "_") for flag in more}
    names = sorted(field.name for field in dataclasses.fields(of_recipe))
    # From 3, so that no mark is the 1e-3 of a BatchNorm.
    for place, name in enumerate(names, start=3):
        value = getattr(given, name)
        if name in said | NOT_MARKED or not (name in WHOLE or isinstance(value, float)):
            continue
        if name in WHOLE:
            value = WHOLE[name]
        else:
            value = value / 2 if 0.5 < value <= 1 else value  # it may be a share
            value += -1e-4 * place if value < 0 else 1e-4 * place
        flags.append(f"--{name.replace('_', '-')}={value}")
        marks[round(value, 9)] = name
        if name == "temperature":
            marks[round(1 / value, 9)] = f"1 / {name}"
    return flags, marks


def arrived(caught, marks):
    """Lines `flag -> place`, and a line for what each phase is."""
    model, lines = caught["model"], set()
    stream = caught["batches"](caught["train"], 3)
    places = {
        "model": model.get_config(),
        "stream": {"batch_size": stream.batch_size, "steps": stream.steps},
        "augmentation": stream.augmentation,
        "options": stream.options,
        "mixing": stream.mixing or {},
        "optimizer": caught["optimizer"](model, 0.5),
    }
    for place, value in numbers(places):
        if value in marks:
            lines.add(f"{marks[value]} -> {place}")
    for phase in caught["phases"]:
        rate = phase.rate(phase.epochs, 10) if callable(phase.rate) else phase.rate
        for place, value in numbers({"rate": rate, "loss": phase.loss}):
            lines.add(f"phase {phase.name}: {place} {marks.get(value, value)}")
        frozen = ", ".join(layer.name for layer in phase.frozen) or "nothing"
        mined = f", mining {phase.loss.mining}" if phase.loss is not None else ""
        lines.add(f"phase {phase.name}: {phase.epochs} epochs, frozen: {frozen}{mined}")
    return sorted(lines)


def numbers(value, place=""):
    """`(place, number)` of everything in a configuration; layers have their names as places."""
    if hasattr(value, "get_config"):
        yield from numbers(value.get_config(), f"{place}.{type(value).__name__}")
    elif dataclasses.is_dataclass(value):
        yield from numbers(dict(vars(value)), place)
    elif isinstance(value, dict) and {"class_name", "config"} <= set(value):
        inner = value["config"] if isinstance(value["config"], dict) else {}
        name = re.sub(r"_\d+$", "", str(inner.get("name") or value["class_name"]))
        yield from numbers(inner, f"{place}.{name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "rates":
                rates = inner.values() if isinstance(inner, dict) else inner
                for rate, count in collections.Counter(rates).items():
                    yield f"{place}.rates of {count}", round(rate, 9)
            elif key not in SKIPPED:
                yield from numbers(inner, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            is_number = isinstance(inner, int | float)
            yield from numbers(inner, f"{place}[{index}]" if is_number else place)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, round(value, 9)
