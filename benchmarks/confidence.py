"""What a calibrated probability costs on top of a flat FAISS search.

`python -m benchmarks confidence`. 100,000 vectors of 512 dimensions; the search and everything that
confidence adds to it, gallery moments and features included, take turns on one thread each, if
`OPENBLAS_NUM_THREADS=1` is set for NumPy.
"""

import faiss
import numpy as np

from benchmarks.report import Report
from benchmarks.search_recall import SEED, one_thread
from benchmarks.timing import compare
from zoo.confidence import PORTABLE, Confidence, GalleryMoments, QueryScores
from zoo.confidence.scores import DEPTH

ITEMS, DIM, CLASSES, CALIBRATION = 100_000, 512, 500, 1000
BATCHES = (1, 16, 256, 1024)
TARGET = 0.05


def main():
    report = Report(f"Probability on top of a flat search, {ITEMS:,} × {DIM}", SEED)
    gallery, labels, queries, own = vectors()
    index = faiss.IndexFlatL2(DIM)
    index.add(gallery)
    with one_thread():
        moments = GalleryMoments.of(gallery)
        confidence = fitted(index, moments, queries[:CALIBRATION], own[:CALIBRATION], labels)
        for batch in BATCHES:
            asked = queries[:batch]
            found = index.search(asked, DEPTH)[0]
            times = compare(
                {
                    "search": lambda asked=asked: index.search(asked, DEPTH),
                    "confidence": lambda asked=asked, found=found: confidence.probability(
                        scores(moments, asked, found)
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


def scores(moments, queries, squared_distances):
    return QueryScores(-squared_distances, *moments.squared_distance_scores(queries), moments.count)


def fitted(index, moments, queries, own, labels):
    """A calibration with the features that those of runs have."""
    squared, rows = index.search(queries, DEPTH)
    correct = labels[rows[:, 0]] == own
    return Confidence.fit(scores(moments, queries, squared), correct, names=PORTABLE)
