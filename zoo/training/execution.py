"""How the phases of a run are executed: on which replicas, compiled how, how cut."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from zoo.compat import clip_after_the_sum
from zoo.errors import InputError, require
from zoo.training.micro_batches import distribute
from zoo.training.strategies import is_chief, strategy
from zoo.training.synchronized_statistics import synchronize_batch_normalization


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
