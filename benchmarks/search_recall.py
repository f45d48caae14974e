"""Recall against speed as uncertainties vary: D+1 coordinates beside the search for means.

`python -m benchmarks search_recall --out DIR`; then `python -m benchmarks.search_plot` draws it.

A gallery of Gaussians and queries near some of its items. Means are unit vectors of 16 underlying
dimensions in D, uncertainties Σσ² are lognormal. Recall@10 is against the exact CSD.
The figures of a table come from one process, in which the candidates take turns on one thread each;
they are per second of CPU, so that whatever else the machine does cancels.
"""

import contextlib

import faiss
import numpy as np

from benchmarks.report import Report
from benchmarks.timing import compare
from zoo import similarities
from zoo.search import Index, tune
from zoo.search.tuning import recall_of

SEED = 0
K = 10
RERANKED = (50, 100, 1000)
ITEMS = 50_000  # of the galleries of one spread each
LEVELS = (0.05, 0.3, 1.0, 4.0, 16.0)  # medians of Σσ²; those of ‖μ − μ'‖² are near 2
SPREAD = 0.5  # standard deviation of log Σσ²
GRAPH = {"links": 32, "build_effort": 100}
CSD = similarities.closed_form_sampled_distance


def main():
    return [million(), wide(), by_spread(), clustered()]


def million():
    ivfpq = {"lists": 1024, "training": 40_000}
    return curve("1,000,000 × 128", gaussians(1_000_000, 128), 256, 0.99, ivfpq)


def wide():
    ivfpq = {"lists": 256, "code_bytes": 128, "training": 10_000}
    return curve("100,000 × 1024", gaussians(100_000, 1024), 256, 0.985, ivfpq)


def curve(sizes, data, num_queries, recall, ivfpq):
    """Recall and speed of every kind over one gallery."""
    gallery, queries = data
    asked = first(queries, num_queries)
    flat = Index.build(gallery, CSD)
    truth = flat.search(asked, K)[1]
    # Tuned on other queries than those that are reported.
    graph = Index.build(gallery, CSD, kind="hnsw", options=GRAPH)
    tuned = tune(graph, last(queries, num_queries), K, recall + 0.003)
    sample, options = first(gallery, ivfpq.pop("training")), ivfpq
    coded = Index.build(gallery, CSD, kind="ivfpq", training=sample, options=options)
    means = Index.build(gallery, CSD, candidates_by="euclidean")
    runs = {
        "flat, D+1": lambda: flat.search(asked, K),
        f"HNSW, D+1, efSearch {graph.effort}": lambda: graph.search(asked, K),
        f"IVF-PQ, D+1, nprobe {coded.effort}": lambda: coded.search(asked, K),
    }
    for candidates in RERANKED:
        runs[f"flat μ, then {candidates} by σ"] = lambda n=candidates: means.search(
            asked, K, candidates=n
        )
    single = first(queries, 8)
    alone = {
        name: lambda index=index: [index.search(row, K) for row in one_by_one(single)]
        for name, index in zip(runs, (flat, graph, coded), strict=False)
    }
    with one_thread():
        times = compare(runs, repeats=3, warmup=1)
        singly = compare(alone, repeats=3, warmup=1)
    report = Report(f"Recall@{K} against queries/s, {sizes}, Σσ² lognormal ({SPREAD})", SEED)
    base, base_singly = (measured["flat, D+1"].cpu_seconds for measured in (times, singly))
    for name, run in runs.items():
        seconds = times[name].cpu_seconds
        report.add(
            index=name,
            recall=recall_of(run()[1], truth),
            queries_per_cpu_second=num_queries / seconds,
            times_flat=base / seconds,
            one_at_a_time=base_singly / singly[name].cpu_seconds if name in singly else "",
        )
    report.notes.append(
        f"batches of {num_queries} queries, one matrix product; one at a time: "
        f"times flat for one query after the other; HNSW with {GRAPH}"
    )
    report.notes.append(
        "efSearch tried on other queries: "
        + ", ".join(f"{row['effort']}: {row['recall']:.4f}" for row in tuned)
    )
    return report


