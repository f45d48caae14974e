"""Indexes in parts: one exact order, moments that add up, and memory that a flag bounds."""

import numpy as np
import pytest

from zoo import collection, similarities
from zoo.collection import Collection, Encoded
from zoo.confidence import Confidence
from zoo.embeddings.arrays import take
from zoo.errors import InputError
from zoo.search import Index, ShardedIndex, columns, from_shards, sharded

ITEMS, DIM = 768, 8


def gaussians(rng, items):
    mean = rng.normal(size=(items, DIM)).astype(np.float32)
    return {"mean": mean, "log_variance": rng.normal(-2, 1, size=(items, DIM)).astype(np.float32)}


def sets(rng, items):
    return {"elements": rng.normal(size=(items, 3, DIM)).astype(np.float32)}


CASES = [
    (gaussians, similarities.ClosedFormSampledDistance()),
    (gaussians, similarities.wasserstein_2),
    (gaussians, similarities.KLDivergence()),
    (sets, similarities.SmoothChamfer()),
]


@pytest.mark.parametrize(("draw", "similarity"), CASES)
def test_parts_rank_as_one_index(draw, similarity):
    rng = np.random.default_rng(0)
    gallery, queries = draw(rng, ITEMS), draw(rng, 20)
    ranked_again = similarity in (CASES[2][1], CASES[3][1])
    again = 0 if ranked_again else 5  # ties; a graph of other shapes rounds otherwise
    gallery = {key: np.concatenate([value, value[:again]]) for key, value in gallery.items()}
    total = ITEMS + again
    candidates = 3 * total if ranked_again else None
    whole = Index.build(gallery, similarity, candidates=candidates)
    owner = rng.integers(3, size=total)
    parts = [
        Index.build(
            take(gallery, owner == n),
            similarity,
            ids=np.flatnonzero(owner == n),
            candidates=candidates,
        )
        for n in range(3)
    ]
    together = ShardedIndex(parts)
    assert len(together) == total
    expected, found = whole.search(queries, 10), together.search(queries, 10)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    own, other = together.query_scores(queries), whole.query_scores(queries)
    np.testing.assert_allclose(own.top, other.top, rtol=1e-5)
    np.testing.assert_allclose(own.mean, other.mean, rtol=1e-4)
    np.testing.assert_allclose(own.variance, other.variance, rtol=1e-3)
    np.testing.assert_allclose(own.agreement, other.agreement, atol=1e-4)
    with pytest.raises(ValueError, match="best 20 of each query"):
        together.query_scores(queries, np.full((len(own), 20), np.nan), np.full((len(own), 20), -1))
    limit = float(np.median(parts[0]._columns["uncertainty"].values))
    filtered = together.search(queries, total, max_uncertainty=limit, candidates=None)
    np.testing.assert_array_equal(filtered[1], whole.search(queries, total, limit)[1])
    assert (filtered[1] == -1).any()


def test_a_calibration_reads_all_parts():
    rng = np.random.default_rng(0)
    gallery, queries = gaussians(rng, ITEMS), gaussians(rng, 60)
    whole = Index.build(gallery, "csd")
    halves = [np.arange(n, ITEMS, 2) for n in range(2)]
    parts = [Index.build(take(gallery, rows), "csd", ids=rows) for rows in halves]
    together = ShardedIndex(parts)
    confidence = Confidence.fit(whole.query_scores(queries), np.arange(60) % 3 == 0)
    expected = whole.probability(queries, confidence)
    np.testing.assert_allclose(together.probability(queries, confidence), expected, rtol=1e-4)
    np.testing.assert_allclose(together.moments.mean, whole.moments.mean, rtol=1e-5)
    assert together.moments.count == ITEMS


@pytest.fixture
def shards(tmp_path):
    gallery = gaussians(np.random.default_rng(0), ITEMS)
    names = [f"item {row}" for row in range(ITEMS)]
    pieces = collection.of_items("texts", names, range(ITEMS), shard_size=128)

    def encoder(work, advance):
        rows = [int(item) for item in work.items]
        return Encoded(list(work.names), take(gallery, rows))

    folder = tmp_path / "shards"
    collection.encode(pieces, encoder, folder, {"model": "m"}, "float16", progress=False)
    return Collection(folder)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq"])
