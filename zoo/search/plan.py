"""What an index is: the checked description of how one similarity is searched over one gallery."""

from zoo import embeddings
from zoo.search import units, vectors

SIDES = ("images", "captions")
_DIM_OF = {units.POINT: "mean", units.GAUSSIAN: "mean", units.SET: "elements"}


def describe(gallery, similarity, kind, side, candidates, candidates_by, uncertainty_measure):
    """The description that `Index` works from and that is saved with it, as JSON values.

    Args:
        gallery: an embedding, a dict of arrays.
        similarity: resolved, see `units.resolve`.
        kind, side, candidates, candidates_by, uncertainty_measure: see `Index.build`.

    Raises:
        ValueError: if an argument is not what it has to be, or they do not fit each other.
    """
    if side not in SIDES:
        raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
    if vectors.length(gallery) == 0:
        raise ValueError("`gallery_embeddings` must hold at least one item; received none")
    known = units.ranking(similarity)
    space = candidates_by or (known and known.space)
    if space not in vectors.SPACES:
        raise ValueError(
            f"`candidates_by` must be one of {tuple(vectors.SPACES)}; received {candidates_by!r} "
            f"with {units.name_of(similarity)}"
        )
    if candidates is not None and (candidates != int(candidates) or candidates < 1):
        raise ValueError(f"`candidates` must be a whole number ≥ 1; received {candidates}")
    what = embeddings.kind(gallery)
    description = {
        "similarity": units.to_json(similarity),
        "embedding": what,
        "dim": int(gallery[_DIM_OF[what]].shape[-1]),
        "kind": kind,
        "side": side,
        "space": space,
        "candidates": candidates,
        "uncertainty_measure": uncertainty_measure,
        "next_id": 0,
    }
    _check_fit(description, similarity, known)
    if candidates is None and not is_direct(description, known):
        description["candidates"] = units.DEFAULT_CANDIDATES
    return description


def is_direct(description, known):
    """Whether the space's own order is the similarity's, so that nothing is ranked again."""
    own_space = known is not None and known.scorer is not None
    return own_space and description["space"] == known.space and not description["candidates"]


def adds_spread(description, known):
    """Whether CSD ranks what a search for means found: one sum a candidate, and no gallery."""
    csd = known is not None and known.space == "csd" and known.scorer is not None
    return csd and description["space"] == "mean" and description["kind"] != "ivfpq"


def check_gallery(description, arrays, columns):
    """Raises ValueError unless further items are of the gallery's kind, dimension and size."""
    name, what = "`gallery_embeddings`", embeddings.kind(arrays)
    if what != description["embedding"]:
        raise ValueError(f"{name} must be {description['embedding']}; received {what}")
    values = arrays[_DIM_OF[what]]
    if values.shape[-1] != description["dim"]:
        raise ValueError(
            f"{name} must have dimension {description['dim']}; received {values.shape[-1]}"
        )
    if what != units.SET or "gallery_elements" not in columns:
        return
    size = columns["gallery_elements"].values.shape[1]
    if values.shape[1] != size:
        raise ValueError(f"{name} must have {size} elements an item; received {values.shape[1]}")
    if ("mask" in arrays) != ("gallery_mask" in columns):
        raise ValueError(f"{name} must have a 'mask' if, and only if, the first items had one")


def check_queries(description, known, queries):
    """Raises ValueError unless queries are of the kind and the dimension of the gallery."""
    what = embeddings.kind(queries)
    allowed = known.kinds if known and description["space"] != "elements" else ()
    if what != description["embedding"] and not {what, description["embedding"]} <= {*allowed}:
        raise ValueError(f"`queries` must be {description['embedding']}; received {what}")
    dim = queries[_DIM_OF[what]].shape[-1]
    if dim != description["dim"]:
        raise ValueError(f"`queries` must have dimension {description['dim']}; received {dim}")


def _check_fit(description, similarity, known):
    what, space = description["embedding"], description["space"]
    name = units.name_of(similarity)
    if known is not None and what not in known.kinds:
        raise ValueError(
            f"`gallery_embeddings` must be {known.kinds[0]} for {name}; received {what}"
        )
    if (what == units.SET) != (space == "elements"):
        raise ValueError(
            f"`candidates_by` must be 'elements' for sets and for nothing else; "
            f"received {space!r} for {what}"
        )
    if space in ("csd", "wasserstein_2") and what != units.GAUSSIAN:
        raise ValueError(f"`candidates_by` {space!r} needs Gaussians; received {what}")
