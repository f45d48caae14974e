"""What a failed change, a second writer or a deleted file must not do to an index."""

import os
import threading

import numpy as np
import pytest

from zoo.confidence import GalleryMoments, agreement
from zoo.embeddings.arrays import take
from zoo.errors import InputError
from zoo.search import Index, ShardedIndex, columns, gallery, sharded, storage
from zoo.search.columns import Scratch


def same_answers(one, other, queries):
    for got, expected in zip(one.search(queries, 5), other.search(queries, 5), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq"])
@pytest.mark.parametrize("similarity", ["csd", "kl", "wasserstein_2"])
@pytest.mark.parametrize("with_moments", [False, True])
def test_an_item_that_overflows_is_refused_whole(
    gaussians, tmp_path, monkeypatch, kind, similarity, with_moments
):
    monkeypatch.setattr(gallery, "CHUNK", 16)  # the bad item is in the third chunk
    start, more, queries = gaussians(300), gaussians(48), gaussians(9)
    index = Index.build(start, similarity, kind=kind)
    before = index.search(queries, 5)
    if with_moments and index.has_moments:
        assert index.moments.count == 300
    more["log_variance"][40] = 200
    with pytest.raises(ValueError, match=r"`gallery_embeddings`.*item 40"):
        index.add(more)
    assert len(index) == 300
    np.testing.assert_array_equal(index.ids, np.arange(300))
    scores, ids = index.search(queries, 5)
    np.testing.assert_allclose(scores, before[0], rtol=1e-6)  # HNSW adds up in another order
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


def parts_of(gaussians, count, size=20):
    return [
        Index.build(gaussians(size), "csd", ids=np.arange(n * size, (n + 1) * size))
        for n in range(count)
    ]


def test_fewer_parts_replace_more(gaussians, tmp_path):
    ShardedIndex(parts_of(gaussians, 4)).save(tmp_path)
    fewer, queries = ShardedIndex(parts_of(gaussians, 2)), gaussians(4)
    fewer.save(tmp_path)
    loaded = sharded.load(tmp_path)
    assert len(loaded) == 40
    same_answers(loaded, fewer, queries)
    assert len(list(tmp_path.glob("part-*"))) == 2
    with pytest.raises(InputError, match="holds other files"):
        parts_of(gaussians, 1)[0].save(tmp_path)
    parts_of(gaussians, 1)[0].save(tmp_path / "whole")
    with pytest.raises(InputError, match="holds an index of one part"):
        fewer.save(tmp_path / "whole")


def test_a_save_of_parts_that_fails_leaves_the_old_ones(gaussians, tmp_path, monkeypatch):
    old, queries = ShardedIndex(parts_of(gaussians, 3)), gaussians(4)
    old.save(tmp_path)
    new = ShardedIndex(parts_of(gaussians, 2))

    def killed(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(new.parts[1], "save", killed)
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
    same_answers(sharded.load(tmp_path), old, queries)
    new.save(tmp_path)
    same_answers(sharded.load(tmp_path), new, queries)


def test_a_first_save_of_parts_that_was_stopped_is_no_index(gaussians, tmp_path):
    parts_of(gaussians, 1)[0].save(tmp_path / "part-000")
    with pytest.raises(InputError, match=r"lacks parts\.json"):
        sharded.load(tmp_path)


@pytest.mark.parametrize("ids", [np.arange(5, 25), np.arange(0, 40, 2)])
def test_parts_with_an_id_in_common_are_refused(gaussians, ids):
    one = Index.build(gaussians(20), "csd")
    with pytest.raises(ValueError, match=r"`parts` must have no id in common; received \d+"):
        ShardedIndex([one, Index.build(gaussians(20), "csd", ids=ids)])
    ShardedIndex([one, Index.build(gaussians(20), "csd", ids=ids + 100)])


def test_moments_of_codes_go_on_with_codes(gaussians):
    start, more = gaussians(600), gaussians(400)
    index = Index.build(start, "csd", kind="ivfpq")
    assert index.moments.count == 600
    index.add(more)
    found = index.moments
    index._moments = None
    expected = index.moments
    assert isinstance(found, GalleryMoments)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-4, atol=1e-3)


def test_adding_after_a_save_leaves_the_saved_columns(gaussians, tmp_path):
    start, more, queries = gaussians(40), gaussians(60), gaussians(5)
    index = Index.build(
        start, "kl", options={"total": 100}, scratch=Scratch(tmp_path / "first", 100)
    )
    before = index.search(queries, 5)
    index.save(tmp_path / "first")
    index.add(more)
    for got, expected in zip(
        Index.load(tmp_path / "first").search(queries, 5), before, strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    index.save(tmp_path / "first")
    index.save(tmp_path / "second")  # a second time, when the scratch file has its name no more
    for name in ("first", "second"):
        loaded = Index.load(tmp_path / name)
        assert len(loaded) == 100
        same_answers(loaded, index, queries)
    with pytest.raises(ValueError, match="at most 100 items were announced"):
        index.add(start)
    assert len(index) == 100
    same_answers(loaded, index, queries)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_loaded_index_reads_on_when_its_files_are_replaced(
    gaussians, tmp_path, monkeypatch, mapped
):
    monkeypatch.setattr(columns, "_LARGE", 0)
    gallery, queries = gaussians(50), gaussians(5)
    index = Index.build(gallery, "kl")
    index.save(tmp_path)
    loaded = Index.load(tmp_path, mapped=mapped)
    Index.build(gaussians(30), "kl").save(tmp_path)
    assert not (tmp_path / "data-1").exists()
    same_answers(loaded, index, queries)


def test_rows_beyond_the_end_of_a_large_file(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((40, 3)))
    mapped = columns.open_column(tmp_path / "a.npy")
    os.truncate(tmp_path / "a.npy", 600)
    monkeypatch.setattr(columns, "_LARGE", 0)
    with pytest.raises(OSError, match="ends before row 39"):
        columns.rows_of(mapped, np.array([0, 39]))


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
    together = ShardedIndex(parts_of(gaussians, 2))
    for asked in (index, together):
        with pytest.raises(ValueError, match="`queries` must hold at least one query"):
            asked.query_scores(gaussians(0))


def test_ids_that_the_index_does_not_hold(gaussians):
    index, queries = Index.build(gaussians(30), "csd"), gaussians(3)
    together = ShardedIndex(parts_of(gaussians, 2))
    for asked in (index, together):
        scores, ids = asked.search(queries, 20)
        ids[1, 4] = 999
        with pytest.raises(ValueError, match="`ids` must be in the index; it lacks 999"):
            asked.query_scores(queries, scores, ids)
        with pytest.raises(ValueError, match=r"`ids` must be of the shape of `scores`"):
            asked.query_scores(queries, scores, ids[:, :5])


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int32])
def test_agreement_of_small_numbers(dtype):
    answers = np.random.default_rng(0).integers(-120, 120, size=(4, 20, 64)).astype(dtype)
    centre = np.full(64, 0.5)
    expected = agreement(answers.astype(np.float64), centre)
    np.testing.assert_allclose(agreement(answers, centre), expected, atol=1e-5)
    assert (np.abs(expected) <= 1).all()
