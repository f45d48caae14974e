"""What a calibrated probability costs on top of a flat FAISS search.

`python -m benchmarks confidence`. 100,000 vectors of 512 dimensions; the search and everything that
confidence adds to it, gallery moments and features included, take turns on one thread each, if
`OPENBLAS_NUM_THREADS=1` is set for NumPy.
"""

import faiss
import numpy as np

from benchmarks.report import Report
from benchmarks.search import SEED, one_thread
from benchmarks.timing import compare
from zoo.confidence import Confidence, GalleryMoments
from zoo.confidence.scores import DEPTH
from zoo.search import Index
from zoo.similarities import SquaredEuclidean

ITEMS, DIM, CLASSES, CALIBRATION = 100_000, 512, 500, 1000
BATCHES = (1, 16, 256, 1024)
TARGET = 0.05


def main():
    report = Report(f"Probability on top of a flat search, {ITEMS:,} × {DIM}", SEED)
    gallery, labels, queries, own = vectors()
    index = Index.build({"mean": gallery}, SquaredEuclidean())
    flat = faiss.IndexFlatL2(DIM)
    flat.add(gallery)
    with one_thread():
        confidence = fitted(index, queries[:CALIBRATION], own[:CALIBRATION], labels)
        for batch in BATCHES:
            asked = queries[:batch]
            embedding = {"mean": asked}
            found = index.search(embedding, DEPTH)
            times = compare(
                {
                    "search": lambda asked=asked: flat.search(asked, DEPTH),
                    "confidence": lambda embedding=embedding, found=found: index.probability(
                        embedding, confidence, scores=found[0], ids=found[1]
                    ),
                },
                repeats=9 if batch < 1024 else 5,
            )
            search, ours = times["search"].cpu_seconds, times["confidence"].cpu_seconds
            report.add(
                queries=batch,
                search_ms=1000 * search,
                confidence_ms=1000 * ours,
                share_of_the_search=ours / search,
            )
        built = compare({"moments": lambda: GalleryMoments.of(gallery).mean}, repeats=1, warmup=0)
    report.notes.append(f"target: {TARGET:.0%} of the search for batches")
    report.notes.append(
        f"the gallery's moments, once: {built['moments'].cpu_seconds:.1f} CPU-seconds"
    )
    return report


def vectors():
    """Unit vectors near class centres, and queries about the classes."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(CLASSES, DIM)).astype(np.float32)
    labels = np.arange(ITEMS) % CLASSES
    own = rng.integers(CLASSES, size=max(BATCHES[-1], CALIBRATION))

    def near(rows, spread):
        x = centres[rows] + spread * rng.standard_normal((len(rows), DIM), dtype=np.float32)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    return near(labels, 1.5), labels, near(own, 3.5), own


def fitted(index, queries, own, labels):
    """A calibration with the features that those of runs have."""
    scores, ids = index.search({"mean": queries}, DEPTH)
    correct = labels[ids[:, 0]] == own
    return Confidence.fit(index.query_scores({"mean": queries}, scores, ids), correct)
