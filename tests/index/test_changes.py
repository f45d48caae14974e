"""Adding, removing, filtering, saving: asked rightly and wrongly, failed, and all of it whole."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import forked
from halo_search.embeddings.arrays import take
from halo_search.errors import InputError
from halo_search.files.written import read_sealed, sealed
from halo_search.index import Index, scoring
from halo_search.index import index as index_file
from zoo import similarities as S


@pytest.mark.parametrize("similarity", [S.ClosedFormSampledDistance(), S.KLDivergence()])
def test_adding_and_removing(gaussians, similarity):
    gallery, queries = gaussians(300), gaussians(20)
    index = Index.build(take(gallery, slice(100)), similarity)
    index.add(take(gallery, slice(100, 300)), ids=np.arange(1100, 1300))
    gone = np.r_[np.arange(0, 100, 3), 1100, 1250]
    index.remove(gone)
    assert len(index) == 300 - len(gone)
    kept = np.setdiff1d(np.r_[np.arange(100), np.arange(1100, 1300)], gone)
    np.testing.assert_array_equal(np.sort(index.ids), kept)
    rows = np.where(kept < 1000, kept, kept - 1000)
    fresh = Index.build(take(gallery, rows), similarity, ids=kept)
    np.testing.assert_array_equal(index.search(queries, 5)[1], fresh.search(queries, 5)[1])
    index.add(take(gallery, gone[:1]), ids=gone[:1])  # a removed id is free again
    assert len(index) == len(kept) + 1


def test_save_and_load(gaussians, tmp_path):
    layer = S.ClosedFormSampledDistance()
    layer.scale.assign(2.5)  # learned, and so not in the configuration
    layer.trainable = False
    gallery, queries = gaussians(400), gaussians(10)
    index = Index.build(gallery, layer, ids=np.arange(400) + 7)
    index.remove([9])
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    for got, expected in zip(loaded.search(queries, 6), index.search(queries, 6), strict=True):
        np.testing.assert_array_equal(got, expected)
    loaded.remove([10])
    loaded.add(gallery, ids=np.arange(1000, 1400))
    loaded.save(tmp_path / "index")
    assert len(Index.load(tmp_path / "index")) == len(index) + 399
    assert sorted(os.listdir(tmp_path / "index")) == [".lock", "data-2", "index.json"]
    fresh = S.ClosedFormSampledDistance(scale=1.0, shift=0.0)
    rescored = Index.load(tmp_path / "index", similarity=fresh).search(queries, 6)[0]
    np.testing.assert_allclose(5 + 2.5 * rescored, loaded.search(queries, 6)[0], rtol=1e-5)


def test_frozen_scalars_tell_two_similarities_apart():
    """A judge is of one similarity: of another value of a learned scalar it says nothing."""
    layer, other = S.MatchProbability(), S.MatchProbability()
    for one in (layer, other):
        one(*({"mean": np.zeros((1, 2)), "log_variance": np.zeros((1, 2))} for _ in range(2)))
        one.trainable = False
    assert scoring.rank_alike(layer, other)
    other.scale.assign(2.5)
    assert not scoring.rank_alike(layer, other)


@pytest.mark.parametrize("moment", ["write_index", "save", "facts_of"])
def test_a_failure_while_saving_leaves_the_old_index(gaussians, tmp_path, monkeypatch, moment):
    from halo_search.index import storage

    index = Index.build(gaussians(30), "kl")  # which keeps its columns
    index.save(tmp_path)
    index.add(gaussians(30))

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    owner = {"write_index": storage.faiss, "save": storage.np}.get(moment, storage)
    with monkeypatch.context() as patch:
        patch.setattr(owner, moment, full)
        with pytest.raises(InputError, match="No space left"):
            index.save(tmp_path)
    assert len(Index.load(tmp_path)) == 30
    index.save(tmp_path)
    assert len(Index.load(tmp_path)) == 60


def rewritten(folder, **changes):
    """Changes the manifest, and its checksum."""
    path = folder / "index.json"
    path.write_text(json.dumps(sealed({**read_sealed(path), **changes})))


@pytest.fixture
def saved(gaussians, tmp_path):
    Index.build(gaussians(40), "csd").save(tmp_path)
    return tmp_path


def test_damaged_files(saved):
    path = saved / "data-1/index.faiss"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(InputError, match=r"index\.faiss: is damaged"):
        Index.load(saved)
    path.write_bytes(whole[:-3] + b"abc")
    with pytest.raises(InputError, match="checksum"):
        Index.load(saved)
    path.unlink()
    with pytest.raises(InputError, match="missing"):
        Index.load(saved)


def test_foreign_files(saved, tmp_path_factory):
    rewritten(saved, version=99)
    with pytest.raises(InputError, match=r"version 99.*build the index again"):
        Index.load(saved)
    (saved / "index.json").write_text("[]")
    with pytest.raises(InputError, match="expected a JSON object, found a list"):
        Index.load(saved)
    other = tmp_path_factory.mktemp("other")
    with pytest.raises(InputError, match=r"expected a folder with an index\.json"):
        Index.load(other)
    (other / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"holds thesis\.tex, which this program did"):
        Index.build({"mean": np.eye(3)}, "cosine").save(other)
    assert (other / "thesis.tex").exists()


def test_a_similarity_that_is_not_known_any_more(saved):
    rewritten(saved, similarity={"function": "hamming"}, portable=None)
    with pytest.raises(InputError, match=r"index\.json: its similarity: "):
        Index.load(saved)


def test_bad_arguments(gaussians, sets):
    gallery, queries = gaussians(20), gaussians(3)
    index = Index.build(gallery, "csd")
    narrow = {"mean": np.zeros((2, 5)), "log_variance": np.zeros((2, 5))}
    for message, call in {
        "dimension 24; received 5": lambda: index.search(narrow, 3),
        "have dimension 24": lambda: index.add(narrow),
        "must be a Gaussian; received a set": lambda: index.search(sets(2), 3),
        "must be a Gaussian; received a point": lambda: index.add({"mean": np.zeros((2, 24))}),
        "from 1 to the index's size, 20; received 21": lambda: index.search(queries, 21),
        "received 0": lambda: index.search(queries, 0),
        "already has 3": lambda: index.add(queries, ids=[3, 50, 51]),
        "distinct; received 7": lambda: index.add(queries, ids=[7, 7, 70]),
        "from 0 to 9223372036854775806; received -1": lambda: index.add(queries, ids=[-1, 60, 61]),
        "one an item": lambda: index.add(queries, ids=[60, 61]),
        "lacks 99": lambda: index.remove([1, 99]),
        "lacks 77": lambda: index.answer_vectors([[1, 77]]),
        "whole numbers.* of float64": lambda: index.remove([1.0]),
        "whole numbers.* of bool": lambda: index.remove(True),
        "whole numbers.* of <U1": lambda: index.remove("1"),
        "whole numbers.* of object": lambda: index.remove([2**70]),
        r"whole numbers.* shape \(1, 2\)": lambda: index.remove([[1, 2]]),
        "received 18446744073709551615": lambda: index.remove(np.array([2**64 - 1], np.uint64)),
        "finite": lambda: index.search({**queries, "mean": queries["mean"] * np.nan}, 1),
        "without any": lambda: index.search(queries, 3, candidates=10),
        "at least one item": lambda: Index.build(gaussians(0), "csd"),
        "`side` must be": lambda: Index.build(gallery, "csd", side="left"),
        "must be a Gaussian for csd": lambda: Index.build({"mean": np.eye(3)}, "csd"),
        "`candidates_by` must": lambda: Index.build(gallery, "csd", candidates_by="elements"),
        "`candidates` must be": lambda: Index.build(gallery, "kl", candidates=0),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    assert len(index) == 20  # nothing was added or removed on the way
    with pytest.raises(TypeError, match="must be a layer"):
        Index.build(gallery, 3)
    index.remove(np.arange(20))
    with pytest.raises(ValueError, match="empty"):
        index.search(queries, 1)


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


PROGRAM = Path(__file__).parent.parent / "helpers" / "killed_changes.py"


def counts_of(tmp_path, moments):
    done = forked.run(PROGRAM, tmp_path, moments, timeout=900)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    for found in counts.values():
        assert found["killed"] + found["through"] == moments
    assert sum(found["killed"] for found in counts.values()) > 0
    return counts


@pytest.mark.slow
def test_a_killed_change_leaves_the_old_or_the_new(tmp_path):
    counts = counts_of(tmp_path, 4)
    assert set(counts) == {"add", "remove", "save", "build", "update"}
