"""Systems of sets and of token sequences: DivE, PVSE, SGRAF."""

import functools
import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import embeddings, encoders, losses, metrics, similarities
from zoo.data.text.captions import WordTokenizer

# Two steps of a model: tracing them takes longer. They are compiled in `test_execution`.
pytestmark = pytest.mark.usefixtures("run_eagerly")
WORDS = ["bird", "red", "blue", "wing", "a", "small"]
RNG = np.random.default_rng(0)
REGIONS = RNG.normal(size=(3, 5, 12)).astype("float32")
REGIONS[1, 3:] = REGIONS[2, 1:] = 0
IDS = RNG.integers(2, 8, (6, 6)).astype("int32")
IDS[0, 3:] = IDS[1, 1:] = IDS[4, 5:] = 0
BUILDERS = pytest.mark.parametrize("name", ["dive", "pvse"])


def tiny(name, image_backbone=(None, 12), **options):
    options = {"dim": 8, "word_dim": 6, "image_size": 16, **options}
    if "caption_backbone" not in options:
        options.setdefault("tokenizer", WordTokenizer(WORDS, max_words=6))
    return getattr(zoo.models, name)(image_backbone, **options)


def batch(images=REGIONS):
    labels = np.arange(3, dtype="int32")
    return {
        "images": images,
        "captions": IDS,
        "image_labels": labels,
        "caption_labels": np.repeat(labels, 2),
    }


@pytest.fixture(scope="module")
def made():
    return functools.cache(tiny)


def test_the_defaults_are_those_of_the_papers(made):
    dive, pvse = made("dive"), made("pvse")
    assert dive.image_encoder.output["elements"].shape == (None, 4, 8)
    assert pvse.image_encoder.output["elements"].shape == (None, 2, 8)
    for builder in (zoo.models.dive, zoo.models.pvse):
        defaults = inspect.signature(builder).parameters
        assert defaults["dim"].default == 1024
        assert defaults["image_backbone"].default == "resnet152"
    assert dive.similarity.alpha == 16.0
    assert type(pvse.similarity) is similarities.MaximumPair
    for model in (dive, pvse):
        settings = model.loss.get_config()
        assert (settings["margin"], settings["mining"]) == (0.1, "hardest")
    weights = [{type(t): t.weight for t in model.auxiliaries} for model in (dive, pvse)]
    assert weights[0] == {losses.MaximumMeanDiscrepancy: 0.01, losses.Diversity: 0.01}
    assert weights[1] == {losses.MaximumMeanDiscrepancy: 0.01, losses.OrthogonalDiversity: 0.1}


@BUILDERS
def test_padding_never_changes_a_set_nor_its_attention(name, made):
    model = made(name)
    images = encoders.with_attention(model.image_encoder)
    captions = encoders.with_attention(tiny_words(model, name))
    for tower, padded, lengths in (
        (images, REGIONS, (5, 3, 1)),
        (captions, IDS, (3, 1, 6, 6, 5, 6)),
    ):
        together = tower(padded)
        np.testing.assert_array_equal(np.sum(together["mask"], axis=1), lengths)
        for i, length in enumerate(lengths):
            alone = tower(padded[i : i + 1, :length])
            np.testing.assert_allclose(alone["elements"][0], together["elements"][i], atol=1e-5)
            attention = np.asarray(together["attention"][i])
            np.testing.assert_allclose(alone["attention"][0], attention[:, :length], atol=1e-5)
            assert (attention[:, length:] == 0).all()


def tiny_words(model, name):
    free = tiny(name, tokenizer=None, vocabulary_size=8, max_length=None)
    free.caption_encoder.set_weights(model.caption_encoder.get_weights())
    return free.caption_encoder


