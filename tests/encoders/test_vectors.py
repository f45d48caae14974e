import inspect

import numpy as np
import pytest

import tiny_models
from zoo import encoders, models


@pytest.mark.parametrize("name", tiny_models.BUILDERS)
def test_every_builder_takes_vectors_on_both_sides(name):
    image_backbone = encoders.vectors(6)
    backbones = {"caption_backbone": encoders.vectors(5)}
    builder = getattr(models, name)
    known = inspect.signature(builder).parameters
    options = {"dim": 8}
    assert "tokenizer" in known
    model = builder(image_backbone, **backbones, **options)
    assert model.reads_caption_vectors
    rng = np.random.default_rng(0)
    images, captions = rng.normal(size=(6, 6)), rng.normal(size=(6, 5))
    labels = np.arange(6)
    batch = {"images": images, "captions": captions, "image_labels": labels}
    batch = {**batch, "caption_labels": labels}
    model.compile("sgd")
    embedded = model({"images": images, "captions": captions}, training=True)
    assert np.isfinite(model.compute_loss(batch, y_pred=embedded))
    assert model.similarity(embedded["images"], embedded["captions"]).shape == (6, 6)
    with pytest.raises(ValueError, match="must be vectors, since this model has no tokenizer"):
        model.encode_captions(["a bird"])
    with pytest.raises(ValueError, match=r"`captions` must have the shape \(N, 5\)"):
        model.encode_captions(images)


def test_vectors_become_positions_and_unit_length():
    vectors = np.array([[3.0, 4.0], [0.0, 2.0]], "float32")
    plain = encoders.vectors(2)(vectors)
    np.testing.assert_array_equal(plain["features"][:, 0], vectors)
    np.testing.assert_array_equal(plain["pooled"], vectors)
    assert np.asarray(plain["mask"]).all()
    unit = encoders.vectors(2, normalize=True)(vectors)
    np.testing.assert_allclose(unit["pooled"], [[0.6, 0.8], [0, 1]], rtol=1e-6)
    assert encoders.vectors(2, positions=3)(vectors)["features"].shape == (2, 3, 2)
    with pytest.raises(ValueError, match="`positions` must be a whole number of at least 1"):
        encoders.vectors(2, positions=0)
