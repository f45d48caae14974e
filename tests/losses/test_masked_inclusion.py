"""The inclusion of wholes in their masked parts: what is hidden, the term, and a training by it."""

import keras
import numpy as np
import pytest

import point_models
import zoo
from loss_cases import close
from oracles import random_gaussians
from zoo import losses

RNG = np.random.default_rng(6)


def test_it_compares_each_side_with_its_masked_part():
    images, captions, part, less = (random_gaussians(RNG, 5, 3) for _ in range(4))
    term = losses.MaskedInclusion(scale=2.0)
    found = term(images, captions, masked={"images": part, "captions": less})
    pair = losses.Inclusion(scale=2.0)
    close(found, 0.5 * (pair(images, part) + pair(captions, less)), rtol=1e-5)


def test_three_quarters_are_hidden_and_padding_is_not():
    images = RNG.uniform(0, 255, (200, 28, 28, 3)).astype("float32")
    ids = np.tile(np.array([5, 9, 7, 2, 0, 0], "int32"), (500, 1))
    term = losses.MaskedInclusion(special=(0, 2), seed=1)
    shown, left = (np.asarray(part) for part in term.masked_inputs(images, ids))
    hidden = (shown != images).any(axis=-1)
    assert hidden.mean() == pytest.approx(0.75, abs=0.02)
    cells = hidden.reshape(200, 7, 4, 7, 4)
    assert (cells == cells[:, :, :1, :, :1]).all()  # whole cells
    np.testing.assert_allclose(
        shown[hidden], np.repeat(images.mean((1, 2)), hidden.sum((1, 2)), axis=0), rtol=1e-4
    )
    np.testing.assert_array_equal(left[:, 3:], ids[:, 3:])
    assert (left[:, :3] == 1).mean() == pytest.approx(0.75, abs=0.05)


def test_a_model_is_trained_by_it_and_saved(tmp_path):
    model = zoo.models.gaussian(point_models.tiny("vsepp"))
    model = model.with_auxiliaries(losses.MaskedInclusion(10.0, scale=10.0, seed=0))
    data = point_models.batch(model)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=False)
    found = [model.train_on_batch(data, return_dict=True)["masked_inclusion"] for _ in range(40)]
    assert np.mean(found[-5:]) < 0.5 * np.mean(found[:5])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.auxiliaries[-1].get_config() == model.auxiliaries[-1].get_config()


def test_vectors_have_no_parts_to_hide():
    term = losses.MaskedInclusion()
    with pytest.raises(ValueError, match="to hide a part of them"):
        term.masked_inputs(np.ones((2, 8), "float32"), np.ones((2, 8), "float32"))
    with pytest.raises(ValueError, match="`rate` must be"):
        losses.MaskedInclusion(rate=1.0)