@pytest.mark.parametrize("name", ["dive", pytest.param("pvse", marks=pytest.mark.very_slow)])
def test_training_saving_and_the_attention_of_a_loaded_model(name, tmp_path):
    pictures = RNG.uniform(0, 255, (3, 16, 16, 3)).astype("float32")
    model, data = tiny(name, "tiny"), batch(pictures)
    model.compile(zoo.training.AdamP(1e-3))
    logs = model.fit(tf.data.Dataset.from_tensors(data).repeat(), steps_per_epoch=1, verbose=0)
    assert set(logs.history) == {"loss", "mean_discrepancy", "diversity"}
    assert np.isfinite(logs.history["loss"]).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    sets = loaded.encode_images(pictures)
    np.testing.assert_allclose(np.linalg.norm(sets, axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(sets, model.encode_images(pictures), atol=1e-5)
    captions = loaded.encode_captions(["a small red bird", "a blue wing"])
    assert loaded.similarity(sets, captions).shape == (3, 2)
    assert loaded.uncertainty(captions).shape == (2,)
    looked = encoders.with_attention(loaded.image_encoder).predict(pictures, verbose=0)
    np.testing.assert_allclose(looked["elements"], sets, atol=1e-5)
    assert encoders.map_size(loaded.image_encoder) == (2, 2)
    assert looked["attention"].shape == (*sets.shape[:2], 4)
    np.testing.assert_allclose(looked["attention"].sum(-1), 1, atol=1e-4)


@BUILDERS
def test_the_loss_is_the_triplets_plus_the_weighted_terms(name, made):
    model, data = made(name), batch()
    embeddings = model(data)
    images, captions = embeddings["images"], embeddings["captions"]
    total = model.compute_loss(data, y_pred=embeddings)
    matches = np.equal.outer(data["image_labels"], data["caption_labels"]).astype("float32")
    logits = model.similarity(images, captions)
    triplets = losses.TripletRanking(0.1, "hardest", "mean")(matches, logits)
    discrepancy = losses.maximum_mean_discrepancy(images, captions)
    function = losses.diversity if name == "dive" else losses.orthogonal_diversity
    spread = function(images["slots"]) + function(captions["slots"])
    weight = 0.01 if name == "dive" else 0.1
    np.testing.assert_allclose(total, triplets + 0.01 * discrepancy + weight * spread, rtol=1e-5)


def test_regions_have_no_order(made):
    """Positions are of feature maps (section 3.2, footnote), and of words as released, whose GRU
    knows their order anyway."""
    model = made("dive")
    found, turned = (model.image_encoder(part)["elements"] for part in (REGIONS, REGIONS[:, ::-1]))
    np.testing.assert_allclose(found[0], turned[0], atol=1e-5)


def test_the_sizes_of_the_paper(made):
    """D_h is 1,024 for feature maps and 2,048 for regions, in both towers (section 4.2)."""
    for model, expected in ((made("dive", "tiny"), 1), (made("dive"), 2)):
        for encoder in (model.image_encoder, model.caption_encoder):
            (sets,) = [layer for layer in encoder.get_layer("head").layers if "set" in layer.name]
            for name in ("query", "key", "value"):
                assert getattr(sets.attention, name).kernel.shape[1] == 8 * expected
            assert sets.attention.num_heads == 1
    wide = tiny("dive", "tiny", head_dim=16)
    sets = wide.image_encoder.get_layer("head").get_layer("image_set")
    assert sets.attention.query.kernel.shape == (8, 16)


def test_a_convolution_makes_the_local_features_of_a_map():
    """DivE's are of `dim` channels and their mean is the global feature (sections 3.1 and 4.2);
    PVSE's are the map's own."""
    pictures = RNG.uniform(0, 255, (3, 16, 16, 3)).astype("float32")
    encoder = tiny("dive", "tiny").image_encoder
    head = encoder.get_layer("head")
    cells = np.asarray(encoder.get_layer("backbone")(pictures))
    local = head.get_layer("local")
    assert local.kernel.shape == (1, 1, 128, 8)
    features = cells @ np.asarray(local.kernel)[0, 0] + np.asarray(local.bias)
    sets = head.get_layer("image_set")(features, features.mean((1, 2)))["elements"]
    sets /= np.linalg.norm(sets, axis=-1, keepdims=True)
    np.testing.assert_allclose(encoder(pictures)["elements"], sets, atol=1e-5)
    names = [layer.name for layer in tiny("pvse", "tiny").image_encoder.get_layer("head").layers]
    assert "global" in names
    assert "local" not in names


def test_the_row_with_a_transformer():
    """Table 3: attention over positions, so that slots do not compete."""
    model = tiny("dive", normalize_over="positions")
    looked = encoders.with_attention(model.image_encoder)(REGIONS)
    np.testing.assert_allclose(np.sum(looked["attention"], axis=-1), 1, atol=1e-6)


# Two steps of a model: tracing them takes longer. A step is compiled below.
PADDED = RNG.normal(size=(4, 5, 12)).astype("float32")
PADDED[1, 3:] = PADDED[2, 1:] = 0
TEXTS = ["a small red bird", "a bird", "blue wing", "small blue bird on a wing", "red", "a a a"]


def tiny_sgraf():
    sizes = {"dim": 8, "similarity_dim": 4, "word_dim": 6}
    return zoo.models.sgraf((5, 12), tokenizer=WordTokenizer(WORDS, max_words=6), **sizes)


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
    model = tiny_sgraf().with_auxiliaries(term)
    semantic = RNG.random((3, 6)).astype("float32")
    data = {**batch(PADDED[:3]), "captions": model.tokenize(TEXTS), "semantic": semantic}
    model.compile(keras.optimizers.Adam(0.01))
    before = [w.numpy() for w in model.trainable_variables]
    batches = tf.data.Dataset.from_tensors(data)
    loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]  # without dropout
    model.fit(batches.repeat(), steps_per_epoch=3, verbose=0)
    assert 0 < model.evaluate(batches, verbose=0, return_dict=True)["loss"] < loss
    moved = [np.any(a != b.numpy()) for a, b in zip(before, model.trainable_variables, strict=True)]
    still = [w.path for w, m in zip(model.trainable_variables, moved, strict=True) if not m]
    assert not still
    images, captions = model.encode_images(PADDED), model.encode_captions(TEXTS)
    assert embeddings.kind(images) == "a token sequence"
    expected = model.similarity(images, captions)
    assert expected.shape == (4, 6)
    assert np.all((expected.numpy() > 0) & (expected.numpy() < 1))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = loaded.similarity(loaded.encode_images(PADDED), loaded.encode_captions(TEXTS))
    np.testing.assert_allclose(again, expected, atol=1e-6)


def test_evaluation_is_in_blocks_and_equal():
    model = tiny_sgraf()
    images, captions = model.encode_images(PADDED), model.encode_captions(TEXTS)
    whole = np.asarray(model.similarity(images, captions))
    pairs = metrics.PairwiseSimilarity(images, captions, model.similarity)
    rows = np.concatenate([pairs.rows(start, start + 1) for start in range(4)])
    np.testing.assert_allclose(rows, whole, atol=1e-6)
    truth = np.arange(6)[None] // 2 == np.arange(4)[:, None]
    found = metrics.evaluate_retrieval(pairs, truth)
    assert found == metrics.evaluate_retrieval(whole, truth)


def test_padding_never_changes_a_sequence():
    model = tiny_sgraf()
    whole = model.encode_images(PADDED)
    assert not np.any(whole["tokens"][1, 3:])
    np.testing.assert_array_equal(np.sum(whole["mask"], axis=1), [5, 3, 1, 5])
    short = model.encode_captions(["red"])
    again = model.encode_captions(TEXTS)["tokens"][4, 0]
    np.testing.assert_allclose(short["tokens"][0, 0], again, rtol=1e-5)
    assert not np.any(short["tokens"][0, 1:])


def test_a_sequence_has_no_uncertainty():
    model = tiny_sgraf()
    images = model.encode_images(PADDED)
    with pytest.raises(ValueError, match="received a token sequence"):
        model.uncertainty(images)