def by_spread():
    report = Report(f"Recall@{K} as uncertainties vary more, {ITEMS:,} × 128", SEED)
    for level in LEVELS:
        gallery, queries = gaussians(ITEMS, 128, level=level)
        report.add(median=level, **one_spread(gallery, queries))
    report.notes.append(
        "spread: standard deviation of Σσ² over that of ‖μ − μ'‖² of a query's gallery"
    )
    return report


def clustered():
    report = Report(f"Recall@{K}, {ITEMS // 100} tight clusters of 100 items, D = 128", SEED)
    for level in (0.05, 1.0):
        gallery, queries = gaussians(ITEMS, 128, level=level, clusters=ITEMS // 100)
        report.add(median=level, **one_spread(gallery, queries))
    return report


def one_spread(gallery, queries, num_queries=256):
    asked = first(queries, num_queries)
    truth = Index.build(gallery, CSD).search(asked, K)[1]
    row = {"spread": relative_spread(gallery, asked)}
    graph = Index.build(gallery, CSD, kind="hnsw", options=GRAPH)
    graph.effort = 64
    row["HNSW_ef_64"] = recall_of(graph.search(asked, K)[1], truth)
    tune(graph, last(queries, num_queries), K, 0.99, most=4096)
    row["ef_tuned"] = graph.effort
    row["HNSW_tuned"] = recall_of(graph.search(asked, K)[1], truth)
    sample = first(gallery, 10_000)
    coded = Index.build(gallery, CSD, kind="ivfpq", training=sample)
    row["IVF-PQ"] = recall_of(coded.search(asked, K)[1], truth)
    means = Index.build(gallery, CSD, candidates_by="euclidean")
    for count in RERANKED:
        row[f"μ_then_{count}"] = recall_of(means.search(asked, K, candidates=count)[1], truth)
    return row


@contextlib.contextmanager
def one_thread():
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def relative_spread(gallery, queries):
    """How much uncertainties vary beside distances, in one number that any model has."""
    variance = np.exp(gallery["log_variance"]).sum(axis=1)
    gallery, queries = first(gallery, 20_000)["mean"], first(queries, 500)["mean"]
    squared = (gallery**2).sum(1) - 2.0 * queries @ gallery.T
    return float(variance.std() / squared.std(axis=1).mean())


def gaussians(items, dim, level=0.5, clusters=None, num_queries=1000, underlying=16):
    """A gallery and queries: float32 dicts.

    Args:
        level: median of Σσ².
        clusters: of how many points the means are slight variations, None for none.
    """
    rng = np.random.default_rng(SEED)
    directions = rng.normal(size=(underlying, dim)).astype(np.float32)
    codes = rng.normal(size=(items if clusters is None else clusters, underlying))
    if clusters is not None:
        codes = np.repeat(codes, items // clusters, axis=0)
        codes += 0.05 * rng.normal(size=codes.shape)
    near = codes[rng.integers(items, size=num_queries)]
    near = near + (0.5 if clusters is None else 0.05) * rng.normal(size=near.shape)
    variance = level * np.exp(SPREAD * rng.normal(size=items)) / dim
    log_variance = np.log(variance).astype(np.float32)
    gallery = {
        "mean": on_sphere(codes, directions),
        "log_variance": np.repeat(log_variance[:, None], dim, axis=1),
    }
    wanted = np.log(level * np.exp(SPREAD * rng.normal(size=num_queries)) / dim)
    queries = {
        "mean": on_sphere(near, directions),
        "log_variance": np.repeat(wanted[:, None].astype(np.float32), dim, axis=1),
    }
    return gallery, queries


def on_sphere(codes, directions):
    means = codes.astype(np.float32) @ directions
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means


def first(embedding, count):
    return {key: value[:count] for key, value in embedding.items()}


def one_by_one(embedding):
    count = len(embedding["mean"])
    return [{key: value[i : i + 1] for key, value in embedding.items()} for i in range(count)]


def last(embedding, count):
    return {key: value[-count:] for key, value in embedding.items()}