def test_memory_is_what_the_flag_says(shards, tmp_path, kind, monkeypatch):
    """So little that a part has three shards; parts are searched where they lie on the disk."""
    monkeypatch.setattr(from_shards, "_BESIDE", 0.0)
    arrays, queries = shards.shard(0).arrays, gaussians(np.random.default_rng(1), 9)
    arguments = {"similarity": "csd", "kind": kind, "candidates": None, "side": "images"}
    if kind == "ivfpq":
        arguments["candidates"] = ITEMS
    options = {"lists": 1} if kind == "ivfpq" else None
    cost = from_shards.bytes_an_item(arrays, ITEMS, options, **arguments)
    memory = (cost["training"] + 400 * cost["item"]) / from_shards.GIB
    built = from_shards.build(
        shards,
        folder=tmp_path / "index",
        training_rows=ITEMS,
        options=options,
        memory=memory,
        **arguments,
    )
    assert [len(part) for part in built.parts] == [384, 384]
    if kind == "ivfpq":
        built.effort = 1
    everything = collection.joined([shard.arrays for shard in shards.shards()])
    expected = Index.build(everything, "csd").search(queries, 10)
    again = sharded.load(tmp_path / "index")
    for index in (built, again):
        scores, ids = index.search(queries, 10)
        if kind == "hnsw":
            assert (ids == expected[1]).mean() > 0.95
            continue
        np.testing.assert_array_equal(ids, expected[1])
        np.testing.assert_allclose(scores, expected[0], rtol=1e-4)
    for change in (lambda part: part.add(arrays), lambda part: part.remove([0])):
        with pytest.raises(ValueError, match="can only be searched"):
            change(again.parts[0])
    with pytest.raises(ValueError, match="has no room for a shard of 128 items"):
        from_shards.build(shards, folder=tmp_path / "i", memory=memory / 4, **arguments)


@pytest.mark.parametrize("candidates", [None, 50])
def test_one_part_is_what_build_makes_of_everything(shards, tmp_path, candidates):
    """What is kept to rank candidates was written to the disk as it came."""
    queries = gaussians(np.random.default_rng(1), 9)
    everything = collection.joined([shard.arrays for shard in shards.shards()])
    similarity = "kl" if candidates else "csd"
    expected = Index.build(everything, similarity, candidates=candidates).search(queries, 10)
    built = from_shards.build(shards, similarity, tmp_path / "index", candidates=candidates)
    for index in (built, Index.load(tmp_path / "index")):
        scores, ids = index.search(queries, 10)
        np.testing.assert_array_equal(ids, expected[1])
        np.testing.assert_allclose(scores, expected[0], rtol=1e-4)
    assert not list((tmp_path / "index").glob(".tmp-*"))
    index.add(gaussians(np.random.default_rng(2), 3))  # a loaded one can grow
    index.save(tmp_path / "index")
    assert len(Index.load(tmp_path / "index")) == ITEMS + 3


def test_rows_of_a_large_file_are_read_and_not_mapped(tmp_path, monkeypatch):
    values = np.arange(2 * 3 * 100, dtype=np.float16).reshape(100, 2, 3)
    np.save(tmp_path / "column.npy", values)
    mapped = np.load(tmp_path / "column.npy", mmap_mode="r")
    rows = np.array([[7, 99, 0], [7, 7, 50]])
    monkeypatch.setattr(columns, "_LARGE", 0)
    found = columns.rows_of(mapped, rows)
    assert not isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, values[rows])


def test_parts_that_are_none(shards, tmp_path):
    rng = np.random.default_rng(0)
    one = Index.build(gaussians(rng, 5), "csd")
    with pytest.raises(ValueError, match="at least one index"):
        ShardedIndex([])
    with pytest.raises(ValueError, match="must have one similarity"):
        ShardedIndex([one, Index.build(gaussians(rng, 5), "wasserstein_2")])
    with pytest.raises(ValueError, match="must have one side"):
        ShardedIndex([one, Index.build(gaussians(rng, 5), "csd", side="captions")])
    with pytest.raises(ValueError, match="from 1 to the index's size, 5"):
        ShardedIndex([one]).search(gaussians(rng, 1), 6)
    other = Index.build(gaussians(rng, 5), "csd", ids=range(5, 10))
    ShardedIndex([one, other]).save(tmp_path / "parts")
    assert len(sharded.load(tmp_path / "parts")) == 10
    (tmp_path / "parts" / "part-000").rename(tmp_path / "parts" / "part-002")
    with pytest.raises(InputError, match="expected part-000, part-001"):
        sharded.load(tmp_path / "parts")
