"""Recall@K, R-Precision and mAP@R: against plain loops, under symmetries, and at the edges."""

import functools

import numpy as np
import pytest
from scipy import sparse

import retrieval_oracles as oracles
from zoo.metrics import (
    LabelRelevance,
    PairwiseSimilarity,
    blocks,
    evaluate_retrieval,
    mean_average_precision_at_r,
    r_precision,
    rank_queries,
    recall_at_k,
)
from zoo.similarities import ClosedFormSampledDistance

METRICS = [
    (lambda s, r: recall_at_k(s, r, 1), lambda s, r: oracles.recall_at_k(s, r, 1)),
    (lambda s, r: recall_at_k(s, r, 5), lambda s, r: oracles.recall_at_k(s, r, 5)),
    (r_precision, oracles.r_precision),
    (mean_average_precision_at_r, oracles.mean_average_precision_at_r),
]


def problem(seed=0, queries=40, gallery=150, density=0.05, ties=False):
    rng = np.random.default_rng(seed)
    similarity = rng.normal(size=(queries, gallery)).astype(np.float32)
    if ties:
        similarity = np.round(similarity * 2)
    relevance = rng.random((queries, gallery)) < density
    relevance[3] = False  # a query without a positive
    return similarity, relevance


@pytest.mark.parametrize(("metric", "oracle"), METRICS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("density", [0.01, 0.05, 0.6])
def test_equals_a_loop_over_full_rankings(metric, oracle, ties, density):
    similarity, relevance = problem(density=density, ties=ties)
    assert metric(similarity, relevance) == pytest.approx(oracle(similarity, relevance), abs=1e-12)


@pytest.mark.parametrize("block_bytes", [1, 7 * 4 * 150, 40 * 4 * 150])
def test_blocks_of_any_size_agree(block_bytes, monkeypatch):
    similarity, relevance = problem(density=0.3, ties=True)
    expected = evaluate_retrieval(similarity, relevance)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    assert evaluate_retrieval(similarity, relevance) == expected


def test_forms_of_relevance_agree():
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(30, 60))
    images, captions = rng.integers(8, size=30), rng.integers(8, size=60)
    matrix = images[:, None] == captions[None, :]
    expected = evaluate_retrieval(similarity, matrix)
    names = np.array(list("abcdefgh"))
    for relevance in (
        matrix.astype(np.float32),
        sparse.csr_matrix(matrix),
        sparse.coo_array(matrix.astype(int)),
        LabelRelevance(images, captions),
        LabelRelevance(names[images], names[captions]),
    ):
        assert evaluate_retrieval(similarity, relevance) == expected


def test_a_query_without_positives_is_left_out_and_counted():
    similarity, relevance = problem()
    results = evaluate_retrieval(similarity, relevance)
    assert results["i2t_queries_without_positive"] == (~relevance.any(axis=1)).sum() > 0
    assert results["i2t_queries"] + results["i2t_queries_without_positive"] == len(similarity)
    keep = relevance.any(axis=1)
    assert recall_at_k(similarity[keep], relevance[keep], 5) == recall_at_k(
        similarity, relevance, 5
    )
    with pytest.raises(ValueError, match="at least one query a positive"):
        r_precision(similarity, np.zeros_like(relevance))


def test_best_ranks_are_exact():
    ranks = rank_queries(np.array([[3.0, 2.0, 2.0, 1.0]]), np.array([[0, 1, 0, 1]]))
    assert ranks.best_rank == [3]  # the tied item that is no match goes first
    assert ranks.hits(2) == [False]
    assert ranks.hits(3) == [True]


@pytest.mark.parametrize(
    ("similarity", "relevance", "message"),
    [
        (np.zeros((2, 3)), np.ones((3, 2)), r"\(2, 3\); received \(3, 2\)"),
        (np.array([[0, 1], [np.nan, 2]]), np.eye(2), r"NaN.*\(1, 0\)"),
        (np.zeros((2, 2)), 0.5 * np.eye(2), "boolean"),
    ],
)
def test_wrong_input_is_named(similarity, relevance, message):
    with pytest.raises(ValueError, match=message):
        recall_at_k(similarity, relevance, 1)


# Small whole numbers: float32 products of them are exact, so block sizes cannot change a bit.
def embeddings(num, seed, dim=4):
    rng = np.random.default_rng(seed)
    return {
        "mean": rng.integers(-3, 4, (num, dim)).astype(np.float32),
        "log_variance": rng.integers(0, 2, (num, dim)).astype(np.float32),
    }


def negative_squared_distance(images, captions):
    images, captions = images["mean"], captions["mean"]
    return -((images[:, None] - captions[None]) ** 2).sum(-1)


@pytest.mark.parametrize("block_bytes", [1, 5 * 4 * 100, 2**20])
def test_embeddings_in_blocks_equal_the_matrix(block_bytes, monkeypatch):
    images, captions = embeddings(20, 0), embeddings(100, 1)
    image_labels, caption_labels = np.arange(20), np.repeat(np.arange(20), 5)
    matrix = negative_squared_distance(images, captions)
    relevance = image_labels[:, None] == caption_labels
    expected = evaluate_retrieval(matrix, relevance)
    pairs = PairwiseSimilarity(images, captions, negative_squared_distance)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    for truth in (relevance, LabelRelevance(image_labels, caption_labels)):
        assert evaluate_retrieval(pairs, truth) == expected


@pytest.mark.parametrize("similarity", [negative_squared_distance, ClosedFormSampledDistance()])
def test_pairwise_similarity_takes_subsets_of_both_directions(similarity):
    pairs = PairwiseSimilarity(embeddings(6, 0), embeddings(9, 1), similarity)
    matrix = pairs.rows(0, 6)
    equal = functools.partial(np.testing.assert_allclose, rtol=1e-5)
    equal(pairs.take([1, 4], [0, 8]).rows(0, 2), matrix[[1, 4]][:, [0, 8]])
    flipped = pairs.transposed()
    assert flipped.shape == (9, 6)
    equal(flipped.rows(2, 5), matrix.T[2:5])
    equal(flipped.take([0, 8], [1, 4]).rows(0, 2), matrix.T[[0, 8]][:, [1, 4]])
