"""What `halo_search.index` costs beside plain FAISS, beside the matrix product, and on sets.

`python -m benchmarks search`. The candidates take turns on one thread each, and rates are per
second of CPU.
"""

import contextlib
import functools
import tracemalloc

import faiss
import numpy as np

from benchmarks.report import Report
from benchmarks.timing import compare
from halo_search.index import SPACES, Index
from zoo import similarities

SEED = 0
SPREAD = 0.5  # standard deviation of log Σσ²
CSD = similarities.closed_form_sampled_distance
IMAGES, CAPTIONS, DIM = 5000, 25000, 1024
BATCHES = (1, 4, 16, 64, 256, 1024, 5000)
ITEMS, ELEMENTS = 20_000, 4
K = 10


def main():
    return [coco_size(), corrected_hubs(), sets(), adding()]


def coco_size():
    """Flat search at COCO's size against the product alone and against plain FAISS."""
    report = Report(f"Flat CSD search, {CAPTIONS:,} items, D = {DIM}", SEED)
    gallery, queries = gaussians(CAPTIONS, DIM, num_queries=IMAGES)
    space = SPACES["csd"]
    index = Index.build(gallery, CSD)
    vectors = space.gallery(gallery)
    plain = faiss.IndexFlatL2(vectors.shape[1])
    plain.add(vectors)
    # The product reads the same memory, whose pages are not those of a NumPy array.
    vectors = faiss.rev_swig_ptr(plain.get_xb(), vectors.size).reshape(vectors.shape)
    for batch in BATCHES:
        part = first(queries, batch)
        asked = space.queries(part)
        blocks = [slice(start, start + 1024) for start in range(0, batch, 1024)]
        with one_thread():
            times = compare(
                {
                    "zoo": lambda part=part: index.search(part, K),
                    "faiss": lambda asked=asked: plain.search(asked, K),
                    # In blocks, since the whole matrix is memory traffic that a search avoids.
                    "product": lambda asked=asked, blocks=blocks: [
                        asked[block] @ vectors.T for block in blocks
                    ][-1],
                },
                repeats=3 if batch == IMAGES else 7,
            )
        seconds = {name: measured.cpu_seconds for name, measured in times.items()}
        report.add(
            queries=batch,
            queries_per_cpu_second=batch / seconds["zoo"],
            of_plain_FAISS=seconds["faiss"] / seconds["zoo"],
            of_the_product=seconds["product"] / seconds["zoo"],
        )
    report.notes.append("plain FAISS with the same BLAS threshold, its distances not corrected")
    return report


def corrected_hubs():
    """An index whose hubs are corrected by 1,000 questions against the plain one."""
    report = Report("Hubs corrected by 1,000 questions, 200,000 × 256", SEED)
    gallery, queries = gaussians(200_000, 256)
    bank = first(gaussians(1000, 256, num_queries=1000)[1], 1000)
    part = first(queries, 1000)
    indexes = {}

    def build(name, hubs):
        indexes[name] = Index.build(gallery, CSD, hubs=hubs)

    ways = {"plain": None, "corrected": bank}
    builds = {name: functools.partial(build, name, hubs) for name, hubs in ways.items()}
    with one_thread():
        built = compare(builds, repeats=1, warmup=0)
        searches = {
            name: functools.partial(index.search, part, K) for name, index in indexes.items()
        }
        asked = compare(searches, repeats=3)
    seconds = [times[name].cpu_seconds for times in (built, asked) for name in indexes]
    report.add(
        plain_build_s=seconds[0],
        corrected_build_s=seconds[1],
        questions_ratio=seconds[3] / seconds[2],
    )
    return report


def sets():
    """Recall of sets by the number of candidates an element."""
    report = Report(f"Sets, {ITEMS:,} items of K = {ELEMENTS}, D = 128, smooth Chamfer", SEED)
    rng = np.random.default_rng(SEED)
    points = gaussians(ITEMS, 128, num_queries=200)
    gallery, queries = (
        {
            "elements": (
                side["mean"][:, None]
                + rng.normal(scale=0.05, size=(len(side["mean"]), ELEMENTS, 128))
            ).astype(np.float32)
        }
        for side in points
    )
    similarity = similarities.SmoothChamfer()
    scores = np.asarray(similarity(gallery, queries)).T
    truth = np.argsort(-scores, axis=1)[:, :K]
    index = Index.build(gallery, similarity)
    for candidates in (10, 50, 200):
        ids = index.search(queries, K, candidates=candidates)[1]
        report.add(candidates_an_element=candidates, recall=recall_of(ids, truth))
    return report


def adding():
    """Memory while a million items come in chunks, beyond what FAISS keeps of them."""
    report = Report("Adding 1,000,000 × 128 in chunks of 50,000", SEED)
    chunk = gaussians(50_000, 128)[0]
    index = Index.build(chunk, CSD)
    index.reserve(950_000)
    tracemalloc.start()
    while len(index) < 1_000_000:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        index.add(chunk)
        peak = tracemalloc.get_traced_memory()[1] - before
        if len(index) in (100_000, 500_000, 1_000_000):
            report.add(items=len(index), peak_MiB_beyond_FAISS=peak / 2**20)
    tracemalloc.stop()
    held = faiss.downcast_index(index.faiss.index).codes.size()
    report.notes.append(f"FAISS holds {held / 2**20:.0f} MiB, never moved")
    return report


def recall_of(ids, truth):
    """Mean share of each row of `truth` that is in the same row of `found`."""
    return np.mean(
        [np.isin(true, answered).mean() for true, answered in zip(truth, ids, strict=True)]
    )


@contextlib.contextmanager
def one_thread():
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def gaussians(items, dim, num_queries=1000, underlying=16, level=0.5):
    """A gallery and queries near some of its items: means are unit vectors of `underlying`
    dimensions in `dim`, uncertainties Σσ² lognormal around `level`."""
    rng = np.random.default_rng(SEED)
    directions = rng.normal(size=(underlying, dim)).astype(np.float32)
    codes = rng.normal(size=(items, underlying))
    near = codes[rng.integers(items, size=num_queries)]
    near = near + 0.5 * rng.normal(size=near.shape)
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
