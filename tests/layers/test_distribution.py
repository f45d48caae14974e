import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from zoo import layers

RNG = np.random.default_rng(0)
GAUSSIAN = {
    "mean": RNG.normal(size=(3, 5)).astype("float32"),
    "log_variance": RNG.normal(size=(3, 5)).astype("float32"),
}


def test_called_by_itself_it_is_a_distribution():
    found = layers.Distribution()(GAUSSIAN)
    assert isinstance(found, tfp.distributions.MultivariateNormalDiag)
    assert (found.batch_shape, found.event_shape) == ((3,), (5,))
    np.testing.assert_allclose(found.mean(), GAUSSIAN["mean"])
    np.testing.assert_allclose(found.variance(), np.exp(GAUSSIAN["log_variance"]), rtol=1e-5)
    points = RNG.normal(size=(3, 5)).astype("float32")
    deviation = np.exp(GAUSSIAN["log_variance"] / 2)
    by_hand = -0.5 * ((points - GAUSSIAN["mean"]) / deviation) ** 2 - np.log(deviation)
    by_hand = (by_hand - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    np.testing.assert_allclose(found.log_prob(points), by_hand, rtol=1e-4)


def functional():
    image = keras.Input((4,))
    mean, log_variance = keras.layers.Dense(5)(image), keras.layers.Dense(5)(image)
    embedding = layers.Distribution(name="embedding")({"mean": mean, "log_variance": log_variance})
    return keras.Model(image, embedding)


def test_in_a_model_it_hands_on_the_tensors(tmp_path):
    model = functional()
    x = RNG.normal(size=(3, 4)).astype("float32")
    expected = {name: np.asarray(value) for name, value in model(x).items()}
    assert set(expected) == {"mean", "log_variance"}
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    in_graph = tf.function(model)
    for found in (model.predict(x, verbose=0), in_graph(tf.constant(x)), loaded(x)):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-6)
    # What a user then does with it: a distribution, through which gradients reach the weights.
    with tf.GradientTape() as tape:
        found = layers.Distribution()(model(x))
        loss = -tf.reduce_mean(found.log_prob(np.zeros((3, 5), "float32")))
    gradients = tape.gradient(loss, [weight.value for weight in model.trainable_weights])
    assert all(gradient is not None for gradient in gradients)


def test_what_is_no_distribution_is_refused():
    for embedding in ({"mean": GAUSSIAN["mean"]}, {"elements": np.zeros((2, 3, 4), "float32")}):
        with pytest.raises(ValueError, match="must be a Gaussian; received a"):
            layers.Distribution()(embedding)
    with pytest.raises(ValueError, match="must be a Gaussian"):
        layers.Distribution()({"mean": keras.Input((5,))})
