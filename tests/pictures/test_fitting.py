"""NumPy's pixels are those of TensorFlow's graph."""

import numpy as np
import pytest

from zoo.data import images
from zoo.files.decoding import fit

SHAPES = (480, 640), (64, 64), (37, 211), (300, 31), (1, 1), (1, 90), (1200, 900), (256, 257)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("mode", "fraction"), [("crop", 1.0), ("crop", 0.875), ("stretch", 1.0)])
def test_pixels_are_those_of_the_graph(shape, mode, fraction):
    picture = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype="uint8")
    for size in (64, 224):
        found = fit(picture, size, mode, fraction).astype(int)
        expected = images.fit(picture, size, mode, fraction).numpy().astype(int)
        assert found.shape == (size, size, 3)
        assert np.abs(found - expected).max() <= 1  # halves that a sum in another order rounds
        assert (found != expected).mean() < 1e-2


def test_one_colour_stays():
    assert np.unique(fit(np.full((333, 77, 3), 201, "uint8"), 50)) == [201]
