import random

import numpy as np
import pytest

from layer_checks import check_layer
from zoo.encoders import regions
from zoo.encoders.stored_features import RegionMask

RNG = np.random.default_rng(0)
REGIONS = RNG.normal(size=(4, 6, 12)).astype("float32")
LENGTHS = np.array([6, 3, 1, 0])
MASK = np.arange(6) < LENGTHS[:, None]
PADDED = np.where(MASK[..., None], REGIONS, 0).astype("float32")


def test_the_mask_is_a_layer():
    check_layer(RegionMask, {"drop_rate": 0.2, "seed": 0}, {"regions": PADDED}, (4, 6))
    with pytest.raises(ValueError, match=r"`drop_rate`.*received 1"):
        RegionMask(1.0)


def test_rows_of_zeros_are_no_regions():
    backbone = regions(12, 8)
    outputs = backbone(PADDED)
    np.testing.assert_array_equal(outputs["mask"], MASK)
    for i, length in enumerate(LENGTHS[:3]):
        alone = backbone(REGIONS[i : i + 1, :length])
        np.testing.assert_allclose(alone["pooled"][0], outputs["pooled"][i], atol=1e-5)
        features = outputs["features"][i, :length]
        np.testing.assert_allclose(alone["features"][0], features, atol=1e-5)
        np.testing.assert_allclose(outputs["pooled"][i], np.max(features, axis=0), atol=1e-6)
    np.testing.assert_array_equal(outputs["pooled"][3], np.zeros(8))


def test_padding_does_not_reach_the_statistics():
    moved = []
    for batch in (PADDED[:2], np.concatenate([PADDED[:2], 0 * PADDED[:2]], axis=1)):
        random.seed(0)
        backbone = regions(12, 8, seed=0)
        backbone(batch, training=True)
        moved.append(np.asarray(backbone.get_layer("normalize").moving_mean))
    assert np.abs(moved[0]).max() > 1e-3
    np.testing.assert_allclose(*moved, atol=1e-6)


def test_dropping_leaves_a_region_of_each_image():
    backbone = regions(12, 8, drop_rate=0.9, seed=0)
    masks = np.stack([np.asarray(backbone(PADDED[:3], training=True)["mask"]) for _ in range(20)])
    assert (masks.sum(2) >= 1).all()
    assert not (masks & ~MASK[:3]).any()
    assert masks[:, 0].mean() < 0.4
    np.testing.assert_array_equal(backbone(PADDED)["mask"], MASK)
