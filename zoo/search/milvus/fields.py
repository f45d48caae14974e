"""What a Milvus collection holds: its description, its fields and the rows of an item."""

import json

import numpy as np

from zoo import embeddings
from zoo.arrays import as_arrays, length, take
from zoo.embeddings import POINT, SET
from zoo.errors import InputError, require
from zoo.search import plan, units
from zoo.search.columns import assign_ids
from zoo.similarities.spaces import SPACES

PROPERTY = "halo_zoo"  # of the collection: the description, as JSON
VERSION = 1
_NAME_BYTES = 4096
_ABSENT = {"kind": "flat", "next_id": 0}  # of an `Index`'s description, that Milvus answers for


def describe(like, similarity, side, uncertainty_measure, names):
    """The description that `MilvusIndex` works from, as JSON values; see `plan.describe`.

    Args:
        like, similarity, side, uncertainty_measure, names: see `MilvusIndex.create`.

    Raises:
        ValueError: if one is not what it has to be, or Milvus cannot rank by the similarity.
    """
    similarity = units.resolve(similarity)
    one = take(as_arrays(like, "like"), slice(0, 1))
    is_set = embeddings.kind(one) == SET
    if similarity.from_space is None and not (is_set and similarity.space_for(SET)):
        raise ValueError(
            "`similarity` must be one that a search space ranks by, as CSD, W2 and the cosine, or "
            f"one of sets; {units.name_of(similarity)} has to rank candidates itself, which "
            "zoo.search.Index does"
        )
    description = plan.describe(one, similarity, "flat", side, None, None, uncertainty_measure)
    return {
        "version": VERSION,
        **{key: value for key, value in description.items() if key not in _ABSENT},
        "vector_dim": _vectors(description, one).shape[1],
        "elements": one["elements"].shape[1] if is_set else 1,
        "names": bool(names),
    }


def read(client, collection):
    """The description of a collection that `MilvusIndex.create` made.

    Raises:
        InputError: if it is missing, no such collection, or of a later version.
    """
    if not client.has_collection(collection):
        raise InputError(f"{collection}: there is no such collection; MilvusIndex.create makes it")
    found = client.describe_collection(collection)
    try:
        description = json.loads(found["properties"][PROPERTY])
        plan.check_saved({**_ABSENT, **description})
        version, wanted = description["version"], description["vector_dim"]
        description["elements"], description["names"]
        fields = {field["name"]: field["params"] for field in found["fields"]}
        dim = int(fields["vector"]["dim"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{collection}: not a collection that MilvusIndex.create made ({error})"
        ) from error
    if (version, wanted) != (VERSION, dim):
        raise InputError(
            f"{collection}: expected version {VERSION} and vectors of {wanted}; found version "
            f"{version} and {dim}: make the collection again"
        )
    return description


def metric(description):
    """What Milvus compares vectors by."""
    if description["embedding"] == SET:
        return "COSINE"
    return "L2" if SPACES[description["space"]].metric == "l2" else "IP"


def schema(description):
    """A `pymilvus.CollectionSchema` for a description.

    Raises:
        MissingPackageError: if pymilvus is not installed.
    """
    pymilvus = require("pymilvus", extra="milvus")
    integer = pymilvus.DataType.INT64
    made = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    made.add_field("id", integer, is_primary=True)
    if description["embedding"] == SET:
        made.add_field("item", integer)
        made.add_field("element", integer)
    if description["names"]:
        made.add_field("name", pymilvus.DataType.VARCHAR, max_length=_NAME_BYTES)
    if description["embedding"] != POINT:
        made.add_field("uncertainty", pymilvus.DataType.FLOAT)
    made.add_field("vector", pymilvus.DataType.FLOAT_VECTOR, dim=description["vector_dim"])
    return made


def checked(description, gallery_embeddings, ids, names, uncertainty):
    """New items as `(arrays, ids, names, uncertainty)`, arrays each, None where there are none.

    Args:
        gallery_embeddings, ids, names, uncertainty: see `MilvusIndex.add`.

    Raises:
        ValueError: if they do not fit the description or each other.
    """
    arrays = as_arrays(gallery_embeddings, "gallery_embeddings")
    plan.check_gallery(description, arrays, {})
    count, size, what = length(arrays), description["elements"], description["embedding"]
    ids = assign_ids([] if ids is None else ids, count, np.empty(0, np.int64), 0)
    if count and ids.max() > np.iinfo(np.int64).max // size - 1:
        raise ValueError(f"`ids` must be below 2^63 / {size}; received {ids.max()}")
    if what == SET:
        mask = arrays.setdefault("mask", np.ones(arrays["elements"].shape[:2], bool))
        if mask.shape[1] > size or not mask.any(axis=1).all():
            raise ValueError(f"`gallery_embeddings` must be sets of 1 to {size} elements")
    if (names is not None) != description["names"]:
        expected = "names" if description["names"] else "no names"
        raise ValueError(f"`names` must be as the collection was made, which has {expected}")
    if names is not None:
        names = np.array([str(name) for name in names], object)
        longest = max((len(name.encode()) for name in names), default=0)
        if len(names) != count or longest > _NAME_BYTES:
            raise ValueError(
                f"`names` must be {count} strings of at most {_NAME_BYTES:,} bytes; received "
                f"{len(names)}, the longest of {longest:,}"
            )
    if what == POINT:
        if uncertainty is not None:
            raise ValueError("`uncertainty` must be None: points have no uncertainty")
        return arrays, ids, names, None
    if uncertainty is None:
        uncertainty = embeddings.uncertainty(arrays, description["uncertainty_measure"])
    uncertainty = np.asarray(uncertainty, np.float32)
    if uncertainty.shape != (count,) or not np.isfinite(uncertainty).all():
        raise ValueError(
            f"`uncertainty` must be {count} finite numbers; received shape {uncertainty.shape}"
        )
    return arrays, ids, names, uncertainty


def rows(description, arrays, ids, names, uncertainty):
    """The rows of checked items, a list of dicts.

    The elements of a set are one row each, as they are: a similarity of sets may look at their
    lengths. Row `id` is that of the item times the number of elements, plus `element`.
    """
    size, columns = description["elements"], {"id": ids}
    item = np.arange(len(ids))
    if description["embedding"] == SET:
        mask = arrays["mask"]
        item = np.nonzero(mask)[0]
        element = (np.cumsum(mask, axis=1) - 1)[mask]
        columns = {"id": ids[item] * size + element, "item": ids[item], "element": element}
    if names is not None:
        columns["name"] = names[item]
    if uncertainty is not None:
        columns["uncertainty"] = uncertainty[item]
    columns = {name: values.tolist() for name, values in columns.items()}
    columns["vector"] = list(_vectors(description, arrays))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _vectors(description, arrays):
    if description["embedding"] == SET:
        mask = arrays.get("mask", np.ones(arrays["elements"].shape[:2], bool))
        return arrays["elements"][mask]
    return SPACES[description["space"]].gallery(arrays)
