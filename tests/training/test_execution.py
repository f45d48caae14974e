import random
import re
from dataclasses import dataclass
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo import models
from zoo.data.text.captions import WordTokenizer
from zoo.errors import InputError
from zoo.files.json_files import write_json
from zoo.models.run_folder import RunFolder
from zoo.training import (
    Execution,
    Run,
    RunSettings,
    on_one_device,
    strategy,
)
from zoo.training.execution import is_chief

WORDS = WordTokenizer(["bird", "red"], max_words=4)


def tiny():
    random.seed(0)
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(4, 3)(image), name="backbone")
    return models.vsepp(backbone, WORDS, dim=4, word_dim=4, image_size=8)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"strategy": "mirrored", "jit_compile": "on"}, "--jit-compile on works on one device"),
        ({"strategy": "tpu", "mixed_precision": "mixed_float16"}, "take mixed_bfloat16"),
        ({"strategy": "multi_worker"}, "TF_CONFIG"),
    ],
)
def test_what_does_not_go_together_is_said_at_once(flags, message, monkeypatch):
    with pytest.raises(ValueError, match=r"`name` must be one of .*received 'two'"):
        strategy("two")
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(InputError, match=message):
        Execution.of(RunSettings(**flags))


@pytest.mark.parametrize(
    ("jobs", "kind", "number", "expected"),
    [
        ({"worker": ["a", "b"]}, "worker", 1, False),
        ({"chief": ["a"], "worker": ["b"]}, "chief", 0, True),
        ({"chief": ["a"], "worker": ["b"]}, "worker", 0, False),
    ],
)
def test_one_process_of_a_cluster_is_the_chief(jobs, kind, number, expected):
    resolver = SimpleNamespace(
        cluster_spec=lambda: tf.train.ClusterSpec(jobs), task_type=kind, task_id=number
    )
    assert is_chief(SimpleNamespace(cluster_resolver=resolver)) == expected
    assert is_chief(tf.distribute.get_strategy())


def test_a_copy_on_one_device_has_weights_and_seeds():
    model = tiny()
    for variable in model.variables:
        variable.assign(variable + 1)
    copy = on_one_device(model)
    for ours, theirs in zip(copy.variables, model.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_run_of_a_version_without_a_setting_is_resumed_by_its_default(tmp_path):
    @dataclass(frozen=True, kw_only=True)
    class Settings(RunSettings):
        epochs: int = 3

    run = RunFolder.open(tmp_path / "a", Settings())
    config = run.config
    del config["settings"]["tensor_float_32"]
    write_json(run.config_path, config)
    RunFolder.open(tmp_path / "a", Settings())
    run.history_path.write_text("epoch\n")  # something was trained
    with pytest.raises(InputError, match="tensor_float_32 was False and is now True"):
        RunFolder.open(tmp_path / "a", Settings(tensor_float_32=True))


def test_another_backend_is_one_sentence(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(InputError, match=r"needs Keras' backend tensorflow .*; received jax$"):
        Execution.of(RunSettings())


@pytest.mark.parametrize(
    ("strategy", "size", "expected"),
    [
        ("tpu", 150, "a multiple of the 4 replicas of --strategy tpu; received 150"),
        ("mirrored", 3, "at least the number of the 4 replicas of --strategy mirrored; received 3"),
    ],
)
def test_what_replicas_cannot_share_is_refused(strategy, size, expected, tmp_path, monkeypatch):
    four = SimpleNamespace(num_replicas_in_sync=4)
    monkeypatch.setattr(Execution, "devices", property(lambda execution: four))
    run = Run(RunFolder.open(tmp_path, {}), Execution(strategy=strategy))
    stream = SimpleNamespace(size=size)
    with pytest.raises(InputError, match=re.escape(expected)):
        run.fit(None, "training", stream, epochs=1)
    Execution(strategy=strategy).check_batch(152)
