"""Learning rates of a phase, by its epochs: functions of `(epochs, steps of an epoch)`."""

from collections.abc import Callable
from typing import Any

import keras

Rate = Callable[[int, int], Any]


def cosine(peak: float, warm_up_epochs: int = 0) -> Rate:
    """A cosine from a peak to 0 over a phase, after a linear warm-up.

    ```python
    zoo.training.cosine(1e-4)(epochs=2, steps=100)(100)  # 5e-5
    ```

    Args:
        peak: the highest rate.
        warm_up_epochs: epochs of the phase in which the rate rises from 0.
    """

    def of(epochs, steps):
        return _rising(peak, epochs * steps, warm_up_epochs * steps)

    return of


def cosine_after_a_twentieth(peak: float) -> Rate:
    """A cosine whose linear warm-up is a twentieth of the phase's steps.

    Args:
        peak: the highest rate.
    """

    def of(epochs, steps):
        return _rising(peak, epochs * steps, epochs * steps // 20)

    return of


def drop_after(peak: float, epochs_before: int) -> Rate:
    """A constant rate, and a tenth of it after some epochs of the phase.

    Args:
        peak: the first rate.
        epochs_before: epochs of the phase before the drop.
    """

    def of(epochs, steps):
        return keras.optimizers.schedules.PiecewiseConstantDecay(
            [epochs_before * steps], [peak, peak / 10]
        )

    return of


def _rising(peak, steps, rising):
    return keras.optimizers.schedules.CosineDecay(
        0.0 if rising else peak,
        max(1, steps - rising),
        warmup_target=peak if rising else None,
        warmup_steps=rising,
    )
