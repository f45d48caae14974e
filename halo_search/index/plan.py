"""The checked description of an index: how one similarity is searched over one gallery."""

import warnings

import numpy as np

from halo_search import embeddings
from halo_search.embeddings import GAUSSIAN, POINT, SET
from halo_search.embeddings.arrays import as_arrays, length
from halo_search.embeddings.csls import CorrectedSpace
from halo_search.embeddings.spaces import SPACES
from halo_search.index import scoring

SIDES = ("images", "captions")
KEPT = "gallery_"  # columns with the embeddings themselves
_SPACES = {
    POINT: ("euclidean", "cosine"),
    GAUSSIAN: ("csd", "wasserstein_2", "euclidean", "cosine"),
    SET: ("elements",),
}


def describe(gallery, similarity, side, candidates, candidates_by):
    """The description that `Index` works from and saves, as JSON values; arguments as of `build`,
    the similarity resolved. Raises ValueError if one is not what it has to be."""
    if side not in SIDES:
        raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
    if length(gallery) == 0:
        raise ValueError("`gallery_embeddings` must hold at least one item; received none")
    what, name = embeddings.kind(gallery), scoring.name_of(similarity)
    if what not in (similarity.embeddings or (what,)):
        raise ValueError(
            f"`gallery_embeddings` must be {' or '.join(similarity.embeddings)} for {name}; "
            f"received {_described(what, gallery)}"
        )
    space = candidates_by or similarity.space_for(what)
    if space not in _SPACES.get(what, ()):
        raise ValueError(
            f"`candidates_by` must be one of {_SPACES.get(what)} for {what}; received "
            f"{candidates_by!r} with {name}"
        )
    if candidates is not None and (candidates != int(candidates) or candidates < 1):
        raise ValueError(f"`candidates` must be a whole number ≥ 1; received {candidates}")
    description = {
        "similarity": similarity.identity(),
        "embedding": what,
        "dim": int(_first(gallery).shape[-1]),
        "side": side,
        "space": space,
        "candidates": candidates,
        "next_id": 0,
    }
    if candidates is None and not is_direct(description, similarity):
        description["candidates"] = scoring.DEFAULT_CANDIDATES
    return description


def searched_space(description, similarity, gallery, hubs):
    """The space that an index searches: its `SearchSpace`, or with a bank of questions or a
    `CorrectedSpace` as `hubs` the corrected one, which the description then mentions."""
    space = SPACES[description["space"]]
    if hubs is None:
        return space
    if not is_direct(description, similarity):
        raise ValueError(
            "`hubs` must be None where candidates are ranked again; received questions"
        )
    if not isinstance(hubs, CorrectedSpace):
        hubs = CorrectedSpace.of(space, similarity.scorer(), hubs, gallery)
    description["hubs"] = {"questions": len(hubs.bank), "ceiling": hubs.ceiling}
    return hubs


def saved_space(description, bank):
    """The `CorrectedSpace` of a saved index by its bank of questions; None without one."""
    if bank is None:
        return None
    return CorrectedSpace(SPACES[description["space"]], bank, description["hubs"]["ceiling"])


def is_direct(description, similarity):
    """Whether the space's own order is the similarity's, so that nothing is ranked again."""
    own_space = similarity.from_space is not None and description["space"] == similarity.space
    return own_space and not description["candidates"]


def check_items(description, arrays, name, others=()):
    """Raises ValueError unless items are of the gallery's kind, or of `others`, and dimension."""
    what = embeddings.kind(arrays)
    if what not in (description["embedding"], *others):
        received = _described(what, arrays)
        raise ValueError(f"`{name}` must be {description['embedding']}; received {received}")
    dim = _first(arrays).shape[-1]
    if dim != description["dim"]:
        raise ValueError(f"`{name}` must have dimension {description['dim']}; received {dim}")


def check_gallery(description, arrays, held):
    """Raises ValueError unless further items are of the gallery's kind, dimension and size."""
    name, what = "`gallery_embeddings`", embeddings.kind(arrays)
    check_items(description, arrays, "gallery_embeddings")
    values = _first(arrays)
    if what != SET or "gallery_elements" not in held:
        return
    size = held["gallery_elements"].values.shape[1]
    if values.shape[1] != size:
        raise ValueError(f"{name} must have {size} elements an item; received {values.shape[1]}")
    if ("mask" in arrays) != ("gallery_mask" in held):
        raise ValueError(f"{name} must have a 'mask' if, and only if, the first items had one")


def warn_of_zeros(description, vectors, name, first=0):
    """Warns of vectors without a direction, which have the same cosine with everything."""
    if description["space"] not in ("cosine", "elements"):
        return
    if "hubs" in description:  # one more coordinate
        vectors = vectors[:, :-1]
    # `unit` makes no direction of what is shorter than float32 can square.
    rows = np.flatnonzero(np.einsum("nd,nd->n", vectors, vectors) < 0.5)
    if len(rows):
        warnings.warn(
            f"`{name}`: {len(rows)} of {len(vectors)} vectors are all zeros, or nearly, the first "
            f"in row {first + rows[0]}; their cosine with every vector is about 0",
            stacklevel=4,
        )


def _first(arrays):
    """The means, or the elements of sets, whose shape says what a gallery is."""
    return arrays.get("mean", arrays.get("elements"))


def _described(what, arrays):
    """A kind of embedding and its shape, for a message."""
    return f"{what} of shape {_first(arrays).shape}"


def checked_queries(description, similarity, queries):
    """Queries as a dict of arrays, of the gallery's kind and dimension; else a ValueError."""
    queries = as_arrays(queries, "queries")
    check_queries(description, similarity, queries)
    return queries


def check_queries(description, similarity, queries):
    """Raises ValueError unless a dict of arrays is of the gallery's kind and dimension. Points and
    Gaussians are compared with each other where the similarity takes both."""
    compared = {POINT, GAUSSIAN} & {*similarity.embeddings}
    others = compared if description["embedding"] in compared else ()
    check_items(description, queries, "queries", others)


def checked_k(k, size):
    """The number of answers as an int; a ValueError unless it is from 1 to the index's size."""
    if not size:
        raise ValueError("the index is empty: there is nothing to search")
    if k != int(k) or not 1 <= k <= size:
        raise ValueError(f"`k` must be from 1 to the index's size, {size}; received {k}")
    return int(k)


def check_asked(queries, scores, ids):
    """Raises ValueError unless there is a query, and ids are as many as scores."""
    if not length(queries):
        raise ValueError("`queries` must hold at least one query; received none")
    if ids is not None and (scores is None or np.shape(ids) != np.shape(scores)):
        raise ValueError(f"`ids` must be of the shape of `scores`; received {np.shape(ids)}")
