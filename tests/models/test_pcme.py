import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from point_models import random_pairs
from zoo import losses, similarities
from zoo.data.text.captions import WordTokenizer

# Two steps of a model: tracing them takes longer. They are compiled in `test_compiled_steps`.
pytestmark = pytest.mark.usefixtures("run_eagerly")
WORDS = ["bird", "red", "blue", "wing", "a", "small"]


def tiny_pcme(max_words=6, **options):
    options = {"dim": 8, "word_dim": 6, "image_size": 16, **options}
    return zoo.models.pcme("tiny", WordTokenizer(WORDS, max_words=max_words), **options)


@pytest.fixture(scope="module")
def untrained():
    return tiny_pcme()


def batch():
    return random_pairs((16, 16, 3), length=6, pairs=5)


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
    model, data = tiny_pcme(log_variance_bias=-3.0), batch()
    for embedding in model({"images": data["images"], "captions": data["captions"]}).values():
        np.testing.assert_allclose(np.linalg.norm(embedding["mean"], axis=-1), 1.0, rtol=1e-5)
        assert abs(float(np.mean(embedding["log_variance"])) + 3.0) < 1.5


def test_loss_is_the_sum_over_pairs_plus_the_weighted_regularisers(untrained):
    model, data = untrained, batch()
    model.compile("sgd")
    logs = model.evaluate(tf.data.Dataset.from_tensors(data), return_dict=True, verbose=0)
    embeddings = model(data)
    logits = model.similarity(embeddings["images"], embeddings["captions"])
    pairs = np.logaddexp(0, np.where(np.eye(5), -np.asarray(logits), logits)).sum()
    kl = sum(float(np.sum(losses.kl_to_standard_normal(e))) for e in embeddings.values())
    np.testing.assert_allclose(logs["kl"], kl, rtol=1e-4)
    # Only the uniformity is random here; it is logged, so it can be taken out again.
    np.testing.assert_allclose(
        logs["loss"], pairs + 1e-3 * kl + 10.0 * logs["uniformity"], rtol=1e-4
    )


def test_means_alone_are_spread_as_gaussians_are(untrained):
    """criterions/probemb.py: uniformity of whatever features come; KL needs variances."""
    model, data = tiny_pcme(covariance=None), batch()
    assert {term.name: term.weight for term in model.auxiliaries} == {"uniformity": 10.0}
    embeddings = model(data)
    both = np.concatenate([embeddings[side]["mean"] for side in ("images", "captions")])
    (term,) = model.auxiliaries
    spread = term(embeddings["images"], embeddings["captions"])
    np.testing.assert_allclose(spread, losses.uniformity(both), rtol=1e-5)


def test_training_and_saving_with_words_in_and_distributions_out(tmp_path):
    model, data = tiny_pcme(), batch()
    model.compile(zoo.training.AdamP(1e-3))
    model.fit(tf.data.Dataset.from_tensors(data).repeat(), steps_per_epoch=1, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    captions = ["a small red bird", "a blue wing", "unheard of"]
    one, other = model.encode_captions(captions), loaded.encode_captions(captions)
    np.testing.assert_array_equal(one.mean(), other.mean())
    np.testing.assert_array_equal(one.stddev(), other.stddev())
    images = loaded.encode_images(data["images"])
    assert loaded.similarity(images, other).shape == (5, 3)
    assert loaded.uncertainty(other).shape == (3,)


def test_mixed_precision_trains_and_keeps_embeddings_in_float32():
    """With a loss that is scaled."""
    keras.config.set_dtype_policy("mixed_float16")
    model, data = tiny_pcme(), batch()
    model.compile(zoo.training.AdamP(1e-3))
    logs = model.fit(tf.data.Dataset.from_tensors(data), epochs=2, verbose=0)
    assert np.isfinite(logs.history["loss"]).all()
    assert model.image_encoder(data["images"])["mean"].dtype == "float32"


def test_heads_alone_train_on_stored_features_and_share_their_weights():
    model, data = tiny_pcme(), batch()
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
