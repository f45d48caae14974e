"""Terms of pairs of Gaussians, of ambiguity and of captions: beside released code and loops."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import quad
from scipy.stats import norm

from gradients import value_and_gradients
from loss_loops import close
from oracles import random_gaussians
from zoo import losses, models, similarities

RNG = np.random.default_rng(4)
INNER, OUTER = random_gaussians(RNG, 5, 3), random_gaussians(RNG, 5, 3)


def test_it_is_the_integral():
    def one(row, d):
        inner = norm(INNER["mean"][row, d], np.exp(0.5 * INNER["log_variance"][row, d]))
        outer = norm(OUTER["mean"][row, d], np.exp(0.5 * OUTER["log_variance"][row, d]))
        center, width = inner.mean(), 12 * inner.std()
        return np.log(
            quad(lambda z: inner.pdf(z) ** 2 * outer.pdf(z), center - width, center + width)[0]
        )

    expected = [np.mean([one(row, d) for d in range(3)]) for row in range(5)]
    close(losses.inclusion(INNER, OUTER), expected, rtol=1e-4)


def test_scaling_both_changes_no_comparison():
    """Which the released exponents of log σ² would: log s comes out of the difference."""

    def difference(scale):
        sides = [
            {
                "mean": scale * side["mean"],
                "log_variance": side["log_variance"] + 2 * np.log(scale).astype("float32"),
            }
            for side in (INNER, OUTER)
        ]
        return losses.inclusion(*sides) - losses.inclusion(*sides[::-1])

    close(difference(np.float32(7.0)), difference(np.float32(1.0)), rtol=1e-4)


def test_released_code(golden):
    """Its two tests have −2 and −1 before log σ², where ours has −1 and −½: that apart, the
    difference of both directions is ours, and so is the loss with its scale of 1000."""
    arrays = golden("prolip_loss")
    images = {"mean": arrays["image_mean"], "log_variance": arrays["image_logvar"]}
    captions = {"mean": arrays["caption_mean"], "log_variance": arrays["caption_logvar"]}
    ours = np.asarray(losses.inclusion(captions, images) - losses.inclusion(images, captions))
    extra = 0.5 * (images["log_variance"] - captions["log_variance"]).mean(axis=1)
    close(np.logaddexp(0, -1000 * (ours + extra)).mean(), arrays["inclusion_loss"], rtol=1e-3)
    term = losses.Inclusion(weight=1.0)
    close(term(captions, images), np.logaddexp(0, -1000 * ours).mean(), rtol=1e-3)


def test_a_wide_gaussian_includes_a_narrow_one_and_bad_pairs_are_refused():
    narrow = {"mean": np.zeros((2, 3), "float32"), "log_variance": np.full((2, 3), -2.0, "float32")}
    wide = {"mean": np.zeros((2, 3), "float32"), "log_variance": np.zeros((2, 3), "float32")}
    term = losses.Inclusion(scale=1.0)
    assert float(term(narrow, wide)) < float(term(wide, narrow))
    with pytest.raises(ValueError, match="must be pairs of one shape"):
        losses.inclusion(narrow, {key: value[:1] for key, value in wide.items()})
    with pytest.raises(ValueError, match="`scale` must be above 0"):
        losses.Inclusion(scale=0.0)


@pytest.mark.parametrize("log_variance", [-20.0, -44.0, -60.0, -88.0, 44.0, 80.0])
@pytest.mark.parametrize("distance", [0.0, 1e-3, 1.0])
def test_gradients_are_finite_at_every_variance(log_variance, distance):
    mean, log = tf.Variable([[distance] * 4]), tf.Variable([[log_variance] * 4])
    with tf.GradientTape() as tape:
        inner = {"mean": mean, "log_variance": log}
        outer = {"mean": tf.zeros_like(mean), "log_variance": log + 0.5}
        value = tf.reduce_sum(losses.inclusion(inner, outer))
    for gradient in tape.gradient(value, [mean, log]):
        assert np.isfinite(gradient).all()


def test_it_is_the_diagonal_of_the_expected_likelihood():
    matrix = np.asarray(similarities.log_expected_likelihood(INNER, OUTER))
    close(losses.mutual_likelihood(INNER, OUTER), np.diag(matrix) / 3, rtol=1e-5)
    close(losses.MutualLikelihood()(INNER, OUTER), -np.diag(matrix).mean() / 3, rtol=1e-5)


def test_it_is_greatest_where_variances_add_up_to_squared_distances():
    squared = (INNER["mean"] - OUTER["mean"]) ** 2
    halves = np.log(squared / 2)

    def with_variance(factor):
        sides = [
            {"mean": side["mean"], "log_variance": halves + np.float32(np.log(factor))}
            for side in (INNER, OUTER)
        ]
        return float(losses.MutualLikelihood()(*sides))

    best = with_variance(1.0)
    assert best < with_variance(0.9)
    assert best < with_variance(1.1)


def test_pairs_have_to_be_pairs():
    with pytest.raises(ValueError, match="pairs of one shape"):
        losses.MutualLikelihood()(INNER, {name: rows[:3] for name, rows in OUTER.items()})
    with pytest.raises(ValueError, match="Gaussian"):
        losses.MutualLikelihood()({"mean": INNER["mean"]}, OUTER)


IMAGES, CAPTIONS = random_gaussians(RNG, 4, 5), random_gaussians(RNG, 6, 5)
MATCHES = np.zeros((4, 6), "float32")
MATCHES[[0, 0, 1, 2, 3, 3], np.arange(6)] = 1


def log_counts(means, others, is_own, temperature):
    unit = [side / np.linalg.norm(side, axis=1)[:, None] for side in (means, others)]
    counts = np.exp(unit[0] @ unit[1].T / temperature)
    return np.log(np.where(is_own, 0, counts).sum(axis=1))


def counted(temperature=0.08):
    means, alike = CAPTIONS["mean"], MATCHES.T @ MATCHES > 0
    return (
        log_counts(IMAGES["mean"], means, MATCHES > 0, temperature),
        log_counts(means, means, alike, temperature),
    )


@pytest.mark.parametrize("temperature", [0.08, 0.5])
def test_it_is_the_squared_error_of_log_counts(temperature):
    expected = 0.0
    for side, counts in zip((IMAGES, CAPTIONS), counted(temperature), strict=True):
        error = np.log(np.exp(side["log_variance"]).sum(axis=1)) - 0.3 * counts
        expected += np.mean((error - error.mean()) ** 2)
    term = losses.Ambiguity(temperature=temperature, slope=0.3)
    close(term(IMAGES, CAPTIONS, matches=MATCHES), expected, rtol=1e-4)
    soft = 0.4 * MATCHES
    close(term(IMAGES, CAPTIONS, matches=soft), expected, rtol=1e-4)


def test_it_is_zero_where_the_variance_is_a_power_of_the_count_at_any_level():
    sides = [
        {**side, "log_variance": (level + 0.1 * counts[:, None] + np.zeros(5)).astype("float32")}
        for side, counts, level in zip((IMAGES, CAPTIONS), counted(), (-3.0, 2.0), strict=True)
    ]
    close(losses.Ambiguity()(*sides, matches=MATCHES), 0, atol=1e-9)


def test_items_that_match_everything_are_left_out():
    """A batch of one pair, or of one class, says nothing, and gives finite gradients."""
    term = losses.Ambiguity()
    one = [{name: rows[:1] for name, rows in side.items()} for side in (IMAGES, CAPTIONS)]
    value, gradients = value_and_gradients(term_of(term, np.ones((1, 1), "float32")), *one)
    assert float(value) == 0
    assert all(np.isfinite(g).all() for g in keras.tree.flatten(gradients) if g is not None)
    matches = MATCHES.copy()
    matches[0] = 1  # the first image: all captions now are of one photo, and say nothing
    rest = [{name: rows[1:] for name, rows in side.items()} for side in (IMAGES, CAPTIONS)]
    images = log_counts(rest[0]["mean"], CAPTIONS["mean"], MATCHES[1:] > 0, 0.08)
    error = np.log(np.exp(rest[0]["log_variance"]).sum(axis=1)) - 0.1 * images
    close(term(IMAGES, CAPTIONS, matches=matches), np.var(error), rtol=1e-4)


def test_the_means_learn_nothing_by_it_and_it_compiles():
    term = term_of(losses.Ambiguity(), MATCHES)
    value, gradients = value_and_gradients(term, IMAGES, CAPTIONS)
    for side in gradients:
        assert side["mean"] is None or not np.any(side["mean"])
        assert np.abs(side["log_variance"]).max() > 0
    compiled = value_and_gradients(tf.function(term, jit_compile=True), IMAGES, CAPTIONS)
    close(compiled[0], value, rtol=1e-4)


def term_of(term, matches):
    return lambda images, captions: term(images, captions, matches=matches)


def test_pfe_learns_which_items_are_ambiguous():
    """Three quarters of the pairs lie close together, the others alone.

    Every pair is equally far from its partner: the likelihood has nothing to tell them apart by.
    """
    dim, count = 8, 1200
    rng = np.random.default_rng(0)
    is_common = np.arange(count) % 4 > 0
    truth = np.where(is_common[:, None], np.eye(dim)[0], 0.0)
    truth = truth + np.where(is_common[:, None], 0.15, 1.0) * rng.normal(size=(count, dim))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    sides = [truth + 0.05 * rng.normal(size=truth.shape) for _ in range(2)]
    names = ("images", "captions")
    rows = {name: side.astype("float32") for name, side in zip(names, sides, strict=True)}
    rows |= {name: np.arange(count) for name in ("image_labels", "caption_labels")}
    model = models.pfe(models.vector_points(dim), ambiguity_weight=100.0)
    model.compile(keras.optimizers.Adam(1e-2))
    data = tf.data.Dataset.from_tensor_slices(rows).batch(200)
    model.fit(data, epochs=10, verbose=0)
    for name, encoder in zip(names, (model.image_encoder, model.caption_encoder), strict=True):
        spread = np.exp(encoder(rows[name])["log_variance"]).sum(axis=1)
        assert np.median(spread[is_common]) > 1.15 * np.median(spread[~is_common])


REGIONS = RNG.normal(size=(3, 4, 5)).astype("float32")
IDS = np.array([[4, 2, 6, 0, 0], [3, 0, 0, 0, 0], [2, 5, 3, 4, 1], [6, 6, 0, 0, 0]], "int32")
OWNER = np.array([0, 1, 1, 2])
OWN = (np.arange(3)[:, None] == OWNER).astype("float32")


@pytest.fixture(scope="module")
def term():
    random.seed(0)
    return losses.Captioning(7, 5, word_dim=4, hidden_dim=6)


def value(term, regions=REGIONS, ids=IDS, matches=OWN):
    images = {"mean": regions[:, 0], "regions": regions}
    captions = {"mean": np.zeros((len(ids), 5), "float32")}
    return float(term(images, captions, ids=ids, matches=matches))


def test_a_decoder_that_knows_nothing_pays_log_vocabulary_a_word_and_for_the_end(term):
    weights = term.predict.get_weights()
    term.predict.set_weights([np.zeros_like(weight) for weight in weights])
    # 3, 1 and 2 words and an end each; five words fill the row, and there is no end.
    np.testing.assert_allclose(value(term), np.log(7) * (4 + 2 + 5 + 3) / 4, rtol=1e-5)
    term.predict.set_weights(weights)


def test_the_mean_over_captions_by_one_at_a_time(term):
    alone = [
        value(term, REGIONS[[image]], IDS[[caption]], np.ones((1, 1), "float32"))
        for caption, image in enumerate(OWNER)
    ]
    np.testing.assert_allclose(value(term), np.mean(alone), rtol=1e-5)


def test_by_the_chain_rule_of_the_words(term):
    """A caption cut short, as one that fills its row, costs what its words cost in the whole."""
    one = np.ones((1, 1), "float32")
    costs = [value(term, REGIONS[:1], IDS[2:3, :length], one) for length in range(1, 6)]
    assert (np.diff([0, *costs]) > 0).all()
    other = IDS[2:3].copy()
    other[0, 3:] = 6
    # What comes later changes nothing before it.
    np.testing.assert_allclose(value(term, REGIONS[:1], other[:, :3], one), costs[2], rtol=1e-6)
    logits = [np.asarray(term.next_words(REGIONS[:1], ids)) for ids in (IDS[2:3], other)]
    np.testing.assert_allclose(logits[0][:, :3], logits[1][:, :3], atol=1e-6)
    assert np.abs(logits[0] - logits[1]).max() > 1e-4


def test_captions_without_an_image_are_left_out(term):
    matches = OWN.copy()
    matches[:, 3] = 0
    expected = value(term, ids=IDS[:3], matches=OWN[:, :3])
    np.testing.assert_allclose(value(term, matches=matches), expected, rtol=1e-5)
    assert value(term, matches=np.zeros_like(OWN)) == 0


def test_padding_changes_nothing(term):
    padded = np.pad(REGIONS, ((0, 0), (0, 2), (0, 0)))
    np.testing.assert_allclose(value(term, padded), value(term), rtol=1e-5)
    ids = np.pad(IDS[[0, 1, 3]], ((0, 0), (0, 3)))
    matches = OWN[:, [0, 1, 3]]
    expected = value(term, ids=IDS[[0, 1, 3]], matches=matches)
    np.testing.assert_allclose(value(term, ids=ids, matches=matches), expected, rtol=1e-5)


def test_it_learns_and_is_restored(term):
    config = keras.saving.serialize_keras_object(term)
    again = keras.saving.deserialize_keras_object(config)
    again.set_weights(term.get_weights())
    assert value(again) == value(term)
    assert again.get_config() == term.get_config()
    assert len(term.trainable_weights) == 11
