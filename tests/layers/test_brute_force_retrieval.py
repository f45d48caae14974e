"""A gallery as a layer: the index's answers, saved and exported with its candidates."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo.layers import BruteForceRetrieval

RNG = np.random.default_rng(0)


def gaussians(count, dim=4):
    return {
        "mean": RNG.normal(size=(count, dim)).astype("float32"),
        "log_variance": RNG.normal(size=(count, dim)).astype("float32"),
    }


def test_without_a_similarity_it_is_the_inner_product():
    items, queries = RNG.normal(size=(2, 20, 3)).astype("float32")
    scores, ids = BruteForceRetrieval(items, np.arange(20) + 2**40, k=4)(queries)
    expected = queries @ items.T
    order = np.argsort(-expected, axis=1)[:, :4]
    np.testing.assert_array_equal(ids, order + 2**40)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, order, 1), rtol=1e-6)


@pytest.mark.parametrize("name", ["csd", "kl", "reverse_kl"])
@pytest.mark.parametrize("side", ["captions", "images"])
def test_it_answers_as_the_index_does(name, side):
    items, queries = gaussians(30), gaussians(5)
    similarity = zoo.similarities.get(name)
    retrieval = BruteForceRetrieval(items, k=6, similarity=similarity, query_side=side)
    scores, ids = retrieval(queries)
    gallery = "images" if side == "captions" else "captions"
    index = zoo.search.Index.build(items, similarity, side=gallery)
    expected_scores, expected_ids = index.search(queries, 6)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-4)


def test_inside_a_functional_model_it_is_saved_and_exported_with_its_gallery(tmp_path):
    items, queries = gaussians(12), gaussians(3)
    inputs = {name: keras.Input((4,), name=name) for name in items}
    similarity = zoo.similarities.ClosedFormSampledDistance()
    retrieval = BruteForceRetrieval(items, np.arange(100, 112), k=2, similarity=similarity)
    model = keras.Model(inputs, dict(zip(("scores", "ids"), retrieval(inputs), strict=True)))
    expected = model(queries)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for name, values in loaded(queries).items():
        np.testing.assert_array_equal(values, expected[name])
    loaded.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    for name, values in served.serve(queries).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-6)


def test_candidates_are_replaced_and_k_is_chosen_again():
    layer = BruteForceRetrieval(np.eye(3, dtype="float32"), k=1, return_scores=False)
    assert layer(np.eye(3)[:1]).numpy().tolist() == [[0]]
    layer.update_candidates(np.eye(3, dtype="float32")[::-1], [7, 8, 9])
    assert layer(np.eye(3)[:1], k=1).numpy().tolist() == [[9]]
    assert layer(np.eye(3)[:1], k=3).shape == (1, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"k": 0}, "`k` must be a whole number"),
        ({"k": 4}, "at most the 3 candidates"),
        ({"candidate_ids": [1, 2]}, "as many integers"),
        ({"candidate_ids": [0.5, 1, 2]}, "as many integers"),
        ({"candidate_embeddings": np.empty((0, 2))}, "at least one item"),
        ({"candidate_embeddings": None, "candidate_ids": [1]}, "without `candidate_embeddings`"),
        ({"query_side": "texts"}, "`query_side` must be"),
    ],
)
def test_what_does_not_fit_is_said(options, says):
    with pytest.raises(ValueError, match=says):
        BruteForceRetrieval(**{"candidate_embeddings": np.eye(3), "k": 1, **options})


def test_shapes_stay_and_a_gallery_is_needed():
    with pytest.raises(ValueError, match="no gallery yet"):
        BruteForceRetrieval(k=1)(np.eye(3))
    layer = BruteForceRetrieval(np.eye(3), k=1)
    with pytest.raises(ValueError, match="must keep the shapes"):
        layer.update_candidates(np.eye(4))
    with pytest.raises(ValueError, match="from 1 to the 3 candidates"):
        layer(np.eye(3), k=4)


def test_of_equal_scores_the_lower_id_is_first():
    items = np.tile(np.eye(3, dtype="float32"), (4, 1))
    ids = RNG.permutation(12) + 5
    layer = BruteForceRetrieval(items, ids, k=12)
    scores, found = (np.asarray(part) for part in layer(np.eye(3)[:2]))
    for row in range(2):
        order = np.lexsort((found[row], -scores[row]))
        np.testing.assert_array_equal(order, np.arange(12))
        assert set(found[row][:4]) == set(ids[row::3])
    for k in (1, 3, 7):
        np.testing.assert_array_equal(layer(np.eye(3)[:2], k=k)[1], found[:, :k])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_under_half_precision_the_gallery_is_not_rounded(policy):
    items, queries = 1 + RNG.normal(size=(2, 50, 8)).astype("float32") / 1000
    expected = BruteForceRetrieval(items, k=5)(queries)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        scores, ids = BruteForceRetrieval(items, k=5)(queries)
        inside = keras.Sequential(
            [keras.Input((8,), dtype="float32"), BruteForceRetrieval(items, k=5)]
        )
        _, again = inside(queries)
    finally:
        keras.config.set_dtype_policy(before)
    np.testing.assert_array_equal(ids, expected[1])
    np.testing.assert_array_equal(again, expected[1])
    np.testing.assert_array_equal(scores, expected[0])


def test_what_is_no_number_ranks_nothing():
    items = np.eye(3, dtype="float32")
    bad = items.copy()
    bad[1, 1] = np.nan
    with pytest.raises(ValueError, match="`candidate_embeddings` must be finite; 'mean' is not"):
        BruteForceRetrieval(bad, k=3)
    _, ids = BruteForceRetrieval(items, k=3)(np.array([[np.nan, 0, 0], [0, 1, 0]], "float32"))
    np.testing.assert_array_equal(ids, [[0, 1, 2], [1, 0, 2]])
