"""How a step runs: devices, parts of a batch, XLA with fixed shapes."""

import random
import re
from dataclasses import dataclass
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from halo_search.errors import InputError
from halo_search.files.json_files import write_json
from zoo import encoders, losses, models
from zoo.data.text.captions import WordTokenizer
from zoo.models.run_folder import RunFolder
from zoo.training import Execution, Run, RunSettings, distribute, on_one_device, strategy
from zoo.training.execution import in_parts, is_chief

TWO_WORDS = WordTokenizer(["bird", "red"], max_words=4)


def tiny():
    random.seed(0)
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(4, 3)(image), name="backbone")
    return models.vsepp(backbone, TWO_WORDS, dim=4, word_dim=4, image_size=8)


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
        run.run_phase(None, "training", stream, epochs=1)
    Execution(strategy=strategy).check_batch(152)


def stream(rows, each=2):
    batches = {
        "images": np.arange(3 * rows).reshape(3, rows),
        "captions": np.arange(3 * rows * each).reshape(3, rows * each),
        "matches": np.arange(3 * rows * rows * each).reshape(3, rows, rows * each),
    }
    return lambda start: tf.data.Dataset.from_tensor_slices(batches).skip(start)


@pytest.mark.parametrize(("rows", "count"), [(8, 4), (7, 3), (1, 2), (5, 5)])
def test_the_pieces_of_a_batch_make_the_batch(rows, count):
    batches = list(stream(rows)(0))
    pieces = list(in_parts(stream(rows)(0), count))
    assert len(pieces) == 3 * count
    for number, batch in enumerate(batches):
        own = pieces[number * count : (number + 1) * count]
        for name, whole in batch.items():
            np.testing.assert_array_equal(np.concatenate([p[name] for p in own]), whole)
            sizes = [len(p[name]) for p in own]
            assert max(sizes) - min(sizes) <= 1


def test_equal_pieces_have_fixed_shapes_and_others_cannot():
    shapes = {n: s.shape for n, s in in_parts(stream(8)(0), 4).element_spec.items()}
    assert shapes == {"images": (2,), "captions": (4,), "matches": (2, 16)}
    assert in_parts(stream(7)(0), 4).element_spec["images"].shape.rank == 1


def test_on_one_replica_a_stream_is_itself():
    whole = list(distribute(tf.distribute.get_strategy(), stream(4), 1))
    np.testing.assert_array_equal(whole[0]["images"], [4, 5, 6, 7])
    assert len(whole) == 2


WORDS = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=4)
SIZE = {"tokenizer": WORDS, "dim": 6, "word_dim": 4, "image_size": 16}
REGIONS = (3, 8)
SYSTEMS = {
    "pcme": lambda: models.pcme(pixels(), **SIZE),
    "pcmepp": lambda: models.pcmepp(pixels(), **SIZE),
    # Of its iterations, which are unrolled, the first and one that has others' slots.
    "dive": lambda: models.dive(REGIONS, **SIZE, num_iterations=2),
    "pvse": lambda: models.pvse(REGIONS, **SIZE),
    "vsepp": lambda: models.vsepp(pixels(), **SIZE),
    "daa": lambda: models.vsepp(pixels(), **SIZE).with_auxiliaries(
        losses.AuxiliaryRanking(losses.SemanticPrecision(0.1))
    ),
    "captioned vsrn": lambda: models.with_captioning(
        models.vsrn(
            encoders.image_features(REGIONS), tokenizer=WORDS, dim=6, word_dim=4, num_layers=1
        ),
        word_dim=4,
    ),
}


def pixels():
    image = keras.Input((16, 16, 3))
    return keras.Model(image, keras.layers.Conv2D(6, 3, 4)(image), name="backbone")


FIRST = ("daa",)  # points with a term; the others are of `make test-slow`


def step_and_batch(name):
    model = SYSTEMS[name]()
    model.compile(keras.optimizers.SGD(0.01))
    model.optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(0)
    labels = np.arange(4, dtype="int32")
    batch = {
        "images": rng.uniform(size=(4, *model.image_encoder.input_shape[1:])).astype("float32"),
        "captions": rng.integers(1, 8, (8, 4)).astype("int32"),
        "image_labels": labels,
        "caption_labels": np.repeat(labels, 2),
        "semantic": rng.uniform(size=(4, 8)).astype("float32"),
    }
    batch = {key: tf.constant(value) for key, value in batch.items()}
    return tf.function(model.train_step, jit_compile=True), batch


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FIRST else pytest.mark.very_slow) for n in SYSTEMS]
)
def test_no_shape_of_the_step_is_dynamic(name):
    step, batch = step_and_batch(name)
    program = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert "HloModule" in program
    assert "<=" not in program  # how a dimension is written that has a bound and no size
