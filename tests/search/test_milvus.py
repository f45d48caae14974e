"""A gallery in the embedded Milvus against the flat index over the same gallery."""

import sys
from contextlib import closing

import numpy as np
import pytest

from zoo import similarities as S
from zoo.arrays import length, take
from zoo.errors import InputError
from zoo.search import Index
from zoo.search.milvus import MilvusIndex, rows, write_bulk

pymilvus = pytest.importorskip("pymilvus", reason="needs halo-zoo[milvus]")
IDS = np.arange(300) * 7 + 2


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    client = pymilvus.MilvusClient(str(tmp_path_factory.mktemp("milvus") / "birds.db"))
    yield client
    client.close()


@pytest.fixture(autouse=True)
def short_calls(monkeypatch):
    """Every test needs several calls for its rows and queries."""
    monkeypatch.setattr(rows, "_KEYS", 256)
    monkeypatch.setattr(rows, "_QUERIES", 7)
    monkeypatch.setattr(rows, "_BYTES", 2**13)


@pytest.fixture
def collection(client):
    """A name that no collection has."""
    yield "birds"
    if client.has_collection("birds"):
        client.drop_collection("birds")


def both(client, collection, gallery, similarity, **options):
    """The gallery in the flat index and in Milvus."""
    index = MilvusIndex.create(client, collection, gallery, similarity, **options)
    ids = IDS[: length(gallery)]
    index.add(gallery, ids)
    return Index.build(gallery, similarity, ids=ids, **options), index


def same(flat, index, queries, k, rtol=1e-4, **options):
    """Both find the same items with the same scores."""
    scores, ids = flat.search(queries, k, **options)
    found, found_ids = index.search(queries, k, **options)
    assert (found.dtype, found_ids.dtype) == (scores.dtype, ids.dtype)
    np.testing.assert_array_equal(found_ids, ids)
    np.testing.assert_allclose(found, scores, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "similarity",
    [
        S.closed_form_sampled_distance,
        S.ClosedFormSampledDistance(scale=3.0, shift=2.0),
        S.wasserstein_2,
        S.Wasserstein2(squared=True),
        S.Cosine(scale=14.0, learn_scale=True),
    ],
)
def test_ranks_as_the_flat_index_does(client, collection, gaussians, similarity):
    flat, index = both(client, collection, gaussians(300), similarity)
    queries = gaussians(20)
    same(flat, index, queries, 10)
    limit = float(np.median(flat._columns["uncertainty"].values))
    same(flat, index, queries, 200, max_uncertainty=limit)
    assert (index.search(queries, 200, max_uncertainty=limit)[1] == -1).sum() == 20 * 50
    gone = flat.search(queries, 3)[1][:, 0]
    for one in (flat, index):
        one.remove(np.unique(gone))
    assert len(index) == len(flat)
    same(flat, index, queries, 10)


def test_points_have_no_uncertainty(client, collection, gaussians):
    gallery, queries = ({"mean": gaussians(n)["mean"]} for n in (300, 4))
    flat, index = both(client, collection, gallery, "cosine")
    same(flat, index, queries, 10)
    with pytest.raises(ValueError, match="points have no uncertainty"):
        index.search(queries, 3, max_uncertainty=0.5)


def test_goes_on_after_a_restart(tmp_path, gaussians):
    gallery, more, queries = gaussians(300), gaussians(20), gaussians(5)
    layer = S.ClosedFormSampledDistance(scale=3.0)
    with closing(pymilvus.MilvusClient(str(tmp_path / "birds.db"))) as client:
        flat, _ = both(client, "birds", gallery, layer, uncertainty_measure="total_variance")
    with closing(pymilvus.MilvusClient(str(tmp_path / "birds.db"))) as client:
        index = MilvusIndex(client, "birds")
        assert index.similarity.get_config() == layer.get_config()
        for one in (flat, index):
            one.add(more, ids=np.arange(5000, 5020))
        same(flat, index, queries, 320)
        same(flat, index, queries, 10, max_uncertainty=1.2)
        with pytest.raises(InputError, match="for the similarity csd, not for wasserstein_2"):
            MilvusIndex(client, "birds", "wasserstein_2")
        with pytest.raises(InputError, match="there is no such collection"):
            MilvusIndex(client, "fish")
        with pytest.raises(InputError, match="the collection exists"):
            MilvusIndex.create(client, "birds", gallery, layer)
        client.create_collection("others", dimension=4)
        with pytest.raises(InputError, match="others: not a collection that"):
            MilvusIndex(client, "others")


@pytest.mark.parametrize(
    ("similarity", "masked"),
    [("maximum_pair", False), (S.smooth_chamfer, False), (S.Chamfer(), True)],
)
def test_sets_are_ranked_by_the_similarity(client, collection, sets, rng, similarity, masked):
    gallery, queries = sets(90), sets(10)
    if masked:
        for embedding in (gallery, queries):
            mask = rng.random(embedding["elements"].shape[:2]) < 0.6
            mask[:, 2] = True
            embedding["mask"] = mask
    flat, index = both(client, collection, gallery, similarity, side="captions")
    assert len(index) == 90
    for options in ({}, {"candidates": 10}, {"max_uncertainty": 0.5}):
        same(flat, index, queries, 10, rtol=1e-6, **options)
    for one in (flat, index):
        one.remove(IDS[:90:3])
    assert len(index) == 60
    same(flat, index, queries, 60, rtol=1e-6, candidates=2000)


