"""Recall by uncertainty, risk–coverage and Spearman's correlation."""

import numpy as np
import pytest
from scipy import stats

from zoo.metrics import recall_by_uncertainty, risk_coverage, spearman, spearman_of_bins


def problem(queries=103, seed=0):
    rng = np.random.default_rng(seed)
    uncertainty = rng.permutation(queries).astype(float)
    relevance = np.zeros((queries, 2), bool)
    relevance[:, 0] = True
    similarity = np.where(uncertainty[:, None] < queries / 2, [[1.0, 0.0]], [[0.0, 1.0]])
    return similarity, relevance, uncertainty


def test_bins_are_quantiles_from_certain_to_uncertain():
    similarity, relevance, uncertainty = problem()
    bins = recall_by_uncertainty(similarity, relevance, uncertainty, bins=10)
    assert bins["count"].sum() == 103
    assert set(bins["count"]) == {10, 11}
    assert (np.diff(bins["uncertainty"]) > 0).all()
    np.testing.assert_array_equal(bins["recall"][[0, 1, 2, 3, 6, 7, 8, 9]], [1] * 4 + [0] * 4)
    overall = np.sum(bins["recall"] * bins["count"]) / 103
    assert overall == pytest.approx(np.mean(uncertainty < 51.5))


def test_ties_share_a_bin_whatever_the_order():
    similarity, relevance, uncertainty = problem()
    uncertainty = np.floor(uncertainty / 20)
    expected = recall_by_uncertainty(similarity, relevance, uncertainty, bins=4)
    order = np.random.default_rng(1).permutation(103)
    shuffled = recall_by_uncertainty(
        similarity[order], relevance[order], uncertainty[order], bins=4
    )
    for key, value in expected.items():
        np.testing.assert_allclose(shuffled[key], value)
    constant = recall_by_uncertainty(similarity, relevance, np.ones(103), bins=4)
    assert sorted(constant["count"]) == [0, 0, 0, 103]
    assert np.isnan(constant["recall"]).sum() == 3
    assert np.isnan(spearman_of_bins(constant["recall"]))  # one bin has no order


def test_queries_without_positives_are_left_out():
    similarity, relevance, uncertainty = problem()
    left = np.random.default_rng(2).permutation(103)[:3]
    kept = np.setdiff1d(np.arange(103), left)
    expected = recall_by_uncertainty(similarity[kept], relevance[kept], uncertainty[kept])
    relevance[left] = False
    found = recall_by_uncertainty(similarity, relevance, uncertainty)
    assert found["count"].sum() == 100
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value)


def test_risk_coverage_against_loops():
    rng = np.random.default_rng(0)
    uncertainty, error = rng.normal(size=50), rng.random(50)
    curve = risk_coverage(uncertainty, error)
    order = np.argsort(uncertainty)
    expected = [error[order[: i + 1]].mean() for i in range(50)]
    np.testing.assert_allclose(curve["risk"], expected)
    np.testing.assert_allclose(curve["coverage"], np.arange(1, 51) / 50)
    assert curve["aurc"] == pytest.approx(np.mean(expected))
    assert curve["oracle_aurc"] < curve["aurc"]
    assert curve["risk"][-1] == pytest.approx(curve["random_aurc"])


def test_aurc_lies_between_oracle_and_its_mirror():
    error = np.array([0.0, 0.0, 1.0, 1.0])
    assert risk_coverage(error, error)["aurc"] == risk_coverage(error, error)["oracle_aurc"]
    assert risk_coverage(-error, error)["aurc"] > risk_coverage(error, error)["random_aurc"]


def test_tied_uncertainty_is_the_expectation_over_orders():
    error = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    uncertainty = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    rng = np.random.default_rng(0)
    curves = [risk_coverage(uncertainty + 1e-6 * rng.random(5), error)["risk"] for _ in range(4000)]
    np.testing.assert_allclose(
        risk_coverage(uncertainty, error)["risk"], np.mean(curves, axis=0), atol=0.02
    )
    constant = risk_coverage(np.zeros(5), error)
    assert constant["aurc"] == pytest.approx(constant["random_aurc"])


def test_spearman_equals_scipy():
    rng = np.random.default_rng(0)
    first = np.round(rng.normal(size=200), 1)
    second = np.round(first + rng.normal(size=200), 1)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert spearman(first, np.exp(first)) == pytest.approx(1)
    assert np.isnan(spearman(first, np.ones(200)))
    recall = np.where(np.arange(200) % 3, first, np.nan)
    there = np.isfinite(recall)
    expected = stats.spearmanr(np.flatnonzero(there), recall[there]).statistic
    assert spearman_of_bins(recall) == pytest.approx(expected)
