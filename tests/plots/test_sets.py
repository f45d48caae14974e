import numpy as np
import pytest

from zoo import evaluation, metrics, plots, similarities
from zoo.evaluation.sets import attention_divergence, element_usage

RNG = np.random.default_rng(0)


def units(*shape):
    values = RNG.normal(size=shape).astype("float32")
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def test_attention_divergence_is_zero_for_one_look_and_one_for_disjoint_looks():
    alike = np.broadcast_to(np.array([0.5, 0.3, 0.2]), (4, 2, 3))
    disjoint = np.array([[[0.5, 0.5, 0, 0], [0, 0, 1, 0]]])
    assert attention_divergence(alike) == pytest.approx(0.0, abs=1e-9)
    assert attention_divergence(disjoint) == pytest.approx(1.0)
    # A caption of one word cannot be looked at in two ways, so it does not count.
    short = np.concatenate([disjoint, [[[1, 0, 0, 0]] * 2]])
    mask = np.array([[True] * 4, [True, False, False, False]])
    assert attention_divergence(short, mask) == pytest.approx(1.0)
    assert np.isnan(attention_divergence(short[1:], mask[1:]))


def test_usage_counts_the_nearest_element_of_each_match():
    elements = np.array([[[1.0, 0], [0, 1]], [[1, 0], [0, 1]]])
    others = np.array([[[1.0, 0]], [[0.6, 0.8]], [[0.8, 0.6]], [[1, 0]]])
    usage = element_usage(elements, others, np.array([0, 1]), np.array([0, 0, 1, 1]))
    assert usage == [0.75, 0.25]


def sets(count, per=2):
    def side(items, positions):
        attention = RNG.dirichlet(np.ones(positions), (items, per))
        return {"elements": units(items, per, 8), "attention": attention}

    return {
        "images": side(count, 6),
        "captions": side(2 * count, 5),
        "labels": (np.arange(count), np.repeat(np.arange(count), 2)),
    }


def test_measures_of_sets_and_of_sets_of_one():
    split = sets(12)
    measures = evaluation.measure_sets(split, similarities.SmoothChamfer())
    for side in ("images", "captions"):
        elements, found = split[side]["elements"], measures[side]
        spread = 1 - np.linalg.norm(elements.mean(1), axis=-1)
        assert found["log_circular_variance"] == pytest.approx(np.log(spread.mean()), abs=1e-4)
        assert 0 < found["attention_divergence"] < 1
        assert sum(found["usage"]) == pytest.approx(1)
        assert len(found["element_rsum"]) == 2
        assert found["others_rsum"] == pytest.approx(found["element_rsum"][::-1])
    # One element of each image, as the only one, is what a set of one is.
    alone = {**split, "images": {k: v[:, :1] for k, v in split["images"].items()}}
    of_one = evaluation.measure_sets(alone, similarities.SmoothChamfer())["images"]
    assert of_one["log_circular_variance"] is of_one["attention_divergence"] is None
    assert of_one["usage"] == [1.0]


def test_an_element_is_left_out_by_itself():
    """DivE, table 5: RSUM of elements 1 and 3 of an image, as if it had only these."""
    split = sets(12, per=3)
    found = evaluation.measure_sets(split, similarities.SmoothChamfer())["images"]
    images = {"elements": split["images"]["elements"][:, [0, 2]]}
    pairs = np.asarray(
        similarities.SmoothChamfer()(images, {"elements": split["captions"]["elements"]})
    )
    truth = np.equal.outer(*split["labels"])
    expected = metrics.evaluate_retrieval(pairs, truth)["rsum"]
    assert found["others_rsum"][1] == pytest.approx(expected)
    assert len(found["others_rsum"]) == 3


def test_overlay_is_pale_and_grey_where_nobody_looks():
    image = np.full((8, 8, 3), (200, 20, 20), np.uint8)
    attention = np.zeros((2, 2))
    attention[0, 0] = 0.7
    shown = plots.overlay(image, attention)
    np.testing.assert_array_equal(shown[0, 0], [200, 20, 20])
    np.testing.assert_array_equal(shown[-1, -1], [216, 216, 216])


def test_the_attention_sheet_draws_every_element(tmp_path):
    attention = RNG.dirichlet(np.ones(4), (2, 3)).reshape(2, 3, 2, 2)
    images = RNG.integers(0, 256, (2, 16, 16, 3))
    figure = plots.attention_sheet(images, attention, [["a bird"] * 3] * 2, np.zeros((2, 3)))
    assert len(figure.axes) == 8
    plots.save(figure, tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size > 1000
