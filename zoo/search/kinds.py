"""The kinds of FAISS index: flat (exact), HNSW (a graph) and IVF-PQ (compressed)."""

import threading

import faiss
import numpy as np

from zoo.cli.bounds import KINDS

REMOVED = -1  # id of a row that is passed over, which is also how FAISS says "none"
METRICS = {"l2": faiss.METRIC_L2, "inner_product": faiss.METRIC_INNER_PRODUCT}
_OPTIONS = {
    "flat": (),
    "hnsw": ("links", "build_effort"),
    "ivfpq": ("lists", "code_bytes"),
}
EFFORT = {"hnsw": 128, "ivfpq": 32}
TRAINING_ROWS = 100_000
_map_lock = threading.Lock()
_MIN_TRAINING = 256  # centroids of one byte of a product quantizer


def create(kind, metric, training, total, options):
    """An empty `faiss.IndexIDMap`, over an index that is trained where its kind needs that.

    Args:
        kind: one of `KINDS`.
        metric: of the space, a name of `METRICS`.
        training: `(rows, dim)` vectors of the space; their dimension is the index's.
        total: how many vectors are to come, as far as is known.
        options: of the kind. HNSW: `links` a node (32; twice that on the lowest level) and
            `build_effort` (100). IVF-PQ: `lists` (4√total, as far as the training vectors reach),
            `code_bytes` an item (one byte for four dimensions).

    Raises:
        ValueError: if the kind or an option is unknown, or there is too little to train on.
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {KINDS}; received {kind!r}")
    unknown = sorted(set(options) - set(_OPTIONS[kind]))
    if unknown:
        raise ValueError(
            f"`options` of kind {kind!r} must be among {_OPTIONS[kind]}; received {unknown}"
        )
    dim, metric = training.shape[1], METRICS[metric]
    if kind == "flat":
        index = faiss.IndexFlatL2(dim) if metric == faiss.METRIC_L2 else faiss.IndexFlatIP(dim)
    elif kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, options.get("links", 32), metric)
        index.hnsw.efConstruction = options.get("build_effort", 100)
        index.hnsw.efSearch = EFFORT["hnsw"]
    else:
        index = _ivfpq(metric, training, total, options)
    return faiss.IndexIDMap(index)


def rows(index):
    """The index below the ids, with its own type; it knows rows."""
    return faiss.downcast_index(index.index)


def row_ids(index):
    """The id of every row, int64, FAISS' own memory; to be asked for again when rows change."""
    if not index.ntotal:
        return np.empty(0, np.int64)
    return faiss.rev_swig_ptr(index.id_map.data(), index.ntotal)


