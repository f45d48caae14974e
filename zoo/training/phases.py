"""The phases of a run as data, and the one function that fits a list of them."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import keras

from zoo.data import datasets
from zoo.data.pipeline.streams import phase_seed
from zoo.training.run import Run


@dataclass(frozen=True)
class Phase:
    """One phase of training: what is frozen, at which rate, for how long.

    ```python
    network = model.image_encoder.get_layer("backbone")
    rate = zoo.training.cosine_decay
    [
        zoo.training.Phase("warm_up", epochs=10, rate=rate(1e-4), frozen=[network]),
        zoo.training.Phase("fine_tuning", epochs=50, rate=rate(1e-5)),
    ]
    ```

    Args:
        name: letters, digits and `_`; its checkpoints and rows of history have it.
        epochs: of this phase; 0 leaves it out.
        rate: the learning rate, or a function `(epochs, steps of an epoch) -> schedule`.
        frozen: layers and models that do not train in this phase. What another phase freezes and
            this one does not, trains.
        loss: in place of the model's own.
        model: what to fit in place of the run's model, with the same weights.
        splits: `(training split, validation split)` as that model reads them; default: the run's.
        callbacks: function of the phase's stream that gives further callbacks.
        stateful_callbacks: likewise `{name: callback}` of those whose state is in checkpoints.
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
    callbacks: Callable[[Any], list] | None = None
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
        seed: of the run; every phase draws batches of its own.
        order: the names of all phases as their seeds count them; default: as they are fitted.
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
            phase.callbacks(stream) if phase.callbacks else (),
            phase.stateful_callbacks(stream) if phase.stateful_callbacks else None,
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
