"""A learning rate that rises linearly, stays, and drops in steps."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor


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
