import numpy as np
import pytest

from golden_weights import dense, gru, set_local_attention, set_pie_net
from zoo import encoders
from zoo.encoders.gaussian_towers import gaussian_caption_encoder, gaussian_image_encoder

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