def test_names_and_uncertainties_of_ones_own(client, collection, gaussians):
    gallery = gaussians(300)
    index = MilvusIndex.create(client, collection, gallery, "csd", names=True)
    unsure = np.linspace(0, 1, 300)
    index.add(gallery, IDS, [f"bird {i}.jpg" for i in IDS], unsure)
    _, ids = index.search(gaussians(3), 300, max_uncertainty=unsure[9])
    assert {*ids[:, :10].ravel()} == {*IDS[:10]}
    assert (ids[:, 10:] == -1).all()
    (row,) = client.get(collection, ids=[9], output_fields=["name", "uncertainty"])
    assert row["name"] == "bird 9.jpg"
    for names in (None, ["too few"], ["x" * 5000] * 2):
        with pytest.raises(ValueError, match="`names` must be"):
            index.add(gaussians(2), [10_000, 10_001], names)


@pytest.mark.parametrize("similarity", ["kl", "match_probability", S.bhattacharyya_distance])
def test_refuses_what_has_to_be_ranked_again(client, gaussians, similarity):
    with pytest.raises(ValueError, match="has to rank candidates itself"):
        MilvusIndex.create(client, "birds", gaussians(2), similarity)
    assert not client.has_collection("birds")


def test_refused_input_leaves_the_collection(client, collection, gaussians):
    gallery = gaussians(300)
    _, index = both(client, collection, gallery, "csd")
    wrong = {
        "already has 9": (gaussians(2), [1, 9]),
        "distinct": (gaussians(2), [1, 1]),
        "negative": (gaussians(2), [-1, 1]),
        "2 whole numbers": (gaussians(2), [1]),
        "must be a Gaussian": ({"mean": np.zeros((1, 24))}, [1]),
        "dimension 24": ({name: np.zeros((1, 8)) for name in gallery}, [1]),
        "finite numbers; received": (gaussians(2), [0, 1], None, [1.0, np.nan]),
        "has no names": (gaussians(2), [0, 1], ["a", "b"]),
    }
    for message, arguments in wrong.items():
        with pytest.raises(ValueError, match=message):
            index.add(*arguments)
    with pytest.raises(ValueError, match="lacks 3"):
        index.remove([2, 3])
    for k in (0, 16385, 1.5):
        with pytest.raises(ValueError, match="must be from 1 to 16,384"):
            index.search(gaussians(1), k)
    with pytest.raises(ValueError, match="`candidates` must be None"):
        index.search(gaussians(1), 3, candidates=10)
    with pytest.raises(ValueError, match="must be finite"):
        index.search(gaussians(1), 3, max_uncertainty=np.inf)
    with pytest.raises(ValueError, match="must be a Gaussian"):
        index.search(np.zeros((1, 4, 24), "float32"), 3)
    assert len(index) == 300


def test_an_item_without_elements_is_refused(client, collection, sets):
    gallery = {**sets(2), "mask": np.array([[True] * 4, [False] * 4])}
    index = MilvusIndex.create(client, collection, gallery, "chamfer")
    with pytest.raises(ValueError, match="sets of 1 to 4 elements"):
        index.add(gallery, [0, 1])
    index.add({"elements": gallery["elements"][:, :2]}, [0, 1])  # fewer are a set too
    assert index.search(gallery, 2)[1].shape == (2, 2)


@pytest.mark.parametrize("kind", ["gaussians", "sets"])
def test_bulk_files_hold_the_rows(tmp_path, client, collection, kind, request):
    pytest.importorskip("minio", reason="needs pymilvus[bulk_writer]")
    pytest.importorskip("azure.storage.blob", reason="needs pymilvus[bulk_writer]")
    parquet = pytest.importorskip("pyarrow.parquet")
    gallery = request.getfixturevalue(kind)(300)
    similarity = "csd" if kind == "gaussians" else "chamfer"
    parts = (slice(0, 130), slice(130, 300))
    blocks = [(IDS[p], take(gallery, p), [f"bird {i}" for i in IDS[p]]) for p in parts]
    files = write_bulk(tmp_path / "new" / "bulk", iter(blocks), similarity, file_bytes=20_000)
    assert len(files) > 1
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    index = MilvusIndex.create(client, collection, gallery, similarity, names=True)
    for ids, embeddings, names in blocks:
        index.add(embeddings, ids, names)
    stored = client.query(collection, filter="id >= 0", output_fields=["*"])
    key = lambda row: row["id"]  # noqa: E731
    stored, rows = sorted(stored, key=key), sorted(rows, key=key)
    assert len(rows) == len(stored) == 300 * (1 if kind == "gaussians" else 4)
    for one, other in zip(rows, stored, strict=True):
        assert one == {name: other[name] for name in one}
        assert one.keys() == other.keys()
    with pytest.raises(ValueError, match="above those of the blocks before"):
        write_bulk(tmp_path / "twice", [*blocks, *blocks], similarity)
    with pytest.raises(ValueError, match="at least one item"):
        write_bulk(tmp_path / "none", [], similarity)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_bulk(tmp_path / "file", blocks, similarity)


def test_missing_packages_are_named(tmp_path, monkeypatch, gaussians):
    monkeypatch.setitem(sys.modules, "minio", None)
    for name in [name for name in sys.modules if name.startswith("pymilvus.bulk_writer")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"pymilvus\[bulk_writer\]"):
        write_bulk(tmp_path, [(IDS, gaussians(300))], "csd")
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(InputError, match=r"halo-zoo\[milvus\]"):
        MilvusIndex.create(None, "birds", gaussians(2), "csd")
