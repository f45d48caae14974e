"""Vectors of images and captions that exist, as a data set."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from halo_search.errors import InputError
from halo_search.files.vector_files import located, read_column, read_vectors
from zoo.data.records import Problems, Records
from zoo.data.records.sources import Features, Split

SPLITS = ("train", "validation", "test")
MOST = 5000  # images of the validation and of the test split
_SMALL = 1 << 29  # bytes of a split's own rows, which are then copied


def load(
    split,
    images,
    captions,
    pairs=None,
    labels=None,
    splits=None,
    texts=None,
    paths=None,
    root=None,
    held_out="test",
    seed=0,
):
    """Stored vectors as a `Split`; every file is `FILE` or `FILE:NAME`, see
    `halo_search.files.vector_files`. Raises InputError if one is absent or not what it has to be.

    One image in ten is for validation and one in ten for the test, up to 5,000 each, drawn by the
    seed. Images that share a caption stay together.

    Args:
        split: `"train"`, `"validation"` or `"test"`.
        images, captions: vectors `(N, image_dim)` and `(M, caption_dim)`.
        pairs: whole numbers `(P, 2)`, rows of an image and of its caption; None pairs row i with
            row i. Images that share a caption count as one: each matches all their captions.
        labels: `(N,)`, the class of each image; it matches the captions of its whole class.
        splits: `(N,)` texts, `train`, `validation` or `test`, in place of the random split.
        texts, paths: `(M,)` what the captions say and `(N,)` where pictures are, for lists.
        root: the folder that all the files have moved to.
        held_out: `"val"`: the test split is the validation split.
    """
    if held_out not in ("test", "val"):
        raise InputError(f"data: `held_out` must be test or val; received {held_out!r}")
    image_array = read_vectors(images, "images", root)
    caption_array = read_vectors(captions, "captions", root)
    sizes = {"images": len(image_array), "captions": len(caption_array)}
    pairs = _pairs(pairs, root, images, captions, sizes)
    owner, groups, problems = _owners(pairs, sizes)
    labelled = groups
    if labels is not None:
        values = np.asarray(_column(labels, root, sizes["images"], "images", images))
        names, labelled = np.unique(values, return_inverse=True)
        _check_labels(labels, pairs, labelled, names)
    if splits is not None:
        chosen = _given_split(splits, root, sizes["images"], images)
        _check_together(splits, pairs, chosen)
    else:
        chosen = _random_split(groups, owner, seed, images)
    wanted = "validation" if split == "test" and held_out == "val" else split
    has_caption = np.zeros(sizes["images"], bool)
    has_caption[pairs[:, 0]] = True
    rows = np.flatnonzero((chosen == SPLITS.index(wanted)) & has_caption)
    position = np.full(sizes["images"], -1)
    position[rows] = np.arange(len(rows))
    caption_rows = np.flatnonzero((owner >= 0) & (position[owner] >= 0))
    shown = paths and _column(paths, root, sizes["images"], "images", images)
    captions_text = texts and _column(texts, root, sizes["captions"], "captions", captions)
    present, image_labels = np.unique(labelled[rows], return_inverse=True)
    records = Records(
        name=f"{located(images)[0].stem} {split}",
        image_paths=[str(shown[row]) if shown is not None else f"image {row}" for row in rows],
        captions=[
            str(captions_text[row]) if captions_text is not None else f"caption {row}"
            for row in caption_rows
        ],
        caption_image=position[owner[caption_rows]],
        image_labels=image_labels,
        image_ids=rows,
        class_names=None if labels is None else tuple(str(names[label]) for label in present),
        skipped=tuple(problems.skipped),
        caption_ids=caption_rows,
        caption_vectors=_source(caption_array, caption_rows),
    )
    return Split(records, _source(image_array, rows))


def _source(array, rows):
    """The vectors of some rows: a copy where they are few, since splits must not each hold all."""
    if len(rows) * array[:1].nbytes <= _SMALL:
        return Features(np.asarray(array[rows]))
    return Features(array, rows)


def _pairs(pairs, root, images, captions, sizes):
    """int64 (pairs, 2): rows of images and captions; row i with row i if no file says otherwise.
    Raises InputError for rows that do not exist."""
    if pairs is None:
        if sizes["images"] != sizes["captions"]:
            raise InputError(
                f"{captions}: expected {sizes['images']:,} rows, as {images} has, found "
                f"{sizes['captions']:,}; --pairs says which belong together"
            )
        return np.repeat(np.arange(sizes["images"])[:, None], 2, axis=1)
    rows = np.asarray(read_column(pairs, root))
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu" or not len(rows):
        raise InputError(
            f"{pairs}: expected whole numbers (pairs, 2), rows of images and of captions; found "
            f"{rows.dtype} {rows.shape}"
        )
    rows = rows.astype(np.int64)
    outside = ((rows < 0) | (rows >= list(sizes.values()))).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{pairs}: row {row} is {tuple(rows[row].tolist())}; expected rows below "
            f"{sizes['images']:,} and {sizes['captions']:,}"
        )
    return rows


def _owners(pairs, sizes):
    """Each caption's first image or −1, each image's group by shared captions, what is left."""
    problems = Problems()
    owner = np.full(sizes["captions"], -1)
    owner[pairs[::-1, 1]] = pairs[::-1, 0]
    lonely = np.setdiff1d(np.arange(sizes["images"]), pairs[:, 0])
    for kind, rows in (
        ("images without captions", lonely),
        ("captions without images", np.flatnonzero(owner < 0)),
    ):
        for row in rows:
            problems.missing(kind, f"row {row}", "in no pair")
    graph = coo_array(
        (np.ones(len(pairs), bool), (pairs[:, 0], owner[pairs[:, 1]])),
        shape=(sizes["images"], sizes["images"]),
    )
    _, groups = connected_components(graph, directed=False)
    return owner, groups, problems


def _column(spec, root, rows, what, other):
    """A column of `rows` values. Raises InputError if it has another length."""
    values = read_column(spec, root)
    if len(values) != rows:
        raise InputError(
            f"{spec}: expected {rows:,} rows, one for each of the {what} of {other}, found "
            f"{len(values):,}"
        )
    return values


def _check_labels(spec, pairs, labelled, names):
    """Raises InputError if a caption belongs to images of two classes."""
    first = np.full(int(pairs[:, 1].max()) + 1, -1)
    first[pairs[::-1, 1]] = labelled[pairs[::-1, 0]]
    wrong = first[pairs[:, 1]] != labelled[pairs[:, 0]]
    if wrong.any():
        image, caption = pairs[int(np.argmax(wrong))]
        raise InputError(
            f"{spec}: expected the images of one caption to have one label; caption {caption} has "
            f"{names[first[caption]]} and, by image {image}, {names[labelled[image]]}"
        )


def _given_split(spec, root, rows, images):
    """The split of each image as a position in `SPLITS`, int (images,). Raises InputError for
    unknown splits, and without validation or test."""
    values = [str(value) for value in _column(spec, root, rows, "images", images)]
    unknown = sorted(set(values) - set(SPLITS))
    if unknown:
        raise InputError(f"{spec}: expected {', '.join(SPLITS)}, found {unknown[0]!r}")
    missing = sorted(set(SPLITS[1:]) - set(values))
    if missing:
        raise InputError(f"{spec}: expected rows of validation and of test, none is {missing[0]}")
    return np.array([SPLITS.index(value) for value in values])


def _check_together(spec, pairs, chosen):
    """Raises InputError if a caption belongs to images of two splits."""
    low = np.full(int(pairs[:, 1].max()) + 1, len(SPLITS))
    np.minimum.at(low, pairs[:, 1], chosen[pairs[:, 0]])
    apart = low[pairs[:, 1]] != chosen[pairs[:, 0]]
    if apart.any():
        image, caption = pairs[int(np.argmax(apart))]
        raise InputError(
            f"{spec}: expected the images of caption {caption} in one split; image {image} is in "
            "another"
        )


def _random_split(groups, owner, seed, images):
    """The split of each image as a position in `SPLITS`, int (images,); the images of one group
    share it. A tenth of the groups is for validation and a tenth for the test."""
    count = int(groups.max()) + 1
    if count < 3:
        raise InputError(
            f"{images}: expected three images that share no caption at least, one for validation "
            f"and one for the test; found {count}"
        )
    held = min(MOST, max(1, count // 10))
    order = np.random.default_rng(seed).permutation(count)
    split_of = np.zeros(count, int)
    split_of[order[:held]] = SPLITS.index("test")
    split_of[order[held : 2 * held]] = SPLITS.index("validation")
    return split_of[groups]
