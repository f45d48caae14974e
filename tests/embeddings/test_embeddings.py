import numpy as np
import pytest
import tensorflow_probability as tfp

from zoo import embeddings


@pytest.fixture
def gaussian():
    rng = np.random.default_rng(0)
    return {
        "mean": rng.normal(size=(5, 3)).astype("float32"),
        "log_variance": rng.normal(size=(5, 3)).astype("float32"),
    }


def test_distribution_is_tfp_and_comes_back(gaussian):
    distribution = embeddings.distribution(gaussian)
    assert isinstance(distribution, tfp.distributions.MultivariateNormalDiag)
    assert distribution.batch_shape == (5,)
    assert distribution.event_shape == (3,)
    back = embeddings.as_embedding(distribution)
    np.testing.assert_array_equal(back["mean"], gaussian["mean"])
    np.testing.assert_allclose(back["log_variance"], gaussian["log_variance"], atol=1e-6)


def test_tiny_variances_survive_the_way_through_tfp():
    tiny = {"mean": np.zeros((1, 2), "float32"), "log_variance": np.full((1, 2), -120, "float32")}
    back = embeddings.as_embedding(embeddings.distribution(tiny))
    np.testing.assert_allclose(back["log_variance"], tiny["log_variance"], rtol=1e-6)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("log_det", lambda d: np.log(d.variance()).sum(-1)),
        ("geometric_mean", lambda d: np.prod(d.stddev(), -1) ** (1 / 3)),
        ("total_variance", lambda d: np.asarray(d.variance()).sum(-1)),
        (None, lambda d: np.log(d.variance()).sum(-1)),
    ],
)
def test_uncertainty_against_tfp(gaussian, measure, expected):
    value = embeddings.uncertainty(gaussian, measure)
    np.testing.assert_allclose(value, expected(embeddings.distribution(gaussian)), rtol=1e-5)


def test_circular_variance_is_zero_for_equal_and_one_for_opposite_elements():
    one = np.ones((1, 4), "float32")
    sets = np.stack([np.stack([one, 3 * one], 1)[0], np.stack([one, -one], 1)[0]])
    np.testing.assert_allclose(embeddings.uncertainty(sets), [0.0, 1.0], atol=1e-6)


def test_masked_elements_do_not_count():
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    mask = np.array([[True, True, False]] * 2)
    whole = embeddings.uncertainty({"elements": values[:, :2]})
    np.testing.assert_allclose(
        embeddings.uncertainty({"elements": values, "mask": mask}), whole, rtol=1e-6
    )


@pytest.mark.parametrize("measure", [None, "log_det", "geometric_mean", "total_variance"])
def test_the_logarithm_of_an_uncertainty(gaussian, measure):
    values = np.asarray(embeddings.uncertainty(gaussian, measure))
    expected = values if measure in (None, "log_det") else np.log(values)
    np.testing.assert_allclose(embeddings.log_uncertainty(gaussian, measure), expected, rtol=1e-5)


def test_uncertainty_refuses_what_has_none(gaussian):
    with pytest.raises(ValueError, match="received a point"):
        embeddings.uncertainty({"mean": gaussian["mean"]})
    with pytest.raises(ValueError, match="'circular_variance'"):
        embeddings.uncertainty(gaussian, "circular_variance")
    with pytest.raises(ValueError, match="'log_det'"):
        embeddings.uncertainty(np.zeros((2, 3, 4)), "log_det")


def test_concatenate_keeps_order_and_refuses_mixed_kinds(gaussian):
    joined = embeddings.concatenate([gaussian, embeddings.distribution(gaussian)])
    np.testing.assert_array_equal(joined["mean"], np.tile(gaussian["mean"], (2, 1)))
    with pytest.raises(ValueError, match="number 1"):
        embeddings.concatenate([gaussian, {"mean": gaussian["mean"]}])
    with pytest.raises(ValueError, match="empty"):
        embeddings.concatenate([])


def test_shapes_are_checked_and_named(gaussian):
    with pytest.raises(ValueError, match=r"`images`.*\(5, 3\) and \(4, 3\)"):
        embeddings.gaussian({**gaussian, "log_variance": np.zeros((4, 3))}, "images")
    with pytest.raises(ValueError, match=r"`images`.*received a set"):
        embeddings.points(np.zeros((2, 3, 4)), "images")
    with pytest.raises(ValueError, match=r"`images`.*received a Gaussian"):
        embeddings.elements(gaussian, "images")
