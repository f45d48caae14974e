"""A matrix loss beside a model's own, by its logits or by samples."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder

RNG = np.random.default_rng(0)
N, M, D = 4, 6, 3
IMAGES, CAPTIONS = (
    {
        "mean": RNG.normal(size=(rows, D)).astype("float32"),
        "log_variance": RNG.normal(-3, 1, size=(rows, D)).astype("float32"),
    }
    for rows in (N, M)
)
SEMANTIC = RNG.random((N, M)).astype("float32")
LOGITS = RNG.normal(size=(N, M)).astype("float32")
MATCHES = (RNG.random((N, M)) < 0.4).astype("float32")


def test_it_is_its_loss_on_the_logits():
    daa = losses.AuxiliaryRanking(losses.SemanticPrecision(0.1), weight=3.0)
    assert (daa.name, daa.weight, daa.reads) == ("semantic_precision", 3.0, ("semantic", "logits"))
    expected = losses.SemanticPrecision(0.1)(SEMANTIC, LOGITS)
    assert float(daa(IMAGES, CAPTIONS, semantic=SEMANTIC, logits=LOGITS)) == float(expected)
    smooth = losses.AuxiliaryRanking(losses.SmoothAveragePrecision(0.1))
    assert smooth.reads == ("matches", "logits")
    expected = losses.SmoothAveragePrecision(0.1)(MATCHES, LOGITS)
    assert float(smooth(IMAGES, CAPTIONS, matches=MATCHES, logits=LOGITS)) == float(expected)


def test_every_sample_is_an_item_of_its_own():
    """With the variances gone, samples are copies, and all of them rank as the cosines of the
    means do, each with the copies of its own item as equals."""
    sure = [
        {**side, "log_variance": np.full_like(side["mean"], -60)} for side in (IMAGES, CAPTIONS)
    ]
    term = losses.AuxiliaryRanking(losses.SemanticPrecision(0.01), num_samples=3, seed=1)
    assert term.reads == ("semantic",)
    units = [side["mean"] / np.linalg.norm(side["mean"], axis=1)[:, None] for side in sure]
    cosines = units[0] @ units[1].T
    copies = [np.repeat(np.repeat(matrix, 3, 0), 3, 1) for matrix in (SEMANTIC, cosines)]
    expected = losses.SemanticPrecision(0.01)(*copies)
    np.testing.assert_allclose(term(*sure, semantic=SEMANTIC), expected, rtol=1e-4)


def test_samples_are_compared_by_cosine():
    """Equation 5 of DAA: however far a sample is from the origin, its direction alone counts."""
    term = losses.AuxiliaryRanking(losses.SemanticPrecision(0.1), num_samples=3, seed=1)
    far = [
        {"mean": scale * side["mean"], "log_variance": side["log_variance"] + 2 * np.log(scale)}
        for scale, side in ((5.0, IMAGES), (0.2, CAPTIONS))
    ]
    again = losses.AuxiliaryRanking.from_config(term.get_config())
    value = term(IMAGES, CAPTIONS, semantic=SEMANTIC)
    np.testing.assert_allclose(again(*far, semantic=SEMANTIC), value, rtol=1e-4)


def test_both_modalities_are_sampled_and_get_gradients():
    term = losses.AuxiliaryRanking(losses.SemanticPrecision(0.1), num_samples=2, seed=1)
    values = tf.nest.map_structure(tf.constant, (IMAGES, CAPTIONS))
    with tf.GradientTape() as tape:
        tape.watch(tf.nest.flatten(values))
        first = term(*values, semantic=SEMANTIC)
    for gradient in tf.nest.flatten(tape.gradient(first, values)):
        assert np.isfinite(gradient).all()
        assert np.any(gradient)
    assert float(term(*values, semantic=SEMANTIC)) != float(first), "the same noise twice"
    again = losses.AuxiliaryRanking.from_config(term.get_config())
    assert float(again(*values, semantic=SEMANTIC)) == float(first)
    assert again.get_config() == term.get_config()


def towers():
    image, caption = keras.Input((5,), name="images"), keras.Input((5,), name="captions")
    return [
        keras.Model(side, {"mean": keras.layers.Dense(D)(side)}, name=name)
        for side, name in ((image, "i"), (caption, "c"))
    ]


def test_any_model_takes_it_and_keeps_it(tmp_path):
    model = DualEncoder(*towers(), similarities.Cosine(), loss=losses.InfoNCE())
    terms = [
        losses.AuxiliaryRanking(losses.SemanticPrecision(0.1), weight=2.0),
        losses.AuxiliaryRanking(losses.SmoothAveragePrecision(0.1), weight=0.5),
    ]
    both = model.with_auxiliaries(*terms)
    assert model.auxiliaries == []
    batch = {
        "images": RNG.normal(size=(N, 5)).astype("float32"),
        "captions": RNG.normal(size=(M, 5)).astype("float32"),
        "matches": MATCHES,
        "semantic": SEMANTIC,
    }
    outputs = both(batch)
    logits = both.similarity(outputs["images"], outputs["captions"])
    parts = [
        term.loss(truth, logits) for term, truth in zip(terms, (SEMANTIC, MATCHES), strict=True)
    ]
    expected = losses.InfoNCE()(MATCHES, logits) + 2.0 * parts[0] + 0.5 * parts[1]
    np.testing.assert_allclose(both.compute_loss(x=batch, y_pred=outputs), expected, rtol=1e-6)
    both.compile(keras.optimizers.SGD(0.0))
    data = tf.data.Dataset.from_tensors(batch).repeat()
    logged = both.fit(data, steps_per_epoch=1, verbose=0).history
    np.testing.assert_allclose(logged["semantic_precision"][0], parts[0], rtol=1e-5)
    both.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.compute_loss(x=batch, y_pred=loaded(batch)),
        ops.convert_to_numpy(expected),
        rtol=1e-5,
    )


def test_terms_are_logged_with_the_weight_of_their_batch():
    """As Keras logs the loss, where the last batch of a data set of unknown size is smaller."""
    model = DualEncoder(*towers(), similarities.Cosine(), loss=losses.InfoNCE())
    model = model.with_auxiliaries(losses.AuxiliaryRanking(losses.SmoothAveragePrecision(0.1)))
    values = RNG.normal(size=(6, 5)).astype("float32")
    batches = [
        {"images": values[:size], "captions": values[-size:], "matches": np.eye(size) > 0}
        for size in (6, 2)
    ]
    (term,) = model.auxiliaries
    model.compile(keras.optimizers.SGD(0.0))
    alone = [
        model.evaluate(tf.data.Dataset.from_tensors(one), verbose=0, return_dict=True)
        for one in batches
    ]
    kinds = {name: tf.TensorSpec([None, *v.shape[1:]], v.dtype) for name, v in batches[0].items()}
    kinds["matches"] = tf.TensorSpec((None, None), bool)
    data = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=kinds)
    logged = model.fit(data, verbose=0).history
    for name in ("loss", term.name):
        expected = (6 * alone[0][name] + 2 * alone[1][name]) / 8
        np.testing.assert_allclose(logged[name][0], expected, rtol=1e-5)


def test_without_semantics_it_says_what_is_missing():
    term = losses.AuxiliaryRanking(losses.SemanticPrecision())
    with pytest.raises(ValueError, match="needs batches with 'semantic'"):
        term(IMAGES, CAPTIONS, logits=LOGITS, semantic=None)
    with pytest.raises(ValueError, match="num_samples"):
        losses.AuxiliaryRanking(losses.SemanticPrecision(), num_samples=0)


def test_ranks_by_semantics_may_have_a_temperature_of_their_own():
    loss = losses.SemanticPrecision(0.1, semantic_temperature=0.01)
    expected = losses.SemanticPrecision(0.1)(10.0 * SEMANTIC, LOGITS)
    np.testing.assert_allclose(loss(SEMANTIC, LOGITS), expected, rtol=1e-5)
    assert losses.SemanticPrecision.from_config(loss.get_config()).semantic_temperature == 0.01
    with pytest.raises(ValueError, match="`semantic_temperature` must be above 0"):
        losses.SemanticPrecision(0.1, 0.0)
