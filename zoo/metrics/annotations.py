"""Readers of published annotations: who matches whom, and what is to be seen."""

import contextlib
import io
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from halo_search.errors import InputError, require
from halo_search.files.array_files import read_array
from halo_search.files.json_files import read_json
from halo_search.files.text_files import lines_of
from zoo.metrics.ranks import MatrixRelevance


def read_matches(path: str | os.PathLike) -> dict[int, list[int]]:
    """Reads a JSON object from an id to the list of ids that match it (ECCV Caption's form), such
    as `eccv_image_to_caption.json`. Raises InputError if it is anything else, naming file and
    entry."""
    matches = read_json(path)
    if not isinstance(matches, dict):
        raise InputError(f"{path}: expected an object from ids to lists of ids")
    result = {}
    for key, ids in matches.items():
        try:
            result[int(key)] = [int(value) for value in ids]
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{path}: entry {key!r} must map an id to a list of ids; received {ids!r:.60}"
            ) from error
    return result


def read_ids(path: str | os.PathLike) -> np.ndarray:
    """Reads int64 ids `(n,)`: a `.npy` of whole numbers, or text with one a line. Raises InputError
    if the file is missing or is anything else, naming file and line."""
    path = _existing(path)
    if path.suffix == ".npy":
        ids = read_array(path)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise InputError(
                f"{path}: expected whole numbers (n,); received {ids.dtype} {ids.shape}"
            )
        return ids.astype(np.int64)
    ids = []
    for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), 1):
        try:
            ids.append(int(line))
        except ValueError as error:
            raise InputError(
                f"{path}:{number}: expected one id a line; received {line!r}"
            ) from error
    return np.array(ids, np.int64)


def read_instance_labels(
    paths: str | os.PathLike | Sequence[str | os.PathLike], image_ids: Sequence[int]
) -> np.ndarray:
    """The object classes of images, from COCO instances JSON, read by pycocotools.

    Raises InputError, with the file's name, if a file is missing, is not COCO's, or lacks one of
    the images.

    Args:
        paths: one file or several of the same categories, for instance `instances_val2014.json`.
        image_ids: `(N,)` ids of the images wanted.

    Returns:
        Boolean `(N, classes)`, classes by ascending category id. An image of the file without
        annotations has no label.
    """
    coco_class = require("pycocotools.coco", extra="models").COCO  # for PMRP alone

    image_ids = [int(image_id) for image_id in image_ids]
    labels, categories, known = {image_id: set() for image_id in image_ids}, None, set()
    for path in [paths] if isinstance(paths, (str, pathlib.Path)) else paths:
        _existing(path)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # it reports its progress by print
                coco = coco_class(str(path))
            category_ids = sorted(coco.getCatIds())
            for image_id in labels.keys() & coco.imgs.keys():
                for item in coco.imgToAnns.get(image_id, ()):
                    if item["category_id"] not in coco.cats:
                        raise ValueError(
                            f"annotation {item.get('id')} has the unknown category "
                            f"{item['category_id']}"
                        )
                    labels[image_id].add(item["category_id"])
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: expected COCO instances JSON; {error!r:.200}") from error
        if categories is not None and category_ids != categories:
            raise InputError(f"{path}: its categories differ from those of the files before it")
        categories, known = category_ids, known | coco.imgs.keys()
    missing = [image_id for image_id in image_ids if image_id not in known]
    if missing:
        raise InputError(f"{paths}: lacks {describe_ids(missing)} of `image_ids`")
    return np.array([[c in labels[i] for c in categories] for i in image_ids], bool)


def relevance_of_matches(
    matches: Mapping[int, Sequence[int]], query_ids: Sequence[int], gallery_ids: Sequence[int]
) -> MatrixRelevance:
    """Matches by id as a `MatrixRelevance` for the given rows and columns, of unique ids.

    Ids outside the gallery stay in R as positives that cannot be found, as in the published
    figures: ECCV Caption has two such captions. `.unreachable` counts them.
    """
    column_of = {int(item): column for column, item in enumerate(gallery_ids)}
    shape = (len(query_ids), len(gallery_ids))
    pairs, unreachable = [], np.zeros(shape[0], int)
    for row, query in enumerate(query_ids):
        ids = set(matches.get(int(query), ()))
        columns = [column_of[item] for item in ids if item in column_of]
        unreachable[row] = len(ids) - len(columns)
        pairs += [(row, column) for column in columns]
    matrix = np.array(pairs, int).reshape(-1, 2)
    values = np.ones(len(matrix), bool)
    return MatrixRelevance(
        sparse.coo_array((values, (matrix[:, 0], matrix[:, 1])), shape=shape), unreachable
    )


def describe_ids(ids):
    """Ids in words, for messages: `"3 ids, for instance 7, 12, 15"`."""
    some = ", ".join(str(item) for item in list(ids)[:5])
    return f"{len(ids)} id{'s' if len(ids) > 1 else ''}, for instance {some}"


def _existing(path):
    """The path as a `Path`. Raises InputError if it is no file."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    return path
