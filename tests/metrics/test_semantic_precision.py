"""ASP: against SciPy, under symmetries, for models whose figure is known, and its tie rule."""

import numpy as np
import pytest
from scipy.stats import rankdata

from studies.daa_figures import pairs_above, semantic_precision_at
from zoo.metrics import average_semantic_precision, blocks
from zoo.metrics.semantic_precision import average_ranks


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(12, 40)).astype(np.float32)
    semantic = np.maximum(rng.normal(size=(12, 40)), 0).astype(np.float32)  # half of it zeros
    return similarity, semantic


def asp_by_scipy(similarity, semantic):
    total = []
    for ours, theirs in zip(similarity, semantic, strict=True):
        ranks = rankdata(-ours), rankdata(-theirs)
        total.append((np.minimum(*ranks) / np.maximum(*ranks)).mean())
    return np.mean(total)


def test_asp_equals_scipy(scores):
    similarity, semantic = scores
    results = average_semantic_precision(similarity, semantic)
    assert results["i2t"] == pytest.approx(asp_by_scipy(similarity, semantic))
    assert results["t2i"] == pytest.approx(asp_by_scipy(similarity.T, semantic.T))


@pytest.mark.parametrize("values", [[1.0], [2, 2, 2], [3, 1, 3, 2, 1, 1], list(range(50))])
def test_average_ranks_equal_scipy(values):
    np.testing.assert_array_equal(
        average_ranks(np.array(values, float)), rankdata(-np.array(values))
    )


@pytest.mark.parametrize("block_bytes", [1, 5 * 4 * 40])
def test_asp_blocks_monotone_maps_and_permutations(scores, block_bytes, monkeypatch):
    similarity, semantic = scores
    similarity = np.round(similarity, 1)
    expected = pytest.approx(average_semantic_precision(similarity, semantic), rel=1e-12)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    assert average_semantic_precision(similarity, semantic) == expected
    assert average_semantic_precision(np.exp(similarity), 5 * semantic - 3) == expected
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(12), rng.permutation(40)
    shuffled = [x[rows][:, columns] for x in (similarity, semantic)]
    assert average_semantic_precision(*shuffled) == expected


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_asp_tie_rule_moves_the_figure_no_further_than_documented(share):
    rng = np.random.default_rng(0)
    semantic = rng.random((20, 400))
    semantic[semantic < share] = 0  # on average this share ties, at the end
    worst = np.mean((semantic == 0).mean(axis=1) ** 2 / (2 - (semantic == 0).mean(axis=1)))
    similarity = semantic + rng.random((20, 400))
    tied = average_semantic_precision(similarity, semantic)["i2t"]
    for direction in (1, -1):  # ties in the model's own order, and against it
        broken = semantic + 1e-9 * direction * similarity
        moved = abs(average_semantic_precision(similarity, broken)["i2t"] - tied)
        assert 0 < moved <= worst


def test_asp_of_the_nearest_items(scores, monkeypatch):
    similarity, semantic = scores
    whole = average_semantic_precision(similarity, semantic)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * 4 * 40)
    found = semantic_precision_at(similarity, semantic, (3, 40, 100))
    assert found["i2t"][1:] == pytest.approx([whole["i2t"]] * 2)
    assert found["t2i"][1:] == pytest.approx([whole["t2i"]] * 2)
    nearest = np.argsort(-semantic, axis=1, kind="stable")[:, :3]
    parts = [np.take_along_axis(x, nearest, 1) for x in (similarity, semantic)]
    assert found["i2t"][0] == pytest.approx(asp_by_scipy(*parts))


def test_pairs_above_a_threshold_are_counted(scores, monkeypatch):
    _, semantic = scores
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * 4 * 40)
    thresholds = (-1.0, 0.0, 0.5, float(semantic.max()))
    expected = [int((semantic > np.float64(t)).sum()) for t in thresholds]
    assert pairs_above(semantic, thresholds) == expected
    assert expected[0] == semantic.size
    assert expected[-1] == 0
