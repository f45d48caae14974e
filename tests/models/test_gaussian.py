import keras
import numpy as np
import pytest
import tensorflow as tf

import point_models
import zoo
from point_models import batch, largest_difference, tiny
from zoo import similarities

# The towers of VSE0 are those of VSE++, and VSE∞ pools as InfoNCE may.
EVERY_BUILDER = ("vsepp", "vsrn", pytest.param("infonce", marks=pytest.mark.very_slow))


@pytest.fixture(scope="module", params=EVERY_BUILDER)
def point_and_gaussian(request):
    point = tiny(request.param, point_models.REGIONS)
    return point, zoo.models.gaussian(point)


@pytest.fixture(scope="module")
def vsepp():
    return tiny("vsepp")


def test_every_system_of_points_becomes_gaussian(point_and_gaussian, tmp_path):
    point, model = point_and_gaussian
    data = batch(model)
    points, gaussians = point(data), model(data)
    for side in ("images", "captions"):
        np.testing.assert_array_equal(gaussians[side]["mean"], points[side]["mean"])
        variance = np.exp(gaussians[side]["log_variance"])
        assert variance.shape == (6, 8)
        assert 0.1 <= variance.min() < variance.max() <= 10
    assert model.uncertainty(gaussians["images"]).shape == (6,)
    model.compile(keras.optimizers.Adam(3e-3), run_eagerly=True)  # tracing takes far longer
    loss = [float(model.train_on_batch(data)) for _ in range(2)]
    assert loss[-1] < loss[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert largest_difference(model(data), loaded(data)) <= 1e-6


@pytest.mark.parametrize("builder", EVERY_BUILDER)
def test_all_that_embeds_is_duplicated_but_features_and_word_vectors_are_shared(builder):
    """Section 4.2: VSE++'s linear map and VSRN's recurrent network embed; what comes before them,
    VSRN's projected regions and graph convolutions among it, makes the features."""
    point = tiny(builder)
    model = zoo.models.gaussian(point)
    features = list(point.image_encoder.get_layer("backbone").trainable_weights)
    if builder == "vsrn":
        features += point.image_encoder.get_layer("embedding").trainable_weights
        for graph in point.image_encoder.get_layer("reasoning").graphs:
            features += graph.trainable_weights
    words = point.caption_encoder.get_layer("backbone").get_layer("words")
    for encoder, own, shared in (
        (model.image_encoder, point.image_encoder, features),
        (model.caption_encoder, point.caption_encoder, words.trainable_weights),
    ):
        known = {id(weight) for weight in own.trainable_weights}
        new = [weight for weight in encoder.trainable_weights if id(weight) not in known]
        covariance = encoder.get_layer(f"{encoder.name}_covariance").trainable_weights
        assert len(new) == len(known) - len(shared) + len(covariance)
        assert len({w.path for w in encoder.weights}) == len(encoder.weights)


def test_mean_and_variance_learn_apart(point_and_gaussian):
    """The gradient of the variance reaches no weight of the mean, and the other way round; the
    word vectors, and what relates VSRN's regions, learn from both."""
    point, model = point_and_gaussian
    data = batch(model)
    own = {id(weight) for weight in point.trainable_weights}
    words = point.caption_encoder.get_layer("backbone").get_layer("words").trainable_weights
    of_both = {id(weight) for weight in words}
    if point.name == "vsrn":
        reader = point.image_encoder.get_layer("reasoning").reader
        after = {id(weight) for weight in reader.trainable_weights}
        images = point.image_encoder.trainable_weights
        of_both |= {id(weight) for weight in images if id(weight) not in after}
    for part, of_mean in (("mean", True), ("log_variance", False)):
        with tf.GradientTape() as tape:
            embeddings = model(data)
            target = sum(tf.reduce_sum(e[part] ** 2 * tf.range(8.0)) for e in embeddings.values())
        variables = [v.value for v in model.trainable_weights]
        gradients = tape.gradient(target, variables)
        for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
            if id(weight) in of_both:
                assert gradient is not None
            else:
                assert gradient is None or (id(weight) in own) == of_mean, weight.path
        assert any(gradient is not None for gradient in gradients)


def test_the_image_backbone_runs_once(monkeypatch, vsepp):
    model = zoo.models.gaussian(vsepp)
    backbone = model.image_encoder.get_layer("backbone")
    calls, call = [], backbone.call
    monkeypatch.setattr(backbone, "call", lambda *args, **kw: calls.append(1) or call(*args, **kw))
    model.image_encoder(batch(model)["images"])
    assert len(calls) == 1


def test_a_frozen_caption_backbone_is_shared():
    point = tiny("vsepp")
    words = point.caption_encoder.get_layer("backbone")
    words.trainable = False
    model = zoo.models.gaussian(point)
    assert model.caption_encoder.get_layer("backbone") is words
    assert len(model.caption_encoder.trainable_weights) == 1  # the bias of the covariance


def test_bounds_hold_however_large_the_features():
    point = tiny("vsepp", point_models.REGIONS, unit_features=False)
    model = zoo.models.gaussian(point)
    data = batch(model)
    data["images"] *= 1e4
    variance = np.exp(model(data)["images"]["log_variance"])
    np.testing.assert_allclose([variance.min(), variance.max()], [0.1, 10], rtol=1e-4)


def test_padded_regions_count_for_no_variance():
    model = zoo.models.gaussian(tiny("vsrn", point_models.REGIONS))
    images = batch(model)["images"]
    images[:, 3:] = 0
    reasoning = model.image_encoder.get_layer("reasoning")
    variance = model.image_encoder.get_layer("variance_reader")
    variance.set_weights(reasoning.reader.get_weights())
    log_variance = np.asarray(model.image_encoder(images)["log_variance"])
    parts = model.image_encoder.get_layer("embedding")(images)
    _, read = reasoning(parts, mask=images.any(axis=-1))
    covariance = model.image_encoder.get_layer("image_encoder_covariance")
    np.testing.assert_allclose(log_variance, covariance(read), atol=1e-5)


def test_defaults_of_the_paper():
    coco = zoo.models.gaussian_vsepp((2048,), vocabulary_size=9)
    flickr = zoo.models.gaussian_vsrn(vocabulary_size=9, dim=16, num_layers=1)
    assert (coco.loss.margin, flickr.loss.margin) == (0.2, 0.1)
    assert {type(m.similarity) for m in (coco, flickr)} == {similarities.Wasserstein2}
    kinds = [m.image_encoder.get_layer("image_encoder_covariance").kind for m in (coco, flickr)]
    assert kinds == ["ellipsoidal", "spherical_mean"]
    assert coco.image_encoder.output["log_variance"].shape == (None, 1024)
    assert (coco.name, flickr.name) == ("gaussian_vsepp", "gaussian_vsrn")


def test_only_points_become_gaussian(monkeypatch, vsepp):
    with pytest.raises(ValueError, match=r"image_encoder.*a Gaussian"):
        zoo.models.gaussian(zoo.models.gaussian(vsepp))
    with pytest.raises(ValueError, match="round"):
        zoo.models.gaussian(vsepp, "round")
    monkeypatch.setattr(vsepp, "caption_encoder", keras.layers.Identity())
    with pytest.raises(ValueError, match=r"caption_encoder.*Functional.*Identity"):
        zoo.models.gaussian(vsepp)
