"""The heads of stored vectors: a Laplace posterior, and a direction with its concentration."""

import numpy as np
import pytest

from layer_checks import check_layer
from zoo import layers

FEATURES = {"features": np.random.default_rng(0).normal(size=(4, 6)).astype("float32")}


@pytest.mark.parametrize("config", [{"dim": 3}, {"dim": 6, "identity": True}])
def test_laplace_projection(config):
    shape = {"mean": (4, config["dim"]), "log_variance": (4, config["dim"])}
    layer = check_layer(layers.LaplaceProjection, config, FEATURES, shape)
    assert not layer.trainable_variables


@pytest.mark.parametrize("dim", [3, 6])
def test_directional_head(dim):
    config = {"dim": dim, "hidden_dim": 5, "num_hidden": 2, "concentration": 7.0}
    shape = {"mean": (4, dim), "log_concentration": (4,)}
    layer = check_layer(layers.DirectionalHead, config, FEATURES, shape)
    found = layer(FEATURES["features"])
    np.testing.assert_allclose(np.linalg.norm(found["mean"], axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(found["log_concentration"]), 7.0, rtol=1e-4)


def test_what_they_refuse():
    with pytest.raises(ValueError, match="`features` must have 3 channels for `identity`"):
        layers.LaplaceProjection(3, identity=True)(FEATURES["features"])
    with pytest.raises(ValueError, match="`concentration` must be positive"):
        layers.DirectionalHead(3, concentration=0.0)
