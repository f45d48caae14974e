"""The checked description of an index: how one similarity is searched over one gallery."""

import warnings

import numpy as np

from zoo import embeddings
from zoo.embeddings import GAUSSIAN, POINT, SET
from zoo.embeddings.arrays import as_arrays, element_owners, length
from zoo.embeddings.csls import CorrectedSpace
from zoo.embeddings.spaces import SPACES
from zoo.search import scoring

SIDES = ("images", "captions")
ELEMENTS = "elements"  # the space of sets
KEPT = "gallery_"  # columns with the embeddings themselves
_PARTS = {POINT: ("mean",), GAUSSIAN: ("mean", "log_variance"), SET: ("elements",)}


_LARGEST_LOG = float(np.log(np.finfo(np.float32).max))
_CHOICES = {
    "similarity": None,
    "embedding": tuple(_PARTS),
    "dim": None,
    "side": SIDES,
    "space": tuple(SPACES),
    "candidates": None,
    "uncertainty_measure": None,
    "next_id": None,
}


def check_saved(description):
    """Raises KeyError or ValueError unless saved values are a description of an index."""
    for key, choices in _CHOICES.items():
        value = description[key]
        if choices is not None and value not in choices:
            raise ValueError(f"{key!r} must be one of {choices}; found {value!r}")
    hubs = description.get("hubs")
    if hubs is not None and not (hubs["questions"] > 0 and 0 <= hubs["ceiling"] < np.inf):
        raise ValueError(f"'hubs' must be a number of questions and a ceiling; found {hubs!r}")


def describe(gallery, similarity, side, candidates, candidates_by, uncertainty_measure):
    """The description that `Index` works from and saves, as JSON values; arguments as of `build`,
    the similarity resolved. Raises ValueError if one is not what it has to be."""
    if side not in SIDES:
        raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
    if length(gallery) == 0:
        raise ValueError("`gallery_embeddings` must hold at least one item; received none")
    what = embeddings.kind(gallery)
    space = candidates_by or similarity.space_for(what)
    if space not in SPACES:
        raise ValueError(
            f"`candidates_by` must be one of {tuple(SPACES)}; received {candidates_by!r} "
            f"with {scoring.name_of(similarity)}"
        )
    if candidates is not None and (candidates != int(candidates) or candidates < 1):
        raise ValueError(f"`candidates` must be a whole number ≥ 1; received {candidates}")
    description = {
        "similarity": scoring.to_json(similarity),
        "embedding": what,
        "dim": int(gallery[_PARTS[what][0]].shape[-1]),
        "side": side,
        "space": space,
        "candidates": candidates,
        "uncertainty_measure": uncertainty_measure,
        "next_id": 0,
    }
    _check_fit(description, similarity, gallery)
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


def is_direct(description, similarity):
    """Whether the space's own order is the similarity's, so that nothing is ranked again."""
    own_space = similarity.from_space is not None and description["space"] == similarity.space
    return own_space and not description["candidates"]


def adds_spread(description, similarity):
    """Whether CSD ranks what a search for means found: one sum a candidate, and no gallery."""
    csd = similarity.from_space is not None and similarity.space == "csd"
    return csd and description["space"] == "euclidean"


def columns(description, similarity):
    """Names of the columns that an index has beside FAISS; sets with a mask have it too."""
    what, names = description["embedding"], []
    if what != POINT:
        names.append("uncertainty")
    if what == SET:
        names.append("ids")
    if adds_spread(description, similarity):
        names.append("spread")
    elif not is_direct(description, similarity):
        names += [KEPT + part for part in _PARTS[what]]
    return names


def check_items(description, arrays, name):
    """Raises ValueError unless items are of the gallery's kind and dimension."""
    what = embeddings.kind(arrays)
    if what != description["embedding"]:
        received = _described(what, arrays)
        raise ValueError(f"`{name}` must be {description['embedding']}; received {received}")
    dim = arrays[_PARTS[what][0]].shape[-1]
    if dim != description["dim"]:
        raise ValueError(f"`{name}` must have dimension {description['dim']}; received {dim}")


