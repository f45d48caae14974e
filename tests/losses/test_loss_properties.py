import keras
import numpy as np
import pytest

import loss_loops as loops
from gradients import value_and_gradients
from loss_cases import ALL, every_loss

RNG = np.random.default_rng(11)


@every_loss
def test_config_and_saving(loss):
    config = keras.saving.serialize_keras_object(loss)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    problem = loops.random_problem(RNG)
    assert float(again(*problem)) == float(loss(*problem))


@every_loss
def test_gradient_is_that_of_finite_differences(loss):
    matches, logits = loops.random_problem(np.random.default_rng(2), 3, 4)
    _, (_, gradient) = value_and_gradients(loss, matches, logits)
    step = 1e-2
    for index in np.ndindex(logits.shape):
        moved = np.zeros_like(logits)
        moved[index] = step
        change = float(loss(matches, logits + moved)) - float(loss(matches, logits - moved))
        np.testing.assert_allclose(gradient[index], change / (2 * step), rtol=5e-2, atol=5e-3)


@every_loss
def test_nothing_is_scaled_by_replicas(loss, monkeypatch):
    """Keras' own losses divide by the replicas; a whole-batch scalar is scaled by its caller."""
    matches, logits = loops.random_problem(RNG)
    alone = loss(matches, logits), keras.losses.MeanSquaredError()(matches, logits)
    monkeypatch.setattr("keras.src.losses.loss.scale_loss_for_distribution", lambda x: x / 2)
    assert loss(matches, logits) == alone[0]
    assert keras.losses.MeanSquaredError()(matches, logits) == alone[1] / 2


def ranks_rows(name):
    return name.startswith(("triplet", "info_nce", "smooth_ap"))


@pytest.mark.parametrize("name", [name for name in ALL if ranks_rows(name)])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_alike_cost_nothing_or_little(name, label):
    matches, logits = np.full((3, 4), label, "float32"), loops.random_problem(RNG, 3, 4)[1]
    value, (_, gradient) = value_and_gradients(ALL[name], matches, logits)
    assert np.isfinite(gradient).all()
    if label == 0.0 or name.startswith("triplet"):
        assert value == 0.0
        assert not gradient.any()
    if name == "smooth_ap":
        np.testing.assert_allclose(value, 0.0, atol=1e-6)


def test_semantic_similarity_is_a_constant():
    semantics, logits = RNG.normal(size=(2, 4, 5)).astype("float32")
    _, (of_semantics, of_logits) = value_and_gradients(ALL["semantic_precision"], semantics, logits)
    assert of_semantics is None
    assert np.abs(of_logits).max() > 0


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        (np.eye(3, 4), r"`matches` and `logits` must have one shape.*\(3, 4\) and \(3, 3\)"),
        (np.full((3, 3), np.nan), "`matches` must be finite; received 9 NaN"),
        (2 * np.eye(3), r"`matches` must lie in \[0, 1\]; received values from 0.0 to 2.0"),
    ],
)
def test_bad_matches_are_refused(matches, message):
    for name, loss in ALL.items():
        if name != "semantic_precision":
            with pytest.raises(ValueError, match=message):
                loss(matches.astype("float32"), np.zeros((3, 3), "float32"))
