"""The terms that read embeddings: configs, kinds of embeddings, edges, XLA."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gradients import value_and_gradients
from loss_loops import ALL
from oracles import random_gaussians, random_sets
from zoo import losses, similarities
from zoo.losses.base import Auxiliary, MatrixLoss

RNG = np.random.default_rng(17)
GAUSSIANS = random_gaussians(RNG, 4, 6), random_gaussians(RNG, 7, 6)
SETS = random_sets(RNG, 4, 3, 6), random_sets(RNG, 7, 2, 6, masked=True)
PAIRS = random_gaussians(RNG, 4, 6), random_gaussians(RNG, 4, 6)
TERMS = {
    "kl": (losses.KLRegularizer(), GAUSSIANS),
    "kl_sum": (losses.KLRegularizer(weight=1e-3, reduction="sum", name="vib"), GAUSSIANS),
    "kl_per_dimension": (losses.KLRegularizer(reduction="mean_per_dimension"), GAUSSIANS),
    "uniformity": (losses.Uniformity(), GAUSSIANS),
    "uniformity_samples": (losses.Uniformity(num_samples=3, seed=1), GAUSSIANS),
    "discrepancy": (losses.MaximumMeanDiscrepancy(), GAUSSIANS),
    "discrepancy_of_sets": (losses.MaximumMeanDiscrepancy(gamma=0.1, squared=False), SETS),
    "discrepancy_squared": (losses.MaximumMeanDiscrepancy(gamma=0.1), SETS),
    "diversity": (losses.Diversity(weight=0.1), SETS),
    "orthogonal_diversity": (losses.OrthogonalDiversity(), SETS),
    "mutual_likelihood": (losses.MutualLikelihood(), PAIRS),
    "inclusion": (losses.Inclusion(scale=1.0), PAIRS),
}
every_term = pytest.mark.parametrize(("term", "inputs"), TERMS.values(), ids=TERMS)


def test_no_loss_is_left_out():
    public = {c for c in vars(losses).values() if isinstance(c, type)}
    tested = {type(loss) for loss in ALL.values()} | {type(term) for term, _ in TERMS.values()}
    # `tests/training/test_execution.py`, and what reads matches: `test_inclusion.py`.
    elsewhere = {losses.Captioning, losses.AuxiliaryRanking, losses.Ambiguity}
    bases = {MatrixLoss, Auxiliary}
    assert {c for c in public if issubclass(c, tuple(bases))} - bases == tested | elsewhere


@every_term
def test_config_weight_and_name(term, inputs):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(term))
    assert again.get_config() == term.get_config()
    assert (again.name, again.weight) == (term.name, term.weight)
    value = again(*inputs)
    assert value.shape == ()
    assert value.dtype == "float32"


@every_term
def test_graph_and_xla_agree_with_eager(term, inputs):
    config = term.get_config()

    def step(term, images, captions):
        watched = [t for side in (images, captions) for k, t in side.items() if k != "mask"]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            value = term(images, captions)
        return value, tape.gradient(value, watched, unconnected_gradients="zero")

    inputs = tf.nest.map_structure(tf.constant, inputs)
    draws = getattr(term, "num_samples", None) is not None
    function = tf.function(step, jit_compile=not draws)
    if draws:  # XLA has random numbers of its own
        lowered = tf.function(step, jit_compile=True)
        copy = type(term).from_config(config)
        assert "HloModule" in lowered.experimental_get_compiler_ir(copy, *inputs)(stage="hlo")
    received, expected = (
        tf.nest.flatten(one(type(term).from_config(config), *inputs)) for one in (function, step)
    )
    for found, wanted in zip(received, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_reductions_of_the_kl():
    value = {
        reduction: losses.KLRegularizer(reduction=reduction)(*GAUSSIANS)
        for reduction in ("sum", "mean", "mean_per_dimension")
    }
    each = [losses.kl_to_standard_normal(side) for side in GAUSSIANS]
    np.testing.assert_allclose(value["sum"], np.sum(each[0]) + np.sum(each[1]), rtol=1e-6)
    np.testing.assert_allclose(value["mean"], np.mean(each[0]) + np.mean(each[1]), rtol=1e-6)
    np.testing.assert_allclose(value["mean_per_dimension"], value["mean"] / 6, rtol=1e-6)


def test_uniformity_reads_all_points_of_both_modalities():
    points = np.concatenate([side["mean"] for side in GAUSSIANS])
    value = losses.Uniformity()(*GAUSSIANS)
    np.testing.assert_allclose(value, losses.uniformity(points), rtol=1e-6)
    sure = [{**side, "log_variance": np.full_like(side["mean"], -60.0)} for side in GAUSSIANS]
    repeated = losses.uniformity(np.repeat(points, 3, axis=0))
    sampled = losses.Uniformity(num_samples=3)(*sure)
    np.testing.assert_allclose(sampled, repeated, rtol=1e-4)


def test_uniformity_draws_anew_and_its_state_is_saved():
    term = losses.Uniformity(num_samples=2, seed=5)
    first, second = float(term(*GAUSSIANS)), float(term(*GAUSSIANS))
    assert first != second
    again = losses.Uniformity(num_samples=2, seed=5)
    assert float(again(*GAUSSIANS)) == first
    resumed = losses.Uniformity(num_samples=2, seed=99)
    resumed.seed_generator.state.assign(again.seed_generator.state)
    assert float(resumed(*GAUSSIANS)) == second


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e4])
def test_uniformity_is_finite(count, spread):
    points = (spread * RNG.normal(size=(count, 8))).astype("float32")
    value, (gradient,) = value_and_gradients(losses.uniformity, points)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    if count == 1 or spread == 0.0:
        assert value == 0.0
        assert not gradient.any()


@pytest.mark.parametrize("log_variance", [-30.0, 30.0])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_kl_is_finite(mean, log_variance):
    embedding = {
        "mean": np.full((2, 1024), mean, "float32"),
        "log_variance": np.full((2, 1024), log_variance, "float32"),
    }
    value, (gradients,) = value_and_gradients(losses.kl_to_standard_normal, embedding)
    assert (value > 0).all()
    assert all(np.isfinite(g).all() for g in (value, *gradients.values()))


@pytest.mark.parametrize("squared", [True, False])
def test_discrepancy_of_identical_points(squared):
    points = RNG.normal(size=(5, 16)).astype("float32")
    for x, y in ((points, points), (points[:1], points[:1]), (0 * points, 0 * points)):
        value, gradients = value_and_gradients(
            lambda *sides: losses.maximum_mean_discrepancy(*sides, squared=squared), x, y
        )
        assert abs(value) < 2e-4
        assert all(np.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("count", [1, 3])
def test_diversity_of_equal_zero_and_single_slots(count):
    for slots in (np.ones((2, count, 5), "float32"), np.zeros((2, count, 5), "float32")):
        value, (gradient,) = value_and_gradients(losses.diversity, slots)
        assert np.isfinite(gradient).all()
        if count == 1:
            assert value == 0.0
    np.testing.assert_allclose(losses.diversity(np.ones((2, 3, 5), "float32")), 1.0, rtol=1e-5)
    opposite = np.array([[[1.0, 0.0], [-1.0, 0.0]]], "float32")
    np.testing.assert_allclose(losses.diversity(opposite), np.exp(-8.0), rtol=1e-5)


def test_diversity_prefers_the_slots_of_an_embedding():
    slots = [RNG.normal(size=side["elements"].shape).astype("float32") for side in SETS]
    with_slots = [{**side, "slots": s} for side, s in zip(SETS, slots, strict=True)]
    value = losses.Diversity()(*with_slots)
    mask = SETS[1]["mask"]
    expected = losses.diversity(slots[0]) + losses.diversity({"elements": slots[1], "mask": mask})
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert float(value) != float(losses.Diversity()(*SETS))


def test_gram_diversity_of_orthogonal_opposite_and_masked_slots():
    orthogonal = np.eye(3, dtype="float32")[None]
    np.testing.assert_allclose(losses.orthogonal_diversity(orthogonal), 0.0, atol=1e-6)
    alike = np.ones((2, 3, 5), "float32")
    np.testing.assert_allclose(losses.orthogonal_diversity(alike), np.sqrt(6) / 9, rtol=1e-5)
    slots = {"elements": alike, "mask": np.array([[True, True, False]] * 2)}
    np.testing.assert_allclose(losses.orthogonal_diversity(slots), np.sqrt(2) / 4, rtol=1e-5)
    value, (gradient,) = value_and_gradients(losses.orthogonal_diversity, alike[:, :1])
    np.testing.assert_allclose(value, 0.0, atol=1e-6)
    assert np.isfinite(gradient).all()


def test_discrepancy_by_blocks_equals_the_definition_with_its_gradient():
    """More points than one block holds, and as many elements of masked sets as do not fill one."""
    x, y = (0.2 * RNG.normal(size=(count, 3)) + shift for count, shift in ((900, 5.0), (1100, 5.1)))
    mask = RNG.random((900, 1)) < 0.7
    sets = {"elements": x[:, None].astype("float32"), "mask": mask}

    def definition(x, y):
        points, weights = (
            np.concatenate([x, y]),
            np.concatenate([mask[:, 0] / mask.sum(), -np.ones(1100) / 1100]),
        )
        apart = points[:, None] - points[None]
        kernel = np.exp(-0.5 * (apart**2).sum(-1))
        weighted = weights[:, None] * weights * kernel
        return weighted.sum(), -2 * np.einsum("ij,ijd->id", weighted, apart)

    expected, slope = definition(x, y)
    value, gradients = value_and_gradients(
        lambda e, c: losses.maximum_mean_discrepancy({**sets, "elements": e}, c, 0.5),
        sets["elements"],
        y.astype("float32"),
    )
    np.testing.assert_allclose(value, expected, atol=1e-6)
    np.testing.assert_allclose(gradients[0][:, 0], slope[:900], atol=1e-7)
    np.testing.assert_allclose(gradients[1], slope[900:], atol=1e-7)


def test_where_the_matching_loss_and_the_bottleneck_hold_a_variance():
    """dL/d log σ² = a σ² Σ(m − p) / N² − β (1 − σ²) / 2N: with p ≥ 0, Σσ² is at least βND / 2a."""
    count, dim, scale, shift, weight = 5, 6, 3.0, 2.0, 1e-2
    images, captions = (random_gaussians(RNG, count, dim) for _ in range(2))
    distance = similarities.ClosedFormSampledDistance(scale, shift)
    matching, bottleneck = losses.MatchingCrossentropy(), losses.KLRegularizer(weight)
    log_variance = tf.Variable(images["log_variance"])
    with tf.GradientTape() as tape:
        uncertain = {**images, "log_variance": log_variance}
        logits = distance(uncertain, captions)
        loss = matching(np.eye(count), logits) + weight * bottleneck(uncertain, captions)
    probability = 1 / (1 + np.exp(-np.array(logits, "float64")))
    missing = (np.eye(count) - probability).sum(1, keepdims=True)
    variance = np.exp(images["log_variance"])
    expected = scale * variance * missing / count**2 - weight * (1 - variance) / (2 * count)
    np.testing.assert_allclose(tape.gradient(loss, log_variance), expected, atol=1e-6)


@pytest.mark.parametrize(("length", "rtol"), [(1.0, 1e-4), (100.0, 1e-3), (1000.0, 0.1)])
def test_discrepancy_of_long_points(length, rtol):
    """‖x − y‖² by a product loses what two long points share: a kernel is never above one."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(8, 512)) for _ in range(2))
    x, y = (length * one / np.linalg.norm(one, axis=1, keepdims=True) for one in (x, y))

    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1)).mean()

    expected = kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)
    found = losses.maximum_mean_discrepancy(x.astype("f4"), y.astype("f4"))
    np.testing.assert_allclose(found, expected, rtol=rtol)
