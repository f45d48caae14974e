"""Ten million Gaussians on the disk: shards, an IVF-PQ index of them, and exact ranking.

`python -m benchmarks large_index`. 10,000,000 × 128 as `search_recall` draws them, float16 shards;
the index is built of the shards and searched in processes of their own, whose peak memory is
reported (resident, memory-mapped pages included). The truth is exact search by blocks. Beside it
HNSW over the first million items. It needs 12 GB of disk, and about half an hour.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np

from benchmarks.report import Report
from benchmarks.search_recall import SPREAD, on_sphere
from benchmarks.timing import compare
from zoo import collection, similarities
from zoo.collection import Collection, Encoded, Work
from zoo.embeddings.arrays import as_arrays
from zoo.search import SPACES, Index, from_shards, tune
from zoo.search.tuning import recall_of

ITEMS = int(os.environ.get("HALO_BENCHMARK_ITEMS", 10_000_000))
SHARD, DIM, UNDERLYING, LEVEL, SEED = 100_000, 128, 16, 0.5, 0
QUERIES, K, CANDIDATES, EFFORTS = 500, 10, 400, (64, 128, 256)
LISTS, CODE_BYTES, TRAINING = 4096, 64, 200_000
GIB, MEMORY_GIB, RECALL = 2**30, 4.0, 0.95
CSD = similarities.closed_form_sampled_distance


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("HALO_BENCHMARK_DISK")) as folder:
        folder = Path(folder)
        shards, queries = folder / "shards", gaussians(-1, QUERIES)
        np.savez(folder / "queries.npz", **queries)
        started = time.perf_counter()
        pieces = [Work(n, "texts", (), (str(n),)) for n in range(-(-ITEMS // SHARD))]
        collection.encode(pieces, drawn, shards, {}, "float16", progress=False)
        drawing = time.perf_counter() - started
        truth, exact = exact_search(shards, queries)
        built = in_a_process("build", shards, folder)
        searched = in_a_process("search", shards, folder)
        stages = Report(f"An index of {ITEMS:,} × {DIM} Gaussians on the disk", SEED)
        stages.add(stage="write float16 shards", seconds=drawing, bytes=size(shards))
        stages.add(stage="exact search by blocks", seconds=exact)
        stages.add(stage="train, add, save", **built, bytes=size(folder / "index"))
        stages.add(stage="load", seconds=searched["loading"])
        stages.add(stage=f"{len(EFFORTS)} searches", peak_gib=searched["peak_gib"])
        stages.notes.append(
            f"IVF-PQ of {LISTS} lists and {CODE_BYTES} bytes, {TRAINING:,} training items; "
            f"{QUERIES} queries; at most {MEMORY_GIB} GiB are wanted"
        )
        return [stages, speed(shards, folder, truth)]


def gaussians(number, items):
    """Block `number` of the gallery, or the queries, which are near items of block 0."""
    axes = np.random.default_rng(SEED).normal(size=(UNDERLYING, DIM)).astype(np.float32)
    rng = np.random.default_rng((SEED, max(number, 0)))
    codes = rng.normal(size=(SHARD if number < 0 else items, UNDERLYING))
    if number < 0:
        rng = np.random.default_rng((SEED, 1 << 30))
        codes = codes[:items] + 0.5 * rng.normal(size=(items, UNDERLYING))
    variance = np.log(LEVEL * np.exp(SPREAD * rng.normal(size=len(codes))) / DIM)
    log_variance = np.repeat(variance[:, None].astype(np.float32), DIM, axis=1)
    return {"mean": on_sphere(codes, axes), "log_variance": log_variance}


def drawn(work, advance):
    advance(1)
    start = work.number * SHARD
    items = min(SHARD, ITEMS - start)
    return Encoded([str(start + row) for row in range(items)], gaussians(work.number, items))


def exact_search(shards, queries):
    """The nearest items of every query and the seconds that they took."""
    started = time.perf_counter()
    space = SPACES["csd"]
    asked, best, start = space.queries(queries), faiss.ResultHeap(QUERIES, K), 0
    for shard in Collection(shards).shards():
        rows = space.gallery(as_arrays(shard.arrays))
        distances, found = faiss.knn(asked, rows, K)
        best.add_result(distances, found + start)
        start += len(rows)
    best.finalize()
    return best.I, time.perf_counter() - started


def in_a_process(stage, *arguments):
    command = [sys.executable, "-m", "benchmarks.large_index", stage, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def build(shards, folder):
    started = time.perf_counter()
    from_shards.build(
        Collection(shards),
        CSD,
        folder / "index",
        kind="ivfpq",
        candidates=CANDIDATES,
        training_rows=TRAINING,
        options={"lists": LISTS, "code_bytes": CODE_BYTES},
    )
    return {"seconds": time.perf_counter() - started, "peak_gib": peak()}


def search(shards, folder):
    queries = dict(np.load(folder / "queries.npz"))
    started = time.perf_counter()
    index = Index.load(folder / "index", verify=False)
    loading = time.perf_counter() - started
    index.search(first(queries, 2), K)  # its first call makes a graph
    for effort in EFFORTS:
        index.effort = effort
        cpu = time.process_time()
        ids = index.search(queries, K)[1]
        np.savez(folder / f"found-{effort}.npz", ids=ids, seconds=time.process_time() - cpu)
    return {"loading": loading, "peak_gib": peak()}


def speed(shards, folder, truth):
    """Recall and speed beside HNSW over a tenth of the items."""
    queries = gaussians(-1, QUERIES)
    parts = [s.arrays for s, _ in zip(Collection(shards).shards(), range(10), strict=False)]
    million = as_arrays(collection.joined(parts))
    index = Index.build(million, CSD, kind="hnsw")
    tune(index, gaussians(-1, 2 * QUERIES), K, recall=0.97)
    flat = Index.build(million, CSD)
    truth_of_million = flat.search(queries, K)[1]
    measured = compare({"hnsw": lambda: index.search(queries, K)}, repeats=3)["hnsw"]
    report = Report("Recall and queries a CPU-second", SEED)
    for effort in EFFORTS:
        found = np.load(folder / f"found-{effort}.npz")
        report.add(
            index=f"IVF-PQ of {ITEMS:,}, nprobe {effort}, {CANDIDATES} ranked exactly",
            recall=recall_of(found["ids"], truth),
            queries_per_cpu_second=QUERIES / float(found["seconds"]),
        )
    report.add(
        index=f"HNSW of {len(million['mean']):,}, efSearch {index.effort}",
        recall=recall_of(index.search(queries, K)[1], truth_of_million),
        queries_per_cpu_second=QUERIES / measured.cpu_seconds,
    )
    report.notes.append(f"recall@{K} against exact search; at least {RECALL} is wanted")
    return report


def first(embedding, count):
    return {key: value[:count] for key, value in embedding.items()}


def peak():
    """The most that this process had resident, in GiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    stage, *paths = sys.argv[1:]
    print(json.dumps({"build": build, "search": search}[stage](*map(Path, paths))))
