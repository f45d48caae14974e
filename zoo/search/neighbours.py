"""One FAISS search: exact where the index is flat, filtered where rows are left out."""

import faiss
import numpy as np

from zoo.search import exact, kinds
from zoo.search.products import matrix_products

FEW = 0.02  # share of the rows below which a graph is scanned: its edges mostly lead astray


def nearest(kind, index, queries, k, mask=None, effort=None):
    """The k nearest rows of every query.

    Args:
        kind: of `zoo.search.kinds.KINDS`.
        index: the FAISS index, of rows; see `kinds.rows`.
        queries: float32 `(queries, dim)`.
        k: how many, at most `index.ntotal`.
        mask: `(rows,)` boolean, the rows that may be found; None for all.
        effort: that of an approximate index, see `kinds.get_effort`.

    Returns:
        `(FAISS' values, rows)`, both `(queries, k)`, nearest first; rows are −1 where there are no
        more.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    if mask is not None and not mask.any():
        return np.full((len(queries), k), np.nan, np.float32), np.full((len(queries), k), -1)
    if kind == "flat" and index.metric_type == faiss.METRIC_L2 and mask is None:
        with matrix_products():
            return exact.search_l2(index, queries, k)
    if kind == "hnsw" and mask is not None and np.count_nonzero(mask) < FEW * len(mask):
        kind, index = "flat", kinds.flat_part(kind, index)
    parameters, _kept = kinds.search_parameters(kind, effort, k, mask)
    if kind == "hnsw":
        return index.search(queries, k, params=parameters)
    with matrix_products():
        return index.search(queries, k, params=parameters)
