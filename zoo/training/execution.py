"""On which replicas the phases of a run are executed, and how compiled."""

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from halo_search.errors import InputError
from zoo.layers.compat import all_layers, clip_after_the_sum, replace_moments


@dataclass(frozen=True)
class Execution:
    """On which replicas to train, by a name of `zoo.training.strategy`, and whether by XLA: `"on"`,
    `"off"`, or `"auto"`, on one GPU, as Keras does.

    ```python
    zoo.training.Execution(strategy="one").is_chief  # True
    ```
    """

    strategy: str = "one"
    jit_compile: str = "auto"

    @classmethod
    def of(cls, settings: Any) -> "Execution":
        """That of a `RunSettings`; with several workers to be called before anything is computed.
        Raises InputError if settings contradict each other or this machine and its backend."""
        if (backend := keras.backend.backend()) != "tensorflow":
            raise InputError(
                "training needs Keras' backend tensorflow (KERAS_BACKEND, or keras.json); received "
                f"{backend}"
            )
        execution = cls(settings.strategy, settings.jit_compile)
        execution._check(settings.mixed_precision)
        # Products of float32 in TF32 keep 10 bits, and distances are small differences of them.
        tf.config.experimental.enable_tensor_float_32_execution(settings.tensor_float_32)
        execution.devices  # noqa: B018 (starts them)
        if (size := getattr(settings, "batch_size", None)) is not None:
            execution.check_batch(size)
        return execution

    @property
    def devices(self) -> tf.distribute.Strategy:
        return strategy(self.strategy)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run folder."""
        return is_chief(self.devices)

    @property
    def is_spread(self) -> bool:
        """Whether there are several replicas, or a strategy that acts like it."""
        return self.strategy != "one"

    def check_batch(self, size: int) -> None:
        """Raises InputError if a global batch has no row for some replica or, on TPUs, whose
        programs have fixed shapes, not the same number for each."""
        replicas = self.devices.num_replicas_in_sync
        if size < replicas or (self.strategy == "tpu" and size % replicas):
            expected = "a multiple" if self.strategy == "tpu" else "at least the number"
            raise InputError(
                f"--batch-size, and what the training split has at most, must be {expected} of the "
                f"{replicas} replicas of --strategy {self.strategy}; received {size}"
            )

    def prepare(self, model: keras.Model) -> None:
        """Makes a compiled model ready for these replicas."""
        if self.jit_compile != "auto":
            model.jit_compile = self.jit_compile == "on"
        if self.is_spread:
            clip_after_the_sum(model.optimizer)
            synchronize_batch_normalization(model)

    def batches(self, stream: Callable, start_step: int) -> Any:
        """The batches of a stream from a step on, for `fit`."""
        return distribute(self.devices, stream, start_step)

    def agree(self, epochs_done: int) -> None:
        """Raises InputError if the workers found different checkpoints: `--out` is not one folder
        that all of them see."""
        if self.strategy != "multi_worker":
            return
        epochs = self.devices.gather(
            self.devices.run(lambda: tf.constant([epochs_done], tf.int32)), axis=0
        )
        if len(set(epochs.numpy())) > 1:
            raise InputError(
                f"the workers found checkpoints of epochs {sorted(set(epochs.numpy().tolist()))}: "
                "--out must be one folder that all of them see"
            )

    def wait_for_all(self) -> None:
        """Returns when all workers have come here, so that none leaves the others waiting."""
        self.agree(0)

    def _check(self, mixed_precision):
        """Raises InputError for settings that do not work on several replicas."""
        if not self.is_spread:
            return
        where = f"--strategy {self.strategy}"
        if self.jit_compile == "on" and self.strategy != "tpu":
            raise InputError(
                f"--jit-compile on works on one device only, not with {where}, whose collectives "
                "XLA does not compile; a TPU compiles without it"
            )
        if mixed_precision == "mixed_float16":
            raise InputError(
                f"--mixed-precision mixed_float16 works on one device only, not with {where}: "
                "Keras looks for infinite gradients on the first replica; take mixed_bfloat16"
            )


def on_one_device(model: keras.Model) -> keras.Model:
    """A copy of a model outside of any strategy, with its weights and random states. Its methods
    run in this process alone; those of a model of several workers wait for the others."""
    copy = type(model).from_config(model.get_config())
    for variable, given in zip(copy.variables, model.variables, strict=True):
        variable.assign(keras.ops.convert_to_numpy(given))
    return copy


def in_parts(batches, count, chosen=None):
    """Cuts every batch of a dataset of dicts into `count` parts, which differ by a row at most, and
    yields those in the range `chosen`."""
    if count == 1:
        return batches
    chosen = range(count) if chosen is None else chosen

    def cut(batch):
        return tf.data.Dataset.range(chosen.start, chosen.stop).map(
            lambda index: {name: _part(rows, index, count) for name, rows in batch.items()}
        )

    return batches.flat_map(cut).prefetch(tf.data.AUTOTUNE)


def distribute(strategy: tf.distribute.Strategy, stream: Callable, start_step: int = 0) -> Any:
    """The batches of a stream spread over the replicas: the same global batches as on one device.

    `stream` is a function from the first step to a `tf.data.Dataset` of global batches. If it takes
    `shard`, every worker asks for its `(index, count)` share alone; else it makes whole batches and
    keeps its rows, which is needed where rows depend on others.
    """
    if strategy.num_replicas_in_sync == 1:
        return stream(start_step)

    def of_worker(context):
        workers, worker = context.num_input_pipelines, context.input_pipeline_id
        local = context.num_replicas_in_sync // workers
        in_shards = "shard" in inspect.signature(stream).parameters
        if workers > 1 and in_shards and not getattr(stream, "mixing", None):
            return in_parts(stream(start_step, shard=(worker, workers)), local)
        worker_parts = range(worker * local, (worker + 1) * local)
        return in_parts(stream(start_step), context.num_replicas_in_sync, worker_parts)

    return strategy.distribute_datasets_from_function(of_worker)


def _part(rows, index, count):
    """The `index`-th of `count` nearly equal parts of the rows."""
    size = rows.shape[0]
    if size is None:
        size = tf.shape(rows, out_type=tf.int64)[0]
    part = rows[size * index // count : size * (index + 1) // count]
    if isinstance(size, int) and size % count == 0:
        part = tf.ensure_shape(part, (size // count, *rows.shape[1:]))
    return part


NAMES = ("one", "mirrored", "multi_worker", "tpu")


def strategy(name: str) -> tf.distribute.Strategy:
    """The `tf.distribute.Strategy` of a name, the same object every time: several mirrored ones in
    one process abort it.

    Args:
        name: `"one"`, the default device; `"mirrored"`, all GPUs of this host, or without GPUs all
            logical CPUs; `"multi_worker"`, the hosts of the variable TF_CONFIG, to be asked for
            before anything is computed; `"tpu"`, that of the variable TPU_NAME, or the local one.
            Without such devices an InputError.
    """
    if name not in NAMES:
        raise ValueError(f"`name` must be one of {NAMES}; received {name!r}")
    return tf.distribute.get_strategy() if name == "one" else _started(name)


def is_chief(strategy):
    """Whether this process is the chief or, without one, worker 0."""
    resolver = getattr(strategy, "cluster_resolver", None)
    if resolver is None or not resolver.cluster_spec() or resolver.task_type is None:
        return True
    kind, number = resolver.task_type, resolver.task_id
    has_chief = "chief" in resolver.cluster_spec().jobs
    return kind == "chief" or (not has_chief and number == 0)


def synchronize_batch_normalization(model: keras.Model) -> None:
    """Makes a model's BatchNorm take its statistics over all replicas. Keras' `synchronized=True`
    is given to constructors, not to a pretrained network's, and passes over masks (3.15.1)."""
    for layer in all_layers(model):
        if isinstance(layer, keras.layers.BatchNormalization):
            replace_moments(layer, _moments)


