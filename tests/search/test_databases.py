"""The index's vectors in vector databases: the same order, and the same judge."""

import numpy as np
import pytest

from zoo.confidence import calibrate_on
from zoo.embeddings.arrays import take
from zoo.search import SPACES, Index

pytestmark = pytest.mark.very_slow  # they are no dependency: see docs/howto/databases.md
METRICS = {"l2": ("l2", "EUCLID"), "inner_product": ("dot", "DOT")}


class Lance:
    def __init__(self, rows, ids, metric, folder):
        lancedb = pytest.importorskip("lancedb", reason="pip install lancedb")
        self.metric, self.connection = METRICS[metric][0], lancedb.connect(folder)
        self.table = self.connection.create_table("photos", self._records(rows, ids))

    @staticmethod
    def _records(rows, ids):
        return [{"id": int(one), "vector": row} for one, row in zip(ids, rows, strict=True)]

    def add(self, rows, ids):
        self.table.add(self._records(rows, ids))

    def remove(self, ids):
        self.table.delete(f"id IN ({', '.join(map(str, ids))})")

    def search(self, asked, k):
        """FAISS' values and ids, `(Q, k)`."""
        values, ids = [], []
        for vector in asked:
            found = self.table.search(vector).distance_type(self.metric).limit(k).to_list()
            ids.append([one["id"] for one in found])
            values.append([one["_distance"] for one in found])
        values = np.array(values)
        return (1 - values if self.metric == "dot" else values), np.array(ids)


class Qdrant:
    def __init__(self, rows, ids, metric, folder):
        self.qdrant = pytest.importorskip("qdrant_client", reason="pip install qdrant-client")
        self.models, self.is_l2 = self.qdrant.models, metric == "l2"
        self.client = self.qdrant.QdrantClient(path=str(folder))
        distance = getattr(self.models.Distance, METRICS[metric][1])
        self.client.create_collection(
            "photos", self.models.VectorParams(size=rows.shape[1], distance=distance)
        )
        self.add(rows, ids)

    def add(self, rows, ids):
        points = [
            self.models.PointStruct(id=int(one), vector=row.tolist())
            for one, row in zip(ids, rows, strict=True)
        ]
        self.client.upsert("photos", points)

    def remove(self, ids):
        self.client.delete("photos", self.models.PointIdsList(points=list(map(int, ids))))

    def search(self, asked, k):
        """FAISS' values and ids, `(Q, k)`."""
        values, ids = [], []
        for vector in asked:
            found = self.client.query_points("photos", query=vector.tolist(), limit=k).points
            ids.append([one.id for one in found])
            values.append([one.score for one in found])
        values = np.array(values)
        return (values**2 if self.is_l2 else values), np.array(ids)


@pytest.fixture
def points(rng):
    directions = rng.normal(size=(6, 24))

    def make(items):
        values = 0.3 + rng.normal(size=(items, 6)) @ directions / 6
        return {"mean": values.astype("float32")}

    return make


@pytest.mark.parametrize("engine", [Lance, Qdrant])
@pytest.mark.parametrize("hubs", [False, True])
@pytest.mark.parametrize(
    ("kind", "similarity"),
    [("points", "cosine"), ("points", "euclidean"), ("gaussians", "csd")],
)
def test_a_database_answers_as_the_index(
    engine, hubs, kind, similarity, points, gaussians, rng, tmp_path
):
    if hubs and similarity == "euclidean":
        pytest.skip("a distance with a root has no corrected hubs")
    make = points if kind == "points" else gaussians
    items, more, bank = make(400), make(100), make(150)
    index = Index.build(items, similarity, hubs=bank if hubs else None)
    space = SPACES[index.description["space"]] if index.hubs is None else index.hubs
    database = engine(space.gallery(items), index.ids, space.metric, tmp_path)

    def near(chosen):
        """Questions near some items."""
        own = take(items, chosen)
        return {**own, "mean": own["mean"] + 0.2 * rng.normal(size=own["mean"].shape)}

    def same(k=20):
        asked = near(np.arange(15))
        scores, ids = index.search(asked, k)
        values, found = database.search(index.query_vectors(asked), k)
        own = space.scores(values, asked, index.similarity.scorer())
        np.testing.assert_allclose(own, scores, rtol=1e-3, atol=1e-3)
        # Only items that score alike to float32 may change places.
        apart = np.abs(np.diff(scores, axis=1)) > 1e-4
        sure = np.pad(apart, [(0, 0), (1, 0)], constant_values=True)
        sure &= np.pad(apart, [(0, 0), (0, 1)], constant_values=False)
        assert sure.mean() > 0.5
        np.testing.assert_array_equal(found[sure], ids[sure])
        return asked, own, found

    same()
    database.add(space.gallery(more), index.add(more))  # growth
    database.remove([3, 17, 420])
    index.remove([3, 17, 420])
    asked, scores, ids = same()
    # The judge reads what the database found.
    probes = np.arange(100, 400)
    confidence = calibrate_on(index, near(probes), take(items, probes))
    of_database = index.probability(asked, confidence, scores=scores, ids=ids)
    of_index = index.probability(asked, confidence)
    np.testing.assert_allclose(of_database, of_index, atol=0.01)
