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
from zoo.files import RunFolder
from zoo.files.json_files import write_json
from zoo.training import (
    Execution,
    Run,
    RunSettings,
    fit_phase,
    on_one_device,
    strategies,
)
from zoo.training.strategies import is_chief

WORDS = WordTokenizer(["bird", "red"], max_words=4)


def tiny():
    random.seed(0)
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(4, 3)(image), name="backbone")
    return models.vsepp(backbone, WORDS, dim=4, word_dim=4, image_size=8)


def batches(start_step):
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(4, dtype="int32"), (6, 1))
    data = {
        "images": rng.uniform(0, 255, (6, 4, 8, 8, 3)).astype("float32"),
        "captions": rng.integers(1, 4, (6, 4, 4)).astype("int32"),
        "image_labels": labels,
        "caption_labels": labels,
    }
    return tf.data.Dataset.from_tensor_slices(data).skip(start_step)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"strategy": "mirrored", "gradient_accumulation": 2}, "--gradient-accumulation works on"),
        ({"strategy": "mirrored", "jit_compile": "on"}, "--jit-compile on works on one device"),
        ({"strategy": "tpu", "mixed_precision": "mixed_float16"}, "take mixed_bfloat16"),
        ({"strategy": "multi_worker"}, "TF_CONFIG"),
    ],
)
def test_what_does_not_go_together_is_said_at_once(flags, message, monkeypatch):
    with pytest.raises(ValueError, match=r"`name` must be one of .*received 'two'"):
        strategies.strategy("two")
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


def test_accumulated_pieces_make_one_step_of_the_same_batches(tmp_path):
    run = RunFolder.open(tmp_path, {})
    execution = Execution(gradient_accumulation=2)
    model = tiny()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    fit_phase(run, model, "training", batches, epochs=2, steps=3, execution=execution)
    assert int(model.optimizer.iterations) == 6
    # By hand: the mean of the gradients of the two halves of each batch.
    own = tiny()
    own.compile(keras.optimizers.SGD(0.1))
    for batch in batches(0):
        total = [tf.zeros(v.shape) for v in own.trainable_variables]
        for half in (slice(0, 2), slice(2, 4)):
            rows = {name: value[half] for name, value in batch.items()}
            with tf.GradientTape() as tape:
                loss = own.compute_loss(x=rows, y_pred=own(rows, training=True))
            gradients = tape.gradient(loss, [v.value for v in own.trainable_variables])
            total = [t + tf.convert_to_tensor(g) / 2 for t, g in zip(total, gradients, strict=True)]
        own.optimizer.apply(total, own.trainable_variables)
    for ours, theirs in zip(model.variables, own.variables, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6, err_msg=theirs.path)


def test_each_phase_has_a_tensorboard_of_its_own(tmp_path):
    (callback,) = Execution(tensorboard=True).callbacks(SimpleNamespace(path=tmp_path), "warm_up")
    assert callback.log_dir == str(tmp_path / "tensorboard" / "warm_up")
    assert Execution().callbacks(SimpleNamespace(path=tmp_path), "warm_up") == []


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
    del config["settings"]["gradient_accumulation"]
    write_json(run.config_path, config)
    RunFolder.open(tmp_path / "a", Settings())
    run.history_path.write_text("epoch\n")  # something was trained
    with pytest.raises(InputError, match="gradient_accumulation was 1 and is now 2"):
        RunFolder.open(tmp_path / "a", Settings(gradient_accumulation=2))


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
