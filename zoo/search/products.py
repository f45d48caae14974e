"""FAISS' settings for matrix products, in force during our own searches only."""

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
