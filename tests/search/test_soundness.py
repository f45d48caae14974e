"""What a failed change, a second writer or a deleted file must not do to an index."""

import threading

import numpy as np
import pytest

from zoo.confidence import agreement
from zoo.embeddings.arrays import take
from zoo.search import Index, gallery, storage


def same_answers(one, other, queries):
    for got, expected in zip(one.search(queries, 5), other.search(queries, 5), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("similarity", ["csd", "kl", "wasserstein_2"])
@pytest.mark.parametrize("with_moments", [False, True])
def test_an_item_that_overflows_is_refused_whole(
    gaussians, tmp_path, monkeypatch, similarity, with_moments
):
    monkeypatch.setattr(gallery, "CHUNK", 16)  # the bad item is in the third chunk
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


def test_sets_that_fail_are_taken_out_again(sets, tmp_path, monkeypatch):
    from zoo import similarities

    monkeypatch.setattr(gallery, "CHUNK", 16)
    index = Index.build(sets(60), similarities.MaximumPair())
    more, queries = sets(40), sets(5)
    before = index.search(queries, 5)
    calls = []
    whole = Index._beside

    def full(self, chunk, ids):
        calls.append(ids)
        if len(calls) == 3:
            raise MemoryError
        return whole(self, chunk, ids)

    with monkeypatch.context() as patch:
        patch.setattr(Index, "_beside", full)
        with pytest.raises(MemoryError):
            index.add(more)
    assert len(index) == 60
    for got, expected in zip(index.search(queries, 5), before, strict=True):
        np.testing.assert_array_equal(got, expected)
    index.add(more)
    index.save(tmp_path)
    same_answers(Index.load(tmp_path), index, queries)


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


def test_a_loaded_index_reads_on_when_its_files_are_replaced(gaussians, tmp_path):
    gallery, queries = gaussians(50), gaussians(5)
    index = Index.build(gallery, "kl")
    index.save(tmp_path)
    loaded = Index.load(tmp_path)
    Index.build(gaussians(30), "kl").save(tmp_path)
    assert not (tmp_path / "data-1").exists()
    same_answers(loaded, index, queries)


def test_two_writers_and_a_reader(gaussians, tmp_path):
    """Each writes its own index again and again; a reader finds one of the two at any time."""
    sizes, errors, stop = (20, 30), [], threading.Event()
    indexes = [Index.build(gaussians(size), "csd") for size in sizes]
    indexes[0].save(tmp_path)

    def writes(index):
        try:
            for _ in range(10):
                index.save(tmp_path)
        except BaseException as error:
            errors.append(error)

    def reads():
        try:
            while not stop.is_set():
                assert len(Index.load(tmp_path)) in sizes
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=writes, args=(index,)) for index in indexes]
    readers = [threading.Thread(target=reads) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert not errors
    assert len(list(tmp_path.glob("data-*"))) == 1


def test_a_reader_reads_again_what_was_replaced_meanwhile(gaussians, tmp_path, monkeypatch):
    old, new = (Index.build(gaussians(size), "csd") for size in (20, 30))
    old.save(tmp_path)
    check, replaced = storage._check, []

    def replaces(*arguments):
        if not replaced:
            replaced.append(True)
            new.save(tmp_path)
        return check(*arguments)

    monkeypatch.setattr(storage, "_check", replaces)
    assert len(Index.load(tmp_path)) == 30


def test_the_largest_id(gaussians, tmp_path):
    index = Index.build(gaussians(2), "csd")
    largest = 2**63 - 2
    for ids in ([2**63 - 1, 5], np.array([2**63 + 7, 5], np.uint64)):
        with pytest.raises(ValueError, match=rf"`ids` must be at most {largest}; received"):
            index.add(gaussians(2), ids=ids)
    index.add(gaussians(1), ids=[largest])
    with pytest.raises(ValueError, match="no id is left behind the largest"):
        index.add(gaussians(1))
    index.save(tmp_path)
    loaded = Index.load(tmp_path)
    assert loaded.ids[-1] == largest
    loaded.add(gaussians(1), ids=[7])


def test_scores_of_no_queries(gaussians):
    index = Index.build(gaussians(30), "csd")
    with pytest.raises(ValueError, match="`queries` must hold at least one query"):
        index.query_scores(gaussians(0))


def test_ids_that_the_index_does_not_hold(gaussians):
    index, queries = Index.build(gaussians(30), "csd"), gaussians(3)
    scores, ids = index.search(queries, 20)
    ids[1, 4] = 999
    with pytest.raises(ValueError, match="`ids` must be in the index; it lacks 999"):
        index.query_scores(queries, scores, ids)
    with pytest.raises(ValueError, match=r"`ids` must be of the shape of `scores`"):
        index.query_scores(queries, scores, ids[:, :5])


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int32])
def test_agreement_of_small_numbers(dtype):
    answers = np.random.default_rng(0).integers(-120, 120, size=(4, 20, 64)).astype(dtype)
    centre = np.full(64, 0.5)
    expected = agreement(answers.astype(np.float64), centre)
    np.testing.assert_allclose(agreement(answers, centre), expected, atol=1e-5)
    assert (np.abs(expected) <= 1).all()
