"""FAISS' flat index: its rows, their ids and vectors, in its own memory."""

import faiss
import numpy as np

NONE = -1  # how FAISS says that there is no row
METRICS = {"l2": faiss.METRIC_L2, "inner_product": faiss.METRIC_INNER_PRODUCT}


def create(metric, dim):
    """An empty `faiss.IndexIDMap` over a flat index; `metric` is a name of `METRICS`."""
    is_l2 = METRICS[metric] == faiss.METRIC_L2
    return faiss.IndexIDMap(faiss.IndexFlatL2(dim) if is_l2 else faiss.IndexFlatIP(dim))


def rows(index):
    """The flat index below the ids, with its own type; it knows rows."""
    return faiss.downcast_index(index.index)


def row_ids(index):
    """The id of every row, int64, FAISS' own memory; ask again when rows have changed."""
    if not index.ntotal:
        return np.empty(0, np.int64)
    return faiss.rev_swig_ptr(index.id_map.data(), index.ntotal)


def vectors(flat):
    """The vectors, float32 `(rows, dim)`: FAISS' own memory, while it has rows."""
    if not flat.ntotal:
        return np.empty((0, flat.d), np.float32)
    return faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(-1, flat.d)


def reserve(flat, count):
    """Makes room for further rows at once, so that adding in chunks never copies the index."""
    # Growing and shrinking again keeps the capacity; the bindings have no `reserve`.
    used = flat.codes.size()
    flat.codes.resize(used + count * flat.code_size)
    flat.codes.resize(used)


def search_parameters(mask):
    """`(FAISS' parameters or None, what must stay alive while they are used)`; see `candidates`."""
    if mask is None:
        return None, ()
    bits = np.packbits(mask, bitorder="little")
    # FAISS takes the size in bytes of the bitmap, not in rows.
    selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
    return faiss.SearchParameters(sel=selector), (selector, bits)


def take_back(index, count):
    """Removes the rows behind the first `count`."""
    row_ids(index)[count:] = NONE
    remove(index, np.array([NONE]))


def remove(index, ids):
    """Removes the rows of some ids; those behind them move up."""
    index.remove_ids(ids)
    flat = rows(index)
    if hasattr(flat, "clear_l2norms"):  # of other rows now
        flat.clear_l2norms()
