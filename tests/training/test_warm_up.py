import keras
import numpy as np
import pytest

from zoo.training import WarmUpThenDrops


def test_it_rises_stays_and_drops():
    schedule = WarmUpThenDrops(1.0, warm_up_steps=4, drop_steps=[6, 8], factor=0.1)
    rates = [float(schedule(step)) for step in range(10)]
    expected = [0.25, 0.5, 0.75, 1, 1, 1, 0.1, 0.1, 0.01, 0.01]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)
    assert float(WarmUpThenDrops(2.0)(0)) == 2.0


def test_it_is_saved_with_its_optimizer():
    optimizer = keras.optimizers.SGD(WarmUpThenDrops(1.0, 4, [6]))
    again = keras.optimizers.SGD.from_config(optimizer.get_config())
    for step, rate in ((1, 0.5), (7, 0.1)):
        again.iterations.assign(step)
        assert float(again.learning_rate) == pytest.approx(rate)