def check_gallery(description, arrays, held):
    """Raises ValueError unless further items are of the gallery's kind, dimension and size."""
    name, what = "`gallery_embeddings`", embeddings.kind(arrays)
    check_items(description, arrays, "gallery_embeddings")
    values = arrays[_PARTS[what][0]]
    if what != SET or "gallery_elements" not in held:
        return
    size = held["gallery_elements"].values.shape[1]
    if values.shape[1] != size:
        raise ValueError(f"{name} must have {size} elements an item; received {values.shape[1]}")
    if ("mask" in arrays) != ("gallery_mask" in held):
        raise ValueError(f"{name} must have a 'mask' if, and only if, the first items had one")


def check_finite(arrays, beside, vectors, first):
    """Raises ValueError if the arrays beside an item, or its vectors (of sets one an element),
    overflow float32; `first` is the number of the first item, for the error."""
    owners = element_owners(arrays) if "elements" in arrays else slice(None)
    numbers = np.arange(length(arrays))
    bad = {numbers[owners][_not_finite(vectors)].min(initial=len(numbers))}
    bad |= {numbers[_not_finite(values)].min(initial=len(numbers)) for values in beside.values()}
    if "log_variance" in arrays:
        is_large = (arrays["log_variance"] > _LARGEST_LOG).any(axis=1)
        bad.add(numbers[is_large].min(initial=len(numbers)))
    if min(bad) < len(numbers):
        raise ValueError(
            "`gallery_embeddings` must have variances and vectors that float32 can hold; those of "
            f"item {first + min(bad)} are not finite"
        )


def warn_of_zeros(description, vectors, name, first=0):
    """Warns of vectors without a direction, which have the same cosine with everything."""
    if description["space"] not in ("cosine", ELEMENTS):
        return
    rows = np.flatnonzero(~vectors.any(axis=1))
    if len(rows):
        warnings.warn(
            f"`{name}`: {len(rows)} of {len(vectors)} vectors are all zeros, the first in row "
            f"{first + rows[0]}; their cosine with every vector is 0",
            stacklevel=4,
        )


def _described(what, arrays):
    return f"{what} of shape {arrays[_PARTS[what][0]].shape}"


def _not_finite(values):
    values = np.asarray(values)
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(values.sum()):
            return np.zeros(len(values), bool)
    return ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)


def checked_queries(description, similarity, queries):
    """Queries as a dict of arrays, of the gallery's kind and dimension; else a ValueError."""
    queries = as_arrays(queries, "queries")
    what, own = embeddings.kind(queries), description["embedding"]
    mixed = {what, own} <= {POINT, GAUSSIAN} & {*similarity.embeddings}
    if what != own and not mixed:
        raise ValueError(f"`queries` must be {own}; received {_described(what, queries)}")
    dim = queries[_PARTS[what][0]].shape[-1]
    if dim != description["dim"]:
        raise ValueError(f"`queries` must have dimension {description['dim']}; received {dim}")
    return queries


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
        expected = None if scores is None else np.shape(scores)
        raise ValueError(
            f"`ids` must be of the shape of `scores`, {expected}; received {np.shape(ids)}"
        )


def _check_fit(description, similarity, arrays):
    what, space = description["embedding"], description["space"]
    if similarity.embeddings and what not in similarity.embeddings:
        raise ValueError(
            f"`gallery_embeddings` must be {' or '.join(similarity.embeddings)} for "
            f"{scoring.name_of(similarity)}; received {_described(what, arrays)}"
        )
    if (what == SET) != (space == ELEMENTS):
        raise ValueError(
            f"`candidates_by` must be 'elements' for sets and for nothing else; "
            f"received {space!r} for {what}"
        )
    if space in ("csd", "wasserstein_2") and what != GAUSSIAN:
        raise ValueError(f"`candidates_by` {space!r} needs Gaussians; received {what}")
