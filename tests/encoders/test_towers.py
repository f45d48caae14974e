"""Towers of Gaussians, of regions and of stored vectors."""

import inspect
import random

import numpy as np
import pytest

import tiny_models
from golden_weights import dense, gru, set_local_attention, set_pie_net
from layer_checks import check_layer
from zoo import encoders, models
from zoo.encoders import regions
from zoo.encoders.gaussian_towers import gaussian_caption_encoder, gaussian_image_encoder
from zoo.encoders.stored_features import RegionMask

IDS = np.array([[4, 2, 7, 3, 5], [1, 6, 0, 0, 0], [3, 3, 2, 0, 0]], "int32")


def official_caption_encoder(g, **options):
    at_last_word = options.get("at_last_word", False)
    words = g["w__embed__weight"]
    backbone = encoders.gru(13, 16, word_dim=10, word_vectors=words, at_last_word=at_last_word)
    encoder = gaussian_caption_encoder(backbone, 16, hidden_dim=5, **options)
    both = [*gru(g, "rnn"), *gru(g, "rnn", reverse=True)]
    backbone.get_layer("gru").set_weights(both)
    head = encoder.get_layer("head")
    both = [*gru(g, "uncertain_net__rnn"), *gru(g, "uncertain_net__rnn", reverse=True)]
    head.get_layer("variance_gru").set_weights(both)
    gaussian = head.get_layer("gaussian")
    set_pie_net(gaussian.mean_local, g, "pie_net__")
    set_local_attention(gaussian.variance_pooling, g, "uncertain_net__attention")
    kernel, bias = dense(g, "uncertain_net__fc")
    gaussian.variance_local.set_weights([kernel])
    gaussian.covariance.set_weights([bias * (2 if gaussian.log_deviation else 1)])
    return encoder


def test_official_caption_encoder(golden):
    g = golden("pcme_text_encoder")
    ids = g["ids"].astype("int32")
    np.testing.assert_array_equal((ids > 0).sum(1), g["lengths"])
    released = official_caption_encoder(g, at_last_word=True)(ids)
    np.testing.assert_allclose(released["mean"], g["embedding"], atol=1e-5)
    np.testing.assert_allclose(released["log_variance"], g["logsigma"], atol=1e-5)

    # The paper's differs by the backward halves alone, and not where there is one word.
    ours = official_caption_encoder(g)(ids)
    difference = np.abs(ours["log_variance"] - g["logsigma"])
    assert difference[:, :8].max() < 1e-5
    several = g["lengths"] > 1
    assert (difference[several, 8:].max(axis=1) > 1e-3).all()


def test_a_head_of_log_sigma_is_doubled(golden):
    g = golden("pcme_text_encoder")
    encoder = official_caption_encoder(g, at_last_word=True, log_deviation=True)
    found = encoder(g["ids"].astype("int32"))["log_variance"]
    np.testing.assert_allclose(found, 2 * g["logsigma"], atol=2e-5)


def test_image_tower():
    backbone = encoders.convolutional("tiny", trainable=False)
    encoder = gaussian_image_encoder(backbone, 16, log_variance_bias=-3.0)
    images = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), "uint8")
    embedding = encoder.predict(images, verbose=0)
    assert embedding["mean"].shape == embedding["log_variance"].shape == (2, 16)
    np.testing.assert_allclose(embedding["log_variance"].mean(), -3.0, atol=0.5)
    # the head alone, on stored features
    again = encoder.get_layer("head")(encoder.get_layer("backbone")(images))
    np.testing.assert_allclose(again["mean"], embedding["mean"], atol=1e-5)
    assert all("head" in w.path or "gaussian" in w.path for w in encoder.trainable_weights)


def test_captions_do_not_depend_on_padding():
    encoder = gaussian_caption_encoder(encoders.gru(9, 16, word_dim=6), 16)
    embedding = encoder(IDS)
    longer = encoder(np.pad(IDS, ((0, 0), (0, 4))))
    for i, length in enumerate((IDS > 0).sum(1)):
        alone = encoder(IDS[i : i + 1, :length])
        for key in embedding:
            np.testing.assert_allclose(longer[key][i], embedding[key][i], atol=1e-6)
            np.testing.assert_allclose(alone[key][0], embedding[key][i], atol=1e-6)


