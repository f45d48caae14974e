"""What it costs to calibrate an index by probes.

`python -m benchmarks probes`. 2,000 probes over 100,000 vectors of 512 dimensions, beside searching
the same 2,000 queries in the same flat index; and what a judgement adds to a single question.
"""

import numpy as np

from benchmarks.report import Report
from benchmarks.search import SEED
from benchmarks.timing import compare, measure
from zoo.confidence import calibrate_on
from zoo.confidence.scores import DEPTH
from zoo.retriever import Judge
from zoo.search import Index

ITEMS, DIM, PROBES = 100_000, 512, 2000
TARGET, TARGET_MS = 1.5, 0.3


def main():
    report = Report(f"{PROBES:,} probes over {ITEMS:,} × {DIM}", SEED)
    rng = np.random.default_rng(SEED)
    gallery, own = (_unit(rng.standard_normal((n, DIM), np.float32)) for n in (ITEMS, PROBES))
    away = rng.uniform(0.05, 0.5, (PROBES, 1)).astype(np.float32)
    queries = _unit(own + away * rng.standard_normal(own.shape, np.float32))
    index = Index.build({"mean": gallery}, "cosine")
    confidence = calibrate_on(index, queries, own)  # the gallery's moments are made once
    times = compare(
        {
            "search": lambda: index.search(queries, DEPTH),
            "calibrate": lambda: calibrate_on(index, queries, own),
        },
        repeats=5,
    )
    search, ours = times["search"].seconds, times["calibrate"].seconds
    report.add(
        what="calibrate, beside the search of the probes",
        search_ms=1000 * search,
        ours_ms=1000 * ours,
        ratio=ours / search,
    )
    judge, asked = Judge(confidence, gallery=confidence.gallery), {"mean": queries[:1]}
    found = index.search(asked, DEPTH)
    both = {
        "search": lambda: index.search(asked, DEPTH),
        "judge": lambda: judge(index.query_scores(asked, *found, copies=judge.copies)),
    }
    times = compare(both, repeats=50)
    alone = measure(lambda: [both["judge"]() for _ in range(100)]).scaled(1 / 100)
    search = times["search"]
    for what, ours in (
        ("judge one question, after its search", times["judge"]),
        ("judge one question, again and again", alone),
    ):
        report.add(
            what=what,
            search_ms=1000 * search.seconds,
            ours_ms=1000 * ours.seconds,
            ratio=ours.seconds / search.seconds,
        )
    report.notes.append("a search of this size leaves nothing of the judge in the caches")
    report.notes.append(f"targets: {TARGET} times the search; {TARGET_MS} ms a question")
    return report


def _unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)
