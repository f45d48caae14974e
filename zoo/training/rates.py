"""Learning rates: of a phase by its epochs, and one that rises, stays and drops."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor

Rate = Callable[[int, int], Any]


def cosine_decay(peak: float, warm_up_epochs: int = 0) -> Rate:
    """A cosine from a peak to 0 over a phase, after a linear warm-up.

    ```python
    zoo.training.cosine_decay(1e-4)(epochs=2, steps=100)(100)  # 5e-5
    ```

    Args:
        peak: the highest rate.
        warm_up_epochs: epochs of the phase in which the rate rises from 0.
    """

    def of(epochs, steps):
        return _rising(peak, epochs * steps, warm_up_epochs * steps)

    return of


def cosine_decay_after_a_twentieth(peak: float) -> Rate:
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


@keras.saving.register_keras_serializable(package="halo")
class WarmUpThenDrops(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a peak, then a factor at each of some steps.

    ```python
    schedule = zoo.training.WarmUpThenDrops(1e-3, warm_up_steps=100, drop_steps=[1000])
    schedule(50)  # 5.1e-4
    ```

    Args:
        peak: the rate after the warm-up.
        warm_up_steps: how many steps it takes; the first has `peak / warm_up_steps`. 0: none.
        drop_steps: the steps from which on the rate is multiplied by `factor` (once more each).
        factor: of a drop.

    Call arguments:
        step: from 0.

    Output: a float32 scalar.

    Raises:
        ValueError: if the peak or the factor is not positive.

    Reference: PCME++ (Chun, ICLR 2024), section 3.1: one epoch of warm-up, a tenth for the
        last ten epochs.
    """

    def __init__(
        self,
        peak: float,
        warm_up_steps: int = 0,
        drop_steps: Sequence[int] = (),
        factor: float = 0.1,
    ):
        super().__init__()
        for name, value in (("peak", peak), ("factor", factor)):
            if not value > 0:
                raise ValueError(f"`{name}` must be positive; received {value}")
        self.peak = peak
        self.warm_up_steps = warm_up_steps
        self.drop_steps = list(drop_steps)
        self.factor = factor

    def __call__(self, step: Tensor) -> Tensor:
        step = ops.cast(step, "float32")
        rate = self.peak * ops.minimum(1.0, (step + 1.0) / max(self.warm_up_steps, 1))
        for drop in self.drop_steps:
            rate = ops.where(step >= drop, rate * self.factor, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warm_up_steps": self.warm_up_steps,
            "drop_steps": self.drop_steps,
            "factor": self.factor,
        }


def _rising(peak, steps, rising):
    return keras.optimizers.schedules.CosineDecay(
        0.0 if rising else peak,
        max(1, steps - rising),
        warmup_target=peak if rising else None,
        warmup_steps=rising,
    )
