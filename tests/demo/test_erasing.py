"""Erased regions and elements: against the model asked directly."""

import numpy as np
import pytest

from demo import elements, erasing
from demo.erasing import Box
from zoo import encoders


def test_the_effect_of_erasing(gaussians, photo):
    pixels = gaussians.pixels(photo.read_bytes())
    box = Box(20, 20, 60, 60)
    effect = erasing.effect(gaussians, pixels, box)
    both = gaussians.model.encode_images(np.stack([pixels, erasing.erase(pixels, box)]))
    expected = np.asarray(gaussians.model.uncertainty(both))
    assert [effect.before, effect.after] == pytest.approx(expected.tolist(), abs=1e-6)
    growing = erasing.growing(gaussians, pixels, box)
    assert growing[0] == pytest.approx(effect.before, abs=1e-6)
    assert growing[-1] > growing[0]  # of nearly nothing the model must be less certain
    changes = erasing.sweep(gaussians, pixels)
    corner = erasing.erase(pixels, Box(0, 0, 30, 30))
    expected = gaussians.uncertainty(gaussians.of_pixels([corner]))[0]
    assert changes[0, 0] == pytest.approx(expected - effect.before, abs=1e-6)


def test_elements_have_attention_and_the_nearest_caption(sets, photo):
    pixels = sets.pixels(photo.read_bytes())
    found = elements.describe(sets, pixels)
    assert [one["element"] for one in found] == [1, 2, 3]
    looking = encoders.with_attention(sets.model.image_encoder)
    output = looking(pixels[None].astype("float32"), training=False)
    attention = np.asarray(output["attention"])[0]
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
    own = unit(np.asarray(output["elements"])[0])
    cosines = np.einsum("kd,mld->kml", own, unit(sets.embeddings["captions"]["elements"]))
    for k, one in enumerate(found):
        weights = np.array(one["attention"])
        assert weights.ndim == 2
        np.testing.assert_allclose(weights.ravel(), attention[k], atol=1e-6)
        assert weights.sum() == pytest.approx(1, abs=1e-5)
        assert one["caption"] == sets.captions[cosines[k].max(axis=1).argmax()]
        assert one["cosine"] == pytest.approx(cosines[k].max(), abs=1e-5)
