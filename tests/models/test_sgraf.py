import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import embeddings, losses, metrics, similarities
from zoo.data.text.captions import WordTokenizer

# Two steps of a model: tracing them takes longer. A step is compiled below.
pytestmark = pytest.mark.usefixtures("run_eagerly")
RNG = np.random.default_rng(0)
REGIONS = RNG.normal(size=(4, 5, 12)).astype("float32")
REGIONS[1, 3:] = REGIONS[2, 1:] = 0
TEXTS = ["a small red bird", "a bird", "blue wing", "small blue bird on a wing", "red", "a a a"]
WORDS = ["bird", "red", "blue", "wing", "a", "small"]


def tiny(image_backbone=(5, 12), **options):
    options = {"dim": 8, "similarity_dim": 4, "word_dim": 6, **options}
    options.setdefault("tokenizer", WordTokenizer(WORDS, max_words=6))
    return zoo.models.sgraf(image_backbone, **options)


def batch(model):
    return {
        "images": REGIONS[:3],
        "captions": model.tokenize(TEXTS),
        "image_labels": np.arange(3, dtype="int32"),
        "caption_labels": np.repeat(np.arange(3, dtype="int32"), 2),
        "semantic": RNG.random((3, 6)).astype("float32"),
    }


def test_the_defaults_are_those_of_the_paper():
    model = zoo.models.sgraf(vocabulary_size=10)
    assert model.image_encoder.input_shape == (None, 36, 2048)
    assert model.image_encoder.output["tokens"].shape == (None, 36, 1024)
    assert model.caption_encoder.output["tokens"].shape == (None, 40, 1024)
    saf, sgr = model.similarity.parts
    assert type(saf) is similarities.SimilarityFiltration
    assert type(sgr) is similarities.SimilarityReasoning
    assert (saf.similarity_dim, saf.sharpness, sgr.num_steps) == (256, 9.0, 3)
    settings = model.loss.get_config()
    assert (settings["margin"], settings["mining"], settings["reduction"]) == (
        0.2,
        "hardest",
        "sum",
    )


def test_training_moves_everything_and_a_file_keeps_it(tmp_path):
    term = losses.AuxiliaryRanking(losses.SemanticPrecision(0.1))
    model = tiny().with_auxiliaries(term)
    data = batch(model)
    model.compile(keras.optimizers.Adam(0.01))
    before = [w.numpy() for w in model.trainable_variables]
    batches = tf.data.Dataset.from_tensors(data)
    loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]  # without dropout
    model.fit(batches.repeat(), steps_per_epoch=3, verbose=0)
    assert 0 < model.evaluate(batches, verbose=0, return_dict=True)["loss"] < loss
    moved = [np.any(a != b.numpy()) for a, b in zip(before, model.trainable_variables, strict=True)]
    still = [w.path for w, m in zip(model.trainable_variables, moved, strict=True) if not m]
    assert not still
    images, captions = model.encode_images(REGIONS), model.encode_captions(TEXTS)
    assert embeddings.kind(images) == "a token sequence"
    expected = model.similarity(images, captions)
    assert expected.shape == (4, 6)
    assert np.all((expected.numpy() > 0) & (expected.numpy() < 1))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = loaded.similarity(loaded.encode_images(REGIONS), loaded.encode_captions(TEXTS))
    np.testing.assert_allclose(again, expected, atol=1e-6)


def test_evaluation_is_in_blocks_and_equal():
    model = tiny()
    images, captions = model.encode_images(REGIONS), model.encode_captions(TEXTS)
    whole = np.asarray(model.similarity(images, captions))
    pairs = metrics.PairwiseSimilarity(images, captions, model.similarity)
    rows = np.concatenate([pairs.rows(start, start + 1) for start in range(4)])
    np.testing.assert_allclose(rows, whole, atol=1e-6)
    truth = np.arange(6)[None] // 2 == np.arange(4)[:, None]
    found = metrics.evaluate_retrieval(pairs, truth)
    assert found == metrics.evaluate_retrieval(whole, truth)


def test_padding_never_changes_a_sequence():
    model = tiny()
    whole = model.encode_images(REGIONS)
    assert not np.any(whole["tokens"][1, 3:])
    np.testing.assert_array_equal(np.sum(whole["mask"], axis=1), [5, 3, 1, 5])
    short = model.encode_captions(["red"])
    again = model.encode_captions(TEXTS)["tokens"][4, 0]
    np.testing.assert_allclose(short["tokens"][0, 0], again, rtol=1e-5)
    assert not np.any(short["tokens"][0, 1:])


def test_a_sequence_has_no_uncertainty_and_no_index():
    model = tiny()
    images = model.encode_images(REGIONS)
    with pytest.raises(ValueError, match="received a token sequence"):
        model.uncertainty(images)
    with pytest.raises(ValueError, match="token sequence"):
        zoo.search.Index.build(images, model.similarity)
