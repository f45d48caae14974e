"""The phases of a run as data, their learning rates, and the loop that trains them in order."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import keras
from keras import ops

from zoo.data import datasets
from zoo.data.pipeline.streams import phase_seed
from zoo.embeddings import Tensor
from zoo.training.run import Run

Rate = Callable[[int, int], Any]


def cosine_decay(
    peak: float, warm_up_epochs: int | None = 0, over_epochs: int | None = None
) -> Rate:
    """Cosine decay from a peak to 0 in one phase, after a linear warm-up.

    ```python
    zoo.training.cosine_decay(1e-4)(epochs=2, steps=100)(100)  # 5e-5
    ```

    Args:
        peak: the highest learning rate.
        warm_up_epochs: epochs of the warm-up; None: a twentieth of all steps.
        over_epochs: epochs after which the rate is 0, if the phase is shorter; default: its epochs.

    Returns:
        A function `(epochs, steps per epoch) -> schedule`, as `Phase.rate`.
    """

    def schedule(epochs, steps):
        steps_of_all = max(epochs, over_epochs or 0) * steps
        rising = steps_of_all // 20 if warm_up_epochs is None else warm_up_epochs * steps
        return keras.optimizers.schedules.CosineDecay(
            0.0 if rising else peak,
            max(1, steps_of_all - rising),
            warmup_target=peak if rising else None,
            warmup_steps=rising,
        )

    return schedule


def drop_after(peak: float, epochs_before: int) -> Rate:
    """A constant rate, and a tenth of it after `epochs_before` epochs of the phase."""

    def schedule(epochs, steps):
        return keras.optimizers.schedules.PiecewiseConstantDecay(
            [epochs_before * steps], [peak, peak / 10]
        )

    return schedule


@keras.saving.register_keras_serializable(package="halo")
class WarmUpThenDrops(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a peak, then a factor at each of some steps.

    ```python
    schedule = zoo.training.WarmUpThenDrops(1e-3, warm_up_steps=100, drop_steps=[1000])
    schedule(50)  # 5.1e-4
    ```

    The first step has `peak / warm_up_steps`.

    Reference: PCME++ (Chun, ICLR 2024), section 3.1.
    """

    def __init__(
        self,
        peak: float,
        warm_up_steps: int = 0,
        drop_steps: Sequence[int] = (),
        factor: float = 0.1,
    ):
        self.peak, self.warm_up_steps = peak, warm_up_steps
        self.drop_steps, self.factor = list(drop_steps), factor

    def __call__(self, step: Tensor) -> Tensor:
        step = ops.cast(step, "float32")
        rate = self.peak * ops.minimum(1.0, (step + 1.0) / max(self.warm_up_steps, 1))
        for drop in self.drop_steps:
            rate = ops.where(step >= drop, rate * self.factor, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Phase:
    """One phase of training: what is frozen, at which rate, for how long.

    ```python
    network, rate = model.image_encoder.get_layer("backbone"), zoo.training.cosine_decay
    [
        zoo.training.Phase("warm_up", epochs=10, rate=rate(1e-4), frozen=[network]),
        zoo.training.Phase("fine_tuning", epochs=50, rate=rate(1e-5)),
    ]
    ```

    Args:
        name: letters, digits and `_`; its checkpoints and rows of history have it.
        epochs: of this phase; 0 leaves it out.
        rate: the learning rate, or a function `(epochs, steps of an epoch) -> schedule`.
        frozen: layers that do not train. What another phase freezes and this one does not, trains.
        loss: in place of the model's own.
        model: what to fit in place of the run's model, with the same weights.
        splits: `(training split, validation split)` as that model reads them; default: the run's.
        stateful_callbacks: function of the phase's stream that gives those of `Resume`.
        then: function without arguments to call when the phase is done.
    """

    name: str
    epochs: int
    _: KW_ONLY
    rate: float | Callable[[int, int], Any]
    frozen: Sequence[keras.layers.Layer] = ()
    loss: keras.losses.Loss | None = None
    model: keras.Model | None = None
    splits: tuple[datasets.Split, datasets.Split] | None = None
    stateful_callbacks: Callable[[Any], dict[str, Any]] | None = None
    then: Callable[[], None] | None = None


def run_phases(
    run: Run,
    phases: Sequence[Phase],
    batches: Callable[[datasets.Split, int], Any],
    optimizer: Callable[[keras.Model, Any], keras.optimizers.Optimizer],
    seed: int = 0,
    order: Sequence[str] | None = None,
) -> None:
    """Trains the phases of a run in order: freezes, compiles and fits each.

    The call chain is `run_phases` → `Run.run_phase` (validation, best epoch) →
    `zoo.training.fit_phase` (checkpoints, history) → `keras.Model.fit`. A phase resumes from its
    last checkpoint, so that a finished phase costs only its batches' start.

    Args:
        run: with its model built, in the scope of `run.replicas()`.
        phases: in the order to train them; those of 0 epochs are left out.
        batches: function of a training split and a seed that returns a `zoo.data.Stream`.
        optimizer: function of the model to fit and a learning rate.
        seed: of the run; each phase derives its seed from it and from its place in `order`.
        order: names of all phases; default: those of `phases`.
    """
    order = order or [phase.name for phase in phases]
    frozen_in_some = _unique(layer for phase in phases for layer in phase.frozen)
    for phase in phases:
        freeze(phase.frozen, frozen_in_some)
        if not phase.epochs:
            continue
        model = run.model if phase.model is None else phase.model
        train_split, validation_split = phase.splits or (run.train, run.validation)
        stream = batches(train_split, phase_seed(seed, phase.name, order))
        compile_phase(model, phase, optimizer, stream.steps_per_epoch)
        stateful = phase.stateful_callbacks
        run.run_phase(
            model,
            phase.name,
            stream,
            phase.epochs,
            stateful_callbacks=None if stateful is None else stateful(stream),
            validation=validation_split,
        )
        if phase.then is not None:
            phase.then()


def compile_phase(
    model: keras.Model,
    phase: Phase,
    optimizer: Callable[[keras.Model, Any], keras.optimizers.Optimizer],
    steps_per_epoch: int,
) -> None:
    """Compiles a model with a new optimizer at the phase's rate, and with its loss if it has one;
    a model that is compiled without a loss keeps its own."""
    rate = phase.rate
    if callable(rate):
        rate = rate(phase.epochs, steps_per_epoch)
    loss = {} if phase.loss is None else {"loss": phase.loss}
    model.compile(optimizer(model, rate), **loss)


def freeze(frozen: Sequence[keras.layers.Layer], among: Sequence[keras.layers.Layer]) -> None:
    """Freezes `frozen`, and makes every other layer of `among` trainable, with all its parts."""
    frozen_ids = {id(layer) for layer in frozen}
    for layer in among:
        if id(layer) not in frozen_ids:
            layer.trainable = False  # Keras hands down only what changes
            layer.trainable = True
    for layer in frozen:
        layer.trainable = False


def _unique(layers):
    """The layers in order, each once, compared by identity: Keras layers have no equality."""
    return list({id(layer): layer for layer in layers}.values())