@functools.cache
def _started(name):
    """The strategy of a name, started at the first call."""
    return {"mirrored": _mirrored, "multi_worker": _multi_worker, "tpu": _tpu}[name]()


def _mirrored():
    """A strategy over all GPUs of this host, or its logical CPUs."""
    devices = [device.name for device in tf.config.list_logical_devices("GPU")]
    if devices:
        return tf.distribute.MirroredStrategy(devices)
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    # The default for CPUs starts collectives, which abort when a process makes several.
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def _multi_worker():
    """A strategy over the hosts of TF_CONFIG. Raises InputError without one."""
    if not os.environ.get("TF_CONFIG"):
        raise InputError(
            "--strategy multi_worker needs the variable TF_CONFIG, which names the hosts and this "
            "one among them; see docs/training.md"
        )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:  # something was computed before
        raise InputError(f"--strategy multi_worker must come first: {error}") from error
    except ValueError as error:
        raise InputError(f"TF_CONFIG: {error}") from error


def _tpu():
    """A strategy over the TPU of TPU_NAME, or the local one. Raises InputError without one."""
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(os.environ.get("TPU_NAME", ""))
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"--strategy tpu found no TPU: {error} (a TPU VM needs the packages tensorflow-tpu, in "
            "place of tensorflow, and libtpu; see docs/training.md)"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _moments(axes, inputs, mask):
    """Mean and variance over all replicas, of unmasked positions."""
    context = tf.distribute.get_replica_context()

    def over_all(*values):
        sums = [tf.reduce_sum(value, axes, keepdims=True) for value in values]
        return sums if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, sums)

    mask_weights = tf.ones_like(inputs)
    if mask is not None:
        mask_weights = mask_weights * tf.cast(mask[..., None], inputs.dtype)
    total, count = over_all(mask_weights * inputs, mask_weights)
    mean = tf.math.divide_no_nan(total, count)
    (squares,) = over_all(mask_weights * tf.square(inputs - mean))
    variance = tf.math.divide_no_nan(squares, count)
    return tf.squeeze(mean, axes), tf.squeeze(variance, axes)
