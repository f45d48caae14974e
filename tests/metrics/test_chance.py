import numpy as np
import pytest

from zoo import metrics


def test_chance_is_the_mean_over_random_rankings():
    rng = np.random.default_rng(0)
    relevance = rng.random((12, 40)) < 0.15
    relevance[3] = False  # a query without positives counts on neither side
    runs = [
        metrics.evaluate_retrieval(rng.random(relevance.shape), relevance, ks=(1, 3))
        for _ in range(1000)
    ]
    expected = metrics.chance(relevance, ks=(1, 3))
    for key, value in expected.items():
        values = np.array([run[key] for run in runs])
        assert abs(values.mean() - value) < 5 * values.std() / np.sqrt(len(values)), key


def test_more_items_than_the_gallery_has_are_always_enough():
    assert metrics.chance(np.eye(3, dtype=bool), ks=(10,))["i2t_recall@10"] == pytest.approx(100)


def test_labels_and_a_matrix_agree():
    labels, captions = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2, 2, 2])
    matrix = metrics.chance(labels[:, None] == captions[None])
    assert metrics.chance(metrics.LabelRelevance(labels, captions)) == pytest.approx(matrix)


def test_no_positive_at_all_is_said():
    with pytest.raises(ValueError, match="no positive"):
        metrics.chance(np.zeros((2, 3), bool))