def test_mean_only_towers_have_no_second_gru():
    encoder = gaussian_caption_encoder(encoders.gru(9, 16, 6), 16, covariance=None)
    assert set(encoder(IDS)) == {"mean"}
    assert not any("variance" in weight.path for weight in encoder.weights)


def test_word_vectors_are_the_first_words():
    vectors = np.random.default_rng(0).normal(size=(9, 6)).astype("float32")
    model = encoders.gru(9, 8, word_dim=6, word_vectors=vectors)
    np.testing.assert_array_equal(model(IDS)["words"], vectors[IDS])
    assert any(w is model.get_layer("words").embeddings for w in model.trainable_weights)
    with pytest.raises(ValueError, match=r"`word_vectors`.*\(9, 5\).*received \(9, 6\)"):
        encoders.gru(9, 8, word_dim=5, word_vectors=vectors)


def test_a_sentence_of_another_dimension_is_projected():
    encoder = gaussian_caption_encoder(encoders.gru(9, 16, 6), 2, mean_attention=False)
    head = encoder.get_layer("head")
    assert head.get_layer("gaussian").mean_global.kernel.shape == (16, 2)
    assert head.get_layer("gaussian").variance_global.kernel.shape == (16, 2)
    assert {name: tuple(part.shape) for name, part in encoder(IDS).items()} == {
        "mean": (len(IDS), 2),
        "log_variance": (len(IDS), 2),
    }


def test_one_gru_is_projected_though_it_is_as_wide_as_the_embedding():
    """Without a second GRU mean and log variance are two linear maps of one sentence (C.3)."""
    backbone = encoders.gru(9, 8, word_dim=6, max_length=5)
    tower = gaussian_caption_encoder(backbone, 8, variance_gru=False)
    head = tower.get_layer("head").get_layer("gaussian")
    assert head.project_pooled
    assert not any("variance_gru" in weight.path for weight in tower.weights)
    both = gaussian_caption_encoder(encoders.gru(9, 8, word_dim=6, max_length=5), 8)
    assert not both.get_layer("head").get_layer("gaussian").project_pooled


RNG = np.random.default_rng(0)
REGIONS = RNG.normal(size=(4, 6, 12)).astype("float32")
LENGTHS = np.array([6, 3, 1, 0])
MASK = np.arange(6) < LENGTHS[:, None]
PADDED = np.where(MASK[..., None], REGIONS, 0).astype("float32")


def test_the_mask_is_a_layer():
    check_layer(RegionMask, {"drop_rate": 0.2, "seed": 0}, {"regions": PADDED}, (4, 6))
    with pytest.raises(ValueError, match=r"`drop_rate`.*received 1"):
        RegionMask(1.0)


def test_rows_of_zeros_are_no_regions():
    backbone = regions(12, 8)
    outputs = backbone(PADDED)
    np.testing.assert_array_equal(outputs["mask"], MASK)
    for i, length in enumerate(LENGTHS[:3]):
        alone = backbone(REGIONS[i : i + 1, :length])
        np.testing.assert_allclose(alone["pooled"][0], outputs["pooled"][i], atol=1e-5)
        features = outputs["features"][i, :length]
        np.testing.assert_allclose(alone["features"][0], features, atol=1e-5)
        np.testing.assert_allclose(outputs["pooled"][i], np.max(features, axis=0), atol=1e-6)
    np.testing.assert_array_equal(outputs["pooled"][3], np.zeros(8))


def test_padding_does_not_reach_the_statistics():
    moved = []
    for batch in (PADDED[:2], np.concatenate([PADDED[:2], 0 * PADDED[:2]], axis=1)):
        random.seed(0)
        backbone = regions(12, 8, seed=0)
        backbone(batch, training=True)
        moved.append(np.asarray(backbone.get_layer("normalize").moving_mean))
    assert np.abs(moved[0]).max() > 1e-3
    np.testing.assert_allclose(*moved, atol=1e-6)


def test_dropping_leaves_a_region_of_each_image():
    backbone = regions(12, 8, drop_rate=0.9, seed=0)
    masks = np.stack([np.asarray(backbone(PADDED[:3], training=True)["mask"]) for _ in range(20)])
    assert (masks.sum(2) >= 1).all()
    assert not (masks & ~MASK[:3]).any()
    assert masks[:, 0].mean() < 0.4
    np.testing.assert_array_equal(backbone(PADDED)["mask"], MASK)


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
