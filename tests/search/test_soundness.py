"""What a failed change, a second writer or a deleted file must not do to an index."""

import numpy as np
import pytest

from zoo.embeddings.arrays import take
from zoo.search import Index
from zoo.search import index as index_file


def same_answers(one, other, queries):
    for got, expected in zip(one.search(queries, 5), other.search(queries, 5), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("similarity", ["csd", "kl", "wasserstein_2"])
@pytest.mark.parametrize("with_moments", [False, True])
def test_an_item_that_overflows_is_refused_whole(
    gaussians, tmp_path, monkeypatch, similarity, with_moments
):
    monkeypatch.setattr(index_file, "CHUNK", 16)  # the bad item is in the third chunk
    start, more, queries = gaussians(300), gaussians(48), gaussians(9)
    index = Index.build(start, similarity)
    before = index.search(queries, 5)
    if with_moments and index.has_moments:
        assert index.moments.count == 300
    more["log_variance"][40] = 200
    with pytest.raises(ValueError, match=r"`gallery_embeddings`.*item 40"):
        index.add(more)
    assert len(index) == 300
    np.testing.assert_array_equal(index.ids, np.arange(300))
    scores, ids = index.search(queries, 5)
    np.testing.assert_allclose(scores, before[0], rtol=1e-6)
    np.testing.assert_array_equal(ids, before[1])
    index.save(tmp_path)
    same_answers(Index.load(tmp_path), index, queries)
    index.add(take(more, slice(0, 40)))
    assert len(index) == 340
    np.testing.assert_array_equal(index.ids[-40:], np.arange(300, 340))
    if index.has_moments:
        assert index.moments.count == 340
        index.query_scores(queries)


def test_adding_after_a_save_leaves_the_saved_columns(gaussians, tmp_path):
    start, more, queries = gaussians(40), gaussians(60), gaussians(5)
    index = Index.build(start, "kl")
    before = index.search(queries, 5)
    index.save(tmp_path / "first")
    index.add(more)
    for got, expected in zip(
        Index.load(tmp_path / "first").search(queries, 5), before, strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    index.save(tmp_path / "first")
    loaded = Index.load(tmp_path / "first")
    assert len(loaded) == 100
    same_answers(loaded, index, queries)
