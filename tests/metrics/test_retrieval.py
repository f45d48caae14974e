"""Recall@K, R-Precision, mAP@R, ASP and zero-shot accuracy: against loops and SciPy, at edges."""

import functools
import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

import retrieval_oracles as oracles
from studies.daa_figures import pairs_above, semantic_precision_at
from zoo.data.text.prompts import class_prompts, spoken, templates
from zoo.metrics import (
    LabelRelevance,
    PairwiseSimilarity,
    average_semantic_precision,
    blocks,
    evaluate_retrieval,
    mean_average_precision_at_r,
    r_precision,
    rank_queries,
    recall_at_k,
)
from zoo.metrics.semantic_precision import average_ranks
from zoo.metrics.zero_shot import (
    choose_prompts,
    mean_embeddings,
    mean_similarities,
    top_1,
    zero_shot_scores,
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


def classes(images=60, classes=4, prompts=5, seed=0):
    rng = np.random.default_rng(seed)
    uncertainty = rng.uniform(size=(classes, prompts))
    labels = rng.integers(classes, size=images)
    signal = (labels[:, None] == np.arange(classes))[:, :, None]
    noise = rng.normal(size=(images, classes, prompts))
    return signal + 3 * uncertainty * noise, uncertainty, labels


def test_there_are_80_templates_each_with_a_place_for_the_name():
    assert len(templates()) == len(set(templates())) == 80
    assert all(sentence.count("{}") == 1 for sentence in templates())


def test_class_names_are_spoken():
    assert spoken("017.Red_tailed_Hawk") == "red tailed hawk"
    assert spoken("St. Bernard") == "st. bernard"
    assert class_prompts(["001.A_b", "c"], ["a {}.", "{}!"]) == ["a a b.", "a b!", "a c.", "c!"]


@pytest.mark.parametrize("kept", [None, 2, [1, 2, 3, 5]])
def test_scores_are_means_over_the_most_certain_prompts(kept):
    similarity, uncertainty, _ = classes()
    scores = zero_shot_scores(mean_similarities(similarity, uncertainty), kept)
    counts = np.broadcast_to(5 if kept is None else kept, (4,))
    for column, count in enumerate(counts):
        chosen = np.argsort(uncertainty[column])[:count]
        expected = similarity[:, column, chosen].mean(axis=1)
        np.testing.assert_allclose(scores[:, column], expected)


@pytest.mark.parametrize("length", [1.0, 2.0])
def test_embeddings_are_averaged_over_the_most_certain_prompts(length):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(12, 8))
    mean *= length / np.linalg.norm(mean, axis=1, keepdims=True)
    log_variance, uncertainty = rng.normal(size=(12, 8)), rng.uniform(size=(3, 4))
    found = mean_embeddings({"mean": mean, "log_variance": log_variance}, uncertainty)
    for row in range(12):
        column, k = divmod(row, 4)
        chosen = 4 * column + np.argsort(uncertainty[column])[: k + 1]
        expected = mean[chosen].mean(axis=0)
        if length == 1:
            expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(found["mean"][row], expected, atol=1e-6)
        variance = np.exp(log_variance[chosen]).mean(axis=0)
        np.testing.assert_allclose(np.exp(found["log_variance"][row]), variance, rtol=1e-5)


def test_ties_are_errors():
    assert top_1(np.zeros((3, 2)), np.zeros(3, int)) == 0.0
    assert top_1(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0, 0])) == 0.5


def test_the_common_k_is_the_best_of_all():
    similarity, uncertainty, labels = classes()
    scores = mean_similarities(similarity, uncertainty)
    best = choose_prompts(scores, labels)
    accuracy = [top_1(zero_shot_scores(scores, k), labels) for k in range(1, 6)]
    assert accuracy[best - 1] == max(accuracy) > accuracy[4]
    assert all(value < max(accuracy) for value in accuracy[best:]), "a larger K is as good"


def test_a_k_of_its_own_for_each_class_is_never_worse_and_cannot_be_bettered_alone():
    for seed in range(5):
        similarity, uncertainty, labels = classes(seed=seed)
        scores = mean_similarities(similarity, uncertainty)
        common = choose_prompts(scores, labels)
        own = choose_prompts(scores, labels, per_class=True, sweeps=20)

        def accuracy(kept, scores=scores, labels=labels):
            return top_1(zero_shot_scores(scores, kept), labels)

        assert accuracy(own) >= accuracy(common)
        for column, k in itertools.product(range(4), range(1, 6)):
            other = own.copy()
            other[column] = k
            assert accuracy(other) <= accuracy(own)
