"""The phases of a run as data, their learning rates, and the function that fits a list of them."""

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
    """A cosine from a peak to 0 over a phase, or `over_epochs` of which a shorter phase has the
    first, after a linear warm-up of some epochs, or of a twentieth of all steps (None).

    ```python
    zoo.training.cosine_decay(1e-4)(epochs=2, steps=100)(100)  # 5e-5
    ```
    """

    def of(epochs, steps):
        steps_of_all = max(epochs, over_epochs or 0) * steps
        rising = steps_of_all // 20 if warm_up_epochs is None else warm_up_epochs * steps
        return keras.optimizers.schedules.CosineDecay(
            0.0 if rising else peak,
            max(1, steps_of_all - rising),
            warmup_target=peak if rising else None,
            warmup_steps=rising,
        )

    return of


def drop_after(peak: float, epochs_before: int) -> Rate:
    """A constant rate, and a tenth of it after `epochs_before` epochs of the phase."""

    def of(epochs, steps):
        return keras.optimizers.schedules.PiecewiseConstantDecay(
            [epochs_before * steps], [peak, peak / 10]
        )

    return of


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


def fit(
    run: Run,
    phases: Sequence[Phase],
    batches: Callable[[datasets.Split, int], Any],
    optimizer: Callable[[keras.Model, Any], keras.optimizers.Optimizer],
    seed: int = 0,
    order: Sequence[str] | None = None,
) -> None:
    """Fits the phases of a run one after the other; finished phases are skipped.

    Args:
        run: with its model built, in the scope of `run.replicas()`.
        phases: in the order to fit them.
        batches: function of a training split and a seed that gives a `zoo.data.Stream`.
        optimizer: function of the model that is fitted and a learning rate.
        seed, order: of the run, of which every phase has its own by the order of names, as fitted.
    """
    order = order or [phase.name for phase in phases]
    frozen_in_some = _parts(part for phase in phases for part in phase.frozen)
    for phase in phases:
        freeze(phase.frozen, frozen_in_some)
        if not phase.epochs:
            continue
        model = run.model if phase.model is None else phase.model
        train, validation = phase.splits or (run.train, run.validation)
        stream = batches(train, phase_seed(seed, phase.name, order))
        rate = phase.rate
        if callable(rate):
            rate = rate(phase.epochs, stream.steps_per_epoch)
        # A model that is compiled without a loss has its own.
        model.compile(
            optimizer(model, rate), **({} if phase.loss is None else {"loss": phase.loss})
        )
        run.fit(
            model,
            phase.name,
            stream,
            phase.epochs,
            stateful_callbacks=phase.stateful_callbacks and phase.stateful_callbacks(stream),
            validation=validation,
        )
        if phase.then is not None:
            phase.then()


def freeze(frozen: Sequence[keras.layers.Layer], among: Sequence[keras.layers.Layer]) -> None:
    """Freezes some layers, and makes all of others trainable, whatever of them was frozen."""
    kept = {id(part) for part in frozen}
    for part in among:
        if id(part) not in kept:
            part.trainable = False  # Keras hands down only what changes
            part.trainable = True
    for part in frozen:
        part.trainable = False


def _parts(parts):
    """Each once, in order; a layer is not compared by value."""
    return list({id(part): part for part in parts}.values())
