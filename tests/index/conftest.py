import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def gaussians(rng):
    """`gaussians(items)`: means of few underlying dimensions off the origin, as trained ones are,
    and lognormal variances."""
    directions = rng.normal(size=(6, 24))

    def make(items, spread=0.7):
        mean = 0.5 + rng.normal(size=(items, 6)) @ directions / 6
        level = spread * rng.normal(size=(items, 1))
        log_variance = -3 + level + 0.2 * rng.normal(size=mean.shape)
        return {"mean": mean.astype("float32"), "log_variance": log_variance.astype("float32")}

    return make


@pytest.fixture
def sets(rng):
    def make(items, size=4):
        return {"elements": rng.normal(size=(items, size, 16)).astype("float32")}

    return make


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once, without_towers):
    """Packaged presets are read once, and builds write no ONNX."""
