"""FAISS' settings for products and threads, in force during our own searches only."""

import contextlib
import threading

import faiss

_SETTINGS = {
    # FAISS computes small batches pair by pair, at 15–41 % of the speed of the matrix product that
    # it uses for larger ones. Its memory per query is bounded, so one query may use the product.
    "distance_compute_blas_threshold": 1,
    # Items of one product: with FAISS' own 1,024 it is too small for BLAS, from 64 queries on up to
    # a fifth slower.
    "distance_compute_blas_database_bs": 2048,
}
# Products of numbers up to which a search runs on the calling thread: it takes some 4 ms there at
# most. OpenMP's threads spin while they wait for each other, which costs a server of single
# questions ten times the search's own CPU time, and on a busy machine as much of the wall clock.
_SMALL = 2**23
_lock, _before = threading.Lock(), []
_searches = 0


@contextlib.contextmanager
def matrix_products():
    """Lets FAISS use matrix products for small batches too.

    FAISS has these settings for the whole process only. The first of several searches at once sets
    them, and the last one gives back what was there.
    """
    global _searches
    with _lock:
        if not _searches:
            _before[:] = [getattr(faiss.cvar, name) for name in _SETTINGS]
            _set(_SETTINGS.values())
        _searches += 1
    try:
        yield
    finally:
        with _lock:
            _searches -= 1
            if not _searches:
                _set(_before)


def _set(values):
    for name, value in zip(_SETTINGS, values, strict=True):
        setattr(faiss.cvar, name, value)


@contextlib.contextmanager
def one_thread_if_small(index, count):
    """Keeps FAISS to the calling thread where a search is small.

    OpenMP has one number of threads for every calling thread, so other threads keep theirs.

    Args:
        index: the FAISS index.
        count: number of queries.
    """
    before = faiss.omp_get_max_threads()
    if before == 1 or count * index.ntotal * index.d > _SMALL:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
