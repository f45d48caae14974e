"""How the phases of a run are executed: on which replicas, compiled how, how cut."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from zoo.errors import InputError, require
from zoo.layers.compat import clip_after_the_sum
from zoo.training.strategies import is_chief, strategy, synchronize_batch_normalization

_MATRICES = ("matches", "semantic")  # (images, captions)


@dataclass(frozen=True)
class Execution:
    """What `fit_phase` needs to know beside the model and its batches.

    ```python
    zoo.training.Execution(strategy="one").is_chief  # True
    ```

    Args:
        strategy: a name of `zoo.training.strategies`.
        jit_compile: `"on"`, `"off"`, or `"auto"`, which compiles by XLA on one GPU, as Keras does.
        gradient_accumulation: micro-batches of a batch, one gradient step for all of them. Memory
            is that of a micro-batch, and so are the negatives.
        tensorboard: whether to write logs for TensorBoard.
    """

    strategy: str = "one"
    jit_compile: str = "auto"
    gradient_accumulation: int = 1
    tensorboard: bool = False

    @classmethod
    def of(cls, settings: Any) -> "Execution":
        """That of a `RunSettings`; with several workers to be called before anything is computed.

        Raises:
            InputError: if the settings do not go together, a device or package is missing, or Keras
                runs on another backend.
        """
        if (backend := keras.backend.backend()) != "tensorflow":
            raise InputError(
                "training needs Keras' backend tensorflow (KERAS_BACKEND, or keras.json); received "
                f"{backend}"
            )
        execution = cls(
            settings.strategy,
            settings.jit_compile,
            settings.gradient_accumulation,
            settings.tensorboard,
        )
        execution._check(settings.mixed_precision)
        # Products of float32 in TF32 keep 10 bits, and distances are small differences of them.
        tf.config.experimental.enable_tensor_float_32_execution(settings.tensor_float_32)
        execution.devices  # noqa: B018 (starts them)
        if (size := getattr(settings, "batch_size", None)) is not None:
            execution.check_batch(size)
        return execution

    @property
    def devices(self) -> tf.distribute.Strategy:
        """The `tf.distribute.Strategy`."""
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
        """Whether a batch has rows for all replicas, or all steps of an accumulated gradient.

        Args:
            size: pairs, or images, of a global batch.

        Raises:
            InputError: if one would have none, or, on TPUs, whose programs have fixed shapes, if
                they would not have the same number.
        """
        if size < self.gradient_accumulation:
            raise InputError(
                f"--gradient-accumulation must be at most --batch-size {size}; received "
                f"{self.gradient_accumulation}"
            )
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
        if self.gradient_accumulation > 1:
            optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
            optimizer.gradient_accumulation_steps = self.gradient_accumulation
        if self.is_spread:
            clip_after_the_sum(model.optimizer)
            synchronize_batch_normalization(model)

    def batches(self, stream: Callable, start_step: int) -> Any:
        """The batches of a stream from a step on, for `fit`."""
        return distribute(self.devices, stream, start_step, self.gradient_accumulation)

    def callbacks(self, run: Any, phase: str) -> list:
        """The callbacks of this process alone."""
        if not (self.tensorboard and self.is_chief):
            return []
        folder = run.path / "tensorboard" / phase
        return [keras.callbacks.TensorBoard(folder, write_graph=False)]

    def agree(self, epochs_done: int) -> None:
        """Checks that all workers found the same checkpoint.

        Raises:
            InputError: if they did not: `--out` is not one folder that all of them see.
        """
        if self.strategy != "multi_worker":
            return
        found = self.devices.gather(
            self.devices.run(lambda: tf.constant([epochs_done], tf.int32)), axis=0
        )
        if len(set(found.numpy())) > 1:
            raise InputError(
                f"the workers found checkpoints of epochs {sorted(set(found.numpy().tolist()))}: "
                "--out must be one folder that all of them see"
            )

    def wait_for_all(self) -> None:
        """Returns when all workers have come here, so that none leaves the others waiting."""
        self.agree(0)

    def _check(self, mixed_precision):
        if self.gradient_accumulation < 1:
            raise InputError(
                f"--gradient-accumulation must be at least 1; received {self.gradient_accumulation}"
            )
        if self.tensorboard:
            require("tensorboard", extra="tensorboard")
        if not self.is_spread:
            return
        where = f"--strategy {self.strategy}"
        if self.gradient_accumulation > 1:
            raise InputError(
                f"--gradient-accumulation works on one device only, not with {where}: Keras "
                "accumulates outside of its replicas"
            )
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
    """A copy of a model outside of any strategy, with its weights and random states.

    Its methods run in this process alone; those of a model of several workers wait for the others.
    """
    copy = type(model).from_config(model.get_config())
    for own, given in zip(copy.variables, model.variables, strict=True):
        own.assign(keras.ops.convert_to_numpy(given))
    return copy


def in_micro_batches(
    batches: tf.data.Dataset, count: int, chosen: range | None = None, alone: bool = False
) -> tf.data.Dataset:
    """Cuts every batch into micro-batches, one after the other.

    Micro-batches differ by a row at most. Every component of a batch is cut along its first axis;
    images and captions are each cut evenly, also where an image has several captions.

    Args:
        batches: a `tf.data.Dataset` of dicts of fixed shapes.
        count: micro-batches of a batch.
        chosen: a range of the micro-batches to yield, or None for all.
        alone: whether a loss sees a micro-batch alone, as when gradients are accumulated: `matches`
            and `semantic` `(N, M)` then lose the columns of the others' captions. Replicas see
            each other's captions and need them.

    Returns:
        A `tf.data.Dataset` of `len(chosen)` elements for every batch.
    """
    chosen = range(count) if chosen is None else chosen
    if count == 1:
        return batches

    def cut(batch):
        return tf.data.Dataset.range(chosen.start, chosen.stop).map(
            lambda index: {name: cut_one(name, rows, index) for name, rows in batch.items()}
        )

    def cut_one(name, rows, index):
        own = _part(rows, index, count)
        if not alone or name not in _MATRICES:
            return own
        return tf.transpose(_part(tf.transpose(own), index, count))

    return batches.flat_map(cut).prefetch(tf.data.AUTOTUNE)


def distribute(
    strategy: tf.distribute.Strategy,
    stream: Callable,
    start_step: int = 0,
    micro_batches: int = 1,
) -> Any:
    """The batches of a stream spread over the replicas: the same global batches as on one device.

    Args:
        strategy: a `tf.distribute.Strategy`.
        stream: function from the first step to a `tf.data.Dataset` of global batches. If it also
            takes `shard`, every worker asks it for its `(index, count)` share alone; otherwise it
            makes whole batches and keeps its rows, which is needed where rows depend on others
            (`zoo.data.pipeline.streams`).
        start_step: the first step.
        micro_batches: of a batch, on one replica: the steps whose gradients are accumulated.

    Returns:
        What `fit` takes: a `tf.data.Dataset`, or a distributed one.
    """
    if strategy.num_replicas_in_sync == 1:
        return in_micro_batches(stream(start_step), micro_batches, alone=True)

    def of_worker(context):
        workers, worker = context.num_input_pipelines, context.input_pipeline_id
        local = context.num_replicas_in_sync // workers
        if workers > 1 and "shard" in inspect.signature(stream).parameters:
            return in_micro_batches(stream(start_step, shard=(worker, workers)), local)
        own = range(worker * local, (worker + 1) * local)
        return in_micro_batches(stream(start_step), context.num_replicas_in_sync, own)

    return strategy.distribute_datasets_from_function(of_worker)


def _part(rows, index, count):
    size = rows.shape[0]
    if size is None:
        size = tf.shape(rows, out_type=tf.int64)[0]
    own = rows[size * index // count : size * (index + 1) // count]
    if isinstance(size, int) and size % count == 0:
        own = tf.ensure_shape(own, (size // count, *rows.shape[1:]))
    return own