def _ivfpq(metric, training, total, options):
    rows, dim = training.shape
    if rows < _MIN_TRAINING:
        raise ValueError(
            f"kind 'ivfpq' needs at least {_MIN_TRAINING} vectors to train on; received {rows}"
        )
    code_bytes = options.get("code_bytes", max(1, dim // 4))
    # FAISS wants equal parts of the vector, so it gets zeros behind it. The rotation spreads the
    # extra coordinate of CSD, which may vary far more than the others, over all the parts.
    padded = -(-dim // code_bytes) * code_bytes
    rotation = faiss.RandomRotationMatrix(dim, padded)
    rotation.init(0)
    enough = max(1, rows // 39)  # FAISS' own least number of training vectors a list
    lists = options.get("lists") or min(enough, max(1, int(4 * np.sqrt(max(total, rows)))))
    quantizer = faiss.IndexFlat(padded, metric)
    ivf = faiss.IndexIVFPQ(quantizer, padded, lists, code_bytes, 8, metric)
    ivf.nprobe = min(EFFORT["ivfpq"], lists)
    # Fewer only make a coarser index, which is the user's own choice and needs no warning a part.
    ivf.cp.min_points_per_centroid = ivf.pq.cp.min_points_per_centroid = 1
    index = faiss.IndexPreTransform(rotation, ivf)
    index.train(np.ascontiguousarray(training))
    return index


def parts(kind, index):
    """The part of what `rows` gives whose search parameters can be set."""
    return faiss.extract_index_ivf(index) if kind == "ivfpq" else index


def get_effort(kind, index):
    """efSearch or nprobe; None for flat."""
    if kind == "flat":
        return None
    part = parts(kind, index)
    return part.hnsw.efSearch if kind == "hnsw" else part.nprobe


def set_effort(kind, index, effort):
    """Sets efSearch or nprobe."""
    if kind == "flat":
        raise ValueError("`effort` must not be set for kind 'flat', which is exact")
    if effort != int(effort) or effort < 1:
        raise ValueError(f"`effort` must be a whole number of at least 1; received {effort}")
    part = parts(kind, index)
    if kind == "hnsw":
        part.hnsw.efSearch = int(effort)
    else:
        part.nprobe = min(int(effort), part.nlist)


def flat_part(kind, index):
    """The flat index with the vectors themselves, or None where only codes are kept."""
    if kind == "ivfpq":
        return None
    return index if kind == "flat" else faiss.downcast_index(index.storage)


def flat_vectors(flat):
    """The vectors of a flat index, float32 `(rows, dim)`: FAISS' own memory, while it has rows."""
    return faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(-1, flat.d)


def reconstruct(kind, index, numbers):
    """The vectors of some rows, float32 `(len(numbers), dim)`.

    Of IVF-PQ they are what the codes stand for; it keeps the place of every row from then on.
    """
    flat = flat_part(kind, index)
    if flat is not None and flat.ntotal:
        return flat_vectors(flat)[numbers]
    if kind == "ivfpq":
        with _map_lock:
            if (ivf := parts(kind, index)).direct_map.no():
                ivf.make_direct_map()
    return index.reconstruct_batch(numbers)


def reserve(kind, index, rows):
    """Makes room for further rows at once, so that adding in chunks never copies the index."""
    flat = flat_part(kind, index)
    if flat is not None:
        # Growing and shrinking again keeps the capacity; the bindings have no `reserve`.
        used = flat.codes.size()
        flat.codes.resize(used + rows * flat.code_size)
        flat.codes.resize(used)


def search_parameters(kind, effort, k, mask=None):
    """`(FAISS' parameters of one search or None, what has to stay alive while they are used)`.

    The effort is at least k. That of the index is given, since to ask FAISS takes a tenth of a
    search. The mask, `(rows,)` booleans, says which rows may be found; None for all.
    """
    if mask is None and (effort is None or effort >= k or kind == "ivfpq"):
        return None, ()  # the index's own, since making these takes as long as a search
    options, kept = {}, ()
    if mask is not None:
        kept = _selector(mask)
        options = {"sel": kept[0]}
    if kind == "flat":
        return faiss.SearchParameters(**options), kept
    if kind == "hnsw":
        return faiss.SearchParametersHNSW(efSearch=max(effort, k), **options), kept
    inner = faiss.SearchParametersIVF(nprobe=effort, **options)
    return faiss.SearchParametersPreTransform(index_params=inner), (*kept, inner)


def held_vectors(kind, index, vectors):
    """What an index holds of vectors that are added: themselves, of IVF-PQ what codes stand for."""
    if kind != "ivfpq":
        return vectors
    vectors = np.ascontiguousarray(vectors, np.float32)
    return index.sa_decode(index.sa_encode(vectors))


def take_back(kind, index, count):
    """Undoes what was added behind the first `count` rows.

    Of a flat index they go; of the others they are passed over, as removed rows are.
    """
    row_ids(index)[count:] = REMOVED
    if kind == "flat":
        remove(index, np.array([REMOVED]))


def remove(index, ids):
    """Takes the rows of some ids out of a flat index; those behind them move up."""
    index.remove_ids(ids)
    flat = rows(index)
    if hasattr(flat, "clear_l2norms"):  # of other rows now
        flat.clear_l2norms()


def _selector(mask):
    """`(selector, the bits that it points into)`."""
    bits = np.packbits(mask, bitorder="little")
    # FAISS takes the size in bytes of the bitmap, not in rows.
    return faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits)), bits
