"""PCME and PCME++ with their baselines: defaults, losses and parts."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from point_models import random_pairs
from zoo import losses, similarities, training
from zoo.data.text.captions import WordTokenizer

# A few steps of a model: tracing them takes longer. They are compiled in `test_execution`.
pytestmark = pytest.mark.usefixtures("run_eagerly")
WORDS = ["bird", "red", "blue", "wing", "a", "small"]
BUILDERS = {
    "pcme": zoo.models.pcme,
    "pcmepp": zoo.models.pcmepp,
    "infonce": zoo.models.infonce,
    "vse_infinity": zoo.models.vse_infinity,
}


def tiny(builder="pcmepp", **options):
    options = {"dim": 8, "word_dim": 6, "image_size": 16, **options}
    return BUILDERS[builder]("tiny", WordTokenizer(WORDS, max_words=6), **options)


def batch():
    return random_pairs((16, 16, 3), length=6, pairs=6)


# Section 3.1 and table B.1 of the paper, in its own notation.
PAPER = {"D": 1024, "a": 5.0, "b": 5.0, "alpha": 0.1, "beta": 1e-4, "dropped tokens": 0.2}


@pytest.fixture(scope="module")
def wide():
    """With the dimension and all other settings of the paper; nobody trains it."""
    words = WordTokenizer(WORDS, max_words=6)
    return zoo.models.pcmepp("tiny", words, word_dim=6, image_size=16)


@pytest.fixture(scope="module")
def made():
    return functools.cache(tiny)


def test_the_defaults_are_those_of_the_paper(wide):
    model = wide
    (bottleneck,) = model.auxiliaries
    assert {
        "D": model.image_encoder.output["mean"].shape[-1],
        "a": float(model.similarity.scale),
        "b": float(model.similarity.shift),
        "alpha": model.loss.pseudo_positive_weight,
        "beta": bottleneck.weight,
        "dropped tokens": model.image_encoder.get_layer("head").drop_rate,
    } == PAPER
    assert isinstance(model.similarity, similarities.ClosedFormSampledDistance)
    assert model.loss.reduction == "mean"
    sampled = tiny(distance="match_probability", num_samples=3, seed=5).similarity.get_config()
    assert (sampled["num_samples"], sampled["seed"]) == (3, 5)
    assert model.uncertainty_measure == "total_variance"


def figure_a1(images, captions, matched):
    """The paper's pseudo-code of the loss, figure A.1, in float64, with pseudo-positives of rows
    and of columns, of which it prints one."""
    (v_mu, v_sig), (t_mu, t_sig) = (
        [np.float64(side["mean"]), np.exp(np.float64(side["log_variance"]))]
        for side in (images, captions)
    )
    mu_dist = ((v_mu[:, None] - t_mu[None]) ** 2).sum(-1)
    sigma_dist = (v_sig[:, None] + t_sig[None]).sum(-1)
    logits = -PAPER["a"] * (mu_dist + sigma_dist) + PAPER["b"]

    def crossentropy(labels):
        return np.mean(np.logaddexp(0, logits) - labels * logits)

    def pseudo(labels, scores):
        relabelled = labels.copy()
        for row, own in enumerate(labels.argmax(1)):
            relabelled[row, scores[row] >= scores[row, own]] = labels[row, own]
        return relabelled

    rows, columns = pseudo(matched, logits), pseudo(matched.T, logits.T).T
    pp_match_loss = (crossentropy(rows) + crossentropy(columns)) / 2
    vib_loss = sum(
        -0.5 * (1 + np.log(sig) - mu**2 - sig).mean() for mu, sig in ((v_mu, v_sig), (t_mu, t_sig))
    )
    return crossentropy(matched) + PAPER["alpha"] * pp_match_loss + PAPER["beta"] * vib_loss


def test_the_loss_is_that_of_the_paper():
    model, data = tiny(drop_rate=0.0), batch()
    model.compile("sgd")
    model.image_encoder.trainable = False  # statistics of BatchNorm as in inference
    logs = model.evaluate(tf.data.Dataset.from_tensors(data), return_dict=True, verbose=0)
    expected = figure_a1(**model(data), matched=np.eye(6))
    np.testing.assert_allclose(logs["loss"], expected, rtol=1e-6)


def test_figure_a1_with_much_of_every_term(wide):
    """Where the pseudo-positives are many and the variances far from 1, so that a weight that is
    off by two, or a bottleneck that sums over dimensions, cannot hide."""
    rng = np.random.default_rng(3)
    sides = [
        {
            "mean": rng.normal(size=(9, 1024)).astype("float32") / 64,
            "log_variance": rng.normal(-6, 1, size=(9, 1024)).astype("float32"),
        }
        for _ in range(2)
    ]
    model = wide
    matches = (np.arange(9)[:, None] // 2 == np.arange(9)[None] // 2).astype("float32")
    value = model.loss(matches, model.similarity(*sides))
    value += sum(term.weight * term(*sides) for term in model.auxiliaries)
    expected = figure_a1(*sides, matched=np.float64(matches))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    terms = tiny(kl_reduction="mean").auxiliaries
    assert float(terms[0](*sides)) > 1000 * float(model.auxiliaries[0](*sides))


def test_squared_distances_are_limits_of_each_other():
    rng = np.random.default_rng(0)
    images, captions = (
        {
            "mean": rng.normal(size=(n, 5)).astype("float32"),
            "log_variance": np.full((n, 5), -30.0, "float32"),
        }
        for n in (3, 4)
    )
    logits = similarities.ClosedFormSampledDistance(2.0, 1.0)(images, captions)
    for layer in (similarities.SquaredEuclidean, similarities.SquaredWasserstein2):
        np.testing.assert_allclose(layer(2.0, 1.0)(images, captions), logits, atol=1e-4)
        again = layer.from_config(layer(2.0, 1.0).get_config())
        assert (float(again.scale), float(again.shift)) == (2.0, 1.0)


def test_backbones_learn_slower_than_heads():
    model = tiny()
    rates = training.dual_encoder_rates(model, image_rate=0.01, caption_rate=0.1)
    optimizer = training.LayerwiseAdamW(1e-3, rates=rates, weight_decay=0.0, epsilon=0.0)
    weights = model.trainable_variables
    before = [np.array(weight) for weight in weights]
    optimizer.apply([keras.ops.ones(weight.shape) for weight in weights], weights)
    # Adam's first step is the learning rate, whatever the gradient.
    steps = {
        w.path: float(np.mean(old - np.array(w))) / 1e-3
        for w, old in zip(weights, before, strict=True)
    }
    assert {round(step, 2) for step in steps.values()} == {0.01, 0.1, 1.0}
    assert all(
        step == pytest.approx(1.0, rel=0.01) for path, step in steps.items() if "head" in path
    )
    assert steps[model.similarity.scale.path] == pytest.approx(1.0, rel=0.01)


def test_the_head_alone_is_the_rest_of_the_encoder(made):
    model, images = made("pcmepp"), batch()["images"]
    encoder = model.image_encoder
    head = zoo.encoders.head_alone(encoder)
    found, expected = head(encoder.get_layer("backbone")(images)), encoder(images)
    for name in ("mean", "log_variance"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)
    heads = model.with_image_encoder(head)
    rates = training.dual_encoder_rates(heads, image_rate=0.01, caption_rate=0.1)
    assert set(rates.values()) == {0.1}, "there is no image backbone left"
    pictures = encoder.input
    two = keras.Model(pictures, {"features": pictures, "variance_features": pictures})
    two.name = "backbone"
    with pytest.raises(ValueError, match="one output"):
        zoo.encoders.head_alone(keras.Sequential([two]))


def test_what_only_the_variance_depends_on(made):
    model, data = tiny(drop_rate=0.0), batch()
    head, before = model.image_encoder.get_layer("head"), model(data)["images"]
    assert len(head.variance_parts) == 3
    for variable in (v for part in head.variance_parts for v in part.trainable_variables):
        variable.assign(variable + 1.0)
    after = model(data)["images"]
    np.testing.assert_array_equal(after["mean"], before["mean"])
    assert np.abs(np.subtract(after["log_variance"], before["log_variance"])).min() > 0
    assert made("infonce").image_encoder.get_layer("head").variance_parts == []


def test_the_temperature_of_infonce():
    """1.0 for PCME++'s baseline (section 3.1), CLIP's 0.07 otherwise; learned from there."""
    for options, scale in (({"temperature": 1.0}, 1.0), ({}, 1 / 0.07)):
        similarity = tiny("infonce", **options).similarity
        np.testing.assert_allclose(float(similarity.scale), scale, rtol=1e-6)
        assert len(similarity.trainable_variables) == 1
    with pytest.raises(ValueError, match=r"`temperature` must be at least 0\.01; received 0"):
        tiny("infonce", temperature=0)


def test_the_defaults_are_those_of_the_paper_on_cub():
    config = zoo.models.pcme("tiny", vocabulary_size=10, image_size=16)
    assert config.image_encoder.output["mean"].shape == (None, 512)
    assert isinstance(config.similarity, similarities.MatchProbability)
    assert config.similarity.num_samples == 7
    assert float(config.similarity.scale) == float(config.similarity.shift) == 10.0
    assert {term.name: term.weight for term in config.auxiliaries} == {
        "kl": 1e-3,
        "uniformity": 10.0,
    }
    assert config.loss.get_config()["reduction"] == "sum"


def test_means_have_unit_length_and_variances_are_free():
    model, data = tiny("pcme", log_variance_bias=-3.0), batch()
    for embedding in model({"images": data["images"], "captions": data["captions"]}).values():
        np.testing.assert_allclose(np.linalg.norm(embedding["mean"], axis=-1), 1.0, rtol=1e-5)
        assert abs(float(np.mean(embedding["log_variance"])) + 3.0) < 1.5


def test_loss_is_the_sum_over_pairs_plus_the_weighted_regularisers():
    model, data = tiny("pcme"), batch()
    model.compile("sgd")
    logs = model.evaluate(tf.data.Dataset.from_tensors(data), return_dict=True, verbose=0)
    embeddings = model(data)
    logits = model.similarity(embeddings["images"], embeddings["captions"])
    pairs = np.logaddexp(0, np.where(np.eye(6), -np.asarray(logits), logits)).sum()
    kl = sum(float(np.sum(losses.kl_to_standard_normal(e))) for e in embeddings.values())
    np.testing.assert_allclose(logs["kl"], kl, rtol=1e-4)
    # Only the uniformity is random here; it is logged, so it can be taken out again.
    np.testing.assert_allclose(
        logs["loss"], pairs + 1e-3 * kl + 10.0 * logs["uniformity"], rtol=1e-4
    )


def test_means_alone_are_spread_as_gaussians_are():
    """criterions/probemb.py: uniformity of whatever features come; KL needs variances."""
    model, data = tiny("pcme", covariance=None), batch()
    assert {term.name: term.weight for term in model.auxiliaries} == {"uniformity": 10.0}
    embeddings = model(data)
    both = np.concatenate([embeddings[side]["mean"] for side in ("images", "captions")])
    (term,) = model.auxiliaries
    spread = term(embeddings["images"], embeddings["captions"])
    np.testing.assert_allclose(spread, losses.uniformity(both), rtol=1e-5)


def test_mixed_precision_trains_and_keeps_embeddings_in_float32():
    """With a loss that is scaled."""
    keras.config.set_dtype_policy("mixed_float16")
    model, data = tiny("pcme"), batch()
    model.compile(zoo.training.AdamP(1e-3))
    logs = model.fit(tf.data.Dataset.from_tensors(data), epochs=2, verbose=0)
    assert np.isfinite(logs.history["loss"]).all()
    assert model.image_encoder(data["images"])["mean"].dtype == "float32"


def test_heads_alone_train_on_stored_features_and_share_their_weights():
    model, data = tiny("pcme"), batch()
    features = model.image_encoder.get_layer("backbone")(data["images"])
    heads = model.with_image_encoder(model.image_encoder.get_layer("head"))
    before = np.asarray(model.image_encoder(data["images"])["mean"])
    np.testing.assert_allclose(heads.image_encoder(features)["mean"], before, atol=1e-6)
    heads.compile(zoo.training.AdamP(1e-2))
    data["images"] = features
    heads.fit(tf.data.Dataset.from_tensors(data), verbose=0)
    after = model.image_encoder(batch()["images"])["mean"]
    np.testing.assert_allclose(heads.image_encoder(features)["mean"], after, atol=1e-5)
    assert np.abs(before - after).max() > 1e-3
