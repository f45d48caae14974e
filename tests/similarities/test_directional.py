"""Distributions over directions against TFP, Bessel functions of SciPy, and their gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy.special import gammaln, ive

import zoo
from zoo import embeddings, similarities
from zoo.embeddings import sphere

RNG = np.random.default_rng(0)
DIMS = (2, 3, 5, 16, 512, 4096)
CONCENTRATIONS = np.array([1e-3, 0.1, 1.0, 7.0, 50.0, 700.0, 1e4, 1e5])


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype("float32")


def pair(dim, count=4):
    images = {"mean": unit(RNG.normal(size=(count, dim)))}
    captions = {
        "mean": unit(RNG.normal(size=(count + 1, dim))),
        "log_concentration": np.log(np.geomspace(0.5, 60, count + 1)).astype("float32"),
    }
    return images, captions


def uniform_log_density(dim):
    return gammaln(dim / 2) - np.log(2) - dim / 2 * np.log(np.pi)


@pytest.mark.parametrize("dim", DIMS)
def test_von_mises_fisher_constant_and_its_gradient_are_the_bessel_functions(dim):
    """Where SciPy's scaled Bessel function neither vanishes nor overflows; the rest by the
    Amos bounds on its ratio, between which the gradient must lie."""
    order, x = dim / 2 - 1, CONCENTRATIONS
    with tf.GradientTape() as tape:
        variable = tf.Variable(x)
        found = sphere.von_mises_fisher_log_constant(variable, dim)
    gradient = tape.gradient(found, variable).numpy()
    scaled = ive(order, x)
    there = scaled > 1e-280
    assert there.sum() >= 2
    constant = order * np.log(x[there]) - dim / 2 * np.log(2 * np.pi) - np.log(scaled[there])
    expected = constant - uniform_log_density(dim)  # C(κ) e^κ over C(0)
    np.testing.assert_allclose(np.asarray(found)[there], expected, atol=1e-3, rtol=1e-6)
    ratio = ive(order + 1, x[there]) / scaled[there]
    np.testing.assert_allclose(gradient[there], 1 - ratio, atol=1e-3)
    lower = x / (order + 1 + np.sqrt((order + 1) ** 2 + x**2))
    upper = x / (order + np.sqrt((order + 2) ** 2 + x**2))
    assert ((1 - gradient >= lower - 1e-6) & (1 - gradient <= upper + 1e-6)).all()
    at_zero = sphere.von_mises_fisher_log_constant(np.zeros(1), dim)
    np.testing.assert_allclose(at_zero, 0, atol=1e-6)


@pytest.mark.parametrize("dim", DIMS)
def test_power_spherical_constant_is_the_gamma_functions(dim):
    beta, x = (dim - 1) / 2, CONCENTRATIONS
    found = sphere.power_spherical_log_constant(x, dim)
    constant = -(
        (x + 2 * beta) * np.log(2)
        + beta * np.log(np.pi)
        + gammaln(x + beta)
        - gammaln(x + 2 * beta)
    )
    expected = constant + x * np.log(2) - uniform_log_density(dim)
    np.testing.assert_allclose(found, expected, atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("dim", [3, 5])
@pytest.mark.parametrize("family", similarities.directional.FAMILIES)
def test_log_likelihoods_are_those_of_tfp(family, dim):
    images, captions = pair(dim)
    function = getattr(similarities, f"{family}_log_likelihood")
    views = embeddings.distribution(captions, family)
    expected = views.log_prob(images["mean"][:, None]) - uniform_log_density(dim)
    found = np.asarray(function(images, captions))
    np.testing.assert_allclose(found, expected, atol=2e-4, rtol=1e-4)
    np.testing.assert_allclose(function(images, views), found, atol=1e-5)
    np.testing.assert_allclose(function(captions, images), found.T, atol=1e-5)
    cls = {"von_mises_fisher": tfp.distributions.VonMisesFisher}.get(
        family, tfp.distributions.PowerSpherical
    )
    assert isinstance(views, cls)


def test_a_density_is_one_over_the_sphere():
    """Monte Carlo: the mean of the density over the uniform one is 1."""
    rng = np.random.default_rng(2)
    points = {"mean": unit(rng.normal(size=(40_000, 6)))}
    _, captions = pair(6)
    captions["log_concentration"] = np.log([0.5, 1, 2, 4, 8]).astype("float32")
    for family in similarities.directional.FAMILIES:
        values = np.asarray(getattr(similarities, f"{family}_log_likelihood")(points, captions))
        np.testing.assert_allclose(np.exp(values).mean(0), 1, atol=0.05)


@pytest.mark.parametrize(
    "layer", [similarities.VonMisesFisherLikelihood, similarities.PowerSphericalLikelihood]
)
def test_the_index_ranks_as_the_layer_both_ways(layer):
    images, captions = pair(8, 30)
    own = layer(2.0)
    logits = np.asarray(own(images, captions))
    by_caption = zoo.search.Index.build(images, own)
    scores, ids = by_caption.search(captions, 5)
    np.testing.assert_array_equal(ids, np.argsort(-logits.T, axis=1)[:, :5])
    np.testing.assert_allclose(scores, -np.sort(-logits.T, axis=1)[:, :5], rtol=1e-4, atol=1e-3)
    by_image = zoo.search.Index.build(captions, own, side="captions")
    scores, ids = by_image.search(images, 5)
    np.testing.assert_array_equal(ids, np.argsort(-logits, axis=1)[:, :5])
    # A caption's order of images is the cosine's; an image's order of captions is not.
    cosines = np.asarray(similarities.cosine(images, captions))
    np.testing.assert_array_equal(logits.argmax(0), cosines.argmax(0))


def test_gradients_are_finite_at_the_edges():
    mean = tf.constant([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0]])
    for family in similarities.directional.FAMILIES:
        with tf.GradientTape() as tape:
            logs = tf.Variable(np.log([1e-3, 1e5, 30.0]).astype("float32"))
            captions = {"mean": mean, "log_concentration": logs}
            function = getattr(similarities, f"{family}_log_likelihood")
            value = tf.reduce_sum(function({"mean": mean}, captions))
        assert np.isfinite(tape.gradient(value, logs)).all()


def test_the_kind_its_uncertainty_and_its_errors():
    images, captions = pair(3)
    assert embeddings.kind(captions) == embeddings.DIRECTION
    np.testing.assert_allclose(
        embeddings.uncertainty(captions), np.exp(-captions["log_concentration"]), rtol=1e-6
    )
    np.testing.assert_allclose(
        embeddings.log_uncertainty(captions), -captions["log_concentration"], atol=1e-6
    )
    with pytest.raises(ValueError, match="received points twice"):
        similarities.von_mises_fisher_log_likelihood(images, images)
    with pytest.raises(ValueError, match="`family` must be one of"):
        embeddings.distribution(captions, "normal")
    with pytest.raises(ValueError, match="must be a direction"):
        embeddings.direction(images)


def test_the_model_begins_at_the_vectors_and_is_saved(tmp_path):
    vectors = zoo.encoders.vectors
    model = zoo.models.asymvlm(
        vectors(6), caption_backbone=vectors(6), dim=6, fixed_images=True, hidden_dim=8
    )
    captions = RNG.normal(size=(5, 6)).astype("float32")
    found = model.encode_captions(captions)
    assert isinstance(found, tfp.distributions.PowerSpherical)
    np.testing.assert_allclose(found.mean_direction, unit(captions), atol=1e-6)
    np.testing.assert_allclose(found.concentration, 20.0, rtol=1e-5)
    np.testing.assert_allclose(model.uncertainty(found), 0.05, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    images = model.encode_images(captions)
    np.testing.assert_allclose(
        loaded.similarity(images, loaded.encode_captions(captions)),
        model.similarity(images, found),
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="`fixed_images` needs images of 4 channels"):
        zoo.models.asymvlm(vectors(6), caption_backbone=vectors(6), dim=4, fixed_images=True)
    with pytest.raises(ValueError, match="`family` must be one of"):
        zoo.models.asymvlm(vectors(6), caption_backbone=vectors(6), family="normal")
